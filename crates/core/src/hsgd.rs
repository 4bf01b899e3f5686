//! HSGD: the paper's Algorithm 1, as one loop.
//!
//! ```text
//! t = 0      Q      2Q     …      P
//!     ├──────┼──────┼──────┼──────┤
//!     exchange, then Q local steps, then local aggregation;  at P also global aggregation
//! ```
//!
//! Nothing crosses parties between two exchanges, so the loop goes from exchange to exchange. Against the
//! paper's listing: a pass of this loop begins behind its aggregations (lines 3–12), which therefore stand at the
//! end of the pass before; at t = 0 both are identities. Local aggregation comes before global, both before a
//! new exchange. The paper's extra update at t = T is dropped, since it is never aggregated. Unselected devices
//! carry no model of their own (line 15 overwrites them all), so none is kept for them.

use crate::aggregate::global_mean;
use crate::clock::Rates;
use crate::evaluation::{budget, evaluate, is_due, target};
use crate::experiment::{Broadcast, Compute, KEYS};
use crate::group::{Group, Workspaces};
use crate::ledger::{Direction, Kind, Link};
use crate::local_steps::Steps;
use crate::model::Model;
use crate::state::{Evaluation, Progress, Reached, State};
use crate::task::Task;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// At t = T.
    Finished,
    /// A target or budget of `[stop]` was reached.
    Reached {
        /// Its key.
        key: &'static str,
        /// What it has become.
        value: f64,
    },
    /// The callback asked for it.
    Interrupted,
    /// A loss or a weight is no longer a finite number. `State::theta` is the last model that was evaluated and
    /// found good.
    Diverged {
        /// The iteration at which that was seen.
        t: u64,
        /// The learning rate there.
        learning_rate: f64,
    },
}

/// What the callback sees after each interval.
pub struct Interval<'a> {
    /// The run as it is now; saving it is saving the run.
    pub state: &'a State,
    /// The groups, with who took part.
    pub groups: &'a [Group],
    /// The evaluation, if this interval ended with one.
    pub evaluation: Option<&'a Evaluation>,
}

/// Trains from `state` to the end. `after` is called behind the evaluation at t = 0 and after every interval.
///
/// # Errors
/// Only what `after` returns.
pub fn train<E>(
    task: &Task<'_>,
    state: &mut State,
    mut after: impl FnMut(Interval<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<Ending, E> {
    let mut groups: Vec<Group> = Vec::new();
    groups.resize_with(task.dataset.groups.len(), Group::default);
    let workspaces = Workspaces::default();
    if let Some(Reached { key, value }) = &state.progress.reached {
        let key = KEYS
            .iter()
            .map(|k| k.path)
            .find(|path| path == key)
            .unwrap_or("stop");
        return Ok(Ending::Reached { key, value: *value });
    }
    if state.progress.evaluated.is_none() {
        let evaluation = evaluate(task, state);
        if !evaluation.loss_train.is_finite() {
            let learning_rate = state.progress.segment.learning_rate;
            return Ok(Ending::Diverged {
                t: 0,
                learning_rate,
            });
        }
        if after(Interval {
            state,
            groups: &groups,
            evaluation: Some(&evaluation),
        })?
        .is_break()
        {
            return Ok(Ending::Interrupted);
        }
    }
    while state.progress.t < task.experiment.train.iterations {
        let segment = state.progress.segment;

        interval(task, state, &mut groups, &workspaces);

        let mut evaluation = None;
        let mut ending = None;
        if segment.aggregates_globally_at(state.progress.t) {
            // Lines 3–10: the cloud averages the groups, and all adopt the result.
            global_aggregation(task, state);
            ending = budget(task, &state.progress);
            let last = state.progress.t == task.experiment.train.iterations || ending.is_some();
            let mut finite = state.theta.is_finite();
            if finite && (last || is_due(task, &state.progress)) {
                let result = evaluate(task, state);
                finite = result.loss_train.is_finite();
                if finite {
                    // Finite weights can have an infinite loss: only this tells that a model is good.
                    state.good.copy_from(&state.theta);
                }
                ending = target(task, &result).or(ending);
                evaluation = Some(result);
            }
            if !finite {
                state.theta.copy_from(&state.good);
                let t = state.progress.t;
                return Ok(Ending::Diverged {
                    t,
                    learning_rate: segment.learning_rate_at(t - 1),
                });
            }
        }
        if let Some(Ending::Reached { key, value }) = &ending {
            state.progress.reached = Some(Reached {
                key: (*key).into(),
                value: *value,
            });
        }
        let flow = after(Interval {
            state,
            groups: &groups,
            evaluation: evaluation.as_ref(),
        })?;
        if let Some(ending) = ending {
            return Ok(ending);
        }
        if flow.is_break() && state.progress.t < task.experiment.train.iterations {
            return Ok(Ending::Interrupted);
        }
    }
    Ok(Ending::Finished)
}

/// Lines 12–26. Between two global aggregations nothing crosses groups, so each goes through the interval on its own.
fn interval(task: &Task<'_>, state: &mut State, groups: &mut [Group], workspaces: &Workspaces) {
    let Progress { t, segment, .. } = state.progress;
    let steps = Steps { segment, first: t };
    let end = t + segment.local_interval;
    let started = task.stopwatch.map(|now| now());
    groups
        .par_iter_mut()
        .zip(&mut state.groups)
        .enumerate()
        .for_each(|(m, (group, model))| {
            workspaces.with(task, |workspace| {
                // Lines 13–21: draw A_m; ζ2 up, θ0 and ζ1 down; all of it frozen for Q steps.
                group.exchange(task, m, t, model, workspace);
                // Lines 22–26, Q times: the hospital steps on θ0 and θ1, selected devices on θ2.
                group.local_steps(task, m, steps, model, workspace);
                // Line 12: the edge averages the models of its subset.
                group.local_aggregation(task, model, workspace);
            });
        });
    state.progress.t = end;
    account(task, &mut state.progress, groups, started);
}

/// What the interval that just ended has sent, and how long it takes in simulated time.
fn account(task: &Task<'_>, progress: &mut Progress, groups: &[Group], started: Option<f64>) {
    let widths = task.architecture.widths();
    let rates = Rates::new(&task.experiment.time, widths);
    let steps = progress.segment.local_interval as f64;
    let compute = match task.experiment.time.compute {
        Compute::Set => rates.iteration() * steps,
        Compute::Measured => share_of(task, started) * task.experiment.time.compute_scale,
    };
    let Progress { ledger, clock, .. } = progress;
    for (m, group) in groups.iter().enumerate() {
        let traffic = group.traffic();
        let receivers = match task.experiment.train.broadcast {
            Broadcast::Selected => group.subset.len(),
            Broadcast::All => task.dataset.groups[m].devices(),
        };
        ledger.charge_exchange(widths, receivers, traffic);
        clock.advance(m, rates.exchange(traffic));
        clock.advance(m, compute);
        let uploads = group.uploaded.iter().filter(|u| **u).count();
        ledger.charge(
            Link::DeviceEdge,
            Kind::Theta2,
            Direction::Up,
            uploads,
            uploads * widths.n2,
        );
        clock.advance(m, rates.local_aggregation(uploads));
    }
}

/// Measured seconds since `started` that one group would have taken on one core.
fn share_of(task: &Task<'_>, started: Option<f64>) -> f64 {
    let elapsed = task
        .stopwatch
        .zip(started)
        .map_or(0.0, |(now, started)| now() - started);
    elapsed * rayon::current_num_threads() as f64 / task.dataset.groups.len() as f64
}

/// Lines 3–10. θ = Σ_m (K_m/K) `θ[m]` over the groups that are there; all adopt it. (What an absent group does
/// until it returns is never aggregated, since it returns by adopting θ; so it may as well adopt it now.)
fn global_aggregation(task: &Task<'_>, state: &mut State) {
    let State {
        progress,
        theta,
        groups,
        ..
    } = state;
    let (t, before) = (progress.t, progress.aggregated);
    let there: Vec<usize> = (0..groups.len())
        .filter(|m| !task.absences.group(t, *m))
        .collect();
    let devices = |m: usize| task.dataset.groups[m].devices() as u64;
    let models: Vec<(u64, &Model)> = there.iter().map(|&m| (devices(m), &groups[m])).collect();
    global_mean(task.architecture.level(), &models, theta);
    groups
        .par_iter_mut()
        .for_each(|model| model.copy_from(theta));

    let widths = task.architecture.widths();
    for &m in &there {
        // Who was absent last time has fetched θ since.
        let returned = before > 0 && task.absences.group(before, m);
        progress.ledger.charge_global(widths, Direction::Up, 1);
        progress
            .ledger
            .charge_global(widths, Direction::Down, 1 + usize::from(returned));
    }
    progress
        .clock
        .meet(Rates::new(&task.experiment.time, widths).global_aggregation());
    progress.aggregated = t;
}
