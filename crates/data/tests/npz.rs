//! The `.npz` that is written, read back by a reader that follows the ZIP and NPY layouts literally.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_core::experiment::{DataSettings, Features};
use selvedge_data::{load, write_npz};
use selvedge_nn::Shape;
use std::collections::BTreeMap;
use std::io::Cursor;

/// The checksum, bit by bit from its definition.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    })
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | usize::from(*byte))
}

/// The files of an archive without ZIP64 parts, found through its directory.
fn unzip(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let end = archive.len() - 22;
    assert_eq!(&archive[end..end + 4], b"PK\x05\x06");
    let (count, mut at) = (number(archive, end + 10, 2), number(archive, end + 16, 4));
    assert_eq!(
        at + number(archive, end + 12, 4),
        end,
        "the directory ends where the end begins"
    );
    let mut files = BTreeMap::new();
    for _ in 0..count {
        assert_eq!(&archive[at..at + 4], b"PK\x01\x02");
        let (crc, size) = (number(archive, at + 16, 4), number(archive, at + 20, 4));
        let (name_length, extra) = (number(archive, at + 28, 2), number(archive, at + 30, 2));
        let name = &archive[at + 46..at + 46 + name_length];
        let local = number(archive, at + 42, 4);
        assert_eq!(&archive[local..local + 4], b"PK\x03\x04");
        assert_eq!(
            archive[local + 14..local + 28],
            archive[at + 16..at + 30],
            "headers agree"
        );
        assert_eq!(&archive[local + 30..local + 30 + name_length], name);
        let body = local + 30 + name_length + number(archive, local + 28, 2);
        let body = &archive[body..body + size];
        assert_eq!(crc32(body) as usize, crc);
        files.insert(String::from_utf8(name.to_vec()).unwrap(), body.to_vec());
        at += 46 + name_length + extra;
    }
    assert_eq!(at, end);
    files
}

/// The header's text and the values' bytes of an array.
fn array<'a>(files: &'a BTreeMap<String, Vec<u8>>, name: &str) -> (String, &'a [u8]) {
    let bytes = &files[&format!("{name}.npy")];
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let start = 10 + number(bytes, 8, 2);
    (
        String::from_utf8(bytes[10..start].to_vec()).unwrap(),
        &bytes[start..],
    )
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

fn integers(bytes: &[u8]) -> Vec<u32> {
    let wide = bytes
        .chunks(8)
        .map(|b| i64::from_le_bytes(b.try_into().unwrap()));
    wide.map(|value| u32::try_from(value).unwrap()).collect()
}

#[test]
fn what_is_written_is_what_training_sees() {
    let settings = DataSettings {
        groups: 2,
        devices: 30,
        features: Features {
            hospital: Shape::Flat(5),
            device: Shape::Flat(3),
        },
        validation: 0.1,
        ..DataSettings::default()
    };
    let dataset = load(&settings, 9, None).unwrap();
    let mut archive = Vec::new();
    write_npz(&dataset, Cursor::new(&mut archive)).unwrap();
    let files = unzip(&archive);
    assert_eq!(files.len(), 4 * 3);
    let sets = [
        ("g0", &dataset.groups[0].samples),
        ("g1", &dataset.groups[1].samples),
        ("test", &dataset.test),
        ("validation", &dataset.validation),
    ];
    for (prefix, samples) in sets {
        for (side, values, width) in [("x1", &samples.x1, 5), ("x2", &samples.x2, 3)] {
            let (header, bytes) = array(&files, &format!("{prefix}_{side}"));
            assert!(header.contains("'<f4'"), "{header}");
            assert!(
                header.contains(&format!("({}, {width})", samples.len())),
                "{header}"
            );
            assert_eq!(&floats(bytes), values);
        }
        let (header, bytes) = array(&files, &format!("{prefix}_y"));
        assert!(header.contains("'<i8'"), "{header}");
        assert!(
            header.contains(&format!("({},)", samples.len())),
            "{header}"
        );
        assert_eq!(integers(bytes), samples.y);
    }
}

#[test]
fn offsets_are_there_when_a_device_has_several_rows() {
    let settings = DataSettings {
        groups: 2,
        devices: 4,
        samples_per_device: 3,
        test: 0.0,
        ..DataSettings::default()
    };
    let dataset = load(&settings, 9, None).unwrap();
    let mut archive = Vec::new();
    write_npz(&dataset, Cursor::new(&mut archive)).unwrap();
    let files = unzip(&archive);
    assert_eq!(integers(array(&files, "g1_offsets").1), [0, 3, 6, 9, 12]);
    assert_eq!(array(&files, "test_x1").1.len(), 0);
    assert!(!files.contains_key("validation_x1.npy"));
}
