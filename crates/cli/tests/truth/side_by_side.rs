//! Several processes at once, folders that are there, names that a shell or a spreadsheet takes for something else.

use crate::common::process::finish;
use crate::common::{Place, says, selvedge, words};
use crate::tables::{experiment, flat, patients, place};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const SHORT: [&str; 2] = ["--set", "train.iterations=50"];

fn entries(place: &Place, folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(place.join(folder)).unwrap();
    entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn trainings_at_once_get_folders_of_their_own() {
    let place = Place::new("side-by-side");
    let start = || {
        std::thread::scope(|_| {
            selvedge(place.path())
                .args(["train"])
                .args(SHORT)
                .spawn()
                .unwrap()
        })
    };
    let children: Vec<_> = (0..4).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let names = [
        "synthetic-42",
        "synthetic-42-2",
        "synthetic-42-3",
        "synthetic-42-4",
    ];
    assert_eq!(entries(&place, "runs"), names.map(String::from).into());
    for name in names {
        place.succeeds(&["evaluate", &format!("runs/{name}")]);
    }
}

#[test]
fn of_two_trainings_into_one_folder_one_is_told() {
    let place = Place::new("side-by-side-same");
    let args = ["train", "--out", "run", "--set", "train.iterations=20000"];
    let children: Vec<_> = (0..2)
        .map(|_| {
            let mut command = selvedge(place.path());
            command.args(args);
            std::thread::spawn(move || finish(&mut command))
        })
        .collect();
    let ran: Vec<_> = children
        .into_iter()
        .map(|child| child.join().unwrap())
        .collect();
    let mut codes: Vec<_> = ran.iter().map(|ran| ran.code()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)]);
    let refused = ran.iter().find(|ran| ran.code() == Some(2)).unwrap();
    says(&refused.stderr, &["run", "already exists"]);
    assert_eq!(entries(&place, "."), ["run".to_owned()].into());
}

#[test]
fn an_empty_folder_is_taken_and_a_refusal_leaves_none() {
    let place = Place::new("side-by-side-empty");
    fs::create_dir(place.join("empty")).unwrap();
    place.succeeds(&[&["train", "--out", "empty"][..], &SHORT].concat());
    fs::create_dir(place.join("seeds")).unwrap();
    place.succeeds(&[&["train", "--seeds", "2", "--out", "seeds"][..], &SHORT].concat());
    place.write("taken/note.txt", "mine");
    place.refuses(
        &["train", "--out", "taken"],
        &["taken already exists", "--resume taken"],
    );
    // Nothing is left of what could not begin, not even an empty folder.
    place.refuses(&["train", "--set", "model.hospital=[\"lstm\"]"], &["model"]);
    place.refuses(&["train", "esr"], &["data"]);
}

/// The command that is suggested is run as it stands.
#[test]
fn suggested_commands_survive_a_shell() {
    let place = Place::new("side-by-side-shell");
    for name in ["my run", "it's $(here)", "semi;colon"] {
        let ran = place.succeeds(&[&["train", "--out", name][..], &SHORT].concat());
        let next = ran
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("Next    "))
            .unwrap();
        let program = selvedge(place.path()).get_program().to_owned();
        let script = next.replacen("selvedge", "\"$0\"", 1);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script])
            .arg(program)
            .current_dir(place.path());
        finish(&mut shell).succeeded();
    }
    let refused = place.refuses(&["train", "--out", "my run"], &["my run already exists"]);
    says(&refused.stderr, &["--resume 'my run'"]);
}

#[test]
fn ids_are_no_formulas_and_come_back() {
    let ids = [
        "=1+1",
        "@sum",
        "+a",
        "-b",
        "'=c",
        "-5",
        "plain",
        "=cmd|' /C calc'!A0",
        "'quoted",
    ];
    let mut rows = patients(100);
    let place = place(
        "side-by-side-ids",
        flat(&rows, ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    rows.truncate(ids.len());
    for (row, id) in rows.iter_mut().zip(ids) {
        row.id = id.into();
    }
    place.write("new.csv", flat(&rows, ["no", "yes"]));
    let ran = place.succeeds(&words("predict run --input new.csv --out p.csv"));
    says(&ran.stderr, &["6 ids would be a formula", "--json"]);
    let text = fs::read_to_string(place.join("p.csv")).unwrap();
    for (line, id) in text.lines().skip(1).zip(ids) {
        let cell = line.split(',').next().unwrap();
        let bare = cell.trim_start_matches('\'');
        let is_formula = bare.starts_with(['=', '+', '-', '@']) && bare.parse::<f64>().is_err();
        let back = if is_formula {
            cell.strip_prefix('\'').unwrap()
        } else {
            cell
        };
        assert_eq!(back, id, "{line}");
        assert!(!cell.starts_with(['=', '+', '@']), "{line}");
    }
    let value: Value = serde_json::from_str(
        &place
            .succeeds(&words("predict run --input new.csv --json"))
            .stdout,
    )
    .unwrap();
    let named = value["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["id"].as_str().unwrap());
    assert_eq!(named.collect::<Vec<_>>(), ids);
}
