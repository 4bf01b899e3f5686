//! Data folders and files that are missing or not what they should be.

use crate::common::{Place, process, selvedge, snapshot, text, unchanged, words};

const FILE: &str = "data/esr/Epileptic Seizure Recognition.csv";

/// A table in the layout of ESR, 25 rows a class: enough for ten groups.
fn table() -> Vec<Vec<String>> {
    let mut header = vec!["Unnamed".to_owned()];
    header.extend((1..=178).map(|i| format!("X{i}")));
    header.push("y".into());
    let mut rows = vec![header];
    for n in 0..125 {
        let mut row = vec![format!("X{}.R{:03}", n % 5 + 1, n / 5)];
        row.extend((1..=178).map(|i| ((n * 31 + i * i) % 700 - 350).to_string()));
        row.push((n / 25 + 1).to_string());
        rows.push(row);
    }
    rows
}

fn csv(rows: &[Vec<String>]) -> String {
    rows.iter().map(|row| row.join(",") + "\n").collect()
}

const TRAIN: &str = "train esr --data-dir data --set train.iterations=4";

#[test]
fn a_file_in_the_right_layout_is_trained_on() {
    let place = Place::new("small-esr");
    place.write(FILE, csv(&table()));
    place.succeeds(&words(&format!("{TRAIN} --out run")));
}

#[test]
fn a_bad_value_is_named_with_file_line_and_column() {
    let place = Place::new("bad-value");
    for (line, column, value, parts) in [
        (7, 5, "abc", ["line 7", "column X5", "\"abc\"", "a number"]),
        (
            2,
            178,
            "nan",
            ["line 2", "column X178", "\"nan\"", "a number"],
        ),
        (126, 1, "1e9", ["line 126", "column X1", "\"1e9\"", "32768"]),
        (9, 10, "", ["line 9", "column X10", "empty", "a number"]),
        (30, 179, "6", ["line 30", "column y", "\"6\"", "1 to 5"]),
        (31, 179, "0", ["line 31", "column y", "\"0\"", "1 to 5"]),
        (
            5,
            0,
            "X1.R000",
            ["line 5", "column Unnamed", "\"X1.R000\"", "line 2"],
        ),
        (1, 3, "Y3", ["line 1", "column 4", "\"Y3\"", "X3"]),
    ] {
        let mut rows = table();
        rows[line - 1][column] = value.into();
        place.write(FILE, csv(&rows));
        place.refuses(
            &words(TRAIN),
            &[&["Epileptic Seizure Recognition.csv"][..], &parts].concat(),
        );
        place.refuses(&["data", "inspect", "esr", "--data-dir", "data"], &parts);
        let export = words("data export esr --data-dir data --out e.npz");
        place.refuses(&export, &parts);
    }
}

#[test]
fn a_file_that_is_cut_or_garbage_is_named() {
    let place = Place::new("bad-file");
    let whole = csv(&table());
    let name = "Epileptic Seizure Recognition.csv";
    let cut = &whole[..whole.len() / 2];
    let cut_line = format!("line {}", cut.lines().count());
    for (bytes, parts) in [
        (cut.as_bytes(), &[&cut_line[..], "180"][..]),
        (b"", &["empty"]),
        (
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03garbage that is no gzip",
            &["gzip"],
        ),
        (b"\x1f\x8b", &["gzip"]),
        (b"\x00\xff\xfe\x80 neither text nor gzip", &["line 1"]),
        (
            b"<html>404 Not Found</html>\n",
            &["line 1", "<html>404 Not Found</html>"],
        ),
    ] {
        for ending in ["", ".gz"] {
            let place_of = format!("{FILE}{ending}");
            place.write(&place_of, bytes);
            place.refuses(&words(TRAIN), &[&[name][..], parts].concat());
            std::fs::remove_file(place.join(&place_of)).unwrap();
        }
    }
}

#[test]
fn a_missing_folder_or_file_is_named_with_how_to_point_at_it() {
    let place = Place::new("no-data");
    let remedy = [
        "--data-dir",
        "SELVEDGE_DATA",
        "esr/Epileptic Seizure Recognition.csv.gz",
    ];
    place.refuses(&["train", "esr"], &remedy);
    place.refuses(
        &["train", "esr", "--data-dir", "nowhere"],
        &["--data-dir nowhere"],
    );
    place.write("data/readme.txt", "no set here");
    place.refuses(&words(TRAIN), &[&["data"][..], &remedy].concat());
    place.write("file", "not a folder");
    place.refuses(
        &["train", "esr", "--data-dir", "file"],
        &["--data-dir file"],
    );
}

#[test]
fn seeds_that_cannot_begin_leave_nothing() {
    let place = Place::new("seeds-without-data");
    place.refuses(
        &["train", "esr", "--seeds", "2", "--out", "both"],
        &["no data folder is given"],
    );
}

#[test]
fn a_missing_folder_that_the_environment_names_is_blamed_on_the_environment() {
    let place = Place::new("environment");
    let before = snapshot(place.path());
    let mut command = selvedge(place.path());
    command
        .args(["train", "esr"])
        .env("SELVEDGE_DATA", "nowhere");
    process::finish(&mut command).refused(&["nowhere", "SELVEDGE_DATA"]);
    unchanged(&before, &snapshot(place.path()), "a missing folder");
}

#[test]
fn data_that_has_changed_is_not_gone_on_with() {
    let place = Place::new("changed-data");
    let mut rows = table();
    place.write(FILE, csv(&rows));
    place.succeeds(&words(&format!("{TRAIN} --out run")));
    rows[20][3] = "-349".into();
    place.write(FILE, csv(&rows));
    let run = text(&place.join("run")).to_owned();
    for command in [["train", "--resume", &run], ["evaluate", &run, "--json"]] {
        let args = [&command[..], &["--data-dir", "data"]].concat();
        place.refuses(&args, &["run", "--data-dir", "same files"]);
    }
}
