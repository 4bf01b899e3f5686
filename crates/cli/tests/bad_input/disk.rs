//! Disks that are full or cannot be written to, and numbers that are none any more.

use crate::common::disk::Disk;
use crate::common::run::{Run, number, same_results};
use crate::common::{Place, says};
use std::fs;

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let place = Place::new("unwritable");
    place.write("file", "in the way");
    let short = ["--set", "train.iterations=10"];
    for out in ["file/run", "file/deeper/run"] {
        place.refuses(&[&["train", "--out", out][..], &short].concat(), &["file"]);
        let seeds = ["train", "--seeds", "2", "--out", out];
        place.refuses(&[&seeds[..], &short].concat(), &[out]);
    }
    place.refuses(&["data", "export", "--out", "file/e.npz"], &["file/e.npz"]);
    place.refuses(
        &["data", "export", "--out", "nowhere/e.npz"],
        &["nowhere/e.npz"],
    );
    fs::create_dir(place.join("folder")).unwrap();
    place.refuses(&["data", "export", "--out", "folder"], &["folder"]);
}

const TRAIN: [&str; 3] = ["train", "small.toml", "--trace"];

/// A run that had all the room it needs, and how many kilobytes it takes.
fn roomy_run(place: &Place) -> (Run, u32) {
    place.write(
        "small.toml",
        "[data]\nvalidation = 0.1\n[train]\niterations = 2000\n",
    );
    place.succeeds(&[&TRAIN[..], &["--out", "whole"]].concat());
    let whole = Run::at(place, "whole");
    let files = fs::read_dir(&whole.0).unwrap();
    let bytes: u64 = files.map(|e| e.unwrap().metadata().unwrap().len()).sum();
    (whole, (bytes / 1024) as u32)
}

#[test]
fn a_full_disk_is_named_and_with_more_room_the_run_ends_the_same() {
    let place = Place::new("full-disk");
    let (whole, kilobytes) = roomy_run(&place);
    let mut stopped = 0;
    // From no room for the first files to nearly enough: the disk fills up at different files.
    let ends = [0, 8, 16, 24].map(|more| kilobytes + more);
    for size in [8, 16, 24, 32, 40, 48, 64, 200].into_iter().chain(ends) {
        let Some(disk) = Disk::mount(&place.join("disk"), size) else {
            eprintln!("skipped: mounting a small disk needs root");
            return;
        };
        let run = Run::at(&place, "disk/run");
        let ran = place.selvedge(&[&TRAIN[..], &["--out", "disk/run"]].concat());
        if ran.code() != Some(0) {
            stopped += 1;
            ran.refused(&["cannot", "disk/", "No space left"]);
            let left: Vec<_> = fs::read_dir(place.join("disk"))
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            let begun = usize::from(run.0.exists());
            assert_eq!(left.len(), begun, "{size}k: {left:?}");
        }
        disk.enlarge();
        place.succeeds(&[&TRAIN[..], &["--resume", "disk/run"]].concat());
        same_results(&whole, &run, &format!("a disk of {size}k"));
    }
    assert!(stopped >= 8, "the disks were too large: {stopped}");
}

#[test]
fn a_disk_that_fills_up_anywhere_says_how_to_go_on() {
    let place = Place::new("full-at-the-end");
    let (_, kilobytes) = roomy_run(&place);
    let mut complaints = Vec::new();
    for size in [
        200,
        kilobytes,
        kilobytes + 8,
        kilobytes + 16,
        kilobytes + 24,
    ] {
        let Some(_disk) = Disk::mount(&place.join("disk"), size) else {
            eprintln!("skipped: mounting a small disk needs root");
            return;
        };
        let ran = place.selvedge(&[&TRAIN[..], &["--out", "disk/run"]].concat());
        if ran.code() == Some(2) && !ran.stderr.contains("--resume disk/run") {
            complaints.push(format!("{size}k: {}", ran.stderr));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_full_disk_leaves_an_export_as_it_was() {
    let place = Place::new("full-export");
    let Some(_disk) = Disk::mount(&place.join("disk"), 64) else {
        eprintln!("skipped: mounting a small disk needs root");
        return;
    };
    place.write("disk/e.npz", "");
    let export = ["data", "export", "--out", "disk/e.npz"];
    place.refuses(&export, &["disk/e.npz", "No space left"]);
}

#[test]
fn a_diverging_run_says_when_with_what_and_what_to_try_and_keeps_a_good_model() {
    let place = Place::new("diverged");
    let set = ["--set", "train.learning_rate=1e6", "--out", "run"];
    let ran = place.selvedge(&[&["train"][..], &set].concat());
    let ran = ran.refused(&[
        "diverged",
        "1000000",
        "--set train.learning_rate=250000",
        "model.safetensors",
    ]);
    let run = Run::at(&place, "run");
    let ending = run.manifest()["ending"].clone();
    assert_eq!(ending["kind"], "diverged");
    let iteration = format!("iteration {}", ending["t"]);
    says(&ran.stderr, &[&iteration]);
    for name in [
        "initial.safetensors",
        "model.safetensors",
        "best.safetensors",
    ] {
        for (tensor, t) in run.tensors(name) {
            assert!(t.values.iter().all(|v| v.is_finite()), "{tensor} in {name}");
        }
    }
    for line in run.metrics() {
        assert!(number(&line, "loss_train").is_finite(), "{line}");
    }
    place.succeeds(&["evaluate", "run"]);
    // Going on gives the same again, and no second chance to lose the good model.
    let model = run.bytes("model.safetensors");
    place
        .selvedge(&["train", "--resume", "run"])
        .refused(&["diverged", &iteration]);
    assert!(model == run.bytes("model.safetensors"));
}
