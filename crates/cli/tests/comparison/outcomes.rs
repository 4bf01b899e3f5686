//! Labels, quantities and survival: their own metrics wherever runs are shown, and what cannot be compared.

use crate::common::{Place, says};
use serde_json::Value;
use std::fs;

/// An outcome, headings of metrics that it has and of some that it has not.
const OUTCOMES: [(&str, &[&str], &[&str]); 3] = [
    (
        "labels",
        &["AUPRC", "micro AUC", "F1"],
        &["MAE", "concordance"],
    ),
    (
        "quantity",
        &["MAE", "RMSE", "R²"],
        &["AUC", "F1", "concordance"],
    ),
    (
        "survival",
        &["concordance", "Brier score"],
        &["AUC", "F1", "MAE"],
    ),
];

/// Whether a text has a heading, as a word.
fn has(text: &str, heading: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(heading).any(|(at, _)| {
        let behind = text[at + heading.len()..].chars().next();
        is_end(text[..at].chars().next_back()) && is_end(behind)
    })
}

#[test]
fn runs_are_shown_by_the_metrics_of_their_outcome() {
    let place = Place::new("outcomes");
    for (outcome, own, others) in OUTCOMES {
        let set = format!("data.outcome={outcome}");
        let given = ["--set", &set, "--set", "train.iterations=40"];
        let shows = |what: &str, text: &str| {
            for heading in own {
                assert!(
                    has(text, heading),
                    "{outcome}, {what}: no {heading}:\n{text}"
                );
            }
            for heading in others {
                assert!(!has(text, heading), "{outcome}, {what}: {heading}:\n{text}");
            }
        };
        let ran = place.succeeds(&[&["train", "--out", outcome][..], &given].concat());
        let table = ran.stdout.split("Bytes sent").next().unwrap();
        let table = table.split("On the test samples").next().unwrap();
        shows("train", table);
        let row = table.lines().find(|l| l.starts_with("last evaluated"));
        assert!(!row.unwrap().contains('–'), "{table}");
        let folder = format!("{outcome}-compared");
        let compare = ["compare", "--algorithms", "hsgd,jfl", "--out", &folder];
        let ran = place.succeeds(&[&compare[..], &given].concat());
        let ends = ran.stdout.split("at the end, on test").nth(1).unwrap();
        shows("compare", ends.lines().next().unwrap());
        let page = fs::read_to_string(place.join(&folder).join("report.html")).unwrap();
        let titles = [
            ("MAE", "Mean absolute error"),
            ("AUC", "AUC"),
            ("concordance", "Concordance"),
        ];
        for (heading, title) in titles {
            let chart = format!("the chart of {title} as SVG");
            let expected = own.contains(&heading) || (heading == "AUC" && outcome == "labels");
            assert_eq!(page.contains(&chart), expected, "{outcome}: {title}");
        }
    }
    // What is best is least, where that is better.
    let table = fs::read_to_string(place.join("quantity-compared/table.csv")).unwrap();
    let targets: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|l| l.split(',').next().unwrap())
        .collect();
    assert!(targets.contains(&"mae"), "{table}");
    assert!(!targets.contains(&"auc"), "{table}");
}

#[test]
fn what_another_outcome_has_is_refused() {
    let place = Place::new("outcomes-refused");
    let quantity = [
        "--set",
        "data.outcome=quantity",
        "--set",
        "train.iterations=20",
    ];
    let message = [
        "--target auc=0.8",
        "auc is not measured of a quantity: use loss, mae, rmse, r2",
    ];
    let compare = ["compare", "--out", "c", "--target", "auc=0.8"];
    place.refuses(&[&compare[..], &quantity].concat(), &message);
    assert!(!place.join("c").exists(), "nothing was trained");
    place.succeeds(&[&["train", "--out", "q"][..], &quantity].concat());
    place.refuses(&["report", "q", "--target", "auc=0.8"], &message);
    let over = [
        "sweep",
        "--out",
        "s",
        "--over",
        "data.outcome=quantity,survival",
    ];
    let apart = [
        "data.outcome is quantity and survival",
        "compare each outcome on its own",
    ];
    place.refuses(&over, &apart);
    place.succeeds(&["train", "--out", "class", "--set", "train.iterations=20"]);
    place.refuses(&["report", "q", "class"], &["data.outcome"]);
}

#[test]
fn what_is_known_of_each_group_is_told() {
    let place = Place::new("outcomes-inspected");
    let inspect = |outcome: &str, more: &[&str]| {
        let set = format!("data.outcome={outcome}");
        let args = ["data", "inspect", "--set", &set, "--set", "data.devices=50"];
        let text = place.succeeds(&[&args[..], more].concat()).stdout;
        let json = place
            .succeeds(&[&args[..], more, &["--json"]].concat())
            .stdout;
        (text, serde_json::from_str::<Value>(&json).unwrap())
    };
    let (text, value) = inspect("labels", &["--set", "data.hidden=0.5"]);
    says(&text, &["yes/no/?", "of which it is unknown"]);
    let labels = value["groups"][0]["labels"].as_object().unwrap();
    for (name, known) in labels {
        let of = |answer: &str| known[answer].as_u64().unwrap();
        assert_eq!(of("yes") + of("no") + of("unknown"), 50, "{name}");
        assert!(of("unknown") > 10, "{name}: half of them are hidden");
    }
    let (text, value) = inspect("quantity", &[]);
    says(&text, &["mean", "deviation", "greatest"]);
    let of = |of: &str| value["groups"][0]["quantity"][of].as_f64().unwrap();
    assert!(of("least") < of("mean") && of("mean") < of("greatest"));
    let (text, value) = inspect("survival", &[]);
    says(&text, &["events", "censored", "horizon"]);
    let of = |of: &str| value["groups"][0]["survival"][of].as_u64().unwrap();
    assert_eq!(of("events") + of("censored"), 50);
    assert!(of("events") > 0 && of("censored") > 0);
}
