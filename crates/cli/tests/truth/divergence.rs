//! Runs and models that have gone wrong: divergence, numbers that are none, and models that have learnt nothing.

use crate::common::run::Run;
use crate::common::{Place, says, words};
use crate::tables::{csv, experiment, flat, patients, place};
use serde_json::Value;
use std::fs;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Two groups, `north` and `south`.
fn two_groups(name: &str) -> Place {
    let of_sites =
        experiment("group = \"site\"", "").replace("groups = 1", "groups = 2\nsplit = \"column\"");
    place(name, flat(&patients(120), ["no", "yes"]), &of_sites)
}

/// Of two groups one has losses that are no numbers, and the other's are a million: the model is lost.
#[test]
fn a_rate_that_breaks_one_group_and_ruins_the_other_is_divergence() {
    let place = two_groups("diverged");
    for rate in ["1e7", "1e8", "1e9"] {
        let rate = format!("train.learning_rate={rate}");
        let call = ["--set", &rate, "--set", "seed=27"];
        let ran = place.selvedge(&[&["train", "t.toml", "--out", "run"][..], &call].concat());
        let ran = ran.ended(2);
        says(
            &ran.stderr,
            &[
                "training diverged: at iteration 10",
                "Try --set train.learning_rate=25",
            ],
        );
        assert!(!ran.stderr.contains("damaged"), "{}", ran.stderr);
        let run = Run::at(&place, "run");
        assert_eq!(run.manifest()["ending"]["kind"], "diverged");
        assert_eq!(
            run.bytes("model.safetensors"),
            run.bytes("initial.safetensors")
        );
        fs::remove_dir_all(place.join("run")).unwrap();
        let compare = [
            "compare",
            "t.toml",
            "--algorithms",
            "hsgd",
            "--seeds",
            "1",
            "--target",
            "accuracy=0.5",
            "--json",
            "--out",
            "cmp",
        ];
        let ran = place.selvedge(&[&compare[..], &call].concat());
        let table = &json(&ran.stdout)["table"];
        assert_eq!(table["last"][0]["diverged"], 1, "{table}");
        assert_eq!(table["targets"][0]["variants"][0]["reached"], 0, "{table}");
        fs::remove_dir_all(place.join("cmp")).unwrap();
    }
}

/// What one party sends ends nobody's training, and who is not in a figure is named beside it.
#[test]
fn a_group_that_is_not_in_a_figure_is_named() {
    let place = two_groups("without");
    place.write(
        "absent.jsonl",
        "{\"phase\":\"evaluation\",\"t\":100,\"group\":1}\n",
    );
    let ran = place.succeeds(&words("train t.toml --replay absent.jsonl --out run"));
    says(
        &ran.stdout,
        &["Without the patients of some groups in \"last evaluated\": \"south\" (absent)"],
    );
    place.succeeds(&words("report run"));
    let page = fs::read_to_string(place.join("run/report.html")).unwrap();
    says(
        &page,
        &[
            "Without the patients of some groups in the last evaluation of run",
            "south",
        ],
    );
    let ran = place.succeeds(&words(
        "train t.toml --set attack.kind=not-a-number --set attack.hospitals=1 --out hostile",
    ));
    assert!(!ran.stderr.contains("diverged"), "{}", ran.stderr);
    says(&ran.stdout, &["not finite"]);
}

#[test]
fn a_loss_that_has_grown_is_said() {
    let place = two_groups("grown");
    let grown = words("--set train.learning_rate=1e7 --set seed=6");
    let ran = place.succeeds(&[&words("train t.toml --out run")[..], &grown].concat());
    says(
        &ran.stderr,
        &[
            "the training loss was 0.",
            "train.learning_rate = 10000000 is probably too high",
        ],
    );
    let compared = words("compare t.toml --algorithms hsgd --seeds 1");
    let ran = place.succeeds(&[&compared[..], &grown].concat());
    says(&ran.stdout, &["1 with a loss above that at t = 0"]);
}

/// Patients of whom a model says nothing have no probabilities, calibrated or not.
#[test]
fn what_is_no_number_is_no_probability() {
    let patients = patients(120);
    let table = csv("id,site,lab,lab2,pulse,label", &patients, |p| {
        let label = ["no", "yes"][usize::from(p.ill)];
        format!(
            "{},{},{:.4},{:.4},{:.4},{label}",
            p.id,
            p.site,
            p.lab,
            p.lab + p.pulse,
            p.pulse
        )
    });
    let two_labs = experiment("", "").replace("[\"lab\"]", "[\"lab\", \"lab2\"]");
    let place = place("no-number", table, &two_labs);
    place.succeeds(&words("train t.toml --out run"));
    place.write(
        "new.csv",
        "id,lab,lab2,pulse,label\na,0.1,0.1,0.2,no\nb,3e38,3e38,0.1,yes\n",
    );
    for call in [
        "predict run --input new.csv",
        "predict run --input new.csv --uncalibrated",
        "predict run --input new.csv --json",
        "evaluate run --data new.csv",
    ] {
        place.refuses(&words(call), &["no number for 1 of 2 samples, \"b\" first"]);
    }
    place.write("new.csv", "id,lab,lab2,pulse,label\na,0.1,0.1,0.2,no\n");
    place.succeeds(&words("predict run --input new.csv"));
}

/// So it is of a validation sample, which must not calibrate the others.
#[test]
fn a_validation_sample_without_an_answer_calibrates_nothing() {
    let patients = patients(120);
    let mut n = 0;
    let table = csv("id,use,lab,lab2,pulse,label", &patients, |p| {
        n += 1;
        let part = ["train", "train", "validation", "test"][n % 4];
        let label = ["no", "yes"][usize::from(p.ill)];
        let lab = if n == 6 { 3e38 } else { p.lab };
        format!("{},{part},{lab},{lab},{:.4},{label}", p.id, p.pulse)
    });
    let two_labs = experiment("part = \"use\"", "").replace("[\"lab\"]", "[\"lab\", \"lab2\"]");
    let place = place("no-answer", table, &two_labs);
    place.succeeds(&words("train t.toml --out run"));
    let run = Run::at(&place, "run");
    for line in run.metrics() {
        assert!(
            line["loss_train"].is_number() && line["auc_validation"].is_null(),
            "{line}"
        );
    }
    assert!(!run.file("best.safetensors").exists());
    let ran = place.succeeds(&words("predict run --input t.csv --json"));
    says(
        &ran.stderr,
        &[
            "no number for 1 of 30 validation samples",
            "cannot be calibrated",
        ],
    );
    assert!(json(&ran.stdout)["calibration"].is_null());
    place.refuses(
        &words("predict run --input t.csv --sensitivity 0.9"),
        &["does not answer for all validation samples"],
    );
    place.refuses(
        &words("evaluate run"),
        &["no number for 1 of 30 samples, validation sample"],
    );
}

/// Who trains, exports or reads the model card is told.
#[test]
fn an_untrained_model_is_said_by_train_export_and_card() {
    let place = two_groups("untrained");
    let ran = place.succeeds(&words(
        "train t.toml --set train.learning_rate=1e-300 --out run",
    ));
    says(&ran.stderr, &["it has learnt nothing", "1e-300"]);
    assert!(!(ran.stdout + &ran.stderr).contains("00000000"));
    let ran = place.succeeds(&words("export run"));
    says(&ran.stderr, &["it has learnt nothing"]);
    let card = fs::read_to_string(place.join("run/export/model-card.md")).unwrap();
    says(&card, &["**Untrained**"]);
    let value = json(
        &place
            .succeeds(&words("export run --json --out other"))
            .stdout,
    );
    assert!(
        value["notes"].to_string().contains("it has learnt nothing"),
        "{value}"
    );
    // The last model has changed, but the first was better.
    let ran = place.succeeds(&words(
        "train t.toml --set train.learning_rate=1e7 --set seed=1 --out worse",
    ));
    says(
        &ran.stderr,
        &["no later one was better on the validation samples"],
    );
}
