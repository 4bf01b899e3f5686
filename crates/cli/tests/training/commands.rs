//! `experiments`, `data inspect`, `data export`, and experiments from files, names and runs.

use crate::common::run::{Run, same_results};
use crate::common::{Place, says, text};
use crate::common::{npz, words};
use serde_json::Value;
use std::fs;

const PRESETS: [&str; 18] = [
    "synthetic",
    "esr",
    "esr-lean",
    "esr-paper",
    "physionet2012",
    "physionet2012-best",
    "physionet2012-lean",
    "physionet2012-paper",
    "mednist",
    "mednist-paper",
    "organamnist",
    "organamnist-paper",
    "mimic3",
    "mimic3-paper",
    "million",
    "size-esr",
    "size-physionet",
    "size-cnn",
];

/// What makes each preset small and in need of no files.
const SMALL: [&str; 14] = [
    "--set",
    "data.set=synthetic",
    "--set",
    "data.groups=2",
    "--set",
    "data.devices=20",
    "--set",
    "data.features=[89, 89]",
    "--set",
    "data.classes=5",
    "--set",
    "train.iterations=20",
    "--set",
    "model.combined=[{ linear = { out = 5 } }]",
];

/// The same for those whose data has a shape.
const SMALL_SIZE: &str = "--set data.groups=2 --set data.devices=20 --set train.iterations=10 \
    --set train.evaluate_every=5";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text:?}"))
}

#[test]
fn every_preset_is_listed_shown_and_trains_from_its_own_text() {
    let place = Place::new("presets");
    let list = place.succeeds(&["experiments"]).stdout;
    let names: Vec<&str> = list
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert_eq!(names, PRESETS);
    let listed = json(&place.succeeds(&["experiments", "--json"]).stdout);
    for (entry, name) in listed.as_array().unwrap().iter().zip(PRESETS) {
        assert_eq!(entry["name"], name);
        let about = entry["about"].as_str().unwrap();
        assert!(!about.is_empty() && list.contains(about), "{name}");
    }
    for name in PRESETS {
        let shown = place.succeeds(&["experiments", "--show", name]).stdout;
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
        let file = fs::read_to_string(format!("{root}/{name}.toml")).unwrap();
        assert_eq!(shown, file, "{name}");
        let copy = place.write(&format!("copy-of-{name}.toml"), &shown);
        let (by_file, by_name) = (format!("file-{name}"), format!("name-{name}"));
        // Without files, a set's preset runs on its twin.
        let set = ["-paper", "-lean", "-best"]
            .iter()
            .find_map(|kind| name.strip_suffix(kind))
            .unwrap_or(name);
        let twin = match set {
            set @ ("esr" | "mednist" | "mimic3" | "organamnist" | "physionet2012") => {
                Some(format!("data.set=synthetic-{set}"))
            }
            _ => None,
        };
        let mut small = match name.starts_with("size-") || twin.is_some() {
            true => words(SMALL_SIZE),
            false => SMALL.to_vec(),
        };
        if let Some(twin) = &twin {
            small.extend(["--set", twin]);
        }
        let small = &small[..];
        place.succeeds(&[&["train", text(&copy), "--out", &by_file][..], small].concat());
        place.succeeds(&[&["train", name, "--out", &by_name][..], small].concat());
        let (by_file, by_name) = (Run::at(&place, &by_file), Run::at(&place, &by_name));
        same_results(&by_name, &by_file, name);
        assert_eq!(
            by_name.manifest()["experiment"],
            by_file.manifest()["experiment"]
        );
    }
    place.refuses(
        &["experiments", "--show", "ers"],
        &["`ers`", "did you mean `esr`?"],
    );
}

#[test]
fn setting_every_key_to_its_listed_default_changes_nothing() {
    let place = Place::new("keys");
    let text = place.succeeds(&["experiments", "--keys"]).stdout;
    let keys = json(&place.succeeds(&["experiments", "--keys", "--json"]).stdout);
    place.write("empty.toml", "");
    let mut args = vec!["train".to_owned(), "empty.toml".into()];
    let mut set = 0;
    for entry in keys.as_array().unwrap() {
        let key = entry["key"].as_str().unwrap();
        assert!(!entry["meaning"].as_str().unwrap().is_empty(), "{key}");
        assert!(text.lines().any(|l| l.starts_with(key)), "{key}");
        let default = &entry["default"];
        // Layers are written differently in JSON and TOML.
        if !default.is_null() && !key.starts_with("model.") {
            args.extend(["--set".into(), format!("{key}={default}")]);
            set += 1;
        }
    }
    assert!(set > 20, "{keys}");
    let mut words: Vec<&str> = args.iter().map(String::as_str).collect();
    words.extend(["--out", "set"]);
    place.succeeds(&words);
    place.succeeds(&["train", "empty.toml", "--out", "unset"]);
    let (set, unset) = (Run::at(&place, "set"), Run::at(&place, "unset"));
    assert_eq!(set.manifest()["experiment"], unset.manifest()["experiment"]);
    same_results(&unset, &set, "defaults");
}

#[test]
fn a_run_directory_is_an_experiment_to_start_from() {
    let place = Place::new("run-as-experiment");
    let set = ["--set", "train.iterations=50", "--set", "seed=9"];
    place.succeeds(&[&["train", "--out", "first"][..], &set].concat());
    place.succeeds(&["train", "first", "--out", "again"]);
    let first = Run::at(&place, "first");
    same_results(&first, &Run::at(&place, "again"), "the same again");
    let longer = ["--set", "train.iterations=70", "--out", "longer"];
    place.succeeds(&[&["train", "first"][..], &longer].concat());
    let longer = Run::at(&place, "longer").manifest();
    assert_eq!(longer["experiment"]["train"]["iterations"], 70);
    assert_eq!(longer["experiment"]["seed"], 9);
}

#[test]
fn inspect_counts_every_group_and_sample() {
    let place = Place::new("inspect");
    let set = ["--set", "data.groups=3", "--set", "data.devices=50"];
    let more = words(
        "--set data.samples_per_device=2 --set data.classes=4 --set train.participation=0.11",
    );
    let inspect = [&["data", "inspect"][..], &set, &more].concat();
    let found = json(&place.succeeds(&[&inspect[..], &["--json"]].concat()).stdout);
    let groups = found["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    let sum = |labels: &Value| -> u64 {
        let labels = labels.as_array().unwrap();
        assert_eq!(labels.len(), 4);
        labels.iter().map(|n| n.as_u64().unwrap()).sum()
    };
    for group in groups {
        assert_eq!(
            (&group["devices"], &group["samples"]),
            (&50.into(), &100.into())
        );
        assert_eq!(group["selected"], 6, "0.11 of 50, rounded");
        assert_eq!(sum(&group["labels"]), 100);
    }
    // A tenth of 300 on top for validation, a fifth of all that for the test.
    assert_eq!(found["validation"]["samples"], 30);
    assert_eq!(found["test"]["samples"], 66);
    assert_eq!(sum(&found["validation"]["labels"]), 30);
    assert_eq!(sum(&found["test"]["labels"]), 66);

    let page = place.succeeds(&inspect).stdout;
    let fingerprint = found["fingerprint"].as_str().unwrap();
    says(
        &page,
        &[
            "3 groups, 150 devices, 300 training samples, 4 classes",
            "hospital [16] | device [16]",
            fingerprint,
        ],
    );
    let label = groups[1]["labels"][2].to_string();
    let row = page
        .lines()
        .find(|l| l.trim_start().starts_with("group 1"))
        .unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[2..5], ["50", "6", "100"], "{row}");
    assert_eq!(words[7], label, "{row}");
    assert!(
        fs::read_dir(place.path()).unwrap().next().is_none(),
        "no file is left"
    );
}

#[test]
fn an_export_is_what_training_sees() {
    let place = Place::new("export");
    let set = words(
        "--set data.groups=3 --set data.devices=40 --set data.features=[5,7] \
         --set train.iterations=10",
    );
    let export = |args: &[&str], name: &str| {
        place.succeeds(&[&["data", "export"][..], args, &["--out", name]].concat());
        fs::read(place.join(name)).unwrap()
    };
    let bytes = export(&set, "data.npz");
    let arrays = npz::read(&bytes);
    let mut names: Vec<String> = (0..3)
        .flat_map(|m| ["x1", "x2", "y"].map(|side| format!("g{m}_{side}")))
        .collect();
    for part in ["test", "validation"] {
        names.extend(["x1", "x2", "y"].map(|side| format!("{part}_{side}")));
    }
    assert_eq!(arrays.keys().cloned().collect::<Vec<_>>(), names);
    let inspected = place.succeeds(&[&["data", "inspect", "--json"][..], &set].concat());
    let inspected = json(&inspected.stdout);
    let check = |prefix: &str, told: &Value| {
        let rows = told["samples"].as_u64().unwrap() as usize;
        assert_eq!(arrays[&format!("{prefix}_x1")].shape, [rows, 5]);
        assert_eq!(arrays[&format!("{prefix}_x2")].shape, [rows, 7]);
        let labels = arrays[&format!("{prefix}_y")].integers();
        let counts = [0, 1].map(|class| labels.iter().filter(|y| **y == class).count());
        assert_eq!(told["labels"], Value::from(counts.to_vec()), "{prefix}");
        assert_eq!(labels.len(), rows);
        let values = arrays[&format!("{prefix}_x1")].floats();
        assert!(values.iter().all(|v| v.is_finite()));
        assert!(
            values.windows(2).any(|w| w[0] != w[1]),
            "{prefix} is constant"
        );
    };
    for m in 0..3 {
        check(&format!("g{m}"), &inspected["groups"][m]);
    }
    check("test", &inspected["test"]);
    check("validation", &inspected["validation"]);

    place.succeeds(&[&["train", "--out", "run"][..], &set].concat());
    assert!(export(&["run"], "of-run.npz") == bytes, "the data of a run");
    assert!(export(&[&set[..], &["--set", "seed=1"]].concat(), "other.npz") != bytes);

    let several = [&set[..], &["--set", "data.samples_per_device=3"]].concat();
    let arrays = npz::read(&export(&several, "several.npz"));
    let offsets = arrays["g2_offsets"].integers();
    assert_eq!(offsets, (0..=120).step_by(3).collect::<Vec<_>>());
}
