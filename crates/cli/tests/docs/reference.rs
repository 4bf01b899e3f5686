//! docs/reference is what the program writes, and docs/run-directory.md has every field of a run's files.

use crate::common::Place;
use crate::common::run::Run;
use crate::markdown::{Page, root};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn the_reference_is_what_the_program_says() {
    let place = Place::new("reference");
    place.succeeds(&["reference", "--out", "reference"]);
    for name in ["commands.md", "keys.md"] {
        let written = fs::read_to_string(place.join("reference").join(name)).unwrap();
        let kept = root().join("docs/reference").join(name);
        let kept = fs::read_to_string(kept).unwrap_or_default();
        if written != kept {
            let differs = written.lines().zip(kept.lines()).find(|(a, b)| a != b);
            panic!(
                "docs/reference/{name} is not what the program says ({differs:?}). In the repository, run\n\n    cargo run --release -- reference\n"
            );
        }
    }
    let by_default = place.succeeds(&["reference"]);
    assert!(by_default.stdout.is_empty());
    assert!(place.join("docs/reference/keys.md").is_file());
    place.write("file", "");
    place.refuses(&["reference", "--out", "file/x"], &["cannot create file/x"]);
}

/// The names of all fields; what is inside `experiment` are keys, which have a page of their own.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                found.insert(name.clone());
                if name != "experiment" {
                    fields(inner, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| fields(inner, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_a_run_is_explained() {
    let place = Place::new("fields");
    let set = |key: &'static str| ["--set", key];
    place.succeeds(
        &[
            &["train", "--trace", "--out", "run"][..],
            &set("train.iterations=60"),
            &set("train.adaptive=gain"),
            &set("data.samples_per_device=2"),
            &set("data.validation=0.1"),
            &set("stop.bytes=1e5"),
        ]
        .concat(),
    );
    let run = Run::at(&place, "run");
    let page = Page::read("docs/run-directory.md").text;
    let mut named = BTreeSet::new();
    fields(&run.manifest(), &mut named);
    for file in ["metrics.jsonl", "segments.jsonl", "trace.jsonl"] {
        run.lines(file)
            .iter()
            .for_each(|line| fields(line, &mut named));
    }
    let ledger = run.text("ledger.csv");
    named.extend(ledger.lines().next().unwrap().split(',').map(str::to_owned));
    let absence = ["absent_exchange", "absent_upload", "absences.jsonl"];
    named.extend(absence.map(str::to_owned));
    for entry in fs::read_dir(&run.0).unwrap() {
        named.insert(entry.unwrap().file_name().into_string().unwrap());
    }
    assert!(named.len() > 50, "{named:?}");
    let missing: Vec<_> = named
        .iter()
        .filter(|name| {
            !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}/`"))
        })
        .collect();
    assert!(
        missing.is_empty(),
        "docs/run-directory.md says nothing of {missing:?}"
    );
}
