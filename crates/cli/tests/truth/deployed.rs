//! A run directory as the cloud of a deployment writes it: without the validation samples' probabilities and without
//! the ranges of columns, which nobody may know. (That a deployment finds the simulation's calibration is tested in
//! `deployed/equal.rs`, `deployed/joint.rs` and in `roles.rs` of the core.)

use crate::common::run::Run;
use crate::common::{Place, says};
use crate::tables::{experiment, flat, patients, place};
use serde_json::{Value, json};
use std::fs;

/// A run, and the same as a cloud would have written it, with such a calibration.
fn both(name: &str, calibration: impl Fn(&Value) -> Option<Value>) -> (Place, Value) {
    let place = place(
        name,
        flat(&patients(120), ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    place.succeeds(&["train", "t.toml", "--out", "up"]);
    let evaluated = place.succeeds(&["evaluate", "run", "--json"]).stdout;
    let own: Value = serde_json::from_str(&evaluated).unwrap();
    let up = Run::at(&place, "up");
    up.forget_digests();
    fs::remove_file(up.file("validation.safetensors")).unwrap();
    let mut inputs: Value = serde_json::from_str(&up.text("inputs.json")).unwrap();
    for side in ["hospital", "device"] {
        inputs[side] = json!({});
    }
    fs::write(up.file("inputs.json"), inputs.to_string()).unwrap();
    if let Some(found) = calibration(&own["calibration"]) {
        fs::write(up.file("calibration.json"), found.to_string()).unwrap();
    }
    (place, own)
}

#[test]
fn it_is_used_with_what_the_groups_have_found() {
    let (place, own) = both("deployed-found", |calibration| {
        let found = json!({ "calibration": calibration, "samples": 19 });
        Some(json!({ "model": found, "best": found }))
    });
    let ran = place.succeeds(&["evaluate", "up", "--json"]);
    let up: Value = serde_json::from_str(&ran.stdout).unwrap();
    for what in [
        "calibration",
        "test",
        "validation",
        "train",
        "positive",
        "validation_samples",
    ] {
        assert_eq!(up[what], own[what], "{what}");
    }
    let [a, b] = ["run", "up"].map(|run| {
        let csv = place.succeeds(&["predict", run, "--input", "t.csv"]).stdout;
        let cells = csv
            .lines()
            .map(|line| line.rsplit_once(',').unwrap().0.to_owned());
        cells.collect::<Vec<_>>()
    });
    assert_eq!(a, b, "but for the notes");
    place.succeeds(&["export", "up"]);
    let card = fs::read_to_string(place.join("up/export/model-card.md")).unwrap();
    says(&card, &["`calibrated` was fitted on 19 validation samples"]);
    // A threshold needs what the model says of each sample.
    place.refuses(
        &["predict", "up", "--input", "t.csv", "--sensitivity", "0.9"],
        &["only the hospitals of a deployed run know"],
    );
}

#[test]
fn what_was_not_found_is_said() {
    for (samples, said) in [
        (9, "calibrated on 9 of the 19 validation samples"),
        (19, "19 validation samples are too few"),
    ] {
        let (place, _) = both("deployed-some", |calibration| {
            let found = json!({ "calibration": calibration, "samples": samples });
            Some(json!({ "model": found, "best": found }))
        });
        says(&place.succeeds(&["evaluate", "up"]).stderr, &[said]);
    }
    let (place, _) = both("deployed-one", |_| {
        let found = json!({ "calibration": null, "samples": 19 });
        Some(json!({ "model": found, "best": found }))
    });
    let ran = place.succeeds(&["evaluate", "up"]);
    says(&ran.stderr, &["all validation samples are of one class"]);
    says(
        &ran.stdout,
        &["cannot be calibrated on validation samples of one class"],
    );
    // By 0.2.
    let (place, _) = both("deployed-none", |_| None);
    let ran = place.succeeds(&["evaluate", "up"]);
    says(
        &ran.stderr,
        &["neither validation.safetensors nor calibration.json"],
    );
    let (place, _) = both("deployed-wrong", |_| {
        let found = json!({ "calibration": { "scale": -1.0, "bias": [0.0, 0.0] }, "samples": 19 });
        Some(json!({ "model": found, "best": found }))
    });
    place.refuses(&["evaluate", "up"], &["calibration.json", "positive scale"]);
}

#[test]
fn a_run_without_a_checkpoint_is_not_resumed_as_if_it_were_simulated() {
    let (place, _) = both("deployed-resume", |_| None);
    fs::remove_dir_all(place.join("up/checkpoint")).unwrap();
    place.refuses(
        &["train", "--resume", "up"],
        &["up has no checkpoint/", "selvedge up --resume"],
    );
}

#[test]
fn without_ranges_a_value_in_another_unit_is_still_said() {
    let (place, _) = both("deployed-far", |_| None);
    place.write("new.csv", "id,lab,pulse\na,0.1,0.2\nb,88.4,0.1\n");
    let ran = place.succeeds(&["predict", "up", "--input", "new.csv"]);
    let far = "more than 10 standard deviations";
    says(
        &ran.stderr,
        &["\"lab\": 1 of 2 samples is", far, "\"b\" with 88.4"],
    );
    assert_eq!(ran.stdout.matches(far).count(), 1, "{}", ran.stdout);
    place.refuses(
        &["predict", "up", "--input", "new.csv", "--strict"],
        &["strict"],
    );
}
