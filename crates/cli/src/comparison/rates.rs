//! A fair learning rate for each variant: all try the same few, on a seed that is not among those compared, and each takes
//! the one that served it best.

use super::{Comparison, Options, Variant, run_all};
use crate::Outcome;
use crate::runs::Run;
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

/// How the change of a learning rate begins.
pub(super) const KEY: &str = "train.learning_rate=";

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
            let run = folder.join(&rate.folder).join(format!("seed-{seed}"));
            scores.push(score(&run)?);
        }
        // Of equals the smallest rate.
        let best = scores
            .iter()
            .zip(grid)
            .filter_map(|(s, rate)| s.map(|s| (s, *rate)));
        let best = best.reduce(|a, b| if b.0 > a.0 { b } else { a });
        let chosen = best.map_or(grid[0], |(_, rate)| rate);
        variant.set.push(change(chosen));
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

/// Written out, the digits of a huge number would be those of a whole one, which it is too large for.
fn text(rate: f64) -> String {
    match rate < 1e15 {
        true => rate.to_string(),
        false => format!("{rate:e}"),
    }
}

fn change(rate: f64) -> String {
    format!("{KEY}{}", text(rate))
}

fn with_rate(variant: &Variant, rate: f64) -> Variant {
    let mut set = variant.set.clone();
    set.push(change(rate));
    Variant::new(format!("{} eta={}", variant.label, text(rate)), set)
}

/// How good a run is.
fn score(path: &Path) -> Result<Option<f64>> {
    let run = Run::read(path)?;
    let ending = run.manifest.ending.as_ref();
    if ending.is_some_and(|e| e.kind == "diverged") {
        return Ok(None);
    }
    let validated = run.best().and_then(|e| e.validation.as_ref());
    let auc = validated.map(|v| v.auc_validation.unwrap_or(v.accuracy_validation));
    Ok(auc.or_else(|| lowest_loss(&run).map(|loss| -loss)))
}

fn lowest_loss(run: &Run) -> Option<f64> {
    super::targets::best_value(run, "loss")
}

impl Tuning {
    /// Together with what was tried before, of the same grid.
    pub(super) fn join(mut self, before: Tuning) -> Tuning {
        let is_new = |tried: &Tried| !self.variants.iter().any(|t| t.label == tried.label);
        let more: Vec<Tried> = before.variants.into_iter().filter(is_new).collect();
        self.variants.extend(more);
        self
    }

    /// What was tried, as a table.
    pub(crate) fn text(&self) -> String {
        let mut head = vec![format!("learning rates tried (seed {})", self.seed)];
        head.extend(self.grid.iter().map(|rate| format!("η {}", text(*rate))));
        head.push("chosen".into());
        let mut rows = vec![head];
        for tried in &self.variants {
            let mut row = vec![tried.label.clone()];
            let cell = |s: &Option<f64>| s.map_or("diverged".into(), |s| format!("{s:.3}"));
            row.extend(tried.scores.iter().map(cell));
            row.push(format!("η {}", text(tried.chosen)));
            rows.push(row);
        }
        crate::format::table(&rows)
    }
}
