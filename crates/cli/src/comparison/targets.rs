//! Targets: which value of which metric counts as reached.

use anyhow::{Context, Result, anyhow};
use selvedge_core::experiment::one_of;
use selvedge_core::state::Evaluation;
use selvedge_run::runs::{Run, Series, value};
use serde::Serialize;

/// A value of a metric that is to be reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Target {
    pub(crate) metric: &'static str,
    pub(crate) value: f64,
}

/// The metrics that there can be targets of.
pub(crate) const METRICS: [&str; 6] = ["loss", "precision", "recall", "f1", "auc", "accuracy"];

impl Target {
    pub(crate) const fn new(metric: &'static str, value: f64) -> Self {
        Target { metric, value }
    }

    /// `auc=0.9`
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = |problem: String| anyhow!("--target {text}: {problem}");
        let (metric, value) = text
            .split_once('=')
            .ok_or_else(|| wrong("use METRIC=VALUE, like auc=0.9".into()))?;
        let metric = metric.trim();
        let known = METRICS.into_iter().find(|m| *m == metric);
        let metric = known.ok_or_else(|| wrong(one_of(metric, &METRICS)))?;
        let number: f64 = value
            .trim()
            .parse()
            .with_context(|| wrong(format!("`{value}` is not a number")))?;
        let right = match metric {
            "loss" => number > 0.0 && number.is_finite(),
            _ => number > 0.0 && number <= 1.0,
        };
        match (right, metric) {
            (true, _) => Ok(Target::new(metric, number)),
            (_, "loss") => Err(wrong("a loss is above 0".into())),
            _ => Err(wrong(format!("{metric} is above 0 and at most 1"))),
        }
    }

    /// As tables show it.
    pub(crate) fn name(&self) -> String {
        match self.metric {
            "loss" => format!("training loss ≤ {}", self.value),
            "auc" => format!("test AUC ≥ {}", self.value),
            "f1" => format!("test F1 ≥ {}", self.value),
            metric => format!("test {metric} ≥ {}", self.value),
        }
    }

    pub(crate) fn is_met(&self, found: f64) -> bool {
        match self.metric {
            "loss" => found <= self.value,
            _ => found >= self.value,
        }
    }

    /// The first evaluation that meets it.
    pub(crate) fn reached<'a>(&self, run: &'a Run) -> Option<&'a Evaluation> {
        let meets = |e: &&Evaluation| value(e, self.metric).is_some_and(|found| self.is_met(found));
        run.evaluations.iter().find(meets)
    }
}

/// The best value of a metric that a run reaches.
pub(crate) fn best_value(run: &Run, metric: &str) -> Option<f64> {
    let values = run.evaluations.iter().filter_map(|e| value(e, metric));
    match metric {
        "loss" => values.reduce(f64::min),
        _ => values.reduce(f64::max),
    }
}

/// The highest target, in steps of `step`, that every run of every series reaches; for the loss, the lowest.
pub(crate) fn reached_by_all(series: &[Series], metric: &'static str, step: f64) -> Option<Target> {
    let runs = series.iter().flat_map(|s| &s.runs);
    let best: Option<Vec<f64>> = runs.map(|run| best_value(run, metric)).collect();
    let best = best?.into_iter();
    // A little room, so that a value on a step is not lost to rounding.
    let value = match metric {
        "loss" => (best.reduce(f64::max)? / step - 1e-9).ceil() * step,
        _ => (best.reduce(f64::min)? / step + 1e-9).floor() * step,
    };
    let value = (value * 1e6).round() / 1e6;
    (value > 0.0).then(|| Target::new(metric, value))
}

/// Targets where nobody names any: those of the paper's Table II for its sets, with F1 and AUC beside them, else what
/// all variants reach.
pub(crate) fn usual(series: &[Series]) -> Vec<Target> {
    let set = series
        .first()
        .map(|s| s.first().experiment.data.set.as_str());
    let target = Target::new;
    match set.map(|set| set.strip_prefix("synthetic-").unwrap_or(set)) {
        Some("esr") => vec![
            target("loss", 1.2),
            target("loss", 0.8),
            target("precision", 0.4),
            target("precision", 0.6),
            target("recall", 0.4),
            target("recall", 0.6),
            target("f1", 0.6),
            target("auc", 0.7),
            target("auc", 0.9),
        ],
        Some("medmnist" | "mednist" | "organamnist") => vec![
            target("loss", 1.5),
            target("loss", 0.5),
            target("precision", 0.5),
            target("precision", 0.7),
            target("recall", 0.5),
            target("recall", 0.7),
            target("f1", 0.6),
            target("auc", 0.9),
        ],
        Some("physionet2012" | "mimic3") => vec![
            target("loss", 0.5),
            target("loss", 0.3),
            target("precision", 0.7),
            target("recall", 0.6),
            target("f1", 0.6),
            target("auc", 0.78),
            target("auc", 0.82),
        ],
        _ => {
            let all = |metric| reached_by_all(series, metric, 0.05);
            let metrics = ["loss", "precision", "recall", "f1", "auc"];
            metrics.into_iter().filter_map(all).collect()
        }
    }
}
