//! `esr`: Epileptic Seizure Recognition, one second of EEG per row, five labels.
//!
//! [`table`] reads and checks the file; this module cuts the rows in halves: X1 to X89 at the hospital, X90 to X178 on
//! the device.
//!
//! All 178 columns have one mean and one deviation. They are moments of one signal from one amplifier, cut at arbitrary
//! times, so they all estimate the same two; a scale per column would add their sampling error as a fixed ripple over
//! time and bend every waveform by it. A recurrent layer feeds all columns to the same weights, which asks for one unit
//! in all of them. And it keeps what tells seizures apart: how large the signal is.
//!
//! Pieces of one recording resemble each other, so a random split tests on patients that training has seen. It is what
//! the paper did; `data.split = "recording"` keeps all pieces of a recording together and shows what the model can do
//! with new patients.

mod table;

use crate::DataError;
use crate::files::lines::Lines;
#[cfg(feature = "fuzz")]
use crate::fuzz::{self, Target};
use crate::rows::{Part, Rows, Side};
use crate::sets::{DataSet, Source, Twin, single};
use crate::settings::wrong;
use crate::statistics::Scaling;
use selvedge_core::experiment::{DataSettings, Usual};
use selvedge_nn::{LayerSpec, RecurrentSpec, Shape};
use std::collections::BTreeMap;
use std::path::Path;
use table::{HALF, Table, WIDTH};

pub(crate) static SET: DataSet = DataSet {
    has_recordings: true,
    usual: |_| Usual {
        tower: vec![
            LayerSpec::Window { size: 8 },
            LayerSpec::Lstm(RecurrentSpec::new(32)),
        ],
        combined: Vec::new(),
        outputs: CLASSES,
        learns: true,
        rows: Some(11_500),
        seconds: 0.064,
        seconds_of_pairs: 0.1,
    },
    twins: &[Twin {
        name: "synthetic-esr",
        hospital: Shape::Flat(HALF),
        device: Shape::Flat(WIDTH - HALF),
        classes: CLASSES,
        devices: 920,
    }],
    targets: &[
        ("loss", 1.2),
        ("loss", 0.8),
        ("precision", 0.4),
        ("precision", 0.6),
        ("recall", 0.4),
        ("recall", 0.6),
        ("f1", 0.6),
        ("auc", 0.7),
        ("auc", 0.9),
    ],
    #[cfg(feature = "fuzz")]
    fuzz: &[Target::new("esr", fuzz::sets::esr, "csv").up_to(8 << 10)],
    ..DataSet::new(
        "esr",
        Source::Files {
            read,
            read_new: |settings, _, files, purpose| {
                let lines = Lines::open(single("esr", files)?)?;
                rows(settings, Table::of_lines(files[0].clone(), lines, purpose)?)
            },
        },
    )
};

/// Labels.
const CLASSES: usize = 5;

/// Reads the set.
fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    if ["paper", "recording", "pairs"].contains(&settings.split.as_str()) && settings.groups != 10 {
        let expected = "the groups of \"esr\" are the ten pairs of its labels: expected 10, or another data.split";
        return Err(wrong("groups", settings.groups, expected));
    }
    if !settings.vertical.is_empty() {
        let expected = "\"esr\" is always split in halves: expected \"\"";
        return Err(wrong(
            "vertical",
            format!("{:?}", settings.vertical),
            expected,
        ));
    }
    rows(settings, Table::read(settings, data_dir)?)
}

/// Reads the set from the lines of `file`.
#[cfg(feature = "fuzz")]
pub(crate) fn of_lines(
    settings: &DataSettings,
    file: &Path,
    lines: Lines<'_>,
) -> Result<Rows, DataError> {
    let table = Table::of_lines(file.to_owned(), lines, crate::rows::Purpose::Training)?;
    rows(settings, table)
}

/// Cuts the rows in halves.
fn rows(settings: &DataSettings, table: Table) -> Result<Rows, DataError> {
    let units = match settings.split.as_str() {
        "recording" => recordings(&table)?,
        _ => Vec::new(),
    };
    let order: Vec<u32> = table.rows.iter().map(|row| row.place as u32).collect();
    let [first, second] = table.halves;
    let side = |values, width| Side {
        order: order.clone(),
        ..Side::new(Shape::Flat(width), values, Scaling::Together)
    };
    let sides = [side(first, HALF), side(second, WIDTH - HALF)];
    Ok(Rows {
        classes: (1..=CLASSES).map(|label| label.to_string()).collect(),
        y: table.rows.iter().map(|row| row.label).collect(),
        parts: vec![Part::Open; table.rows.len()],
        units,
        ids: table.rows.into_iter().map(|row| row.id).collect(),
        ..Rows::new("esr", table.file, sides, "pairs")
    })
}

/// The number of each row's recording, in the order of the recordings' names.
fn recordings(table: &Table) -> Result<Vec<u32>, DataError> {
    let mut names = Vec::with_capacity(table.rows.len());
    for row in &table.rows {
        let Some(name) = row.recording() else {
            let expected = "of the form X<chunk>.<recording>, like X15.Z087, which data.split = \"recording\" needs";
            return Err(table.wrong_id(row, expected));
        };
        names.push(name);
    }
    let numbers: BTreeMap<&str, u32> = names.iter().map(|name| (*name, 0)).collect();
    let numbers: BTreeMap<&str, u32> = numbers.into_keys().zip(0..).collect();
    Ok(names.iter().map(|name| numbers[name]).collect())
}
