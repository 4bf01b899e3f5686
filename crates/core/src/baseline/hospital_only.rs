//! Horizontal training of hospitals alone: nobody asks the devices, so ζ2 is zero, in training and in evaluation. It shows
//! what the devices' data is worth.
//!
//! ```text
//! every Q   each hospital draws A_m of its patients, and takes Q steps on θ0 and θ1
//! every P   θ0 and θ1: hospitals → cloud → hospitals
//! ```

use crate::clock::Rates;
use crate::cloud;
use crate::experiment::Side;
use crate::group::{Group, Workspaces};
use crate::hsgd;
use crate::ledger::{Kind, Link, Payload};
use crate::local_steps::{Batch, Steps, TowerWorkspace, tower_steps};
use crate::run::{Ending, Interval, Watch};
use crate::state::{Progress, State};
use crate::task::Task;
use rayon::prelude::*;
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
    let selected = task.selected.iter().copied().max().unwrap_or(0);
    let workspaces =
        Workspaces::new(|| TowerWorkspace::new(&task.architecture, Side::Hospital, selected));
    let mut watch = Watch::new(task, after);
    if let Some(ending) = watch.begin(state)? {
        return Ok(ending);
    }
    while state.progress.t < task.experiment.train.iterations {
        interval(task, state, &mut groups, &workspaces);
        if state
            .progress
            .segment
            .aggregates_globally_at(state.progress.t)
        {
            cloud::adopt_mean(task, state, &[0, 1]);
            account(task, &mut state.progress);
        }
        if let Some(ending) = watch.interval_ended(state, &groups)? {
            return Ok(ending);
        }
    }
    Ok(Ending::Finished)
}

/// Every hospital's Q steps. Nothing is sent.
fn interval(
    task: &Task<'_>,
    state: &mut State,
    groups: &mut [Group],
    workspaces: &Workspaces<'_, TowerWorkspace>,
) {
    let Progress { t, segment, .. } = state.progress;
    let started = task.stopwatch.map(|now| now());
    let work = groups.par_iter_mut().zip(&mut state.groups).enumerate();
    work.for_each(|(m, (group, model))| {
        group.draw(task, m, t);
        let batch = Batch {
            samples: &task.dataset.groups[m].samples,
            rows: &group.rows,
            starts: &group.starts,
            present: &group.exchanged,
            other: &[],
            tapes: &[],
        };
        let steps = Steps { segment, first: t };
        let context = (&task.architecture, Side::Hospital);
        let thetas = (&mut model.theta0[..], &mut model.theta1[..]);
        workspaces.with(|workspace| {
            tower_steps(context, &task.descent, steps, batch, thetas, workspace);
        });
    });
    let progress = &mut state.progress;
    progress.t = t + segment.local_interval;
    let seconds = hsgd::compute(task, segment.local_interval, started);
    (0..groups.len()).for_each(|m| progress.clock.advance(m, seconds));
}

/// Every hospital's θ0 and θ1 up, and the mean down.
fn account(task: &Task<'_>, progress: &mut Progress) {
    let groups = task.dataset.groups.len();
    let w = task.architecture.widths();
    for (kind, numbers) in [(Kind::Theta0, w.n0), (Kind::Theta1, w.n1)] {
        let each = Payload::dense(numbers);
        let ledger = &mut progress.ledger;
        ledger.charge_both_ways(Link::HospitalCloud, kind, groups, each);
    }
    let sizes = [w.n0, w.n1, 0].map(Payload::dense);
    let rates = Rates::new(&task.experiment.time);
    let seconds = rates.global_aggregation(&sizes, &sizes);
    progress.clock.meet(seconds);
}
