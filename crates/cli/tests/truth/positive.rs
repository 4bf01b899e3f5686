//! Which class is the positive one.

use crate::common::run::Run;
use crate::tables::{experiment, flat, patients, place};
use serde_json::Value;

/// What the run says of its positive class, whose sensitivity is that of the confusion matrix.
fn trained(labels: [&str; 2], table: &str) -> Value {
    let place = place(
        "truth-positive",
        flat(&patients(300), labels),
        &experiment(table, ""),
    );
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let run = Run::at(&place, "run");
    let said = run.manifest()["data"]["positive"].clone();
    let json =
        |args: &[&str]| -> Value { serde_json::from_str(&place.succeeds(args).stdout).unwrap() };
    let usual = json(&["evaluate", "run", "--json"])["test"].clone();
    let class = said["class"].as_u64().unwrap() as usize;
    let row: Vec<f64> = usual["confusion"][class]
        .as_array()
        .unwrap()
        .iter()
        .map(|count| count.as_f64().unwrap())
        .collect();
    let share = row[class] / row.iter().sum::<f64>();
    assert_eq!(usual["sensitivity"].as_f64(), Some(share), "{labels:?}");
    // A run of 0.2 does not say it, and is evaluated as if it did.
    run.edit_manifest(|manifest| {
        manifest["data"].as_object_mut().unwrap().remove("positive");
    });
    let evaluated = json(&["evaluate", "run", "--json"]);
    assert_eq!(evaluated["test"]["sensitivity"], usual["sensitivity"]);
    said
}

#[test]
fn the_positive_class_is_the_one_that_is_meant() {
    // The ill are rarer, and their label comes first.
    for (labels, table, label, why) in [
        (["survived", "died"], "", "died", "obvious"),
        (["no", "yes"], "", "yes", "obvious"),
        (["yes", "no"], "", "yes", "obvious"),
        (["ward", "home"], "", "home", "rarer"),
        (["no", "yes"], "positive = \"no\"", "no", "given"),
        (
            ["survived", "died"],
            "labels = [\"survived\", \"died\"]",
            "died",
            "obvious",
        ),
    ] {
        let said = trained(labels, table);
        assert_eq!((&said["label"], &said["why"]), (&label.into(), &why.into()));
    }
}

#[test]
fn a_positive_class_that_is_no_label_is_refused() {
    let place = place(
        "truth-no-positive",
        flat(&patients(300), ["no", "yes"]),
        &experiment("positive = \"yess\"", ""),
    );
    place.refuses(
        &["train", "t.toml", "--out", "run"],
        &["data.table.positive = \"yess\"", "did you mean \"yes\"?"],
    );
}
