//! TDCD: a two-tier algorithm, so all groups are merged into one, and their raw data moves first. From then on it is
//! HSGD in that group; there is nothing to aggregate globally.
//!
//! ```text
//! before t = 0   raw data: M − 1 groups → one
//! every Q        exchange, Q local steps, local aggregation, all in the merged group
//! every P        the group's model is the result; nothing is sent
//! ```
//!
//! C-TDCD is this loop with codecs between the parties ([`Task::compression`]).

use super::raw;
use crate::group::{Workspace, Workspaces};
use crate::hsgd;
use crate::run::AlgorithmSteps;
use crate::state::State;
use crate::task::Task;

/// The algorithm, for the driver ([`run::train`](crate::run::train)).
pub(crate) fn steps_of<'a>(task: &'a Task<'_>) -> AlgorithmSteps<'a> {
    let workspaces = Workspaces::new(|| Workspace::new(task));
    AlgorithmSteps {
        before: raw::merge_groups,
        interval: Box::new(move |state, groups| hsgd::interval(task, state, groups, &workspaces)),
        aggregate: |_, state| adopt(state),
    }
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
