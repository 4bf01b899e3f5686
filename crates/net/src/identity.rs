//! What a run is to its parties: who has another is not let in, and is shown the difference.

use selvedge_core::role::wire;
use selvedge_nn::random::Key;
use serde::{Deserialize, Serialize};

/// Everything that all parties must have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunIdentity {
    /// The format of messages.
    pub wire: u8,
    /// The experiment, every key of it, as TOML.
    pub experiment: String,
    /// The fingerprint of what data is scaled by.
    pub statistics: String,
    /// The fingerprint of the data as it was cut.
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

    /// In what it differs from another, for people: `here` and `there`, a line each.
    pub fn differences(&self, other: &RunIdentity) -> Vec<String> {
        let mut lines = Vec::new();
        let mut differ = |what: &str, here: &str, there: &str| {
            if here != there {
                lines.push(format!("{what}: {here} here, {there} there"));
            }
        };
        differ(
            "version of messages",
            &self.wire.to_string(),
            &other.wire.to_string(),
        );
        differ("statistics", &self.statistics, &other.statistics);
        differ("data", &self.data, &other.data);
        let keys = |text: &str| -> std::collections::BTreeMap<String, String> {
            let mut table = String::new();
            let mut keys = std::collections::BTreeMap::new();
            for line in text.lines() {
                if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                    table = format!("{}.", name.trim_matches(['[', ']']));
                } else if let Some((key, value)) = line.split_once(" = ") {
                    keys.insert(format!("{table}{key}"), value.to_owned());
                }
            }
            keys
        };
        let (here, there) = (keys(&self.experiment), keys(&other.experiment));
        let nothing = "nothing".to_owned();
        for key in here
            .keys()
            .chain(there.keys().filter(|k| !here.contains_key(*k)))
        {
            let value = |of: &std::collections::BTreeMap<String, String>| {
                of.get(key).unwrap_or(&nothing).clone()
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
        let one = RunIdentity::new("seed = 1\n[train]\nq = 2\n".into(), "s".into(), "d".into());
        let mut other = one.clone();
        assert!(one.differences(&other).is_empty() && one.run() == other.run());
        other.experiment = "seed = 1\n[train]\nq = 3\np = 6\n".into();
        other.statistics = "t".into();
        assert_ne!(one.run(), other.run());
        assert_eq!(
            one.differences(&other),
            [
                "statistics: s here, t there",
                "train.q: 2 here, 3 there",
                "train.p: nothing here, 6 there"
            ]
        );
    }
}
