//! Exported models in ONNX Runtime and in PyTorch.

use crate::common::process::finish_within;
use crate::common::run::Run;
use crate::common::{self, Place, ROOT, Ran, copy, real_data, says, table_experiment, text};
use crate::stacks::{Dice, ELEMENTWISE, Stack};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Four graphs for each of many runs are loaded; on a busy machine that takes its time.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs with networks at random: an even number, of which half have validation samples.
const RUNS: u64 = 40;

/// A Python that has ONNX Runtime and PyTorch, or a word that the test is skipped.
fn python(test: &str) -> Option<&'static Path> {
    common::python::python(
        test,
        "numpy, onnxruntime, torch",
        "ONNX Runtime and PyTorch",
    )
}

/// `check_onnx.py` on runs that have been exported.
fn check(python: &Path, place: &Place, runs: &[String], more: &[&str]) -> Ran {
    let mut command = Command::new(python);
    command
        .arg(Path::new(ROOT).join("tools/python/check_onnx.py"))
        .args(runs)
        .args(["--selvedge", env!("CARGO_BIN_EXE_selvedge")])
        .args(more)
        .current_dir(place.path())
        .env_remove("SELVEDGE_DATA")
        .stdin(Stdio::null());
    finish_within(&mut command, PATIENCE)
}

/// All numbers of all runs agree, and as many rows of the table say so as there should be.
#[track_caller]
fn agree(python: &Path, place: &Place, runs: &[String], more: &[&str], rows: usize) {
    let checked = check(python, place, runs, more).ended(0);
    says(&checked.stdout, &["all agree"]);
    let fine = checked.stdout.lines().filter(|l| l.ends_with("ok"));
    assert_eq!(fine.count(), rows, "{}", checked.stdout);
}

/// An experiment with networks at random on generated data.
fn random_experiment(seed: u64, outcome: &str, seen: &mut BTreeSet<(String, usize)>) -> String {
    let mut dice = Dice(seed);
    let (hospital, device) = (dice.shape(), dice.shape());
    let classes = dice.between(2, 4);
    let mut towers = Vec::new();
    for shape in [hospital, device] {
        let layers = dice.between(1, 6);
        let mut stack = Stack {
            dice: &mut dice,
            shape,
            layers: Vec::new(),
            seen,
        };
        stack.grow(layers);
        towers.push((stack.text(), stack.shape));
    }
    let width: u64 = towers.iter().map(|(_, shape)| shape.numbers()).sum();
    let layers = dice.between(0, 4);
    let mut combined = Stack {
        dice: &mut dice,
        shape: crate::stacks::Shape::Flat(width),
        layers: Vec::new(),
        seen,
    };
    combined.grow(layers);
    let intervals = 1 + seed % 7;
    combined.end(match outcome {
        "quantity" => 1,
        "survival" => intervals,
        _ => classes,
    });
    let algorithm = ["hsgd", "hospital-only", "device-only", "hsgd"][seed as usize % 4];
    let validation = [0.0, 0.3][seed as usize % 2];
    let asked = match outcome {
        "survival" => format!("intervals = {intervals}\n"),
        _ => String::new(),
    };
    // A quantity has no bound; weights that grow large would have none either.
    let rate = if outcome == "quantity" { 0.01 } else { 0.3 };
    format!(
        "seed = {seed}
[data]
groups = 2
devices = 20
features = [{}, {}]
classes = {classes}
outcome = \"{outcome}\"
{asked}validation = {validation}
[train]
algorithm = \"{algorithm}\"
iterations = 20
global_interval = 4
local_interval = 2
learning_rate = {rate}
participation = 0.5
[model]
hospital = {}
device = {}
combined = {}
",
        hospital.text(),
        device.text(),
        towers[0].0,
        towers[1].0,
        combined.text()
    )
}

#[test]
fn any_layers_give_the_same_numbers() {
    let Some(python) = python("any_layers_give_the_same_numbers") else {
        return;
    };
    let place = Place::new("stacks");
    let (mut seen, mut runs) = (BTreeSet::new(), Vec::new());
    for seed in 1..=RUNS {
        let name = format!("run-{seed}");
        place.write("my.toml", random_experiment(seed, "class", &mut seen));
        place.succeeds(&["train", "my.toml", "--out", &name]);
        place.succeeds(&["export", &name]);
        runs.push(name);
    }
    let all = [
        ("linear", [1].as_slice()),
        ("conv1d", &[2]),
        ("conv2d", &[3]),
        ("maxpool", &[2, 3]),
        ("flatten", &[1, 2, 3]),
        ("spectrum", &[1, 2]),
        ("window", &[1]),
        ("lstm", &[2]),
        ("gru", &[2]),
        ("pool", &[2]),
    ];
    let any = ELEMENTWISE.map(|layer| (layer, [1, 2, 3].as_slice()));
    for (layer, dimensions) in all.into_iter().chain(any) {
        for dimension in dimensions {
            let drawn = seen.contains(&(layer.to_owned(), *dimension));
            assert!(drawn, "no {layer} of {dimension} dimensions was drawn");
        }
    }
    // Probabilities of all, and what is calibrated where there are validation samples.
    agree(
        python,
        &place,
        &runs,
        &[],
        (RUNS * 3 + RUNS / 2 * 3) as usize,
    );
}

#[test]
fn any_outcome_gives_the_same_numbers() {
    let Some(python) = python("any_outcome_gives_the_same_numbers") else {
        return;
    };
    let place = Place::new("outcomes");
    let (mut seen, mut runs) = (BTreeSet::new(), Vec::new());
    for (outcome, seed) in ["labels", "quantity", "survival"]
        .into_iter()
        .flat_map(|outcome| (1..=6).map(move |seed| (outcome, seed)))
    {
        let name = format!("{outcome}-{seed}");
        place.write("my.toml", random_experiment(seed, outcome, &mut seen));
        place.succeeds(&["train", "my.toml", "--out", &name]);
        place.succeeds(&["export", &name]);
        runs.push(name);
    }
    // Answers of all; what is calibrated only of labels, in the three runs that have validation samples.
    agree(python, &place, &runs, &[], 18 * 3 + 3 * 3);
}

/// A table with gaps, categories, times and far values.
fn table(place: &Place, patients: u32) -> String {
    let mut labs = String::from("patient,site,ill,age,sex,lactate\n");
    let mut vitals = String::from("patient,hour,hr,spo2\n");
    let mut dice = Dice(5);
    for id in 0..patients {
        let ill = dice.between(0, 2) == 0;
        let age = dice.between(20, 90);
        let sex = ["f", "m", ""][dice.between(0, 2) as usize];
        let lactate = match dice.between(0, 3) {
            0 => String::new(),
            1 if id % 20 == 0 => "900".into(),
            n => format!("{}.{}", n + u64::from(ill), dice.between(0, 9)),
        };
        let site = ["north", "south"][id as usize % 2];
        labs += &format!("{id},{site},{},{age},{sex},{lactate}\n", u8::from(ill));
        for hour in 0..4 {
            if dice.between(0, 3) > 0 {
                let hr = dice.between(50, 90) + 30 * u64::from(ill);
                let spo2 = ["", "97", "93", "-50"][dice.between(0, 3) as usize];
                vitals += &format!("{id},{hour},{hr},{spo2}\n");
            }
        }
    }
    place.write("labs.csv", labs);
    place.write("vitals.csv", vitals);
    table_experiment(
        "path = \"labs.csv\"\ngroups = 2\ntest = 0.25\nvalidation = 0.25\nscaling = \"SCALING\"\nderived = DERIVED",
        r#"files = ["vitals.csv"]
time = "hour"
steps = 4
masks = MASKS
missing = "MISSING"
clip = CLIP"#,
        "iterations = 60\nglobal_interval = 4\nlocal_interval = 2",
        "{ lstm = { hidden = 8 } }",
    )
}

#[test]
fn patients_of_a_table_get_the_same_numbers() {
    let Some(python) = python("patients_of_a_table_get_the_same_numbers") else {
        return;
    };
    let place = Place::new("table");
    let template = table(&place, 240);
    let mut runs = Vec::new();
    for (missing, masks, clip, scaling, derived) in [
        ("mean", false, true, "standard", "[]"),
        ("zero", true, false, "robust", r#"["since", "mean"]"#),
        ("carry", true, true, "log", r#"["min", "max", "count"]"#),
    ] {
        let experiment = template
            .replace("SCALING", scaling)
            .replace("DERIVED", derived)
            .replace("MISSING", missing)
            .replace("MASKS", &masks.to_string())
            .replace("CLIP", &clip.to_string());
        place.write("my.toml", experiment);
        place.succeeds(&["train", "my.toml", "--out", missing]);
        place.succeeds(&["export", missing]);
        runs.push(missing.to_owned());
    }
    // Three comparisons of probabilities and of what is calibrated, in each of the three.
    agree(python, &place, &runs, &[], 18);
    let files = ["--input", "labs.csv", "--input", "vitals.csv"];
    agree(python, &place, &runs, &files, 18);
}

#[test]
fn a_changed_weight_is_noticed() {
    let Some(python) = python("a_changed_weight_is_noticed") else {
        return;
    };
    let place = Place::new("changed");
    let set = ["--set", "train.iterations=20", "--set", "data.validation=0"];
    place.succeeds(&[&["train", "--out", "run"][..], &set].concat());
    place.succeeds(&["export", "run"]);
    let runs = ["run".to_owned()];
    agree(python, &place, &runs, &[], 3);
    let run = Run::at(&place, "run");
    let weights = run.tensors("model.safetensors");
    let bias = &weights["combined.0.bias"].values;
    for name in ["model.onnx", "combined.onnx", "model.safetensors"] {
        let path = run.file("export").join(name);
        let whole = fs::read(&path).unwrap();
        let old: Vec<u8> = bias.iter().flat_map(|b| b.to_le_bytes()).collect();
        let new: Vec<u8> = bias.iter().flat_map(|b| (b + 0.1).to_le_bytes()).collect();
        let at = whole
            .windows(old.len())
            .position(|bytes| bytes == old)
            .unwrap();
        let mut changed = whole.clone();
        changed[at..][..4].copy_from_slice(&new[..4]);
        fs::write(&path, changed).unwrap();
        let checked = check(python, &place, &runs, &[]).ended(1);
        assert!(
            checked.stdout.contains("DIFFERS"),
            "{name}: {}",
            checked.stdout
        );
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        check(python, &place, &runs, &[]).ended(2);
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn physionet_gives_the_same_numbers() {
    let test = "physionet_gives_the_same_numbers";
    let (Some(python), Some(data)) = (python(test), real_data(test)) else {
        return;
    };
    let archive = data.join("physionet2012/physionet2012-ab.tar.gz");
    if !archive.is_file() {
        eprintln!(
            "skipped: {test} needs {} in SELVEDGE_DATA",
            archive.display()
        );
        return;
    }
    let place = Place::new("physionet");
    let data = text(&data);
    place.succeeds(&[
        "train",
        "physionet2012",
        "--data-dir",
        data,
        "--out",
        "run",
        "--set",
        "train.iterations=40",
        "--set",
        "data.validation=0.1",
    ]);
    place.succeeds(&["export", "run"]);
    // Of the archive's two sets, set-b is for the test.
    let runs = ["run".to_owned()];
    agree(python, &place, &runs, &["--input", text(&archive)], 6);
}

#[test]
fn load_py_is_used_as_it_says() {
    let Some(python) = python("load_py_is_used_as_it_says") else {
        return;
    };
    let place = Place::new("load");
    place.succeeds(&["train", "--set", "train.iterations=20", "--out", "run"]);
    place.succeeds(&["export", "run", "--format", "safetensors"]);
    copy(&place.join("run/export"), &place.join("elsewhere"));
    let script = "import numpy
numpy.savez('inputs.npz', hospital=numpy.ones((3, 16), 'f4'), device=numpy.ones((3, 16), 'f4'))";
    let run = |arguments: &[&str]| {
        let mut command = Command::new(python);
        finish_within(command.args(arguments).current_dir(place.path()), PATIENCE)
    };
    run(&["-c", script]).ended(0);
    let ran = run(&["elsewhere/load.py", "inputs.npz"]).ended(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "a head and three rows: {}", ran.stdout);
    assert_eq!(lines[0], "0,1");
    let shares: Vec<f64> = lines[1].split(',').map(|p| p.parse().unwrap()).collect();
    assert!(
        (shares.iter().sum::<f64>() - 1.0).abs() < 1e-5,
        "{shares:?}"
    );
    let wrong = run(&[
        "-c",
        "import sys, numpy; sys.path.insert(0, 'elsewhere'); import load
load.model()(numpy.ones((3, 15), 'f4'), numpy.ones((3, 16), 'f4'))",
    ]);
    says(&wrong.stderr, &["expected [N, 16]"]);
}
