//! A short run that measures what the bound needs.
//!
//! ```text
//! probe ── some iterations at P = Q = 1 ── probe ── …
//! ```
//!
//! It starts where training would, and takes steps of η or 1/ρ, whichever is less, so that a learning rate that is ten
//! times too large does no harm. Only what parties may share is used, and all that they send is in its ledger.

use super::bound::{Bound, Constants, Setting};
use crate::adaptive::bound::{Books, Known, probe};
use crate::cloud;
use crate::group::{Turnout, Workspace, Workspaces};
use crate::hsgd;
use crate::ledger::Ledger;
use crate::schedule::Segment;
use crate::state::{Progress, State};
use crate::task::Task;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Probes in all.
pub const PROBES: usize = 5;
/// Iterations between two of them.
pub const APART: u64 = 10;

/// What was measured.
#[derive(Clone, Debug)]
pub struct Pretraining {
    /// The result of each probe.
    pub probes: Vec<Known>,
    /// η of each iteration.
    pub rates: Vec<f64>,
    /// Everything that was sent.
    pub ledger: Ledger,
}

/// A value with the least and the largest that were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The value in use.
    pub value: f64,
    /// The least.
    pub least: f64,
    /// The largest.
    pub largest: f64,
}

impl Spread {
    fn of(values: &[f64], choose: impl Fn(&[f64]) -> f64) -> Self {
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f).unwrap_or(0.0);
        Spread {
            value: choose(values),
            least: fold(f64::min),
            largest: fold(f64::max),
        }
    }
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len().max(1) as f64
}

impl Pretraining {
    fn each(&self, of: impl Fn(&Known) -> f64) -> Vec<f64> {
        self.probes.iter().map(of).collect()
    }

    /// F0, at the initial model.
    pub fn start(&self) -> f64 {
        self.probes.first().map_or(0.0, |known| known.point.loss)
    }

    /// ρ: the largest over groups and along the path.
    pub fn rho(&self) -> Spread {
        let largest = |x: &[f64]| x.iter().copied().fold(0.0, f64::max);
        Spread::of(&self.each(|known| known.rho), largest)
    }

    /// δ²: the largest over the parts, averaged along the path.
    pub fn variance(&self) -> Spread {
        Spread::of(&self.each(|known| known.point.largest_variance()), mean)
    }

    /// The share of δ² that is differences between groups.
    pub fn between(&self) -> f64 {
        let share = |known: &Known| {
            let variance = known.point.variance;
            let largest = (0..3).max_by(|a, b| variance[*a].total_cmp(&variance[*b]));
            let part = largest.unwrap_or(0);
            known.point.between[part] / variance[part].max(f64::MIN_POSITIVE)
        };
        mean(&self.each(share))
    }

    /// ‖∇F‖, averaged along the path.
    pub fn gradient(&self) -> Spread {
        Spread::of(&self.each(|known| known.point.gradient.sqrt()), mean)
    }

    /// What Theorem 1 needs, with E F(θ^T) taken to be zero.
    pub fn constants(&self) -> Constants {
        Constants {
            drop: self.start(),
            rho: self.rho().value,
            variance: self.variance().value,
        }
    }

    /// The measured mean of ‖∇F‖², and the bound for the same iterations: how loose it is.
    pub fn looseness(&self) -> (f64, Bound) {
        let measured = mean(&self.each(|known| known.point.gradient));
        let last = self.probes.last().map_or(0.0, |known| known.point.loss);
        let constants = Constants {
            drop: (self.start() - last).max(0.0),
            ..self.constants()
        };
        let setting = Setting {
            global_interval: 1.0,
            local_interval: 1.0,
            learning_rate: mean(&self.rates),
            iterations: self.rates.len() as f64,
        };
        (measured, constants.bound(setting))
    }
}

/// Measures along a short run; `after` is called with the number of each probe, and can end it.
pub fn pretrain(
    task: &Task<'_>,
    mut after: impl FnMut(usize) -> ControlFlow<()>,
) -> Option<Pretraining> {
    let mut state = State::initial(task);
    state.progress.controller = None;
    state.safe = None;
    let mut groups = Turnout::all(task);
    let workspaces = Workspaces::new(|| Workspace::new(task));
    let (mut probes, mut rates) = (Vec::new(), Vec::new());
    let all: Vec<usize> = (0..task.dataset.groups.len()).collect();
    for k in 0..PROBES {
        let t = state.progress.t;
        let Progress { ledger, clock, .. } = &mut state.progress;
        let known = probe((task, &all, t), &state.theta, Books { ledger, clock });
        probes.push(known);
        if after(k + 1).is_break() {
            return None;
        }
        let learning_rate = task.experiment.train.learning_rate.min(1.0 / known.rho);
        state.progress.segment = Segment {
            start: t,
            global_interval: 1,
            local_interval: 1,
            learning_rate,
            halve_every: None,
        };
        for _ in 0..if k + 1 < PROBES { APART } else { 0 } {
            hsgd::interval(task, &mut state, &mut groups, &workspaces);
            cloud::aggregate(task, &mut state);
            rates.push(learning_rate);
        }
    }
    Some(Pretraining {
        probes,
        rates,
        ledger: state.progress.ledger,
    })
}
