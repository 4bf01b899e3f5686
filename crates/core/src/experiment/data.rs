//! The `[data]` table of an experiment.

use serde::{Deserialize, Serialize};

/// `[data]`: which set, and how it is split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSettings {
    /// `synthetic` or `esr`.
    pub set: String,
    /// How rows are dealt to groups and to the test set: `paper` or `recording` (ESR).
    pub split: String,
    /// M, the number of groups.
    pub groups: usize,
    /// K_m, devices in each group (`synthetic`).
    pub devices: usize,
    /// Samples on each device.
    pub samples_per_device: usize,
    /// Features at the hospital and on the device (`synthetic`).
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
}

impl Default for DataSettings {
    fn default() -> Self {
        DataSettings {
            set: "synthetic".into(),
            split: "paper".into(),
            groups: 10,
            devices: 200,
            samples_per_device: 1,
            features: Features {
                hospital: 16,
                device: 16,
            },
            classes: 2,
            noise: 0.5,
            test: 0.2,
            validation: 0.0,
        }
    }
}

/// `features = [32, 32]` (hospital | device), or one even number that is cut in halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[usize; 2]", try_from = "FeaturesText")]
pub struct Features {
    /// Features at the hospital.
    pub hospital: usize,
    /// Features on the device.
    pub device: usize,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected two counts, like [32, 32], or one even total, like 64"
)]
enum FeaturesText {
    Total(usize),
    Sides([usize; 2]),
}

impl From<Features> for [usize; 2] {
    fn from(f: Features) -> Self {
        [f.hospital, f.device]
    }
}

impl TryFrom<FeaturesText> for Features {
    type Error = String;

    fn try_from(text: FeaturesText) -> Result<Self, String> {
        match text {
            FeaturesText::Sides([hospital, device]) => Ok(Features { hospital, device }),
            FeaturesText::Total(n) if n % 2 == 0 => Ok(Features {
                hospital: n / 2,
                device: n / 2,
            }),
            FeaturesText::Total(n) => Err(format!(
                "features = {n} cannot be cut in halves: give both sides, like [{}, {}]",
                n.div_ceil(2),
                n / 2
            )),
        }
    }
}
