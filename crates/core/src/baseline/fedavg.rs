//! FedAvg on whole records: devices give their raw data to their hospitals, which then hold both sides of every patient
//! and train all of θ by themselves; the cloud averages their models every P.
//!
//! ```text
//! before t = 0     raw data: devices → edge → hospital
//! every iteration  a hospital draws A_m of its patients and takes one step of their mean gradient
//! every P          θ: hospitals → cloud → hospitals
//! ```
//!
//! Both sides being in one place, nothing is stale: the steps are those of HSGD with Q = 1.

use super::{average, raw};
use crate::group::{Workspace, Workspaces};
use crate::hsgd;
use crate::ledger::Link;
use crate::run::AlgorithmSteps;
use crate::task::Task;

/// The algorithm, for the driver ([`run::train`](crate::run::train)).
pub(crate) fn steps_of<'a>(task: &'a Task<'_>) -> AlgorithmSteps<'a> {
    let workspaces = Workspaces::new(|| Workspace::new(task));
    AlgorithmSteps {
        before: raw::to_the_hospitals,
        interval: Box::new(move |state, groups| {
            let started = task.stopwatch.map(|now| now());
            hsgd::steps(task, state, groups, &workspaces);
            let seconds = hsgd::compute(task, 1, started);
            (0..groups.len()).for_each(|m| state.progress.clock.advance(m, seconds));
        }),
        aggregate: |task, state| average(task, state, Link::HospitalCloud, &[0, 1, 2]),
    }
}
