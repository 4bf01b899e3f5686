//! Folders of comparisons in which something was damaged since: the file is named, and what is finished is kept.

use crate::SHORT;
use crate::common::run::{Run, append};
use crate::common::{Place, copy, words};
use serde_json::Value;
use std::fs;

const COMPARE: &str = "compare --algorithms hsgd,jfl --seeds 2 --out";

fn compare(out: &str) -> Vec<&str> {
    [&words(COMPARE)[..], &[out], &SHORT].concat()
}

/// A comparison that is done, to be damaged; `damage` gets the folder of one of its runs.
#[track_caller]
fn refuses_when(place: &Place, name: &str, damage: impl FnOnce(&Run), parts: &[&str]) {
    copy(&place.join("whole"), &place.join(name));
    damage(&Run::at(place, &format!("{name}/jfl/seed-42")));
    // Every file stays as it is, those of the finished runs among them.
    place.refuses(&compare(name), parts);
    fs::remove_dir_all(place.join(name)).unwrap();
}

fn cut(run: &Run, name: &str, length: impl Fn(usize) -> usize) {
    let bytes = run.bytes(name);
    fs::write(run.file(name), &bytes[..length(bytes.len())]).unwrap();
}

/// As a kill leaves a run that had not ended.
fn unfinish(run: &Run) {
    run.edit_manifest(|manifest| manifest["ending"] = Value::Null);
    fs::remove_file(run.file("model.safetensors")).unwrap();
}

#[test]
fn damaged_files_are_named_and_finished_runs_are_kept() {
    let place = Place::new("cmp-damaged");
    place.succeeds(&compare("whole"));
    let all = |length: usize| length;
    for (name, text) in [
        ("empty", ""),
        ("cut", "{ \"name\": \"synth"),
        ("list", "[]"),
        ("other", "{}"),
    ] {
        copy(&place.join("whole"), &place.join(name));
        place.write(&format!("{name}/comparison.json"), text);
        let file = format!("{name}/comparison.json is damaged");
        place.refuses(&compare(name), &[&file]);
        place.refuses(&["report", name], &[&file]);
    }
    copy(&place.join("whole"), &place.join("impossible"));
    let path = place.join("impossible/comparison.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("\"local_interval\": 5", "\"local_interval\": 3"),
    )
    .unwrap();
    place.refuses(
        &compare("impossible"),
        &["impossible", "train.local_interval is 3 there and 5 here"],
    );

    refuses_when(
        &place,
        "manifest",
        |run| cut(run, "manifest.json", |n| n / 2),
        &["manifest/jfl/seed-42/manifest.json is damaged"],
    );
    refuses_when(
        &place,
        "edited",
        |run| run.edit_manifest(|m| m["experiment"]["train"]["learning_rate"] = 0.2.into()),
        &["edited/jfl/seed-42 is a run of another experiment"],
    );
    refuses_when(
        &place,
        "gone",
        |run| fs::remove_file(run.file("manifest.json")).unwrap(),
        &["gone/jfl/seed-42", "manifest.json"],
    );
    refuses_when(
        &place,
        "line",
        |run| {
            let text = run
                .text("metrics.jsonl")
                .replacen("\"t\":20,", "\"t\":2O,", 1);
            fs::write(run.file("metrics.jsonl"), text).unwrap();
        },
        &["line/jfl/seed-42/metrics.jsonl, line 3 is damaged"],
    );
    // Without its end a run would count as one that never reached a target.
    for (name, length) in [("torn", 9), ("short", 400), ("nothing", usize::MAX)] {
        refuses_when(
            &place,
            name,
            |run| cut(run, "metrics.jsonl", |n| n.saturating_sub(length)),
            &[
                "jfl/seed-42/metrics.jsonl is damaged",
                "iteration 100",
                "remove",
            ],
        );
    }
    refuses_when(
        &place,
        "garbage",
        |run| append(&run.file("metrics.jsonl"), b"garbage\n"),
        &["garbage/jfl/seed-42/metrics.jsonl is damaged"],
    );
    refuses_when(
        &place,
        "flipped",
        |run| {
            unfinish(run);
            let mut bytes = fs::read(run.checkpoint()).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(run.checkpoint(), bytes).unwrap();
        },
        &[
            "jfl seed 42",
            "flipped/jfl/seed-42/checkpoint/state.safetensors is damaged",
        ],
    );
    refuses_when(
        &place,
        "cut-checkpoint",
        |run| {
            unfinish(run);
            cut(run, "checkpoint/state.safetensors", |n| n - 1);
        },
        &["cut-checkpoint/jfl/seed-42/checkpoint/state.safetensors is damaged"],
    );
    refuses_when(
        &place,
        "ledger",
        |run| fs::write(run.file("ledger.csv"), "nonsense\n").unwrap(),
        &["ledger/jfl/seed-42/ledger.csv, line 1 is damaged"],
    );
    // Undamaged, all of this is a finished comparison; and a run that is removed is trained again.
    refuses_nothing(&place, |run| cut(run, "manifest.json", all));
    refuses_nothing(&place, |run| fs::remove_dir_all(&run.0).unwrap());
    refuses_nothing(&place, unfinish);
}

#[track_caller]
fn refuses_nothing(place: &Place, damage: impl FnOnce(&Run)) {
    copy(&place.join("whole"), &place.join("again"));
    damage(&Run::at(place, "again/jfl/seed-42"));
    place.succeeds(&compare("again"));
    crate::same_comparison(place, "whole", "again");
    fs::remove_dir_all(place.join("again")).unwrap();
}

/// Half of the runs on one table and half on another would be no comparison.
#[test]
fn runs_on_data_that_was_changed_since_are_not_added() {
    let place = Place::new("cmp-data");
    let table = |shift: u32| -> String {
        let row = |i: u32| {
            format!(
                "{i},{},{},{}\n",
                i * 7 % 50,
                (i * 13 + shift) % 60,
                (i / 3) % 2
            )
        };
        let rows: String = (0..120).map(row).collect();
        format!("id,age,hr,ill\n{rows}")
    };
    place.write("patients.csv", table(0));
    place.write(
        "my.toml",
        r#"[data]
set = "table"
path = "patients.csv"
split = "iid"
groups = 2
[data.table]
id = "id"
label = "ill"
hospital = ["age"]
device = ["hr"]
[train]
iterations = 20
global_interval = 2
local_interval = 1
participation = 0.5
[model]
hospital = [{ linear = { out = 4 } }]
device = [{ linear = { out = 4 } }]
combined = [{ linear = { out = 2 } }]
"#,
    );
    let args = |algorithms| {
        [
            "compare",
            "my.toml",
            "--seeds",
            "2",
            "--out",
            "cmp",
            "--algorithms",
            algorithms,
        ]
    };
    place.succeeds(&args("hsgd"));
    place.write("patients.csv", table(1));
    let finished = crate::finished(&place.join("cmp"));
    let before = crate::stamped(&finished);
    let ran = place.selvedge(&args("hsgd,jfl"));
    ran.refused(&["the data is not what cmp/hsgd/seed-4", "fingerprint"]);
    assert_eq!(before, crate::stamped(&finished));
    place.write("patients.csv", table(0));
    place.succeeds(&args("hsgd,jfl"));
}
