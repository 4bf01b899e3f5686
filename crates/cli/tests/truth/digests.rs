//! A run's files are its own, to the bit, or they are not used.

use crate::common::Place;
use crate::common::run::Run;
use crate::tables::{experiment, flat, patients, place};
use std::fs;
use std::process::Command;

fn trained(name: &str) -> (Place, Run) {
    let place = place(
        name,
        flat(&patients(200), ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let run = Run::at(&place, "run");
    (place, run)
}

/// Changes one bit, in the middle, where a number is; and puts the file back afterwards.
fn with_a_bit_flipped(run: &Run, file: &str, then: impl FnOnce()) {
    let whole = run.bytes(file);
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    // A digit of text stays one.
    let at = (middle..changed.len()).find(|at| {
        !file.contains("json") && !file.contains("csv") || changed[*at].is_ascii_digit()
    });
    changed[at.unwrap()] ^= 1;
    fs::write(run.file(file), changed).unwrap();
    then();
    fs::write(run.file(file), whole).unwrap();
}

#[test]
fn a_flipped_bit_is_found_wherever_a_file_is_used() {
    let (place, run) = trained("digests-flipped");
    let predict = &["predict", "run", "--input", "t.csv", "--all"][..];
    let evaluate = &["evaluate", "run"][..];
    let export = &["export", "run"][..];
    let report = &["report", "run"][..];
    let resume = &["train", "--resume", "run"][..];
    let last = &["evaluate", "run", "--last"][..];
    for (file, commands) in [
        ("best.safetensors", &[predict, evaluate, export, resume][..]),
        ("model.safetensors", &[last, resume]),
        (
            "validation.safetensors",
            &[predict, evaluate, export, resume],
        ),
        ("inputs.json", &[predict, evaluate, export]),
        ("initial.safetensors", &[predict, evaluate, resume]),
        ("metrics.jsonl", &[report, export, resume]),
        ("ledger.csv", &[report, export, resume]),
    ] {
        with_a_bit_flipped(&run, file, || {
            for command in commands {
                place.refuses(command, &[file]);
            }
        });
    }
    for command in [predict, evaluate, export, report, resume, last] {
        place.succeeds(command);
    }
}

#[test]
fn the_model_of_another_run_is_refused() {
    let (place, run) = trained("digests-other");
    place.succeeds(&["train", "t.toml", "--set", "seed=7", "--out", "other"]);
    fs::copy(
        place.join("other/best.safetensors"),
        run.file("best.safetensors"),
    )
    .unwrap();
    for command in [
        &["predict", "run", "--input", "t.csv"][..],
        &["evaluate", "run"],
        &["export", "run"],
    ] {
        let parts = ["run/best.safetensors", "another run", "SHA-256", "restore"];
        place.refuses(command, &parts);
    }
    // Runs of 0.2 have no digests, and are used as they are.
    run.forget_digests();
    place.succeeds(&["evaluate", "run"]);
}

#[test]
fn the_manifest_has_the_digests_of_all_files() {
    let (place, run) = trained("digests-sum");
    let stated = run.manifest()["files"].clone();
    let stated = stated.as_object().unwrap();
    let names: Vec<&str> = stated.keys().map(String::as_str).collect();
    let expected = [
        "best.safetensors",
        "initial.safetensors",
        "inputs.json",
        "ledger.csv",
        "metrics.jsonl",
        "model.safetensors",
        "validation.safetensors",
    ];
    assert_eq!(names, expected);
    let sums = Command::new("sha256sum")
        .args(expected)
        .current_dir(place.join("run"))
        .output();
    let sums = String::from_utf8(sums.unwrap().stdout).unwrap();
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        assert_eq!(stated[name], sum);
    }
}

/// Whose messages were left out is a part of the result too.
#[test]
fn what_was_left_out_is_a_file_of_the_run() {
    let place = Place::new("digests-left-out");
    let settings = "train --set train.iterations=100 --set attack.devices=0.1 --set attack.kind=scale \
        --set defence.device_limit=30 --out run";
    place.succeeds(&crate::common::words(settings));
    let run = Run::at(&place, "run");
    assert!(run.manifest()["files"]["left-out.jsonl"].is_string());
    with_a_bit_flipped(&run, "left-out.jsonl", || {
        place.refuses(
            &["train", "--resume", "run"],
            &["left-out.jsonl", "SHA-256"],
        );
    });
    place.succeeds(&["train", "--resume", "run"]);
}

/// A run that was killed has metrics that nobody has vouched for, and goes on all the same; what it began with must be
/// what it was.
#[test]
fn a_run_that_was_killed_goes_on_unless_its_beginning_changed() {
    let (place, run) = trained("digests-killed");
    let cut = Run::at(&place, "cut");
    let mut args = vec!["train", "t.toml", "--out", "cut"];
    // Long enough to be caught in the middle.
    args.extend([
        "--set",
        "train.iterations=100000",
        "--set",
        "train.evaluate_every=10",
    ]);
    let mut child = crate::common::selvedge(place.path())
        .args(&args)
        .spawn()
        .unwrap();
    while !cut.file("metrics.jsonl").is_file() || cut.bytes("metrics.jsonl").len() < 2000 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let begun: Vec<String> = cut.manifest()["files"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(begun, ["initial.safetensors", "inputs.json"]);
    // The report of what is there so far.
    place.succeeds(&["report", "cut"]);
    drop(run);
}
