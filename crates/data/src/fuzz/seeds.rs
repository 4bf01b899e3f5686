//! Small valid inputs that are made and not stored, since their format is our own or they are fixtures of other tests.
//! The others are files, in `tests/fuzz/<target>/`.

use crate::SETS;
use crate::files::npz::NpzWriter;
use selvedge_core::codec::Codec;
use selvedge_core::experiment::Experiment;
use selvedge_nn::Shape;
use selvedge_nn::random::Key;
use std::io::{self, Cursor};

pub(crate) fn experiments() -> Vec<Vec<u8>> {
    vec![Experiment::default().to_toml().into()]
}

pub(crate) fn experiments_json() -> Vec<Vec<u8>> {
    let texts = [
        include_str!("../../tests/fuzz/experiment/convolutions"),
        include_str!("../../tests/fuzz/experiment/recurrent"),
        "",
    ];
    let json = |text| serde_json::to_vec(&SETS.parse(text, &[]).ok()?).ok();
    texts.into_iter().filter_map(json).collect()
}

pub(crate) fn tables() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../tests/tables/patients.parquet").to_vec()]
}

pub(crate) fn parquets() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../tests/parquet/pyarrow_old.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_snappy.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_zstd.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_gzip.parquet").to_vec(),
        include_bytes!("../../tests/parquet/codec_zstd_pages_2.parquet").to_vec(),
        include_bytes!("../../tests/parquet/encoded_delta_1.parquet").to_vec(),
        include_bytes!("../../tests/parquet/encoded_split.parquet").to_vec(),
        include_bytes!("../../tests/parquet/encoded_polars.parquet").to_vec(),
        include_bytes!("../../tests/parquet/spark.parquet").to_vec(),
        include_bytes!("../../tests/tables/patients.parquet").to_vec(),
    ]
}

/// A shard of a whole group, and one of a gateway.
pub(crate) fn shards() -> Vec<Vec<u8>> {
    let write = |out: &mut Cursor<Vec<u8>>, of_gateway: bool| -> io::Result<()> {
        let mut npz = NpzWriter::new(out)?;
        for (prefix, rows) in [("", 2), ("validation_", 1), ("test_", 1)] {
            npz.texts(&format!("{prefix}patients"), &vec![[b'a'; 32]; rows])?;
            let numbers = vec![0.5; 2 * rows];
            npz.floats(&format!("{prefix}x"), Shape::Flat(2), &numbers)?;
            npz.integers(&format!("{prefix}y"), &vec![1; rows])?;
            npz.integers(&format!("{prefix}rows"), &vec![0; rows])?;
        }
        npz.integers("offsets", &[0, 1, 2])?;
        if of_gateway {
            npz.integers("devices", &[0, 2])?;
            npz.integers("held_out", &[1])?;
        }
        npz.finish()
    };
    let shard = |of_gateway| {
        let mut out = Cursor::new(Vec::new());
        write(&mut out, of_gateway).expect("memory can be written to");
        out.into_inner()
    };
    [false, true].map(shard).into()
}

/// Frames of every layout: a bitmap, indices, codes of whole and of broken bytes.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let codecs = [
        (0, Codec::None, 5),
        (1, Codec::TopK { levels: 128 }, 20),
        (1, Codec::TopK { levels: 2 }, 66),
        (2, Codec::Dither { levels: 16 }, 9),
        (2, Codec::Dither { levels: 100 }, 17),
    ];
    let frame = |(number, codec, n): (u8, Codec, u16)| {
        let levels = match codec {
            Codec::None => 2,
            Codec::TopK { levels } | Codec::Dither { levels } => levels,
        };
        let mut bytes = vec![number];
        bytes.extend((levels as u16 - 1).to_le_bytes());
        bytes.extend(n.to_le_bytes());
        let values: Vec<f32> = (0..n).map(|i| f32::from(i * 7 % 11) - 5.0).collect();
        codec.encode(Key::new(levels.into()), &values, &mut bytes);
        bytes
    };
    codecs.map(frame).into()
}
