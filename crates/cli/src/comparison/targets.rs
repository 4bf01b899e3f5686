//! Targets: which value of which metric counts as reached.

use anyhow::{Context, Result, anyhow};
use selvedge_core::experiment::one_of;
use selvedge_core::metrics::{Better, Metric};
use selvedge_core::state::Evaluation;
use selvedge_data::usual_targets;
use selvedge_run::runs::{Run, Series};
use serde::Serialize;

/// A value of a metric that is to be reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Target {
    pub(crate) metric: &'static str,
    pub(crate) value: f64,
}

impl Target {
    pub(crate) const fn new(metric: &'static str, value: f64) -> Self {
        Target { metric, value }
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

    /// As tables show it.
    pub(crate) fn name(&self) -> String {
        let (words, sign) = match Metric::find(self.metric) {
            Some(metric) if metric.better == Better::Lower => (metric.words, '≤'),
            Some(metric) => (metric.words, '≥'),
            None => (self.metric, '='),
        };
        format!("{words} {sign} {}", self.value)
    }

    /// The first evaluation that meets it.
    pub(crate) fn reached<'a>(&self, run: &'a Run) -> Option<&'a Evaluation> {
        let metric = Metric::find(self.metric)?;
        let meets = |e: &&Evaluation| {
            metric
                .of(e)
                .is_some_and(|found| metric.reaches(found, self.value))
        };
        run.evaluations.iter().find(meets)
    }
}

/// The best value of a metric that a run reaches.
pub(crate) fn best_value(run: &Run, metric: &str) -> Option<f64> {
    let metric = Metric::find(metric)?;
    let values = run.evaluations.iter().filter_map(|e| metric.of(e));
    values.reduce(|a, b| metric.better_of(a, b))
}

/// The highest target, in steps of `step`, that every run of every series reaches; for the loss, the lowest.
pub(crate) fn reached_by_all(series: &[Series], metric: &'static str, step: f64) -> Option<Target> {
    let runs = series.iter().flat_map(|s| &s.runs);
    let best: Option<Vec<f64>> = runs.map(|run| best_value(run, metric)).collect();
    let best = best?.into_iter();
    // A little room, so that a value on a step is not lost to rounding.
    let value = match Metric::find(metric)?.better {
        Better::Lower => (best.reduce(f64::max)? / step - 1e-9).ceil() * step,
        Better::Higher => (best.reduce(f64::min)? / step + 1e-9).floor() * step,
    };
    let value = (value * 1e6).round() / 1e6;
    (value > 0.0).then(|| Target::new(metric, value))
}

/// Targets as they are given.
pub(crate) fn parse_all(given: &[String]) -> Result<Vec<Target>> {
    given.iter().map(|text| Target::parse(text)).collect()
}

/// The given targets, or else the usual ones.
pub(crate) fn or_usual(given: &[Target], series: &[Series]) -> Vec<Target> {
    match given {
        [] => usual(series),
        given => given.to_vec(),
    }
}

/// Targets where nobody names any: those of the paper's Table II for its sets, with F1 and AUC beside them, else what
/// all variants reach.
pub(crate) fn usual(series: &[Series]) -> Vec<Target> {
    let set = series
        .first()
        .map(|s| s.first().experiment.data.set.as_str());
    match set.map_or(&[][..], usual_targets) {
        [] => {
            let all = |metric| reached_by_all(series, metric, 0.05);
            let metrics = ["loss", "precision", "recall", "f1", "auc"];
            metrics.into_iter().filter_map(all).collect()
        }
        targets => targets
            .iter()
            .map(|(metric, value)| Target::new(metric, *value))
            .collect(),
    }
}
