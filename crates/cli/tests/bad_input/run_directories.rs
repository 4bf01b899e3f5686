//! Run directories that are there already, are none, are damaged, or belong to something else.

use crate::common::process::{Live, finish};
use crate::common::run::{Run, same_results};
use crate::common::{Place, copy, mixed_experiment, selvedge, snapshot, unchanged, words};
use std::fs;
use std::time::Duration;

const SHORT: [&str; 2] = ["--set", "train.iterations=20"];

fn short_run(name: &str) -> (Place, Run) {
    let place = Place::new(name);
    place.succeeds(&[&["train", "--trace", "--out", "run"][..], &SHORT].concat());
    let run = Run::at(&place, "run");
    (place, run)
}

#[test]
fn a_directory_that_is_there_is_not_written_to() {
    let (place, _run) = short_run("there-already");
    place.write("file", "not a run");
    place.write("folder/notes.txt", "not a run");
    let parts = |name: &'static str| [name, "already", "--out", "--resume"];
    for name in ["run", "file", "folder"] {
        let args = [&["train", "--seeds", "2", "--out", name][..], &SHORT].concat();
        place.refuses(&args, &parts(name));
    }
    for name in ["run", "file", "folder"] {
        place.refuses(
            &[&["train", "--out", name][..], &SHORT].concat(),
            &parts(name),
        );
    }
}

#[test]
fn another_experiment_does_not_go_on_with_a_run_that_out_names() {
    let (place, _run) = short_run("other-experiment-out");
    let other = words("--set train.iterations=40 --set train.learning_rate=0.9");
    place.refuses(
        &[&["train", "--out", "run"][..], &other].concat(),
        &["run", "already"],
    );
}

#[test]
fn what_is_no_run_is_not_resumed() {
    let place = Place::new("no-run");
    place.write("folder/notes.txt", "not a run");
    place.write("file", "not a run");
    place.refuses(
        &["train", "--resume", "folder"],
        &["folder", "manifest.json"],
    );
    place.refuses(
        &["train", "synthetic", "--resume", "folder"],
        &["folder", "manifest.json"],
    );
    place.refuses(&["train", "--resume", "file"], &["file"]);
    place.refuses(&["train", "--resume", "nowhere"], &["no run in nowhere"]);
    place.refuses(&["evaluate", "folder"], &["folder", "manifest.json"]);
    place.refuses(&["evaluate", "nowhere"], &["nowhere"]);
}

#[test]
fn a_run_is_not_resumed_with_another_experiment() {
    let (place, _run) = short_run("other-experiment");
    let resume = ["train", "synthetic", "--resume", "run"];
    place.refuses(
        &resume,
        &["run", "iterations = 1000", "iterations = 20", "--out"],
    );
    let other = ["--set", "train.learning_rate=0.2"];
    let args = [&resume[..], &SHORT, &other].concat();
    place.refuses(
        &args,
        &["run", "learning_rate = 0.2", "learning_rate = 0.1"],
    );
    place.succeeds(&[&resume[..], &SHORT].concat());
}

#[test]
fn a_damaged_manifest_is_named() {
    let (place, run) = short_run("bad-manifest");
    let whole = run.text("manifest.json");
    let damage: [(&str, String); 6] = [
        ("empty", String::new()),
        ("cut", whole[..whole.len() / 2].into()),
        ("no JSON", "seed = 42\n".into()),
        ("another object", "{}".into()),
        ("a list", "[1, 2]".into()),
        (
            "a wrong type",
            whole.replacen("\"fingerprint\": \"", "\"fingerprint\": 7, \"x\": \"", 1),
        ),
    ];
    for (what, text) in damage {
        eprintln!("{what}");
        fs::write(run.file("manifest.json"), text).unwrap();
        for args in [
            &["train", "--resume", "run"][..],
            &["evaluate", "run"],
            &["data", "export", "run", "--out", "e.npz"],
            &["train", "run", "--out", "again"],
        ] {
            place.refuses(args, &["run/manifest.json", "damaged"]);
        }
    }
}

#[test]
fn a_manifest_whose_experiment_cannot_be_is_named() {
    let (place, run) = short_run("bad-experiment");
    for (from, to) in [
        (
            "\"iterations\": 20,\n      \"learning",
            "\"iterations\": 15,\n      \"learning",
        ),
        ("\"local_interval\"", "\"lokal_interval\""),
    ] {
        let whole = run.text("manifest.json");
        assert!(whole.contains(from), "{whole}");
        fs::write(run.file("manifest.json"), whole.replacen(from, to, 1)).unwrap();
        for args in [&["train", "--resume", "run"][..], &["evaluate", "run"]] {
            place.refuses(args, &["run/manifest.json"]);
        }
        fs::write(run.file("manifest.json"), whole).unwrap();
    }
}

#[test]
fn a_manifest_that_was_edited_is_not_gone_on_with() {
    let (place, run) = short_run("edited-manifest");
    run.edit_manifest(|m| m["experiment"]["train"]["learning_rate"] = 0.2.into());
    place.refuses(
        &["train", "--resume", "run"],
        &["run", "different experiments"],
    );
    run.edit_manifest(|m| {
        m["experiment"]["train"]["learning_rate"] = 0.1.into();
        m["data"]["fingerprint"] = "00000000000000000000000000000000".into();
    });
    place.refuses(
        &["train", "--resume", "run"],
        &["run", "fingerprint", "--data-dir"],
    );
}

#[test]
fn a_cut_or_foreign_checkpoint_is_named() {
    let (place, run) = short_run("bad-checkpoint");
    let whole = fs::read(run.checkpoint()).unwrap();
    let name = "checkpoint/state.safetensors";
    for length in [
        0,
        1,
        7,
        8,
        9,
        100,
        whole.len() / 2,
        whole.len() - 4,
        whole.len() - 1,
    ] {
        fs::write(run.checkpoint(), &whole[..length]).unwrap();
        place.refuses(&["train", "--resume", "run"], &[name, "damaged"]);
    }
    let longer = [&whole[..], b"more"].concat();
    for bytes in [
        &longer[..],
        b"garbage",
        &[0xff; 64],
        &run.bytes("model.safetensors"),
    ] {
        fs::write(run.checkpoint(), bytes).unwrap();
        place.refuses(&["train", "--resume", "run"], &[name, "damaged"]);
    }
    fs::remove_file(run.checkpoint()).unwrap();
    place.refuses(&["train", "--resume", "run"], &[name]);

    // The checkpoint of another model.
    let wide = [
        "--set",
        "model.device=[{ linear = { out = 5 } }]",
        "--out",
        "wide",
    ];
    place.succeeds(&[&["train"][..], &SHORT, &wide].concat());
    fs::copy(Run::at(&place, "wide").checkpoint(), run.checkpoint()).unwrap();
    place.refuses(&["train", "--resume", "run"], &["run"]);
    // The checkpoint of the same model in another experiment.
    let other = ["--set", "train.learning_rate=0.2", "--out", "other"];
    place.succeeds(&[&["train"][..], &SHORT, &other].concat());
    fs::copy(Run::at(&place, "other").checkpoint(), run.checkpoint()).unwrap();
    place.refuses(
        &["train", "--resume", "run"],
        &["run", "different experiments"],
    );
}

/// A run resumes to the bit or not at all: a byte that a disk has changed must not become part of a model.
#[test]
fn a_checkpoint_with_one_changed_byte_is_not_gone_on_with() {
    let (place, run) = short_run("changed-byte");
    let whole = fs::read(run.checkpoint()).unwrap();
    copy(&run.0, &place.join("before"));
    let before = Run::at(&place, "before");
    let mut complaints = Vec::new();
    for i in 0..40 {
        let at = i * whole.len() / 40 + i % 3;
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::remove_dir_all(&run.0).unwrap();
        copy(&before.0, &run.0);
        fs::write(run.checkpoint(), bytes).unwrap();
        let ran = finish(selvedge(place.path()).args(["train", "--resume", "run"]));
        if ran.complaint(2).is_none() {
            continue;
        }
        let same = [
            "model.safetensors",
            "ledger.csv",
            "metrics.jsonl",
            "best.safetensors",
        ]
        .iter()
        .all(|name| fs::read(run.file(name)).ok() == Some(before.bytes(name)));
        if ran.complaint(0).is_some() || !same {
            let what = if same {
                "the same result"
            } else {
                "another result"
            };
            complaints.push(format!(
                "byte {at} of {}: {:?}, {what}",
                whole.len(),
                ran.status
            ));
        }
    }
    let count = complaints.len();
    assert!(
        complaints.is_empty(),
        "{count} of 40:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn a_damaged_model_is_not_evaluated() {
    let (place, run) = short_run("bad-model");
    let whole = run.bytes("model.safetensors");
    for bytes in [
        &whole[..0],
        &whole[..100],
        &whole[..whole.len() - 4],
        b"garbage",
        &[0xff; 64],
    ] {
        fs::write(run.file("model.safetensors"), bytes).unwrap();
        place.refuses(
            &["evaluate", "run", "--last"],
            &["run/model.safetensors", "damaged"],
        );
    }
    for (layers, parts) in [
        (
            "[{ linear = { out = 5 } }]",
            ["combined.0.weight", "[16, 21]", "[16, 32]"],
        ),
        (
            "[{ linear = { out = 16 } }, \"tanh\", { linear = { out = 5 } }]",
            ["combined.0.weight", "[16, 21]", "[16, 32]"],
        ),
        (
            "[\"tanh\"]",
            ["has no tensor", "device.0", "model.safetensors"],
        ),
    ] {
        let set = format!("model.device={layers}");
        place.succeeds(&[&["train", "--out", "other", "--set", &set][..], &SHORT].concat());
        fs::copy(
            place.join("other/model.safetensors"),
            run.file("model.safetensors"),
        )
        .unwrap();
        place.refuses(&["evaluate", "run", "--last"], &parts);
        fs::remove_dir_all(place.join("other")).unwrap();
    }
    fs::remove_file(run.file("model.safetensors")).unwrap();
    place.refuses(
        &["evaluate", "run", "--last"],
        &["run", "model.safetensors", "--resume run"],
    );
}

#[test]
fn a_second_process_is_refused_and_disturbs_nothing() {
    let place = Place::new("two-processes");
    place.write("mixed.toml", mixed_experiment(7200));
    place.succeeds(&["train", "mixed.toml", "--out", "whole"]);
    let run = Run::at(&place, "run");
    let args = ["train", "mixed.toml", "--out", "run"];
    let mut first = Live::start(selvedge(place.path()).args(args));
    first.wait_until("begun", Duration::from_secs(20), || {
        run.evaluations_so_far() > 0
    });
    for args in [
        &["train", "--resume", "run"][..],
        &["train", "mixed.toml", "--resume", "run"],
        &["train", "mixed.toml", "--out", "run"],
    ] {
        let second = finish(selvedge(place.path()).args(args));
        assert!(first.is_running(), "the first ended too soon for this test");
        second.refused(&["run"]);
    }
    let refused = finish(selvedge(place.path()).args(["train", "--resume", "run"]));
    if first.is_running() {
        refused.refused(&["another process", "run"]);
    }
    first.finish().succeeded();
    same_results(&Run::at(&place, "whole"), &run, "with a second process");
    let before = snapshot(&Run::at(&place, "whole").0);
    place.succeeds(&["train", "--resume", "run"]);
    unchanged(
        &before,
        &snapshot(&Run::at(&place, "whole").0),
        "another run",
    );
}
