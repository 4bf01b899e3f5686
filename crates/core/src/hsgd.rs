//! HSGD: the paper's Algorithm 1.
//!
//! ```text
//! t = 0      Q      2Q     …      P
//!     ├──────┼──────┼──────┼──────┤
//!     exchange, then Q local steps, then local aggregation;  at P also global aggregation
//! ```
//!
//! Nothing crosses parties between two exchanges, so the loop ([`run::train`](crate::run::train)) goes from exchange to
//! exchange. Against the paper's listing: a pass of this loop begins after its aggregations (lines 3–12), which
//! therefore come at the end of the previous pass; at t = 0 both are identities. Local aggregation comes before global,
//! both before a new exchange. The paper's extra update at t = T is dropped, since it is never aggregated. Unselected
//! devices carry no model of their own (line 15 overwrites them all), so none is kept for them.
//!
//! C-HSGD is this loop with codecs between the parties ([`Task::compression`]); HSGD's pass everything as it is.

use crate::clock::Rates;
use crate::cloud;
use crate::experiment::{Broadcast, Compute};
use crate::group::{Turnout, Workspace, Workspaces};
use crate::ledger::{Direction, Kind, Ledger, Link};
use crate::local_steps::Steps;
use crate::run::AlgorithmSteps;
use crate::state::{Progress, State};
use crate::task::Task;
use rayon::prelude::*;

/// HSGD, for the driver ([`run::train`](crate::run::train)).
pub(crate) fn steps_of<'a>(task: &'a Task<'_>) -> AlgorithmSteps<'a> {
    let workspaces = Workspaces::new(|| Workspace::new(task));
    AlgorithmSteps {
        before: |_, _| {},
        // Lines 12–26.
        interval: Box::new(move |state, groups| interval(task, state, groups, &workspaces)),
        // Lines 3–10: the cloud averages the groups, and all adopt the result. Who steers chooses the next segment.
        aggregate: cloud::aggregate,
    }
}

/// Lines 12–26. Between two global aggregations nothing crosses groups, so each goes through the interval on its own.
pub(crate) fn interval(
    task: &Task<'_>,
    state: &mut State,
    groups: &mut [Turnout],
    workspaces: &Workspaces<'_, Workspace>,
) {
    let started = task.stopwatch.map(|now| now());
    steps(task, state, groups, workspaces);
    account(task, &mut state.progress, groups, started);
}

/// What the parties compute in an interval.
pub(crate) fn steps(
    task: &Task<'_>,
    state: &mut State,
    groups: &mut [Turnout],
    workspaces: &Workspaces<'_, Workspace>,
) {
    let Progress { t, segment, .. } = state.progress;
    let steps = Steps { segment, first: t };
    groups
        .par_iter_mut()
        .zip(&mut state.groups)
        .zip(&mut state.residuals.edges)
        .zip(&mut state.memories.groups)
        .zip(&mut state.devices)
        .enumerate()
        .for_each(|(m, ((((group, model), copy), memory), conduct))| {
            workspaces.with(|workspace| {
                // Lines 13–21: draw A_m; ζ2 up, θ0 and ζ1 down; all of it frozen for Q steps.
                group.exchange(task, (m, t), model, (copy, conduct), workspace);
                // Lines 22–26, Q times: the hospital steps on θ0 and θ1, selected devices on θ2.
                group.local_steps(task, (m, steps), (model, memory), workspace);
                // Line 12: the edge averages the models of its subset.
                let conduct = &mut conduct.models;
                let theta = (model, memory);
                group.local_aggregation((task, steps), theta, conduct, workspace);
            });
        });
    state.progress.t = t + segment.local_interval;
    if let Some(controller) = &mut state.progress.controller {
        for (report, group) in controller.reports.iter_mut().zip(groups) {
            report.add(group.descended);
        }
    }
}

/// What the interval that just ended has sent, and how long it takes in simulated time.
fn account(task: &Task<'_>, progress: &mut Progress, groups: &[Turnout], started: Option<f64>) {
    let compute = compute(task, progress.segment.local_interval, started);
    // Nobody waits for those, nor counts what they send.
    let quarantined = progress.quarantined_groups(task);
    let Progress { ledger, clock, .. } = progress;
    let counted = groups.iter().enumerate();
    for (m, group) in counted.filter(|(m, _)| !quarantined.contains(m)) {
        charge_interval(task, (m, group, compute), ledger, |seconds| {
            clock.advance(m, seconds);
        });
    }
}

/// What one group's interval has sent, and how long each of its phases takes in simulated time.
pub(crate) fn charge_interval(
    task: &Task<'_>,
    (m, group, compute): (usize, &Turnout, f64),
    ledger: &mut Ledger,
    mut advance: impl FnMut(f64),
) {
    let rates = Rates::new(&task.experiment.time);
    let (sizes, traffic) = (&group.messages, group.traffic());
    let receivers = match task.experiment.train.broadcast {
        Broadcast::Selected => group.subset.len(),
        Broadcast::All => task.dataset.groups[m].devices(),
    };
    ledger.charge_exchange(sizes, receivers, traffic);
    advance(rates.exchange(sizes, traffic));
    advance(compute);
    let uploads = group.uploaded.iter().filter(|u| **u).count();
    let theta2 = sizes.theta2_up.times(uploads);
    ledger.charge(
        Link::DeviceEdge,
        Kind::Theta2,
        Direction::Up,
        uploads,
        theta2,
    );
    advance(rates.local_aggregation(sizes, uploads));
}

/// Seconds of computation in some iterations of one group.
pub(crate) fn compute(task: &Task<'_>, iterations: u64, started: Option<f64>) -> f64 {
    let time = &task.experiment.time;
    match time.compute {
        Compute::Set => Rates::new(time).iteration() * iterations as f64,
        Compute::Measured => share_of(task, started) * time.compute_scale,
    }
}

/// Measured seconds since `started` that one of the data's groups would have taken on one core, for its share of the
/// work.
fn share_of(task: &Task<'_>, started: Option<f64>) -> f64 {
    let elapsed = task
        .stopwatch
        .zip(started)
        .map_or(0.0, |(now, started)| now() - started);
    elapsed * rayon::current_num_threads() as f64 / task.given.groups.len() as f64
}
