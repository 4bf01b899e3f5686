//! Comparisons, sweeps and reproductions through the binary: their numbers, their folders, what ends them and goes on
//! with them, and what is refused.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "comparison/damaged.rs"]
mod damaged;
#[path = "comparison/folders.rs"]
mod folders;
#[path = "comparison/intervals.rs"]
mod intervals;
#[path = "comparison/killed.rs"]
mod killed;
#[path = "comparison/numbers.rs"]
mod numbers;
#[path = "comparison/outcomes.rs"]
mod outcomes;
#[path = "comparison/refused.rs"]
mod refused;
#[path = "comparison/reproduced.rs"]
mod reproduced;
#[path = "comparison/sweeps.rs"]
mod sweeps;
#[path = "comparison/tables.rs"]
mod tables;
#[path = "comparison/xml.rs"]
mod xml;

use common::run::{Run, same_results};
use common::{Place, snapshot};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long a running process may take to come to a point that it reaches in milliseconds.
const SOON: Duration = Duration::from_secs(30);

/// A few hundredths of a second a run.
const SHORT: [&str; 2] = ["--set", "train.iterations=100"];

/// The run directories of a comparison, without those of its tuning.
fn runs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for variant in fs::read_dir(folder).into_iter().flatten().flatten() {
        if variant.file_name() == "tuning" {
            continue;
        }
        for run in fs::read_dir(variant.path()).into_iter().flatten().flatten() {
            if run.path().join("manifest.json").is_file() {
                found.push(run.path());
            }
        }
    }
    found.sort();
    found
}

/// Those that have come to their end, or to a target.
fn finished(folder: &Path) -> Vec<PathBuf> {
    let has_ended = |path: &PathBuf| {
        let kind = &Run(path.clone()).manifest()["ending"]["kind"];
        kind == "finished" || kind == "reached"
    };
    runs(folder).into_iter().filter(has_ended).collect()
}

type Stamped = BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)>;

/// Every file of these runs, with the time of its last change.
fn stamped(runs: &[PathBuf]) -> Stamped {
    let files = runs.iter().flat_map(|run| snapshot(run));
    let stamp = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    files
        .map(|(path, bytes)| (path.clone(), (bytes, stamp(&path))))
        .collect()
}

/// Two folders of the same comparison must have the same runs, to the bit, and the same table.
#[track_caller]
fn same_comparison(place: &Place, expected: &str, found: &str) {
    let [a, b] = [expected, found].map(|name| place.join(name));
    let names = |folder: &PathBuf| -> Vec<PathBuf> {
        let name = |run: PathBuf| run.strip_prefix(folder).unwrap().to_owned();
        finished(folder).into_iter().map(name).collect()
    };
    assert_eq!(names(&a), names(&b), "{expected} and {found}");
    for name in names(&a) {
        let [a, b] = [&a, &b].map(|folder| Run(folder.join(&name)));
        same_results(&a, &b, &format!("{} of {found}", name.display()));
    }
    for table in ["table.txt", "table.csv"] {
        let [a, b] = [&a, &b].map(|folder| fs::read_to_string(folder.join(table)).unwrap());
        assert_eq!(a, b, "{table}");
    }
}
