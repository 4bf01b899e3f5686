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
