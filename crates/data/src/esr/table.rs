//! The file of the ESR set: where it is, and what its lines must look like.
//!
//! UCI's layout: a header `Unnamed,X1,…,X178,y`, then one line per second of EEG: an id, 178 amplitudes, and the label
//! 1 to 5. The file is read once, line by line.

use super::CLASSES;
use crate::DataError;
use crate::files::cell::Cell;
use crate::files::csv::Csv;
use crate::files::lines::Lines;
use crate::rows::{Purpose, UNLABELLED};
use crate::settings::find_file;
use selvedge_core::experiment::DataSettings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Amplitudes per row.
pub(super) const WIDTH: usize = 178;

/// The first half of a row stays at the hospital, the second is on the device.
pub(super) const HALF: usize = WIDTH / 2;

/// Where the file may lie, below the data folder or in it; the second is UCI's own name.
const PLACES: [&str; 4] = [
    "esr/Epileptic Seizure Recognition.csv.gz",
    "esr/Epileptic Seizure Recognition.csv",
    "Epileptic Seizure Recognition.csv.gz",
    "Epileptic Seizure Recognition.csv",
];

const ORIGIN: &str = "(the UCI set \"Epileptic Seizure Recognition\", CC BY 4.0, as UCI ships it, \
                      gzipped or not; `--set data.set=synthetic-esr` runs without files)";

/// What the first column is called; UCI's own file leaves it empty.
const ID: &str = "Unnamed";
const ID_NAMES: [&str; 3] = [ID, "", "Unnamed: 0"];

/// Recorded with 12 bits; sixteen leave room for other gains and none for garbage.
const LARGEST_AMPLITUDE: f32 = 32_768.0;

/// The rows as they stand in the file.
pub(super) struct Table {
    pub(super) file: PathBuf,
    /// Whether labels count.
    labelled: bool,
    /// The rows, ordered by id.
    pub(super) rows: Vec<Row>,
    /// The amplitudes of the first and of the second half of each row, in the file's order.
    pub(super) halves: [Vec<f32>; 2],
}

/// What is known of a row besides its amplitudes.
pub(super) struct Row {
    /// The raw id, as the file has it.
    pub(super) id: String,
    /// The label, counted from 0.
    pub(super) label: u32,
    /// The line of the file, counted from 1.
    line: usize,
    /// Its place among the rows of the file, counted from 0.
    pub(super) place: usize,
}

impl Row {
    /// The recording this second was cut from: what follows the first dot of `X<chunk>.<recording>`.
    pub(super) fn recording(&self) -> Option<&str> {
        let (chunk, recording) = self.id.split_once('.')?;
        (!chunk.is_empty() && !recording.is_empty()).then_some(recording)
    }
}

impl Table {
    /// Finds the file and reads it.
    pub(super) fn read(
        settings: &DataSettings,
        data_dir: Option<&Path>,
    ) -> Result<Self, DataError> {
        let file = find_file("ESR", settings, data_dir, &PLACES, ORIGIN)?;
        let lines = Lines::open(&file)?;
        Self::of_lines(file, lines, Purpose::Training)
    }

    /// Reads and checks the lines of `file`.
    pub(super) fn of_lines(
        file: PathBuf,
        lines: Lines<'_>,
        purpose: Purpose,
    ) -> Result<Self, DataError> {
        let labelled = purpose != Purpose::New { labelled: false };
        let csv = Csv::open(lines, &file)?;
        check_header(&file, csv.columns(), labelled)?;
        let mut table = Table {
            file,
            labelled,
            rows: Vec::new(),
            halves: [Vec::new(), Vec::new()],
        };
        let all: Vec<usize> = (0..csv.columns().len()).collect();
        csv.read(&all, &mut |line, cells| table.push(cells, line as usize))?;
        if table.rows.is_empty() {
            let problem = "a header but no rows of data: expected 11,500 rows";
            return Err(DataError::file(table.file, problem));
        }
        table.check_ids()?;
        // Shorter ids first: the second X2 of a recording comes before X10.
        table
            .rows
            .sort_by(|a, b| (a.id.len(), &a.id).cmp(&(b.id.len(), &b.id)));
        Ok(table)
    }

    /// An error about one value of a row.
    pub(super) fn wrong(
        &self,
        line: usize,
        column: &str,
        value: &str,
        expected: &str,
    ) -> DataError {
        DataError::Value {
            file: self.file.clone(),
            line,
            column: column.into(),
            value: value.into(),
            expected: expected.into(),
        }
    }

    /// The same about the id of a row.
    pub(super) fn wrong_id(&self, row: &Row, expected: &str) -> DataError {
        self.wrong(row.line, ID, &row.id, expected)
    }

    /// Reads one line.
    fn push(&mut self, cells: &[Cell<'_>], line: usize) -> Result<(), DataError> {
        let text = |column: usize| cells.get(column).map_or("", |cell| cell.text());
        let id = text(0).to_owned();
        if id.is_empty() {
            return Err(self.wrong(line, ID, "", "an id, like X15.Z087"));
        }
        for column in 1..=WIDTH {
            let Some(value) = amplitude(text(column)) else {
                let expected = "an EEG amplitude: a number from -32768 to 32768";
                return Err(self.wrong(line, &column_name(column), text(column), expected));
            };
            self.halves[usize::from(column > HALF)].push(value);
        }
        let label = text(WIDTH + 1).parse().ok();
        let label = match label.filter(|label| (1..=CLASSES).contains(label)) {
            _ if !self.labelled => UNLABELLED,
            Some(label) => label as u32 - 1,
            None => return Err(self.wrong(line, "y", text(WIDTH + 1), "a label from 1 to 5")),
        };
        let place = self.rows.len();
        self.rows.push(Row {
            id,
            label,
            line,
            place,
        });
        Ok(())
    }

    fn check_ids(&self) -> Result<(), DataError> {
        let mut seen = BTreeMap::new();
        for row in &self.rows {
            if let Some(first) = seen.insert(row.id.as_str(), row.line) {
                return Err(self.wrong_id(row, &format!("unique: line {first} has it already")));
            }
        }
        Ok(())
    }
}

/// Without labels `y` may be missing.
fn check_header(file: &Path, names: &[String], labelled: bool) -> Result<(), DataError> {
    let expected = format!("Unnamed,X1,...,X{WIDTH},y");
    for (column, name) in names.iter().enumerate().take(WIDTH + 2) {
        let right = match column {
            0 => ID_NAMES.contains(&name.as_str()),
            _ => *name == column_name(column),
        };
        if !right {
            return Err(DataError::Value {
                file: file.to_owned(),
                line: 1,
                column: (column + 1).to_string(),
                value: name.chars().take(40).collect(),
                expected: format!("{:?}, as in the header {expected}", column_name(column)),
            });
        }
    }
    let count = names.len();
    if count == WIDTH + 2 || (count == WIDTH + 1 && !labelled) {
        return Ok(());
    }
    let problem = format!("{count} columns: expected {}, {expected}", WIDTH + 2);
    Err(DataError::line(file, 1, problem))
}

/// The name of a column, counted from 0.
fn column_name(column: usize) -> String {
    match column {
        0 => ID.into(),
        _ if column == WIDTH + 1 => "y".into(),
        _ => format!("X{column}"),
    }
}

/// A finite number of plausible size. Nearly all are short integers, which go the fast way.
fn amplitude(text: &str) -> Option<f32> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let value = if (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) {
        let size = digits
            .bytes()
            .fold(0u32, |value, b| value * 10 + u32::from(b - b'0')) as f32;
        if digits.len() < text.len() {
            -size
        } else {
            size
        }
    } else {
        text.parse().ok()?
    };
    (value.abs() <= LARGEST_AMPLITUDE).then_some(value)
}
