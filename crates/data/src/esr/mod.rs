//! `esr`: Epileptic Seizure Recognition, one second of EEG per row, five labels.
//!
//! [`table`] reads and checks the file; this module cuts the rows in halves: X1 to X89 at the hospital, X90 to X178 on the
//! device.
//!
//! All 178 columns have one mean and one deviation. They are moments of one signal from one amplifier, cut at arbitrary
//! times, so they all estimate the same two; a scale per column would add their sampling error as a fixed ripple over time
//! and bend every waveform by it. A recurrent layer feeds all columns to the same weights, which asks for one unit in all
//! of them. And it keeps what tells seizures apart: how large the signal is.
//!
//! Pieces of one recording resemble each other, so a random split tests on patients that training has seen. It is what the
//! paper did; `data.split = "recording"` keeps all pieces of a recording together and shows what the model can do with new
//! patients.

mod table;

use crate::DataError;
use crate::files::lines::Lines;
use crate::rows::{Part, Purpose, Rows, Side};
use crate::settings::wrong;
use crate::statistics::Scaling;
use selvedge_core::experiment::DataSettings;
use selvedge_nn::Shape;
use std::collections::BTreeMap;
use std::path::Path;
use table::{HALF, Table, WIDTH};

/// Labels.
pub(crate) const CLASSES: usize = 5;

/// Reads the set.
pub(crate) fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    if ["paper", "recording", "pairs"].contains(&settings.split.as_str()) && settings.groups != 10 {
        let expected = "the groups of \"esr\" are the ten pairs of its labels: expected 10, or another data.split";
        return Err(wrong("groups", settings.groups, expected));
    }
    if !settings.vertical.is_empty() {
        let expected = "\"esr\" is cut in halves: expected nothing";
        return Err(wrong(
            "vertical",
            format!("{:?}", settings.vertical),
            expected,
        ));
    }
    rows(settings, Table::read(settings, data_dir)?)
}

/// Reads seconds of EEG that training has not seen.
pub(crate) fn read_new(
    settings: &DataSettings,
    file: &Path,
    purpose: Purpose,
) -> Result<Rows, DataError> {
    let lines = Lines::open(file)?;
    rows(settings, Table::of_lines(file.to_owned(), lines, purpose)?)
}

/// Reads the set from the lines of `file`.
pub(crate) fn of_lines(
    settings: &DataSettings,
    file: &Path,
    lines: Lines,
) -> Result<Rows, DataError> {
    let table = Table::of_lines(file.to_owned(), lines, Purpose::Training)?;
    rows(settings, table)
}

/// Cuts the rows in halves.
fn rows(settings: &DataSettings, table: Table) -> Result<Rows, DataError> {
    let units = match settings.split.as_str() {
        "recording" => recordings(&table)?,
        _ => Vec::new(),
    };
    let order: Vec<u32> = table.rows.iter().map(|row| row.place() as u32).collect();
    let [first, second] = table.halves;
    let side = |values, width| Side {
        shape: Shape::Flat(width),
        names: Vec::new(),
        values,
        order: order.clone(),
        gaps: Vec::new(),
        scaling: Scaling::Together,
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
