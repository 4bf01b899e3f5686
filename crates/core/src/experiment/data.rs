//! The `[data]` table of an experiment.

use super::TableSettings;
use selvedge_nn::Shape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// `[data]`: which set, and how it is split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSettings {
    /// `synthetic`, `esr`, `medmnist`, `mimic3`, `physionet2012`, the synthetic twin of one of these, like
    /// `synthetic-esr`, `table` or `shards`.
    pub set: String,
    /// The file or folder of the set, below the data folder; where the set has a usual place, it may be left out.
    pub path: String,
    /// Which side holds what, in the set's own words; empty: as the paper has it.
    pub vertical: String,
    /// How rows are dealt to groups: `paper`, `pairs`, `ramp`, `dirichlet`, `iid`, `column` or `recording` (ESR).
    pub split: String,
    /// M, the number of groups.
    pub groups: usize,
    /// β of the Dirichlet distribution: small is skewed, large is even (`split = "dirichlet"`).
    pub beta: f64,
    /// How large the groups are relative to each other; none: all equal.
    pub sizes: Vec<f64>,
    /// K_m, devices in each group (`synthetic`).
    pub devices: usize,
    /// Samples on each device.
    pub samples_per_device: usize,
    /// What a sample has at the hospital and on the device (`synthetic`).
    pub features: Features,
    /// Number of classes (`synthetic`).
    pub classes: usize,
    /// How much noise hides the signal: 0 is none, 1 as strong as the signal (`synthetic`).
    pub noise: f64,
    /// Share of the rows kept for the test.
    pub test: f64,
    /// Share of the training rows kept for choosing settings and iterations, taken before the groups
    /// are made.
    pub validation: f64,
    /// What the columns mean (`table`).
    #[serde(skip_serializing_if = "TableSettings::is_default")]
    pub table: TableSettings,
}

impl Default for DataSettings {
    fn default() -> Self {
        DataSettings {
            set: "synthetic".into(),
            path: String::new(),
            vertical: String::new(),
            split: "paper".into(),
            groups: 10,
            beta: 0.5,
            sizes: Vec::new(),
            devices: 200,
            samples_per_device: 1,
            features: Features {
                hospital: Shape::Flat(16),
                device: Shape::Flat(16),
            },
            classes: 2,
            noise: 0.5,
            test: 0.2,
            validation: 0.0,
            table: TableSettings::default(),
        }
    }
}

/// What a sample has on each side: `features = [32, 32]` (hospital | device), `[[12, 8], [1, 28, 28]]` for time series
/// and images, or one even number that is cut in halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "FeaturesText", try_from = "FeaturesText")]
pub struct Features {
    /// Features at the hospital.
    pub hospital: Shape,
    /// Features on the device.
    pub device: Shape,
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.hospital, self.device) {
            (Shape::Flat(hospital), Shape::Flat(device)) => write!(f, "[{hospital}, {device}]"),
            (hospital, device) => write!(f, "[{hospital}, {device}]"),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected two counts, like [32, 32], two shapes, like [[48, 20], [1, 28, 28]], or one even total, like 64"
)]
enum FeaturesText {
    Total(usize),
    Counts([usize; 2]),
    Shapes([Vec<usize>; 2]),
}

impl From<Features> for FeaturesText {
    fn from(features: Features) -> Self {
        match (features.hospital, features.device) {
            (Shape::Flat(hospital), Shape::Flat(device)) => {
                FeaturesText::Counts([hospital, device])
            }
            (hospital, device) => FeaturesText::Shapes([hospital.dims(), device.dims()]),
        }
    }
}

impl TryFrom<FeaturesText> for Features {
    type Error = String;

    fn try_from(text: FeaturesText) -> Result<Self, String> {
        let [hospital, device] = match text {
            FeaturesText::Counts(counts) => counts.map(Shape::Flat),
            FeaturesText::Total(n) if n % 2 == 0 => [Shape::Flat(n / 2); 2],
            FeaturesText::Total(n) => {
                return Err(format!(
                    "features = {n} cannot be cut in halves: give both sides, like [{}, {}]",
                    n.div_ceil(2),
                    n / 2
                ));
            }
            FeaturesText::Shapes([hospital, device]) => {
                let shape = |dims| Shape::try_from(dims).map_err(|e| format!("features: {e}"));
                [shape(hospital)?, shape(device)?]
            }
        };
        Ok(Features { hospital, device })
    }
}
