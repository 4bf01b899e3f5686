//! The `[data]` table of an experiment.

use super::TableSettings;
use super::keys::settings;
use super::values::{
    ABOVE_0, POSITIVE, REST, Range, Refused, UP_TO_A_MILLION, Values, check_values,
};
use crate::outcome::MOST_INTERVALS;
use selvedge_nn::Shape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The ways to assign rows to groups.
pub const SPLITS: [&str; 7] = [
    "paper",
    "pairs",
    "ramp",
    "dirichlet",
    "iid",
    "column",
    "recording",
];

settings! {
    /// `[data]`: which set, and how it is split.
    DataSettings, "data." {
        set: String = "synthetic".into(), Values::Set,
            "which data set; synthetic-NAME, such as {twin}: generated data in the shape of NAME";
        path: String = String::new(), Values::Text,
            "file or folder of the data set, within the data folder; empty: its usual place";
        vertical: String = String::new(), Values::Text, "which side holds what: {verticals}";
        #[serde(skip_serializing_if = "String::is_empty")]
        outcome: String = String::new(), Values::Text, "what is learnt: {outcomes}; empty: the first of them";
        #[serde(skip_serializing_if = "is_twelve")]
        intervals: usize = 12, Values::Whole(1, MOST_INTERVALS as u64),
            "intervals of a survival curve, each with about as many events of training rows";
        #[serde(skip_serializing_if = "Option::is_none")]
        horizon: Option<f64> = None, ABOVE_0,
            "time at which a survival curve ends, in the unit of its times; if not set, that of the last event in training";
        #[serde(skip_serializing_if = "is_none_hidden")]
        hidden: f64 = 0.0, REST, "share of the known labels of training rows that is hidden, to see what missing ones cost (labels)";
        split: String = "paper".into(), Values::OneOf(&SPLITS),
            "how rows are assigned to groups; recording is for {recordings}";
        groups: usize = 10, POSITIVE, "M, the number of groups";
        beta: f64 = 0.5, Values::Number(Range::Within(0.001, 1e6)),
            "β of split = dirichlet: small is skewed, large is even";
        sizes: Vec<f64> = Vec::new(), Values::Other("list of numbers", "above 0, one for each group"),
            "relative sizes of the groups; empty: all equal";
        devices: usize = 200, POSITIVE, "K_m, devices in each group (synthetic)";
        samples_per_device: usize = 1, POSITIVE, "samples on each device";
        features: Features = Features::SIXTEEN, Values::Other("list or number", "two counts, two shapes, or one even total"),
            "features [hospital, device], like [16, 16] or [[48, 20], [1, 28, 28]] (synthetic)";
        classes: usize = 2, Values::Whole(2, 10_000), "number of classes (synthetic)";
        noise: f64 = 0.5, UP_TO_A_MILLION, "how much noise hides the signal (synthetic)";
        test: f64 = 0.2, REST,
            "share of the rows (with data.table.patient, of the patients) held out for testing (synthetic: generated in addition)";
        validation: f64 = 0.0, REST,
            "share of the training rows (or patients) held out for validation, to choose settings and iterations (synthetic: generated in addition)";
        #[serde(skip_serializing_if = "Vec::is_empty")]
        derived: Vec<String> = Vec::new(), Values::Texts,
            "what a step has of each channel beside its last value: mean, min, max, count (of its measurements), since (steps since the last measurement) (physionet2012, table)";
        #[serde(skip_serializing_if = "is_one_hour")]
        hours: usize = 1, Values::Whole(1, 48), "hours that a step takes together; must divide 48 (physionet2012)";
        #[serde(skip_serializing_if = "is_one_hour")]
        every: usize = 1, Values::Whole(1, 10_000),
            "hours between the samples of a stay that are kept, of those that are listed (mimic3: stay, decompensation)";
        #[serde(skip_serializing_if = "is_standard")]
        scaling: String = "standard".into(), Values::OneOf(&["standard", "robust", "log"]),
            "how columns are scaled: by mean and deviation, by median and quartiles, or by mean and deviation with the logarithm of skewed ones (mimic3, physionet2012, table)";
        [
            /// What the columns mean (`table`).
            #[serde(skip_serializing_if = "TableSettings::is_default")]
            table: TableSettings
        ]
    }
}

/// Experiments without these outcomes are written as before they existed.
fn is_twelve(intervals: &usize) -> bool {
    *intervals == 12
}

fn is_one_hour(hours: &usize) -> bool {
    *hours == 1
}

fn is_standard(scaling: &str) -> bool {
    scaling == "standard"
}

fn is_none_hidden(share: &f64) -> bool {
    *share == 0.0
}

impl DataSettings {
    /// Checks each value against its range or its choices. Whether the data set itself accepts it is checked by the
    /// crate that reads data sets.
    ///
    /// # Errors
    /// The first key with an invalid value.
    pub fn check_values(&self) -> Result<(), Refused> {
        check_values(self, None)
    }
}

/// What a sample has on each side: `features = [32, 32]` (hospital | device), `[[12, 8], [1, 28, 28]]` for time series
/// and images, or one even number that is halved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "FeaturesText", try_from = "FeaturesText")]
pub struct Features {
    /// Features at the hospital.
    pub hospital: Shape,
    /// Features on the device.
    pub device: Shape,
}

impl Features {
    const SIXTEEN: Features = Features {
        hospital: Shape::Flat(16),
        device: Shape::Flat(16),
    };
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
                    "features = {n} cannot be halved: give both sides, like [{}, {}]",
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
