//! The `[data.table]` table of an experiment: what the columns of a table of one's own mean.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[data.table]`: what the columns of a CSV or Parquet file mean (`data.set = "table"`).
///
/// A column is named as the file names it. Where a list of columns is asked for, `*` stands for any letters: `lab_*`,
/// or `*` alone for all columns that nothing else names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableSettings {
    /// Further files, beside `data.path`, whose rows belong to the patients of the same id.
    pub files: Vec<String>,
    /// The column that tells rows, and patients, apart. Empty: every line is one, and there is one file.
    pub id: String,
    /// The column that is to be predicted.
    pub label: String,
    /// The labels in the order of their classes; empty: all that occur, in their natural order.
    pub labels: Vec<String>,
    /// The column that names a row's group, for `data.split = "column"`.
    pub group: String,
    /// The column that names the patient, where one has several rows: they stay together and are one device's.
    pub patient: String,
    /// The column that says what a row is for: `train`, `validation` or `test`. Empty: `data.test` and `data.validation` decide.
    pub part: String,
    /// The columns, or variables of a time series, that the hospital holds.
    pub hospital: Vec<String>,
    /// Those that the device holds.
    pub device: Vec<String>,
    /// Columns of categories: names, or names with all their categories in order.
    pub categorical: Categorical,
    /// Texts that mean that nothing was measured, besides an empty cell.
    pub blank: Vec<String>,
    /// What stands for what was not measured: `mean` of training, `zero`, `carry` the last value forward in time, or
    /// `refuse` it.
    pub missing: String,
    /// Whether each number is accompanied by whether it was measured.
    pub masks: bool,
    /// Whether numbers beyond the 1st and the 99th percentile of training are brought back to them.
    pub clip: bool,
    /// What becomes of patients that only one side knows: `leave-out`, `keep` or `refuse`.
    pub one_sided: String,
    /// The column of the time, in files with several rows per id: time series.
    pub time: String,
    /// The column that names what was measured, in files that have one measurement per row.
    pub variable: String,
    /// The column of what was measured, likewise.
    pub value: String,
    /// Steps of a time series.
    pub steps: usize,
    /// How long a step is, in the unit of the time column.
    pub step: f64,
    /// Where the first step begins.
    pub start: f64,
}

impl Default for TableSettings {
    fn default() -> Self {
        TableSettings {
            files: Vec::new(),
            id: String::new(),
            label: String::new(),
            labels: Vec::new(),
            group: String::new(),
            patient: String::new(),
            part: String::new(),
            hospital: Vec::new(),
            device: Vec::new(),
            categorical: Categorical::default(),
            blank: Vec::new(),
            missing: "mean".into(),
            masks: false,
            clip: false,
            one_sided: "leave-out".into(),
            time: String::new(),
            variable: String::new(),
            value: String::new(),
            steps: 48,
            step: 1.0,
            start: 0.0,
        }
    }
}

impl TableSettings {
    /// Whether nothing is set, as for every set that is not a table.
    pub fn is_default(&self) -> bool {
        *self == TableSettings::default()
    }
}

/// Columns of categories: `["sex"]` takes the categories that occur, `{ sex = ["f", "m"] }` knows them beforehand and
/// refuses others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected names of columns, like [\"sex\"], or names with their categories, like { sex = [\"f\", \"m\"] }"
)]
pub enum Categorical {
    /// Names.
    Found(Vec<String>),
    /// Names with their categories; none: those that occur.
    Given(BTreeMap<String, Vec<String>>),
}

impl Default for Categorical {
    fn default() -> Self {
        Categorical::Found(Vec::new())
    }
}

impl Categorical {
    /// Whether a column has categories, and which, as far as they are given.
    pub fn of(&self, column: &str) -> Option<&[String]> {
        match self {
            Categorical::Found(names) => names.iter().any(|name| name == column).then_some(&[]),
            Categorical::Given(columns) => columns.get(column).map(Vec::as_slice),
        }
    }

    /// The columns.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Categorical::Found(names) => names.iter().map(String::as_str).collect(),
            Categorical::Given(columns) => columns.keys().map(String::as_str).collect(),
        }
    }
}
