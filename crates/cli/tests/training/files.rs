//! The files of a run directory.

use crate::common::Place;
use crate::common::run::{Run, number, same_results};
use serde_json::Value;
use std::collections::BTreeMap;

/// The default run, with a trace.
fn default_run(name: &str) -> (Place, Run) {
    let place = Place::new(name);
    place.succeeds(&["train", "--trace"]);
    let run = Run::at(&place, "runs/synthetic-42");
    (place, run)
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_first_run_needs_nothing_and_leaves_every_file() {
    let (place, run) = default_run("first-run");
    assert_eq!(names(place.path()), ["runs"], "and nothing else");
    assert_eq!(names(&place.join("runs")), ["synthetic-42"]);
    assert_eq!(
        names(&run.0),
        [
            "best.safetensors",
            "checkpoint",
            "initial.safetensors",
            "inputs.json",
            "ledger.csv",
            "manifest.json",
            "metrics.jsonl",
            "model.safetensors",
            "trace.jsonl",
            "validation.safetensors"
        ]
    );
    assert_eq!(run.checkpoint_t(), Some(1000));
}

#[test]
fn the_manifest_says_what_was_run_on_what() {
    let (place, run) = default_run("manifest");
    let manifest = run.manifest();
    assert_eq!(manifest["selvedge"], env!("CARGO_PKG_VERSION"));
    let train = &manifest["experiment"]["train"];
    assert_eq!(
        (&train["iterations"], &train["participation"]),
        (&1000.into(), &0.1.into())
    );
    assert_eq!(manifest["experiment"]["seed"], 42);
    assert_eq!(manifest["experiment"]["data"]["set"], "synthetic");
    let available = manifest["cpu"]["available"].as_array().unwrap();
    assert!(available.contains(&manifest["cpu"]["instructions"]));

    // By hand: 16 × 16 + 16; 32 × 16 + 16 and 16 × 2 + 2; a tenth of 200 devices.
    let sizes = &manifest["sizes"];
    for (key, value) in [
        ("n0", 562),
        ("n1", 272),
        ("n2", 272),
        ("d1", 16),
        ("d2", 16),
        ("groups", 10),
    ] {
        assert_eq!(sizes[key], value, "{key}");
    }
    assert_eq!(sizes["devices"], Value::from(vec![200; 10]));
    assert_eq!(sizes["selected"], Value::from(vec![20; 10]));
    assert_eq!(manifest["timing"]["iterations"], 1000);
    assert!(number(&manifest["timing"], "seconds") > 0.0);

    let inspected = place.succeeds(&["data", "inspect", "--json"]);
    let inspected: Value = serde_json::from_str(&inspected.stdout).unwrap();
    assert_eq!(manifest["data"]["fingerprint"], inspected["fingerprint"]);
    let other = place.succeeds(&["data", "inspect", "--json", "--set", "seed=43"]);
    let other: Value = serde_json::from_str(&other.stdout).unwrap();
    assert_ne!(manifest["data"]["fingerprint"], other["fingerprint"]);
}

#[test]
fn metrics_have_every_key_and_show_that_it_learns() {
    let (_place, run) = default_run("metrics");
    let lines = run.metrics();
    for line in &lines {
        for key in [
            "t",
            "p",
            "q",
            "eta",
            "loss_train",
            "loss_test",
            "auc",
            "precision",
            "recall",
            "f1",
            "accuracy",
            "bytes_paper",
            "bytes_exact",
            "seconds",
        ] {
            assert!(number(line, key).is_finite(), "{key} in {line}");
        }
        assert_eq!((&line["p"], &line["q"]), (&10.into(), &5.into()));
    }
    // About fifty evaluations of a thousand iterations, at multiples of P.
    let times: Vec<u64> = lines.iter().map(|l| l["t"].as_u64().unwrap()).collect();
    assert_eq!(times, (0..=1000).step_by(20).collect::<Vec<_>>());
    for key in ["bytes_paper", "bytes_exact", "seconds"] {
        assert_eq!(number(&lines[0], key), 0.0, "{key} at t = 0");
        assert!(lines.is_sorted_by(|a, b| number(a, key) < number(b, key)));
    }
    let (first, last) = (&lines[0], &lines[50]);
    for key in ["loss_train", "loss_test"] {
        assert!(number(last, key) < 0.7 * number(first, key), "{key}");
    }
    assert!(number(last, "auc") > 0.85, "{last}");
    assert!(number(last, "accuracy") > 0.75, "{last}");
}

/// The design's closed forms for bytes and seconds, of every evaluation.
#[test]
fn bytes_and_seconds_are_those_of_the_closed_forms() {
    let (_place, run) = default_run("closed-forms");
    let (n0, n1, n2, d1, d2, a) = (562.0, 272.0, 272.0, 16.0, 16.0, 20.0);
    let (p, q, w) = (10.0, 5.0, 4.0);
    let (mu, md, fu, fd) = (14e6, 110e6, 74e6, 204e6);
    let local = 32.0 * n2 * (1.0 / mu + 1.0 / md);
    let up = 32.0 * d2 / mu + 32.0 * a * d2 / fu;
    let down = 32.0 * (n0 + a * d1) / fu + 32.0 * (n0 + d1) / md;
    let global = 32.0 * f64::max(n0 + n1, n2) * (1.0 / fu + 1.0 / fd);
    let interval = global + (p / q) * (local + f64::max(up, down)) + p * 0.05;
    for line in run.metrics() {
        let t = number(&line, "t");
        let exact = t / q * w * (2.0 * a * n2 + 2.0 * a * d2 + n0 + a * d1 + a * (n0 + d1))
            + t / p * 2.0 * w * (n0 + n1 + n2);
        let paper = w * (t / p * n1 + t / q * (a * n2 + n0 + a * d1 + a * d2));
        assert_eq!(number(&line, "bytes_exact"), exact, "t {t}");
        assert_eq!(number(&line, "bytes_paper"), paper, "t {t}");
        let seconds = t / p * interval;
        let difference = (number(&line, "seconds") - seconds).abs();
        assert!(difference <= 1e-9 * seconds, "t {t}: {line}, not {seconds}");
    }
}

#[test]
fn the_ledger_adds_up_to_the_metrics() {
    let (_place, run) = default_run("ledger");
    let ledger = run.ledger();
    let bytes: u64 = ledger.iter().map(|line| line.4).sum();
    let last = run.metrics().pop().unwrap();
    assert_eq!(bytes as f64, number(&last, "bytes_exact") * 10.0);

    // Messages by hand: 200 intervals of 10 groups with 20 devices, 100 global aggregations.
    let by_link = |wanted: &str| -> BTreeMap<(&str, &str), u64> {
        ledger
            .iter()
            .filter(|line| line.0 == wanted)
            .map(|line| ((line.1.as_str(), line.2.as_str()), line.3))
            .collect()
    };
    let all = |keys: &[(&'static str, &'static str)], messages: u64| -> BTreeMap<_, _> {
        keys.iter().map(|key| (*key, messages)).collect()
    };
    let device = [
        ("theta0", "down"),
        ("theta2", "up"),
        ("theta2", "down"),
        ("zeta1", "down"),
        ("zeta2", "up"),
    ];
    assert_eq!(by_link("device-edge"), all(&device, 200 * 10 * 20));
    let edge = [("theta0", "down"), ("zeta1", "down"), ("zeta2", "up")];
    assert_eq!(by_link("edge-hospital"), all(&edge, 200 * 10));
    let hospital = [
        ("theta0", "up"),
        ("theta0", "down"),
        ("theta1", "up"),
        ("theta1", "down"),
    ];
    assert_eq!(by_link("hospital-cloud"), all(&hospital, 100 * 10));
    let cloud = [("theta2", "up"), ("theta2", "down")];
    assert_eq!(by_link("edge-cloud"), all(&cloud, 100 * 10));
    assert_eq!(ledger.len(), 14, "{ledger:?}");
}

#[test]
fn weights_have_pytorchs_names_and_shapes() {
    let place = Place::new("shapes");
    place.write(
        "stacks.toml",
        r#"
[data]
groups = 2
devices = 10
features = [20, 33]
classes = 4
[train]
iterations = 10
[model]
hospital = [{ window = { size = 4 } }, { conv1d = { out = 6, size = 3, padding = 1 } }, "maxpool", { gru = { hidden = 5 } }]
device   = [{ window = { size = 8 } }, { lstm = { hidden = 7 } }]
combined = [{ linear = { out = 9 } }, "relu", { linear = { out = 4 } }]
"#,
    );
    place.succeeds(&["train", "stacks.toml", "--out", "run"]);
    let run = Run::at(&place, "run");
    let shapes = |name: &str| -> BTreeMap<String, Vec<usize>> {
        let tensors = run.tensors(name).into_iter();
        tensors.map(|(name, t)| (name, t.shape)).collect()
    };
    let expected: BTreeMap<String, Vec<usize>> = [
        ("combined.0.weight", vec![9, 12]),
        ("combined.0.bias", vec![9]),
        ("combined.2.weight", vec![4, 9]),
        ("combined.2.bias", vec![4]),
        ("hospital.1.weight", vec![6, 4, 3]),
        ("hospital.1.bias", vec![6]),
        ("hospital.3.weight_ih", vec![15, 6]),
        ("hospital.3.weight_hh", vec![15, 5]),
        ("hospital.3.bias", vec![15]),
        ("device.1.weight_ih", vec![28, 8]),
        ("device.1.weight_hh", vec![28, 7]),
        ("device.1.bias", vec![28]),
    ]
    .map(|(name, shape)| (name.to_owned(), shape))
    .into();
    assert_eq!(shapes("initial.safetensors"), expected);
    assert_eq!(shapes("model.safetensors"), expected);
    let (initial, trained) = (
        run.tensors("initial.safetensors"),
        run.tensors("model.safetensors"),
    );
    for (name, tensor) in &trained {
        assert!(tensor.values.iter().all(|v| v.is_finite()), "{name}");
        assert_ne!(tensor, &initial[name], "{name} was not trained");
    }
}

#[test]
fn the_trace_lists_who_took_part() {
    let (place, run) = default_run("trace");
    let mut expected = Vec::new();
    for t in (0..1000).step_by(5) {
        expected.extend((0..10).map(|group| (t, group)));
    }
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::new();
    for line in run.lines("trace.jsonl") {
        found.push((line["t"].as_u64().unwrap(), line["group"].as_u64().unwrap()));
        let devices = line["devices"].as_array().unwrap();
        let devices: Vec<u64> = devices.iter().map(|d| d.as_u64().unwrap()).collect();
        assert_eq!(devices.len(), 20);
        assert!(devices.is_sorted_by(|a, b| a < b) && devices[19] < 200);
        assert!(seen.insert(devices), "a subset for the second time: {line}");
    }
    assert_eq!(found, expected);

    place.succeeds(&["train", "--out", "untraced"]);
    let untraced = Run::at(&place, "untraced");
    assert!(!untraced.file("trace.jsonl").exists());
    std::fs::remove_file(run.file("trace.jsonl")).unwrap();
    same_results(&run, &untraced, "a trace changes nothing");
}
