//! A metric over a run, and over the seeds of a series.

use super::{Series, mean_and_deviation};
use selvedge_core::experiment::Adaptive;
use selvedge_core::metrics::Metric;
use selvedge_core::state::Evaluation;
use std::collections::BTreeMap;

/// What a metric is drawn against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// t
    Iterations,
    /// All bytes, mean per group.
    Bytes,
    /// Simulated seconds.
    Seconds,
}

impl Axis {
    /// All of them.
    pub const ALL: [Axis; 3] = [Axis::Iterations, Axis::Bytes, Axis::Seconds];

    /// Where an evaluation is on it.
    pub fn of(self, evaluation: &Evaluation) -> f64 {
        match self {
            Axis::Iterations => evaluation.t as f64,
            Axis::Bytes => evaluation.bytes_exact,
            Axis::Seconds => evaluation.seconds,
        }
    }
}

/// A metric at one iteration, over the seeds that were evaluated there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The iteration.
    pub t: u64,
    /// The mean place on the axis: bytes and seconds may differ a little between seeds.
    pub x: f64,
    /// Over the seeds.
    pub mean: f64,
    /// Of a sample; one seed has none.
    pub deviation: Option<f64>,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
    /// How many seeds this is over.
    pub seeds: usize,
}

/// What a run has at `t`, on the straight line between the evaluations before and after it; nothing outside of them.
fn between(run: &[(u64, [f64; 2])], t: u64) -> Option<[f64; 2]> {
    let after = run.partition_point(|(at, _)| *at < t);
    let (end, b) = *run.get(after)?;
    if end == t {
        return Some(b);
    }
    let (start, a) = run[after.checked_sub(1)?];
    let share = (t - start) as f64 / (end - start) as f64;
    Some([0, 1].map(|i| a[i] + share * (b[i] - a[i])))
}

impl Series {
    /// A metric of [`METRICS`](selvedge_core::metrics::METRICS) at every iteration where any seed has a value, by
    /// rising t; where somebody steers, at those of the seed that has most.
    pub fn curve(&self, metric: &str, axis: Axis) -> Vec<Point> {
        let Some(metric) = Metric::find(metric) else {
            return Vec::new();
        };
        let mut at: BTreeMap<u64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        let runs = self.runs.iter().map(|run| {
            let values = run.evaluations.iter();
            let values = values.filter_map(|e| Some((e.t, [axis.of(e), metric.of(e)?])));
            values.collect::<Vec<_>>()
        });
        let mut runs: Vec<_> = runs.collect();
        if self.first().experiment.train.adaptive != Adaptive::Off {
            // Each seed has intervals of its own, and is evaluated at other iterations than the others.
            let most = runs.iter().max_by_key(|run| run.len());
            let at: Vec<u64> = most.into_iter().flatten().map(|(t, _)| *t).collect();
            for run in &mut runs {
                let between = at.iter().filter_map(|t| Some((*t, between(run, *t)?)));
                *run = between.collect();
            }
        }
        for (t, [x, y]) in runs.into_iter().flatten() {
            let (xs, ys) = at.entry(t).or_default();
            xs.push(x);
            ys.push(y);
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
