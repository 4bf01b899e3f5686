//! What runs are compared, stopped and chosen by: validation samples, where there are any.

use crate::common::run::Run;
use crate::common::{Place, Random, says, words};
use serde_json::Value;
use std::fmt::Write;
use std::fs;

/// The labels of the test samples are the wrong way round: a choice by them is seen at once.
fn place(name: &str) -> Place {
    let mut random = Random(5);
    let mut text = "id,use,lab,pulse,label\n".to_owned();
    for n in 0..400 {
        let (lab, pulse) = (random.next() - 0.5, random.next() - 0.5);
        let part = ["train", "train", "test", "train", "validation"][n % 5];
        let ill = (lab + pulse > 0.0) != (part == "test");
        let label = if ill { "ill" } else { "well" };
        writeln!(text, "p{n},{part},{lab:.4},{pulse:.4},{label}").unwrap();
    }
    let place = Place::new(name);
    place.write("held.csv", &text);
    // The same without validation samples.
    place.write("paper.csv", text.replace(",validation,", ",train,"));
    for name in ["held", "paper"] {
        let experiment = format!(
            "[data]\nset = \"table\"\npath = \"{name}.csv\"\ngroups = 1\n[data.table]\nid = \"id\"\nlabel = \"label\"\n\
             part = \"use\"\nhospital = [\"lab\"]\ndevice = [\"pulse\"]\n[train]\niterations = 200\nevaluate_every = 20\n\
             learning_rate = 0.3\nparticipation = 0.3\n"
        );
        place.write(&format!("{name}.toml"), experiment);
    }
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn comparisons_sweeps_and_reports_judge_by_validation_and_say_so() {
    let place = place("ranking-compare");
    for (call, name) in [
        ("compare held.toml --algorithms hsgd,jfl", "held-compare"),
        (
            "sweep held.toml --over train.learning_rate=0.2,0.3",
            "held-sweep",
        ),
    ] {
        let mut args = words(call);
        args.extend(["--seeds", "1", "--target", "auc=0.9", "--out", name]);
        let ran = place.succeeds(&args);
        says(
            &ran.stdout,
            &[
                "validation AUC ≥ 0.9",
                "1 of 1",
                "at the end, on validation",
                "at the end, on test",
                "compared on the validation samples",
            ],
        );
        assert!(!ran.stdout.contains("0 of 1"), "{}", ran.stdout);
        let value = json(&place.succeeds(&[&args[..], &["--json"]].concat()).stdout);
        assert_eq!(value["table"]["on"], "validation");
        let block = &value["table"]["targets"][0];
        assert_eq!(
            (&block["on"], &block["variants"][0]["reached"]),
            (&"validation".into(), &1.into())
        );
        let last = &value["table"]["last"][0];
        let auc = |samples: &str| last[samples][1][1]["mean"].as_f64().unwrap();
        assert!(auc("validation") > 0.9 && auc("metrics") < 0.2, "{last}");
        let csv = fs::read_to_string(place.join(name).join("table.csv")).unwrap();
        assert!(
            csv.lines()
                .all(|line| line.ends_with(",on") || line.ends_with(",validation")),
            "{csv}"
        );
        let text = place
            .succeeds(&["report", name, "--target", "auc=0.9", "--out", "r.html"])
            .stdout;
        says(&text, &["validation AUC ≥ 0.9", "1 of 1"]);
        let page = fs::read_to_string(place.join("r.html")).unwrap();
        says(
            &page,
            &[
                "Validation AUC",
                "compared on the validation samples",
                "validation AUC ≥ 0.9",
            ],
        );
    }
}

#[test]
fn without_validation_samples_the_test_samples_decide_and_that_is_said() {
    let place = place("ranking-paper");
    let mut args = words("compare paper.toml --algorithms hsgd --seeds 1 --out cmp");
    args.extend(["--target", "auc=0.9"]);
    let ran = place.succeeds(&args);
    says(
        &ran.stdout,
        &[
            "test AUC ≥ 0.9",
            "0 of 1",
            "compared on the test samples",
            "optimistic",
        ],
    );
    assert!(!ran.stdout.contains("on validation"), "{}", ran.stdout);
    let value = json(&place.succeeds(&[&args[..], &["--json"]].concat()).stdout);
    assert_eq!(value["table"]["on"], "test");
}

/// What tune writes stops where it was tuned to stop: on the validation samples.
#[test]
fn tuning_judges_by_validation_and_so_does_what_it_writes() {
    let place = place("ranking-tune");
    let ran = place.succeeds(&words("tune held.toml --target auc=0.9 --apply=tuned.toml"));
    says(&ran.stdout, &["loss (validation)", "AUC (validation)"]);
    let value = json(
        &place
            .succeeds(&words("tune held.toml --target auc=0.9 --json"))
            .stdout,
    );
    assert_eq!(value["judged_on"], "validation");
    place.succeeds(&words("train tuned.toml --out run"));
    let ending = Run::at(&place, "run").manifest()["ending"].clone();
    assert_eq!(
        (&ending["kind"], &ending["on"]),
        (&"reached".into(), &"validation".into())
    );
    let ran = place.succeeds(&words("tune paper.toml --budget 1e5"));
    says(&ran.stdout, &["loss (test)"]);
}

/// A comparison of which nothing is left is an error, and what diverged has reached nothing.
#[test]
fn what_diverged_has_reached_nothing() {
    let place = place("ranking-diverged");
    let mut args = words("compare held.toml --algorithms hsgd --seeds 1 --out cmp");
    args.extend(["--set", "train.learning_rate=1e9"]);
    let ran = place.selvedge(&args);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    says(&ran.stderr, &["every run diverged", "train.learning_rate"]);
    says(&ran.stdout, &["1 diverged"]);
    assert!(!ran.stdout.contains("1 of 1"), "{}", ran.stdout);
    // Beside one that trains, it stands with dashes.
    let mut args =
        words("sweep held.toml --over train.learning_rate=0.3,1e9 --seeds 1 --out swept --json");
    args.extend(["--target", "loss=5"]);
    let value = json(&place.succeeds(&args).stdout);
    let rows = &value["table"]["targets"][0]["variants"];
    assert_eq!(
        (&rows[0]["reached"], &rows[1]["reached"]),
        (&1.into(), &0.into())
    );
    assert!(rows[0]["iterations"]["mean"].as_f64().unwrap() > 0.0);
    assert!(rows[1]["bytes"].is_null());
}
