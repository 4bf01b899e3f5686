//! Shards: together they are the whole, bit for bit, and each has only what is its own.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::{
    Folder, esr_settings, esr_with_validation, key, small_file, synthetic_settings, text,
};
use selvedge_core::experiment::DataSettings;
use selvedge_data::{cut, load, load_with_notes};
use std::fs;
use std::path::Path;

fn shards_of(settings: &DataSettings, path: &Path) -> DataSettings {
    DataSettings {
        set: "shards".into(),
        path: path.to_str().unwrap().into(),
        ..settings.clone()
    }
}

#[test]
fn together_they_are_the_whole() {
    let esr = Folder::with_esr(text(&small_file()).as_bytes());
    for settings in [
        esr_settings(),
        esr_with_validation(2),
        synthetic_settings(3, 1),
    ] {
        let folder = Folder::new();
        let out = folder.path().join("shards");
        let done = cut(&settings, 5, Some(esr.path()), &key(), &out).unwrap();
        assert_eq!(done.groups, settings.groups);
        let whole = load_with_notes(&settings, 5, Some(esr.path())).unwrap();
        let again = load_with_notes(&shards_of(&settings, &out), 0, None).unwrap();
        assert_eq!(again.dataset, whole.dataset);
        assert_eq!(again.statistics, whole.statistics);
        assert_eq!(again.dataset.fingerprint(), whole.dataset.fingerprint());
        let mut beside = fs::read_dir(folder.path()).unwrap().flatten();
        assert!(!beside.any(|entry| entry.file_name().to_string_lossy().contains("partial")));
    }
}

#[test]
fn no_shard_names_a_patient() {
    let esr = Folder::with_esr(text(&small_file()).as_bytes());
    let folder = Folder::new();
    let out = folder.path().join("shards");
    cut(&esr_settings(), 5, Some(esr.path()), &key(), &out).unwrap();
    let mut names = 0;
    for group in 0..10 {
        for shard in ["hospital.npz", "devices.npz"] {
            let bytes = fs::read(out.join(format!("group-{group}")).join(shard)).unwrap();
            // Texts are stored as four bytes a letter: without the zeros they would be found.
            let letters: Vec<u8> = bytes.into_iter().filter(|b| *b != 0).collect();
            let found = |needle: &str| {
                letters
                    .windows(needle.len())
                    .any(|w| w == needle.as_bytes())
            };
            assert!(
                !found("C1R") && !found("C5R"),
                "an id of the file is in a shard"
            );
            for line in &small_file()[1..] {
                let id = line.split(',').next().unwrap();
                names += usize::from(found(&key().pseudonym(id)));
            }
        }
    }
    // Every patient is in two shards: the hospital's and the devices'.
    assert_eq!(names, 2 * (small_file().len() - 1));
}

#[test]
fn changed_shards_are_refused() {
    let esr = Folder::with_esr(text(&small_file()).as_bytes());
    let folder = Folder::new();
    let out = folder.path().join("shards");
    let settings = esr_settings();
    cut(&settings, 5, Some(esr.path()), &key(), &out).unwrap();
    let from = shards_of(&settings, &out);
    let refused = |parts: &[&str]| {
        let message = load(&from, 0, None).unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    };
    let change = |name: &str, with: &dyn Fn(Vec<u8>) -> Vec<u8>, parts: &[&str]| {
        let path = out.join(name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, with(bytes.clone())).unwrap();
        refused(parts);
        fs::write(&path, bytes).unwrap();
    };
    change(
        "group-3/hospital.npz",
        &|b| b[..b.len() / 2].to_vec(),
        &["group-3/hospital.npz"],
    );
    change(
        "group-3/devices.npz",
        &|mut b| {
            let middle = b.len() / 2;
            b[middle] ^= 1;
            b
        },
        &["group-3"],
    );
    let other = fs::read(out.join("group-4/devices.npz")).unwrap();
    change(
        "group-3/devices.npz",
        &|_| other.clone(),
        &["group-3/devices.npz", "patients"],
    );
    let text_of = |b: Vec<u8>| String::from_utf8(b).unwrap();
    change(
        "stats.json",
        &|b| text_of(b).replacen("0.", "1.", 1).into(),
        &["stats.json", "fingerprint"],
    );
    change(
        "shards.json",
        &|b| {
            text_of(b)
                .replace("\"version\": 2", "\"version\": 9")
                .into()
        },
        &["version 9"],
    );
    change("shards.json", &|_| b"{".to_vec(), &["shards.json"]);
    // An absurd count takes no memory.
    change(
        "shards.json",
        &|b| {
            text_of(b)
                .replace("\"test\": 25", "\"test\": 99999999999999")
                .into()
        },
        &["99999999999999"],
    );
    fs::remove_file(out.join("group-7/hospital.npz")).unwrap();
    refused(&["group-7/hospital.npz"]);
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new();
    fs::write(folder.path().join("mine"), "x").unwrap();
    let settings = DataSettings::default();
    let message = cut(&settings, 1, None, &key(), folder.path())
        .unwrap_err()
        .to_string();
    assert!(message.contains("expected a new folder"), "{message}");
    assert_eq!(fs::read(folder.path().join("mine")).unwrap(), b"x");
}
