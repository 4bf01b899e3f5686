//! Gateways of a group: each has the rows of its own devices and nobody else's, and together they have them all.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::archive::{array, integers, unzip};
use common::{Folder, bits, gateways, key, small_file, small_sets, synthetic_settings, text};
use selvedge_core::experiment::DataSettings;
use selvedge_data::{HeldOut, PartyShard, SETS, cut, distribute, load, read_party};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

const PARTS: [&str; 3] = ["", "validation_", "test_"];

fn gateway(devices: Range<u32>, held_out: bool) -> PartyShard {
    PartyShard::Gateway {
        group: 1,
        devices,
        held_out,
    }
}

fn devices_file(folder: &Path, group: usize) -> Vec<u8> {
    fs::read(folder.join(format!("group-{group}/devices.npz"))).unwrap()
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The bytes of an array, row after row.
fn rows_of<'a>(files: &'a BTreeMap<String, Vec<u8>>, name: &str, rows: usize) -> Vec<&'a [u8]> {
    let bytes = array(files, name).1;
    match rows {
        0 => Vec::new(),
        _ => bytes.chunks(bytes.len() / rows).collect(),
    }
}

/// A gateway's file has, of the whole group's, its devices' rows and nothing else, byte for byte.
fn has_nothing_else(file: &[u8], whole: &[u8], devices: &Range<u32>, held_out: bool) {
    let (own, all) = (unzip(file), unzip(whole));
    let offsets = integers(array(&all, "offsets").1);
    assert_eq!(array(&own, "offsets"), array(&all, "offsets"));
    let said = integers(array(&own, "devices").1);
    assert_eq!(said, [devices.start, devices.end]);
    assert_eq!(
        own.len(),
        all.len() + 2,
        "only `devices` and `held_out` more"
    );
    let flag = integers(array(&own, "held_out").1);
    assert_eq!(flag, [u32::from(held_out)]);
    for prefix in PARTS {
        let there = array(&all, &format!("{prefix}y")).1.len() / 8;
        let mine = match (prefix, held_out) {
            ("", _) => {
                let [first, end] = [devices.start, devices.end].map(|n| offsets[n as usize]);
                first as usize..end as usize
            }
            (_, true) => 0..there,
            (_, false) => 0..0,
        };
        let names = ["patients", "x", "y", "rows"].map(|name| format!("{prefix}{name}"));
        for name in names.iter().filter(|name| *name != "rows") {
            let expected = &rows_of(&all, name, there)[mine.clone()];
            assert_eq!(array(&own, name).1, expected.concat(), "{name}");
        }
        // Pseudonyms and numbers of others are nowhere in it.
        for name in &names[..2] {
            for (row, bytes) in rows_of(&all, name, there).into_iter().enumerate() {
                assert_eq!(has(file, bytes), mine.contains(&row), "{name}, row {row}");
            }
        }
    }
}

/// Splits each group's devices among gateways, hands each its folder, and puts what they read there together.
fn together_they_are_the_group(settings: &DataSettings, data_dir: Option<&Path>, seed: u64) {
    let folder = Folder::new();
    let out = folder.path().join("shards");
    cut(settings, 5, data_dir, &key(), &out).unwrap();
    let whole = load(settings, 5, data_dir).unwrap();
    for (m, group) in whole.groups.iter().enumerate() {
        let whole_file = devices_file(&out, m);
        let (mut x2, mut y) = (Vec::new(), Vec::new());
        for party in gateways(m, group.devices() as u32, seed) {
            let PartyShard::Gateway {
                devices, held_out, ..
            } = &party
            else {
                panic!("not a gateway")
            };
            let own = folder.path().join("own");
            distribute(&out, party.clone(), &own).unwrap();
            has_nothing_else(&devices_file(&own, m), &whole_file, devices, *held_out);
            let read = read_party(&own, party.clone()).unwrap();
            let mine = &read.dataset.groups[m];
            assert_eq!(mine.offsets, group.offsets);
            assert_eq!(y.len(), group.rows(devices.start).start);
            x2.extend_from_slice(&mine.samples.x2);
            y.extend_from_slice(mine.samples.y.classes());
            assert!(mine.samples.x1.is_empty());
            if !held_out {
                assert_eq!(read.held_out, [HeldOut::default(), HeldOut::default()]);
            }
            // The same out of the whole group's file, and copied once more.
            let from_all = read_party(&out, party.clone()).unwrap();
            assert_eq!(from_all.dataset, read.dataset);
            assert_eq!(from_all.held_out, read.held_out);
            let again = folder.path().join("again");
            distribute(&own, party, &again).unwrap();
            assert_eq!(devices_file(&again, m), devices_file(&own, m));
            fs::remove_dir_all(own).unwrap();
            fs::remove_dir_all(again).unwrap();
        }
        assert_eq!(bits(&x2), bits(&group.samples.x2));
        assert_eq!(y, group.samples.y.classes());
    }
}

#[test]
fn gateways_have_their_own_rows_and_together_all() {
    let esr = Folder::with_esr(text(&small_file()).as_bytes());
    for settings in small_sets() {
        for seed in 0..3 {
            together_they_are_the_group(&settings, Some(esr.path()), seed);
        }
    }
}

#[test]
fn gaps_stay_gaps() {
    let folder = Folder::new();
    let mut table = String::from("patient,age,hr,spo2,died\n");
    for n in 0..41 {
        let hr = 60.0 + f64::from(n * n) / 7.0;
        let spo2 = match n % 3 {
            0 => String::new(),
            _ => format!("{}", 90.0 + f64::from(n) / 9.0),
        };
        table += &format!(
            "p{n},{},{hr},{spo2},{}\n",
            30 + n,
            ["no", "yes"][n as usize % 2]
        );
    }
    fs::write(folder.path().join("t.csv"), table).unwrap();
    let experiment = "[data]\nset = \"table\"\npath = \"t.csv\"\ngroups = 2\nsplit = \"iid\"\nvalidation = 0.1\n\
        samples_per_device = 4\n[data.table]\nid = \"patient\"\nlabel = \"died\"\nhospital = [\"age\"]\n\
        device = [\"hr\", \"spo2\"]\n";
    let settings = SETS.parse(experiment, &[]).unwrap().data;
    for seed in 0..3 {
        together_they_are_the_group(&settings, Some(folder.path()), seed);
    }
}

#[track_caller]
fn refused(folder: &Path, party: PartyShard, parts: &[&str]) {
    let message = read_party(folder, party).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

/// A small cut of groups with 20 devices of two rows each.
fn small_cut(folder: &Folder) -> std::path::PathBuf {
    let out = folder.path().join("shards");
    let settings = synthetic_settings(2, 2);
    cut(&settings, 5, None, &key(), &out).unwrap();
    out
}

#[test]
#[allow(clippy::reversed_empty_ranges)] // as somebody may ask for one
fn ranges_that_are_not_there_are_refused() {
    let folder = Folder::new();
    let out = small_cut(&folder);
    for devices in [0..0, 20..20, 7..3, 0..21, 20..21, 3..u32::MAX] {
        let asked = format!("devices {} to {} (exclusive)", devices.start, devices.end);
        let party = gateway(devices, true);
        let parts = ["shards.json: group 1 has 20 devices", &asked, "below 20"];
        refused(&out, party.clone(), &parts);
        let into = folder.path().join("own");
        let message = distribute(&out, party, &into).unwrap_err().to_string();
        assert!(message.contains(&asked), "{message}");
        assert!(!into.exists());
    }
    let elsewhere = PartyShard::Gateway {
        group: 2,
        devices: 0..1,
        held_out: true,
    };
    refused(&out, elsewhere, &["shards.json", "2 groups", "group 2"]);
}

#[test]
fn files_of_other_gateways_are_refused() {
    let folder = Folder::new();
    let out = small_cut(&folder);
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    distribute(&out, gateway(0..7, true), &first).unwrap();
    distribute(&out, gateway(7..20, false), &second).unwrap();
    for (asked, expected) in [
        (0..6, "devices 0 to 5"),
        (0..8, "devices 0 to 7"),
        (1..7, "devices 1 to 6"),
        (3..4, "device 3"),
        (7..20, "devices 7 to 19"),
        (0..20, "devices 0 to 19"),
    ] {
        for held_out in [true, false] {
            let expected = format!("expected one with {expected}");
            let parts = ["group-1/devices.npz: ", "with devices 0 to 6", &expected];
            refused(&first, gateway(asked.clone(), held_out), &parts);
        }
    }
    let parts = ["group-1/devices.npz: ", "7 to 19", "no held-out rows"];
    refused(&second, gateway(7..20, true), &parts);
    // Held-out rows that nobody asks for are left out.
    let read = read_party(&first, gateway(0..7, false)).unwrap();
    assert_eq!(read.held_out, [HeldOut::default(), HeldOut::default()]);
    // Nobody takes a gateway's file for the whole group's.
    fs::copy(
        first.join("group-1/devices.npz"),
        out.join("group-1/devices.npz"),
    )
    .unwrap();
    let shards = DataSettings {
        set: "shards".into(),
        path: out.to_str().unwrap().into(),
        groups: 2,
        ..DataSettings::default()
    };
    let message = load(&shards, 0, None).unwrap_err().to_string();
    let told = message.contains("group-1/devices.npz") && message.contains("the whole group");
    assert!(told, "{message}");
    // Nor the file of another group's gateway, or of another cut.
    let other = folder.path().join("other");
    let settings = DataSettings {
        groups: 2,
        devices: 30,
        ..DataSettings::default()
    };
    cut(&settings, 5, None, &key(), &other).unwrap();
    let own = folder.path().join("own");
    distribute(&other, gateway(0..7, true), &own).unwrap();
    fs::copy(
        own.join("group-1/devices.npz"),
        first.join("group-1/devices.npz"),
    )
    .unwrap();
    let parts = ["group-1/devices.npz", "30 devices", "40 rows of 20"];
    refused(&first, gateway(0..7, true), &parts);
}

#[test]
fn damaged_files_are_refused() {
    let folder = Folder::new();
    let out = small_cut(&folder);
    let own = folder.path().join("own");
    let party = gateway(4..9, true);
    distribute(&out, party.clone(), &own).unwrap();
    let file = own.join("group-1/devices.npz");
    let bytes = fs::read(&file).unwrap();
    for end in (0..bytes.len()).step_by(41).chain([bytes.len() - 1]) {
        fs::write(&file, &bytes[..end]).unwrap();
        let parts = ["group-1/devices.npz: ", "not a complete ZIP archive"];
        refused(&own, party.clone(), &parts);
    }
    for name in [
        "patients", "x", "y", "test_x", "offsets", "devices", "held_out",
    ] {
        let arrays = unzip(&bytes);
        let whole = &arrays[&format!("{name}.npy")];
        let at = bytes.windows(whole.len()).position(|w| w == whole).unwrap();
        let mut changed = bytes.clone();
        changed[at + whole.len() - 8] ^= 1;
        fs::write(&file, changed).unwrap();
        refused(&own, party.clone(), &["group-1/devices.npz: "]);
    }
    fs::remove_file(&file).unwrap();
    refused(&own, party, &["group-1/devices.npz"]);
}
