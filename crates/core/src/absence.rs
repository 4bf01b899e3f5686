//! Who was absent, where and in which phase: an input of the loop, a log of a deployment.

use std::collections::HashSet;

/// Answers whether a party was absent.
pub trait Absences: Send + Sync {
    /// The device missed the exchange at `t`: it is out of the batch and out of the mean.
    fn exchange(&self, t: u64, group: usize, device: u32) -> bool;
    /// The device's model did not arrive at `t`, the end of an interval: it is out of the mean only.
    fn upload(&self, t: u64, group: usize, device: u32) -> bool;
    /// The group missed the global aggregation at `t`: it is left out and the weights renormalised.
    fn group(&self, t: u64, group: usize) -> bool;

    /// Whether nobody is ever absent.
    fn is_empty(&self) -> bool {
        false
    }
}

/// Nobody is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Absences for Nobody {
    fn is_empty(&self) -> bool {
        true
    }

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

/// A list of absences.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// (t, group, device) that missed the exchange.
    pub exchanges: HashSet<(u64, usize, u32)>,
    /// (t, group, device) whose model did not arrive.
    pub uploads: HashSet<(u64, usize, u32)>,
    /// (t, group) that missed the global aggregation.
    pub groups: HashSet<(u64, usize)>,
}

impl Absences for Listed {
    fn is_empty(&self) -> bool {
        self.exchanges.is_empty() && self.uploads.is_empty() && self.groups.is_empty()
    }

    fn exchange(&self, t: u64, group: usize, device: u32) -> bool {
        self.exchanges.contains(&(t, group, device))
    }

    fn upload(&self, t: u64, group: usize, device: u32) -> bool {
        self.uploads.contains(&(t, group, device))
    }

    fn group(&self, t: u64, group: usize) -> bool {
        self.groups.contains(&(t, group))
    }
}
