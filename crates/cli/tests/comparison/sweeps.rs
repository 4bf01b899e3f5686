//! Sweeps over any keys: how variants are combined, named and kept apart.

use crate::common::run::Run;
use crate::common::{Place, says, words};
use crate::{SHORT, runs, stamped};
use serde_json::Value;
use std::fs;

/// The labels and folders of the comparison in a folder.
fn variants(place: &Place, folder: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(place.join(folder).join("comparison.json")).unwrap();
    let note: Value = serde_json::from_str(&text).unwrap();
    let word = |v: &Value, key: &str| v[key].as_str().unwrap().to_owned();
    let variants = note["variants"].as_array().unwrap().iter();
    variants
        .map(|v| (word(v, "label"), word(v, "folder")))
        .collect()
}

fn labels(place: &Place, folder: &str) -> Vec<String> {
    variants(place, folder)
        .into_iter()
        .map(|(label, _)| label)
        .collect()
}

#[test]
fn every_value_of_one_key_meets_every_value_of_the_other() {
    let place = Place::new("sweep-two");
    let args = words("sweep --over data.noise=0.25,1.0 --over data.groups=3,5 --seeds 2");
    let args = [
        &args[..],
        &SHORT,
        &["--target", "auc=0.7", "--out", "swept"],
    ]
    .concat();
    let ran = place.succeeds(&args);
    let expected = [
        "noise=0.25 groups=3",
        "noise=0.25 groups=5",
        "noise=1.0 groups=3",
        "noise=1.0 groups=5",
    ];
    assert_eq!(labels(&place, "swept"), expected);
    let page = fs::read_to_string(place.join("swept/report.html")).unwrap();
    for label in expected {
        says(&ran.stdout, &[&format!("\n  {label}  ")]);
        assert!(page.contains(&format!("<span>{label}</span>")), "{label}");
    }
    for (label, folder) in variants(&place, "swept") {
        let run = Run::at(&place, &format!("swept/{folder}/seed-43"));
        let data = run.manifest()["experiment"]["data"].clone();
        assert_eq!(
            label,
            format!(
                "noise={:?} groups={}",
                data["noise"].as_f64().unwrap(),
                data["groups"]
            )
        );
        assert_eq!(run.manifest()["experiment"]["seed"], 43);
    }
    assert_eq!(runs(&place.join("swept")).len(), 8);
    // More values of the same keys are added; what is there is not trained again.
    let more = words("sweep --over data.noise=0.25 --over data.groups=3,4 --out swept --seeds 1");
    place.succeeds(&[&more[..], &SHORT].concat());
    assert_eq!(runs(&place.join("swept")).len(), 10);
}

#[test]
fn lists_and_texts_are_values_too() {
    let place = Place::new("sweep-lists");
    // So long that their beginnings alone are the same.
    let layers = |last: u32| {
        let many = "{ linear = { out = 6 } }, \"tanh\", ".repeat(6);
        format!("[{many}{{ linear = {{ out = {last} }} }}]")
    };
    let over = format!("model.device={},{}", layers(5), layers(7));
    let args = ["sweep", "--seeds", "1", "--out", "swept", "--over", &over];
    let args = [
        &args[..],
        &["--over", "train.algorithm=\"hsgd\",jfl"],
        &SHORT,
    ]
    .concat();
    place.succeeds(&args);
    let found = variants(&place, "swept");
    assert_eq!(found.len(), 4);
    let mut widths = Vec::new();
    for (label, folder) in found {
        let experiment =
            Run::at(&place, &format!("swept/{folder}/seed-42")).manifest()["experiment"].clone();
        let layers = experiment["model"]["device"].as_array().unwrap().clone();
        widths.push(layers.last().unwrap()["linear"]["out"].as_u64().unwrap());
        let algorithm = experiment["train"]["algorithm"].as_str().unwrap();
        assert!(label.contains(algorithm), "{label}");
    }
    assert_eq!(widths, [5, 5, 7, 7]);
    let brackets = ["--over", "train.class_weights=[1,2],[2,1]"];
    let args = words("sweep --seeds 1 --out weights --learning-rates 0.1,0.2");
    let ran = place.succeeds(&[&args[..], &brackets, &SHORT].concat());
    assert_eq!(
        labels(&place, "weights"),
        ["class_weights=[1,2]", "class_weights=[2,1]"]
    );
    says(&ran.stdout, &["learning rates tried (seed 1042)"]);
}

#[test]
fn sweeps_over_other_keys_do_not_share_a_folder_that_nobody_named() {
    let place = Place::new("sweep-default");
    let sweep = |over: &'static str, seeds: &'static str| {
        let args = ["sweep", "--seeds", seeds, "--over", over];
        let ran = place.succeeds(&[&args[..], &SHORT].concat());
        ran.stdout.lines().last().unwrap().to_owned()
    };
    let report = |name: &str| format!("Report  runs/{name}/report.html");
    let (q, noise) = ("train.local_interval=1,5", "data.noise=0.1");
    assert_eq!(sweep(q, "1"), report("sweep-synthetic"));
    assert_eq!(sweep(noise, "1"), report("sweep-synthetic-2"));
    assert_eq!(sweep(noise, "2"), report("sweep-synthetic-2"));
    assert_eq!(sweep(q, "2"), report("sweep-synthetic"));
    assert_eq!(
        labels(&place, "runs/sweep-synthetic"),
        ["local_interval=1", "local_interval=5"]
    );
}

#[test]
fn a_run_that_stops_at_its_target_has_come_to_its_end() {
    let place = Place::new("sweep-stop");
    for (over, wanted) in [
        ("stop.loss=0.5,0.6", ["loss=0.5", "loss=0.6"]),
        ("stop.bytes=4e5,5e5", ["bytes=4e5", "bytes=5e5"]),
        ("stop.seconds=1,2.5", ["seconds=1", "seconds=2.5"]),
    ] {
        let out = wanted[0];
        let args = ["sweep", "--seeds", "1", "--out", out, "--over", over];
        let args = [&args[..], &SHORT].concat();
        place.succeeds(&args);
        assert_eq!(labels(&place, out), wanted);
        let done = runs(&place.join(out));
        for run in &done {
            assert_eq!(Run(run.clone()).manifest()["ending"]["kind"], "reached");
        }
        let stamps = stamped(&done);
        place.succeeds(&args);
        assert_eq!(stamps, stamped(&done), "{over}: nothing is trained again");
    }
}
