//! From a trained model to its use: `selvedge predict` and `selvedge evaluate --data` through the binary.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::run::Run;
use common::{Place, says, table_experiment, words};
use serde_json::Value;
use std::fmt::Write;
use std::fs;

/// Patients of two hospitals, `from` to `to`: who is ill has a higher lactate and a faster heart.
fn patients(from: usize, to: usize) -> String {
    let mut text = String::from("patient,site,age,sex,lactate,hr,spo2,ill\n");
    for n in from..to {
        let mut state = 11 + n as u64 * 0x9e37_79b9_7f4a_7c15;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        draw();
        let ill = draw() < 0.3;
        let shift = f64::from(u8::from(ill));
        let (site, sex) = (
            ["north", "south"][n % 2],
            if draw() < 0.5 { "f" } else { "m" },
        );
        writeln!(
            text,
            "p{n},{site},{:.0},{sex},{:.2},{:.0},{:.0},{}",
            30.0 + 50.0 * draw(),
            1.0 + 1.5 * draw() + 0.6 * shift,
            70.0 + 25.0 * draw() + 8.0 * shift,
            92.0 + 8.0 * draw(),
            if ill { "yes" } else { "no" }
        )
        .unwrap();
    }
    text
}

fn experiment() -> String {
    let experiment = table_experiment(
        "path = \"patients.csv\"\ngroups = 2\ntest = 0.2\nvalidation = 0.25",
        "",
        "iterations = 300",
        r#"{ linear = { out = 8 } }, "tanh""#,
    );
    format!("seed = 1\n{experiment}")
}

/// A trained run, whose training data is gone.
fn trained(name: &str) -> Place {
    let place = Place::new(name);
    place.write("patients.csv", patients(0, 600));
    place.write("my.toml", experiment());
    place.succeeds(&["train", "my.toml", "--out", "run"]);
    fs::remove_file(place.join("patients.csv")).unwrap();
    place.write("new.csv", patients(600, 1000));
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The rows of a CSV file without quotes.
fn table(text: &str) -> Vec<Vec<String>> {
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().map(row).collect()
}

#[test]
fn new_patients_get_the_probabilities_that_evaluate_measures() {
    let place = trained("predict");
    let ran = place.succeeds(&["predict", "run", "--input", "new.csv", "--out", "p.csv"]);
    says(
        &ran.stdout,
        &[
            "400 samples",
            "calibrated on",
            "validation samples",
            "p.csv",
        ],
    );
    let written = fs::read_to_string(place.join("p.csv")).unwrap();
    let printed = place
        .succeeds(&["predict", "run", "--input", "new.csv"])
        .stdout;
    assert_eq!(written, printed);
    let rows = table(&written);
    let header = [
        "id",
        "prediction",
        "probability_no",
        "probability_yes",
        "positive",
        "threshold",
        "notes",
    ];
    assert_eq!(rows[0], header);
    let truth = table(&patients(600, 1000));
    assert_eq!(rows.len(), truth.len());
    let mut scores = Vec::new();
    for (row, truth) in rows[1..].iter().zip(&truth[1..]) {
        assert_eq!(row[0], truth[0]);
        let p: [f64; 2] = [row[2].parse().unwrap(), row[3].parse().unwrap()];
        assert!((p[0] + p[1] - 1.0).abs() < 1e-6);
        assert_eq!(row[1], if p[1] > p[0] { "yes" } else { "no" });
        scores.push((p[1], truth[7] == "yes"));
    }
    // All pairs, one by one, are the AUC that `evaluate` says.
    let (mut won, mut pairs) = (0.0, 0.0);
    for (ill, _) in scores.iter().filter(|s| s.1) {
        for (well, _) in scores.iter().filter(|s| !s.1) {
            pairs += 1.0;
            won += if ill > well {
                1.0
            } else {
                f64::from(u8::from(ill == well)) / 2.0
            };
        }
    }
    let evaluated = json(
        &place
            .succeeds(&["evaluate", "run", "--data", "new.csv", "--json"])
            .stdout,
    );
    let data = &evaluated["data"];
    assert!((data["auc"].as_f64().unwrap() - won / pairs).abs() < 1e-9);
    assert!(won / pairs > 0.75, "{}", won / pairs);
    let interval = &data["intervals"]["auc"];
    let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
    assert!(
        low < won / pairs && won / pairs < high && high - low < 0.15,
        "{interval}"
    );
    // Calibrated: what is said is so, on the mean.
    let said: f64 = scores.iter().map(|s| s.0).sum::<f64>() / 400.0;
    let so = scores.iter().filter(|s| s.1).count() as f64 / 400.0;
    assert!((said - so).abs() < 0.06, "{said} {so}");
    let groups = data["groups"].as_array().unwrap();
    let names: Vec<&str> = groups.iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["north", "south"]);
    assert_eq!(groups[0]["samples"], 200);
    // Twice the same, whatever the number of threads.
    let again = json(
        &place
            .succeeds(&["evaluate", "run", "--data", "new.csv", "--json"])
            .stdout,
    );
    assert_eq!(again, evaluated);
}

#[test]
fn a_threshold_is_chosen_on_the_validation_patients() {
    let place = trained("threshold");
    let predict = |goal: &[&str]| {
        let args = [
            &["predict", "run", "--input", "new.csv", "--json"][..],
            goal,
        ]
        .concat();
        json(&place.succeeds(&args).stdout)
    };
    let eager = predict(&["--sensitivity", "0.95"]);
    assert!(eager["threshold"]["sensitivity"].as_f64().unwrap() >= 0.95);
    let strict = predict(&["--specificity", "0.95"]);
    assert!(strict["threshold"]["specificity"].as_f64().unwrap() >= 0.95);
    let positives = |value: &Value| {
        let patients = value["samples"].as_array().unwrap();
        patients.iter().filter(|p| p["prediction"] == "yes").count()
    };
    assert!(positives(&eager) > positives(&strict));
    let at = eager["threshold"]["probability"].as_f64().unwrap();
    for patient in eager["samples"].as_array().unwrap() {
        let p = patient["probabilities"]["yes"].as_f64().unwrap();
        assert_eq!(patient["prediction"] == "yes", p >= at - 1e-9, "{patient}");
    }
    let evaluate = words("evaluate run --data new.csv --sensitivity 0.95 --json");
    let measured = json(&place.succeeds(&evaluate).stdout);
    assert!(measured["data"]["sensitivity"].as_f64().unwrap() > 0.85);
    place.refuses(
        &words("predict run --input new.csv --positive yess --sensitivity 0.9"),
        &["yess", "yes"],
    );
    place.refuses(
        &words("predict run --input new.csv --sensitivity 1.5"),
        &["1.5", "0 to 1"],
    );
}

#[test]
fn what_is_unlike_training_is_told_by_name() {
    let place = trained("unlike");
    let new = patients(600, 603)
        .replace(",f,", ",d,")
        .replace(",m,", ",d,");
    place.write("odd.csv", new.replace("p600,north,", "p600,east,9"));
    let ran = place.succeeds(&["predict", "run", "--input", "odd.csv"]);
    says(&ran.stderr, &["\"sex\": 3 of 3 samples have"]);
    says(&ran.stderr, &["\"age\": 1 of 3 samples"]);
    let rows = table(&ran.stdout);
    assert!(rows[1].join(",").contains("age = 9") && rows[1].join(",").contains("sex = "));
    let strict = [
        "predict", "run", "--input", "odd.csv", "--strict", "--out", "p.csv",
    ];
    place.refuses(&strict, &["sex", "age", "--strict"]);
    for (change, parts) in [
        ("lactate", ["no column \"lactate\"", "gone.csv"]),
        ("hr", ["no column \"hr\"", "gone.csv"]),
        ("patient", ["no column \"patient\"", "gone.csv"]),
    ] {
        let text = patients(600, 603).replacen(change, "other", 1);
        place.write("gone.csv", text);
        place.refuses(&["predict", "run", "--input", "gone.csv"], &parts);
    }
    place.refuses(
        &["predict", "run", "--input", "nowhere.csv"],
        &["nowhere.csv"],
    );
    place.write("unlabelled.csv", patients(600, 603).replace("ill", "note"));
    place.succeeds(&["predict", "run", "--input", "unlabelled.csv"]);
    place.refuses(
        &["evaluate", "run", "--data", "unlabelled.csv"],
        &["unlabelled.csv", "\"ill\""],
    );
}

#[test]
fn runs_that_cannot_be_used_are_refused() {
    let place = trained("unusable");
    let run = Run::at(&place, "run");
    let predict = ["predict", "run", "--input", "new.csv"];
    for (file, bytes) in [
        ("inputs.json", &b"{"[..]),
        ("inputs.json", b"{}"),
        ("validation.safetensors", b"garbage"),
        ("best.safetensors", b""),
    ] {
        let whole = run.bytes(file);
        fs::write(run.file(file), bytes).unwrap();
        place.refuses(&predict, &[file]);
        fs::write(run.file(file), whole).unwrap();
    }
    let whole = run.bytes("inputs.json");
    let changed = run
        .text("inputs.json")
        .replacen("\"mean\": ", "\"mean\": 1", 1);
    fs::write(run.file("inputs.json"), changed).unwrap();
    place.refuses(&predict, &["inputs.json", "changed"]);
    fs::remove_file(run.file("inputs.json")).unwrap();
    place.refuses(&predict, &["inputs.json", "train it again"]);
    fs::write(run.file("inputs.json"), whole).unwrap();
    run.edit_manifest(|m| (m["selvedge"], m["format"]) = ("7.3.1".into(), 2.into()));
    place.refuses(&predict, &["7.3.1", env!("CARGO_PKG_VERSION")]);
    place.refuses(&["evaluate", "run", "--data", "new.csv"], &["7.3.1"]);
    run.edit_manifest(|m| {
        (m["selvedge"], m["format"]) = (env!("CARGO_PKG_VERSION").into(), 1.into())
    });
    place.succeeds(&predict);
    fs::remove_file(run.file("best.safetensors")).unwrap();
    fs::remove_file(run.file("model.safetensors")).unwrap();
    place.refuses(&predict, &["--resume run"]);
    // Without its data the run's own patients cannot be evaluated.
    place.refuses(
        &["predict", "my.toml", "--input", "new.csv"],
        &["my.toml", "manifest.json"],
    );
}

#[test]
fn without_a_validation_share_probabilities_are_the_models_own() {
    let place = Place::new("uncalibrated");
    place.write("patients.csv", patients(0, 300));
    place.write("my.toml", experiment());
    let train = words("train my.toml --set data.validation=0 --out run");
    place.succeeds(&train);
    place.write("new.csv", patients(600, 620));
    let ran = place.succeeds(&["predict", "run", "--input", "new.csv"]);
    says(&ran.stderr, &["cannot be calibrated"]);
    let raw = place.succeeds(&["predict", "run", "--input", "new.csv", "--uncalibrated"]);
    assert_eq!(raw.stdout, ran.stdout);
    place.refuses(
        &words("predict run --input new.csv --sensitivity 0.9"),
        &["data.validation"],
    );
}

#[test]
fn the_page_of_an_evaluation_has_its_curves() {
    let place = trained("page");
    place.succeeds(&["evaluate", "run", "--data", "new.csv", "--html", "e.html"]);
    let page = fs::read_to_string(place.join("e.html")).unwrap();
    says(
        &page,
        &[
            "ROC on data",
            "Precision and recall",
            "Calibration on data",
            "<svg",
            "AUC",
        ],
    );
    assert!(
        !page.contains("http://")
            || page.matches("http://").count() == page.matches("http://www.w3.org").count()
    );
    // Arrays are as good as files.
    let arrays = ["predict", "run", "--input", "new.csv", "--arrays", "a.npz"];
    let direct = table(&place.succeeds(&arrays).stdout);
    let from_arrays = table(
        &place
            .succeeds(&["predict", "run", "--input", "a.npz"])
            .stdout,
    );
    for (a, b) in direct.iter().zip(&from_arrays) {
        assert_eq!(a[1..], b[1..]);
    }
}

/// Train on set a, use on set b: what the issue of real data is about.
#[test]
fn physionet_2012_is_predicted_from_set_a_to_set_b() {
    let Some(data) = common::real_data("physionet_2012_is_predicted_from_set_a_to_set_b") else {
        return;
    };
    let place = Place::new("physionet");
    let data_dir = data.to_str().unwrap();
    let set = [
        "--set",
        "train.iterations=1200",
        "--out",
        "run",
        "--data-dir",
        data_dir,
    ];
    place.succeeds(&[&["train", "physionet2012"][..], &set].concat());
    let files = data.join("physionet2012");
    let files = files.to_str().unwrap();
    let ran = place.succeeds(&["predict", "run", "--input", files, "--out", "p.csv"]);
    says(&ran.stdout, &["4,000 samples"]);
    says(&ran.stderr, &["4000 of 8000 rows"]);
    let evaluated = json(
        &place
            .succeeds(&["evaluate", "run", "--data", files, "--json"])
            .stdout,
    );
    let auc = evaluated["data"]["auc"].as_f64().unwrap();
    assert!(auc >= 0.80, "{auc}");
    let own = ["evaluate", "run", "--data-dir", data_dir, "--json"];
    let own = json(&place.succeeds(&own).stdout);
    // Set b is the run's own test set.
    assert_eq!(own["test"]["auc"], evaluated["data"]["auc"]);
    assert_eq!(own["test"]["intervals"], evaluated["data"]["intervals"]);
    assert_eq!(
        table(&fs::read_to_string(place.join("p.csv")).unwrap()).len(),
        4001
    );
}

#[test]
fn the_positive_class_is_the_one_that_is_measured() {
    let place = trained("positive");
    let evaluate = |positive: &str| {
        let args = words("evaluate run --data new.csv --json --positive");
        json(&place.succeeds(&[&args[..], &[positive]].concat()).stdout)["data"].clone()
    };
    let (yes, no) = (evaluate("yes"), evaluate("no"));
    for (a, b) in [
        ("sensitivity", "specificity"),
        ("positive_predictive_value", "negative_predictive_value"),
    ] {
        assert_eq!((&yes[a], &yes[b]), (&no[b], &no[a]), "{a}");
    }
    assert_eq!(yes["auc"], no["auc"]);
    assert_ne!(yes["average_precision"], no["average_precision"]);
    assert_eq!(no["curves"][0]["class"], "no");
}

#[test]
fn rows_of_one_patient_make_nobody_surer() {
    let place = Place::new("several-rows");
    // Every patient is there three times.
    let mut text = String::from("row,person,");
    let all = patients(0, 400);
    let (header, rows) = all.split_once('\n').unwrap();
    text += &format!("{header}\n");
    for row in rows.lines() {
        let person = row.split(',').next().unwrap();
        for visit in 0..3 {
            text += &format!("{person}-{visit},{person},{row}\n");
        }
    }
    place.write("patients.csv", text);
    let experiment = experiment().replace("id = \"patient\"", "id = \"row\"\npatient = \"person\"");
    place.write("my.toml", experiment);
    place.succeeds(&["train", "my.toml", "--out", "run"]);
    let own = json(&place.succeeds(&["evaluate", "run", "--json"]).stdout);
    let width = |interval: &Value| interval[1].as_f64().unwrap() - interval[0].as_f64().unwrap();
    let test = &own["test"];
    let (n, auc) = (
        test["samples"].as_f64().unwrap(),
        test["auc"].as_f64().unwrap(),
    );
    // As wide as Hanley and McNeil say of a third of the rows, not of all of them.
    let ill = test["confusion"][1].as_array().unwrap();
    let ill: f64 = ill.iter().map(|n| n.as_f64().unwrap()).sum();
    let error = |positives: f64, negatives: f64| {
        let (q1, q2) = (auc / (2.0 - auc), 2.0 * auc * auc / (1.0 + auc));
        let variance = auc * (1.0 - auc)
            + (positives - 1.0) * (q1 - auc * auc)
            + (negatives - 1.0) * (q2 - auc * auc);
        (variance / (positives * negatives)).sqrt()
    };
    let patients = 3.92 * error(ill / 3.0, (n - ill) / 3.0);
    let found = width(&test["intervals"]["auc"]);
    assert!(found > 0.75 * patients, "{found} {patients}");
}

#[test]
fn nothing_that_is_read_is_replaced() {
    let place = trained("replaced");
    let predict = ["predict", "run", "--input", "new.csv"];
    for (more, part) in [
        (&["--out", "new.csv"][..], "--out new.csv"),
        (&["--out", "run/inputs.json"], "--out run/inputs.json"),
        (
            &["--arrays", "run/checkpoint/state.safetensors"],
            "--arrays run",
        ),
        (&["--out", "x.csv", "--arrays", "x.csv"], "the same file"),
    ] {
        place.refuses(&[&predict[..], more].concat(), &[part]);
    }
    place.refuses(
        &words("evaluate run --data new.csv --html ./new.csv"),
        &["--html", "new.csv"],
    );
    let run = Run::at(&place, "run");
    let mut bytes = run.bytes("best.safetensors");
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(run.file("best.safetensors"), bytes).unwrap();
    place.refuses(&predict, &["best.safetensors", "NaN"]);
}
