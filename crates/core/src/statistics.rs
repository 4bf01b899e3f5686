//! Statistics of the columns of training rows, and the scaling of every row by them.
//!
//! Means, deviations and percentiles are measured on training rows only, in a fixed order and in `f64`, and then
//! applied to every row, the held-out ones included. [`Statistics`] is all of it: what `selvedge data stats` writes and
//! every party of a deployment is given.

use crate::fingerprint::{Fingerprint, was_mixed};
use crate::outcome::Outcome;
use selvedge_nn::{Shape, random::Key};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The deviation of a normal distribution, by the distance of its quartiles.
const NORMAL_QUARTILES: f64 = 0.741_301_109_252_801;

/// The skewness from which on a column's logarithm is scaled; that of an exponential distribution is 2.
const SKEWED: f64 = 1.0;

/// A mean and a deviation, and bounds to clip to: the numbers that scale one column, or a whole table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Scale {
    /// Subtracted from values.
    pub mean: f64,
    /// Values are divided by it.
    pub deviation: f64,
    /// The bounds to which values are clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Of a skewed column its logarithm is scaled, ln(1 + (x − a) / b): the least value a, and a usual distance b from
    /// it, so that the unit of the column does not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<[f64; 2]>,
}

/// A scale as it stands in a file.
#[derive(Deserialize)]
struct Unchecked {
    mean: f64,
    deviation: f64,
    clip: Option<[f64; 2]>,
    log: Option<[f64; 2]>,
}

impl TryFrom<Unchecked> for Scale {
    type Error = String;

    fn try_from(scale: Unchecked) -> Result<Self, String> {
        let Unchecked {
            mean,
            deviation,
            clip,
            log,
        } = scale;
        if !mean.is_finite() || !deviation.is_finite() || deviation <= 0.0 {
            return Err(format!(
                "a scale with mean {mean} and deviation {deviation}: expected finite numbers, the deviation above 0"
            ));
        }
        let turned = |[low, high]: &[f64; 2]| low.partial_cmp(high).is_none_or(Ordering::is_gt);
        if let Some([low, high]) = clip.filter(turned) {
            return Err(format!(
                "a scale that clips to [{low}, {high}]: expected the lower bound first"
            ));
        }
        let unfit =
            |[least, unit]: &[f64; 2]| !least.is_finite() || !unit.is_normal() || *unit < 0.0;
        if let Some([least, unit]) = log.filter(unfit) {
            return Err(format!(
                "a scale with the logarithm of values from {least} in units of {unit}: expected finite numbers, the unit above 0"
            ));
        }
        Ok(Scale {
            mean,
            deviation,
            clip,
            log,
        })
    }
}

impl Scale {
    /// Leaves values as they are.
    pub const IDENTITY: Scale = Scale {
        mean: 0.0,
        deviation: 1.0,
        clip: None,
        log: None,
    };

    /// Measures `values` (twice: squares are taken around the mean, which loses no digits).
    ///
    /// Where nothing varies the deviation is 1, so that a constant becomes 0 and not NaN.
    pub fn of(values: impl Iterator<Item = f32> + Clone) -> Self {
        Self::of_exact(values.map(f64::from))
    }

    fn of_exact(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (mut count, mut sum) = (0u64, 0.0);
        for value in values.clone() {
            count += 1;
            sum += value;
        }
        let count = count.max(1) as f64;
        let mean = sum / count;
        let squares: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
        let deviation = (squares / count).sqrt();
        Scale {
            mean,
            deviation: if deviation > 0.0 { deviation } else { 1.0 },
            ..Scale::IDENTITY
        }
    }

    /// The median, and as the deviation 0.741 times the distance of the quartiles: what mean and deviation are of values
    /// that are normally distributed, and few far values do not change it. Where half of all are the same, the mean and
    /// the deviation are all there is.
    pub fn robust(values: &[f32]) -> Self {
        let mut ranked = values.to_vec();
        let last = values.len().saturating_sub(1);
        let mut quartile = |n: usize| {
            let middle = ranked.select_nth_unstable_by(last * n / 4, f32::total_cmp);
            f64::from(*middle.1)
        };
        if values.is_empty() {
            return Scale::IDENTITY;
        }
        let [low, median, high] = [1, 2, 3].map(&mut quartile);
        match high > low {
            true => Scale {
                mean: median,
                deviation: (high - low) * NORMAL_QUARTILES,
                ..Scale::IDENTITY
            },
            false => Scale::of(values.iter().copied()),
        }
    }

    /// Of values that are skewed to the right the mean and the deviation of their logarithms; else those of the values.
    pub fn unskewed(values: &[f32]) -> Self {
        let plain = Scale::of(values.iter().copied());
        let cube = |value: &f32| {
            let far = (f64::from(*value) - plain.mean) / plain.deviation;
            far * far * far
        };
        let cubes: f64 = values.iter().map(cube).sum();
        if cubes <= SKEWED * values.len() as f64 {
            return plain;
        }
        let least = values.iter().copied().fold(f32::INFINITY, f32::min);
        let mut ranked = values.to_vec();
        let median = *ranked
            .select_nth_unstable_by(values.len() / 2, f32::total_cmp)
            .1;
        let least = f64::from(least);
        // Where the least is the most frequent as well, the mean is the next best unit.
        let unit = match f64::from(median) - least {
            unit if unit.is_normal() => unit,
            _ => plain.mean - least,
        };
        let log = [least, unit];
        let logarithms = values.iter().map(|value| logarithm(f64::from(*value), log));
        Scale {
            log: Some(log),
            ..Scale::of_exact(logarithms)
        }
    }

    /// A column that is constant in training has nothing to learn from, so later values are ignored too.
    pub fn still(self, mut values: impl Iterator<Item = f32>) -> Self {
        let first = values.next().unwrap_or_default();
        match values.all(|value| value == first) {
            true => Scale {
                clip: Some([self.mean; 2]),
                ..self
            },
            false => self,
        }
    }

    /// The same for values clipped to their 1st and 99th percentiles, those of rank ⌈n/100⌉ from either end.
    pub fn of_clipped(values: &[f32]) -> Self {
        Self::clipped(values, |values| Scale::of(values.iter().copied()))
    }

    /// What `measure` says of values that are clipped like this.
    pub fn clipped(values: &[f32], measure: impl Fn(&[f32]) -> Self) -> Self {
        if values.is_empty() {
            return Scale::IDENTITY.still(std::iter::empty());
        }
        let mut ranked = values.to_vec();
        let beyond = values.len().div_ceil(100) - 1;
        let mut of_rank = |rank: usize| *ranked.select_nth_unstable_by(rank, f32::total_cmp).1;
        let (low, high) = (of_rank(beyond), of_rank(values.len() - 1 - beyond));
        let clamped: Vec<f32> = values.iter().map(|v| v.clamp(low, high)).collect();
        Scale {
            clip: Some([f64::from(low), f64::from(high)]),
            ..measure(&clamped)
        }
    }

    /// How many deviations a value is from the mean, however far away.
    pub fn deviations(self, value: f32) -> f64 {
        let value = f64::from(value);
        let value = self.log.map_or(value, |log| logarithm(value, log));
        (value - self.mean) / self.deviation
    }

    /// The value of the column that is so many deviations from the mean.
    pub fn at(self, deviations: f64) -> f64 {
        let value = self.mean + deviations * self.deviation;
        self.log
            .map_or(value, |[least, unit]| least + unit * libm::expm1(value))
    }

    /// One scaled value; what is missing becomes the mean.
    pub fn apply(self, value: f32) -> f32 {
        if value.is_nan() {
            return 0.0;
        }
        let value = f64::from(value);
        let value = self
            .clip
            .map_or(value, |[low, high]| value.clamp(low, high));
        let value = self.log.map_or(value, |log| logarithm(value, log));
        ((value - self.mean) / self.deviation) as f32
    }
}

/// ln(1 + (x − least) / unit), and 0 below the least.
fn logarithm(value: f64, [least, unit]: [f64; 2]) -> f64 {
    libm::log1p((value - least).max(0.0) / unit)
}

/// How the rows of one side are scaled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideStatistics {
    /// The names of the columns, where they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The shape of one row.
    pub shape: Vec<usize>,
    /// One scale for all numbers, or one for each column or feature of a step.
    pub scales: Vec<Scale>,
    /// For each named column, the share of training values that were not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<f64>,
}

impl SideStatistics {
    /// For numbers that are used unscaled.
    pub fn unscaled(shape: Shape) -> Self {
        SideStatistics {
            names: Vec::new(),
            shape: shape.dims(),
            scales: vec![Scale::IDENTITY],
            missing: Vec::new(),
        }
    }

    /// Refuses what cannot be applied.
    fn check(&self) -> Result<(), String> {
        let numbers = self.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let fits = numbers.is_some_and(|n| n > 0 && n.is_multiple_of(self.scales.len().max(1)));
        let sound = |s: &Scale| {
            let clip = s.clip.unwrap_or([0.0, 0.0]);
            let log = s.log.unwrap_or([0.0, 1.0]);
            let is_log = log[0].is_finite() && log[1].is_normal() && log[1] > 0.0;
            s.mean.is_finite() && s.deviation.is_normal() && clip[0] <= clip[1] && is_log
        };
        match !self.scales.is_empty() && fits && self.scales.iter().all(sound) {
            true => Ok(()),
            false => Err(format!(
                "{} scales for the shape {:?}: expected one for all or one for each column, with finite numbers and non-zero deviations",
                self.scales.len(),
                self.shape
            )),
        }
    }

    /// Scales rows in place.
    pub fn apply(&self, values: &mut [f32]) {
        if self.scales.iter().all(|scale| *scale == Scale::IDENTITY) {
            for value in values.iter_mut().filter(|v| v.is_nan()) {
                *value = 0.0;
            }
            return;
        }
        for row in values.chunks_mut(self.scales.len()) {
            for (value, scale) in row.iter_mut().zip(&self.scales) {
                *value = scale.apply(*value);
            }
        }
    }
}

/// The statistics of training rows, and the names of the classes: an input of every party.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The name of the data set.
    pub set: String,
    /// How many training rows were measured.
    pub rows: usize,
    /// What is asked about each sample.
    #[serde(default, skip_serializing_if = "Outcome::is_class")]
    pub outcome: Outcome,
    /// The names of the classes or labels, or that of the quantity or of the event.
    pub classes: Vec<String>,
    /// The scaling of hospitals.
    pub hospital: SideStatistics,
    /// The scaling of devices.
    pub device: SideStatistics,
}

impl Statistics {
    /// As the file `stats.json`: all of it, and its fingerprint.
    pub fn to_json(&self) -> serde_json::Value {
        let mut value = serde_json::json!({ "fingerprint": self.fingerprint() });
        if let (Some(all), Ok(serde_json::Value::Object(own))) =
            (value.as_object_mut(), serde_json::to_value(self))
        {
            all.extend(own);
        }
        value
    }

    /// From such a file.
    ///
    /// # Errors
    /// If it is invalid, or does not match its fingerprint.
    pub fn from_json(mut value: serde_json::Value) -> Result<Self, String> {
        let stated = value
            .as_object_mut()
            .and_then(|all| all.remove("fingerprint"));
        let statistics: Statistics = serde_json::from_value(value).map_err(|error| {
            format!("{error}: expected a file written by `selvedge data stats`")
        })?;
        for side in [&statistics.hospital, &statistics.device] {
            side.check()?;
        }
        match stated.as_ref().and_then(|stated| stated.as_str()) {
            Some(stated) if statistics.has_fingerprint(stated) => Ok(statistics),
            stated => Err(format!(
                "its fingerprint is {}, but it states {}: it was changed",
                statistics.fingerprint(),
                stated.unwrap_or("none")
            )),
        }
    }

    /// A fingerprint of every number and name.
    pub fn fingerprint(&self) -> String {
        Fingerprint::of("statistics").text(&self.text()).hex()
    }

    /// Whether a stated fingerprint is its own.
    pub fn has_fingerprint(&self, stated: &str) -> bool {
        match was_mixed(stated) {
            true => self.mixed() == stated,
            false => self.fingerprint() == stated,
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The fingerprint that 0.2 and earlier stated.
    fn mixed(&self) -> String {
        let text = self.text();
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        Key::new(text.len() as u64)
            .with_all(text.as_bytes().chunks(8).map(word))
            .hex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_zero_variance_one() {
        let values = [1.0f32, 2.0, 3.0, 6.0];
        let scale = Scale::of(values.iter().copied());
        assert_eq!(
            scale,
            Scale {
                mean: 3.0,
                deviation: 3.5f64.sqrt(),
                ..Scale::IDENTITY
            }
        );
        let scaled = values.map(|v| f64::from(scale.apply(v)));
        assert!(scaled.iter().sum::<f64>().abs() < 1e-6);
        assert!((scaled.iter().map(|v| v * v).sum::<f64>() - 4.0).abs() < 1e-6);
    }

    #[test]
    fn a_constant_becomes_zero() {
        let scale = Scale::of([7.5f32; 3].iter().copied());
        assert_eq!(scale.apply(7.5), 0.0);
        assert_eq!(scale.apply(8.5), 1.0);
    }

    #[test]
    fn a_far_away_mean_does_not_spoil_the_deviation() {
        let scale = Scale::of([1e7f32, 1e7 + 1.0, 1e7 + 2.0].iter().copied());
        assert!((scale.deviation - (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn no_values_at_all_change_nothing() {
        assert_eq!(Scale::of(std::iter::empty()).apply(2.0), 2.0);
    }

    #[test]
    fn a_scale_that_cannot_scale_is_refused() {
        let read = |text: &str| serde_json::from_str::<Scale>(text).map_err(|e| e.to_string());
        let right = read(r#"{"mean": 1, "deviation": 2, "clip": [0, 3]}"#).unwrap();
        assert_eq!(right.apply(9.0), 1.0);
        let written = serde_json::to_string(&right).unwrap();
        assert_eq!(read(&written).unwrap(), right);
        for (text, part) in [
            (r#"{"mean": 1, "deviation": 0}"#, "deviation 0"),
            (r#"{"mean": 1, "deviation": -2}"#, "deviation -2"),
            (
                r#"{"mean": 1, "deviation": 2, "clip": [3, 0]}"#,
                "clips to [3, 0]",
            ),
        ] {
            assert!(read(text).unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn of_skewed_values_the_logarithm_is_scaled() {
        let values: Vec<f32> = (0..1000)
            .map(|i| libm::exp(f64::from(i) / 250.0) as f32)
            .collect();
        let scale = Scale::unskewed(&values);
        let [least, unit] = scale.log.unwrap();
        assert_eq!((least, unit), (1.0, f64::from(values[500]) - 1.0));
        let scaled: Vec<f64> = values.iter().map(|v| f64::from(scale.apply(*v))).collect();
        let mean = scaled.iter().sum::<f64>() / 1000.0;
        let square = scaled.iter().map(|v| v * v).sum::<f64>() / 1000.0;
        assert!(mean.abs() < 1e-6 && (square - 1.0).abs() < 1e-6);
        // The unit of a column does not matter, and what is below the least is like the least.
        let grams: Vec<f32> = values.iter().map(|v| v * 1024.0).collect();
        let of_grams = Scale::unskewed(&grams);
        assert!((of_grams.apply(2048.0) - scale.apply(2.0)).abs() < 1e-6);
        assert_eq!(scale.apply(-9.0), scale.apply(1.0));
        assert!((scale.at(scale.deviations(20.0)) - 20.0).abs() < 1e-9);
        assert_eq!(scale.apply(f32::NAN), 0.0);
        let even: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        assert_eq!(Scale::unskewed(&even), Scale::of(even.iter().copied()));
        // Counts of which most are zero.
        let counts = [0.0f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 5.0];
        assert_eq!(Scale::unskewed(&counts).log.unwrap(), [0.0, 6.0 / 9.0]);
        let read: Scale = serde_json::from_str(&serde_json::to_string(&scale).unwrap()).unwrap();
        assert_eq!(read, scale);
        let wrong = r#"{"mean": 1, "deviation": 2, "log": [0, -1]}"#;
        assert!(serde_json::from_str::<Scale>(wrong).is_err());
    }

    #[test]
    fn few_far_values_do_not_change_a_robust_scale() {
        let mut values: Vec<f32> = (0..=100).map(|i| i as f32).collect();
        let scale = Scale::robust(&values);
        assert_eq!(scale.mean, 50.0);
        assert!((scale.deviation - 50.0 / 1.349).abs() < 0.01);
        values[100] = 1e9;
        assert_eq!(Scale::robust(&values), scale);
        let mostly = [3.0f32, 3.0, 3.0, 3.0, 8.0];
        assert_eq!(Scale::robust(&mostly), Scale::of(mostly.iter().copied()));
        assert_eq!(Scale::robust(&[]), Scale::IDENTITY);
    }

    #[test]
    fn far_values_are_brought_back() {
        let values: Vec<f32> = (0..=1000).map(|i| i as f32).collect();
        let scale = Scale::of_clipped(&values);
        assert_eq!(scale.clip, Some([10.0, 990.0]));
        assert_eq!(scale.apply(-5000.0), scale.apply(10.0));
        assert_eq!(scale.apply(5000.0), scale.apply(990.0));
        assert_eq!(scale.apply(f32::NAN), 0.0);
        assert_eq!(Scale::of_clipped(&[]).apply(7.0), 0.0);
        assert_eq!(Scale::of_clipped(&[2.0]).apply(7.0), 0.0);
    }
}
