//! What a run is to its parties: who has another is not let in, and is shown the difference.

use selvedge_core::experiment::Experiment;
use selvedge_core::role::wire;
use selvedge_nn::random::Key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that all parties must have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunIdentity {
    /// The protocol that parties speak.
    pub wire: u8,
    /// The experiment's identity: a line for each key that does not have its default.
    pub experiment: String,
    /// The fingerprint of the statistics that data is scaled by.
    pub statistics: String,
    /// The fingerprint of the whole data set.
    pub data: String,
}

impl RunIdentity {
    /// A run of this version.
    pub fn new(experiment: String, statistics: String, data: String) -> Self {
        RunIdentity {
            wire: wire::VERSION,
            experiment,
            statistics,
            data,
        }
    }

    /// A number for it, which every message carries.
    pub fn run(&self) -> u64 {
        let texts = [&self.experiment, &self.statistics, &self.data];
        let words = |text: &String| {
            let bytes: Vec<u64> = text.bytes().map(u64::from).collect();
            bytes
        };
        texts
            .into_iter()
            .fold(Key::new(u64::from(self.wire)), |key, text| {
                key.with(text.len() as u64).with_all(words(text))
            })
            .stream()
            .next_u64()
    }

    /// The differences from another, for people: `here` and `there`, one per line.
    pub fn differences(&self, other: &RunIdentity) -> Vec<String> {
        let mut lines = Vec::new();
        if self.wire != other.wire {
            let older = if self.wire < other.wire {
                "here"
            } else {
                "there"
            };
            let numbers = format!("{} here, {} there", self.wire, other.wire);
            // What is said in two protocols cannot be compared any further.
            return vec![format!("protocol: {numbers}; upgrade selvedge {older}")];
        }
        let mut differ = |what: &str, here: &str, there: &str| {
            if here != there {
                lines.push(format!("{what}: {here} here, {there} there"));
            }
        };
        differ("statistics", &self.statistics, &other.statistics);
        differ("data", &self.data, &other.data);
        let keys = |text: &str| -> BTreeMap<String, String> {
            let lines = text.lines().filter_map(|line| line.split_once(" = "));
            lines
                .map(|(key, value)| (key.into(), value.into()))
                .collect()
        };
        let (here, there) = (keys(&self.experiment), keys(&other.experiment));
        for key in here
            .keys()
            .chain(there.keys().filter(|k| !here.contains_key(*k)))
        {
            let value = |of: &BTreeMap<String, String>| {
                let default = || Experiment::default_of(key).unwrap_or("nothing".into());
                of.get(key).cloned().unwrap_or_else(default)
            };
            differ(key, &value(&here), &value(&there));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_names_keys_and_values() {
        let one = RunIdentity::new("train.q = 2\n".into(), "s".into(), "d".into());
        let mut other = one.clone();
        assert!(one.differences(&other).is_empty() && one.run() == other.run());
        other.experiment = "seed = 1\ntrain.q = 3\ntrain.p = 6\n".into();
        other.statistics = "t".into();
        assert_ne!(one.run(), other.run());
        // Parties of other versions with the same protocol must find the same number.
        assert_eq!(one.run(), 12447753979215350144);
        let newer = RunIdentity {
            wire: one.wire + 1,
            ..other.clone()
        };
        let protocol = format!("protocol: {} here, {} there", one.wire, newer.wire);
        let upgrade = format!("{protocol}; upgrade selvedge here");
        assert_eq!(one.differences(&newer), [upgrade]);
        assert_eq!(
            one.differences(&other),
            [
                "statistics: s here, t there",
                "train.q: 2 here, 3 there",
                "seed: 42 here, 1 there",
                "train.p: nothing here, 6 there"
            ]
        );
    }
}
