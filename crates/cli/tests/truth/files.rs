//! Arrays as NumPy writes them, and the files of a run.

use crate::common::Place;
use crate::common::run::Run;
use crate::tables::{experiment, flat, patients, place};

/// An `.npy` of a type and an order.
fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A zip file of stored members.
fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let name = format!("{name}.npy");
        let (begin, size) = (file.len() as u32, (data.len() as u32).to_le_bytes());
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(crc32(data).to_le_bytes());
        common.extend([size, size].concat());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(name.as_bytes());
        file.extend(data);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(begin.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = (members.len() as u16).to_le_bytes();
    let (begin, size) = (file.len() as u32, directory.len() as u32);
    file.extend(&directory);
    file.extend(b"PK\x05\x06\x00\x00\x00\x00");
    file.extend([count, count].concat());
    file.extend([size.to_le_bytes(), begin.to_le_bytes()].concat());
    file.extend([0, 0]);
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (!(crc & 1)).wrapping_add(1))
        })
    })
}

fn ids(names: [&str; 3]) -> Vec<u8> {
    let letters = names.iter().flat_map(|name| name.chars());
    let data: Vec<u8> = letters.flat_map(|c| u32::from(c).to_le_bytes()).collect();
    npy("'<U2'", "False", "(3,)", &data)
}

/// A run on two laboratory values and a pulse.
fn trained(name: &str) -> Place {
    let text = flat(&patients(150), ["no", "yes"]);
    let two = text
        .replace("id,site,lab,", "id,more,lab,")
        .replace(",north,", ",1.5,")
        .replace(",south,", ",0.5,");
    let experiment = experiment("", "").replace("[\"lab\"]", "[\"lab\", \"more\"]");
    let place = place(name, two, &experiment);
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    place
}

#[test]
fn arrays_in_any_order_and_width_are_read() {
    let place = trained("truth-npz");
    let floats =
        |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let (a, b) = ([0.25f32, -0.5, 0.125], [0.5f32, 1.5, 1.0]);
    let rows: Vec<f32> = a.iter().zip(&b).flat_map(|(a, b)| [*a, *b]).collect();
    let columns = [a, b].concat();
    let device = || {
        (
            "device",
            npy("'<f4'", "False", "(3, 1)", &floats(&[0.0, 0.25, -0.25])),
        )
    };
    let people = || ("id", ids(["p1", "p2", "p3"]));
    let plain = npz(&[
        ("hospital", npy("'<f4'", "False", "(3, 2)", &floats(&rows))),
        device(),
        people(),
    ]);
    let turned = npz(&[
        (
            "hospital",
            npy("'<f4'", "True", "(3, 2)", &floats(&columns)),
        ),
        device(),
        people(),
    ]);
    let halves: Vec<u8> = [0x3400u16, 0x3800, 0xb800, 0x3e00, 0x3000, 0x3c00]
        .iter()
        .flat_map(|bits| bits.to_le_bytes())
        .collect();
    let halves = npz(&[
        ("hospital", npy("'<f2'", "False", "(3, 2)", &halves)),
        device(),
        people(),
    ]);
    place.write("plain.npz", plain);
    let expected = place
        .succeeds(&["predict", "run", "--input", "plain.npz"])
        .stdout;
    assert_eq!(expected.lines().count(), 4);
    for other in [turned, halves] {
        place.write("other.npz", other);
        let said = place
            .succeeds(&["predict", "run", "--input", "other.npz"])
            .stdout;
        assert_eq!(said, expected);
    }
    let twice = npz(&[
        ("hospital", npy("'<f4'", "False", "(3, 2)", &floats(&rows))),
        device(),
        ("id", ids(["p1", "p2", "p1"])),
    ]);
    place.write("twice.npz", twice);
    place.refuses(
        &["predict", "run", "--input", "twice.npz"],
        &["twice.npz", "\"p1\" in rows 0 and 2", "different id"],
    );
    let objects = npz(&[
        ("hospital", npy("'|O'", "False", "(3, 2)", &floats(&rows))),
        device(),
        people(),
    ]);
    place.write("objects.npz", objects);
    place.refuses(
        &["predict", "run", "--input", "objects.npz"],
        &["\"hospital\" has the type '|O'", "astype"],
    );
}

#[test]
fn a_resumed_run_has_its_inputs_again() {
    let place = trained("truth-inputs");
    let run = Run::at(&place, "run");
    let before = run.bytes("inputs.json");
    let mut flipped = before.clone();
    let digit = flipped.iter().rposition(u8::is_ascii_digit).unwrap();
    flipped[digit] ^= 1;
    for damaged in [&b""[..], b"{}", &flipped] {
        std::fs::write(run.file("inputs.json"), damaged).unwrap();
        place.refuses(&["evaluate", "run"], &["inputs.json"]);
        place.succeeds(&["train", "--resume", "run"]);
        assert_eq!(run.bytes("inputs.json"), before);
        place.succeeds(&["evaluate", "run"]);
    }
}
