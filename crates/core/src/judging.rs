//! Judging a run at a global aggregation: its evaluation, and whether a target or a budget of `[stop]` ends it.
//!
//! ```text
//! aggregated ──► Evaluate ── scores ──► scored ──► … ──► Judged
//! ```
//!
//! The simulation measures scores itself; a cloud asks the groups for theirs. What follows from them is the same.

use crate::metrics::Metrics;
use crate::objective::Objective;
use crate::plausible;
use crate::run::Ending;
use crate::scores::{HeldOut, Scores, predict};
use crate::state::{Best, Evaluation, Progress, Reached, State, Validation, Without};
use crate::task::Task;

/// What comes next.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and evaluations do not allocate"
)]
pub(crate) enum Judging {
    /// `State::theta` is to be measured.
    Evaluate(Candidate),
    /// Nothing more.
    Done(Judged),
}

/// Why a model is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// It is the initial one.
    Initial,
    /// It was aggregated.
    Aggregated,
    /// The aggregated one is of no use, the run ends here, and this one was good for fresh patients.
    Safe,
    /// That one is of no use either, and this one's loss was finite.
    Good,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The evaluation, if there was one.
    pub(crate) evaluation: Option<Evaluation>,
    /// How the run ends, if it does.
    pub(crate) ending: Option<Ending>,
}

/// Begins to judge what was aggregated.
pub(crate) fn aggregated(task: &Task<'_>, state: &mut State) -> Judging {
    match state.theta.is_finite() {
        true if is_last(task, &state.progress) || is_due(task, &state.progress) => {
            Judging::Evaluate(Candidate::Aggregated)
        }
        true => done(state, None, None),
        false => broken(task, state),
    }
}

/// What follows from a model's scores.
pub(crate) fn scored(
    task: &Task<'_>,
    state: &mut State,
    candidate: Candidate,
    (scores, without): (Scores, Vec<Without>),
) -> Judging {
    if scores.training.samples() == 0 {
        return unheard(task, state, candidate);
    }
    let finite = !plausible::are_of_a_lost_model(&scores);
    let evaluation = Evaluation {
        without,
        ..conclude(task, state, &scores, finite)
    };
    match candidate {
        Candidate::Initial if !finite => Judging::Done(Judged {
            evaluation: None,
            ending: Some(Ending::Diverged {
                t: 0,
                learning_rate: state.progress.segment.learning_rate,
            }),
        }),
        Candidate::Initial => Judging::Done(Judged {
            evaluation: Some(evaluation),
            ending: None,
        }),
        Candidate::Aggregated if !finite => broken(task, state),
        Candidate::Safe if !finite => {
            state.theta.copy_from(&state.good);
            Judging::Evaluate(Candidate::Good)
        }
        Candidate::Aggregated => {
            // Finite weights can have an infinite loss: only this tells that a model is good.
            state.good.copy_from(&state.theta);
            over(task, state, evaluation)
        }
        Candidate::Safe | Candidate::Good => {
            state.good.copy_from(&state.theta);
            for model in &mut state.groups {
                model.copy_from(&state.theta);
            }
            over(task, state, evaluation)
        }
    }
}

/// Nobody whose word counts was there to say how it goes. That is no evaluation, and no divergence either.
fn unheard(task: &Task<'_>, state: &mut State, candidate: Candidate) -> Judging {
    if matches!(candidate, Candidate::Safe | Candidate::Good) {
        state.good.copy_from(&state.theta);
        for model in &mut state.groups {
            model.copy_from(&state.theta);
        }
    }
    let ending = budget(task, &state.progress).or_else(|| patience(task, &state.progress));
    done(state, None, ending)
}

/// The run ends at this aggregation, whatever its evaluation says.
fn is_last(task: &Task<'_>, progress: &Progress) -> bool {
    progress.t == task.experiment.train.iterations || budget(task, progress).is_some()
}

/// θ or its loss is no longer finite. Who steers goes back to a good model once it hears of the loss; where it will
/// not, the run does. Without anybody who steers it is over.
fn broken(task: &Task<'_>, state: &mut State) -> Judging {
    match &state.safe {
        Some(safe) if is_last(task, &state.progress) => {
            state.theta.copy_from(safe);
            Judging::Evaluate(Candidate::Safe)
        }
        Some(_) => done(state, None, None),
        None => {
            state.theta.copy_from(&state.good);
            let t = state.progress.t;
            Judging::Done(Judged {
                evaluation: None,
                ending: Some(Ending::Diverged {
                    t,
                    learning_rate: task.schedule().rate(&state.progress.segment, t - 1),
                }),
            })
        }
    }
}

fn over(task: &Task<'_>, state: &mut State, evaluation: Evaluation) -> Judging {
    let ending = reached(task, &state.progress, &evaluation);
    done(state, Some(evaluation), ending)
}

/// What of `[stop]` is reached.
pub(crate) fn reached(
    task: &Task<'_>,
    progress: &Progress,
    evaluation: &Evaluation,
) -> Option<Ending> {
    target(task, evaluation)
        .or_else(|| budget(task, progress))
        .or_else(|| patience(task, progress))
}

fn done(state: &mut State, evaluation: Option<Evaluation>, ending: Option<Ending>) -> Judging {
    if let Some(Ending::Reached { key, value }) = &ending {
        state.progress.reached = Some(Reached {
            key: (*key).into(),
            value: *value,
        });
    }
    Judging::Done(Judged { evaluation, ending })
}

/// Whether θ is to be evaluated, now that it is aggregated.
fn is_due(task: &Task<'_>, progress: &Progress) -> bool {
    let every = task.experiment.train.evaluate_every.unwrap_or(1);
    progress
        .evaluated
        .is_none_or(|last| progress.t - last >= every)
}

/// The scores of θ over all data, by who has all data: group by group, as hospitals report them, and what is taken of
/// that.
pub(crate) fn measure(task: &Task<'_>, state: &State) -> (Scores, Vec<Without>) {
    let groups = task.given.groups.len();
    let quarantined = state.progress.quarantined_groups(task);
    let there = |m| !task.absent().evaluation(state.progress.t, m);
    let reported = (0..groups).map(|m| there(m).then(|| report(task, state, m)));
    plausible::pooled(task, &quarantined, reported)
}

/// What a hospital reports of θ.
fn report(task: &Task<'_>, state: &State, m: usize) -> Scores {
    let (networks, dataset, theta) = (task.networks(), task.given, &state.theta);
    let mut scores = Scores::new(networks.1);
    let rows = task.loss_rows.as_ref().map(|rows| &rows[m][..]);
    scores.training = predict(networks, theta, &dataset.groups[m].samples, rows).losses;
    let held_out = [
        (&mut scores.validation, &dataset.validation),
        (&mut scores.test, &dataset.test),
    ];
    for (part, (scores, samples)) in held_out.into_iter().enumerate() {
        let rows = dataset.held_out_rows(part, m);
        let said = predict(networks, theta, samples, Some(&rows));
        scores.add(networks.1, &said, &samples.y.of(&rows));
    }
    match &task.attack {
        Some(attack) => attack.of_scores(state.progress.t, m, scores),
        None => scores,
    }
}

/// The evaluation of θ, which is kept if it is the best on the validation samples so far, and no lost model.
fn conclude(task: &Task<'_>, state: &mut State, scores: &Scores, finite: bool) -> Evaluation {
    let State {
        progress,
        theta,
        best,
        ..
    } = state;
    let loss_train = scores.training.mean();
    let validation = measured(&*task.objective, &scores.validation);
    let validation = validation.map(|(loss, metrics)| Validation::new(loss, &metrics));
    if let Some(on) = validation.filter(|_| finite) {
        let now = Best::new(progress.t, &on);
        if now.beats(progress.best) {
            progress.best = Some(now);
            best.get_or_insert_with(|| theta.clone()).copy_from(theta);
        }
    }
    progress.evaluated = Some(progress.t);
    let test = measured(&*task.objective, &scores.test);
    let per_group = |bytes: f64| bytes / task.given.groups.len() as f64;
    Evaluation {
        t: progress.t,
        p: progress.segment.global_interval,
        q: progress.segment.local_interval,
        eta: task.schedule().rate(&progress.segment, progress.t),
        loss_train,
        loss_test: test.map(|(loss, _)| loss),
        test: test.map_or_else(Metrics::default, |(_, metrics)| metrics),
        bytes_paper: per_group(progress.ledger.paper()),
        bytes_exact: per_group(progress.ledger.exact() as f64),
        seconds: progress.clock.seconds(),
        validation,
        without: Vec::new(),
    }
}

/// Loss and metrics over some samples; nothing where there are none, or where what the model says of one is no number.
fn measured(objective: &dyn Objective, on: &HeldOut) -> Option<(f64, Metrics)> {
    let loss = on.losses.mean();
    loss.is_finite()
        .then(|| (loss, objective.metrics(&on.tally)))
}

/// The budget of `[stop]` that is used up, if one is.
fn budget(task: &Task<'_>, progress: &Progress) -> Option<Ending> {
    let stop = &task.experiment.stop;
    let bytes = progress.ledger.exact() as f64 / task.given.groups.len() as f64;
    let used = [
        ("stop.bytes", stop.bytes, bytes),
        ("stop.seconds", stop.seconds, progress.clock.seconds()),
    ];
    let over = used
        .into_iter()
        .find(|(_, budget, value)| budget.is_some_and(|b| *value >= b));
    over.map(|(key, _, value)| Ending::Reached { key, value })
}

/// Whether patience is at its end: the best model is that old.
fn patience(task: &Task<'_>, progress: &Progress) -> Option<Ending> {
    let waited = progress.t - progress.best.map_or(0, |best| best.t);
    let over = task
        .experiment
        .stop
        .patience
        .is_some_and(|most| waited >= most);
    over.then_some(Ending::Reached {
        key: "stop.patience",
        value: waited as f64,
    })
}

/// The target of `[stop]` that is reached, if one is.
fn target(task: &Task<'_>, evaluation: &Evaluation) -> Option<Ending> {
    task.experiment.stop.targets().find_map(|(metric, target)| {
        let value = metric.judged(evaluation)?;
        let key = metric.stop?.path;
        metric
            .reaches(value, target)
            .then_some(Ending::Reached { key, value })
    })
}
