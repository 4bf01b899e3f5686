//! What a run does about parties that send what they should not.

use super::keys::settings;
use super::values::{ANY, Range, Values};
use serde::{Deserialize, Serialize};

settings! {
    /// `[defence]`: how models are aggregated, and who is left out. What is not finite is left out in any case.
    DefenceSettings, "defence." {
        devices: Rule = Rule::Mean, Values::OneOf(&Rule::NAMES), "how an edge aggregates the models of devices";
        groups: Rule = Rule::Mean, Values::OneOf(&Rule::NAMES), "how the cloud aggregates the models of groups";
        hostile_devices: f64 = 0.1, SHARE_OF_HOSTILE, "share of an interval's devices that may be hostile: what trimmed and krum leave out";
        hostile_groups: f64 = 0.2, SHARE_OF_HOSTILE, "share of the groups that may be hostile: what trimmed and krum leave out";
        device_limit: f64 = 0.0, LIMIT,
            "leave out a device whose step is longer than so many times those of the others; 0: none";
        embedding_limit: f64 = 0.0, LIMIT,
            "leave out a device whose embedding is longer than so many times those of the others; 0: none";
        group_limit: f64 = 0.0, LIMIT, "leave out a group whose step is longer than so many times those of the others; 0: none";
        reversal: f64 = 0.0, LIMIT,
            "leave out a group that pushes on where honest ones pull back, by so many standard deviations; 0: none";
        scores: f64 = 0.0, LIMIT,
            "leave out a group's scores that differ from the others' by so many standard deviations; 0: none";
        download: f64 = 0.0, LIMIT,
            "a hospital or edge stops if the cloud's θ is farther from the last than so many times its own longest step; 0: never";
        quarantine: u64 = 0, ANY, "leave a party out for good after so many offences in short order; 0: never";
    }
}

const SHARE_OF_HOSTILE: Values = Values::Number(Range::Within(0.0, 0.49));
const LIMIT: Values = Values::Number(Range::AtLeast(0.0));

impl DefenceSettings {
    /// Those of a consortium whose experiment says nothing of defences: they stop what is crude and
    /// cost honest parties next to nothing (docs/defences.md has the measurements, and what gets through).
    pub fn of_a_consortium() -> Self {
        DefenceSettings {
            device_limit: 100.0,
            embedding_limit: 15.0,
            group_limit: 30.0,
            reversal: 3.5,
            scores: 6.0,
            download: 20.0,
            quarantine: 5,
            ..DefenceSettings::default()
        }
    }

    /// Whether nothing is set: such experiments are written as before there were defences.
    pub fn is_usual(&self) -> bool {
        *self == DefenceSettings::default()
    }
}

/// How many models become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Their mean, by weight.
    Mean,
    /// The mean of their steps, none longer than the median length.
    Clip,
    /// The median of each number.
    Median,
    /// The mean of each number without the largest and the smallest.
    Trimmed,
    /// The point with the smallest sum of distances to all.
    GeometricMedian,
    /// The mean of those that are nearest to their neighbours.
    Krum,
}

impl Rule {
    /// Their names.
    pub const NAMES: [&'static str; 6] = [
        "mean",
        "clip",
        "median",
        "trimmed",
        "geometric-median",
        "krum",
    ];
}
