//! TDCD: a two-tier algorithm, so all groups are merged into one, and their raw data moves first. From then on it is HSGD
//! in that group; there is nothing to aggregate globally.
//!
//! ```text
//! before t = 0   raw data: M − 1 groups → one
//! every Q        exchange, Q local steps, local aggregation, all in the merged group
//! every P        the group's model is the result; nothing is sent
//! ```
//!
//! C-TDCD is this loop with codecs between the parties ([`Task::compression`]).

use super::raw;
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
        raw::merge_groups(task, &mut state.progress);
    }
    if let Some(ending) = watch.begin(state)? {
        return Ok(ending);
    }
    while state.progress.t < task.experiment.train.iterations {
        hsgd::interval(task, state, &mut groups, &workspaces);
        if state
            .progress
            .segment
            .aggregates_globally_at(state.progress.t)
        {
            adopt(state);
        }
        if let Some(ending) = watch.interval_ended(state, &groups)? {
            return Ok(ending);
        }
    }
    Ok(Ending::Finished)
}

/// The one group's model is θ.
pub(super) fn adopt(state: &mut State) {
    let State {
        progress,
        theta,
        groups,
        ..
    } = state;
    theta.copy_from(&groups[0]);
    progress.aggregated = progress.t;
}
