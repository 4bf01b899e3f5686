//! The `[stop]` table of an experiment.

use crate::metrics::{METRICS, Metric};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `[stop]`: targets and budgets that end a run early, at a global aggregation. Any metric that can be a target has a key
/// of its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopSettings {
    /// Of each metric, in their order.
    targets: [Option<f64>; METRICS.len()],
    /// Exact bytes, mean per group, at least this.
    pub bytes: Option<f64>,
    /// Simulated seconds at least this.
    pub seconds: Option<f64>,
}

impl StopSettings {
    /// The metrics that are to reach something, and what.
    pub fn targets(&self) -> impl Iterator<Item = (&'static Metric, f64)> {
        let each = METRICS.iter().zip(self.targets);
        each.filter_map(|(metric, target)| Some((metric, target?)))
    }

    /// Ends the run where a metric reaches this; a name that is no metric's has no effect.
    pub fn set_target(&mut self, metric: &str, value: f64) {
        if let Some(place) = self.place(metric) {
            *place = Some(value);
        }
    }

    /// What is written in the file, with the names there.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let targets = self.targets().map(|(metric, value)| (metric.name, value));
        let budgets = [("bytes", self.bytes), ("seconds", self.seconds)];
        targets.chain(
            budgets
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        )
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

impl Serialize for StopSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.entries() {
            map.serialize_entry(name, &value)?;
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
                    let unknown = || A::Error::custom(format!("unknown field `{key}`"));
                    *stop.place(&key).ok_or_else(unknown)? = map.next_value()?;
                }
                Ok(stop)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
