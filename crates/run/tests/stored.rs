//! Runs of earlier versions that were stopped in the middle: every later version must resume them, to the same files.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_run::{Ending, Interval, Named, Trained, Training, WhichModel};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// All that a run may carry from interval to interval: residuals, a controller, a best model. θ0 is not compressed: runs
/// in which version 0.2 did that are not resumed.
const CHANGES: [&str; 14] = [
    "data.groups=2",
    "data.devices=10",
    "data.features=[4, 4]",
    "data.validation=0.2",
    "train.algorithm=c-hsgd",
    "train.adaptive=gain",
    "train.iterations=60",
    "train.global_interval=4",
    "train.local_interval=2",
    "compression.theta0=none",
    "compression.device_upload=dither:64",
    "compression.device_download=dither:64",
    "compression.global_upload=dither:64",
    "compression.global_download=dither:64",
];

const RESULTS: [&str; 6] = [
    "metrics.jsonl",
    "segments.jsonl",
    "ledger.csv",
    "model.safetensors",
    "best.safetensors",
    "validation.safetensors",
];

fn stored(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(name)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => _ = std::fs::copy(entry.path(), to).unwrap(),
        }
    }
}

/// Makes the stored runs: only to be called for a new format of run directories.
fn write() {
    let named = Named::find(None, &CHANGES.map(String::from), None).unwrap();
    let data = named.data(None).unwrap();
    for (name, until) in [("run-0.2.0", 30), ("run-0.2.0-finished", u64::MAX)] {
        let path = stored(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut stop = |interval: &Interval<'_>| match interval.state.progress.t < until {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let training = Training {
            directory: Some(&path),
            ..Training::new(&named.experiment, &data)
        };
        training.watched_by(&mut stop).unwrap();
    }
}

#[test]
fn a_stored_run_is_resumed_to_the_stored_result() {
    if std::env::var_os("SELVEDGE_WRITE_FIXTURES").is_some() {
        write();
    }
    for version in ["0.1.0", "0.2.0"] {
        resumes(version);
    }
}

/// Whether evaluations have all that earlier ones had; later versions may say more.
fn has_all_of(now: &[u8], then: &[u8]) -> bool {
    let [now, then] = [now, then].map(|bytes| {
        let lines = str::from_utf8(bytes).unwrap().lines();
        let line = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
        lines.map(line).collect::<Vec<_>>()
    });
    let has_all = |(now, then): (&serde_json::Value, &serde_json::Value)| {
        then.as_object()
            .unwrap()
            .iter()
            .all(|(key, value)| now[key] == *value)
    };
    now.len() == then.len() && now.iter().zip(&then).all(has_all)
}

fn read(run: &Path, name: &str) -> Option<Vec<u8>> {
    std::fs::read(run.join(name)).ok()
}

fn resumes(version: &str) {
    let copied = format!("selvedge-stored-{version}-{}", std::process::id());
    let copied = std::env::temp_dir().join(copied);
    copy(&stored(&format!("run-{version}")), &copied);
    let named = Named::find(Some(&copied), &[], None).unwrap();
    let data = named.data(None).unwrap();
    let training = Training {
        directory: Some(&copied),
        resume: true,
        ..Training::new(&named.experiment, &data)
    };
    let finished = training.run().unwrap();
    assert_eq!(finished.ending, Ending::Finished);
    let whole = stored(&format!("run-{version}-finished"));
    // Version 0.2 chose the untrained model of two equally good ones; later ones choose the other.
    let untrained = read(&whole, "best.safetensors") == read(&whole, "initial.safetensors");
    let results = RESULTS.into_iter();
    let of_best = ["best.safetensors", "validation.safetensors"];
    for name in results.filter(|name| !(untrained && of_best.contains(name))) {
        let [resumed, there] = [&copied, &whole].map(|run| read(run, name));
        let same = match name {
            "metrics.jsonl" => has_all_of(&resumed.unwrap(), &there.unwrap()),
            _ => resumed == there,
        };
        assert!(same, "{name} of {version} is another one");
    }
    assert!(whole.join("model.safetensors").is_file());
    std::fs::remove_dir_all(&copied).unwrap();
}

#[test]
fn a_stored_run_is_used() {
    let run = stored("run-0.2.0-finished");
    let named = Named::find(Some(&run), &[], None).unwrap();
    let trained = Trained::open(&run, WhichModel::Usual).unwrap();
    let test = &named.data(None).unwrap().dataset.test;
    let said = trained
        .predict(test, |row| row.to_string())
        .unwrap()
        .answers;
    assert_eq!(said.len(), 2 * test.len());
    assert!(trained.calibration.is_some());
}
