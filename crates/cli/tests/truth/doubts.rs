//! What a table may not mean is said or refused.

use crate::common::process::finish;
use crate::common::{Place, says, selvedge};
use crate::tables::{csv, experiment, flat, patients, place};
use std::thread;

/// A table with a column of categories, its labels and sites written by `row`.
fn written(name: &str, row: impl Fn(usize) -> (&'static str, &'static str, &'static str)) -> Place {
    let mut n = 0..;
    let patients = patients(120);
    let cells = std::cell::RefCell::new(&mut n);
    let table = csv("id,site,sex,lab,pulse,label", &patients, |p| {
        let (site, sex, ill) = row(cells.borrow_mut().next().unwrap());
        let label = if p.ill { ill } else { "no" };
        format!("{},{site},{sex},{:.4},{:.4},{label}", p.id, p.lab, p.pulse)
    });
    let columns = "group = \"site\"\ncategorical = [\"sex\"]\n";
    let text = experiment(columns, "").replace("[\"lab\"]", "[\"lab\", \"sex\"]");
    place(name, table, &text)
}

#[test]
fn two_ways_to_write_a_class_are_refused_unless_they_are_listed() {
    let place = written("doubts-labels", |n| ("north", "f", ["yes", "Yes"][n % 2]));
    for call in [
        &["train", "t.toml", "--out", "run"][..],
        &["data", "inspect", "t.toml"],
    ] {
        place.refuses(
            call,
            &[
                "t.csv",
                "\"label\"",
                "\"Yes\"",
                "\"yes\"",
                "data.table.labels",
            ],
        );
    }
    let listed = "data.table.labels=[\"no\", \"yes\", \"Yes\"]";
    place.succeeds(&["data", "inspect", "t.toml", "--set", listed]);
}

#[test]
fn categories_and_groups_that_differ_in_case_alone_are_said() {
    let place = written("doubts-names", |n| {
        (["north", "North"][n % 2], ["f", "m", "F"][n % 3], "yes")
    });
    let split = ["--set", "data.split=\"column\"", "--set", "data.groups=2"];
    let ran = place.succeeds(&[&["data", "inspect", "t.toml"][..], &split].concat());
    says(
        &ran.stderr,
        &["\"F\" and \"f\" count as different categories"],
    );
    says(
        &ran.stderr,
        &["\"North\" and \"north\" count as different groups"],
    );
    let fine = written("doubts-fine", |_| ("north", "f", "yes"));
    let ran = fine.succeeds(&["data", "inspect", "t.toml"]);
    assert!(!ran.stderr.contains("count as different"), "{}", ran.stderr);
}

#[test]
fn a_number_that_may_stand_for_a_missing_one_is_said() {
    let table = flat(&patients(120), ["no", "yes"]);
    let mut n = 0;
    let line = |line: &str| {
        n += 1;
        let mut cells: Vec<&str> = line.split(',').collect();
        if n % 10 == 0 {
            cells[2] = "-999";
        }
        cells.join(",") + "\n"
    };
    let place = place(
        "doubts-sentinel",
        table.lines().map(line).collect::<String>(),
        &experiment("", ""),
    );
    let ran = place.succeeds(&["train", "t.toml", "--out", "run"]);
    says(
        &ran.stderr,
        &["\"lab\": -999 occurs 12 times", "data.table.blank"],
    );
    let blank = "data.table.blank=[\"-999\"]";
    let ran = place.succeeds(&["data", "inspect", "t.toml", "--set", blank]);
    assert!(!ran.stderr.contains("far from all"), "{}", ran.stderr);
}

#[test]
fn held_out_rows_that_training_has_too_are_said() {
    let table = flat(&patients(120), ["no", "yes"]);
    let twice: String = table
        .lines()
        .skip(1)
        .map(|line| format!("again-{line}\n"))
        .collect();
    let place = place("doubts-twice", table + &twice, &experiment("", ""));
    let ran = place.succeeds(&["train", "t.toml", "--out", "run"]);
    says(
        &ran.stderr,
        &["test rows have all values and the label of a training row"],
    );
}

#[test]
fn what_is_not_measured_is_not_spoken_of() {
    let place = place(
        "doubts-untested",
        flat(&patients(120), ["no", "yes"]),
        &experiment("", ""),
    );
    let train = ["train", "t.toml", "--set", "data.test=0", "--out", "run"];
    let said = place.succeeds(&train).stdout;
    says(
        &said,
        &["No test samples", "the metrics on the validation samples"],
    );
    assert!(
        !said.contains("Precision, recall and F1 are means"),
        "{said}"
    );
    let compare = [
        "compare",
        "t.toml",
        "--algorithms",
        "hsgd,jfl",
        "--seeds",
        "1",
        "--out",
        "c",
    ];
    let said = place.succeeds(&compare).stdout;
    assert!(said.contains("1 seed\n") && !said.contains('±'), "{said}");
}

#[test]
fn commands_that_write_the_same_file_at_once_all_succeed() {
    let place = place(
        "doubts-at-once",
        flat(&patients(120), ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| finish(selvedge(place.path()).args(["evaluate", "run"]))))
            .collect();
        for one in all {
            let ran = one.join().unwrap().succeeded();
            assert!(!ran.stderr.contains("cannot write"), "{}", ran.stderr);
        }
    });
    let mut left = std::fs::read_dir(place.join("run")).unwrap().flatten();
    assert!(!left.any(|entry| entry.file_name().to_str().unwrap().ends_with(".partial")));
}
