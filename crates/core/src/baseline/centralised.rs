//! Centralised training: all raw data is brought to one place and learnt from there. Nobody may do this with patients'
//! records; it is the measure for those who may not.
//!
//! Each iteration draws a share α of all devices and takes one step of the mean gradient: HSGD in one group with Q = 1.

use super::{raw, tdcd};
use crate::group::{Group, Workspace, Workspaces};
use crate::hsgd;
use crate::run::{Ending, Interval, Watch};
use crate::state::State;
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
        raw::to_the_cloud(task, &mut state.progress);
    }
    if let Some(ending) = watch.begin(state)? {
        return Ok(ending);
    }
    while state.progress.t < task.experiment.train.iterations {
        let started = task.stopwatch.map(|now| now());
        hsgd::steps(task, state, &mut groups, &workspaces);
        let seconds = hsgd::compute(task, 1, started);
        state.progress.clock.meet(seconds);
        if state
            .progress
            .segment
            .aggregates_globally_at(state.progress.t)
        {
            tdcd::adopt(state);
        }
        if let Some(ending) = watch.interval_ended(state, &groups)? {
            return Ok(ending);
        }
    }
    Ok(Ending::Finished)
}
