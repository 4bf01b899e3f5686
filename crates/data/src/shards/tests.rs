//! Offsets and devices that could send a reader astray.

use super::gateway::Carried;
use super::shard::{Shard, read_offsets};
use super::{IndexGroup, PartyShard, cut, distribute, read_party};
use crate::files::npz::NpzWriter;
use crate::{PseudonymKey, load};
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::Outcome;
use std::fs::{self, File};

#[test]
fn offsets_that_do_not_fit_are_refused() {
    let name = format!("selvedge-offsets-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&folder);
    let settings = DataSettings {
        groups: 2,
        devices: 3,
        samples_per_device: 2,
        ..DataSettings::default()
    };
    let key = PseudonymKey::new([3; 32]);
    cut(&settings, 5, None, &key, &folder).unwrap();
    let file = folder.join("group-1/edge.npz");
    let write = |offsets: &[u32]| {
        let mut npz = NpzWriter::new(File::create(&file).unwrap()).unwrap();
        npz.integers("offsets", offsets).unwrap();
        npz.finish().unwrap();
    };
    let right = fs::read(&file).unwrap();
    write(&[0, 2, 4, 6]);
    assert_eq!(fs::read(&file).unwrap(), right);
    for (offsets, expected) in [
        (&[][..], "6 rows of 0 devices: expected 6 rows of 3"),
        (&[0, 2, 6], "6 rows of 2 devices: expected 6 rows of 3"),
        (
            &[1, 2, 4, 6],
            "goes from 1 to 6: expected increasing numbers from 0 to 6",
        ),
        (
            &[0, 2, 4, 7],
            "goes from 0 to 7: expected increasing numbers from 0 to 6",
        ),
        (
            &[0, 4, 2, 6],
            "goes from 0 to 6: expected increasing numbers from 0 to 6",
        ),
        (
            &[0, 2, 2, 6],
            "goes from 0 to 6: expected increasing numbers from 0 to 6",
        ),
        (
            &[0, 1, 2, 6],
            "a device has 4 rows: expected at most 2, as in shards.json",
        ),
    ] {
        write(offsets);
        let message = read_party(&folder, PartyShard::Edge(1))
            .unwrap_err()
            .to_string();
        let whole = message.contains("group-1/edge.npz") && message.contains(expected);
        assert!(whole, "{expected:?} is not in: {message}");
    }
    // Who reads everything sees that the parties of a group do not agree.
    write(&[0, 1, 4, 6]);
    let shards = DataSettings {
        set: "shards".into(),
        path: folder.to_str().unwrap().into(),
        ..settings
    };
    let message = load(&shards, 0, None).unwrap_err().to_string();
    assert!(
        message.contains("edge.npz: its offsets differ"),
        "{message}"
    );
    fs::write(&file, right).unwrap();
    load(&shards, 0, None).unwrap();
    let described = IndexGroup {
        name: "group".into(),
        devices: 3,
        rows: 6,
        held_out: None,
    };
    assert_eq!(read_offsets(&file, &described).unwrap(), [0, 2, 4, 6]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn devices_that_do_not_fit_are_refused() {
    let name = format!("selvedge-devices-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&folder);
    let (all, own) = (folder.join("all"), folder.join("own"));
    let settings = DataSettings {
        groups: 2,
        devices: 5,
        samples_per_device: 2,
        ..DataSettings::default()
    };
    let key = PseudonymKey::new([3; 32]);
    cut(&settings, 5, None, &key, &all).unwrap();
    let party = PartyShard::Gateway {
        group: 1,
        devices: 1..3,
        held_out: true,
    };
    distribute(&all, party.clone(), &own).unwrap();
    let file = own.join("group-1/devices.npz");
    let shape = settings.features.device;
    let right = fs::read(&file).unwrap();
    let refused = |change: &dyn Fn(&mut Shard), expected: &str| {
        fs::write(&file, &right).unwrap();
        let mut shard = Shard::open(
            &file,
            shape,
            (&Outcome::Class, &["a", "b"].map(String::from)),
        )
        .unwrap();
        change(&mut shard);
        shard.write(&file, shape).unwrap();
        let message = read_party(&own, party.clone()).unwrap_err().to_string();
        let whole = message.contains("group-1/devices.npz: ") && message.contains(expected);
        assert!(whole, "{expected:?} is not in: {message}");
    };
    let carried = |devices| {
        Some(Carried {
            devices,
            held_out: true,
            from: [0; 2],
        })
    };
    refused(&|s| s.carried = None, "4 rows of 5 devices: expected 10");
    refused(
        &|s| s.carried = carried(1..4),
        "it belongs to a gateway with devices 1 to 3: expected one with devices 1 to 2",
    );
    refused(&|s| s.carried = carried(3..3), "two in increasing order");
    refused(&|s| s.carried = carried(u32::MAX - 1..u32::MAX), "devi");
    refused(
        &|s| s.offsets = vec![0, 2, 5, 6, 8, 10],
        "a device has 3 rows: expected at most 2",
    );
    refused(
        &|s| s.offsets = vec![0, 2, 4, 5, 8, 10],
        "4 rows of devices 1 to 2: expected 3, as in array \"offsets\"",
    );
    refused(
        &|s| s.offsets = vec![0, 2, 4, 10],
        "rows of 3 devices: expected 10 rows of 5",
    );
    refused(
        &|s| s.offsets = vec![0, 2, 4, 6, 8, 9],
        "goes from 0 to 9: expected increasing numbers from 0 to 10",
    );
    refused(
        &|s| s.parts[1].rows = vec![9; s.parts[1].y.len() + 1],
        "expected the same number of each",
    );
    let mut npz = NpzWriter::new(File::create(&file).unwrap()).unwrap();
    npz.texts("patients", &[*b"short"]).unwrap();
    npz.finish().unwrap();
    let message = read_party(&own, party).unwrap_err().to_string();
    assert!(
        message.contains("expected 32 hexadecimal digits"),
        "{message}"
    );
    fs::remove_dir_all(&folder).unwrap();
}
