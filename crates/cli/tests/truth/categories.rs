//! A category that only held-out rows have is not an input that nothing has trained.

use crate::common::run::Run;
use crate::common::{Place, says};
use crate::tables::{csv, experiment, patients, place};
use serde_json::json;

/// Every fifth patient is for the test, and the first of these alone has the blood group "AB".
fn with_rare(table: &str) -> Place {
    let group = |n: usize| match n {
        0 => "AB",
        n if n % 2 == 0 => "A",
        _ => "B",
    };
    let numbered = |id: &str| id[1..].parse::<usize>().unwrap();
    let text = csv("id,use,lab,blood,pulse,label", &patients(150), |p| {
        let n = numbered(&p.id);
        let part = ["test", "validation", "train", "train", "train"][n % 5];
        format!(
            "{},{part},{:.4},{},{:.4},{}",
            p.id,
            p.lab,
            group(n),
            p.pulse,
            p.ill
        )
    });
    let experiment = experiment(&format!("part = \"use\"\n{table}"), "");
    let experiment = experiment.replace("[\"lab\"]", "[\"lab\", \"blood\"]");
    let experiment = experiment.replace("validation = 0.2", "");
    place("truth-categories", text, &experiment)
}

#[test]
fn categories_come_from_training_rows() {
    for more in ["", "masks = true\n", "missing = \"carry\"\n"] {
        let place = with_rare(&format!("categorical = [\"blood\"]\n{more}"));
        let ran = place.succeeds(&["train", "t.toml", "--out", "run"]);
        says(
            &ran.stderr,
            &["\"blood\": only held-out rows have the category \"AB\""],
        );
        let run = Run::at(&place, "run");
        let inputs: serde_json::Value = serde_json::from_str(&run.text("inputs.json")).unwrap();
        assert_eq!(
            inputs["hospital"]["columns"][1]["categories"],
            json!(["A", "B"])
        );
        // The test row is what it would be as a new patient, and whoever asks is told.
        let own = place.succeeds(&["evaluate", "run", "--json", "--uncalibrated"]);
        let new = [
            "evaluate",
            "run",
            "--json",
            "--uncalibrated",
            "--data",
            "t.csv",
        ];
        let new = place.succeeds(&new);
        says(&new.stderr, &["a category not seen in training"]);
        let loss = |text: &str, part: &str| -> f64 {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            value[part]["loss"].as_f64().unwrap()
        };
        let (own, new) = (loss(&own.stdout, "test"), loss(&new.stdout, "data"));
        assert!((own - new).abs() < 1e-6, "{own} {new}");
        let said = place.succeeds(&["predict", "run", "--input", "t.csv"]);
        says(&said.stdout, &["blood = \"\"AB\"\" is a new category"]);
    }
}

#[test]
fn listed_categories_without_training_rows_are_said() {
    let place = with_rare("categorical = { blood = [\"A\", \"B\", \"AB\"] }\n");
    let ran = place.succeeds(&["train", "t.toml", "--out", "run"]);
    says(
        &ran.stderr,
        &["\"blood\": no training row has the category \"AB\""],
    );
    let said = place.succeeds(&["predict", "run", "--input", "t.csv"]);
    says(&said.stderr, &["a category that no training row had"]);
    place.refuses(
        &["predict", "run", "--input", "t.csv", "--strict"],
        &["from those of training, as noted above"],
    );
}

/// A run of 0.2 took the categories of all rows, and its data is still the same.
#[test]
fn old_runs_keep_the_categories_that_they_have() {
    let place =
        with_rare("categorical = [\"blood\"]\ncategories = \"all\"\noutside = \"ignore\"\n");
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let run = Run::at(&place, "run");
    run.edit_manifest(|manifest| {
        let table = manifest["experiment"]["data"]["table"]
            .as_object_mut()
            .unwrap();
        table.remove("categories");
        table.remove("outside");
    });
    place.succeeds(&["evaluate", "run"]);
}
