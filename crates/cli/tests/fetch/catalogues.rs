//! What is said without downloading anything.

use crate::common::{Place, says, snapshot, unchanged};
use crate::{FILE, Scene, sha256};
use serde_json::{Value, json};

#[test]
fn show_says_what_would_be_fetched_and_does_nothing() {
    let scene = Scene::new("fetch-show");
    scene.has_part("begun");
    let before = snapshot(scene.place.path());
    let ran = scene.fetch(&["--show"]).succeeded();
    let sum = sha256(&scene.bytes);
    let address = scene.server.address(FILE);
    says(
        &ran.stdout,
        &[
            "scans of nobody",
            "CC0 1.0",
            "300 kB",
            &address,
            &sum,
            "partly downloaded: 5 B",
        ],
    );
    let ran = scene
        .fetch(&["--show", "--json", "--mirror", "http://mirror.example/sets"])
        .succeeded();
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        shown,
        json!({
            "set": "scans",
            "title": "scans of nobody",
            "page": "https://hospital.example/scans",
            "licence": "CC0 1.0",
            "folder": "data/scans",
            "bytes": 300_000,
            "there": false,
            "files": [{
                "name": FILE,
                "address": "http://mirror.example/sets/scans.npz",
                "path": "data/scans/scans.npz",
                "bytes": 300_000,
                "checksum": { "kind": "SHA-256", "digits": sum },
                "status": "begun",
            }],
            "steps": [],
        })
    );
    unchanged(&before, &snapshot(scene.place.path()), "--show");
    assert_eq!(scene.asked_from(), []);
}

#[test]
fn our_own_sets_are_listed_with_what_is_there() {
    let place = Place::new("fetch-list");
    for name in ["set-a.tar.gz", "set-b.tar.gz", "Outcomes-a.txt"] {
        place.write(&format!("data/physionet2012/{name}"), "");
    }
    place.write("data/organamnist/organamnist.npz", "");
    let ran = place.succeeds(&["data", "fetch"]);
    let line = |name: &str| {
        let mut lines = ran.stdout.lines();
        lines
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("no {name} in {}", ran.stdout))
    };
    for (name, parts) in [
        ("physionet2012", ["13.4 MB", "partly", "ODC-BY 1.0"]),
        ("organamnist", ["at most 46.2 MB", "yes", "CC BY 4.0"]),
        ("tissuemnist", ["at most 186 MB", "no", "CC BY 4.0"]),
        ("mimic3", ["by hand", "no", "Credentialed"]),
        ("esr", ["by hand", "no", "CC BY 4.0"]),
    ] {
        assert!(
            parts.iter().all(|part| line(name).contains(part)),
            "{}",
            line(name)
        );
    }
    let ran = place.succeeds(&["data", "fetch", "--show", "--json"]);
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |name: &str| {
        list.as_array()
            .unwrap()
            .iter()
            .find(|set| set["set"] == name)
            .unwrap()
    };
    assert_eq!(of("physionet2012")["bytes"], 13_443_430);
    assert_eq!(of("physionet2012")["files"][3]["status"], "missing");
    assert_eq!(of("organamnist")["files"][0]["checksum"]["kind"], "MD5");
    assert_eq!(of("organamnist")["files"][0]["status"], "other");
}

#[test]
fn sets_that_no_program_may_download_are_explained() {
    let place = Place::new("fetch-by-hand");
    for (name, parts) in [
        (
            "mimic3",
            [
                "credentialed access",
                "mimic3-benchmarks",
                "data/mimic3/in-hospital-mortality",
            ],
        ),
        (
            "esr",
            [
                "archive.ics.uci.edu",
                "Kaggle",
                "data/esr/Epileptic Seizure Recognition.csv",
            ],
        ),
        (
            "mednist",
            ["MedNIST.tar.gz", "28 × 28", "data/mednist/mednist.npz"],
        ),
    ] {
        let ran = place.refuses(&["data", "fetch", name], &[name, "steps above"]);
        assert!(
            parts.iter().all(|part| ran.stdout.contains(part)),
            "{}",
            ran.stdout
        );
        // Only to look at them is no failure.
        place.succeeds(&["data", "fetch", name, "--show"]);
    }
    place.write("sets/esr/Epileptic Seizure Recognition.csv", "");
    let ran = place.succeeds(&["data", "fetch", "esr", "--data-dir", "sets"]);
    says(
        &ran.stdout,
        &["already there", "next: selvedge train esr --data-dir sets"],
    );
}

#[test]
fn a_mistyped_set_is_refused_with_the_nearest() {
    let place = Place::new("fetch-mistyped");
    place.refuses(
        &["data", "fetch", "organmnist"],
        &["organmnist", "did you mean \"organamnist\"?"],
    );
    place.refuses(
        &["data", "fetch", "bananas"],
        &["bananas", "\"physionet2012\""],
    );
    place.refuses(&["data", "fetch", "esr", "--json"], &["--show"]);
    place.refuses(
        &["data", "fetch", "esr", "--timeout", "0"],
        &["--timeout", "seconds"],
    );
}

#[test]
fn catalogues_that_cannot_be_right_are_refused() {
    let scene = Scene::bare("fetch-catalogue");
    scene.fetch(&[]).refused(&["sets.json"]);
    scene.place.write("sets.json", "{");
    scene.fetch(&[]).refused(&["sets.json", "not a catalogue"]);
    scene.catalogue(&json!([{ "name": "../../out.npz", "address": scene.server.address(FILE) }]));
    scene.fetch(&[]).refused(&["sets.json", "../../out.npz"]);
    scene.describe(json!({ "sha256": "12" }));
    scene
        .fetch(&[])
        .refused(&["sets.json", "\"scans.npz\"", "64 hexadecimal digits"]);
    scene.describe(json!({ "sha265": sha256(&scene.bytes) }));
    scene.fetch(&[]).refused(&["sets.json", "sha265"]);
    assert_eq!(scene.asked_from(), []);
    scene.left_nothing();
}
