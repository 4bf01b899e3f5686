//! A reader of `.npz` that follows the ZIP and NPY layouts literally.

use std::collections::BTreeMap;

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
pub(crate) fn unzip(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
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
pub(crate) fn array<'a>(files: &'a BTreeMap<String, Vec<u8>>, name: &str) -> (String, &'a [u8]) {
    let bytes = &files[&format!("{name}.npy")];
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let start = 10 + number(bytes, 8, 2);
    (
        String::from_utf8(bytes[10..start].to_vec()).unwrap(),
        &bytes[start..],
    )
}

pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

pub(crate) fn integers(bytes: &[u8]) -> Vec<u32> {
    let wide = bytes
        .chunks(8)
        .map(|b| i64::from_le_bytes(b.try_into().unwrap()));
    wide.map(|value| u32::try_from(value).unwrap()).collect()
}
