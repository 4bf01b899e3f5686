//! `selvedge data …` from a table of one's own to a model, and from a set to shards and back, through the binary.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::run::{Run, same_results};
use common::{Place, says, table_experiment, words};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// 300 patients of three hospitals: who is ill has a higher lactate at the hospital and a faster heart on the device.
fn patients() -> (String, String) {
    let mut hospital = String::from("patient,site,age,sex,lactate,ill\n");
    let mut device = String::from("patient,hour,variable,value\n");
    let mut state = 7u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    for n in 0..300 {
        let ill = draw() < 0.4;
        let shift = if ill { 1.0 } else { 0.0 };
        let (site, sex) = (
            ["north", "south", "west"][n % 3],
            if draw() < 0.5 { "f" } else { "m" },
        );
        let (age, lactate) = (30.0 + 50.0 * draw(), 1.0 + draw() + 0.7 * shift);
        writeln!(
            hospital,
            "{n},{site},{age:.0},{sex},{lactate:.2},{}",
            if ill { "yes" } else { "no" }
        )
        .unwrap();
        for hour in 0..6 {
            let rate = 70.0 + 12.0 * draw() + 9.0 * shift;
            writeln!(device, "{n},{hour},hr,{rate:.0}").unwrap();
            if draw() < 0.3 {
                writeln!(device, "{n},{hour}.5,spo2,{:.0}", 98.0 - 3.0 * draw()).unwrap();
            }
        }
    }
    (hospital, device)
}

fn experiment() -> String {
    let experiment = table_experiment(
        "path = \"hospital.csv\"\ngroups = 3\ntest = 0.25",
        r#"files = ["wearable.csv"]
time = "hour"
variable = "variable"
value = "value"
steps = 6
missing = "carry"
masks = true"#,
        "iterations = 400\nglobal_interval = 4\nlocal_interval = 2",
        "{ lstm = { hidden = 8 } }",
    );
    format!("seed = 1\n{experiment}")
}

fn place_with_table(name: &str) -> Place {
    let place = Place::new(name);
    let (hospital, device) = patients();
    place.write("hospital.csv", hospital);
    place.write("wearable.csv", device);
    place.write("my.toml", experiment());
    place
}

#[test]
fn a_table_of_ones_own_goes_from_inspect_to_a_model_that_has_learnt() {
    let place = place_with_table("own-table");
    let shown = place.succeeds(&["data", "inspect", "my.toml"]).stdout;
    says(
        &shown,
        &[
            "table: 3 groups, 225 devices",
            "hospital [7] | device [6, 4]",
            "north",
            "south",
            "west",
            "label no",
            "label yes",
            "device, 4 columns: hr, spo2, hr measured, spo2 measured",
            "not measured",
            "a sample of north",
        ],
    );
    let json: Value = serde_json::from_str(
        &place
            .succeeds(&["data", "inspect", "my.toml", "--json"])
            .stdout,
    )
    .unwrap();
    assert_eq!(
        json["columns"]["hospital"]["names"],
        serde_json::json!([
            "age",
            "sex = f",
            "sex = m",
            "lactate",
            "age measured",
            "sex measured",
            "lactate measured"
        ])
    );
    place.succeeds(&["train", "my.toml", "--out", "run"]);
    let last = Run::at(&place, "run").metrics().pop().unwrap();
    let auc = last["auc"].as_f64().unwrap();
    assert!(auc > 0.8, "AUC {auc}");
    // A run's data is the run's data.
    let (hospital, _) = patients();
    place.write("hospital.csv", hospital.replacen(",yes\n", ",no\n", 9));
    place.refuses(
        &["data", "export", "run", "--out", "x.npz"],
        &["not what run was trained on"],
    );
    // One column wrong, and it is said which.
    let (hospital, _) = patients();
    place.write("hospital.csv", hospital.replacen("north", "north,", 1));
    place.refuses(
        &["train", "my.toml", "--out", "other"],
        &["hospital.csv, line 2: 7 values: expected 6"],
    );
}

#[test]
fn training_from_shards_is_training_from_the_whole() {
    let place = place_with_table("shards");
    place.succeeds(&["train", "my.toml", "--out", "whole"]);
    let said = place
        .succeeds(&["data", "split", "my.toml", "--out", "shards"])
        .stderr;
    assert!(
        said.contains("selvedge train shards/experiment.toml"),
        "{said}"
    );
    let key = fs::metadata(place.join("shards/pseudonym.key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    place.succeeds(&["train", "shards/experiment.toml", "--out", "cut"]);
    same_results(&Run::at(&place, "whole"), &Run::at(&place, "cut"), "shards");
    // The folder can be moved.
    fs::create_dir(place.join("elsewhere")).unwrap();
    fs::rename(place.join("shards"), place.join("elsewhere/moved")).unwrap();
    place.succeeds(&["data", "inspect", "elsewhere/moved/experiment.toml"]);
    fs::rename(place.join("elsewhere/moved"), place.join("shards")).unwrap();
    // The same key gives the same shards.
    place.succeeds(&words(
        "data split my.toml --out again --key shards/pseudonym.key",
    ));
    for name in [
        "group-0/hospital.npz",
        "group-2/devices.npz",
        "group-1/edge.npz",
        "stats.json",
        "shards.json",
    ] {
        let read = |folder: &str| fs::read(place.join(folder).join(name)).unwrap();
        assert_eq!(read("shards"), read("again"), "{name}");
    }
    assert!(!place.join("again/pseudonym.key").exists());
    place.refuses(
        &["data", "split", "my.toml", "--out", "shards"],
        &["expected a new folder"],
    );
    fs::set_permissions(
        place.join("shards/pseudonym.key"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    place.refuses(
        &words("data split my.toml --out third --key shards/pseudonym.key"),
        &["pseudonym.key", "644", "expected mode 600"],
    );
    place.write("short.key", "abc");
    fs::set_permissions(place.join("short.key"), fs::Permissions::from_mode(0o600)).unwrap();
    let refusal = place.refuses(
        &words("data split my.toml --out third --key short.key"),
        &["64 hexadecimal digits"],
    );
    assert!(
        !refusal.stderr.contains("abc"),
        "a secret is never repeated"
    );
}

#[test]
fn statistics_are_what_shards_carry() {
    let place = place_with_table("stats");
    place.succeeds(&["data", "stats", "my.toml", "--out", "stats.json"]);
    place.succeeds(&["data", "split", "my.toml", "--out", "shards"]);
    let read = |name: &str| fs::read(place.join(name)).unwrap();
    assert_eq!(read("stats.json"), read("shards/stats.json"));
    let printed = place.succeeds(&["data", "stats", "my.toml"]).stdout;
    assert_eq!(printed.as_bytes(), read("stats.json"));
    let json: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["rows"], 225);
    assert_eq!(json["classes"], serde_json::json!(["no", "yes"]));
    assert_eq!(json["fingerprint"].as_str().unwrap().len(), 64);
}
