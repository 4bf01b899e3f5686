//! Every algorithm through the binary: trained, killed and gone on with, evaluated; and algorithms and codecs that
//! there are none of.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::process::Live;
use common::run::{Run, number, same_results};
use common::{ALGORITHMS, Place, mixed_experiment, selvedge};
use serde_json::Value;
use std::time::Duration;

/// How long a running process may take to come to a point that it reaches in milliseconds.
const SOON: Duration = Duration::from_secs(20);

/// Every kind of message goes through a codec.
const ALL_CODECS: [&str; 8] = [
    "train.algorithm=c-hsgd",
    "compression.theta0=top-k:1000",
    "compression.zeta1=dither:64",
    "compression.zeta2=dither",
    "compression.device_upload=dither:32",
    "compression.device_download=dither:256",
    "compression.global_upload=top-k",
    "compression.global_download=dither:128",
];

#[test]
fn every_algorithm_trains_the_default_experiment_and_learns() {
    let place = Place::new("algorithms");
    let mut bills = Vec::new();
    for algorithm in ALGORITHMS {
        let set = format!("train.algorithm={algorithm}");
        let args = ["train", "--set", &set, "--trace", "--out", algorithm];
        place.succeeds(&args);
        let run = Run::at(&place, algorithm);
        let manifest = run.manifest();
        assert_eq!(manifest["experiment"]["train"]["algorithm"], algorithm);
        assert_eq!(manifest["ending"]["kind"], "finished");
        let metrics = run.metrics();
        let (first, last) = (&metrics[0], metrics.last().unwrap());
        assert_eq!(last["t"], manifest["experiment"]["train"]["iterations"]);
        // Half of the features is enough for half of the way.
        let [before, after] = [first, last].map(|line| number(line, "loss_train"));
        assert!(after < 0.85 * before, "{algorithm}: {before} → {after}");
        assert!(number(last, "auc") > 0.7, "{algorithm}: {last}");

        let groups = number(&manifest["sizes"], "groups");
        let bytes: u64 = run.ledger().iter().map(|line| line.4).sum();
        assert_eq!(number(last, "bytes_exact"), bytes as f64 / groups);
        let initial = Run::at(&place, "hsgd").bytes("initial.safetensors");
        assert!(initial == run.bytes("initial.safetensors"), "{algorithm}");
        place.succeeds(&["evaluate", algorithm]);
        bills.push(run.bytes("ledger.csv"));
    }
    bills.sort();
    bills.dedup();
    assert_eq!(bills.len(), 9, "no two algorithms send the same");
}

/// Runs with these settings to the end; then once more, interrupted, gone on with, killed, and gone on with from what
/// the interruption had saved.
fn killed_and_resumed(name: &str, set: &[&str]) {
    let place = Place::new(name);
    place.write("mixed.toml", mixed_experiment(3600));
    let mut train = vec!["train", "mixed.toml", "--trace"];
    train.extend(set.iter().flat_map(|s| ["--set", s]));
    place.succeeds(&[&train[..], &["--out", "whole"]].concat());
    let (whole, run) = (Run::at(&place, "whole"), Run::at(&place, "run"));

    let mut live = Live::start(selvedge(place.path()).args(&train).args(["--out", "run"]));
    live.wait_until("begun", SOON, || run.evaluations_so_far() > 3);
    live.signal("INT");
    live.finish().ended(130);
    let saved = run.checkpoint_t().unwrap();
    assert!(saved > 0, "{name}: interrupted before the first interval");

    let resume = ["train", "--resume", "run"];
    let seen = run.evaluations_so_far();
    let mut live = Live::start(selvedge(place.path()).args(resume));
    live.wait_until("further", SOON, || run.evaluations_so_far() > seen + 5);
    live.signal("KILL");
    live.finish();
    let kept = run.checkpoint_t().unwrap();
    assert!((saved..3600).contains(&kept), "{name}: killed too late");
    place.succeeds(&resume);
    same_results(&whole, &run, &format!("{name} from t = {saved}"));
}

#[test]
fn c_hsgd_with_every_message_compressed_ends_the_same_after_a_kill() {
    killed_and_resumed("killed-c-hsgd", &ALL_CODECS);
}

#[test]
fn jfl_ends_the_same_after_a_kill() {
    killed_and_resumed("killed-jfl", &["train.algorithm=jfl"]);
}

/// Raw data is paid for once, not again by resuming.
#[test]
fn tdcd_ends_the_same_after_a_kill() {
    killed_and_resumed("killed-tdcd", &["train.algorithm=tdcd"]);
}

#[test]
fn evaluating_a_hospital_only_run_gives_what_its_last_evaluation_saw() {
    let place = Place::new("hospital-only");
    let set = ["--set", "train.algorithm=hospital-only"];
    place.succeeds(&[&["train", "--out", "run"][..], &set].concat());
    let run = Run::at(&place, "run");
    let evaluate = || -> Value {
        let as_trained = ["evaluate", "run", "--last", "--uncalibrated", "--json"];
        let ran = place.succeeds(&as_trained);
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let (value, metrics) = (evaluate(), run.metrics());
    let last = metrics.last().unwrap();
    assert_eq!(value["train"]["loss"], last["loss_train"]);
    assert_eq!(value["test"]["loss"], last["loss_test"]);
    for key in ["precision", "recall", "f1", "accuracy"] {
        assert_eq!(value["test"][key], last[key], "{key}");
    }
    // Training reads it off a histogram of scores.
    let (exact, near) = (number(&value["test"], "auc"), number(last, "auc"));
    assert!((exact - near).abs() < 2e-3, "AUC {exact} and {near}");
    // The same weights with the devices asked after all are another model.
    run.edit_manifest(|m| m["experiment"]["train"]["algorithm"] = "hsgd".into());
    assert_ne!(evaluate()["test"]["loss"], last["loss_test"]);
}

#[test]
fn unknown_algorithms_and_codecs_are_named_with_what_would_be_right() {
    let place = Place::new("bad-algorithms");
    let cases: [(&str, &str, &[&str]); 8] = [
        ("train.algorithm", "hsdg", &["did you mean \"hsgd\"?"]),
        ("train.algorithm", "FedAvg", &["did you mean \"fedavg\"?"]),
        (
            "train.algorithm",
            "sgd-of-another-kind",
            &["\"hsgd\"", "\"c-tdcd\"", "\"device-only\""],
        ),
        (
            "compression.zeta1",
            "top-q",
            &["`none`", "`top-k", "`dither"],
        ),
        ("compression.codec", "zip", &["`none`", "`top-k", "`dither"]),
        (
            "compression.device_upload",
            "dither:99999",
            &["2 to 65536", "dither:16"],
        ),
        (
            "compression.global_upload",
            "top-k:",
            &["number of levels", "top-k:128"],
        ),
        (
            "compression.levels",
            "1",
            &["levels = 1 must be 2 to 65536"],
        ),
    ];
    for (key, value, right) in cases {
        let set = format!("{key}={value}");
        let option = format!("--set {set}");
        let found = [key, value, &option];
        let args = ["train", "--set", &set, "--out", "run"];
        let ran = place.refuses(&args, &[&found[..], right].concat());
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);

        // In a file it is the line that is named.
        let (table, name) = key.split_once('.').unwrap();
        let quoted = match value.parse::<u32>() {
            Ok(number) => number.to_string(),
            Err(_) => format!("\"{value}\""),
        };
        place.write("my.toml", format!("[{table}]\n\n{name} = {quoted}\n"));
        let found = ["my.toml", "line 3", key, value];
        place.refuses(&["train", "my.toml"], &[&found[..], right].concat());
    }
}

/// Codecs that an algorithm does not use are not passed over in silence.
#[test]
fn compression_that_does_not_apply_is_said() {
    let place = Place::new("no-compression");
    let args = |algorithm: &'static str| {
        let codec = "compression.codec=dither";
        let short = "train.iterations=20";
        let out = ["--set", codec, "--set", short, "--out", algorithm];
        [&["train", "--set"][..], &[algorithm], &out].concat()
    };
    let says = |algorithm| {
        let ran = place.succeeds(&args(algorithm));
        ran.stderr.contains("note: hsgd does not compress messages")
    };
    assert!(says("train.algorithm=hsgd"));
    assert!(!says("train.algorithm=c-hsgd"));
}
