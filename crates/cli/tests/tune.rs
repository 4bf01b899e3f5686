//! `selvedge tune`, through the binary.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::run::Run;
use common::{Place, words};
use serde_json::Value;

const TINY: &str = "--set train.iterations=200 --set data.groups=4 --set data.devices=40 \
    --set train.participation=0.2";

fn with_tiny<'a>(command: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&[command], &words(TINY)[..], arguments].concat()
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    let ran = place.succeeds(&with_tiny("tune", &arguments));
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn estimates_strategies_and_trials_fit_together() {
    let place = Place::new("tune");
    let tuned = json(&place, &[]);
    let number = |path: &str| tuned.pointer(path).and_then(Value::as_f64).unwrap();
    // Two classes, not told apart at first.
    assert!((number("/estimates/f0") - libm::log(2f64)).abs() < 0.3);
    let (rho, variance) = (
        number("/estimates/rho/value"),
        number("/estimates/variance/value"),
    );
    assert!(rho > 0.0 && variance > 0.0);
    assert_eq!(rho, number("/estimates/rho/largest"));
    // The bound and the roots follow from what is printed.
    let all = tuned["candidates"].as_array().unwrap();
    assert!(all.len() >= 4, "{}", all.len());
    let f0 = number("/estimates/f0");
    for c in all.iter().filter(|c| c["adaptive"] == "off") {
        let of = |key: &str| c[key].as_f64().unwrap();
        let (p, q, eta) = (of("p"), of("q"), of("eta"));
        let iterations = (200.0 / p).ceil() * p;
        let gamma = 4.0 * f0 / (eta * iterations)
            + 12.0 * p * rho * eta * variance
            + 96.0 * (q * rho * eta).powi(2) * variance;
        let said = c
            .pointer("/predicted/bound")
            .and_then(Value::as_f64)
            .unwrap();
        assert!((said / gamma - 1.0).abs() < 1e-9, "{said} {gamma}");
        let valid = c.pointer("/predicted/is_valid").unwrap();
        assert_eq!(valid, &Value::Bool(eta <= 1.0 / (8.0 * p * rho)));
    }
    let real = |root: &str| number(&format!("/strategies/{root}/real"));
    assert!((real("printed") / real("corrected") - 0.1f64.sqrt()).abs() < 1e-9);
    // The choice is as good as the best up to what one seed can tell.
    let loss = |c: &Value| c.pointer("/trial/loss").and_then(Value::as_f64).unwrap();
    let least = all.iter().map(loss).fold(f64::INFINITY, f64::min);
    assert!(loss(&tuned["choice"]) <= 1.03 * least);
    // Nothing depends on threads, instructions or luck.
    assert_eq!(tuned, json(&place, &["--simd", "plain"]));
}

#[test]
fn predicted_bytes_and_seconds_are_those_of_a_run() {
    let place = Place::new("tune");
    let tuned = json(&place, &[]);
    let asked = tuned["candidates"].as_array().unwrap();
    let as_it_is = asked.iter().find(|c| c["label"] == "as it is").unwrap();
    place.succeeds(&with_tiny("train", &["--out", "run"]));
    let metrics = Run::at(&place, "run").metrics();
    let last = metrics.last().unwrap();
    for (predicted, measured) in [("bytes", "bytes_exact"), ("seconds", "seconds")] {
        let of = |value: &Value, key: &str| value[key].as_f64().unwrap();
        let ratio = of(&as_it_is["predicted"], predicted) / of(last, measured);
        assert!((ratio - 1.0).abs() < 1e-9, "{predicted}: {ratio}");
    }
}

#[test]
fn the_choice_is_written_once_and_trains() {
    let place = Place::new("tune");
    let goal = ["--target", "auc=0.8", "--apply=mine.toml"];
    let said = place.succeeds(&with_tiny("tune", &goal)).stdout;
    let next = "selvedge train mine.toml";
    assert!(said.contains("Choice") && said.contains(next), "{said}");
    let again = with_tiny("tune", &["--apply=mine.toml"]);
    place.refuses(&again, &["mine.toml already exists"]);
    // It ends where it was tuned to.
    place.succeeds(&["train", "mine.toml", "--out", "run"]);
    let manifest = Run::at(&place, "run").manifest();
    assert_eq!(
        manifest.pointer("/experiment/stop/auc"),
        Some(&Value::from(0.8))
    );
    let nowhere = with_tiny("tune", &["--apply=no/where.toml"]);
    place.refuses(&nowhere, &["there is no folder no"]);
}

#[test]
fn what_cannot_be_tuned_is_refused_with_what_would_be_right() {
    let place = Place::new("tune");
    for (arguments, said) in [
        (
            &["--budget=-1"][..],
            "--budget -1: expected bytes per group, above 0",
        ),
        (&["--target", "auc=2"], "expected auc above 0 and at most 1"),
        (&["--target", "recal=0.5"], "did you mean \"recall\"?"),
        (
            &["--set", "train.algorithm=jfl"],
            "the bound covers only hsgd and c-hsgd",
        ),
        (
            &["--target", "auc=0.8", "--budget", "1e6"],
            "cannot be used with",
        ),
    ] {
        place.refuses(&with_tiny("tune", arguments), &[said]);
    }
}
