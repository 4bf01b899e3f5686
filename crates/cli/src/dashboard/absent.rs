//! Who was noted as absent, by a run and by the parties of its deployment.

use selvedge_core::role::{Absence, Phase};
use selvedge_run::absences;
use selvedge_run::files::ABSENCES;
use selvedge_run::follow::{Follower, Reader};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Absences that are kept of one run.
const MOST: usize = 1_000_000;

/// How long each file is read for one request.
const TIME: Duration = Duration::from_millis(200);

/// Everybody who was noted as absent in a run.
#[derive(Default)]
pub(super) struct Absent {
    files: BTreeMap<PathBuf, Noted>,
}

/// What one file says.
#[derive(Default)]
struct Noted {
    follower: Follower,
    absences: BTreeSet<Absence>,
}

/// Adds the lines of one file to what it has said.
struct Adder<'a> {
    absences: &'a mut BTreeSet<Absence>,
    /// How many it may have.
    most: usize,
}

impl Reader for Adder<'_> {
    fn begin_anew(&mut self) {
        self.absences.clear();
    }

    fn line(&mut self, _: u64, line: &[u8]) {
        if let Ok(absence) = absences::parse(line)
            && self.absences.len() < self.most
        {
            self.absences.insert(absence);
        }
    }

    fn too_long(&mut self, _: u64) {}
}

impl Absent {
    /// Reads what is new, at the run and at the parties of its deployment, and forgets what is not there any more.
    pub(super) fn follow(&mut self, run: &Path, deployment: Option<&Path>) {
        let mut paths = BTreeSet::from([run.join(ABSENCES)]);
        for folder in deployment.into_iter().flat_map(folders) {
            paths.extend(folders(&folder).map(|party| party.join(ABSENCES)));
        }
        self.files.retain(|path, _| paths.contains(path));
        let mut kept: usize = self.files.values().map(|noted| noted.absences.len()).sum();
        for path in paths {
            let noted = self.files.entry(path.clone()).or_default();
            let others = kept - noted.absences.len();
            let mut adder = Adder {
                absences: &mut noted.absences,
                most: MOST - others,
            };
            if noted.follower.follow(&path, TIME, &mut adder).is_err() {
                // What cannot be read is as if there were nothing to tell.
                *noted = Noted::default();
            }
            kept = others + noted.absences.len();
        }
    }

    /// Those of one phase at `t`, of each file by group and device.
    pub(super) fn at(&self, phase: Phase, t: u64) -> impl Iterator<Item = &Absence> {
        let first = Absence::of_group(phase, t, 0);
        let is_then = move |absence: &&Absence| (absence.phase, absence.t) == (phase, t);
        let files = self.files.values();
        files.flat_map(move |noted| noted.absences.range(first..).take_while(is_then))
    }
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::tests::Folder;

    fn line(t: u64, device: u32) -> String {
        format!("{{\"phase\":\"exchange\",\"t\":{t},\"group\":0,\"device\":{device}}}\n")
    }

    fn at(absent: &Absent, t: u64) -> Vec<Option<u32>> {
        let found = absent.at(Phase::Exchange, t);
        found.map(|absence| absence.device).collect()
    }

    #[test]
    fn a_run_in_the_place_of_another_has_only_its_own() {
        let folder = Folder::new("absent-anew");
        let run = folder.path("run");
        let path = folder.write(
            "run/absences.jsonl",
            &(line(5, 3) + &line(5, 1) + &line(0, 2)),
        );
        let mut absent = Absent::default();
        absent.follow(&run, None);
        assert_eq!(at(&absent, 5), [Some(1), Some(3)]);
        assert_eq!(at(&absent, 0), [Some(2)]);
        fs::remove_file(&path).unwrap();
        folder.write("run/absences.jsonl", &line(5, 8));
        absent.follow(&run, None);
        assert_eq!(at(&absent, 5), [Some(8)], "another file");
        assert!(at(&absent, 0).is_empty());
        fs::remove_file(&path).unwrap();
        absent.follow(&run, None);
        assert!(at(&absent, 5).is_empty(), "none");
        folder.write("run/absences.jsonl", &line(5, 8));
        absent.follow(&run, None);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        absent.follow(&run, None);
        assert!(at(&absent, 5).is_empty(), "what cannot be read");
    }

    #[test]
    fn parties_are_told_apart_and_forgotten_when_they_are_gone() {
        let folder = Folder::new("absent-parties");
        let (run, all) = (folder.path("run"), folder.path(""));
        folder.write("group-0/edge/absences.jsonl", &(line(5, 3) + &line(5, 1)));
        let other = folder.write("group-1/edge/absences.jsonl", &line(5, 4));
        let mut absent = Absent::default();
        absent.follow(&run, Some(&all));
        assert_eq!(at(&absent, 5), [Some(1), Some(3), Some(4)]);
        fs::write(&other, line(5, 6)).unwrap();
        absent.follow(&run, Some(&all));
        assert_eq!(at(&absent, 5), [Some(1), Some(3), Some(6)], "one anew");
        fs::remove_dir_all(folder.path("group-0")).unwrap();
        absent.follow(&run, Some(&all));
        assert_eq!(at(&absent, 5), [Some(6)], "one gone with its folder");
    }

    #[test]
    fn no_more_are_kept_than_one_run_may_have() {
        let (mut absences, mut text) = (BTreeSet::new(), Vec::new());
        text.extend((0..5).map(|device| line(5, device)));
        let mut adder = Adder {
            absences: &mut absences,
            most: 3,
        };
        text.iter().for_each(|line| adder.line(1, line.as_bytes()));
        assert_eq!(absences.len(), 3);
    }
}
