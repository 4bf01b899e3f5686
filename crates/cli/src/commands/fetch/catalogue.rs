//! The sets that can be fetched: where they are, under which licence, and how their files are recognised.
//!
//! A catalogue may come from somebody else, so nothing in it is trusted: names stay below the data folder, addresses
//! are web addresses, and a misspelt key is an error rather than a check that silently does not happen.

use super::checksum::{Checksum, Kind};
use anyhow::{Context, Result, anyhow, bail, ensure};
use selvedge_core::experiment::one_of;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What follows a file's name while it is not whole.
pub(super) const PARTIAL: &str = ".part";

/// All sets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    pub(super) sets: Vec<Set>,
}

/// A set: files that can be downloaded, or steps that a person has to take.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    pub(super) name: String,
    /// What it is, in a line.
    pub(super) title: String,
    /// Where its publisher describes it.
    pub(super) page: String,
    pub(super) licence: String,
    /// The folder below the data folder in which the readers look for it.
    pub(super) folder: String,
    /// The command that makes sense once it is there, without `selvedge` and `--data-dir`.
    #[serde(default)]
    pub(super) next: Option<String>,
    #[serde(default)]
    pub(super) files: Vec<RemoteFile>,
    /// How a person gets it; `{folder}` stands for the folder it goes to.
    #[serde(default)]
    pub(super) steps: Vec<String>,
    /// Below the folder: if one of them is there, so is the set that a person had to get.
    #[serde(default)]
    pub(super) places: Vec<String>,
}

/// A file to download.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteFile {
    pub(super) name: String,
    pub(super) address: String,
    #[serde(default)]
    pub(super) bytes: Option<u64>,
    /// Where that is not published: what it can be at most, since that is what it unpacks to.
    #[serde(default)]
    at_most: Option<u64>,
    #[serde(default)]
    md5: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
}

impl Catalogue {
    /// The one that comes with selvedge.
    pub(super) fn own() -> Result<Self> {
        Catalogue::parse(include_str!("catalogue.json"))
    }

    /// One from a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = selvedge_run::files::read_text(path)?;
        Catalogue::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let catalogue: Catalogue = serde_json::from_str(text)
            .map_err(|error| anyhow!("not a catalogue of data sets: {error}"))?;
        for (index, set) in catalogue.sets.iter().enumerate() {
            set.check().with_context(|| format!("set {:?}", set.name))?;
            let before = &catalogue.sets[..index];
            ensure!(
                before.iter().all(|other| other.name != set.name),
                "set {:?}: it appears twice, expected every name once",
                set.name
            );
        }
        Ok(catalogue)
    }

    /// The set of that name.
    pub(super) fn find(&self, name: &str) -> Result<&Set> {
        let names: Vec<&str> = self.sets.iter().map(|set| set.name.as_str()).collect();
        let found = self.sets.iter().find(|set| set.name == name);
        found.with_context(|| format!("no data set {name:?} to fetch: {}", one_of(name, &names)))
    }
}

impl Set {
    fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_name(&self.folder)?;
        self.places.iter().try_for_each(|place| check_name(place))?;
        check_address(&self.page)?;
        if self.files.is_empty() == self.steps.is_empty() {
            bail!("expected either files to download or steps to get it by hand");
        }
        for (index, file) in self.files.iter().enumerate() {
            file.check()
                .with_context(|| format!("file {:?}", file.name))?;
            let before = &self.files[..index];
            ensure!(
                before.iter().all(|other| other.name != file.name),
                "file {:?}: it appears twice, expected every name once",
                file.name
            );
        }
        Ok(())
    }

    /// The same, or what it can be at most, for people.
    pub(super) fn size(&self) -> Option<String> {
        let most = |sum: u64, file: &RemoteFile| sum.checked_add(file.bytes.or(file.at_most)?);
        let most = self.files.iter().try_fold(0, most)?;
        let word = if self.bytes().is_some() {
            ""
        } else {
            "at most "
        };
        Some(format!(
            "{word}{}",
            selvedge_run::format::bytes(most as f64)
        ))
    }

    /// How many bytes it has, if all of its files say so.
    pub(super) fn bytes(&self) -> Option<u64> {
        let sum = |sum: u64, file: &RemoteFile| sum.checked_add(file.bytes?);
        match self.files.is_empty() {
            true => None,
            false => self.files.iter().try_fold(0, sum),
        }
    }

    /// Where it goes.
    pub(super) fn folder(&self, data_dir: &Path) -> PathBuf {
        data_dir.join(&self.folder)
    }

    /// What a person has to do.
    pub(super) fn steps(&self, data_dir: &Path) -> Vec<String> {
        let folder = self.folder(data_dir).display().to_string();
        let step = |step: &String| step.replace("{folder}", &folder);
        self.steps.iter().map(step).collect()
    }
}

impl RemoteFile {
    fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_address(&self.address)?;
        for (kind, digits) in [(Kind::Md5, &self.md5), (Kind::Sha256, &self.sha256)] {
            let Some(digits) = digits else { continue };
            let right = digits.len() == kind.digits()
                && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            ensure!(
                right,
                "{kind} {digits:?}: expected {} hexadecimal digits",
                kind.digits()
            );
        }
        Ok(())
    }

    /// How it is recognised; the stronger way if there are two.
    pub(super) fn checksum(&self) -> Option<Checksum> {
        let of = |kind, digits: &Option<String>| {
            let digits = digits.clone()?;
            Some(Checksum { kind, digits })
        };
        of(Kind::Sha256, &self.sha256).or_else(|| of(Kind::Md5, &self.md5))
    }

    /// Where it is, or where a mirror has it.
    pub(super) fn address(&self, mirror: Option<&str>) -> String {
        match mirror {
            Some(base) => {
                let name = self.name.replace(' ', "%20");
                format!("{}/{name}", base.trim_end_matches('/'))
            }
            None => self.address.clone(),
        }
    }
}

/// Names of sets, folders and files: one part of a path, visible, and never the name of a file that is not whole.
fn check_name(name: &str) -> Result<()> {
    let letters = |c: char| c.is_ascii_alphanumeric() || "._- ".contains(c);
    let right = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(letters)
        && name.len() <= 100
        && !name.ends_with(PARTIAL);
    ensure!(
        right,
        "name {name:?}: expected at most 100 letters, digits, dots, dashes and spaces, not ending in {PARTIAL}"
    );
    Ok(())
}

/// Web addresses.
pub(super) fn check_address(address: &str) -> Result<()> {
    let host = ["https://", "http://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    let right = host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && address.chars().all(|c| c.is_ascii_graphic());
    ensure!(
        right,
        "{address:?}: expected an address that begins with https:// or http://"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_catalogue_is_right_and_its_files_can_be_recognised() {
        let own = Catalogue::own().unwrap();
        for set in &own.sets {
            assert!(set.page.starts_with("https://"), "{}", set.name);
            for file in &set.files {
                assert!(file.checksum().is_some(), "{}", file.name);
                assert!(file.address.starts_with("https://"), "{}", file.name);
                assert!(file.address.contains(&file.name), "{}", file.name);
            }
        }
        assert_eq!(own.find("physionet2012").unwrap().bytes(), Some(13_443_430));
    }

    fn with(file: &str) -> String {
        format!(
            r#"{{"sets": [{{"name": "a", "title": "t", "page": "http://x/", "licence": "l", "folder": "a",
                "files": [{file}]}}]}}"#
        )
    }

    #[test]
    fn catalogues_that_would_write_elsewhere_or_skip_a_check_are_refused() {
        let right = r#"{"name": "f", "address": "http://x/f"}"#;
        assert!(Catalogue::parse(&with(right)).is_ok());
        for (wrong, part) in [
            (r#"{"name": "../f", "address": "http://x/f"}"#, "\"../f\""),
            (r#"{"name": "/f", "address": "http://x/f"}"#, "\"/f\""),
            (r#"{"name": ".f", "address": "http://x/f"}"#, "\".f\""),
            (r#"{"name": "", "address": "http://x/f"}"#, "\"\""),
            (r#"{"name": "f.part", "address": "http://x/f"}"#, ".part"),
            (r#"{"name": "f", "address": "file:///f"}"#, "https://"),
            (r#"{"name": "f", "address": "http://"}"#, "https://"),
            (
                r#"{"name": "f", "address": "http://x/f", "md5": "12"}"#,
                "32 hexadecimal digits",
            ),
            (
                r#"{"name": "f", "address": "http://x/f", "sha265": "12"}"#,
                "sha265",
            ),
            (
                r#"{"name": "f", "address": "http://x/f", "bytes": -1}"#,
                "-1",
            ),
            ("", "either files"),
        ] {
            let error = format!("{:#}", Catalogue::parse(&with(wrong)).unwrap_err());
            assert!(error.contains(part), "{wrong}: {error}");
        }
        let twice = with(&format!("{right}, {right}"));
        let error = format!("{:#}", Catalogue::parse(&twice).unwrap_err());
        assert!(error.contains("twice"), "{error}");
    }

    #[test]
    fn a_mirror_has_files_by_name() {
        let catalogue = Catalogue::parse(&with(
            r#"{"name": "a b.csv", "address": "http://x/old?download=1"}"#,
        ));
        let catalogue = catalogue.unwrap();
        let file = &catalogue.sets[0].files[0];
        assert_eq!(file.address(None), "http://x/old?download=1");
        assert_eq!(
            file.address(Some("http://mirror/data/")),
            "http://mirror/data/a%20b.csv"
        );
    }
}
