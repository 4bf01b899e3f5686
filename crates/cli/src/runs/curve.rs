//! A metric over a run, and over the seeds of a series.

use super::{Series, value};
use crate::summary::mean_and_deviation;
use selvedge_core::state::Evaluation;
use std::collections::BTreeMap;

/// What a metric is drawn against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Iterations,
    /// All bytes, mean per group.
    Bytes,
    /// Simulated seconds.
    Seconds,
}

impl Axis {
    pub(crate) const ALL: [Axis; 3] = [Axis::Iterations, Axis::Bytes, Axis::Seconds];

    pub(crate) fn of(self, evaluation: &Evaluation) -> f64 {
        match self {
            Axis::Iterations => evaluation.t as f64,
            Axis::Bytes => evaluation.bytes_exact,
            Axis::Seconds => evaluation.seconds,
        }
    }
}

/// A metric at one iteration, over the seeds that were evaluated there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) t: u64,
    /// The mean place on the axis: bytes and seconds may differ a little between seeds.
    pub(crate) x: f64,
    pub(crate) mean: f64,
    /// Of a sample; 0 for one seed.
    pub(crate) deviation: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// How many seeds this is over.
    pub(crate) seeds: usize,
}

impl Series {
    /// A metric of [`super::METRICS`] at every iteration where any seed has a value, by rising t.
    pub(crate) fn curve(&self, metric: &str, axis: Axis) -> Vec<Point> {
        let mut at: BTreeMap<u64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for evaluation in self.runs.iter().flat_map(|run| &run.evaluations) {
            if let Some(y) = value(evaluation, metric) {
                let (xs, ys) = at.entry(evaluation.t).or_default();
                xs.push(axis.of(evaluation));
                ys.push(y);
            }
        }
        let point = |(t, (xs, ys)): (u64, (Vec<f64>, Vec<f64>))| {
            let (mean, deviation) = mean_and_deviation(&ys);
            Point {
                t,
                x: mean_and_deviation(&xs).0,
                mean,
                deviation,
                min: ys.iter().copied().fold(f64::INFINITY, f64::min),
                max: ys.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                seeds: ys.len(),
            }
        };
        at.into_iter().map(point).collect()
    }
}
