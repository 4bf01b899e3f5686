//! Messages that say what is the matter.

use crate::common::process::{bounded_selvedge, finish};
use crate::common::{Place, says};
use crate::tables::{experiment, flat, patients, place};

#[test]
fn numbers_are_expected_in_words() {
    let place = Place::new("truth-words");
    for (set, part) in [
        ("train.iterations=many", "expected a whole number"),
        ("train.learning_rate=fast", "expected a number"),
        ("data.table.masks=1", "expected true or false"),
        ("data.table.id=5", "expected a text"),
    ] {
        let ran = place.refuses(&["train", "--set", set], &[set, part]);
        for word in ["u64", "f64", "usize", "boolean"] {
            assert!(!ran.stderr.contains(word), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_key_that_only_looks_right_is_shown_as_it_is() {
    let place = Place::new("truth-keys");
    for (text, parts) in [
        (
            "[\"data \"]\nset = \"esr\"\n",
            ["\"data \"", "did you mean `data`?"],
        ),
        (
            "[\"data\u{200b}\"]\nset = \"esr\"\n",
            ["\"data\\u{200b}\"", "did you mean `data`?"],
        ),
    ] {
        place.write("t.toml", text);
        place.refuses(&["train", "t.toml"], &parts);
    }
}

#[test]
fn a_file_of_carriage_returns_is_called_one() {
    let text = flat(&patients(60), ["no", "yes"]).replace('\n', "\r");
    let place = place("truth-returns", text, &experiment("", ""));
    place.refuses(
        &["data", "inspect", "t.toml"],
        &["t.csv", "carriage return alone", "line feeds"],
    );
}

#[test]
fn a_run_that_cannot_be_read_is_not_called_none() {
    let place = Place::new("truth-unreadable");
    std::fs::create_dir(place.join("run")).unwrap();
    // The tests may run as somebody who may read everything, but nobody can read a link to itself.
    std::os::unix::fs::symlink("manifest.json", place.join("run/manifest.json")).unwrap();
    let ran = place
        .selvedge(&["evaluate", "run"])
        .refused(&["cannot read run/manifest.json"]);
    assert!(!ran.stderr.contains("has no"), "{}", ran.stderr);
    place
        .selvedge(&["evaluate", "nowhere"])
        .refused(&["nowhere", "there is no such folder"]);
}

#[test]
fn out_of_memory_is_an_error_and_no_crash() {
    let place = Place::new("truth-memory");
    let mut command = bounded_selvedge(place.path(), 1);
    let ran = finish(command.args([
        "train",
        "synthetic",
        "--set",
        "data.devices=40000000",
        "--set",
        "data.groups=1",
        "--threads",
        "1",
    ]));
    assert_eq!(ran.status.code(), Some(2), "{}", ran.stderr);
    says(&ran.stderr, &["error: out of memory:", "expected"]);
    assert!(!ran.stderr.contains("backtrace"), "{}", ran.stderr);
}
