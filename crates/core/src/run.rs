//! A run from outside: what is seen of it after each interval, and how it ends. Every algorithm's loop has the same
//! frame, made of the two methods of `Watch`:
//!
//! ```text
//! watch.begin                 evaluation at t = 0
//! while t < T
//!     an interval of the algorithm
//!     watch.interval_ended    evaluation, if θ was aggregated; whether a target, a budget or the caller ends the run
//! ```

use crate::adaptive::Change;
use crate::baseline::{centralised, device_only, fedavg, hospital_only, jfl, tdcd};
use crate::evaluation::{budget, evaluate, is_due, target};
use crate::experiment::{Algorithm, KEYS};
use crate::group::Group;
use crate::hsgd;
use crate::state::{Evaluation, Progress, Reached, State};
use crate::task::Task;
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

impl<'a> Interval<'a> {
    /// The segment that begins here, if one was chosen.
    pub fn change(&self) -> Option<&'a Change> {
        let Progress { t, controller, .. } = &self.state.progress;
        let change = controller.as_ref()?.change.as_ref();
        change.filter(|change| change.t == *t)
    }
}

/// Trains from `state` to the end with the experiment's algorithm. `after` is called behind the evaluation at t = 0 and
/// after every interval.
///
/// # Errors
/// Only what `after` returns.
pub fn train<E>(
    task: &Task<'_>,
    state: &mut State,
    after: impl FnMut(Interval<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<Ending, E> {
    match task.experiment.train.algorithm {
        Algorithm::Hsgd | Algorithm::CHsgd => hsgd::train(task, state, after),
        Algorithm::Jfl => jfl::train(task, state, after),
        Algorithm::Tdcd | Algorithm::CTdcd => tdcd::train(task, state, after),
        Algorithm::Centralised => centralised::train(task, state, after),
        Algorithm::FedAvg => fedavg::train(task, state, after),
        Algorithm::HospitalOnly => hospital_only::train(task, state, after),
        Algorithm::DeviceOnly => device_only::train(task, state, after),
    }
}

/// The last model that is known to be good takes θ's place, and is evaluated: the safe one, or the last one whose loss was
/// seen to be finite, should there be patients for whom that of the safe one is not.
fn fall_back(task: &Task<'_>, state: &mut State) -> Evaluation {
    if let Some(safe) = &state.safe {
        state.theta.copy_from(safe);
    }
    let mut result = evaluate(task, state);
    if !result.loss_train.is_finite() {
        state.theta.copy_from(&state.good);
        result = evaluate(task, state);
    }
    state.good.copy_from(&state.theta);
    for model in &mut state.groups {
        model.copy_from(&state.theta);
    }
    result
}

/// Evaluates a run where that is due, tells the caller, and knows when it is over.
pub(crate) struct Watch<'a, F> {
    task: &'a Task<'a>,
    after: F,
}

impl<'a, E, F> Watch<'a, F>
where
    F: FnMut(Interval<'_>) -> Result<ControlFlow<()>, E>,
{
    pub(crate) fn new(task: &'a Task<'_>, after: F) -> Self {
        Watch { task, after }
    }

    /// Before the first interval: the evaluation at t = 0, unless the run goes on from a later state. Some if the run is
    /// over already.
    pub(crate) fn begin(&mut self, state: &mut State) -> Result<Option<Ending>, E> {
        if let Some(Reached { key, value }) = &state.progress.reached {
            let key = KEYS
                .iter()
                .map(|k| k.path)
                .find(|path| path == key)
                .unwrap_or("stop");
            return Ok(Some(Ending::Reached { key, value: *value }));
        }
        if state.progress.evaluated.is_some() {
            return Ok(None);
        }
        let evaluation = evaluate(self.task, state);
        if !evaluation.loss_train.is_finite() {
            let learning_rate = state.progress.segment.learning_rate;
            return Ok(Some(Ending::Diverged {
                t: 0,
                learning_rate,
            }));
        }
        let flow = (self.after)(Interval {
            state,
            groups: &[],
            evaluation: Some(&evaluation),
        })?;
        Ok(flow.is_break().then_some(Ending::Interrupted))
    }

    /// After an interval, and after the aggregation that it may have ended with. Some if the run is over.
    pub(crate) fn interval_ended(
        &mut self,
        state: &mut State,
        groups: &[Group],
    ) -> Result<Option<Ending>, E> {
        let task = self.task;
        let mut evaluation = None;
        let mut ending = None;
        if state.progress.aggregated == state.progress.t {
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
            if !finite && state.safe.is_some() {
                // Who steers goes back to a good model once it hears of the loss. Where it will not, the run does.
                ending = budget(task, &state.progress);
                evaluation = last.then(|| fall_back(task, state));
                let reached = evaluation.as_ref().and_then(|result| target(task, result));
                ending = reached.or(ending);
            } else if !finite {
                state.theta.copy_from(&state.good);
                let t = state.progress.t;
                return Ok(Some(Ending::Diverged {
                    t,
                    learning_rate: state.progress.segment.learning_rate_at(t - 1),
                }));
            }
        }
        if let Some(Ending::Reached { key, value }) = &ending {
            state.progress.reached = Some(Reached {
                key: (*key).into(),
                value: *value,
            });
        }
        let flow = (self.after)(Interval {
            state,
            groups,
            evaluation: evaluation.as_ref(),
        })?;
        let interrupted = flow.is_break() && state.progress.t < task.experiment.train.iterations;
        Ok(ending.or_else(|| interrupted.then_some(Ending::Interrupted)))
    }
}
