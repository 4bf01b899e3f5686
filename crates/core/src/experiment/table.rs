//! The `[data.table]` table of an experiment: what the columns of a user's own table mean.

use super::keys::settings;
use super::values::{ABOVE_0, POSITIVE, Range, Values};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

settings! {
    /// `[data.table]`: what the columns of a CSV or Parquet file mean (`data.set = "table"`).
    ///
    /// A column is named as the file names it. In a list of columns, `*` stands for any letters: `lab_*`, or `*` alone
    /// for all columns that are not named elsewhere.
    TableSettings, "data.table." {
        files: Vec<String> = Vec::new(), Values::Texts, "further files, joined by id (table)";
        id: String = String::new(), Values::Text, "column with a unique id for each row, or for each patient's series (table)";
        label: String = String::new(), Values::Text, "column to predict (table)";
        labels: Vec<String> = Vec::new(), Values::Texts, "the labels in order; empty: all that occur (table)";
        #[serde(skip_serializing_if = "String::is_empty")]
        positive: String = String::new(), Values::Text,
            "label of the positive class; empty: the obvious one (yes, died, ...), else the rarer in training (table)";
        group: String = String::new(), Values::Text, "column that names a row's group, for split = column (table)";
        patient: String = String::new(), Values::Text,
            "column that names the patient, if one patient has several ids (table)";
        part: String = String::new(), Values::Text, "column that assigns each row to train, validation or test (table)";
        hospital: Vec<String> = Vec::new(), Values::Texts,
            "columns or variables at the hospital, like [\"age\", \"lab_*\"] (table)";
        device: Vec<String> = Vec::new(), Values::Texts, "columns or variables on the device (table)";
        categorical: Categorical = Categorical::default(), Values::Other("list or table", "columns, or columns with lists of their categories"),
            "columns of categories: [\"sex\"] or { sex = [\"f\", \"m\"] } (table)";
        blank: Vec<String> = Vec::new(), Values::Texts,
            "texts that stand for a missing value, besides empty cells (table)";
        missing: String = "mean".into(), Values::OneOf(&["mean", "zero", "carry", "refuse"]),
            "how missing values are handled (table)";
        masks: bool = false, Values::Flag, "whether each number comes with a flag that shows if it was measured (table)";
        clip: bool = false, Values::Flag, "whether numbers are clipped to the 1st and 99th percentile (table)";
        one_sided: String = "leave-out".into(), Values::OneOf(&["leave-out", "keep", "refuse"]),
            "how patients known to only one side are handled (table)";
        time: String = String::new(), Values::Text, "column with the time, for time series (table)";
        variable: String = String::new(), Values::Text,
            "column that names the variable, with one measurement per row (table)";
        value: String = String::new(), Values::Text, "column with the measured value, with one measurement per row (table)";
        steps: usize = 48, POSITIVE, "number of steps in a time series (table)";
        step: f64 = 1.0, ABOVE_0, "length of a step, in the unit of the time column (table)";
        start: f64 = 0.0, Values::Number(Range::Any), "time at which the first step begins, in the unit of the time column (table)";
    }
}

impl TableSettings {
    /// Whether nothing is set, as for every data set that is not a table.
    pub fn is_default(&self) -> bool {
        *self == TableSettings::default()
    }
}

/// Columns of categories: `["sex"]` takes the categories that occur, `{ sex = ["f", "m"] }` knows them beforehand and
/// refuses others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected column names, like [\"sex\"], or names with their categories, like { sex = [\"f\", \"m\"] }"
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
