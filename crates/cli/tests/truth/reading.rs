//! What a file has is used, or it is said or refused.

use crate::common::run::Run;
use crate::common::{Place, says};
use crate::tables::{csv, experiment, flat, hospital, patients, place, series, wearable};

fn with_series(name: &str, time: impl Fn(u32) -> String, table: &str) -> Place {
    let patients = patients(120);
    let place = place(name, hospital(&patients), &series(table));
    place.write("w.csv", wearable(&patients, time));
    place
}

/// What the file has as the time of an hour.
type Time<'a> = &'a dyn Fn(u32) -> String;

#[test]
fn times_in_a_wrong_unit_are_refused() {
    let times: [(Time<'_>, &[&str]); 4] = [
        (
            &|hour| (60 * hour).to_string(),
            &[
                "600 of 720 values, in 600 rows",
                "line 3 with hour = 60",
                "divided by 60",
            ],
        ),
        (
            &|hour| (1_700_000_000 + 3600 * u64::from(hour)).to_string(),
            &["720 of 720 values", "since each patient's own beginning"],
        ),
        // Microseconds, as pandas writes them into Parquet files.
        (
            &|hour| (1_700_000_000_000_000 + 3_600_000_000 * u64::from(hour)).to_string(),
            &["720 of 720 values", "counted from 1970"],
        ),
        (
            &|hour| (hour * 2).to_string(),
            &["360 of 720 values", "data.table.steps = 11"],
        ),
    ];
    for (time, parts) in times {
        let place = with_series("truth-unit", time, "");
        let parts = [&["w.csv", "outside the time window 0 to 6"], parts].concat();
        place.refuses(&["train", "t.toml", "--out", "run"], &parts);
        place.refuses(&["data", "inspect", "t.toml"], &parts);
    }
}

#[test]
fn some_measurements_outside_are_said_and_more_are_left_out_on_purpose() {
    // Thirty of 750 values.
    let few = with_series("truth-few", |hour| hour.to_string(), "");
    let stray = "p0,9,pulse,0.5\n".repeat(30);
    let text = std::fs::read_to_string(few.join("w.csv")).unwrap() + &stray;
    few.write("w.csv", text);
    let ran = few.succeeds(&["data", "inspect", "t.toml"]);
    says(
        &ran.stderr,
        &["30 measurements fall outside the time window 0 to 6"],
    );
    let on_purpose = with_series(
        "truth-many",
        |hour| (hour * 2).to_string(),
        "outside = \"ignore\"\n",
    );
    let ran = on_purpose.succeeds(&["train", "t.toml", "--out", "run"]);
    says(&ran.stderr, &["360 measurements fall outside"]);
    // With times in days all of them are in the first hour.
    let days = with_series(
        "truth-days",
        |hour| format!("{:.4}", f64::from(hour) / 24.0),
        "",
    );
    let ran = days.succeeds(&["data", "inspect", "t.toml"]);
    says(
        &ran.stderr,
        &["all measurements fall into the first of 6 steps"],
    );
}

#[test]
fn strict_predictions_use_all_that_is_there() {
    let place = with_series("truth-strict", |hour| hour.to_string(), "");
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let new = patients(20);
    let both = ["predict", "run", "--input", "t.csv", "--input"];
    let strict = |file| [&both[..], &[file, "--strict"]].concat();
    place.succeeds(&strict("w.csv"));
    place.write(
        "minutes.csv",
        wearable(&new, |hour| (60 * hour).to_string()),
    );
    place.refuses(
        &strict("minutes.csv"),
        &["100 of 120 values", "divided by 60"],
    );
    let one_more = std::fs::read_to_string(place.join("w.csv")).unwrap() + "p0,9,pulse,0.5\n";
    place.write("late.csv", one_more);
    place.refuses(
        &strict("late.csv"),
        &["not everything in the files is used"],
    );
    let relaxed = place.succeeds(&[&both[..], &["late.csv"]].concat());
    says(&relaxed.stderr, &["1 measurement falls outside"]);
    // A run of 0.2 knew no limit, and still has none.
    Run::at(&place, "run").edit_manifest(|manifest| {
        let table = &mut manifest["experiment"]["data"]["table"];
        table.as_object_mut().unwrap().remove("outside");
    });
    let relaxed = place.succeeds(&[&both[..], &["minutes.csv"]].concat());
    says(&relaxed.stderr, &["100 measurements fall outside"]);
    place.refuses(
        &strict("minutes.csv"),
        &["not everything in the files is used"],
    );
}

#[test]
fn a_side_without_any_value_is_refused_and_a_column_without_is_said() {
    let patients = patients(120);
    let without_pulse = csv("id,site,lab,pulse,label", &patients, |p| {
        format!("{},{},{:.4},,{}", p.id, p.site, p.lab, p.ill)
    });
    for extra in ["", "masks = true", "missing = \"zero\""] {
        let place = place("truth-empty", &without_pulse, &experiment(extra, ""));
        place.refuses(
            &["train", "t.toml", "--out", "run"],
            &["no training row has a value at the device, in \"pulse\""],
        );
    }
    let two = csv("id,site,lab,more,pulse,label", &patients, |p| {
        format!("{},{},{:.4},,{:.4},{}", p.id, p.site, p.lab, p.pulse, p.ill)
    });
    let more = experiment("", "").replace("[\"lab\"]", "[\"lab\", \"more\"]");
    let ran = place("truth-column", two, &more).succeeds(&["data", "inspect", "t.toml"]);
    says(&ran.stderr, &["\"more\" has no value in any training row"]);
}

#[test]
fn a_column_that_scaling_or_rounding_ruins_is_said() {
    let patients = patients(120);
    let spoilt = csv("id,site,lab,pulse,label", &patients, |p| {
        let lab = if p.id == "p0" { 1e30 } else { p.lab };
        let pulse = 1e9 + f64::from(u8::from(p.pulse > 0.0));
        format!("{},{},{lab},{pulse},{}", p.id, p.site, p.ill)
    });
    let experiment = experiment("", "");
    let said = place("truth-spoilt", spoilt, &experiment);
    let said = said.succeeds(&[
        "data",
        "inspect",
        "t.toml",
        "--set",
        "data.test=0",
        "--set",
        "data.validation=0",
    ]);
    says(
        &said.stderr,
        &[
            "\"lab\": most training values are between",
            "\"p0\" has 1000000000000000000000000000000",
            "data.table.clip = true",
            "\"pulse\": numbers between 1000000000 and 1000000001 differ in digits that are lost",
        ],
    );
    let sound = place(
        "truth-unspoilt",
        flat(&patients, ["no", "yes"]),
        &experiment,
    );
    let ran = sound.succeeds(&["data", "inspect", "t.toml"]);
    assert!(
        !ran.stderr.contains("lost") && !ran.stderr.contains("most training"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_rate_that_changes_nothing_is_said_before_and_after() {
    let place = place(
        "truth-rate",
        flat(&patients(120), ["no", "yes"]),
        &experiment("", "").replace("0.3\np", "1e-300\np"),
    );
    let ran = place.succeeds(&["train", "t.toml", "--out", "run"]);
    says(
        &ran.stderr,
        &[
            "train.learning_rate = 1e-300 is so small",
            "it has learnt nothing",
        ],
    );
}
