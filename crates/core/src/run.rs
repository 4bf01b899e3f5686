//! The driver of every algorithm: what is seen of a run after each interval, and how it ends.
//!
//! ```text
//! before                      raw data moves, where an algorithm needs it elsewhere
//! evaluation at t = 0
//! while t < T
//!     interval                of the algorithm: HSGD's is in hsgd.rs
//!     aggregate               where the interval ends with a global aggregation
//!     evaluation, if θ was aggregated; whether a target, a budget or the caller ends the run
//! ```

use crate::adaptive::{self, Change};
use crate::baseline::{centralised, device_only, fedavg, hospital_only, jfl, tdcd};
use crate::experiment::{Algorithm, KEYS};
use crate::group::Turnout;
use crate::hsgd;
use crate::judging::{self, Candidate, Judged, Judging};
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
        /// The value reached.
        value: f64,
    },
    /// The callback asked for it.
    Interrupted,
    /// A loss or a weight is no longer a finite number. `State::theta` is the last model that was evaluated and found
    /// good.
    Diverged {
        /// The iteration at which that was seen.
        t: u64,
        /// The learning rate there.
        learning_rate: f64,
    },
}

/// What the callback sees after each interval.
pub struct Interval<'a> {
    /// The run as it is now; saving this saves the run.
    pub state: &'a State,
    /// η of devices from here on.
    pub learning_rate: f64,
    /// The groups, with who took part.
    pub groups: &'a [Turnout],
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

/// Trains from `state` to the end with the experiment's algorithm. `after` is called after the evaluation at t = 0 and
/// after every interval.
///
/// # Errors
/// Only what `after` returns.
pub fn train<E>(
    task: &Task<'_>,
    state: &mut State,
    after: impl FnMut(Interval<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<Ending, E> {
    let mut steps = match task.experiment.train.algorithm {
        Algorithm::Hsgd | Algorithm::CHsgd => hsgd::steps_of(task),
        Algorithm::Jfl => jfl::steps_of(task),
        Algorithm::Tdcd | Algorithm::CTdcd => tdcd::steps_of(task),
        Algorithm::Centralised => centralised::steps_of(task),
        Algorithm::FedAvg => fedavg::steps_of(task),
        Algorithm::HospitalOnly => hospital_only::steps_of(task),
        Algorithm::DeviceOnly => device_only::steps_of(task),
    };
    let mut groups = Turnout::all(task);
    let mut watch = Watch { task, after };
    adaptive::begin(task, state);
    if state.progress.evaluated.is_none() {
        (steps.before)(task, &mut state.progress);
    }
    if let Some(ending) = watch.begin(state)? {
        return Ok(ending);
    }
    while state.progress.t < task.experiment.train.iterations {
        (steps.interval)(state, &mut groups);
        let Progress { t, segment, .. } = state.progress;
        if segment.aggregates_globally_at(t) {
            (steps.aggregate)(task, state);
        }
        if let Some(ending) = watch.interval_ended(state, &groups)? {
            return Ok(ending);
        }
    }
    Ok(Ending::Finished)
}

/// What all groups do until the next exchange.
type IntervalStep<'a> = Box<dyn FnMut(&mut State, &mut [Turnout]) + 'a>;

/// What an algorithm does, for the driver.
pub(crate) struct AlgorithmSteps<'a> {
    /// Before the first iteration.
    pub(crate) before: fn(&Task<'_>, &mut Progress),
    /// What all groups do until the next exchange.
    pub(crate) interval: IntervalStep<'a>,
    /// Where that is a multiple of P.
    pub(crate) aggregate: fn(&Task<'_>, &mut State),
}

/// Evaluates a run where that is due, tells the caller, and knows when it is over.
struct Watch<'a, F> {
    task: &'a Task<'a>,
    after: F,
}

impl<E, F> Watch<'_, F>
where
    F: FnMut(Interval<'_>) -> Result<ControlFlow<()>, E>,
{
    /// Before the first interval: the evaluation at t = 0, unless the run goes on from a later state. Some if the run
    /// is over already.
    fn begin(&mut self, state: &mut State) -> Result<Option<Ending>, E> {
        if let Some(ending) = ended(&state.progress) {
            return Ok(Some(ending));
        }
        if state.progress.evaluated.is_some() {
            return Ok(None);
        }
        let judged = self.judge(state, Judging::Evaluate(Candidate::Initial));
        self.tell(state, &[], judged)
    }

    /// After an interval, and after the aggregation that it may have ended with. Some if the run is over.
    fn interval_ended(
        &mut self,
        state: &mut State,
        groups: &[Turnout],
    ) -> Result<Option<Ending>, E> {
        let judged = match state.progress.aggregated == state.progress.t {
            true => {
                let step = judging::aggregated(self.task, state);
                self.judge(state, step)
            }
            false => Judged::default(),
        };
        self.tell(state, groups, judged)
    }

    /// Measures what is asked for until nothing is.
    fn judge(&self, state: &mut State, mut step: Judging) -> Judged {
        loop {
            match step {
                Judging::Done(judged) => return judged,
                Judging::Evaluate(candidate) => {
                    let measured = judging::measure(self.task, state);
                    step = judging::scored(self.task, state, candidate, measured);
                }
            }
        }
    }

    fn tell(
        &mut self,
        state: &State,
        groups: &[Turnout],
        judged: Judged,
    ) -> Result<Option<Ending>, E> {
        let Judged { evaluation, ending } = judged;
        if matches!(ending, Some(Ending::Diverged { .. })) {
            return Ok(ending);
        }
        let Progress { t, segment, .. } = &state.progress;
        let flow = (self.after)(Interval {
            state,
            learning_rate: self.task.schedule().rate(segment, *t),
            groups,
            evaluation: evaluation.as_ref(),
        })?;
        let interrupted =
            flow.is_break() && state.progress.t < self.task.experiment.train.iterations;
        Ok(ending.or_else(|| interrupted.then_some(Ending::Interrupted)))
    }
}

/// What of `[stop]` is reached where a run is now, and this is its evaluation.
pub fn reached(task: &Task<'_>, progress: &Progress, evaluation: &Evaluation) -> Option<Ending> {
    judging::reached(task, progress, evaluation)
}

/// How a run has ended, if a target or a budget has ended it.
pub(crate) fn ended(progress: &Progress) -> Option<Ending> {
    let Reached { key, value } = progress.reached.as_ref()?;
    let key = KEYS
        .iter()
        .map(|k| k.path)
        .find(|path| path == key)
        .unwrap_or("stop");
    Some(Ending::Reached { key, value: *value })
}
