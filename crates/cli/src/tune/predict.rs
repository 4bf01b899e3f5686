//! What is to be expected of settings before they are tried: the bound, the bytes, the simulated time.

use anyhow::Result;
use selvedge_core::clock::{Rates, Traffic};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::Experiment;
use selvedge_core::ledger::{Messages, Payload};
use selvedge_core::task::Task;
use selvedge_core::theory::bound::{Constants, Setting};
use serde::Serialize;

/// What is expected of T iterations.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Prediction {
    /// Γ
    pub(crate) bound: f64,
    /// Whether η ≤ 1/(8Pρ).
    pub(crate) is_valid: bool,
    /// Bytes of one group, all of them.
    pub(crate) bytes: f64,
    /// Simulated seconds.
    pub(crate) seconds: f64,
}

pub(super) fn setting(p: f64, q: f64, learning_rate: f64, iterations: f64) -> Setting {
    Setting {
        global_interval: p,
        local_interval: q,
        learning_rate,
        iterations,
    }
}

impl Prediction {
    /// For an experiment whose P, Q and η stay.
    pub(super) fn new(
        experiment: &Experiment,
        dataset: &Dataset,
        constants: &Constants,
    ) -> Result<Self> {
        let task = Task::new(experiment, dataset)?;
        let train = &experiment.train;
        let (p, q, t) = (
            train.global_interval,
            train.local_interval,
            train.iterations,
        );
        let setting = setting(p as f64, q as f64, train.learning_rate, t as f64);
        let (bytes, seconds) = interval_and_aggregation(&task);
        let all = |[local, global]: [f64; 2]| (t / q) as f64 * local + (t / p) as f64 * global;
        let compute = t as f64 * Rates::new(&experiment.time).iteration();
        Ok(Prediction {
            bound: constants.bound(setting).total(),
            is_valid: constants.is_valid(setting),
            bytes: all(bytes),
            seconds: all(seconds) + compute,
        })
    }
}

/// Bytes and seconds of an interval without its computation, and of a global aggregation, for a group as large as the
/// groups are in the mean.
fn interval_and_aggregation(task: &Task<'_>) -> ([f64; 2], [f64; 2]) {
    let widths = task.architecture.widths();
    let sizes = Messages::new(widths, &task.compression);
    let devices = task.selected.iter().sum::<usize>() as f64 / task.selected.len() as f64;
    let devices = devices.round().max(1.0) as usize;
    let samples = task.given.training_samples() as f64;
    let all: usize = task.given.groups.iter().map(|g| g.devices()).sum();
    let per_device = (samples / all as f64).round().max(1.0) as usize;
    let traffic = Traffic {
        devices,
        samples: devices * per_device,
        largest: per_device,
    };
    let times = |payload: Payload, n: usize| payload.times(n).bytes as f64;
    let theta = [widths.n0, widths.n1, widths.n2];
    let up = theta.map(|n| Payload::coded(task.compression.global_upload, n));
    let down = theta.map(|n| Payload::coded(task.compression.global_download, n));
    let local = times(sizes.theta2_down, devices)
        + times(sizes.theta2_up, devices)
        + 2.0 * times(sizes.zeta2, traffic.samples)
        + times(sizes.theta0, devices + 1)
        + 2.0 * times(sizes.zeta1, traffic.samples);
    let global = up.iter().chain(&down).map(|p| p.bytes as f64).sum();
    let rates = Rates::new(&task.experiment.time);
    (
        [local, global],
        [
            rates.exchange(&sizes, traffic) + rates.local_aggregation(&sizes, devices),
            rates.global_aggregation(&up, &down),
        ],
    )
}
