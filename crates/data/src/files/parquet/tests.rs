//! Files that other programs wrote (`tools/python/parquet_fixtures.py`) are read as they should be, and damage to them
//! is never more than an error.

mod forge;
mod forged;

use super::*;
use crate::files::cell::Cell;
use selvedge_nn::random::Key;
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Cursor as Bytes;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Damaged copies of each file.
const COPIES: u64 = 2000;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/parquet")
        .join(name)
}

fn json<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let bytes = std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn fixture(name: &str) -> Vec<u8> {
    let name = format!("{name}.parquet");
    std::fs::read(path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Reads every column of every row, and gives the rows' number.
fn read_all(
    bytes: &[u8],
    mut take: impl FnMut(&[String], u64, &[Cell<'_>]),
) -> Result<u64, Problem> {
    let mut parquet = Parquet::open(Bytes::new(bytes))?;
    let names = parquet.columns().to_vec();
    let wanted: Vec<usize> = (0..names.len()).collect();
    let mut rows = 0;
    let read = parquet.read(&wanted, &mut |row, cells| {
        rows += 1;
        assert_eq!((row, cells.len()), (rows, names.len()));
        take(&names, row, cells);
        Ok::<(), Infallible>(())
    });
    match read {
        Ok(()) => assert_eq!(rows, parquet.rows()),
        Err(Failure::File(problem)) => return Err(problem),
        Err(Failure::Taker(never)) => match never {},
    }
    Ok(rows)
}

fn same(cell: Cell<'_>, expected: &Value) -> bool {
    match (cell, expected) {
        (Cell::Missing, Value::Null) => true,
        (Cell::Integer(number), Value::Number(_)) => expected.as_i64() == Some(number),
        (Cell::Number(number), Value::Number(other)) if other.is_f64() => {
            expected.as_f64().map(f64::to_bits) == Some(number.to_bits())
        }
        (Cell::Number(number), Value::Object(_)) => {
            let other: f64 = expected["number"].as_str().unwrap().parse().unwrap();
            number == other || number.is_nan() && other.is_nan()
        }
        (Cell::Text(text), Value::String(other)) => text == other,
        _ => false,
    }
}

#[test]
fn every_cell_is_what_was_written() {
    let index: BTreeMap<String, String> = json("index.json");
    let mut compared = 0;
    for (name, expected) in index
        .iter()
        .filter(|(_, expected)| expected.ends_with(".json"))
    {
        let columns: BTreeMap<String, Vec<Value>> = json(expected);
        let rows = read_all(&fixture(name), |names, row, cells| {
            assert_eq!(names.len(), columns.len(), "{name}: {names:?}");
            for (column, cell) in names.iter().zip(cells) {
                let expected = &columns[column][row as usize - 1];
                assert!(
                    same(*cell, expected),
                    "{name}: {column}, row {row}: {cell:?} for {expected}"
                );
                compared += 1;
            }
        });
        let expected_rows = columns.values().next().map_or(0, Vec::len);
        assert_eq!(rows, Ok(expected_rows as u64), "{name}");
    }
    assert!(compared > 7000, "only {compared} cells");
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let index: BTreeMap<String, String> = json("index.json");
    let wrong: Vec<_> = index.iter().filter(|(_, why)| why.contains(' ')).collect();
    assert!(wrong.len() >= 5, "{wrong:?}");
    for (name, why) in wrong {
        let problem = read_all(&fixture(name), |_, _, _| ()).unwrap_err();
        assert!(problem.contains(why), "{name}: {problem}");
        assert!(
            problem.contains(": expected") || problem.contains(": the file is damaged"),
            "{problem}"
        );
    }
}

#[test]
fn rows_that_cost_nothing_are_all_there() {
    let rows = read_all(&fixture("constant"), |_, row, cells| {
        assert_eq!(cells, [Cell::Integer(7), Cell::Missing], "{row}");
    });
    assert_eq!(rows, Ok(50_000));
}

#[test]
fn only_flat_columns_are_offered_and_only_wanted_ones_read() {
    let mut nested = Parquet::open(Bytes::new(fixture("nested"))).unwrap();
    assert_eq!(nested.columns(), ["id", "text", "null"]);
    assert_eq!(nested.nested(), ["list", "pair"]);
    assert_eq!(nested.rows(), 3);
    let mut seen = Vec::new();
    let read = nested.read(&[1, 0, 1], &mut |row, cells| {
        seen.push(format!("{row} {cells:?}"));
        if row == 2 { Err("enough") } else { Ok(()) }
    });
    assert_eq!(read, Err(Failure::Taker("enough")));
    assert_eq!(
        seen,
        [
            r#"1 [Text("a"), Integer(1), Text("a")]"#,
            "2 [Missing, Integer(2), Missing]"
        ]
    );
    let outside = nested.read(&[3], &mut |_, _| Ok::<(), Infallible>(()));
    assert!(
        matches!(outside, Err(Failure::File(problem)) if problem.contains("no column 3: expected"))
    );
    let mut rows = 0;
    let none = nested.read(&[], &mut |_, cells| {
        rows += cells.len() + 1;
        Ok::<(), Infallible>(())
    });
    assert_eq!((none, rows), (Ok(()), 3));
}

#[test]
fn no_beginning_of_a_file_is_one() {
    let index: BTreeMap<String, String> = json("index.json");
    for name in index.keys() {
        let bytes = fixture(name);
        for end in 0..bytes.len() {
            let problem = read_all(&bytes[..end], |_, _, _| ()).unwrap_err();
            assert!(problem.contains(": expected"), "{name}, {end}: {problem}");
        }
    }
}

#[test]
fn damaged_bytes_are_errors_at_most() {
    let index: BTreeMap<String, String> = json("index.json");
    for (number, name) in index.keys().enumerate() {
        let bytes = fixture(name);
        let mut random = Key::new(20_260_301).with(number as u64).stream();
        for copy in 0..COPIES {
            let mut damaged = bytes.clone();
            for _ in 0..=random.next_u64() % 4 {
                let at = random.next_u64() as usize % damaged.len();
                damaged[at] = match random.next_u64() % 3 {
                    0 => damaged[at] ^ 1 << (random.next_u64() % 8),
                    1 => random.next_u64() as u8,
                    _ => [0, 1, 0x7f, 0x80, 0xff][random.next_u64() as usize % 5],
                };
            }
            let start = Instant::now();
            let _ = read_all(&damaged, |_, _, _| ());
            let took = start.elapsed();
            assert!(took.as_secs() < 10, "{name}, copy {copy} took {took:?}");
        }
    }
}
