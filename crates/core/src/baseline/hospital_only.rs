//! Horizontal training of hospitals alone: nobody asks the devices, so ζ2 is zero, in training and in evaluation. It
//! shows what the devices' data is worth.
//!
//! ```text
//! every Q   each hospital draws A_m of its patients, and takes Q steps on θ0 and θ1
//! every P   θ0 and θ1: hospitals → cloud → hospitals
//! ```

use super::average;
use crate::experiment::Side;
use crate::group::{Turnout, Workspaces};
use crate::hsgd;
use crate::ledger::Link;
use crate::local_steps::{Batch, Stepped, Steps, TowerWorkspace, tower_steps};
use crate::run::AlgorithmSteps;
use crate::state::{Progress, State};
use crate::task::Task;
use rayon::prelude::*;

/// The algorithm, for the driver ([`run::train`](crate::run::train)).
pub(crate) fn steps_of<'a>(task: &'a Task<'_>) -> AlgorithmSteps<'a> {
    let selected = task.selected.iter().copied().max().unwrap_or(0);
    let workspaces =
        Workspaces::new(move || TowerWorkspace::new(&task.architecture, Side::Hospital, selected));
    AlgorithmSteps {
        before: |_, _| {},
        interval: Box::new(move |state, groups| interval(task, state, groups, &workspaces)),
        aggregate: |task, state| average(task, state, Link::HospitalCloud, &[0, 1]),
    }
}

/// Every hospital's Q steps. Nothing is sent.
fn interval(
    task: &Task<'_>,
    state: &mut State,
    groups: &mut [Turnout],
    workspaces: &Workspaces<'_, TowerWorkspace>,
) {
    let Progress { t, segment, .. } = state.progress;
    let started = task.stopwatch.map(|now| now());
    let work = groups.par_iter_mut().zip(&mut state.groups);
    let work = work.zip(&mut state.memories.groups).enumerate();
    work.for_each(|(m, ((group, model), memory))| {
        group.draw(task, m, t);
        let batch = Batch {
            samples: &task.dataset.groups[m].samples,
            y: &task.dataset.groups[m].samples.y,
            rows: &group.rows,
            starts: &group.starts,
            present: &group.exchanged,
            other: &[],
            tapes: &[],
        };
        let steps = Steps { segment, first: t };
        let context = (&task.architecture, Side::Hospital);
        let stepped = Stepped {
            theta0: &mut model.theta0,
            theta: &mut model.theta1,
            memory0: &mut memory.theta0,
            memory: &mut memory.theta1,
        };
        let descent = task.hospital_descent();
        workspaces.with(|workspace| {
            tower_steps(context, descent, steps, batch, stepped, workspace);
        });
    });
    let progress = &mut state.progress;
    progress.t = t + segment.local_interval;
    let seconds = hsgd::compute(task, segment.local_interval, started);
    (0..groups.len()).for_each(|m| progress.clock.advance(m, seconds));
}
