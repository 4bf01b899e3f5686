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
        label: Label = Label::default(), Values::Other("text or list", "a column, or several for outcome = labels"),
            "column to predict, or columns of labels, each yes, no or empty for unknown (table)";
        #[serde(skip_serializing_if = "String::is_empty")]
        event: String = String::new(), Values::Text,
            "column that says whether the event was at the time that label names, or nothing was until then, for survival (table)";
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
        categories: String = "training".into(), Values::OneOf(&["training", "all"]),
            "rows whose categories are taken where none are listed; those of other rows count as not measured (table)";
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
        outside: String = "refuse".into(), Values::OneOf(&["refuse", "ignore"]),
            "how files with more than 5 % of their values outside of these steps are handled (table)";
    }
}

impl TableSettings {
    /// Whether nothing is set, as for every data set that is not a table.
    pub fn is_default(&self) -> bool {
        *self == TableSettings::default()
    }
}

/// What is to be predicted: one column, or several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LabelText", into = "LabelText")]
pub struct Label(Vec<String>);

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a column, like \"died\", or several, like [\"sepsis\", \"shock\"]"
)]
enum LabelText {
    One(String),
    Several(Vec<String>),
}

impl From<LabelText> for Label {
    fn from(text: LabelText) -> Self {
        match text {
            LabelText::One(column) if column.is_empty() => Label::default(),
            LabelText::One(column) => Label(vec![column]),
            LabelText::Several(columns) => Label(columns),
        }
    }
}

impl From<Label> for LabelText {
    fn from(Label(mut columns): Label) -> Self {
        match columns.len() {
            0 => LabelText::One(String::new()),
            1 => LabelText::One(columns.remove(0)),
            _ => LabelText::Several(columns),
        }
    }
}

impl From<&str> for Label {
    fn from(column: &str) -> Self {
        LabelText::One(column.into()).into()
    }
}

impl Label {
    /// All columns.
    pub fn columns(&self) -> &[String] {
        &self.0
    }

    /// The first column; empty where there is none.
    pub fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// Whether none is named.
    pub fn is_empty(&self) -> bool {
        self.first().is_empty()
    }

    /// Names none.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Columns of categories: `["sex"]` takes the categories of training rows, `{ sex = ["f", "m"] }` knows them beforehand and
/// refuses others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected column names, like [\"sex\"], or names with their categories, like { sex = [\"f\", \"m\"] }"
)]
pub enum Categorical {
    /// Names.
    Found(Vec<String>),
    /// Names with their categories; none: those of training rows.
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
