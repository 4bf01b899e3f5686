//! Who was absent, where and in which phase: an input of the loop, a log of a deployment.

use crate::checks::Reason;
use crate::protocol::{Absence, Phase};
use std::collections::HashMap;

/// Answers whether a party was absent.
pub trait Absences: Send + Sync {
    /// The device missed the exchange at `t`: it is out of the batch and out of the mean.
    fn exchange(&self, t: u64, group: usize, device: u32) -> bool;
    /// The device's model did not arrive at `t`, the end of an interval: it is out of the mean only.
    fn upload(&self, t: u64, group: usize, device: u32) -> bool;
    /// The group missed the global aggregation at `t`: it is left out and the weights renormalised.
    fn group(&self, t: u64, group: usize) -> bool;

    /// The group's scores are not in the evaluation at `t`.
    fn evaluation(&self, _t: u64, _group: usize) -> bool {
        false
    }

    /// Whether those are among them who were there and were left out: then nobody is judged again.
    fn are_decided(&self) -> bool {
        false
    }
}

/// Nobody is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Absences for Nobody {
    fn exchange(&self, _: u64, _: usize, _: u32) -> bool {
        false
    }

    fn upload(&self, _: u64, _: usize, _: u32) -> bool {
        false
    }

    fn group(&self, _: u64, _: usize) -> bool {
        false
    }
}

/// A list of absences, as a deployment notes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed(HashMap<(Phase, u64, usize, Option<u32>), Option<Reason>>);

impl Listed {
    /// Adds one.
    pub fn add(&mut self, absence: Absence) {
        let Absence {
            phase,
            t,
            group,
            device,
            reason,
        } = absence;
        let known = self.0.entry((phase, t, group, device)).or_default();
        *known = known.or(reason);
    }

    /// All of them, in the order of iterations.
    pub fn all(&self) -> Vec<Absence> {
        let absence = |((phase, t, group, device), reason): (&(_, _, _, _), &_)| Absence {
            phase: *phase,
            t: *t,
            group: *group,
            device: *device,
            reason: *reason,
        };
        let mut all: Vec<Absence> = self.0.iter().map(absence).collect();
        all.sort_unstable_by_key(|a| (a.t, a.phase, a.group, a.device));
        all
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, phase: Phase, t: u64, group: usize, device: Option<u32>) -> bool {
        self.0.contains_key(&(phase, t, group, device))
    }
}

impl Absences for Listed {
    fn exchange(&self, t: u64, group: usize, device: u32) -> bool {
        self.has(Phase::Exchange, t, group, Some(device))
    }

    fn upload(&self, t: u64, group: usize, device: u32) -> bool {
        self.has(Phase::Upload, t, group, Some(device))
    }

    fn group(&self, t: u64, group: usize) -> bool {
        self.has(Phase::Global, t, group, None)
    }

    fn evaluation(&self, t: u64, group: usize) -> bool {
        self.has(Phase::Evaluation, t, group, None)
    }

    fn are_decided(&self) -> bool {
        self.0.values().any(Option::is_some)
    }
}
