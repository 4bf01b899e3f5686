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

use super::raw;
use crate::clock::Rates;
use crate::cloud;
use crate::group::{Group, Workspace, Workspaces};
use crate::hsgd;
use crate::ledger::{Kind, Link, Payload};
use crate::run::{Ending, Interval, Watch};
use crate::state::{Progress, State};
use crate::task::Task;
use std::ops::ControlFlow;

/// Trains from `state` to the end, as [`run::train`](crate::run::train) does.
///
/// # Errors
/// Only what `after` returns.
pub fn train<E>(
    task: &Task<'_>,
    state: &mut State,
    after: impl FnMut(Interval<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<Ending, E> {
    let mut groups = Group::all(task);
    let workspaces = Workspaces::new(|| Workspace::new(task));
    let mut watch = Watch::new(task, after);
    if state.progress.evaluated.is_none() {
        raw::to_the_hospitals(task, &mut state.progress);
    }
    if let Some(ending) = watch.begin(state)? {
        return Ok(ending);
    }
    while state.progress.t < task.experiment.train.iterations {
        let started = task.stopwatch.map(|now| now());
        hsgd::steps(task, state, &mut groups, &workspaces);
        let seconds = hsgd::compute(task, 1, started);
        (0..groups.len()).for_each(|m| state.progress.clock.advance(m, seconds));
        if state
            .progress
            .segment
            .aggregates_globally_at(state.progress.t)
        {
            cloud::adopt_mean(task, state, &[0, 1, 2]);
            account(task, &mut state.progress);
        }
        if let Some(ending) = watch.interval_ended(state, &groups)? {
            return Ok(ending);
        }
    }
    Ok(Ending::Finished)
}

/// Every hospital's θ up, and the mean down.
fn account(task: &Task<'_>, progress: &mut Progress) {
    let groups = task.dataset.groups.len();
    let w = task.architecture.widths();
    let parts = [
        (Kind::Theta0, w.n0),
        (Kind::Theta1, w.n1),
        (Kind::Theta2, w.n2),
    ];
    for (kind, numbers) in parts {
        let each = Payload::dense(numbers);
        let ledger = &mut progress.ledger;
        ledger.charge_both_ways(Link::HospitalCloud, kind, groups, each);
    }
    // All of it is the hospital's.
    let sizes = [w.n0, w.n1 + w.n2, 0].map(Payload::dense);
    let rates = Rates::new(&task.experiment.time);
    let seconds = rates.global_aggregation(&sizes, &sizes);
    progress.clock.meet(seconds);
}
