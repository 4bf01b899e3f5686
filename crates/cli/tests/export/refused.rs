//! What cannot be exported, and where nothing is written.

use crate::FILES;
use crate::common::disk::Disk;
use crate::common::run::Run;
use crate::common::{Place, copy, snapshot, words};
use serde_json::{Value, json};
use std::fs;

/// A short run without validation samples.
fn trained(place: &Place) -> Run {
    place.write("my.toml", "[train]\niterations = 20\n");
    place.succeeds(&["train", "my.toml", "--out", "run"]);
    Run::at(place, "run")
}

fn names(place: &Place, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(place.join(folder)).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn files_are_written_as_asked_for_and_always_the_same() {
    let place = Place::new("files");
    trained(&place);
    let ran = place.succeeds(&["export", "run", "--json"]);
    assert_eq!(names(&place, "run/export"), FILES);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    for file in said["files"].as_array().unwrap() {
        let path = place
            .join("run/export")
            .join(file["name"].as_str().unwrap());
        assert_eq!(
            fs::metadata(path).unwrap().len(),
            file["bytes"].as_u64().unwrap()
        );
    }
    assert_eq!(said["files"].as_array().unwrap().len(), FILES.len());

    let before = snapshot(&place.join("run/export"));
    place.succeeds(&["export", "run"]);
    assert!(
        snapshot(&place.join("run/export")) == before,
        "another export is another one"
    );

    place.succeeds(&["export", "run", "--out", "deep/er", "--format", "card"]);
    assert_eq!(names(&place, "deep/er"), ["model-card.md"]);
    place.succeeds(&words("export run --out deep/er --format safetensors,card"));
    assert_eq!(
        names(&place, "deep/er"),
        ["load.py", "model-card.md", "model.safetensors"]
    );
    let weights = Run::at(&place, "deep/er").tensors("model.safetensors");
    assert_eq!(weights, Run::at(&place, "run").tensors("model.safetensors"));
}

#[test]
fn the_best_model_is_exported_where_there_is_one() {
    let place = Place::new("best");
    trained(&place);
    place.refuses(
        &["export", "run", "--best"],
        &["best.safetensors", "data.validation"],
    );
    let set = ["--set", "data.validation=0.2"];
    place.succeeds(&[&["train", "my.toml", "--out", "valid"][..], &set].concat());
    let run = Run::at(&place, "valid");
    // Surely another one than the last.
    let best: Vec<u8> = fs::read(run.file("initial.safetensors")).unwrap();
    fs::write(run.file("best.safetensors"), best).unwrap();
    run.forget_digests();
    place.succeeds(&["export", "valid", "--out", "best"]);
    place.succeeds(&["export", "valid", "--last", "--out", "last"]);
    let of = |folder: &str| Run::at(&place, folder).tensors("model.safetensors");
    assert_eq!(of("best"), run.tensors("best.safetensors"));
    assert_eq!(of("last"), run.tensors("model.safetensors"));
    assert!(of("best") != of("last"));
    let card = |folder: &str| Run::at(&place, folder).text("model-card.md");
    assert!(card("best").contains("the best on the validation samples"));
    assert!(card("last").contains("It is the last model, after 20 iterations"));
}

#[test]
fn runs_that_are_none_are_refused() {
    let place = Place::new("none");
    let run = trained(&place);
    place.refuses(
        &["export", "nowhere"],
        &["nowhere", "there is no such folder"],
    );
    place.refuses(
        &["export", "run", "--format", "onxx"],
        &["onxx", "onnx, safetensors, card"],
    );
    let changed = |name: &str, change: &dyn Fn(&Run)| {
        let other = Run::at(&place, name);
        copy(&run.0, &other.0);
        change(&other);
    };

    changed("unfinished", &|r| {
        fs::remove_file(r.file("model.safetensors")).unwrap()
    });
    place.refuses(
        &["export", "unfinished"],
        &["model.safetensors", "selvedge train --resume unfinished"],
    );

    changed("damaged", &|r| {
        let bytes = r.bytes("model.safetensors");
        fs::write(r.file("model.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    });
    place.refuses(&["export", "damaged"], &["damaged/model.safetensors"]);

    changed("other", &|r| {
        r.edit_manifest(|m| {
            m["experiment"]["model"]["device"] = json!([{ "linear": { "out": 3 } }])
        });
    });
    place.refuses(
        &["export", "other"],
        &["other/model.safetensors", "combined.0.weight"],
    );

    changed("future", &|r| {
        r.edit_manifest(|m| (m["selvedge"], m["format"]) = (json!("9.0.0"), json!(99)))
    });
    place.refuses(
        &["export", "future"],
        &[
            "run directory of format 99, written by selvedge 9.0.0",
            "upgrade it",
        ],
    );

    changed("infinite", &|r| {
        let tensors = r.tensors("model.safetensors");
        let old: Vec<u8> = tensors["combined.0.bias"]
            .values
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        let mut bytes = r.bytes("model.safetensors");
        let at = bytes.windows(old.len()).position(|b| b == old).unwrap();
        bytes[at..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
        fs::write(r.file("model.safetensors"), bytes).unwrap();
    });
    place.refuses(
        &["export", "infinite"],
        &["infinite/model.safetensors", "damaged", "NaN"],
    );

    changed("later", &|r| {
        r.edit_manifest(|m| m["experiment"]["train"]["sorcery"] = json!(true))
    });
    place.refuses(&["export", "later"], &["later/manifest.json", "sorcery"]);

    changed("cut", &|r| {
        fs::write(r.file("ledger.csv"), "link,kind\n").unwrap()
    });
    place.refuses(&["export", "cut"], &["cut/ledger.csv", "damaged"]);
}

#[test]
fn files_of_others_are_never_replaced() {
    let place = Place::new("others");
    trained(&place);
    // The run's own model would be replaced by one of another kind.
    place.refuses(
        &["export", "run", "--out", "run"],
        &["run/model.safetensors", "belongs to the run in"],
    );
    place.write("mine/model.onnx", "a model of my own");
    place.write("mine/notes.txt", "notes");
    place.refuses(
        &["export", "run", "--out", "mine"],
        &["mine/model.onnx", "choose another name"],
    );
    place.succeeds(&["export", "run", "--out", "mine", "--format", "card"]);
    assert_eq!(
        names(&place, "mine"),
        ["model-card.md", "model.onnx", "notes.txt"]
    );
    place.write("file", "in the way");
    place.refuses(&["export", "run", "--out", "file"], &["file"]);
    place.refuses(&["export", "run", "--out", "file/deeper"], &["file"]);
}

#[test]
fn a_full_disk_is_named_and_leaves_what_was_there() {
    let place = Place::new("full");
    trained(&place);
    let mut stopped = 0;
    for kilobytes in [4, 8, 16, 32, 64, 1024] {
        let Some(_disk) = Disk::mount(&place.join("disk"), kilobytes) else {
            eprintln!("skipped: mounting a small disk needs root");
            return;
        };
        let ran = place.selvedge(&["export", "run", "--out", "disk/out"]);
        if ran.code() == Some(0) {
            assert_eq!(names(&place, "disk/out"), FILES);
            continue;
        }
        stopped += 1;
        ran.refused(&["cannot", "disk/out", "No space left"]);
        assert_eq!(
            names(&place, "disk"),
            Vec::<String>::new(),
            "{kilobytes} kB"
        );
    }
    assert!(
        (1..6).contains(&stopped),
        "{stopped} of 6 disks were too small"
    );
}
