//! Run directories at and below some folders.

use selvedge_run::files::is_run;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders below each other that are looked into.
const DEEPEST: usize = 8;

/// Folders that are looked into in all, so that a dashboard of `/` comes to an end.
const MOST_FOLDERS: usize = 20_000;

/// A run directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// What people call it: its path, from the folder that was named on.
    pub(super) label: String,
    /// The folder of the deployment that it is of.
    pub(super) deployment: Option<PathBuf>,
}

impl Found {
    /// A name for addresses: of letters, digits and dashes, and the same as long as the run stays where it is.
    pub(super) fn id(&self) -> String {
        let mut word = String::new();
        for c in self.label.chars().take(60) {
            match c {
                c if c.is_ascii_alphanumeric() => word.push(c.to_ascii_lowercase()),
                _ if word.is_empty() || word.ends_with('-') => {}
                _ => word.push('-'),
            }
        }
        let whole = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        let hash = Sha256::digest(whole.as_os_str().as_encoded_bytes());
        let hash: String = hash.iter().take(5).map(|b| format!("{b:02x}")).collect();
        format!("{}-{hash}", word.trim_end_matches('-'))
    }
}

/// All run directories at and below `roots`, each once, and what people should know of the search.
pub(super) fn runs(roots: &[PathBuf]) -> (Vec<Found>, Vec<String>) {
    let mut search = Search::default();
    for root in roots {
        if !root.is_dir() {
            search
                .notes
                .push(format!("{} does not exist", root.display()));
            continue;
        }
        let name = match (root.file_name(), root.canonicalize()) {
            (Some(_), _) => name_of(root),
            // `.` or `..`
            (None, Ok(whole)) => name_of(&whole),
            (None, Err(_)) => root.display().to_string(),
        };
        search.root = root.clone();
        search.look(root, &name, DEEPEST);
    }
    if search.folders > MOST_FOLDERS {
        search.notes.push(format!(
            "only the first {MOST_FOLDERS} folders were searched: name folders closer to the runs"
        ));
    }
    (search.found, search.notes)
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[derive(Default)]
struct Search {
    root: PathBuf,
    found: Vec<Found>,
    notes: Vec<String>,
    /// Whole paths, so that links lead nowhere twice.
    seen: BTreeSet<PathBuf>,
    folders: usize,
}

impl Search {
    fn look(&mut self, folder: &Path, name: &str, deeper: usize) {
        let Ok(whole) = folder.canonicalize() else {
            return;
        };
        if !self.seen.insert(whole) {
            return;
        }
        self.folders += 1;
        if self.folders > MOST_FOLDERS {
            return;
        }
        if is_run(folder) {
            return self.add(folder, name);
        }
        // A deployment's other folders are servers' and parties': large, and without runs.
        if folder.join("deployment.json").is_file() {
            for run in ["run", "cloud/run"].map(|run| folder.join(run)) {
                self.look(&run, name, 0);
            }
            return;
        }
        if deeper == 0 {
            return;
        }
        let Ok(entries) = fs::read_dir(folder) else {
            return self
                .notes
                .push(format!("{} cannot be read", folder.display()));
        };
        let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        below.sort();
        for path in below {
            let name = name_of(&path);
            // What is hidden is not whole yet.
            if !name.starts_with('.') && path.is_dir() {
                self.look(&path, &name, deeper - 1);
            }
        }
    }

    fn add(&mut self, path: &Path, name: &str) {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let mut label = below.display().to_string();
        let above = path.ancestors().skip(1).take(2);
        let deployment = above
            .map(Path::to_owned)
            .find(|p| p.join("deployment.json").is_file());
        if deployment.is_some() {
            label = label
                .trim_end_matches("run")
                .trim_end_matches("/cloud/")
                .trim_end_matches('/')
                .to_owned();
        }
        if label.is_empty() {
            label = name.to_owned();
        }
        self.found.push(Found {
            path: path.to_owned(),
            label,
            deployment,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::tests::Folder;

    #[test]
    fn runs_are_found_wherever_they_are_below() {
        let folder = Folder::new("find");
        for run in [
            "a",
            "cmp/hsgd/seed-42",
            "cmp/hsgd/seed-43",
            ".b.partial-7",
            "up/run",
            "up/group-0/server/store/c",
        ] {
            folder.write(&format!("runs/{run}/manifest.json"), "{}");
        }
        folder.write("runs/up/deployment.json", "{}");
        folder.write("runs/a/checkpoint/manifest.json", "{}");
        std::os::unix::fs::symlink(folder.path("runs"), folder.path("runs/cmp/again")).unwrap();
        let (found, notes) = runs(&[
            folder.path("runs"),
            folder.path("runs/a"),
            folder.path("none"),
        ]);
        let labels: Vec<&str> = found.iter().map(|f| f.label.as_str()).collect();
        assert_eq!(labels, ["a", "cmp/hsgd/seed-42", "cmp/hsgd/seed-43", "up"]);
        assert_eq!(found[3].deployment, Some(folder.path("runs/up")));
        assert_eq!(
            notes,
            [format!("{} does not exist", folder.path("none").display())]
        );
        let ids: BTreeSet<String> = found.iter().map(Found::id).collect();
        assert_eq!(ids.len(), 4);
        assert!(found[1].id().starts_with("cmp-hsgd-seed-42-"), "{ids:?}");
        // The same run is called the same, whatever way it is named.
        let (one, _) = runs(&[folder.path("runs/cmp/../a")]);
        assert_eq!(one[0].label, "a");
        assert_eq!(one[0].id(), found[0].id());
    }

    #[test]
    fn names_that_are_anything_make_safe_ids() {
        let run = |label: &str| Found {
            path: "/x".into(),
            label: label.into(),
            deployment: None,
        };
        for label in [
            "<img src=x>",
            "../../etc/passwd",
            "ähnlich",
            "",
            "a/b c",
            &"long".repeat(99),
        ] {
            let id = run(label).id();
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(id.chars().all(fits) && id.len() < 80, "{id}");
        }
    }
}
