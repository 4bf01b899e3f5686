//! What a party refuses: files that are missing, changed, or of another cut. It never looks at anybody else's.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::{Folder, files, key, parties, synthetic_settings};
use selvedge_core::experiment::DataSettings;
use selvedge_data::{PartyShard, cut, distribute, read_party};
use std::fs;
use std::path::{Path, PathBuf};

/// A small cut, and a party's folder of it.
fn handed_over(party: &PartyShard) -> (Folder, PathBuf) {
    let folder = Folder::new();
    let (out, own) = (folder.path().join("shards"), folder.path().join("own"));
    let settings = synthetic_settings(3, 2);
    cut(&settings, 5, None, &key(), &out).unwrap();
    distribute(&out, party.clone(), &own).unwrap();
    (folder, own)
}

#[track_caller]
fn refused(folder: &Path, party: &PartyShard, parts: &[&str]) {
    let message = read_party(folder, party.clone()).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn nobody_elses_file_is_opened() {
    let (folder, _) = handed_over(&PartyShard::Coordinator);
    let all = folder.path().join("shards");
    for party in parties(&[20; 3]) {
        let kept = party.file().map(|file| (fs::read(all.join(&file)), file));
        let others = parties(&[20; 3])
            .into_iter()
            .filter_map(|party| party.file());
        let before: Vec<_> = others
            .map(|f| (fs::read(all.join(&f)).unwrap(), f))
            .collect();
        for (_, file) in &before {
            fs::write(all.join(file), "not an archive").unwrap();
        }
        if let Some((bytes, file)) = kept {
            refused(&all, &party, &[file.to_str().unwrap()]);
            fs::write(all.join(file), bytes.unwrap()).unwrap();
        }
        read_party(&all, party).unwrap();
        for (bytes, file) in before {
            fs::write(all.join(file), bytes).unwrap();
        }
    }
}

#[test]
fn shards_that_do_not_fit_are_refused() {
    let party = PartyShard::Hospital(1);
    let (folder, own) = handed_over(&party);
    let shard = own.join("group-1/hospital.npz");
    let bytes = fs::read(&shard).unwrap();
    fs::write(&shard, &bytes[..bytes.len() / 2]).unwrap();
    refused(&own, &party, &["group-1/hospital.npz"]);
    for at in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 30] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&shard, changed).unwrap();
        refused(&own, &party, &["group-1/hospital.npz"]);
    }
    // The devices' shard in its place has other columns, the edge's has no rows.
    let other = folder.path().join("shards/group-1");
    fs::copy(other.join("edge.npz"), &shard).unwrap();
    refused(&own, &party, &["group-1/hospital.npz", "patients"]);
    // A cut of the same set with other devices.
    let second = folder.path().join("second");
    let settings = DataSettings {
        groups: 3,
        devices: 40,
        validation: 0.1,
        ..DataSettings::default()
    };
    cut(&settings, 5, None, &key(), &second).unwrap();
    let third = folder.path().join("third");
    let more = DataSettings {
        devices: 41,
        ..settings
    };
    cut(&more, 5, None, &key(), &third).unwrap();
    fs::copy(second.join("group-1/hospital.npz"), &shard).unwrap();
    refused(
        &own,
        &party,
        &["hospital.npz", "40 rows of 40 devices", "40 rows of 20"],
    );
    fs::copy(
        second.join("group-1/edge.npz"),
        own.join("group-1/edge.npz"),
    )
    .unwrap();
    refused(&own, &PartyShard::Edge(1), &["edge.npz", "40 rows of 20"]);
    fs::remove_file(&shard).unwrap();
    refused(&own, &party, &["group-1/hospital.npz"]);
    let gateway = PartyShard::Gateway {
        group: 1,
        devices: 0..3,
        held_out: true,
    };
    refused(&own, &gateway, &["group-1/devices.npz"]);
    refused(
        &own,
        &PartyShard::Edge(3),
        &["shards.json", "3 groups", "group 3", "below 3"],
    );
    // What everybody has is still right.
    read_party(&own, PartyShard::Coordinator).unwrap();
    fs::copy(third.join("stats.json"), own.join("stats.json")).unwrap();
    refused(&own, &party, &["stats.json", "fingerprint", "shards.json"]);
    fs::remove_file(own.join("stats.json")).unwrap();
    refused(&own, &party, &["stats.json"]);
    fs::remove_file(own.join("shards.json")).unwrap();
    refused(&own, &party, &["shards.json"]);
}

#[test]
fn an_index_that_does_not_fit_is_refused() {
    let party = PartyShard::Hospital(1);
    let (_folder, own) = handed_over(&party);
    let file = own.join("shards.json");
    let right: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let with = |change: &dyn Fn(&mut serde_json::Value), parts: &[&str]| {
        let mut changed = right.clone();
        change(&mut changed);
        fs::write(&file, changed.to_string()).unwrap();
        refused(&own, &party, parts);
    };
    with(
        &|index| {
            let all = index.as_object_mut().unwrap();
            all.retain(|name, _| !["labels", "largest"].contains(&name.as_str()));
            index["version"] = 1.into();
        },
        &[
            "shards.json",
            "version 1",
            "expected 2",
            "make the shards again",
        ],
    );
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    for (pointer, value, parts) in [
        ("/version", "9", &["version 9", "expected 2"][..]),
        ("/labels", "[120]", &["labels = [120]", "of 2"]),
        ("/labels", "[1, 2]", &["3 rows", "expected 120"]),
        ("/labels", "[0, 120]", &["hospital.npz", "class 0"]),
        ("/labels", "[18446744073709551615, 121]", &["expected 120"]),
        (
            "/labels",
            "null",
            &["shards.json", "expected a file written by"],
        ),
        ("/largest", "1", &["20 to 20 rows"]),
        ("/largest", "99", &["largest = 99", "at most 21"]),
        ("/groups/2/rows", "39", &["119 rows", "120", "stats.json"]),
        (
            "/groups/2/devices",
            "99999999999999",
            &["group 2", "99999999999999 devices"],
        ),
        (
            "/groups/2/rows",
            "99999999999999",
            &["group 2", "99999999999999 rows"],
        ),
        (
            "/groups/1/devices",
            "21",
            &["hospital.npz", "40 rows of 21"],
        ),
        ("/test", "2", &["26 test rows", "expected 2"]),
        ("/validation", "1", &["validation rows", "expected 1"]),
    ] {
        let change = |index: &mut serde_json::Value| {
            *index.pointer_mut(pointer).unwrap() = json(value);
        };
        with(&change, parts);
    }
    // Earlier versions did not say how many held-out rows each group has.
    for (part, rows, parts) in [
        ("test", 2, &["hospital.npz", "test_rows", "below 2"][..]),
        ("validation", 1, &["validation_rows", "below 1"]),
    ] {
        let change = |index: &mut serde_json::Value| {
            index[part] = rows.into();
            let groups = index["groups"].as_array_mut().unwrap();
            for group in groups {
                group.as_object_mut().unwrap().remove("held_out");
            }
        };
        with(&change, parts);
    }
    fs::write(&file, "{").unwrap();
    refused(&own, &party, &["shards.json, line 1"]);
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let (folder, own) = handed_over(&PartyShard::Edge(0));
    let all = folder.path().join("shards");
    let before = files(&own);
    let message = distribute(&all, PartyShard::Hospital(0), &own).unwrap_err();
    assert!(message.to_string().contains("expected a new folder"));
    assert_eq!(files(&own), before);
    // Nothing appears where a shard cannot be read.
    fs::remove_file(all.join("group-2/devices.npz")).unwrap();
    let gateway = PartyShard::Gateway {
        group: 2,
        devices: 0..20,
        held_out: true,
    };
    let message = distribute(&all, gateway, &all.join("new")).unwrap_err();
    assert!(message.to_string().contains("group-2/devices.npz"));
    assert!(!all.join("new").exists());
}
