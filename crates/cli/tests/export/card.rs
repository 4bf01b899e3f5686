//! What the model card says.

use crate::common::run::Run;
use crate::common::{Place, says};
use std::fs;

fn card(place: &Place, run: &str) -> String {
    place.succeeds(&["export", run, "--format", "card"]);
    Run::at(place, run).text("export/model-card.md")
}

#[test]
fn a_card_tells_of_the_run() {
    let place = Place::new("card");
    place.write("my.toml", "[data]\ngroups = 3\n[train]\niterations = 40\n");
    place.succeeds(&["train", "my.toml", "--out", "run"]);
    let run = Run::at(&place, "run");
    let first = card(&place, "run");
    let manifest = run.manifest();
    let total: u64 = run.ledger().iter().map(|line| line.4).sum();
    let total = total.to_string();
    let plain: String = first.replace(',', "");
    says(&plain, &[&format!("Training sent {total} bytes")]);
    let last = run.metrics().pop().unwrap();
    let auc = format!("| AUC | {:.3} |", last["auc"].as_f64().unwrap());
    says(
        &first,
        &[
            manifest["data"]["fingerprint"].as_str().unwrap(),
            "600 training samples on 600 devices of 3 groups",
            "after 40 iterations",
            "linear out 16",
            "group 2",
            "## Limits of use",
            "Trained on generated data",
            "Not a medical device",
            "Not calibrated",
            "no differential privacy",
            "without confidence intervals",
            &auc,
        ],
    );
    // With an evaluation, its numbers and intervals.
    place.succeeds(&["evaluate", "run"]);
    let second = card(&place, "run");
    let text = run.text("evaluation.json");
    let evaluation: serde_json::Value = serde_json::from_str(&text).unwrap();
    let test = &evaluation["test"];
    let bound = |at: usize| test["intervals"]["auc"][at].as_f64().unwrap();
    let auc = test["auc"].as_f64().unwrap();
    says(
        &second,
        &[
            &format!("| AUC | {auc:.3} ({:.3} to {:.3}) |", bound(0), bound(1)),
            "95 % bootstrap confidence intervals",
            "Brier score",
        ],
    );
    assert!(!second.contains("without confidence intervals"), "{second}");
    // One of another model does not count.
    fs::write(
        run.file("evaluation.json"),
        text.replace("model.safetensors", "best.safetensors"),
    )
    .unwrap();
    assert_eq!(card(&place, "run"), first);
    fs::write(run.file("evaluation.json"), &text[..100]).unwrap();
    place.refuses(&["export", "run"], &["run/evaluation.json is damaged"]);
}

#[test]
fn a_card_tells_what_is_scarce() {
    let place = Place::new("scarce");
    let mut table = String::from("id,site,ill,lab|x,hr\n");
    for id in 0..120 {
        let site = if id < 100 { "north" } else { "so<b>uth" };
        let ill = if id % 12 == 0 && id < 100 {
            "yes"
        } else {
            "no"
        };
        let lab = if id % 3 == 0 { "1.5" } else { "" };
        table += &format!("{id},{site},{ill},{lab},{}\n", 60 + id % 30);
    }
    place.write("my.csv", table);
    place.write(
        "my.toml",
        r#"[data]
set = "table"
path = "my.csv"
split = "column"
groups = 2
test = 0.2
validation = 0.2
[data.table]
id = "id"
label = "ill"
group = "site"
hospital = ["lab|x"]
device = ["hr"]
[train]
algorithm = "hospital-only"
iterations = 40
global_interval = 4
local_interval = 2
participation = 0.3
[stop]
accuracy = 0.1
"#,
    );
    place.succeeds(&["train", "my.toml", "--out", "run"]);
    let card = card(&place, "run");
    let counts = Run::at(&place, "run").manifest()["data"]["labels"].clone();
    // Two of three rows lack it; of those for training about as many.
    let inputs = Run::at(&place, "run").text("inputs.json");
    let inputs: serde_json::Value = serde_json::from_str(&inputs).unwrap();
    let missing = inputs["statistics"]["hospital"]["missing"][0].as_f64();
    let missing = missing.unwrap();
    assert!((missing - 2.0 / 3.0).abs() < 0.1 && missing != 2.0 / 3.0);
    let ill: u64 = (0..2).map(|m| counts[m][1].as_u64().unwrap()).sum();
    says(
        &card,
        &[
            &format!("yes with {ill} ("),
            "none of yes",
            &format!("lab\\|x ({:.0} %)", 100.0 * missing),
            "so\\<b\\>uth",
            "does not use the data of the device",
            "`calibrated` was fitted on",
            "Only 2",
        ],
    );
    // The validation samples stopped it.
    assert!(!card.contains("somewhat optimistic"), "{card}");
    assert!(!card.contains("generated data"), "{card}");
    assert!(!card.contains("<b>"), "{card}");
}

#[test]
fn a_card_speaks_of_what_was_asked() {
    let place = Place::new("card-outcomes");
    for (outcome, own, not) in [
        (
            "labels",
            &[
                "probability of yes to each of 2 labels",
                "| micro AUC |",
                "without label 0",
            ][..],
            &["The positive class", "| MAE |"][..],
        ),
        (
            "quantity",
            &[
                "predicts a quantity",
                "standard deviation",
                "| MAE |",
                "[\"prediction\"]",
            ],
            &["alibrated", "class", "AUC"],
        ),
        (
            "survival",
            &[
                "censored",
                "The last is the horizon",
                "| Brier score |",
                "[\"survival\"]",
            ],
            &["`calibrated`", "positive class", "AUC"],
        ),
    ] {
        let set = format!("data.outcome={outcome}");
        let train = ["train", "--out", outcome, "--set", &set];
        place.succeeds(&[&train[..], &["--set", "train.iterations=40"]].concat());
        let first = card(&place, outcome);
        place.succeeds(&["evaluate", outcome]);
        let second = card(&place, outcome);
        says(&first, own);
        for text in [&first, &second] {
            let said = not.iter().find(|words| text.contains(**words));
            assert!(said.is_none(), "{outcome}: {said:?}\n{text}");
        }
        says(&second, &["95 % bootstrap confidence intervals"]);
    }
}
