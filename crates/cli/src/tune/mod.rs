//! `selvedge tune`: P, Q and η from the bound, and from trials.
//!
//! ```text
//! pre-training ──► Δ, ρ, δ², ‖∇F‖ ──► strategies 1 to 3 ──► candidates ──► trials with the same bytes ──► the choice
//! ```
//!
//! Nothing here depends on how fast the machine is: trials end by bytes, iterations and targets, never by seconds.

pub(crate) mod output;
mod predict;
mod trials;

use crate::comparison::targets::Target;
use crate::interrupt::is_interrupted;
use crate::progress::Bar;
use anyhow::{Result, bail};
pub(crate) use predict::Prediction;
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Adaptive, Algorithm, Experiment, Fall};
use selvedge_core::metrics::Metric;
use selvedge_core::schedule::Segment;
use selvedge_core::task::Task;
use selvedge_core::theory::pretraining::{self, Pretraining, pretrain};
use selvedge_core::theory::strategies::{
    ALLOWED, EqualIntervals, Root, best_rate, equal_intervals, exchanges,
};
use selvedge_data::SETS;
use selvedge_nn::simd::Level;
use std::ops::ControlFlow;
pub(crate) use trials::Trial;

/// What is wanted.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// To reach this with the fewest bytes.
    Target(Target),
    /// To learn most from so many bytes of one group.
    Budget(f64),
    /// Nothing that anybody said: to learn most from a tenth of what the experiment would send.
    Open,
}

/// Settings that are considered.
pub(crate) struct Candidate {
    /// What the table calls it.
    pub(crate) label: String,
    pub(crate) experiment: Experiment,
    pub(crate) prediction: Prediction,
    pub(crate) trial: Option<Trial>,
}

/// What was found.
pub(crate) struct Tuned {
    pub(crate) pretraining: Pretraining,
    pub(crate) groups: usize,
    pub(crate) strategies: Strategies,
    pub(crate) candidates: Vec<Candidate>,
    /// Bytes of one group in a trial.
    pub(crate) budget: f64,
    pub(crate) goal: Goal,
    /// The samples that trials are judged on: `validation`, `test` or, where there are neither, `training`.
    pub(crate) judged: &'static str,
    chosen: usize,
}

impl Tuned {
    pub(crate) fn chosen(&self) -> &Candidate {
        &self.candidates[self.chosen]
    }

    /// The chosen experiment, which ends at what it was tuned for.
    pub(crate) fn written(&self) -> Experiment {
        let mut experiment = self.chosen().experiment.clone();
        let stop = &mut experiment.stop;
        match &self.goal {
            Goal::Budget(bytes) => stop.bytes = Some(*bytes),
            Goal::Target(Target { metric, value, .. }) => stop.set_target(metric, *value),
            Goal::Open => {}
        }
        experiment
    }

    pub(crate) fn target(&self) -> Option<&Target> {
        match &self.goal {
            Goal::Target(target) => Some(target),
            _ => None,
        }
    }

    /// Bytes of one group that tuning has sent.
    pub(crate) fn cost(&self) -> f64 {
        let trials = self.candidates.iter().filter_map(|c| c.trial.as_ref());
        let pretraining = self.pretraining.ledger.exact() as f64 / self.groups as f64;
        pretraining + trials.map(|t| t.bytes).sum::<f64>()
    }
}

/// What the paper's strategies say of an experiment.
pub(crate) struct Strategies {
    /// Λ* for the experiment's P, and the Ξ it keeps.
    pub(crate) exchanges: Option<u64>,
    pub(crate) wanted: f64,
    pub(crate) corrected: EqualIntervals,
    pub(crate) printed: EqualIntervals,
    /// η* for the experiment's P and Q.
    pub(crate) rate: f64,
    /// η* for the corrected P = Q.
    pub(crate) rate_there: f64,
}

/// Refuses what cannot be tuned, before anything is loaded.
pub(crate) fn check(experiment: &Experiment, goal: &Goal) -> Result<()> {
    let algorithm = experiment.train.algorithm;
    if !matches!(algorithm, Algorithm::Hsgd | Algorithm::CHsgd) {
        bail!(
            "train.algorithm = \"{algorithm}\": the bound covers only hsgd and c-hsgd: tune one of these"
        );
    }
    let (train, plain) = (&experiment.train, experiment.optimiser.is_usual());
    let key = match (plain, train.schedule, train.warm_up) {
        (false, ..) => Some("[optimiser]"),
        (_, Fall::Cosine, _) => Some("train.schedule"),
        (.., 1..) => Some("train.warm_up"),
        _ => None,
    };
    if let Some(key) = key {
        bail!(
            "the bound is about plain gradient descent with a learning rate that stays or is halved: tune the experiment without {key}"
        );
    }
    // Targets on held-out samples are tried on those of validation.
    let known = |m: &&Metric| !m.tested || m.on_validation.is_some();
    let known: Vec<&str> = Metric::targets().filter(known).map(|m| m.name).collect();
    if let (Goal::Target(target), Some((last, others))) = (goal, known.split_last())
        && !known.contains(&target.metric)
    {
        bail!(
            "--target {}={}: tune supports {} and {last}",
            target.metric,
            target.value,
            others.join(", ")
        );
    }
    Ok(())
}

/// Measures, asks the strategies, tries, and chooses; nothing if somebody interrupted it.
pub(crate) fn tune(
    experiment: &Experiment,
    dataset: &Dataset,
    goal: &Goal,
    level: Level,
) -> Result<Option<Tuned>> {
    // Pre-training and what it is compared with are the experiment as it is, with nobody steering.
    let given = SETS.with(experiment, &["train.adaptive=off".into()])?;
    let mut task = Task::new(&given, dataset)?;
    task.architecture = task.architecture.with_level(level);
    let steps = pretraining::PROBES + trials::MOST;
    let (bar, all) = (Bar::new("tune"), Some(steps as u64));
    let step = |done: usize, what: &str| bar.step(done as u64, all, what);
    step(0, "pre-training");
    let measured = pretrain(&task, |done| {
        bar.update(done as u64, all, || "pre-training".into());
        match is_interrupted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let Some(measured) = measured else {
        return Ok(None);
    };
    let strategies = ask(&task, &measured);
    let mut trials = trials::Trials::new(&given, dataset, goal, level, &measured)?;
    let run = |trials: &mut trials::Trials<'_>, label: &str, changes: &[String]| {
        step(
            pretraining::PROBES + trials.candidates.len(),
            &format!("trying {label}"),
        );
        trials.run(label, changes)
    };
    // Who steers chooses η, so that nothing else may.
    let steered = |mode: &str| {
        let mode = format!("train.adaptive={mode}");
        [mode, "train.halve_every=0".to_owned()]
    };
    run(&mut trials, "steered by gain", &steered("gain"))?;
    if experiment.train.adaptive == Adaptive::Bound {
        run(&mut trials, "steered by bound", &steered("bound"))?;
    }
    let as_it_is = match is_steered(experiment) {
        true => "not steered",
        false => "as it is",
    };
    run(&mut trials, as_it_is, &[])?;
    let constants = measured.constants();
    let at = |trials: &mut trials::Trials<'_>, label: &str, q: u64, rate: f64| match q
        <= given.train.iterations
    {
        true => run(trials, label, &settings(&given, q, q, rate)),
        false => Ok(()),
    };
    let (corrected, printed) = (strategies.corrected.interval, strategies.printed.interval);
    let rate = strategies.rate_there;
    at(&mut trials, "strategies 2 and 3", corrected, rate)?;
    if printed != corrected {
        let q = printed as f64;
        let rate = best_rate(&constants, q, q, measured.gradient().value);
        at(&mut trials, "strategy 2 as printed, and 3", printed, rate)?;
    }
    if let Some((q, rate)) = trials.usual_of_steered() {
        at(&mut trials, "gain's usual setting", q, rate)?;
        at(&mut trials, "twice the interval", 2 * q, rate)?;
        match q > 1 {
            true => at(&mut trials, "fewer steps", q / 2, rate)?,
            false => at(&mut trials, "smaller steps", 1, rate / 2.0)?,
        }
    }
    bar.close();
    if is_interrupted() {
        return Ok(None);
    }
    let chosen = trials.best();
    Ok(Some(Tuned {
        groups: dataset.groups.len(),
        strategies,
        budget: trials.budget,
        judged: match (dataset.validation.is_empty(), dataset.test.is_empty()) {
            (false, _) => "validation",
            (true, false) => "test",
            (true, true) => "training",
        },
        candidates: trials.candidates,
        pretraining: measured,
        goal: goal.clone(),
        chosen,
    }))
}

/// The changes that make an experiment one of these P, Q and η; T becomes a multiple of P.
fn settings(experiment: &Experiment, p: u64, q: u64, rate: f64) -> Vec<String> {
    let iterations = experiment.train.iterations.div_ceil(p).saturating_mul(p);
    vec![
        format!("train.iterations={iterations}"),
        format!("train.global_interval={p}"),
        format!("train.local_interval={q}"),
        format!("train.learning_rate={rate:e}"),
    ]
}

/// Strategies 1 to 3 for what was measured.
fn ask(task: &Task<'_>, measured: &Pretraining) -> Strategies {
    let Segment {
        global_interval,
        local_interval,
        learning_rate,
        ..
    } = task.segment();
    let constants = measured.constants();
    let iterations = task.experiment.train.iterations as f64;
    let bill = selvedge_core::adaptive::bound::bill(task);
    let choose = |root| equal_intervals(&constants, &bill, learning_rate, iterations, root);
    let (corrected, printed) = (choose(Root::Corrected), choose(Root::Printed));
    let (p, q) = (global_interval as f64, local_interval as f64);
    let often = predict::setting(p, 1.0, learning_rate, iterations);
    let wanted = ALLOWED * constants.bound(often).total();
    let gradient = measured.gradient().value;
    let there = corrected.interval as f64;
    Strategies {
        exchanges: exchanges(&constants, often, wanted),
        wanted,
        corrected,
        printed,
        rate: best_rate(&constants, p, q, gradient),
        rate_there: best_rate(&constants, there, there, gradient),
    }
}

/// Whether an experiment chooses for itself.
pub(crate) fn is_steered(experiment: &Experiment) -> bool {
    experiment.train.adaptive != Adaptive::Off
}
