//! What each variant needs to reach each target, and where it ends.

use super::targets::{HeldOut, Target, has_diverged};
use crate::commands::train::gone_wrong;
use selvedge_core::metrics::Metric;
use selvedge_core::outcome::Kind;
use selvedge_run::format::{bytes, count, exact, seconds};
use selvedge_run::runs::mean_and_deviation;
use selvedge_run::runs::{Run, Series};
use serde::Serialize;

/// What stands below tables of the metrics of a kind of outcome.
pub(crate) fn means(kind: Kind) -> &'static str {
    match kind {
        Kind::Class => {
            "Precision, recall and F1 are means over the classes (macro), from the model's raw probabilities"
        }
        Kind::Labels => {
            "AUC, AUPRC, precision, recall and F1 are means over the labels (macro), from the model's raw probabilities; micro ones take all labels together"
        }
        Kind::Quantity => {
            "MAE and RMSE are in the quantity's own unit, lower is better; R² is the share of the variance that is explained"
        }
        Kind::Survival => {
            "Concordance is the share of pairs of patients whose order is right; the Brier score is a mean over the ends of intervals, lower is better"
        }
    }
}

/// The kind of outcome of series; they have one.
pub(crate) fn kind_of(series: &[Series]) -> Kind {
    let first = series.first().map(Series::first);
    first.map_or(Kind::Class, |run| run.manifest.data.outcome)
}

/// Mean and standard deviation over the seeds that reached a target; one seed has no deviation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) deviation: Option<f64>,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let (mean, deviation) = mean_and_deviation(values);
        Some(Spread { mean, deviation })
    }

    /// `12.3 MB ± 4.56 kB`; without a deviation where there is one seed only, or none.
    fn text(self, unit: impl Fn(f64) -> String) -> String {
        match self.seen() {
            Some(deviation) => format!("{} ± {}", unit(self.mean), unit(deviation)),
            None => unit(self.mean),
        }
    }

    /// What rounding leaves of equal values is no deviation.
    pub(crate) fn seen(self) -> Option<f64> {
        let is_seen = |deviation: &f64| *deviation > 1e-9 * self.mean.abs();
        self.deviation.filter(is_seen)
    }
}

/// What a variant needs to reach a target; means over the seeds that reach it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) variant: String,
    pub(crate) seeds: usize,
    pub(crate) reached: usize,
    pub(crate) iterations: Option<Spread>,
    /// All bytes, mean per group.
    pub(crate) bytes: Option<Spread>,
    /// The bytes that the paper counts, mean per group.
    pub(crate) bytes_paper: Option<Spread>,
    /// Simulated seconds.
    pub(crate) seconds: Option<Spread>,
    /// Floating-point operations of one device that takes part in every iteration.
    pub(crate) flops: Option<Spread>,
    /// Bytes of memory that a device needs in an iteration.
    pub(crate) memory: u64,
    /// The same added up over iterations, as the paper counts memory.
    pub(crate) memory_accumulated: Option<Spread>,
}

/// A cost: its title, its name in files, where a row has it, and how it is shown.
type Cost = (
    &'static str,
    &'static str,
    fn(&Row) -> Option<Spread>,
    fn(f64) -> String,
);

/// What is compared.
pub(crate) const COSTS: [Cost; 6] = [
    (
        "Iterations",
        "iterations",
        |r| r.iterations,
        |x| count(x.round() as u64),
    ),
    ("Bytes per group", "bytes", |r| r.bytes, bytes),
    (
        "by the paper's count",
        "bytes_paper",
        |r| r.bytes_paper,
        bytes,
    ),
    ("Simulated time", "seconds", |r| r.seconds, seconds),
    ("FLOPs per device", "flops", |r| r.flops, operations),
    (
        "Memory × iterations",
        "memory_accumulated",
        |r| r.memory_accumulated,
        bytes,
    ),
];

/// The rows of one target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Block {
    #[serde(flatten)]
    pub(crate) target: Target,
    pub(crate) variants: Vec<Row>,
}

/// Metrics by their names, over the seeds.
type Metrics = Vec<(&'static str, Option<Spread>)>;

/// A variant's last metrics.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Final {
    pub(crate) variant: String,
    pub(crate) learning_rate: f64,
    /// On the test samples.
    pub(crate) metrics: Metrics,
    /// On the validation samples, if variants are compared on these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) validation: Option<Metrics>,
    /// How many of its runs diverged.
    pub(crate) diverged: usize,
    /// Of how many the training loss has more than doubled.
    pub(crate) gone_wrong: usize,
    /// How many of its runs have been evaluated without the patients of some groups at their end.
    pub(crate) without_groups: usize,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) targets: Vec<Block>,
    pub(crate) last: Vec<Final>,
    /// The samples that variants are compared on.
    pub(crate) on: HeldOut,
    /// What the models were asked about.
    #[serde(skip_serializing_if = "Kind::is_class")]
    pub(crate) outcome: Kind,
}

impl Table {
    pub(crate) fn new(series: &[Series], targets: &[Target]) -> Self {
        let (on, outcome) = (HeldOut::of(series), kind_of(series));
        let block = |target: &Target| Block {
            target: target.clone(),
            variants: series.iter().map(|s| row(s, target)).collect(),
        };
        Table {
            targets: targets.iter().map(block).collect(),
            last: series.iter().map(|s| last(s, on, outcome)).collect(),
            on,
            outcome,
        }
    }

    /// A page of text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for block in &self.targets {
            let head = [
                block.target.name().as_str(),
                "reached",
                "iterations",
                "bytes per group",
                "simulated time",
                "FLOPs per device",
                "memory per device",
                "memory × iterations",
            ]
            .map(String::from);
            let mut rows = vec![head.to_vec()];
            rows.extend(block.variants.iter().map(Row::cells));
            out += &selvedge_run::format::table(&rows);
            out.push('\n');
        }
        if self.on == HeldOut::Validation {
            out += &self.ends("validation", |last| last.validation.as_ref());
            out.push('\n');
        }
        let samples = match self.on {
            HeldOut::Training => "training",
            _ => "test",
        };
        out += &self.ends(samples, |last| Some(&last.metrics));
        format!(
            "{out}\n{}.\n{}.\n",
            self.on.explained(),
            means(self.outcome)
        )
    }

    /// The last metrics on some samples.
    fn ends(&self, on: &str, metrics: fn(&Final) -> Option<&Metrics>) -> String {
        let mut rows = vec![vec![format!("at the end, on {on}"), "η".to_owned()]];
        rows[0].extend(targets_of(self.outcome).map(|metric| metric.heading.to_owned()));
        for variant in &self.last {
            let mut row = vec![variant.variant.clone(), exact(variant.learning_rate)];
            let cell = |spread: &Option<Spread>| {
                spread.map_or("–".into(), |s| s.text(|x| format!("{x:.3}")))
            };
            let metrics = metrics(variant).into_iter().flatten();
            row.extend(metrics.map(|(_, spread)| cell(spread)));
            if variant.diverged > 0 {
                row.push(format!("{} diverged", variant.diverged));
            }
            if variant.gone_wrong > 0 {
                row.push(format!(
                    "{} with a loss above that at t = 0",
                    variant.gone_wrong
                ));
            }
            if variant.without_groups > 0 {
                row.push(format!("{} without some groups", variant.without_groups));
            }
            rows.push(row);
        }
        selvedge_run::format::table(&rows)
    }

    /// A line per target and variant.
    pub(crate) fn csv(&self) -> String {
        let mut out = Self::csv_head() + "\n";
        for block in &self.targets {
            for row in &block.variants {
                let name = row.variant.replace('"', "\"\"");
                let Target { metric, value, .. } = block.target;
                out += &format!("{metric},{value},\"{name}\",{},{}", row.seeds, row.reached);
                for (_, _, of, _) in COSTS {
                    let number = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
                    let deviation = of(row).and_then(|s| s.deviation);
                    out += &format!(",{},{}", number(of(row).map(|s| s.mean)), number(deviation));
                }
                out += &format!(",{},{}\n", row.memory, block.target.judged_on());
            }
        }
        out
    }
}

impl Table {
    /// The headings of its columns as comma-separated values.
    pub(super) fn csv_head() -> String {
        let costs = COSTS
            .iter()
            .map(|(_, name, _, _)| format!(",{name}_mean,{name}_sd"));
        let costs: String = costs.collect();
        format!("metric,target,variant,seeds,reached{costs},memory,on")
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let cell = |spread: Option<Spread>, unit: &dyn Fn(f64) -> String| {
            spread.map_or("–".into(), |s| s.text(unit))
        };
        vec![
            self.variant.clone(),
            format!("{} of {}", self.reached, self.seeds),
            cell(self.iterations, &|x| count(x.round() as u64)),
            cell(self.bytes, &bytes),
            cell(self.seconds, &seconds),
            cell(self.flops, &operations),
            bytes(self.memory as f64),
            cell(self.memory_accumulated, &bytes),
        ]
    }
}

/// `1.23 G`
pub(crate) fn operations(n: f64) -> String {
    let text = bytes(n);
    text.trim_end_matches('B').trim_end().to_owned()
}

fn row(series: &Series, target: &Target) -> Row {
    let cost = series.first().manifest.sizes.cost;
    let met: Vec<_> = series
        .runs
        .iter()
        .filter_map(|run| target.reached(run))
        .collect();
    let spread = |of: &dyn Fn(&selvedge_core::state::Evaluation) -> f64| {
        let values: Vec<f64> = met.iter().map(|e| of(e)).collect();
        Spread::of(&values)
    };
    Row {
        variant: series.label.clone(),
        seeds: series.runs.len(),
        reached: met.len(),
        iterations: spread(&|e| e.t as f64),
        bytes: spread(&|e| e.bytes_exact),
        bytes_paper: spread(&|e| e.bytes_paper),
        seconds: spread(&|e| e.seconds),
        flops: spread(&|e| cost.flops as f64 * e.t as f64),
        memory: cost.memory,
        memory_accumulated: spread(&|e| cost.memory as f64 * e.t as f64),
    }
}

/// Whether it has made the model worse, without having diverged.
fn has_gone_wrong(run: &Run) -> bool {
    !has_diverged(run) && gone_wrong(&run.evaluations).is_some()
}

/// Whether its last evaluation is without the patients of some groups.
fn is_partial(run: &Run) -> bool {
    run.last().is_some_and(|e| !e.without.is_empty())
}

/// The metrics of a kind of outcome that can be targets.
pub(crate) fn targets_of(kind: Kind) -> impl Iterator<Item = &'static Metric> + Clone {
    Metric::targets().filter(move |metric| metric.is_of(kind))
}

fn last(series: &Series, on: HeldOut, kind: Kind) -> Final {
    let metrics = |on: HeldOut| {
        let spread = |metric: &'static Metric| {
            let runs = series.runs.iter().filter(|run| !has_diverged(run));
            let last = runs.filter_map(Run::last);
            let values: Vec<f64> = last.filter_map(|e| on.value(metric, e)).collect();
            (metric.name, Spread::of(&values))
        };
        targets_of(kind).map(spread).collect()
    };
    Final {
        variant: series.label.clone(),
        learning_rate: series.first().experiment.train.learning_rate,
        metrics: metrics(HeldOut::Test),
        validation: (on == HeldOut::Validation).then(|| metrics(on)),
        diverged: series.runs.iter().filter(|run| has_diverged(run)).count(),
        gone_wrong: series.runs.iter().filter(|run| has_gone_wrong(run)).count(),
        without_groups: series.runs.iter().filter(|run| is_partial(run)).count(),
    }
}
