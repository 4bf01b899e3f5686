//! Files in the layout of ESR, right and wrong: what is read, and what the errors say.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::{Folder, NAME, esr_settings, gzip, header, small_file, text};
use selvedge_core::dataset::Dataset;
use selvedge_data::{DataError, load};
use std::fs;

fn load_bytes(bytes: &[u8]) -> Result<Dataset, DataError> {
    load(&esr_settings(), 1, Some(Folder::with_esr(bytes).path()))
}

/// The error for these bytes, which must name the file and contain all of `parts`.
#[track_caller]
fn refused(bytes: &[u8], parts: &[&str]) {
    let message = load_bytes(bytes).unwrap_err().to_string();
    for part in [NAME].iter().chain(parts) {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

/// The same for the small file with column `column` of line `line` replaced (both counted from 1).
#[track_caller]
fn refused_value(line: usize, column: usize, value: &str, parts: &[&str]) {
    let mut lines = small_file();
    let mut values: Vec<&str> = lines[line - 1].split(',').collect();
    values[column - 1] = value;
    lines[line - 1] = values.join(",");
    refused(text(&lines).as_bytes(), parts);
}

#[test]
fn every_way_to_store_the_file_gives_the_same() {
    let lines = small_file();
    let plain = text(&lines);
    let expected = load_bytes(plain.as_bytes()).unwrap();
    assert_eq!(expected.training_samples(), 100);
    assert_eq!(expected.test.len(), 25);

    assert_eq!(
        load_bytes(&gzip(plain.as_bytes())).unwrap(),
        expected,
        "gzip by its first bytes"
    );
    for separator in [";", "\t"] {
        let other = plain.replace(',', separator);
        assert_eq!(
            load_bytes(other.as_bytes()).unwrap(),
            expected,
            "{separator:?}"
        );
    }
    let windows = plain.replace('\n', "\r\n");
    assert_eq!(
        load_bytes(format!("\u{feff}{windows}").as_bytes()).unwrap(),
        expected
    );
    assert_eq!(
        load_bytes(plain.trim_end().as_bytes()).unwrap(),
        expected,
        "no last line feed"
    );
    assert_eq!(
        load_bytes(format!("{plain}\n\n").as_bytes()).unwrap(),
        expected
    );
    let unnamed = plain.strip_prefix("Unnamed").unwrap();
    assert_eq!(
        load_bytes(unnamed.as_bytes()).unwrap(),
        expected,
        "UCI's own header"
    );
    let quoted: Vec<String> = lines
        .iter()
        .map(|line| format!("\"{}\"", line.replace(',', "\",\"")))
        .collect();
    assert_eq!(load_bytes(text(&quoted).as_bytes()).unwrap(), expected);
    let decimal = plain.replacen(",2,", ",2.0,", 50);
    assert_ne!(decimal, plain);
    assert_eq!(
        load_bytes(decimal.as_bytes()).unwrap(),
        expected,
        "other forms of a number"
    );

    let mut shuffled = lines.clone();
    shuffled[1..].reverse();
    assert_eq!(
        load_bytes(text(&shuffled).as_bytes()).unwrap(),
        expected,
        "other order of rows"
    );
}

#[test]
fn the_file_may_be_compressed_and_in_the_folder_itself() {
    let plain = text(&small_file());
    let expected = load_bytes(plain.as_bytes()).unwrap();
    let folder = Folder::new();
    let compressed = folder.path().join("esr").join(format!("{NAME}.gz"));
    fs::write(&compressed, gzip(plain.as_bytes())).unwrap();
    assert_eq!(
        load(&esr_settings(), 1, Some(folder.path())).unwrap(),
        expected
    );
    assert_eq!(
        load(&esr_settings(), 1, compressed.parent()).unwrap(),
        expected
    );
}

#[test]
fn without_the_file_the_error_says_where_to_get_it() {
    let folder = Folder::new();
    let gone = folder.path().join("gone");
    for (dir, problem) in [
        (None, "no data folder is given"),
        (Some(folder.path()), "has no ESR file"),
        (Some(gone.as_path()), "does not exist"),
    ] {
        let message = load(&esr_settings(), 1, dir).unwrap_err().to_string();
        let expected = [
            problem,
            "SELVEDGE_DATA",
            "--data-dir",
            "esr/Epileptic Seizure Recognition.csv.gz",
            "UCI",
            "CC BY 4.0",
            "data.set=synthetic-esr",
        ];
        for part in expected {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }
}

#[test]
fn wrong_values_are_named() {
    refused_value(
        3,
        2,
        "12a",
        &["line 3, column X1: \"12a\" is not", "a number from -32768"],
    );
    refused_value(9, 179, "", &["line 9, column X178: it is empty"]);
    refused_value(4, 91, "NaN", &["line 4, column X90: \"NaN\" is not"]);
    refused_value(4, 91, "inf", &["line 4, column X90: \"inf\" is not"]);
    refused_value(4, 91, "1e30", &["line 4, column X90: \"1e30\" is not"]);
    refused_value(4, 91, "-40000", &["line 4, column X90: \"-40000\" is not"]);
    refused_value(
        126,
        180,
        "6",
        &["line 126, column y: \"6\" is not a label from 1 to 5"],
    );
    refused_value(
        2,
        180,
        "0",
        &["line 2, column y: \"0\" is not a label from 1 to 5"],
    );
    refused_value(
        2,
        180,
        "x",
        &["line 2, column y: \"x\" is not a label from 1 to 5"],
    );
    refused_value(
        2,
        1,
        "",
        &["line 2, column Unnamed: it is empty: expected an id, like X15.Z087"],
    );
    refused_value(
        2,
        7,
        "\"5",
        &["line 2: malformed quotes in column X6", "double quotes"],
    );
    let twice = [
        "line 3, column Unnamed: \"X1.C1R000\" is not unique",
        "line 2 has it already",
    ];
    refused_value(3, 1, "X1.C1R000", &twice);
}

#[test]
fn wrong_lines_are_named() {
    let lines = small_file();
    let mut short = lines.clone();
    short[6] = short[6].rsplit_once(',').unwrap().0.into();
    refused(
        text(&short).as_bytes(),
        &["line 7: 179 values", "expected 180"],
    );
    let mut long = lines.clone();
    long[6].push_str(",1");
    refused(
        text(&long).as_bytes(),
        &["line 7: 181 values", "expected 180"],
    );
    let plain = text(&lines);
    refused(
        &plain.as_bytes()[..plain.len() - 300],
        &["line 126: ", "cut short"],
    );
    let blank = plain.replacen("X1.C2", "\n\nX1.C2", 1);
    assert_eq!(
        load_bytes(blank.as_bytes()).unwrap(),
        load_bytes(plain.as_bytes()).unwrap()
    );
    let mut bytes = plain.clone().into_bytes();
    let at = plain.find("X3.C1R001").unwrap();
    bytes[at] = 0xff;
    refused(&bytes, &["line 9: not UTF-8"]);
    let endless = format!("{plain}{}", "7".repeat(1 << 25));
    refused(
        endless.as_bytes(),
        &["line 127: longer than 16777216 bytes"],
    );
}

#[test]
fn wrong_headers_are_named() {
    let plain = text(&small_file());
    refused(b"", &["an empty file", "expected a header"]);
    refused(format!("{}\n", header()).as_bytes(), &["no rows"]);
    let headless = plain.split_once('\n').unwrap().1;
    refused(
        headless.as_bytes(),
        &["the header has the column", "is the header row missing?"],
    );
    let renamed = plain.replacen(",X5,", ",V5,", 1);
    refused(
        renamed.as_bytes(),
        &["line 1, column 6: \"V5\" is not \"X5\""],
    );
    refused(
        plain.replacen(",y\n", "\n", 1).as_bytes(),
        &["line 1: 179 columns", "expected 180"],
    );
    refused(
        plain.replacen(",y\n", ",y,z\n", 1).as_bytes(),
        &["line 1: 181 columns"],
    );
    refused(
        plain.replace(',', "|").as_bytes(),
        &["line 1, column 1: ", "Unnamed|X1"],
    );
}

#[test]
fn broken_compression_is_recognised() {
    let whole = gzip(text(&small_file()).as_bytes());
    refused(&whole[..whole.len() / 2], &["ends early", "truncated"]);
    refused(&whole[..whole.len() - 4], &["ends early"]);
    let mut checksum = whole.clone();
    let at = checksum.len() - 6;
    checksum[at] ^= 1;
    refused(&checksum, &["corrupt"]);
    refused(&gzip(b""), &["an empty file"]);
}

#[test]
fn a_class_with_too_few_rows_is_named() {
    let lines: Vec<String> = small_file()
        .into_iter()
        .filter(|line| !line.ends_with(",3") || line.contains("R000"))
        .collect();
    refused(
        text(&lines).as_bytes(),
        &["class 3 has 4 rows", "of 84 in all", "too few"],
    );
}

#[test]
fn a_split_by_recording_needs_recordings() {
    let settings = selvedge_core::experiment::DataSettings {
        split: "recording".into(),
        ..esr_settings()
    };
    let message = |lines: &[String]| {
        let folder = Folder::with_esr(text(lines).as_bytes());
        load(&settings, 1, Some(folder.path()))
            .unwrap_err()
            .to_string()
    };
    let mut lines = small_file();
    lines[4] = lines[4].replacen("X4.", "X4", 1);
    let found = message(&lines);
    assert!(
        found.contains("line 5, column Unnamed: \"X4C1R000\" is not of the form"),
        "{found}"
    );
    let mut lines = small_file();
    lines[3].pop();
    lines[3].push('2');
    let found = message(&lines);
    assert!(
        found.contains("belong together") && found.contains("one label"),
        "{found}"
    );
    assert!(found.contains("C1R000") && found.contains(NAME), "{found}");
}

#[test]
fn settings_that_cannot_work_are_named() {
    let check = |change: &dyn Fn(&mut selvedge_core::experiment::DataSettings), part: &str| {
        let mut settings = esr_settings();
        change(&mut settings);
        let message = load(&settings, 1, None).unwrap_err().to_string();
        assert!(message.contains(part), "{part:?} is not in: {message}");
    };
    check(
        &|s| s.groups = 9,
        "data.groups = 9: the groups of \"esr\" are the ten pairs",
    );
    check(
        &|s| s.split = "recordings".into(),
        "data.split = \"recordings\": expected one of",
    );
    check(
        &|s| s.split = "recordings".into(),
        "did you mean \"recording\"?",
    );
    check(
        &|s| s.samples_per_device = 0,
        "data.samples_per_device = 0: expected at least 1",
    );
    check(
        &|s| s.test = 1.0,
        "data.test = 1: expected at least 0 and less than 1",
    );
    check(
        &|s| s.validation = f64::NAN,
        "data.validation = NaN: expected at least 0 and less than 1",
    );
    check(
        &|s| s.set = "ers".into(),
        "data.set = \"ers\": expected one of \"synthetic\", \"esr\"",
    );
}
