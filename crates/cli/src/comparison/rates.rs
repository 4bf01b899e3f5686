//! A fair learning rate for each variant: all try the same few, on a seed that is not among those compared, and each takes
//! the one that served it best.

use super::{Comparison, Options, Variant, run_all};
use crate::Outcome;
use crate::runs::{Run, series};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What was tried, and what was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tuning {
    pub(crate) seed: u64,
    pub(crate) grid: Vec<f64>,
    pub(crate) variants: Vec<Tried>,
}

/// How a variant fared with each rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) label: String,
    /// The best validation AUC with each rate of the grid, or the lowest training loss, negative, where there are no
    /// validation samples; nothing where training diverged.
    pub(crate) scores: Vec<Option<f64>>,
    pub(crate) chosen: f64,
}

/// Seeds from here on up from an experiment's own are for tuning.
const APART: u64 = 1000;

/// Tries every rate with every variant in `folder`/tuning, and gives each variant its best. Nothing if it was interrupted.
pub(crate) fn choose(
    comparison: &mut Comparison,
    grid: &[f64],
    folder: &Path,
    options: &Options,
) -> Result<Option<()>> {
    let folder = folder.join("tuning");
    let first = comparison.seeds.first().copied().unwrap_or_default();
    let seed = first.checked_add(APART).context("the seed is too large")?;
    let variants: Vec<Vec<Variant>> = comparison
        .variants
        .iter()
        .map(|variant| grid.iter().map(|rate| with_rate(variant, *rate)).collect())
        .collect();
    let mut tuning = Comparison {
        kind: "tuning".into(),
        variants: variants.concat(),
        seeds: vec![seed],
        rates: None,
        ..comparison.clone()
    };
    tuning.write(&folder)?;
    if let Outcome::Interrupted = run_all(&tuning, &folder, options)? {
        return Ok(None);
    }
    let mut tried = Vec::new();
    for (variant, rates) in comparison.variants.iter_mut().zip(&variants) {
        let mut scores = Vec::new();
        for rate in rates {
            scores.push(score(&folder.join(&rate.folder))?);
        }
        // Of equals the smallest rate.
        let best = scores
            .iter()
            .zip(grid)
            .filter_map(|(s, rate)| s.map(|s| (s, *rate)));
        let best = best.reduce(|a, b| if b.0 > a.0 { b } else { a });
        let chosen = best.map_or(grid[0], |(_, rate)| rate);
        variant.set.push(format!("train.learning_rate={chosen}"));
        tried.push(Tried {
            label: variant.label.clone(),
            scores,
            chosen,
        });
    }
    comparison.rates = Some(Tuning {
        seed,
        grid: grid.to_vec(),
        variants: tried,
    });
    Ok(Some(()))
}

fn with_rate(variant: &Variant, rate: f64) -> Variant {
    let mut set = variant.set.clone();
    set.push(format!("train.learning_rate={rate}"));
    Variant::new(format!("{} eta={rate}", variant.label), set)
}

/// How good the run in a folder of one seed is.
fn score(folder: &Path) -> Result<Option<f64>> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    let series = series(&paths)?;
    let Some(run) = series.first().map(|s| s.first()) else {
        return Ok(None);
    };
    let ending = run.manifest.ending.as_ref();
    if ending.is_some_and(|e| e.kind == "diverged") {
        return Ok(None);
    }
    let validated = run.best().and_then(|e| e.validation.as_ref());
    let auc = validated.map(|v| v.auc_validation.unwrap_or(v.accuracy_validation));
    Ok(auc.or_else(|| lowest_loss(run).map(|loss| -loss)))
}

fn lowest_loss(run: &Run) -> Option<f64> {
    super::targets::best_value(run, "loss")
}

impl Tuning {
    /// What was tried, as a table.
    pub(crate) fn text(&self) -> String {
        let mut head = vec![format!("learning rates tried (seed {})", self.seed)];
        head.extend(self.grid.iter().map(|rate| format!("η {rate}")));
        head.push("chosen".into());
        let mut rows = vec![head];
        for tried in &self.variants {
            let mut row = vec![tried.label.clone()];
            let cell = |s: &Option<f64>| s.map_or("diverged".into(), |s| format!("{s:.3}"));
            row.extend(tried.scores.iter().map(cell));
            row.push(format!("η {}", tried.chosen));
            rows.push(row);
        }
        crate::format::table(&rows)
    }
}
