//! Just enough of zip and `.npy` to read what `data export` writes: stored members, version 1.0 headers.

use std::collections::BTreeMap;

/// An array.
#[derive(Debug, PartialEq)]
pub struct Array {
    pub descr: String,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

impl Array {
    pub fn floats(&self) -> Vec<f32> {
        assert_eq!(self.descr, "<f4");
        let number = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
        self.data.chunks_exact(4).map(number).collect()
    }

    pub fn integers(&self) -> Vec<i64> {
        assert_eq!(self.descr, "<i8");
        let number = |b: &[u8]| i64::from_le_bytes(b.try_into().unwrap());
        self.data.chunks_exact(8).map(number).collect()
    }
}

fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    let mut value = [0; 8];
    value[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(value) as usize
}

/// The arrays by name, found through the central directory as any reader of zip files does.
pub fn read(bytes: &[u8]) -> BTreeMap<String, Array> {
    let end = (0..=bytes.len() - 22)
        .rev()
        .find(|at| bytes[*at..].starts_with(b"PK\x05\x06"))
        .expect("no end of a central directory");
    let (count, mut at) = (number(bytes, end + 10, 2), number(bytes, end + 16, 4));
    let mut arrays = BTreeMap::new();
    for _ in 0..count {
        assert!(
            bytes[at..].starts_with(b"PK\x01\x02"),
            "no directory entry at {at}"
        );
        assert_eq!(number(bytes, at + 10, 2), 0, "a compressed member");
        let crc = number(bytes, at + 16, 4);
        let size = number(bytes, at + 24, 4);
        let [name_length, extra, comment] = [28, 30, 32].map(|field| number(bytes, at + field, 2));
        let name = std::str::from_utf8(&bytes[at + 46..][..name_length]).unwrap();
        let local = number(bytes, at + 42, 4);
        assert!(
            bytes[local..].starts_with(b"PK\x03\x04"),
            "no member at {local}"
        );
        let begin = local + 30 + number(bytes, local + 26, 2) + number(bytes, local + 28, 2);
        let member = &bytes[begin..begin + size];
        assert_eq!(crc32(member) as usize, crc, "checksum of {name}");
        let name = name.strip_suffix(".npy").expect("a member that is no .npy");
        arrays.insert(name.to_owned(), array(member));
        at += 46 + name_length + extra + comment;
    }
    arrays
}

fn array(bytes: &[u8]) -> Array {
    assert!(
        bytes.starts_with(b"\x93NUMPY\x01\x00"),
        "not an array of version 1.0"
    );
    let begin = 10 + number(bytes, 8, 2);
    let header = std::str::from_utf8(&bytes[10..begin]).unwrap();
    let after = |key: &str| header.split_once(key).expect("a key of the header").1;
    let descr = after("'descr': '").split('\'').next().unwrap().to_owned();
    assert!(after("'fortran_order': ").starts_with("False"));
    let shape = after("'shape': (").split(')').next().unwrap();
    let shape: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().unwrap())
        .collect();
    let width: usize = descr[2..].parse().unwrap();
    let data = bytes[begin..].to_vec();
    assert_eq!(data.len(), shape.iter().product::<usize>() * width);
    Array { descr, shape, data }
}

/// The checksum of zip files, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0u32; 256];
    for (i, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(i as u32, |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        });
    }
    !bytes.iter().fold(!0u32, |crc, byte| {
        (crc >> 8) ^ table[((crc ^ u32::from(*byte)) & 0xff) as usize]
    })
}
