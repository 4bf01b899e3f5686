//! The `[stop]` table of an experiment.

use super::keys::{KeyInfo, Table, written};
use super::values::{ABOVE_0, POSITIVE};
use crate::metrics::{METRICS, Metric};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const BUDGETS: [KeyInfo; 3] = [
    KeyInfo {
        path: "stop.bytes",
        values: ABOVE_0,
        meaning: "end when the mean bytes sent per group, every byte counted, reach this",
    },
    KeyInfo {
        path: "stop.seconds",
        values: ABOVE_0,
        meaning: "end after this many simulated seconds",
    },
    KeyInfo {
        path: "stop.patience",
        values: POSITIVE,
        meaning: "end after this many iterations without a better score on the validation samples (AUC, or the loss where there is none)",
    },
];

/// `[stop]`: targets and budgets that end a run early, at a global aggregation. Any metric that can be a target has a
/// key of its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopSettings {
    /// Of each metric, in their order.
    targets: [Option<f64>; METRICS.len()],
    /// Exact bytes, mean per group, at least this.
    pub bytes: Option<f64>,
    /// Simulated seconds at least this.
    pub seconds: Option<f64>,
    /// Iterations since the best model on the validation samples at least this.
    pub patience: Option<u64>,
}

impl StopSettings {
    /// The metrics with targets, and the targets.
    pub fn targets(&self) -> impl Iterator<Item = (&'static Metric, f64)> {
        let each = METRICS.iter().zip(self.targets);
        each.filter_map(|(metric, target)| Some((metric, target?)))
    }

    /// Whether a run may end before T.
    pub fn is_any(&self) -> bool {
        *self != StopSettings::default()
    }

    /// Ends the run when a metric reaches this value; an unknown name has no effect.
    pub fn set_target(&mut self, metric: &str, value: f64) {
        if let Some(place) = self.place(metric) {
            *place = Some(value);
        }
    }

    fn place(&mut self, key: &str) -> Option<&mut Option<f64>> {
        match key {
            "bytes" => Some(&mut self.bytes),
            "seconds" => Some(&mut self.seconds),
            name => {
                let mut each = METRICS.iter().zip(&mut self.targets);
                let found = each.find(|(metric, _)| metric.name == name && metric.stop.is_some());
                found.map(|(_, place)| place)
            }
        }
    }
}

impl Table for StopSettings {
    fn keys(all: &mut Vec<KeyInfo>) {
        all.extend(METRICS.iter().filter_map(|metric| metric.stop));
        all.extend(BUDGETS);
    }

    fn values(&self, all: &mut Vec<Option<toml::Value>>) {
        let targets = METRICS.iter().zip(self.targets);
        let targets = targets.filter(|(metric, _)| metric.stop.is_some());
        let each = targets
            .map(|(_, value)| value)
            .chain([self.bytes, self.seconds]);
        all.extend(each.map(|value| value.map(toml::Value::Float)));
        all.push(written(&self.patience));
    }
}

impl Serialize for StopSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.entries() {
            if let Some(value) = value {
                map.serialize_entry(key.path.trim_start_matches("stop."), &value)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for StopSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = StopSettings;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("struct StopSettings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StopSettings, A::Error> {
                let mut stop = StopSettings::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "patience" {
                        stop.patience = Some(map.next_value()?);
                        continue;
                    }
                    let unknown = || A::Error::custom(format!("unknown field `{key}`"));
                    *stop.place(&key).ok_or_else(unknown)? = map.next_value()?;
                }
                Ok(stop)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
