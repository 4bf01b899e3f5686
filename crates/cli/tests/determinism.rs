//! The same experiment gives the same bits: on any instructions and any number of threads, killed and resumed at any
//! moment.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;
#[path = "determinism/resumed.rs"]
mod resumed;
#[path = "determinism/steered.rs"]
mod steered;

use common::process::Live;
use common::run::{Run, number, same_results};
use common::{Place, mixed_experiment, real_data, selvedge, text, words};
use serde_json::Value;
use std::time::Duration;

/// How long a running process may take to come to a point that it reaches in milliseconds.
const SOON: Duration = Duration::from_secs(20);

/// The instructions that this machine has, as the manifest lists them.
fn instructions(run: &Run) -> Vec<String> {
    let available = run.manifest()["cpu"]["available"].clone();
    serde_json::from_value(available).unwrap()
}

/// A run of the mixed model with a trace.
fn mixed_run(place: &Place, iterations: u64, out: &str) -> Run {
    place.write("mixed.toml", mixed_experiment(iterations));
    place.succeeds(&["train", "mixed.toml", "--trace", "--out", out]);
    Run::at(place, out)
}

#[test]
fn threads_instructions_and_repetition_change_nothing() {
    let place = Place::new("same-bits");
    // Plain code has no fused multiply-add in hardware and is slow.
    let first = mixed_run(&place, 96, "first");
    let available = instructions(&first);
    assert!(available.contains(&"plain".to_owned()), "{available:?}");
    let mut ways: Vec<Vec<&str>> = vec![vec![]];
    for threads in ["1", "2", "3"] {
        ways.push(vec!["--threads", threads]);
    }
    for simd in &available {
        ways.push(vec!["--simd", simd]);
        ways.push(vec!["--threads", "3", "--simd", simd]);
    }
    for way in ways {
        let name = format!("run{}", way.concat());
        let args = ["train", "mixed.toml", "--trace", "--out", &name];
        place.succeeds(&[&args[..], &way].concat());
        let run = Run::at(&place, &name);
        same_results(&first, &run, &format!("{way:?}"));
        if let ["--simd", simd] = way[..] {
            assert_eq!(run.manifest()["cpu"]["instructions"], simd);
        }
    }
    let other = ["--set", "seed=8", "--out", "other"];
    place.succeeds(&[&["train", "mixed.toml", "--trace"][..], &other].concat());
    let other = Run::at(&place, "other");
    assert!(first.bytes("model.safetensors") != other.bytes("model.safetensors"));
    assert!(first.bytes("trace.jsonl") != other.bytes("trace.jsonl"));
}

#[test]
fn every_work_size_gives_the_same_bits_on_any_instructions() {
    let place = Place::new("sizes");
    for size in ["size-esr", "size-physionet", "size-cnn"] {
        // Few groups and steps, because plain code is slow; more than one step between exchanges and aggregations.
        let train = |out: &str, more: &[&str]| {
            let mut args = vec!["train", size, "--out", out];
            for setting in [
                "data.groups=2",
                "data.devices=60",
                "train.participation=0.1",
                "train.iterations=8",
                "train.evaluate_every=8",
                "train.global_interval=4",
                "train.local_interval=2",
            ] {
                args.extend(["--set", setting]);
            }
            args.extend(more);
            place.succeeds(&args);
            Run::at(&place, out)
        };
        let first = train(size, &["--threads", "1"]);
        for simd in instructions(&first) {
            let name = format!("{size}-{simd}");
            let run = train(&name, &["--threads", "2", "--simd", &simd]);
            same_results(&first, &run, &name);
        }
    }
}

#[test]
fn the_real_set_gives_the_same_bits_too() {
    let Some(data) = real_data("the_real_set_gives_the_same_bits_too") else {
        return;
    };
    let place = Place::new("esr");
    let esr = ["train", "esr", "--data-dir", text(&data), "--trace"];
    let set = words("--set train.iterations=60 --set train.evaluate_every=5");
    let train = |more: &[&str]| place.succeeds(&[&esr[..], &set, more].concat());
    train(&["--out", "whole", "--threads", "2"]);
    train(&["--out", "one", "--threads", "1"]);
    let whole = Run::at(&place, "whole");
    same_results(&whole, &Run::at(&place, "one"), "threads");
    let levels = instructions(&whole);
    if let Some(level) = levels.iter().rfind(|l| *l != "plain") {
        train(&["--out", "other", "--threads", "3", "--simd", level]);
        same_results(&whole, &Run::at(&place, "other"), level);
    }
    let run = Run::at(&place, "killed");
    let mut live = Live::start(
        selvedge(place.path())
            .args(esr)
            .args(set)
            .args(["--out", "killed"]),
    );
    live.wait_until("begun", SOON, || run.evaluations_so_far() > 3);
    live.signal("INT");
    live.finish().ended(130);
    place.succeeds(&["train", "--resume", "killed", "--data-dir", text(&data)]);
    same_results(&whole, &run, "interrupted");
    let lines = whole.metrics();
    assert!(number(&lines[12], "loss_train") < number(&lines[0], "loss_train"));
    assert_eq!(
        whole.manifest()["sizes"]["selected"],
        Value::from(vec![17; 10])
    );
}
