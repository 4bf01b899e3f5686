//! Figures of one class name the class.

use crate::common::{Place, says, words};
use crate::tables::{experiment, flat, patients, place};
use serde_json::Value;
use std::fs;

fn trained(name: &str, labels: [&str; 2]) -> Place {
    let experiment =
        experiment("group = \"site\"", "").replace("groups = 1", "groups = 2\nsplit = \"column\"");
    let place = place(name, flat(&patients(300), labels), &experiment);
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_positive_class_stands_beside_its_figures() {
    let place = trained("naming-died", ["survived", "died"]);
    let text = place.succeeds(&words("evaluate run --html e.html")).stdout;
    let name = "The positive class is \"died\" (as its name says)";
    says(
        &text,
        &[
            name,
            "For the class \"died\", the positive one:\naverage precision",
        ],
    );
    let page = fs::read_to_string(place.join("e.html")).unwrap();
    says(
        &page,
        &[
            "The positive class is &quot;died&quot;",
            "For the class &quot;died&quot;",
        ],
    );
    let value = json(&place.succeeds(&words("evaluate run --json")).stdout);
    assert_eq!(value["positive"]["class"], "died");
    for part in ["train", "validation", "test"] {
        assert_eq!(value[part]["positive"], "died", "{part}");
    }
    for part in ["train", "test"] {
        let groups = value[part]["groups"].as_array().unwrap();
        assert!(!groups.is_empty() && groups.iter().all(|group| group["positive"] == "died"));
    }
    place.succeeds(&words("export run"));
    let card = fs::read_to_string(place.join("run/export/model-card.md")).unwrap();
    says(
        &card,
        &[
            "The positive class is died",
            "those of the positive class, died",
        ],
    );
    let predict = words("predict run --input t.csv --sensitivity 0.9");
    let ran = place.succeeds(&predict);
    says(
        &ran.stderr,
        &["the positive class is \"died\"", "predicts \"died\" when"],
    );
    let value = json(&place.succeeds(&[&predict[..], &["--json"]].concat()).stdout);
    assert_eq!(
        (&value["positive"]["class"], &value["threshold"]["positive"]),
        (&"died".into(), &"died".into())
    );
    // Whoever wants the other one says so.
    let value = json(
        &place
            .succeeds(&words("evaluate run --positive survived --json"))
            .stdout,
    );
    assert_eq!(value["test"]["positive"], "survived");
    assert_eq!(value["positive"]["why"], "as --positive says");
}

#[test]
fn a_class_that_is_only_rarer_is_said_to_be_so() {
    let place = trained("naming-rarer", ["ward", "home"]);
    let text = place.succeeds(&words("evaluate run")).stdout;
    says(
        &text,
        &["\"home\" (the rarer class in training; data.table.positive can choose the other)"],
    );
    place.succeeds(&words("export run"));
    let card = fs::read_to_string(place.join("run/export/model-card.md")).unwrap();
    says(&card, &["the rarer class in training"]);
}

/// Means over classes are called so, wherever they stand.
#[test]
fn means_over_the_classes_are_called_macro() {
    let place = trained("naming-macro", ["no", "yes"]);
    let evaluated = place.succeeds(&words("evaluate run")).stdout;
    says(
        &evaluated,
        &["precision (macro)", "recall (macro)", "F1 (macro)"],
    );
    let again = place.succeeds(&words("train run --out again")).stdout;
    let compared = place
        .succeeds(&words(
            "compare t.toml --algorithms hsgd --seeds 1 --out cmp",
        ))
        .stdout;
    for text in [again, compared] {
        says(&text, &["(macro)", "raw probabilities"]);
    }
    place.succeeds(&words("report run"));
    let page = fs::read_to_string(place.join("run/report.html")).unwrap();
    says(&page, &["(macro)", "raw probabilities"]);
}

/// Of patients whom the model has learnt from, figures are too good.
#[test]
fn evaluating_training_patients_is_said() {
    let place = trained("naming-known", ["no", "yes"]);
    let known = place.succeeds(&words("evaluate run --data t.csv")).stderr;
    let value = json(&place.succeeds(&words("evaluate run --json")).stdout);
    let of = |part: &str| value[part]["samples"].as_u64().unwrap();
    says(
        &known,
        &[&format!(
            "{} of 300 samples have the very values",
            of("train") + of("validation")
        )],
    );
    // Others, whom it has not.
    let mut others = patients(600).split_off(300);
    others.truncate(100);
    place.write("new.csv", flat(&others, ["no", "yes"]));
    let ran = place.succeeds(&words("evaluate run --data new.csv"));
    assert!(!ran.stderr.contains("very values"), "{}", ran.stderr);
}
