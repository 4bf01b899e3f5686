//! Runs as read from their directories, finished or not, and which of them belong together.
//!
//! ```text
//! paths ──► find (runs, seeds.json, comparison.json) ──► Run::read ──► series: one per experiment but for the seed
//!                                                                         └──► curves: mean and spread at each t
//! ```

mod curve;
mod find;
pub(crate) mod labels;

pub use curve::{Axis, Point};
pub use find::incomplete;
pub use labels::differences;

use crate::digests;
use crate::error::{Result, bail};
use crate::files::{LEDGER, METRICS};
use crate::ledger::{self, LedgerLine};
use crate::manifest::{DataInfo, Manifest};
use crate::metrics;
use selvedge_core::experiment::Experiment;
use selvedge_core::state::{Best, Evaluation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A run, as far as it has come.
#[derive(Clone)]
pub struct Run {
    /// Its directory.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// What is trained.
    pub experiment: Experiment,
    /// The lines of `metrics.jsonl`, by rising t.
    pub evaluations: Vec<Evaluation>,
    /// The lines of `ledger.csv`; none before the first checkpoint.
    pub ledger: Vec<LedgerLine>,
}

/// Runs whose experiments differ in the seed only, by increasing seed; at least one.
#[derive(Clone)]
pub struct Series {
    /// What distinguishes it from other series.
    pub label: String,
    /// One for each seed.
    pub runs: Vec<Run>,
}

impl Run {
    /// Reads a run directory, which another process may be writing.
    ///
    /// # Errors
    /// If it is not a run directory, or is damaged.
    pub fn read(path: &Path) -> Result<Run> {
        let manifest = Manifest::read(path)?;
        let run = Run {
            experiment: manifest.experiment(path)?,
            evaluations: metrics::read(path)?,
            ledger: ledger::read(path)?,
            manifest,
            path: path.into(),
        };
        // What cannot be read says more of itself than a digest does.
        digests::check(path, &run.manifest.files, &[METRICS, LEDGER])?;
        Ok(run)
    }

    /// The last evaluation.
    pub fn last(&self) -> Option<&Evaluation> {
        self.evaluations.last()
    }

    /// The evaluation that the validation samples choose: that of the best model. Nothing where there are no such samples.
    pub fn best(&self) -> Option<&Evaluation> {
        if let Some(t) = self.manifest.best {
            return self.evaluations.iter().find(|e| e.t == t);
        }
        // Version 0.2 chose by accuracy where AUC is undefined, and did not say at which iteration.
        let ending = self.manifest.ending.as_ref();
        let is_old = ending.is_some_and(|ending| ending.kind != "interrupted");
        let (mut best, mut chosen) = (None, None);
        for evaluation in &self.evaluations {
            let Some(on) = &evaluation.validation else {
                continue;
            };
            let mut now = Best::new(evaluation.t, on);
            if is_old {
                now.score = on
                    .auc_validation
                    .or(on.accuracy_validation)
                    .unwrap_or_default();
            }
            let beats = match (is_old, best) {
                (true, Some(Best { score, .. })) => now.score > score,
                _ => now.beats(best),
            };
            if beats {
                (best, chosen) = (Some(now), Some(evaluation));
            }
        }
        chosen
    }
}

impl Series {
    /// The run that represents all: they differ in the seed only.
    pub fn first(&self) -> &Run {
        &self.runs[0]
    }

    /// The runs that have been evaluated at all.
    pub fn evaluated(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| !run.evaluations.is_empty())
    }
}

/// The runs at these paths (run directories, folders of seeds, folders of comparisons), those together whose
/// experiments differ in the seed only, in the order in which they are named.
///
/// `say` gets notes for people about runs that are left out.
///
/// # Errors
/// If a path is none of these, something in it is damaged, or the runs use different data.
pub fn series(paths: &[PathBuf], say: impl Fn(&str)) -> Result<Vec<Series>> {
    let mut groups: Vec<labels::Unlabelled> = Vec::new();
    let mut seen = BTreeSet::new();
    for found in find::runs(paths)? {
        // Whatever way it is named: through a link, or with `..` in it.
        let whole = found.path.canonicalize().unwrap_or(found.path.clone());
        if !seen.insert(whole) {
            continue;
        }
        let run = Run::read(&found.path)?;
        let keys = labels::keys(&run.experiment)?;
        // Variants of one comparison may differ in their data: that is what is compared then.
        let first = groups.first();
        if let Some(first) = first.filter(|g| g.variant.is_none() || found.variant.is_none()) {
            check_same_data(&first.runs[0], &first.keys, &run, &keys)?;
        }
        if let Some(first) = groups.first() {
            check_same_outcome(&first.runs[0], &run)?;
        }
        match groups.iter_mut().find(|group| group.keys == keys) {
            Some(group) => {
                group.variant = group.variant.take().or(found.variant);
                add(&mut group.runs, run, &say);
            }
            None => groups.push(labels::Unlabelled {
                variant: found.variant,
                keys,
                runs: vec![run],
            }),
        }
    }
    for group in &mut groups {
        group.runs.sort_by_key(|run| run.experiment.seed);
    }
    Ok(labels::label(groups))
}

/// Adds a run unless its twin is there: with the same seed it would be the same, and count twice.
fn add(runs: &mut Vec<Run>, run: Run, say: &impl Fn(&str)) {
    let seed = run.experiment.seed;
    let Some(twin) = runs.iter_mut().find(|r| r.experiment.seed == seed) else {
        return runs.push(run);
    };
    say(&format!(
        "{} and {} are the same experiment with the same seed: only the one that is further along is used",
        twin.path.display(),
        run.path.display()
    ));
    if run.last().map(|e| e.t) > twin.last().map(|e| e.t) {
        *twin = run;
    }
}

fn check_same_data(
    first: &Run,
    first_keys: &BTreeMap<String, String>,
    run: &Run,
    keys: &BTreeMap<String, String>,
) -> Result<()> {
    let of_data = |key: &&String| key.starts_with("data.");
    let all: BTreeSet<&String> = first_keys
        .keys()
        .chain(keys.keys())
        .filter(of_data)
        .collect();
    let Some(key) = all
        .into_iter()
        .find(|key| first_keys.get(*key) != keys.get(*key))
    else {
        return Ok(());
    };
    let text =
        |keys: &BTreeMap<String, String>| keys.get(key).map_or("not set".to_owned(), Clone::clone);
    bail!(
        "{} and {} use different data: {key} is {} in the first and {} in the second; charts need runs on the same data",
        first.path.display(),
        run.path.display(),
        text(first_keys),
        text(keys)
    )
}

/// Metrics of different kinds of outcome, or quantities of different units, cannot stand side by side.
fn check_same_outcome(first: &Run, run: &Run) -> Result<()> {
    let (theirs, ours) = (&first.manifest.data, &run.manifest.data);
    let same_names = theirs.outcome.is_class() || theirs.classes == ours.classes;
    if theirs.outcome == ours.outcome && same_names {
        return Ok(());
    }
    let asks = |data: &DataInfo| format!("{} ({})", data.outcome.name(), data.classes.join(", "));
    bail!(
        "{} and {} have different outcomes: {} in the first and {} in the second; compare runs of one outcome at a time",
        first.path.display(),
        run.path.display(),
        asks(theirs),
        asks(ours)
    )
}

/// The mean, and the standard deviation of a sample: one value has none.
pub fn mean_and_deviation(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (n > 1.0).then(|| (squares / (n - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests;
