//! What is used where an experiment says nothing: layers that fit the data, and labels that are classes.

use crate::common::run::{Run, same_results};
use crate::common::says;
use crate::tables::{csv, experiment, flat, hospital, patients, place, series, wearable};

#[test]
fn the_layers_that_are_left_out_fit_series_and_classes() {
    let patients = patients(120);
    let without_model = series("").split("[model]").next().unwrap().to_owned();
    let of_series = place("truth-series", hospital(&patients), &without_model);
    of_series.write("w.csv", wearable(&patients, |hour| hour.to_string()));
    of_series.succeeds(&["train", "t.toml", "--out", "run"]);
    let model = Run::at(&of_series, "run").manifest()["experiment"]["model"].clone();
    assert_eq!(
        model["hospital"],
        serde_json::json!([{ "linear": { "out": 16 } }, "tanh"])
    );
    assert_eq!(
        model["device"],
        serde_json::json!([{ "lstm": { "hidden": 16 } }])
    );
    // Also beside the experiment, seen from elsewhere.
    std::fs::create_dir(of_series.join("inner")).unwrap();
    let inner =
        crate::common::process::finish(crate::common::selvedge(&of_series.join("inner")).args([
            "train",
            "../t.toml",
            "--out",
            "run",
        ]));
    inner.succeeded();
    of_series.succeeds(&["predict", "run", "--input", "t.csv", "--input", "w.csv"]);
    let three = csv("id,site,lab,pulse,label", &patients, |p| {
        let label = if p.lab > 0.2 {
            "high"
        } else if p.ill {
            "ill"
        } else {
            "well"
        };
        format!("{},{},{:.4},{:.4},{label}", p.id, p.site, p.lab, p.pulse)
    });
    let of_three = place("truth-three", three, &experiment("", ""));
    of_three.succeeds(&["train", "t.toml", "--out", "run"]);
    let model = Run::at(&of_three, "run").manifest()["experiment"]["model"].clone();
    assert_eq!(
        model["combined"][2],
        serde_json::json!({ "linear": { "out": 3 } })
    );
}

/// Two classes and flat sides have what they always had.
#[test]
fn the_usual_layers_are_the_usual_ones() {
    let place = place(
        "truth-usual",
        flat(&patients(120), ["no", "yes"]),
        &experiment("", ""),
    );
    let written = "[model]\nhospital = [{ linear = { out = 16 } }, \"tanh\"]\ndevice = [{ linear = { out = 16 } }, \"tanh\"]\n\
        combined = [{ linear = { out = 16 } }, \"relu\", { linear = { out = 2 } }]\n";
    place.write("written.toml", experiment("", "") + written);
    place.succeeds(&["train", "t.toml", "--out", "usual"]);
    place.succeeds(&["train", "written.toml", "--out", "written"]);
    same_results(
        &Run::at(&place, "written"),
        &Run::at(&place, "usual"),
        "left out",
    );
}

#[test]
fn a_quantity_is_no_class() {
    let patients = patients(300);
    let quantity = csv("id,site,lab,pulse,label", &patients, |p| {
        format!(
            "{},{},{:.4},{:.4},{:.2}",
            p.id,
            p.site,
            p.lab,
            p.pulse,
            50.0 + 40.0 * p.lab
        )
    });
    let place = place("truth-quantity", quantity, &experiment("", ""));
    let said = place.succeeds(&["train", "t.toml", "--out", "quantity"]);
    says(
        &said.stderr,
        &["\"label\" is taken for a quantity", "data.table.labels"],
    );
    let manifest = Run::at(&place, "quantity").manifest();
    assert_eq!(manifest["data"]["outcome"], "quantity");
    place.refuses(
        &[
            "train",
            "t.toml",
            "--set",
            "data.outcome=class",
            "--out",
            "run",
        ],
        &[
            "t.csv",
            "\"label\"",
            "different numbers",
            "that is a quantity",
            "data.table.labels",
        ],
    );
    let names = csv("id,site,lab,pulse,label", &patients, |p| {
        format!(
            "{},{},{:.4},{:.4},remark {}",
            p.id, p.site, p.lab, p.pulse, p.id
        )
    });
    place.write("t.csv", names);
    place.refuses(
        &["train", "t.toml", "--out", "run"],
        &[
            "300 different values in 300 rows",
            "expected class labels that many rows share",
        ],
    );
    // Ten digits are classes.
    let digits = csv("id,site,lab,pulse,label", &patients, |p| {
        let digit = (10.0 * (p.lab + 0.5)) as u32;
        format!("{},{},{:.4},{:.4},{digit}", p.id, p.site, p.lab, p.pulse)
    });
    place.write("t.csv", digits);
    place.succeeds(&["train", "t.toml", "--out", "run"]);
}

/// The part of an experiment that names the data.
fn data_alone(experiment: &str) -> String {
    experiment.split("[train]").next().unwrap().to_owned()
}

#[test]
fn data_alone_is_learnt_well() {
    let patients = patients(400);
    let place = place(
        "truth-learns",
        hospital(&patients),
        &data_alone(&series("missing = \"carry\"")),
    );
    place.write("w.csv", wearable(&patients, |hour| hour.to_string()));
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let run = Run::at(&place, "run");
    let experiment = &run.manifest()["experiment"];
    assert_eq!(experiment["optimiser"]["hospital"], "adamw");
    assert_eq!(experiment["optimiser"]["edge"], "adam");
    assert_eq!(experiment["stop"]["patience"], 400);
    assert_eq!(experiment["train"]["participation"], 0.5);
    let recurrent = serde_json::json!([{ "gru": { "hidden": 32 } }]);
    assert_eq!(experiment["model"]["device"], recurrent);
    let told = place.succeeds(&["evaluate", "run", "--json"]).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let auc = told["test"]["auc"].as_f64().unwrap();
    assert!(auc > 0.97, "{auc}");

    // Whoever says how to train gets what the keys have; the rest of what is written stays.
    for (key, is_learning) in [
        ("train.learning_rate=0.1", false),
        ("optimiser.cloud=\"momentum\"", false),
        ("train.iterations=20", true),
        ("data.validation=0", true),
        ("train.algorithm=jfl", true),
    ] {
        let out = format!("run-{}", key.replace(['.', '=', '"'], "-"));
        place.succeeds(&[
            "train",
            "t.toml",
            "--out",
            &out,
            "--set",
            key,
            "--set",
            "stop.bytes=1",
        ]);
        let experiment = Run::at(&place, &out).manifest()["experiment"].clone();
        let train = &experiment["train"];
        assert_eq!(train["learning_rate"] == 0.5, is_learning, "{key}");
        match key {
            "train.iterations=20" => assert_eq!(train["iterations"], 20),
            "data.validation=0" => {
                assert_eq!(train["iterations"], 300);
                assert!(experiment["stop"]["patience"].is_null());
            }
            // In pairs nobody remembers anything.
            "train.algorithm=jfl" => assert!(experiment["optimiser"].is_null(), "{experiment}"),
            _ => {}
        }
    }
    // A run goes on and is compared as what it is.
    let algorithms = ["--algorithms", "hsgd,jfl,centralised"];
    let few = ["--set", "train.iterations=10", "--out", "compared"];
    place.succeeds(&[&["compare", "t.toml"][..], &algorithms, &few].concat());
}

#[test]
fn steps_say_what_they_are_asked_for() {
    let patients = patients(80);
    let experiment =
        series("masks = true\nmissing = \"mean\"").replace("steps = 6", "steps = 3\nstep = 2");
    let place = place("truth-derived", hospital(&patients), &experiment);
    place.write("w.csv", wearable(&patients, |hour| hour.to_string()));
    let derived = "data.derived=[\"mean\", \"min\", \"max\", \"count\", \"since\"]";
    let set = [
        "train",
        "t.toml",
        "--set",
        derived,
        "--set",
        "data.scaling=log",
    ];
    place.succeeds(&[&set[..], &["--out", "run"]].concat());
    let inputs: serde_json::Value = serde_json::from_str(
        &std::fs::read_to_string(Run::at(&place, "run").file("inputs.json")).unwrap(),
    )
    .unwrap();
    let of_device = &inputs["statistics"]["device"];
    assert_eq!(of_device["shape"], serde_json::json!([3, 7]));
    let names = [
        "pulse",
        "pulse measured",
        "pulse (mean)",
        "pulse (min)",
        "pulse (max)",
        "pulse (count)",
        "pulse (steps since)",
    ];
    assert_eq!(of_device["names"], serde_json::json!(names));
    place.succeeds(&["predict", "run", "--input", "t.csv", "--input", "w.csv"]);

    place.refuses(
        &[
            "train",
            "t.toml",
            "--out",
            "no",
            "--set",
            "data.derived=[\"median\"]",
        ],
        &["data.derived", "median", "\"mean\", \"min\""],
    );
    place.refuses(
        &["train", "--out", "no", "--set", "data.derived=[\"mean\"]"],
        &["data.derived", "synthetic", "no steps"],
    );
    place.refuses(
        &["train", "t.toml", "--out", "no", "--set", "data.hours=2"],
        &["data.hours", "data.table.step"],
    );
    place.refuses(
        &[
            "train",
            "t.toml",
            "--out",
            "no",
            "--set",
            "data.scaling=logarithm",
        ],
        &["data.scaling", "expected one of", "\"log\""],
    );
    place.refuses(
        &["train", "--out", "no", "--set", "data.scaling=robust"],
        &["data.scaling"],
    );
}
