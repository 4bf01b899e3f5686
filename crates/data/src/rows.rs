//! What a reader gives: all rows of a set, both sides, before anybody is dealt any.
//!
//! ```text
//! reader ──► Rows ──► deal (who gets which) ──► statistics (of training rows) ──► Dataset
//! ```

use crate::DataError;
use crate::deal::{self, Split};
use crate::statistics::{Scaling, SideStatistics, Statistics};
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::experiment::DataSettings;
use selvedge_nn::Shape;
use std::path::PathBuf;

/// The rows of a set, in an order that does not depend on the order of its files.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The set's name, as in `data.set`.
    pub(crate) set: String,
    /// The file that errors about the set as a whole name.
    pub(crate) file: PathBuf,
    /// What hospitals hold.
    pub(crate) hospital: Side,
    /// What devices hold.
    pub(crate) device: Side,
    /// The names of the classes.
    pub(crate) classes: Vec<String>,
    /// The class of each row.
    pub(crate) y: Vec<u32>,
    /// The patient of each row, as the file names it.
    pub(crate) ids: Vec<String>,
    /// Where the publisher puts each row.
    pub(crate) parts: Vec<Part>,
    /// Rows with the same number stay together: pieces of one recording, samples of one patient. Empty: each stands
    /// alone.
    pub(crate) units: Vec<u32>,
    /// The group that the file names for each row, as an index into the names; for `data.split = "column"`.
    pub(crate) given_groups: Option<GivenGroups>,
    /// The scheme that `data.split = "paper"` stands for.
    pub(crate) paper: &'static str,
    /// What a user should know about the reading.
    pub(crate) notes: Vec<String>,
}

/// One side of all rows.
#[derive(Debug)]
pub(crate) struct Side {
    /// The shape of one row.
    pub(crate) shape: Shape,
    /// The names of a row's features, or of those of one step, or none where they have none.
    pub(crate) names: Vec<String>,
    /// Row after row; NaN where nothing was measured.
    pub(crate) values: Vec<f32>,
    /// How they are brought to one size.
    pub(crate) scaling: Scaling,
}

/// Groups that a column of the file names.
#[derive(Debug)]
pub(crate) struct GivenGroups {
    /// The group of each row.
    pub(crate) of_row: Vec<u32>,
    /// The names.
    pub(crate) names: Vec<String>,
}

/// Where the publisher of a set puts a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nowhere: the experiment's shares decide.
    Open,
    /// To training.
    Training,
    /// To validation.
    Validation,
    /// To the test.
    Test,
}

impl Side {
    /// The values of a row.
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        let width = self.shape.len();
        &self.values[row * width..][..width]
    }
}

impl Rows {
    /// Deals, measures, scales.
    pub(crate) fn into_dataset(
        self,
        settings: &DataSettings,
        seed: u64,
    ) -> Result<(Dataset, Statistics, Vec<String>), DataError> {
        let split = deal::deal(&self, settings, seed)?;
        let statistics = self.measure(&split);
        let Rows {
            set,
            hospital,
            device,
            classes,
            y,
            mut notes,
            ..
        } = self;
        notes.extend(split.notes());
        let labels = |rows: &[usize]| -> Vec<u32> { rows.iter().map(|row| y[*row]).collect() };
        let parts: Vec<&[usize]> = split.parts().collect();
        let (hospital_shape, device_shape) = (hospital.shape, device.shape);
        // One side after the other, each given back once it is copied: so a set never takes twice its size.
        let scaled = |side: Side, statistics: &SideStatistics| -> Vec<Vec<f32>> {
            let of_part = |rows: &&[usize]| {
                let mut values = Vec::with_capacity(rows.len() * side.shape.len());
                for row in *rows {
                    values.extend_from_slice(side.row(*row));
                }
                statistics.apply(&mut values);
                values
            };
            parts.iter().map(of_part).collect()
        };
        let x1 = scaled(hospital, &statistics.hospital);
        let x2 = scaled(device, &statistics.device);
        let mut samples: Vec<Samples> = x1
            .into_iter()
            .zip(x2)
            .zip(&parts)
            .map(|((x1, x2), rows)| Samples {
                x1,
                x2,
                y: labels(rows),
            })
            .collect();
        let test = samples.pop().unwrap_or_default();
        let validation = samples.pop().unwrap_or_default();
        let groups = samples
            .into_iter()
            .zip(&split.names)
            .map(|(samples, name)| Group {
                name: name.clone(),
                offsets: offsets(samples.len(), settings.samples_per_device),
                samples,
            });
        let dataset = Dataset {
            name: set,
            hospital: hospital_shape,
            device: device_shape,
            classes,
            groups: groups.collect(),
            validation,
            test,
        };
        Ok((dataset, statistics, notes))
    }

    /// What the training rows show.
    fn measure(&self, split: &Split) -> Statistics {
        let training = || split.groups.iter().flatten().copied();
        Statistics::measure(self, training)
    }
}

/// Puts `rows` rows together, `each` to a device; the last one may get fewer.
fn offsets(rows: usize, each: usize) -> Vec<u32> {
    (0..rows)
        .step_by(each)
        .chain([rows])
        .map(|offset| offset as u32)
        .collect()
}
