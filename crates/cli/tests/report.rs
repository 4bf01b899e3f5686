//! Reports through the binary: what is written, what is refused, and how the page behaves in a real browser.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "report/browser.rs"]
mod browser;

use common::disk::Disk;
use common::run::{Run, append};
use common::{Place, says, small_experiment, words};
use std::fs;

fn small(name: &str) -> Place {
    let place = Place::new(name);
    place.write("small.toml", small_experiment(4, 30, 10));
    place
}

/// Trains the small experiment with changes.
fn train(place: &Place, out: &str, args: &[&str]) -> Run {
    let mut all = vec!["train", "small.toml", "--out", out];
    all.extend(args);
    place.succeeds(&all);
    Run::at(place, out)
}

/// The folder of a comparison, with one variant whose runs are not there.
fn comparison(place: &Place, labels: [&str; 2]) {
    for (folder, rate) in [("slow", "0.05"), ("fast", "0.4")] {
        let rate = format!("train.learning_rate={rate}");
        let out = format!("cmp/{folder}");
        train(place, &out, &["--seeds", "3", "--set", &rate]);
    }
    let variant = |label: &str, folder: &str| serde_json::json!({ "label": label, "folder": folder, "set": [] });
    let note = serde_json::json!({
        "name": "rates", "kind": "compare", "experiment": {}, "seeds": [42, 43, 44],
        "variants": [variant(labels[0], "slow"), variant(labels[1], "fast"), variant("later", "later")],
    });
    place.write("cmp/comparison.json", note.to_string());
}

#[test]
fn one_run_is_a_page_of_its_own() {
    let place = small("report-one");
    train(&place, "run", &[]);
    let ran = place.succeeds(&["report", "run"]);
    assert!(
        ran.stdout.starts_with("Report  run/report.html ("),
        "{}",
        ran.stdout
    );
    let page = fs::read_to_string(place.join("run/report.html")).unwrap();
    says(
        &page,
        &[
            "hsgd on synthetic, with seed 42.",
            "Each line is one seed",
            "Where the bytes went",
            "device → edge",
            "Labels by group",
            "The full experiment",
            "best on validation",
            "learning_rate = 0.2",
            "finished",
        ],
    );
    for metric in [
        "loss",
        "loss_test",
        "auc",
        "f1",
        "precision",
        "recall",
        "accuracy",
    ] {
        for axis in ["iterations", "bytes", "seconds"] {
            let chart = format!("data-metric=\"{metric}\" data-axis=\"{axis}\"");
            assert_eq!(
                page.matches(&chart).count(),
                2,
                "{chart}, linear and logarithmic"
            );
        }
    }
    assert!(
        !page.contains("src=") && !page.contains("@import"),
        "nothing is loaded"
    );
    // A run goes on and is evaluated as before, with a page in its folder.
    place.succeeds(&["evaluate", "run"]);
    place.succeeds(&["train", "--resume", "run"]);
    assert!(place.join("run/report.html").is_file());
}

#[test]
fn labels_of_groups_are_noted_and_old_runs_still_read() {
    let place = small("report-labels");
    let run = train(&place, "run", &[]);
    let data = run.manifest()["data"].clone();
    assert_eq!(data["groups"].as_array().unwrap().len(), 4);
    let labels: Vec<Vec<u64>> = serde_json::from_value(data["labels"].clone()).unwrap();
    assert_eq!(
        labels.iter().flatten().sum::<u64>(),
        data["training_samples"].as_u64().unwrap()
    );
    run.edit_manifest(|manifest| {
        let data = manifest["data"].as_object_mut().unwrap();
        data.remove("labels");
        data.remove("groups");
    });
    place.succeeds(&["report", "run"]);
    let page = fs::read_to_string(place.join("run/report.html")).unwrap();
    assert!(!page.contains("Labels by group"));
}

#[test]
fn seeds_are_one_series_and_runs_are_named_by_what_differs() {
    let place = small("report-seeds");
    train(&place, "plain", &["--seeds", "3"]);
    train(
        &place,
        "lean",
        &["--seeds", "2", "--set", "train.participation=0.1"],
    );
    let ran = place.succeeds(&words("report plain lean plain/seed-42 --svg figures"));
    assert!(
        ran.stdout.contains("Report  report.html (")
            && ran.stdout.contains("Charts  figures (43 files)"),
        "{}",
        ran.stdout
    );
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    says(
        &page,
        &[
            "participation=0.2",
            "participation=0.1",
            "2 variants on synthetic that differ in train.participation",
            "or the range of two seeds",
        ],
    );
    assert!(
        !page.contains("participation=0.2, "),
        "one key is all that differs"
    );
    let chart = fs::read_to_string(place.join("figures/auc-bytes.svg")).unwrap();
    assert!(
        chart.starts_with("<svg xmlns=")
            && chart.contains("fill=\"#ffffff\"")
            && chart.contains("bytes sent, mean per group (MB)")
    );
    assert!(
        chart.contains("participation=0.1</text>"),
        "a file of its own has a legend"
    );
}

#[test]
fn an_interrupted_comparison_says_what_is_missing() {
    let place = small("report-comparison");
    comparison(&place, ["slow", "fast"]);
    fs::remove_dir_all(place.join("cmp/fast/seed-44")).unwrap();
    let ran = place.succeeds(&["report", "cmp"]);
    assert!(
        ran.stderr
            .contains("cmp: 5 of 9 runs have begun, none of `later`"),
        "{}",
        ran.stderr
    );
    let page = fs::read_to_string(place.join("cmp/report.html")).unwrap();
    assert!(page.contains("cmp: 5 of 9 runs have begun, none of `later`."));
    assert!(page.contains("<span>slow</span>") && page.contains("<span>fast</span>"));
}

#[test]
fn a_run_that_is_being_written_can_be_seen() {
    let place = small("report-running");
    let run = train(&place, "run", &[]);
    run.edit_manifest(|manifest| manifest["ending"] = serde_json::Value::Null);
    run.forget_digests();
    append(&run.file("metrics.jsonl"), b"{\"t\":210,\"p\":10,\"q\"");
    fs::remove_file(run.file("ledger.csv")).unwrap();
    place.succeeds(&["report", "run"]);
    let page = fs::read_to_string(place.join("run/report.html")).unwrap();
    assert!(page.contains("One run is still training, or was killed: run."));
    assert!(!page.contains("Where the bytes went"));
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let place = small("report-refused");
    let run = train(&place, "run", &[]);
    let other = train(&place, "other", &["--set", "data.noise=0.25"]);
    place.refuses(&["report", "nowhere"], &["nowhere", "no such folder"]);
    place.refuses(&["report", "."], &["not a run directory", "manifest.json"]);
    place.refuses(
        &["report", "run", "other"],
        &["run and other", "data.noise", "0.5", "0.25", "same data"],
    );
    place.refuses(
        &["report", "run", "--out", "no/such/place.html"],
        &["cannot write no/such/place.html"],
    );
    place.refuses(
        &["report", "run", "--out", "other"],
        &["cannot write", "folder"],
    );
    place.refuses(
        &["report", "run", "--svg", "small.toml", "--out", "/dev/null"],
        &["cannot write"],
    );
    let metrics = run.text("metrics.jsonl");
    fs::write(
        run.file("metrics.jsonl"),
        metrics.replacen("\"p\":10", "\"p\":ten", 2),
    )
    .unwrap();
    place.refuses(
        &["report", "run"],
        &["run/metrics.jsonl, line 1 is damaged"],
    );
    fs::write(run.file("metrics.jsonl"), "").unwrap();
    place.refuses(&["report", "run"], &["metrics.jsonl", "SHA-256"]);
    run.forget_digests();
    place.refuses(&["report", "run"], &["nothing has been evaluated yet"]);
    fs::write(
        other.file("ledger.csv"),
        "link,kind,direction,messages,bytes\nx\n",
    )
    .unwrap();
    place.refuses(
        &["report", "other"],
        &["other/ledger.csv, line 2 is damaged"],
    );
    place.write("seeds/seeds.json", "{\"seeds\":[");
    place.refuses(&["report", "seeds"], &["seeds.json is damaged"]);
}

#[test]
fn a_full_disk_leaves_the_old_page() {
    let place = small("report-full");
    train(&place, "run", &[]);
    let Some(_disk) = Disk::mount(&place.join("disk"), 64) else {
        eprintln!("skipped: a_full_disk_leaves_the_old_page needs to mount a small disk");
        return;
    };
    place.succeeds(&["evaluate", "run", "--html", "disk/report.html"]);
    let old = fs::read(place.join("disk/report.html")).unwrap();
    place.refuses(
        &["report", "run", "--out", "disk/report.html"],
        &["cannot write", "No space left"],
    );
    assert!(fs::read(place.join("disk/report.html")).unwrap() == old);
}

#[test]
fn a_thousand_groups_and_a_million_devices_fit_on_a_page() {
    let place = small("report-million");
    train(
        &place,
        "run",
        &words("--set data.groups=200 --set data.devices=10 --set train.iterations=20"),
    );
    let run = Run::at(&place, "run");
    // As the experiment `million` would note it.
    run.edit_manifest(|manifest| {
        manifest["sizes"]["devices"] = serde_json::json!(vec![1000; 1000]);
        manifest["data"]["labels"] = serde_json::json!(vec![[400, 600]; 1000]);
        manifest["data"]["groups"] = serde_json::json!(
            (0..1000)
                .map(|m| format!("hospital {m}"))
                .collect::<Vec<_>>()
        );
    });
    place.succeeds(&["report", "run"]);
    let page = fs::read_to_string(place.join("run/report.html")).unwrap();
    says(
        &page,
        &["1,000,000", "The first 40 of 1,000 groups", "hospital 39"],
    );
    assert!(!page.contains("hospital 40"));
}

#[test]
fn long_runs_are_thinned_out_and_say_so() {
    let place = small("report-long");
    let run = train(&place, "run", &[]);
    let line = run.metrics()[1].clone();
    let lines: String = (0..20_000u64)
        .map(|i| {
            let mut line = line.clone();
            line["t"] = (10 * i).into();
            line["bytes_exact"] = (1000.0 * i as f64).into();
            format!("{line}\n")
        })
        .collect();
    fs::write(run.file("metrics.jsonl"), lines).unwrap();
    run.forget_digests();
    place.succeeds(&["report", "run"]);
    let page = fs::read_to_string(place.join("run/report.html")).unwrap();
    assert!(page.contains("Curves show 300 of 20,000 evaluations"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}
