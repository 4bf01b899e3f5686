//! Measurements outside of the time that is looked at: a few are said, many are a mistake in the unit or the start.

use super::columns::File;
use crate::DataError;
use selvedge_core::experiment::TableSettings;

/// More than this share of a file's values are not just stray ones.
const MOST_OUTSIDE: f64 = 0.05;

/// So few of them may be, though a file has few values.
const STRAY: u64 = 4;

/// Times beyond this are counted from 1970: two years in seconds, and more than a hundred in hours.
const SINCE_1970: f64 = 6e7;

/// What times may be counted in, by how many of them make one of what they should be counted in.
const UNITS: [(f64, &str); 6] = [
    (24.0, "hours instead of days"),
    (
        60.0,
        "minutes instead of hours, or seconds instead of minutes",
    ),
    (1_000.0, "milliseconds instead of seconds"),
    (1_440.0, "minutes instead of days"),
    (3_600.0, "seconds instead of hours"),
    (86_400.0, "seconds instead of days"),
];

/// How the measurements of a file lie in time.
#[derive(Debug)]
pub(super) struct Window {
    /// All of them, and those outside.
    values: u64,
    pub(super) outside: u64,
    /// Rows with such values, the last of them, and the first with its time.
    rows: u64,
    last: u64,
    first: Option<(u64, f64)>,
    /// The earliest and the latest time.
    low: f64,
    high: f64,
    /// The last step that has any.
    latest: usize,
}

impl Window {
    pub(super) fn new() -> Self {
        Window {
            values: 0,
            outside: 0,
            rows: 0,
            last: 0,
            first: None,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            latest: 0,
        }
    }

    /// Notes a measurement, and the step that it belongs to, if any.
    pub(super) fn note(&mut self, row: u64, time: f64, step: Option<usize>) {
        self.values += 1;
        (self.low, self.high) = (self.low.min(time), self.high.max(time));
        match step {
            Some(step) => self.latest = self.latest.max(step),
            None => {
                self.outside += 1;
                self.rows += u64::from(std::mem::replace(&mut self.last, row) != row);
                self.first.get_or_insert((row, time));
            }
        }
    }

    /// Refuses a file whose measurements are mostly lost, unless the user knows; else what the user should know.
    pub(super) fn judge(
        &self,
        file: &File,
        t: &TableSettings,
    ) -> Result<Option<String>, DataError> {
        let many = self.outside > STRAY && self.outside as f64 > MOST_OUTSIDE * self.values as f64;
        let all = self.values > 0 && self.outside == self.values;
        if let (true, "refuse", Some((row, time))) = (many || all, &t.outside[..], self.first) {
            let word = file.counting.word();
            return Err(file.problem(format!(
                "{} of {} values, in {} rows, are outside the time window {} to {}, the first in {word} {row} with {} = {time}: {}; data.table.outside = \"ignore\" leaves them out on purpose",
                self.outside,
                self.values,
                self.rows,
                t.start,
                end(t),
                t.time,
                self.advice(t)
            )));
        }
        let inside = self.values - self.outside;
        let crowded = t.steps > 1 && self.latest == 0 && self.low < self.high && inside > STRAY;
        Ok(crowded.then(|| {
            format!(
                "{}: all measurements fall into the first of {} steps, with {} from {} to {}: is data.table.step in the unit of that column?",
                file.path.display(),
                t.steps,
                t.time,
                self.low,
                self.high
            )
        }))
    }

    /// What would be right.
    fn advice(&self, t: &TableSettings) -> String {
        let (low, high) = (self.low, self.high);
        if low > SINCE_1970 && t.start < SINCE_1970 {
            return "these look like dates counted from 1970, as Parquet stores timestamps: expected the time since each patient's own beginning, such as the admission, in the unit of data.table.step".into();
        }
        // They would be inside, and not crowded together at its beginning.
        let middle = t.start + (end(t) - t.start) / 2.0;
        let fits = |(many, _): &&(f64, &str)| {
            t.start <= low / many && (middle..end(t)).contains(&(high / many))
        };
        if let Some((many, unit)) = UNITS.iter().find(fits) {
            return format!(
                "divided by {many} all would be inside; are they {unit}? Expected the unit of data.table.step"
            );
        }
        let steps = ((high - t.start) / t.step).floor() + 1.0;
        match low >= t.start && steps < 1e5 {
            true => format!(
                "all are between {low} and {high}: data.table.steps = {steps} takes them in"
            ),
            false => format!(
                "all are between {low} and {high}: expected data.table.start and steps that take them in"
            ),
        }
    }
}

/// The end of the last step.
pub(super) fn end(t: &TableSettings) -> f64 {
    t.start + t.steps as f64 * t.step
}
