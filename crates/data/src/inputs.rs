//! A model's inputs: everything needed to read new patients as training read its own.

use crate::statistics::{SideStatistics, Statistics};
use serde::{Deserialize, Serialize};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its categories in order, each of which is one number of a row; a column of numbers has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
    /// Whether it has a value at every step of a time series.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub series: bool,
}

/// The inputs of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideInputs {
    /// The columns as the files name them, where the set is a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// The least and the greatest value in training: of each named column, or of all numbers. None where there was no
    /// value, or where nobody may know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Option<[f32; 2]>>,
}

impl SideInputs {
    /// Measures training rows as they were read.
    pub(crate) fn new<'a>(
        columns: Vec<Column>,
        statistics: &SideStatistics,
        rows: impl Iterator<Item = &'a Vec<f32>>,
    ) -> Self {
        let width = statistics.names.len().max(1);
        let mut ranges: Vec<Option<[f32; 2]>> = vec![None; width];
        for values in rows {
            for step in values.chunks_exact(width) {
                for (range, value) in ranges.iter_mut().zip(step) {
                    if !value.is_nan() {
                        let [low, high] = range.unwrap_or([*value; 2]);
                        *range = Some([low.min(*value), high.max(*value)]);
                    }
                }
            }
        }
        SideInputs { columns, ranges }
    }
}

/// The inputs of both sides, and how they are scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// What training rows showed, and the names of the classes.
    pub statistics: Statistics,
    /// The hospital's inputs.
    pub hospital: SideInputs,
    /// The device's inputs.
    pub device: SideInputs,
}

impl Inputs {
    /// Both sides, the hospital's first.
    pub fn sides(&self) -> [(&SideStatistics, &SideInputs); 2] {
        [
            (&self.statistics.hospital, &self.hospital),
            (&self.statistics.device, &self.device),
        ]
    }

    /// As the file `inputs.json` of a run.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "statistics": self.statistics.to_json(),
            "hospital": self.hospital,
            "device": self.device,
        })
    }

    /// From such a file.
    ///
    /// # Errors
    /// If it is not one, or was changed.
    pub fn from_json(mut value: serde_json::Value) -> Result<Self, String> {
        let statistics = Statistics::from_json(value["statistics"].take())?;
        let side = |value: serde_json::Value, statistics: &SideStatistics| {
            let side: SideInputs =
                serde_json::from_value(value).map_err(|error| error.to_string())?;
            let width = statistics.names.len().max(1);
            match side.ranges.len() {
                0 => Ok(side),
                ranges if ranges == width => Ok(side),
                ranges => Err(format!(
                    "{ranges} ranges: expected {width}, one for each column"
                )),
            }
        };
        Ok(Inputs {
            hospital: side(value["hospital"].take(), &statistics.hospital)?,
            device: side(value["device"].take(), &statistics.device)?,
            statistics,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::experiment::DataSettings;

    #[test]
    fn inputs_are_read_back_and_changes_are_found() {
        let loaded = crate::load_with_notes(&DataSettings::default(), 1, None).unwrap();
        let inputs = loaded.inputs();
        assert_eq!(Inputs::from_json(inputs.to_json()).unwrap(), inputs);
        let all = loaded.dataset.groups.iter().flat_map(|g| &g.samples.x2);
        let least = all.copied().fold(f32::INFINITY, f32::min);
        assert_eq!(inputs.device.ranges[0].unwrap()[0], least);
        let mut changed = inputs.to_json();
        changed["statistics"]["hospital"]["scales"][0]["mean"] = 17.0.into();
        assert!(Inputs::from_json(changed).unwrap_err().contains("changed"));
        let mut short = inputs.to_json();
        short["device"]["ranges"] = serde_json::json!([[0, 1], [0, 1]]);
        assert!(Inputs::from_json(short).unwrap_err().contains("2 ranges"));
    }
}
