//! Runs as their directories tell of them, finished or not, and which of them belong together.
//!
//! ```text
//! paths ──► find (runs, seeds.json, comparison.json) ──► Run::read ──► series: one per experiment but for the seed
//!                                                                         └──► curves: mean and spread at each t
//! ```

mod curve;
mod find;
mod labels;

pub(crate) use curve::{Axis, Point};
pub(crate) use find::incomplete;
pub(crate) use labels::differences;

use crate::files::read_text;
use crate::run_directory::Manifest;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::Experiment;
use selvedge_core::state::Evaluation;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A run, as far as it has come.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) experiment: Experiment,
    /// The lines of `metrics.jsonl`, by rising t.
    pub(crate) evaluations: Vec<Evaluation>,
    /// The lines of `ledger.csv`; none before the first checkpoint.
    pub(crate) ledger: Vec<LedgerLine>,
}

/// A line of `ledger.csv`. Names are kept as they are written, so that those of later versions can be shown too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerLine {
    pub(crate) link: String,
    pub(crate) kind: String,
    pub(crate) direction: String,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// Runs whose experiments differ in the seed only, by rising seed; never none.
#[derive(Clone)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) runs: Vec<Run>,
}

impl Run {
    /// Reads a run directory, which another process may be writing.
    pub(crate) fn read(path: &Path) -> Result<Run> {
        let manifest = Manifest::read(path)?;
        Ok(Run {
            experiment: manifest.experiment(path)?,
            evaluations: read_evaluations(&path.join("metrics.jsonl"))?,
            ledger: read_ledger(&path.join("ledger.csv"))?,
            manifest,
            path: path.into(),
        })
    }

    pub(crate) fn last(&self) -> Option<&Evaluation> {
        self.evaluations.last()
    }

    /// The evaluation that the validation samples choose, as training does: the first with the highest AUC, or accuracy
    /// where AUC is undefined. Nothing where there are no such samples.
    pub(crate) fn best(&self) -> Option<&Evaluation> {
        let mut best: Option<(f64, &Evaluation)> = None;
        for evaluation in &self.evaluations {
            let Some(on) = &evaluation.validation else {
                continue;
            };
            let score = on.score();
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, evaluation));
            }
        }
        best.map(|(_, evaluation)| evaluation)
    }
}

impl Series {
    /// The run that stands for all: they differ in the seed only.
    pub(crate) fn first(&self) -> &Run {
        &self.runs[0]
    }

    /// The runs that have been evaluated at all.
    pub(crate) fn evaluated(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| !run.evaluations.is_empty())
    }
}

/// Lines of `metrics.jsonl`. The last one may be cut off: the run is being written, or was killed while it wrote.
fn read_evaluations(path: &Path) -> Result<Vec<Evaluation>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut evaluations: Vec<Evaluation> = Vec::new();
    for (i, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
        let place = || format!("{}, line {} is damaged", path.display(), i + 1);
        let evaluation: Evaluation = match serde_json::from_slice(line) {
            Ok(evaluation) => evaluation,
            Err(_) if !line.ends_with(b"\n") => break,
            Err(e) => return Err(e).with_context(place),
        };
        if let Some(before) = evaluations.last().filter(|e| e.t >= evaluation.t) {
            bail!(
                "{}: iteration {} comes after iteration {}",
                place(),
                evaluation.t,
                before.t
            );
        }
        evaluations.push(evaluation);
    }
    Ok(evaluations)
}

/// Lines of `ledger.csv`; none while there is no file.
pub(crate) fn read_ledger(path: &Path) -> Result<Vec<LedgerLine>> {
    const HEADER: &str = "link,kind,direction,messages,bytes";
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_text(path)?;
    let damaged =
        |line: usize, why: String| anyhow!("{}, line {line} is damaged: {why}", path.display());
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some(HEADER) {
        return Err(damaged(1, format!("expected `{HEADER}`")));
    }
    lines
        .map(|(i, line)| {
            let parse = || -> Option<LedgerLine> {
                let words: Vec<&str> = line.split(',').collect();
                let [link, kind, direction, messages, bytes] = words[..] else {
                    return None;
                };
                Some(LedgerLine {
                    link: link.into(),
                    kind: kind.into(),
                    direction: direction.into(),
                    messages: messages.parse().ok()?,
                    bytes: bytes.parse().ok()?,
                })
            };
            parse().ok_or_else(|| damaged(i + 1, format!("expected {HEADER}, found {line:?}")))
        })
        .collect()
}

/// The runs at these paths (run directories, folders of seeds, folders of comparisons), those together whose
/// experiments differ in the seed only, in the order in which they are named.
///
/// # Errors
/// If a path is none of these, something in it is damaged, or the runs are of different data.
pub(crate) fn series(paths: &[PathBuf]) -> Result<Vec<Series>> {
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
        match groups.iter_mut().find(|group| group.keys == keys) {
            Some(group) => {
                group.variant = group.variant.take().or(found.variant);
                add(&mut group.runs, run);
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
fn add(runs: &mut Vec<Run>, run: Run) {
    let seed = run.experiment.seed;
    let Some(twin) = runs.iter_mut().find(|r| r.experiment.seed == seed) else {
        return runs.push(run);
    };
    crate::say(&format!(
        "note: {} and {} are the same experiment with the same seed: only the one that has come further is used",
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
        "{} and {} are of different data: {key} is {} in the first and {} in the second; charts need runs of the same data",
        first.path.display(),
        run.path.display(),
        text(first_keys),
        text(keys)
    )
}

#[cfg(test)]
pub(crate) mod tests;
