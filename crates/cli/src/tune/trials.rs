//! Trials: each candidate trains with the same bytes, or until the target.

use super::predict::Prediction;
use super::{Candidate, Goal, is_steered};
use crate::comparison::targets::Target;
use crate::interrupt::is_interrupted;
use anyhow::Result;
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::Experiment;
use selvedge_core::experiment::StopSettings;
use selvedge_core::metrics::Metric;
use selvedge_core::run::{self, Ending};
use selvedge_core::schedule::Segment;
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_core::theory::bound::Constants;
use selvedge_core::theory::pretraining::Pretraining;
use selvedge_data::SETS;
use selvedge_nn::simd::Level;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// At most so many candidates.
pub(super) const MOST: usize = 7;

/// Iterations of a trial, where no target is set: enough to see which way it goes.
const ITERATIONS: u64 = 1000;

/// Evaluations of a trial, about.
const EVALUATIONS: u64 = 60;

/// Trials of one seed within these factors of each other are the same.
const SAME_BYTES: f64 = 1.25;
const SAME_LOSS: f64 = 1.03;

/// How a trial went.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trial {
    /// Bytes of one group that it sent.
    pub(crate) bytes: f64,
    pub(crate) iterations: u64,
    /// The best that it came to.
    pub(crate) loss: f64,
    /// Of the metric that stands for all of its kind: by its name in files.
    #[serde(flatten)]
    pub(crate) chief: BTreeMap<&'static str, Option<f64>>,
    /// Bytes of one group until the target, if there is one and it was reached.
    pub(crate) reached: Option<f64>,
    pub(crate) diverged: bool,
}

/// Candidates as they are tried.
pub(super) struct Trials<'a> {
    base: &'a Experiment,
    dataset: &'a Dataset,
    level: Level,
    constants: Constants,
    target: Option<Target>,
    /// Bytes of one group that each may send.
    pub(super) budget: f64,
    pub(super) candidates: Vec<Candidate>,
    /// What the steered trial did: bytes of each segment, Q and η.
    steered: Vec<(f64, Segment)>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        base: &'a Experiment,
        dataset: &'a Dataset,
        goal: &Goal,
        level: Level,
        measured: &Pretraining,
    ) -> Result<Self> {
        let constants = measured.constants();
        let all = Prediction::new(base, dataset, &constants)?.bytes;
        let (target, budget) = match goal {
            Goal::Target(target) => (Some(target.clone()), all),
            Goal::Budget(bytes) => (None, *bytes),
            Goal::Open => (None, all / 10.0),
        };
        Ok(Trials {
            base,
            dataset,
            level,
            constants,
            target,
            budget,
            candidates: Vec::new(),
            steered: Vec::new(),
        })
    }

    /// Tries the experiment with some changes, unless it was tried already or somebody has interrupted.
    pub(super) fn run(&mut self, label: &str, changes: &[String]) -> Result<()> {
        let experiment = SETS.with(self.base, changes)?;
        let known = |c: &Candidate| c.experiment == experiment;
        if is_interrupted() || self.candidates.iter().any(known) {
            return Ok(());
        }
        let prediction = Prediction::new(&experiment, self.dataset, &self.constants)?;
        let trial = self.train(&experiment)?;
        self.candidates.push(Candidate {
            label: label.into(),
            experiment,
            prediction,
            trial: Some(trial),
        });
        Ok(())
    }

    /// What is worth no more bytes: what the best so far needed for the target, or the budget.
    fn limit(&self) -> f64 {
        let trials = self.candidates.iter().filter_map(|c| c.trial.as_ref());
        let reached = trials.filter_map(|t| t.reached);
        reached.fold(self.budget, f64::min)
    }

    fn train(&mut self, experiment: &Experiment) -> Result<Trial> {
        let p = experiment.train.global_interval;
        let iterations = match self.target {
            Some(_) => experiment.train.iterations,
            None => experiment.train.iterations.min(ITERATIONS).div_ceil(p) * p,
        };
        let every = (iterations / EVALUATIONS).max(1);
        let mut tried = SETS.with(
            experiment,
            &[
                format!("train.iterations={iterations}"),
                format!("train.evaluate_every={every}"),
            ],
        )?;
        tried.stop = StopSettings::default();
        tried.stop.bytes = Some(self.limit());
        let mut task = Task::new(&tried, self.dataset)?;
        task.architecture = task.architecture.with_level(self.level);
        let mut state = State::initial(&task);
        let (mut evaluations, mut segments) = (Vec::new(), Vec::new());
        let groups = self.dataset.groups.len() as f64;
        let mut before = 0.0;
        let ending = run::train(&task, &mut state, |interval| {
            let progress = &interval.state.progress;
            let bytes = progress.ledger.exact() as f64 / groups;
            segments.push((bytes - before, progress.segment));
            before = bytes;
            evaluations.extend(interval.evaluation.cloned());
            let reached = self.reached(&evaluations).is_some();
            Ok::<_, anyhow::Error>(match reached || is_interrupted() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
        let reached = self.reached(&evaluations).map(|e| e.bytes_exact);
        if is_steered(experiment) {
            self.steered = segments;
        }
        let chief = Metric::chief(self.dataset.outcome.kind());
        let values = evaluations.iter().filter_map(|e| chief.judged(e));
        let value = values.reduce(|a, b| chief.better_of(a, b));
        let judged = evaluations.iter().filter(|e| loss(e).is_finite());
        let best = judged.min_by(|a, b| loss(a).total_cmp(&loss(b)));
        Ok(Trial {
            bytes: before,
            iterations: state.progress.t,
            loss: best.map_or(f64::INFINITY, loss),
            chief: BTreeMap::from([(chief.name, value)]),
            reached,
            diverged: matches!(ending, Ending::Diverged { .. }),
        })
    }

    /// The evaluation at which the target is reached.
    fn reached<'e>(&self, evaluations: &'e [Evaluation]) -> Option<&'e Evaluation> {
        let target = self.target.as_ref()?;
        let metric = Metric::find(target.metric)?;
        let reaches = |value: f64| metric.reaches(value, target.value);
        evaluations
            .iter()
            .find(|e| metric.judged(e).is_some_and(reaches))
    }

    /// The Q and η that the steered trial spent half of its bytes at or below, counted by how far they go.
    pub(super) fn usual_of_steered(&self) -> Option<(u64, f64)> {
        let way = |s: &Segment| s.learning_rate * s.local_interval as f64;
        let mut by_way = self.steered.clone();
        by_way.sort_by(|a, b| way(&a.1).total_cmp(&way(&b.1)));
        let half = 0.5 * by_way.iter().map(|(bytes, _)| bytes).sum::<f64>();
        let mut so_far = 0.0;
        let middle = by_way.iter().find(|(bytes, _)| {
            so_far += bytes;
            so_far >= half && half > 0.0
        });
        middle.map(|(_, s)| (s.local_interval, s.learning_rate))
    }

    /// The first candidate that is as good as the best, up to what one seed can tell: by the bytes until the target
    /// where any reached it, else by the loss. What steers itself comes first.
    pub(super) fn best(&self) -> usize {
        let each = |of: &dyn Fn(&Trial) -> f64| -> Vec<f64> {
            let value = |c: &Candidate| c.trial.as_ref().map_or(f64::INFINITY, of);
            self.candidates.iter().map(value).collect()
        };
        let bytes = each(&|t| t.reached.unwrap_or(f64::INFINITY));
        let (values, slack) = match bytes.iter().any(|b| b.is_finite()) {
            true => (bytes, SAME_BYTES),
            false => (each(&|t| t.loss), SAME_LOSS),
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        values.iter().position(|v| *v <= slack * least).unwrap_or(0)
    }
}

/// What a trial is judged by: the loss over validation samples where there are any, else over test samples, else over
/// training samples.
fn loss(e: &Evaluation) -> f64 {
    let held_out = e.validation.map(|v| v.loss_validation).or(e.loss_test);
    held_out.unwrap_or(e.loss_train)
}
