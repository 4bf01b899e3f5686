//! The best model, calibration and targets, where the validation samples can say little.

use crate::common::run::Run;
use crate::common::{Place, Random, says};
use serde_json::Value;
use std::fmt::Write;

/// Patients whose label follows from both sides; `part` says which part a row belongs to, given its number and label.
fn table(rows: u64, part: impl Fn(u64, bool) -> &'static str) -> String {
    let mut random = Random(7);
    let mut text = "id,use,lab,pulse,label\n".to_owned();
    for n in 0..rows {
        let (lab, pulse) = (random.next() - 0.5, random.next() - 0.5);
        let ill = lab + pulse > 0.1;
        let label = if ill { "ill" } else { "well" };
        writeln!(text, "p{n},{},{lab:.4},{pulse:.4},{label}", part(n, ill)).unwrap();
    }
    text
}

const EXPERIMENT: &str = "[data]\nset = \"table\"\npath = \"t.csv\"\ngroups = 1\n[data.table]\nid = \"id\"\n\
    label = \"label\"\nlabels = [\"well\", \"ill\"]\npart = \"use\"\nhospital = [\"lab\"]\ndevice = [\"pulse\"]\n\
    [train]\niterations = 200\nevaluate_every = 20\nlearning_rate = 0.3\nparticipation = 0.3\n";

fn place(name: &str, part: impl Fn(u64, bool) -> &'static str) -> Place {
    let place = Place::new(name);
    place.write("t.csv", table(300, part));
    place.write("t.toml", EXPERIMENT);
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// All validation rows are of one class: AUC is not defined on them, and they must not choose the untrained model.
#[test]
fn one_class_in_validation_chooses_by_loss_and_calibrates_nothing() {
    let place = place("truth-one-class", |n, ill| match n % 5 {
        0 => "test",
        1 if !ill => "validation",
        _ => "train",
    });
    let ran = place.succeeds(&["train", "t.toml", "--out", "run"]);
    says(&ran.stderr, &["no validation rows have the label \"ill\""]);
    let run = Run::at(&place, "run");
    let best = run.manifest()["best"].as_u64().unwrap();
    assert!(best > 0, "{best}");
    assert_ne!(
        run.bytes("best.safetensors"),
        run.bytes("initial.safetensors")
    );
    let lines = run.metrics();
    let loss = |line: &&Value| line["loss_validation"].as_f64().unwrap();
    let lowest = lines
        .iter()
        .min_by(|a, b| loss(a).total_cmp(&loss(b)))
        .unwrap();
    assert_eq!(lowest["t"].as_u64(), Some(best));
    for line in &lines {
        for metric in ["auc_validation", "f1_validation"] {
            assert!(line[metric].is_null(), "{line}");
        }
    }
    let evaluated = place.succeeds(&["evaluate", "run"]);
    says(
        &evaluated.stderr,
        &["all validation samples are of the class \"well\""],
    );
    says(
        &evaluated.stdout,
        &["cannot be calibrated on validation samples of one class"],
    );
    let evaluated = place.succeeds(&["evaluate", "run", "--json"]);
    assert!(json(&evaluated.stdout)["calibration"].is_null());
    // A run would never stop there.
    for key in ["stop.auc", "stop.f1"] {
        place.refuses(
            &[
                "train",
                "t.toml",
                "--set",
                &format!("{key}=0.8"),
                "--out",
                "other",
            ],
            &[
                key,
                "no validation samples have the label \"ill\"",
                "stop.accuracy",
            ],
        );
    }
    place.succeeds(&[
        "train",
        "t.toml",
        "--set",
        "stop.accuracy=0.1",
        "--out",
        "stopped",
    ]);
    place.refuses(
        &["evaluate", "run", "--sensitivity", "0.9"],
        &["no threshold can be chosen"],
    );
}

/// Nothing is learnt: whoever uses the model is told.
#[test]
fn a_model_that_learnt_nothing_is_said_to_be_untrained() {
    let place = place("truth-untrained", |n, _| match n % 5 {
        0 => "test",
        1 => "validation",
        _ => "train",
    });
    place.succeeds(&[
        "train",
        "t.toml",
        "--set",
        "train.learning_rate=1e-300",
        "--out",
        "run",
    ]);
    for command in [
        &["evaluate", "run"][..],
        &["predict", "run", "--input", "t.csv", "--out", "p.csv"],
    ] {
        let ran = place.succeeds(command);
        says(&ran.stderr, &["it has learnt nothing"]);
    }
}

/// A part of one patient, of one class, or none at all: what is not defined is not a number.
#[test]
fn metrics_that_are_not_defined_are_not_printed() {
    let place = place("truth-undefined", |n, _| match n {
        0 => "test",
        _ => "train",
    });
    let ran = place.succeeds(&["train", "t.toml", "--json", "--out", "run"]);
    let last = Run::at(&place, "run").metrics().pop().unwrap();
    for metric in ["auc", "precision", "recall", "f1"] {
        assert!(last[metric].is_null(), "{last}");
    }
    assert!(last["accuracy"].is_number());
    assert!(!ran.stdout.contains("NaN"));
    let text = place.succeeds(&["evaluate", "run"]).stdout;
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

/// A run stops when the validation samples reach the target, and says so; without any, the test samples, and says that.
#[test]
fn a_target_is_judged_on_validation_where_there_is_any() {
    let held_out = place("truth-target", |n, _| match n % 5 {
        0 => "test",
        1 => "validation",
        _ => "train",
    });
    let stop = ["--set", "stop.auc=0.9", "--out", "run"];
    let ran = held_out.succeeds(&[&["train", "t.toml"][..], &stop].concat());
    says(
        &ran.stdout,
        &["stop.auc reached at", "on the validation samples"],
    );
    let run = Run::at(&held_out, "run");
    assert_eq!(run.manifest()["ending"]["on"], "validation");
    let lines = run.metrics();
    let reaches = |line: &Value| line["auc_validation"].as_f64().unwrap() >= 0.9;
    // The untrained model reaches nothing.
    let (last, before) = lines[1..].split_last().unwrap();
    assert!(reaches(last) && !before.iter().any(reaches));
    let tested = place("truth-target-test", |n, _| match n % 5 {
        0 => "test",
        _ => "train",
    });
    let ran = tested.succeeds(&[&["train", "t.toml"][..], &stop].concat());
    says(&ran.stdout, &["stop.auc reached at", "on the test samples"]);
    let none = place("truth-target-none", |_, _| "train");
    none.refuses(
        &[&["train", "t.toml"][..], &stop].concat(),
        &["stop.auc", "data.validation or data.test"],
    );
}
