//! Runs checked by PyTorch: the metrics of a trained model, and the training itself, replayed from the trace.
//!
//! `tools/python/setup` makes the Python that is used; without it these tests are skipped.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::process::finish;
use common::run::Run;
use common::{Place, ROOT, Ran, copy, says};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python that has PyTorch, or a word that the test is skipped.
fn python(test: &str) -> Option<&'static Path> {
    common::python::python(test, "numpy, torch", "PyTorch")
}

/// A script of `tools/python` on a run and an export.
#[track_caller]
fn script(python: &Path, name: &str, run: &Run, export: &Path) -> Ran {
    let mut command = Command::new(python);
    command
        .arg(Path::new(ROOT).join("tools/python").join(name))
        .args([&run.0, export])
        .env_remove("SELVEDGE_DATA")
        .stdin(Stdio::null());
    if name == "check_model.py" {
        command.args(["--selvedge", env!("CARGO_BIN_EXE_selvedge")]);
    }
    finish(&mut command)
}

/// Trains with a trace, and exports what training saw.
fn traced(place: &Place, experiment: &str) -> (Run, PathBuf) {
    place.write("my.toml", experiment);
    place.succeeds(&["train", "my.toml", "--trace", "--out", "run"]);
    place.succeeds(&["data", "export", "run", "--out", "data.npz"]);
    (Run::at(place, "run"), place.join("data.npz"))
}

#[track_caller]
fn both_agree(python: &Path, run: &Run, export: &Path) {
    let checked = script(python, "check_model.py", run, export).ended(0);
    says(&checked.stdout, &["all agree"]);
    for metric in ["loss", "auc", "precision", "recall", "f1", "accuracy"] {
        let rows = checked.stdout.lines().filter(|l| l.contains(metric));
        assert_eq!(
            rows.count(),
            2,
            "{metric} on test and train:\n{}",
            checked.stdout
        );
    }
    is_replayed(python, run, export);
}

#[track_caller]
fn is_replayed(python: &Path, run: &Run, export: &Path) {
    let replayed = script(python, "replay.py", run, export).ended(0);
    for part in ["combined", "hospital", "device"] {
        let row = replayed.stdout.lines().find(|l| l.starts_with(part));
        assert!(
            row.is_some_and(|l| l.ends_with("ok")),
            "{part}:\n{}",
            replayed.stdout
        );
    }
}

/// Dense layers, with everything that bends a step: halving, weight decay and class weights.
const DENSE: &str = r#"
seed = 11
[data]
groups = 3
devices = 30
features = [10, 6]
classes = 3
[train]
iterations = 90
global_interval = 6
local_interval = 3
learning_rate = 0.2
halve_every = 40
participation = 0.2
weight_decay = 0.01
class_weights = "balanced"
"#;

#[test]
fn pytorch_agrees_on_dense_layers_and_notices_what_does_not_fit() {
    let Some(python) = python("pytorch_agrees_on_dense_layers_and_notices_what_does_not_fit")
    else {
        return;
    };
    let place = Place::new("dense");
    let (run, export) = traced(&place, DENSE);
    both_agree(python, &run, &export);

    let changed = Run::at(&place, "changed");
    copy(&run.0, &changed.0);
    changed.edit_manifest(|m| m["experiment"]["train"]["learning_rate"] = 0.21.into());
    let replayed = script(python, "replay.py", &changed, &export).ended(1);
    says(&replayed.stdout, &["DIFFERS"]);

    let other = ["--set", "seed=12", "--out", "other.npz"];
    place.succeeds(&[&["data", "export", "my.toml"][..], &other].concat());
    let checked = script(python, "check_model.py", &run, &place.join("other.npz")).ended(1);
    says(&checked.stdout, &["DIFFERS"]);
}

/// A run of this experiment is trained in PyTorch as here.
#[track_caller]
fn agrees_on(test: &str, experiment: &str) {
    if let Some(python) = python(test) {
        let place = Place::new(test);
        let (run, export) = traced(&place, experiment);
        both_agree(python, &run, &export);
    }
}

/// What bends the steps of one run or another: every optimiser at every tier, clipping, schedules, decay of all parts.
const OPTIMISERS: [(&str, &str, &str); 4] = [
    (
        "adamw",
        "schedule = \"cosine\"\nwarm_up = 9\nweight_decay = 0.02\ncombined_weight_decay = 0.05",
        "hospital = \"adamw\"\nhospital_rate = 0.01\nedge = \"adam\"\ncloud = \"adam\"\nepsilon = 1e-4",
    ),
    (
        "adam",
        "halve_every = 15\nweight_decay = 0.02\ncombined_weight_decay = 0.01",
        "hospital = \"adam\"\nedge = \"momentum\"\nedge_rate = 0.5\ncloud = \"adam\"\ncloud_rate = 0.02\nbeta1 = 0.8\nbeta2 = 0.95\nepsilon = 1e-4",
    ),
    (
        "momentum",
        "warm_up = 20",
        "hospital = \"momentum\"\nhospital_rate = 0.05\nedge = \"momentum\"\ncloud = \"momentum\"\nmomentum = 0.5",
    ),
    (
        "clipped",
        "schedule = \"cosine\"",
        "hospital_clip = 0.2\ndevice_clip = 0.3\nedge_rate = 0.5\ncloud = \"sgd\"\ncloud_rate = 1.5",
    ),
];

/// Whether PyTorch trains as here with optimiser `number`, where data and training have more keys.
#[track_caller]
fn is_replayed_with(python: &Path, number: usize, of: &str, [data, train]: [&str; 2]) {
    let (name, bent, optimiser) = OPTIMISERS[number % OPTIMISERS.len()];
    let place = Place::new(&format!("optimiser-{of}-{name}"));
    let mut plain = DENSE.replace("iterations = 90", "iterations = 36");
    for key in [
        "halve_every = 40\n",
        "weight_decay = 0.01\n",
        "class_weights = \"balanced\"\n",
    ] {
        plain = plain.replace(key, "");
    }
    let plain = plain.replace("[train]", &format!("{data}\n[train]\n{train}"));
    let experiment = format!("{plain}{bent}\n[optimiser]\n{optimiser}\n");
    let (run, export) = traced(&place, &experiment);
    is_replayed(python, &run, &export);
}

#[test]
fn pytorch_agrees_on_every_optimiser() {
    let Some(python) = python("pytorch_agrees_on_every_optimiser") else {
        return;
    };
    for number in 0..OPTIMISERS.len() {
        is_replayed_with(
            python,
            number,
            "class",
            ["", "class_weights = \"balanced\""],
        );
    }
}

/// What can be learnt beside a class, and everything that changes its loss.
const OUTCOMES: [(&str, &str, &str); 8] = [
    (
        "labels",
        "outcome = \"labels\"\nhidden = 0.3",
        "class_weights = \"balanced\"",
    ),
    ("labels", "outcome = \"labels\"\nhidden = 0.5", ""),
    (
        "labels",
        "outcome = \"labels\"",
        "class_weights = [0.5, 2.0, 1.0]",
    ),
    ("squared", "outcome = \"quantity\"", ""),
    (
        "huber",
        "outcome = \"quantity\"",
        "loss = \"huber\"\nhuber = 0.4",
    ),
    (
        "quantile",
        "outcome = \"quantity\"",
        "loss = \"quantile\"\nquantile = 0.8",
    ),
    ("survival", "outcome = \"survival\"", ""),
    (
        "horizon",
        "outcome = \"survival\"\nintervals = 5\nhorizon = 60.0",
        "",
    ),
];

#[test]
fn pytorch_agrees_on_every_outcome() {
    let Some(python) = python("pytorch_agrees_on_every_outcome") else {
        return;
    };
    for (number, (name, data, train)) in OUTCOMES.into_iter().enumerate() {
        is_replayed_with(python, number, name, [data, train]);
    }
}

/// Convolutions, pooling and a GRU.
const CONVOLUTIONS: &str = r#"
seed = 3
[data]
groups = 3
devices = 20
features = [30, 44]
samples_per_device = 2
[train]
iterations = 60
global_interval = 10
local_interval = 5
learning_rate = 0.1
participation = 0.25
[model]
hospital = [{ window = { size = 4 } }, { conv1d = { out = 6, size = 3, padding = 1 } }, "relu", "maxpool", "flatten", { linear = { out = 7 } }, "tanh"]
device   = [{ window = { size = 3 } }, { conv1d = { out = 5, size = 3, stride = 2 } }, "tanh", { gru = { hidden = 6 } }]
combined = [{ linear = { out = 8 } }, "relu", { linear = { out = 2 } }]
"#;

#[test]
fn pytorch_agrees_on_convolutions_pooling_and_a_gru() {
    agrees_on(
        "pytorch_agrees_on_convolutions_pooling_and_a_gru",
        CONVOLUTIONS,
    );
}

/// Spectra of a whole signal, of its steps, and behind weights.
const SPECTRA: &str = r#"
seed = 4
[data]
groups = 2
devices = 30
features = [40, 44]
test = 0.9
[train]
iterations = 40
global_interval = 8
local_interval = 4
learning_rate = 0.01
participation = 0.5
[model]
hospital = ["spectrum", { linear = { out = 6 } }, "tanh"]
device   = [{ window = { size = 8 } }, { conv1d = { out = 8, size = 1 } }, "spectrum", { gru = { hidden = 5 } }]
combined = [{ linear = { out = 2 } }]
"#;

#[test]
fn pytorch_agrees_on_spectra() {
    agrees_on("pytorch_agrees_on_spectra", SPECTRA);
}

/// Recurrences that read each other, both ways, and pooling over their steps.
const SEQUENCES: &str = r#"
seed = 6
[data]
groups = 2
devices = 30
features = [24, 28]
test = 0.9
[train]
iterations = 32
global_interval = 8
local_interval = 4
learning_rate = 0.2
participation = 0.5
[model]
hospital = [{ window = { size = 4 } }, { lstm = { hidden = 6, sequence = true } }, { pool = "mean" }]
device   = [{ window = { size = 4 } }, { gru = { hidden = 5, sequence = true, both_ways = true } }, { lstm = { hidden = 4, both_ways = true } }]
combined = [{ linear = { out = 2 } }]
"#;

#[test]
fn pytorch_agrees_on_sequences_both_ways() {
    agrees_on("pytorch_agrees_on_sequences_both_ways", SEQUENCES);
}

/// An LSTM, with everybody at every step.
const LSTM: &str = r#"
[data]
groups = 2
devices = 12
features = [25, 16]
classes = 4
test = 0.9
[train]
iterations = 24
global_interval = 2
local_interval = 1
learning_rate = 0.3
participation = 1.0
broadcast = "all"
[model]
hospital = [{ window = { size = 8 } }, { lstm = { hidden = 9 } }]
device   = [{ window = { size = 4 } }, { conv1d = { out = 4, size = 2 } }, { maxpool = { size = 3 } }, { lstm = { hidden = 5 } }]
combined = [{ linear = { out = 4 } }]
"#;

#[test]
fn pytorch_agrees_on_an_lstm_in_full_participation() {
    agrees_on("pytorch_agrees_on_an_lstm_in_full_participation", LSTM);
}

/// Functions of single numbers in all three networks.
const FUNCTIONS: &str = r#"
seed = 5
[data]
groups = 2
devices = 30
features = [20, 18]
classes = 3
test = 0.9
[train]
iterations = 40
global_interval = 8
local_interval = 4
learning_rate = 0.2
participation = 0.5
[model]
hospital = [{ linear = { out = 12 } }, "gelu", { linear = { out = 6 } }, "sigmoid"]
device   = [{ window = { size = 4 } }, { conv1d = { out = 5, size = 2 } }, "softplus", "flatten", { linear = { out = 4 } }]
combined = [{ linear = { out = 9 } }, "softplus", { linear = { out = 3 } }]
"#;

#[test]
fn pytorch_agrees_on_functions_of_single_numbers() {
    agrees_on("pytorch_agrees_on_functions_of_single_numbers", FUNCTIONS);
}
