//! Runs in which P, Q and η are chosen while training, killed at any moment.

use super::resumed::LONG;
use crate::common::process::Live;
use crate::common::run::{Run, append, number, same_results};
use crate::common::{Place, mixed_experiment, says, selvedge};
use std::fs;
use std::time::{Duration, Instant};

/// A steered run from a rate that is too large, so that models are restored as well.
fn experiment(mode: &str, iterations: u64) -> String {
    mixed_experiment(iterations)
        .replace("halve_every = 1000", &format!("adaptive = \"{mode}\""))
        .replace("learning_rate = 0.05", "learning_rate = 5.0")
}

/// Segments begin where the one before ends, at a global aggregation, and the last ends with the run.
#[track_caller]
fn tile(run: &Run, iterations: u64) {
    let lines = run.lines("segments.jsonl");
    let integer = |line: &serde_json::Value, key: &str| line[key].as_u64().unwrap();
    assert_eq!(integer(&lines[0], "t"), 0);
    let starts = lines.iter().skip(1).map(|line| integer(line, "t"));
    for (line, end) in lines.iter().zip(starts.chain([iterations])) {
        let [t, p, q] = ["t", "p", "q"].map(|key| integer(line, key));
        assert!(
            t < end && p.is_multiple_of(q) && (end - t).is_multiple_of(p),
            "{line}, to {end}"
        );
        assert!(number(line, "eta") > 0.0);
        assert!(!line["reason"].as_str().unwrap().is_empty());
    }
    assert!(lines.len() > 3, "{} segments", lines.len());
    for evaluation in run.metrics() {
        let t = integer(&evaluation, "t");
        let of = lines.iter().rfind(|line| integer(line, "t") <= t).unwrap();
        for key in ["p", "q", "eta"] {
            assert_eq!(evaluation[key], of[key], "{key} at t = {t}");
        }
    }
}

#[test]
fn steered_runs_that_are_killed_and_resumed_end_the_same() {
    for mode in ["gain", "bound"] {
        let met = LONG.into_iter().any(|seconds| kill_steered(mode, seconds));
        assert!(met, "{mode}: no kill found a checkpoint behind t = 0");
    }
}

/// Whether any kill found a checkpoint behind t = 0.
fn kill_steered(mode: &str, seconds: f64) -> bool {
    let place = Place::new(mode);
    place.write("trial.toml", experiment(mode, 2400));
    place.succeeds(&["train", "trial.toml", "--threads", "1", "--out", "trial"]);
    let timing = Run::at(&place, "trial").manifest()["timing"].clone();
    let rate = number(&timing, "iterations") / number(&timing, "seconds");
    let iterations = (seconds * rate / 12.0).ceil() as u64 * 12;
    place.write("long.toml", experiment(mode, iterations));
    let args = ["train", "long.toml", "--threads", "1", "--trace"];
    let started = Instant::now();
    place.succeeds(&[&args[..], &["--out", "whole"]].concat());
    let took = started.elapsed();
    let whole = Run::at(&place, "whole");
    tile(&whole, iterations);
    let run = Run::at(&place, "killed");
    let mut saved = Vec::new();
    for share in [0.05, 0.7, 0.6, 0.65] {
        let mut live = Live::start(
            selvedge(place.path())
                .args(args)
                .args(["--resume", "killed"]),
        );
        if live.ends_within(took.mul_f64(share)) {
            break;
        }
        live.signal("KILL");
        live.finish();
        // A kill leaves whatever was written since the checkpoint, or half of it.
        if run.file("segments.jsonl").is_file() {
            append(&run.file("segments.jsonl"), br#"{"t":7,"p"#);
        }
        saved.push(run.checkpoint_t());
    }
    let ran = place.succeeds(&[&args[..], &["--resume", "killed"]].concat());
    says(&ran.stdout, &[&format!("steered by {mode} to P ")]);
    same_results(&whole, &run, &format!("{mode}, saved at {saved:?}"));
    place.succeeds(&["train", "--resume", "killed"]);
    same_results(&whole, &run, "resumed when finished");
    saved.iter().flatten().any(|t| *t > 0)
}

#[test]
fn segments_that_are_shorter_than_the_checkpoint_says_are_not_gone_on_with() {
    let place = Place::new("short-segments");
    place.write("gain.toml", experiment("gain", 240));
    place.succeeds(&["train", "gain.toml", "--out", "run"]);
    let run = Run::at(&place, "run");
    tile(&run, 240);
    // As in a run that was killed.
    run.forget_digests();
    let whole = run.bytes("segments.jsonl");
    fs::write(run.file("segments.jsonl"), &whole[..whole.len() - 7]).unwrap();
    place.refuses(
        &["train", "--resume", "run"],
        &["segments.jsonl", &whole.len().to_string()],
    );
}

#[test]
fn what_steers_is_shown_and_reported() {
    let place = Place::new("shown");
    place.write("gain.toml", experiment("gain", 480));
    let args = ["train", "gain.toml", "--seeds", "2", "--out", "seeds"];
    let started = Instant::now();
    let ran = place.succeeds(&args);
    assert!(started.elapsed() < Duration::from_secs(60));
    let shown =
        |line: &&str| line.contains("  P ") && line.contains("  Q ") && line.contains("  η ");
    assert!(
        ran.stderr.lines().any(|line| shown(&line)),
        "{}",
        ran.stderr
    );
    place.succeeds(&["report", "seeds", "--out", "report.html"]);
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    assert!(page.contains("P, Q and η of a new segment"));
}
