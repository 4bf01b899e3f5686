//! Numbers that no machine can hold: an error, and never an overflow, an abort or a hang.

use crate::common::process::{bounded_selvedge, finish_within};
use crate::common::run::Run;
use crate::common::{Place, snapshot, unchanged, words};
use std::time::Duration;

/// No more memory than this, so that a mistake cannot take the machine down.
const GIGABYTES: u32 = 4;

/// An error comes at once; this is for slow machines.
const PATIENCE: Duration = Duration::from_secs(4);

/// Every case must be refused, saying its part, and leave nothing behind. All are tried before any is complained of.
#[track_caller]
fn all_refused(place: &Place, cases: &[(&[&str], &str)]) {
    let before = snapshot(place.path());
    let mut complaints = Vec::new();
    for (args, part) in cases {
        let mut command = bounded_selvedge(place.path(), GIGABYTES);
        command.args(["train", "--threads", "2"]).args(*args);
        let ran = finish_within(&mut command, PATIENCE);
        match ran.complaint(2) {
            Some(complaint) => complaints.push(complaint),
            None if !ran.stderr.contains(part) => {
                complaints.push(format!("{args:?} does not say {part:?}: {}", ran.stderr));
            }
            None => {}
        }
        let _ = std::fs::remove_dir_all(place.join("runs"));
    }
    unchanged(&before, &snapshot(place.path()), "a refused run");
    let count = complaints.len();
    assert!(
        complaints.is_empty(),
        "{count} of {}:\n{}",
        cases.len(),
        complaints.join("\n\n")
    );
}

#[test]
fn data_that_no_machine_holds_is_refused() {
    let place = Place::new("huge-data");
    all_refused(
        &place,
        &[
            (
                &["--set", "data.groups=1000000000000"],
                "data.groups = 1000000000000",
            ),
            (
                &["--set", "data.devices=1000000000000"],
                "data.devices = 1000000000000",
            ),
            (
                &["--set", "data.devices=9223372036854775807"],
                "9223372036854775807",
            ),
            (
                &["--set", "data.samples_per_device=1000000000000000000"],
                "samples_per_device = 1000000000000000000",
            ),
            (
                &["--set", "data.features=[1000000000000, 1]"],
                "1000000000001 features",
            ),
            (&["--set", "data.features=9223372036854775806"], "GiB"),
            (
                &["--set", "data.classes=1000000000"],
                "data.classes = 1000000000",
            ),
            (&["--set", "data.noise=1e300"], "data.noise"),
            (
                &["--set", "seed=9223372036854775808"],
                "9223372036854775808",
            ),
            (&["--set", "seed=-1"], "-1"),
        ],
    );
}

#[test]
fn layers_that_no_machine_holds_are_refused() {
    let place = Place::new("huge-layers");
    all_refused(
        &place,
        &[
            (
                &[
                    "--set",
                    "model.hospital=[{ linear = { out = 1000000000 } }]",
                ],
                "1000000000",
            ),
            (
                &[
                    "--set",
                    "model.hospital=[{ linear = { out = 1000000000000000000 } }]",
                ],
                "1000000000000000000",
            ),
            (
                &[
                    "--set",
                    "model.device=[{ linear = { out = 4611686018427387904 } }]",
                ],
                "4611686018427387904",
            ),
            (
                &[
                    "--set",
                    "model.device=[{ window = { size = 8 } }, { lstm = { hidden = 1000000000 } }]",
                ],
                "1000000000",
            ),
            (
                &[
                    "--set",
                    "model.device=[{ window = { size = 8 } }, { gru = { hidden = 4611686018427387904 } }]",
                ],
                "4611686018427387904",
            ),
            (
                &[
                    "--set",
                    "model.device=[{ window = { size = 1000000000000000000 } }, \"flatten\"]",
                ],
                "1000000000000000000",
            ),
            (
                &[
                    "--set",
                    "model.device=[{ window = { size = 8 } }, { conv1d = { out = 1000000000000000000, size = 1 } }, \"flatten\"]",
                ],
                "1000000000000000000",
            ),
        ],
    );
}

#[test]
fn kernels_and_windows_of_any_size_are_refused() {
    let place = Place::new("huge-kernels");
    let conv = |keys: &str| {
        format!(
            "model.device=[{{ window = {{ size = 8 }} }}, {{ conv1d = {{ {keys} }} }}, \"flatten\"]"
        )
    };
    let size = conv("out = 4, size = 1000000000000000000");
    let padding = conv("out = 4, size = 1, padding = 9223372036854775807");
    let both = conv("out = 4, size = 9223372036854775807, padding = 9223372036854775806");
    let pool =
        "model.device=[{ window = { size = 8 } }, { maxpool = { size = 1000000000000000000 } }]";
    all_refused(
        &place,
        &[
            (&["--set", &size], "size = 1000000000000000000"),
            (&["--set", &padding], "padding = 9223372036854775807"),
            (&["--set", &both], "9223372036854775807"),
            (&["--set", pool], "size = 1000000000000000000"),
        ],
    );
}

#[test]
fn intervals_of_any_size_are_refused_at_once_with_a_right_remedy() {
    let place = Place::new("huge-intervals");
    place.write("most.toml", "[train]\niterations = 18446744073709551615\n");
    all_refused(
        &place,
        &[
            (
                &["--set", "train.iterations=9223372036854775808"],
                "9223372036854775808",
            ),
            (
                &["--set", "train.iterations=9223372036854775807"],
                "use 9223372036854775800 or",
            ),
            // A prime: its divisors are not worth looking for one by one.
            (
                &words(
                    "--set train.local_interval=2 --set train.global_interval=1000000000000000003 \
                     --set train.iterations=1000000000000000003",
                ),
                "1000000000000000003",
            ),
        ],
    );
    let ran = place.refuses(&["train", "most.toml"], &["line 2", "18446744073709551615"]);
    assert!(!ran.stderr.contains("or 4 iterations"), "{}", ran.stderr);
    place.write("classes.toml", "[data]\nclasses = 18446744073709551615\n");
    place.refuses(
        &["train", "classes.toml"],
        &["data.classes", "18446744073709551615", "10000"],
    );
}

/// It may be refused, or begin and take its time, but not fail for want of memory.
#[test]
fn one_interval_of_any_length_needs_no_memory_of_its_length() {
    let place = Place::new("huge-interval");
    let mut command = bounded_selvedge(place.path(), GIGABYTES);
    command.args(["train", "--threads", "2", "--out", "run"]);
    for key in ["iterations", "global_interval", "local_interval"] {
        command.args(["--set", &format!("train.{key}=1000000000000")]);
    }
    let ran = finish_within(&mut command, PATIENCE);
    let complaint = ran.complaint(2);
    assert!(ran.gave_up || complaint.is_none(), "{complaint:?}");
}

/// Simulated seconds that are not finite cannot be written as JSON.
#[test]
fn rates_that_make_time_infinite_are_refused_before_training_or_reported_after_it() {
    let place = Place::new("infinite-time");
    let mut complaints = Vec::new();
    for set in ["time.mobile_up=1e-310", "time.compute_seconds=1e308"] {
        let ran = place.selvedge(&["train", "--set", set, "--out", set]);
        let (key, _) = set.split_once('=').unwrap();
        let refused =
            ran.complaint(2).is_none() && ran.stderr.contains(key) && !place.join(set).exists();
        if !refused && ran.complaint(0).is_some() {
            complaints.push(format!("{}\n{:?}: {}", ran.command, ran.status, ran.stderr));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn settings_that_are_only_large_still_work() {
    let place = Place::new("large");
    for (i, set) in [
        "train.loss_samples=1000000000000000000",
        "train.evaluate_every=9223372036854775800",
        "train.halve_every=9223372036854775807",
        "seed=9223372036854775807",
        "data.test=0.999",
        "data.test=0",
    ]
    .iter()
    .enumerate()
    {
        let out = format!("run-{i}");
        place.succeeds(&[
            "train",
            "--set",
            "train.iterations=20",
            "--set",
            set,
            "--out",
            &out,
        ]);
        place.succeeds(&["evaluate", &out, "--json"]);
        assert_eq!(
            Run::at(&place, &out).metrics().last().unwrap()["t"],
            20,
            "{set}"
        );
    }
    // The seeds behind the largest one that TOML can write.
    let seed = words("--set seed=9223372036854775807 --set train.iterations=10");
    place.succeeds(&[&["train", "--seeds", "2", "--out", "seeds"][..], &seed].concat());
    let run = Run::at(&place, "seeds/seed-9223372036854775808");
    let inspected = place.succeeds(&["data", "inspect", "seeds/seed-9223372036854775808"]);
    let fingerprint = run.manifest()["data"]["fingerprint"].clone();
    assert!(inspected.stdout.contains(fingerprint.as_str().unwrap()));
}
