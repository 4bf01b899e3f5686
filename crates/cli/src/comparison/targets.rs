//! Targets: which value of which metric counts as reached.

use super::table::kind_of;
use anyhow::{Context, Result, anyhow};
use selvedge_core::experiment::one_of;
use selvedge_core::metrics::{Better, Metric};
use selvedge_core::outcome::Kind;
use selvedge_core::state::Evaluation;
use selvedge_core::task::check_measured;
use selvedge_data::usual_targets;
use selvedge_run::runs::{Run, Series};
use serde::Serialize;

/// A value of a metric that is to be reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Target {
    pub(crate) metric: &'static str,
    pub(crate) value: f64,
    /// The samples that decide whether it is.
    on: HeldOut,
}

/// Samples that training does not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HeldOut {
    Validation,
    /// As in the paper, which holds out no others.
    #[default]
    Test,
    /// None are held out: only the training loss is known.
    Training,
}

impl HeldOut {
    /// Those by which runs are compared: where all hold out validation samples these, so that the test samples choose
    /// nothing.
    pub(crate) fn of(series: &[Series]) -> Self {
        let mut runs = series.iter().flat_map(|s| &s.runs);
        let validated = |run: &Run| run.manifest.data.validation_samples > 0;
        let tested = |run: &Run| run.manifest.data.test_samples > 0;
        match (runs.clone().all(validated), runs.any(tested)) {
            _ if series.is_empty() => HeldOut::Test,
            (true, _) => HeldOut::Validation,
            (false, true) => HeldOut::Test,
            (false, false) => HeldOut::Training,
        }
    }

    /// A metric on them; the training loss is over the training samples.
    pub(crate) fn value(self, metric: &Metric, evaluation: &Evaluation) -> Option<f64> {
        match self {
            HeldOut::Validation => metric.judged(evaluation),
            HeldOut::Test | HeldOut::Training => metric.of(evaluation),
        }
    }

    /// The name of a metric on them.
    pub(crate) fn words(self, metric: &Metric) -> String {
        match metric.judged_on(self == HeldOut::Validation) {
            "validation" => format!("validation {}", metric.heading),
            _ => metric.words.into(),
        }
    }

    /// What is said beside figures.
    pub(crate) fn explained(self) -> &'static str {
        match self {
            HeldOut::Validation => {
                "Runs are compared on the validation samples; test figures are for information"
            }
            HeldOut::Test => {
                "Runs are compared on the test samples, since not all hold out validation samples (data.validation): a choice made by these figures makes them optimistic"
            }
            HeldOut::Training => {
                "No samples are held out (data.validation, data.test): runs are compared by their training loss, which does not show how they do on other samples"
            }
        }
    }
}

impl Target {
    pub(crate) const fn new(metric: &'static str, value: f64) -> Self {
        Target {
            metric,
            value,
            on: HeldOut::Test,
        }
    }

    /// The same, judged on other samples.
    fn on(self, on: HeldOut) -> Self {
        Target { on, ..self }
    }

    /// `auc=0.9`
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = |problem: String| anyhow!("--target {text}: {problem}");
        let (metric, value) = text
            .split_once('=')
            .ok_or_else(|| wrong("expected METRIC=VALUE, like auc=0.9".into()))?;
        let metric = metric.trim();
        let names: Vec<&str> = Metric::targets().map(|m| m.name).collect();
        let known = Metric::targets().find(|m| m.name == metric);
        let metric = known.ok_or_else(|| wrong(one_of(metric, &names)))?;
        let number: f64 = value
            .trim()
            .parse()
            .with_context(|| wrong(format!("`{value}` is not a number")))?;
        match metric.better {
            Better::Lower if number > 0.0 && number.is_finite() => {}
            Better::Lower => return Err(wrong(format!("expected a {} above 0", metric.name))),
            Better::Higher if number > 0.0 && number <= 1.0 => {}
            Better::Higher => {
                return Err(wrong(format!(
                    "expected {} above 0 and at most 1",
                    metric.name
                )));
            }
        }
        Ok(Target::new(metric.name, number))
    }

    /// Refuses one that is not measured of a kind of outcome.
    pub(crate) fn check(&self, kind: Kind) -> Result<()> {
        let metric = Metric::find(self.metric).into_iter();
        let mut checks = metric.map(|m| check_measured(m, kind, |m| m.stop.map(|_| m.name)));
        let of_kind = checks.try_for_each(|check| check);
        of_kind.with_context(|| format!("--target {}={}", self.metric, self.value))
    }

    /// The samples that decide whether it is reached: `training`, `validation` or `test`.
    pub(crate) fn judged_on(&self) -> &'static str {
        let metric = Metric::find(self.metric);
        metric.map_or("", |metric| {
            metric.judged_on(self.on == HeldOut::Validation)
        })
    }

    /// As tables show it.
    pub(crate) fn name(&self) -> String {
        let (words, sign) = match Metric::find(self.metric) {
            Some(metric) if metric.better == Better::Lower => (self.on.words(metric), '≤'),
            Some(metric) => (self.on.words(metric), '≥'),
            None => (self.metric.into(), '='),
        };
        format!("{words} {sign} {}", self.value)
    }

    /// The first evaluation that meets it. A run that diverged has reached nothing, and neither has an untrained model.
    pub(crate) fn reached<'a>(&self, run: &'a Run) -> Option<&'a Evaluation> {
        let metric = Metric::find(self.metric)?;
        let meets = |e: &&Evaluation| {
            let found = self.on.value(metric, e);
            found.is_some_and(|found| metric.reaches(found, self.value))
        };
        trained(run).find(meets)
    }
}

/// The evaluations of what a run has learnt.
fn trained(run: &Run) -> impl Iterator<Item = &Evaluation> {
    let evaluations = match has_diverged(run) {
        true => &[],
        false => &run.evaluations[..],
    };
    evaluations.iter().filter(|e| e.t > 0)
}

/// Whether a run diverged: its figures are of a model that nobody can use.
pub(crate) fn has_diverged(run: &Run) -> bool {
    let ending = run.manifest.ending.as_ref();
    ending.is_some_and(|ending| ending.kind == "diverged")
}

/// The best value of a metric that a run reaches.
fn best_value(run: &Run, metric: &Metric, on: HeldOut) -> Option<f64> {
    let values = trained(run).filter_map(|e| on.value(metric, e));
    values.reduce(|a, b| metric.better_of(a, b))
}

/// The highest target on the test samples, in steps of `step`, that every run of every series reaches; for the loss,
/// the lowest.
pub(crate) fn reached_by_all(series: &[Series], metric: &'static str, step: f64) -> Option<Target> {
    reached_by_all_on(HeldOut::Test, series, metric, step)
}

fn reached_by_all_on(
    on: HeldOut,
    series: &[Series],
    metric: &'static str,
    step: f64,
) -> Option<Target> {
    let known = Metric::find(metric)?;
    // What diverged reaches nothing, and would leave nothing to compare the others by.
    let runs = series.iter().flat_map(|s| &s.runs);
    let runs = runs.filter(|run| !has_diverged(run));
    let best: Option<Vec<f64>> = runs.map(|run| best_value(run, known, on)).collect();
    let best = best?.into_iter();
    // A little room, so that a value on a step is not lost to rounding.
    let value = match known.better {
        Better::Lower => (best.reduce(f64::max)? / step - 1e-9).ceil() * step,
        Better::Higher => (best.reduce(f64::min)? / step + 1e-9).floor() * step,
    };
    let value = (value * 1e6).round() / 1e6;
    (value > 0.0).then(|| Target::new(metric, value).on(on))
}

/// The steps of usual targets: twentieths of 1, or at most a twentieth of errors that have a unit of their own.
fn step_of(on: HeldOut, series: &[Series], metric: &str) -> Option<f64> {
    if !["mae", "rmse"].contains(&metric) {
        return Some(0.05);
    }
    let metric = Metric::find(metric)?;
    let runs = series.iter().flat_map(|s| &s.runs);
    let best = runs.filter_map(|run| best_value(run, metric, on));
    let best = best.reduce(f64::max).filter(|best| *best > 0.0)?;
    Some(libm::pow(10.0, libm::log10(best).floor()) / 20.0)
}

/// Targets as they are given.
pub(crate) fn parse_all(given: &[String]) -> Result<Vec<Target>> {
    given.iter().map(|text| Target::parse(text)).collect()
}

/// The given targets, or else the usual ones, judged on the samples that these runs are compared by.
pub(crate) fn or_usual(given: &[Target], series: &[Series]) -> Result<Vec<Target>> {
    let on = HeldOut::of(series);
    check_all(given, kind_of(series))?;
    Ok(match given {
        [] => usual_on(on, series),
        given => given.iter().map(|target| target.clone().on(on)).collect(),
    })
}

/// Refuses targets that are not measured of a kind of outcome.
pub(crate) fn check_all(given: &[Target], kind: Kind) -> Result<()> {
    given.iter().try_for_each(|target| target.check(kind))
}

/// Targets where nobody names any: those of the paper's Table II for its sets, with F1 and AUC beside them, else what
/// all variants reach; on the test samples, as in the paper.
pub(crate) fn usual(series: &[Series]) -> Vec<Target> {
    usual_on(HeldOut::Test, series)
}

fn usual_on(on: HeldOut, series: &[Series]) -> Vec<Target> {
    let set = series
        .first()
        .map(|s| s.first().experiment.data.set.as_str());
    let kind = kind_of(series);
    // Those of a set are of its classes.
    let of_set = set.filter(|_| kind.is_class());
    match of_set.map_or(&[][..], usual_targets) {
        [] => {
            let metrics: &[_] = match kind {
                Kind::Class => &["loss", "precision", "recall", "f1", "auc"],
                Kind::Labels => &["loss", "auc", "auprc"],
                Kind::Quantity => &["loss", "mae", "rmse", "r2"],
                Kind::Survival => &["loss", "concordance", "brier"],
            };
            let all = |metric: &&'static str| {
                reached_by_all_on(on, series, metric, step_of(on, series, metric)?)
            };
            metrics.iter().filter_map(all).collect()
        }
        targets => targets
            .iter()
            .map(|(metric, value)| Target::new(metric, *value).on(on))
            .collect(),
    }
}
