//! Horizontal training of devices alone: nobody asks the hospitals, so ζ1 is zero, in training and in evaluation. It
//! shows what the hospitals' data is worth.
//!
//! ```text
//! every Q   θ0 and θ2: edge → drawn devices; Q steps on both; θ0 and θ2: devices → edge, which averages them
//! every P   θ0 and θ2: edges → cloud → edges
//! ```

use super::average;
use super::wave::Wave;
use crate::clock::Rates;
use crate::experiment::Side;
use crate::group::{Turnout, Workspaces};
use crate::hsgd;
use crate::ledger::{Kind, Link, Messages, Payload};
use crate::local_steps::{Batch, Stepped, Steps, TowerWorkspace, tower_steps};
use crate::model::Model;
use crate::run::AlgorithmSteps;
use crate::state::{Progress, State};
use crate::task::Task;
use rayon::prelude::*;

/// The algorithm, for the driver ([`run::train`](crate::run::train)).
pub(crate) fn steps_of<'a>(task: &'a Task<'_>) -> AlgorithmSteps<'a> {
    let w = task.architecture.widths();
    let workspaces = Workspaces::new(move || {
        Wave::new(task, w.n0 + w.n2, || {
            TowerWorkspace::new(&task.architecture, Side::Device, 1)
        })
    });
    AlgorithmSteps {
        before: |_, _| {},
        interval: Box::new(move |state, groups| interval(task, state, groups, &workspaces)),
        aggregate: |task, state| average(task, state, Link::EdgeCloud, &[0, 2]),
    }
}

/// Every drawn device's Q steps, and the mean at its edge.
fn interval(
    task: &Task<'_>,
    state: &mut State,
    groups: &mut [Turnout],
    workspaces: &Workspaces<'_, Wave<TowerWorkspace>>,
) {
    let Progress { t, segment, .. } = state.progress;
    let started = task.stopwatch.map(|now| now());
    let steps = Steps { segment, first: t };
    let work = groups.par_iter_mut().zip(&mut state.groups).enumerate();
    work.for_each(|(m, (group, model))| {
        group.draw(task, m, t);
        workspaces.with(|wave| {
            let mean = wave.mean(task, group.subset.len(), |position, own, workspace| {
                device(task, (m, steps), group, position, (model, own), workspace);
            });
            let (theta0, theta2) = mean.split_at(model.theta0.len());
            model.theta0.copy_from_slice(theta0);
            model.theta2.copy_from_slice(theta2);
        });
    });
    state.progress.t = t + segment.local_interval;
    account(task, &mut state.progress, groups, started);
}

/// The steps of one device on its own θ0 and θ2.
fn device(
    task: &Task<'_>,
    (m, steps): (usize, Steps),
    group: &Turnout,
    position: usize,
    (model, own): (&Model, &mut [f32]),
    workspace: &mut TowerWorkspace,
) {
    let rows = &group.rows[group.starts[position] as usize..group.starts[position + 1] as usize];
    let batch = Batch {
        samples: &task.dataset.groups[m].samples,
        y: &task.dataset.groups[m].samples.y,
        rows,
        starts: &[0, rows.len() as u32],
        present: &[true],
        other: &[],
        tapes: &[],
    };
    let thetas = own.split_at_mut(model.theta0.len());
    thetas.0.copy_from_slice(&model.theta0);
    thetas.1.copy_from_slice(&model.theta2);
    let context = (&task.architecture, Side::Device);
    let stepped = Stepped::plain(thetas.0, thetas.1);
    let descent = task.device_descent();
    tower_steps(context, descent, steps, batch, stepped, workspace);
}

/// θ0 and θ2 to every drawn device and back.
fn account(task: &Task<'_>, progress: &mut Progress, groups: &[Turnout], started: Option<f64>) {
    let w = task.architecture.widths();
    let rates = Rates::new(&task.experiment.time);
    let both = Payload::dense(w.n0 + w.n2);
    let sizes = Messages {
        theta2_down: both,
        theta2_up: both,
        ..Messages::default()
    };
    let seconds = hsgd::compute(task, progress.segment.local_interval, started);
    for (m, group) in groups.iter().enumerate() {
        let devices = group.subset.len();
        for (kind, numbers) in [(Kind::Theta0, w.n0), (Kind::Theta2, w.n2)] {
            let each = Payload::dense(numbers);
            let ledger = &mut progress.ledger;
            ledger.charge_both_ways(Link::DeviceEdge, kind, devices, each);
        }
        let sent = rates.local_aggregation(&sizes, devices);
        progress.clock.advance(m, seconds + sent);
    }
}
