//! Figures that are not defined are not printed: intervals of one patient, deviations of one value, held-out figures of
//! nobody; and what is printed can be read.

use crate::common::{says, words};
use crate::tables::{experiment, flat, patients, place};
use serde_json::Value;
use std::fs;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn of_one_patient_there_is_no_interval() {
    let patients = patients(120);
    let place = place(
        "one-patient",
        flat(&patients, ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&words("train t.toml --out run"));
    place.write("one.csv", "id,site,lab,pulse,label\na,north,0.1,0.2,yes\n");
    let value = json(
        &place
            .succeeds(&words("evaluate run --data one.csv --json"))
            .stdout,
    );
    let data = &value["data"];
    assert!(data["accuracy"].is_number() && data["loss"].is_number());
    for (name, interval) in data["intervals"].as_object().unwrap() {
        assert!(interval.is_null(), "{name}: {interval}");
    }
    let text = place.succeeds(&words("evaluate run --data one.csv")).stdout;
    let line = text
        .lines()
        .find(|line| line.starts_with("accuracy"))
        .unwrap();
    assert!(!line.contains('['), "{line}");
    // Of the ill there is one among three.
    place.write(
        "three.csv",
        "id,site,lab,pulse,label\na,north,0.1,0.2,yes\nb,north,0,0,no\nc,south,0.2,-0.2,no\n",
    );
    let value = json(
        &place
            .succeeds(&words("evaluate run --data three.csv --json"))
            .stdout,
    );
    let of = |name: &str| value["data"]["intervals"][name].clone();
    assert!(
        of("sensitivity").is_null() && of("auc").is_null() && of("average_precision").is_null()
    );
    assert!(of("loss").is_array() && of("brier").is_array());
}

#[test]
fn of_one_seed_there_is_no_deviation() {
    let place = place(
        "one-seed",
        flat(&patients(120), ["no", "yes"]),
        &experiment("", ""),
    );
    let compare =
        words("compare t.toml --algorithms hsgd --seeds 1 --target accuracy=0.6 --out cmp --json");
    let value = json(&place.succeeds(&compare).stdout);
    let last = &value["table"]["last"][0]["metrics"];
    for metric in last.as_array().unwrap() {
        assert!(metric[1]["deviation"].is_null(), "{metric}");
    }
    let csv = fs::read_to_string(place.join("cmp/table.csv")).unwrap();
    let heads: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let cells: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    for (head, cell) in heads.iter().zip(&cells) {
        assert_eq!(
            cell.is_empty(),
            head.ends_with("_sd"),
            "{head}: {cell:?} in {csv}"
        );
    }
    place.succeeds(&words("report cmp --out r.html"));
    let page = fs::read_to_string(place.join("r.html")).unwrap();
    assert!(!page.contains("± 0"));
}

/// AUC is defined on the test samples of one seed of two.
#[test]
fn a_mean_over_fewer_seeds_says_so() {
    let mut n = 0;
    let table = crate::tables::csv("id,person,lab,pulse,label", &patients(60), |p| {
        n += 1;
        let label = ["no", "yes"][usize::from([8, 29].contains(&n))];
        format!("{},q{},{:.4},{:.4},{label}", p.id, n / 3, p.lab, p.pulse)
    });
    let tested = experiment("patient = \"person\"", "");
    let tested = tested.replace("validation = 0.2", "validation = 0\ntest = 0.3");
    let place = place("few-seeds", table, &tested);
    let ran = place.succeeds(&words("train t.toml --seeds 6 --out runs --json"));
    let runs = json(&ran.stdout);
    let with = runs
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["last"]["auc"].is_number())
        .count();
    assert!(with > 0 && with < 6, "{with} of 6");
    let text = place
        .succeeds(&words("train t.toml --seeds 6 --out again"))
        .stdout;
    let line = text.lines().find(|line| line.starts_with("  AUC")).unwrap();
    assert!(line.contains(&format!("of {with} seed")), "{line}");
    assert_eq!(line.contains('±'), with > 1, "{line}");
}

#[test]
fn columns_stand_apart_whatever_their_numbers() {
    let two_groups = experiment("group = \"site\"", "");
    let two_groups = two_groups.replace("groups = 1", "groups = 2\nsplit = \"column\"");
    let place = place("wide", flat(&patients(120), ["no", "yes"]), &two_groups);
    let ran = place.succeeds(&words(
        "train t.toml --set train.learning_rate=1e7 --set seed=6 --out run",
    ));
    let rows: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("last evaluated"))
        .map(|line| {
            line.split_once("iteration")
                .unwrap()
                .0
                .split_whitespace()
                .skip(2)
                .collect()
        })
        .collect();
    assert_eq!(rows[0].len(), 7, "{}", ran.stdout);
    for cell in &rows[0] {
        assert!(cell.parse::<f64>().is_ok() || *cell == "–", "{cell}");
    }
}

#[test]
fn without_held_out_samples_nothing_is_said_of_them() {
    let none = experiment("", "").replace("validation = 0.2", "validation = 0\ntest = 0");
    let place = place("none-held-out", flat(&patients(120), ["no", "yes"]), &none);
    let ran = place.succeeds(&words(
        "compare t.toml --algorithms hsgd,jfl --seeds 1 --out cmp",
    ));
    says(
        &ran.stdout,
        &["compared by their training loss", "at the end, on training"],
    );
    let said = ran.stdout.replace("data.test", "");
    assert!(!said.contains("test"), "{said}");
    let ran = place.succeeds(&words("tune t.toml --budget 2e5"));
    assert!(!ran.stdout.contains("AUC"), "{}", ran.stdout);
    says(
        &ran.stdout,
        &["loss (training)", "judged by the training loss"],
    );
}

#[test]
fn predictions_name_the_positive_class_and_the_threshold() {
    let place = place(
        "named-predictions",
        flat(&patients(120), ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&words("train t.toml --out run"));
    let csv = place.succeeds(&words("predict run --input t.csv")).stdout;
    assert!(
        csv.starts_with("id,prediction,probability_no,probability_yes,positive,threshold,notes\n"),
        "{csv}"
    );
    assert!(
        csv.lines().skip(1).all(|line| line.contains(",yes,,")),
        "{csv}"
    );
    let chosen = words("predict run --input t.csv --sensitivity 0.9");
    let value = json(&place.succeeds(&[&chosen[..], &["--json"]].concat()).stdout);
    assert!(value["samples"].is_array() && value["patients"].is_null());
    let threshold = value["threshold"]["probability"].as_f64().unwrap();
    for line in place.succeeds(&chosen).stdout.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[4], "yes");
        let [yes, limit] = [cells[3], cells[5]].map(|cell| cell.parse::<f32>().unwrap());
        assert!((f64::from(limit) - threshold).abs() < 1e-6);
        assert_eq!(cells[1] == "yes", yes >= limit, "{line}");
    }
}

/// What is said of validation figures is what was done by them.
#[test]
fn validation_figures_are_called_optimistic_for_what_was_done() {
    let place = place(
        "optimistic",
        flat(&patients(120), ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&words("train t.toml --out run"));
    for (more, said) in [
        ("", "was chosen and calibrated on these"),
        ("--uncalibrated", "was chosen on these"),
        ("--last", "was calibrated on these"),
        (
            "--sensitivity 0.9",
            "was chosen and calibrated and given its threshold on these",
        ),
    ] {
        let text = place
            .succeeds(&[&words("evaluate run")[..], &words(more)].concat())
            .stdout;
        says(&text, &[said]);
    }
    let text = place
        .succeeds(&words("evaluate run --last --uncalibrated"))
        .stdout;
    assert!(!text.contains("optimistic"), "{text}");
}
