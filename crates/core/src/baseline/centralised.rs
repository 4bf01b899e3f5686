//! Centralised training: all raw data is brought to one place and learnt from there. Nobody may do this with patients'
//! records; it is the yardstick for the other algorithms.
//!
//! Each iteration draws a share α of all devices and takes one step of the mean gradient: HSGD in one group with Q = 1.

use super::{raw, tdcd};
use crate::group::{Workspace, Workspaces};
use crate::hsgd;
use crate::run::AlgorithmSteps;
use crate::task::Task;

/// The algorithm, for the driver ([`run::train`](crate::run::train)).
pub(crate) fn steps_of<'a>(task: &'a Task<'_>) -> AlgorithmSteps<'a> {
    let workspaces = Workspaces::new(|| Workspace::new(task));
    AlgorithmSteps {
        before: raw::to_the_cloud,
        interval: Box::new(move |state, groups| {
            let started = task.stopwatch.map(|now| now());
            hsgd::steps(task, state, groups, &workspaces);
            let seconds = hsgd::compute(task, 1, started);
            state.progress.clock.meet(seconds);
        }),
        aggregate: |_, state| tdcd::adopt(state),
    }
}
