//! The file of the ESR set: where it is, and what its lines must look like.
//!
//! UCI's layout: a header `Unnamed,X1,…,X178,y`, then one line per second of EEG: an id, 178
//! amplitudes, and the label 1 to 5. The file is read once, line by line.

use super::CLASSES;
use crate::DataError;
use crate::files::fields::fields;
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
    /// Values in a line.
    columns: usize,
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
}

impl Row {
    /// Its place in the file, counted from 0.
    pub(super) fn place(&self) -> usize {
        self.line - 2
    }

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
        mut lines: Lines,
        purpose: Purpose,
    ) -> Result<Self, DataError> {
        let labelled = purpose != Purpose::New { labelled: false };
        let columns = check_header(&file, &mut lines, labelled)?;
        let mut table = Table {
            file,
            columns,
            labelled,
            rows: Vec::new(),
            halves: [Vec::new(), Vec::new()],
        };
        let mut blank = None;
        while let Some(line) = lines.next_line()? {
            if line.is_empty() {
                blank = blank.or(Some(lines.number()));
                continue;
            }
            if let Some(blank) = blank {
                let problem = "empty, with more lines after it: expected a row";
                return Err(DataError::line(table.file, blank, problem));
            }
            // The text is borrowed from `lines`, so its number has to be told beforehand.
            let number = table.rows.len() + 2;
            table.push(line, number)?;
        }
        if table.rows.is_empty() {
            let problem = "a header and no rows: expected 11,500 rows";
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
    fn push(&mut self, line: &str, number: usize) -> Result<(), DataError> {
        let mut count = 0;
        let (mut id, mut label) = (String::new(), None);
        for field in fields(line) {
            let field = field.map_err(|field| {
                let expected = "a value, plain or between two double quotes";
                self.wrong(number, &column_name(count), field, expected)
            })?;
            match count {
                0 if field.is_empty() => {
                    return Err(self.wrong(number, ID, field, "an id, like X15.Z087"));
                }
                0 => id = field.into(),
                1..=WIDTH => match amplitude(field) {
                    Some(value) => self.halves[usize::from(count > HALF)].push(value),
                    None => {
                        let expected = "an EEG amplitude: a number from -32768 to 32768";
                        return Err(self.wrong(number, &column_name(count), field, expected));
                    }
                },
                _ if count == WIDTH + 1 => label = Some(field),
                _ => {}
            }
            count += 1;
        }
        if count != self.columns {
            let problem = format!(
                "{count} values (a line cut short?): expected {}, as in the header: an id, X1 to X{WIDTH} and perhaps y",
                self.columns
            );
            return Err(DataError::line(&self.file, number, problem));
        }
        let text = label.unwrap_or_default();
        let label = text
            .parse()
            .ok()
            .filter(|label| (1..=CLASSES).contains(label));
        let label = match label {
            _ if !self.labelled => UNLABELLED,
            Some(label) => label as u32 - 1,
            None => return Err(self.wrong(number, "y", text, "a label from 1 to 5")),
        };
        self.rows.push(Row {
            id,
            label,
            line: number,
        });
        Ok(())
    }

    fn check_ids(&self) -> Result<(), DataError> {
        let mut seen = BTreeMap::new();
        for row in &self.rows {
            if let Some(first) = seen.insert(row.id.as_str(), row.line) {
                return Err(self.wrong_id(row, &format!("a new id: line {first} has it already")));
            }
        }
        Ok(())
    }
}

/// Gives how many columns there are; without labels `y` may be missing.
fn check_header(file: &Path, lines: &mut Lines, labelled: bool) -> Result<usize, DataError> {
    let expected = format!("Unnamed,X1,...,X{WIDTH},y");
    let Some(header) = lines.next_line()? else {
        let problem = format!("an empty file: expected the header {expected}");
        return Err(DataError::file(file, problem));
    };
    let mut count = 0;
    for field in fields(header) {
        let name = field.unwrap_or_else(|broken| broken);
        let right = match count {
            0 => ID_NAMES.contains(&name),
            _ => name == column_name(count),
        };
        if count < WIDTH + 2 && !right {
            return Err(DataError::Value {
                file: file.to_owned(),
                line: 1,
                column: (count + 1).to_string(),
                value: name.chars().take(40).collect(),
                expected: format!("{:?}, as in the header {expected}", column_name(count)),
            });
        }
        count += 1;
    }
    if count == WIDTH + 2 || (count == WIDTH + 1 && !labelled) {
        return Ok(count);
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
