//! A fair learning rate for each variant: all try the same few, on a seed that is not among those compared, and each
//! takes the one that serves it best: that which soonest comes near the best that any of them reaches. The best alone
//! would not do: late in a run rates differ by chance, and a small one that wins by a hair takes several times as long.

use super::{Options, run_all};
use crate::Outcome;
use anyhow::{Context, Result};
use selvedge_core::state::Evaluation;
use selvedge_run::comparison::{Comparison, RATE, Tried, Tuning, Variant};
use selvedge_run::files::of_seed;
use selvedge_run::format::{self, count};
use selvedge_run::runs::Run;
use std::path::Path;

/// How far from the best is near: a share of the AUC, and of the loss.
const NEAR_AUC: f64 = 0.01;
const NEAR_LOSS: f64 = 0.05;

/// Seeds from here on up from an experiment's own are for tuning.
const APART: u64 = 1000;

/// A grid that widens does so at most so many times: a variant that still chooses its end, as one that does not learn
/// at all, is said to.
const WIDENINGS: usize = 6;

/// Gives each variant its best rate of a grid; with `widens`, a variant that chooses an end of what it has tried tries
/// one rate more there, until it chooses none. Nothing if it was interrupted.
pub(crate) fn choose(
    comparison: &mut Comparison,
    (grid, widens): (&[f64], bool),
    folder: &Path,
    options: &Options,
) -> Result<Option<()>> {
    let mut grids = vec![grid.to_vec(); comparison.variants.len()];
    let mut widenings = 0;
    let tried = loop {
        let Some((seed, variants)) = try_all(comparison, &grids, folder, options)? else {
            return Ok(None);
        };
        let wider = |(grid, tried): (&Vec<f64>, &Tried)| wider(grid, tried.chosen);
        let wider: Vec<_> = grids.iter().zip(&variants).map(wider).collect();
        let is_done = wider.iter().all(Option::is_none) || widenings == WIDENINGS;
        if !widens || is_done {
            break Tuning {
                seed,
                grid: grid.to_vec(),
                variants,
            };
        }
        for (grid, wider) in grids.iter_mut().zip(wider) {
            *grid = wider.unwrap_or_else(|| std::mem::take(grid));
        }
        widenings += 1;
    };
    for (variant, tried) in comparison.variants.iter_mut().zip(&tried.variants) {
        variant.set.push(change(tried.chosen));
    }
    comparison.rates = Some(tried);
    Ok(Some(()))
}

/// The grid with one rate more at the end that was chosen, as far from it as the next is.
fn wider(grid: &[f64], chosen: f64) -> Option<Vec<f64>> {
    let ([first, second, ..], [.., before, last]) = (grid, grid) else {
        return None;
    };
    // 0.05 · 0.05 / 0.1 is 0.025, not the number next to it.
    let next = |rate: f64, from: f64| {
        let next = rate * rate / from;
        format!("{next:.12e}").parse().unwrap_or(next)
    };
    let mut wider = grid.to_vec();
    match chosen {
        _ if chosen == *first => wider.insert(0, next(*first, *second)),
        _ if chosen == *last => wider.push(next(*last, *before)),
        _ => return None,
    }
    Some(wider)
}

/// Tries every rate of its grid with every variant in `folder`/tuning. Nothing if it was interrupted.
fn try_all(
    comparison: &Comparison,
    grids: &[Vec<f64>],
    folder: &Path,
    options: &Options,
) -> Result<Option<(u64, Vec<Tried>)>> {
    let folder = folder.join("tuning");
    let first = comparison.seeds.first().copied().unwrap_or_default();
    let seed = first.checked_add(APART).context("the seed is too large")?;
    let both = comparison.variants.iter().zip(grids);
    let variants: Vec<Vec<Variant>> = both
        .map(|(variant, grid)| grid.iter().map(|rate| with_rate(variant, *rate)).collect())
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
    let mut all = Vec::new();
    for ((variant, grid), rates) in comparison.variants.iter().zip(grids).zip(&variants) {
        let mut curves = Vec::new();
        for rate in rates {
            let run = of_seed(&folder.join(&rate.folder), seed);
            curves.push(scores(&Run::read(&run)?));
        }
        all.push(tried_of(&variant.label, grid, &curves));
    }
    Ok(Some((seed, all)))
}

/// Written out, the digits of a huge number would be those of a whole one, which it is too large for.
fn text(rate: f64) -> String {
    match rate < 1e15 {
        true => rate.to_string(),
        false => format!("{rate:e}"),
    }
}

fn change(rate: f64) -> String {
    format!("{RATE}{}", text(rate))
}

fn with_rate(variant: &Variant, rate: f64) -> Variant {
    let mut set = variant.set.clone();
    set.push(change(rate));
    Variant::new(format!("{} eta={}", variant.label, text(rate)), set)
}

/// How good a run is at each evaluation: its validation AUC or, where the outcome has none, validation loss, negative; its
/// training loss, negative, without validation samples. Nothing of one that diverged.
fn scores(run: &Run) -> Vec<(u64, f64)> {
    let ending = run.manifest.ending.as_ref();
    if ending.is_some_and(|e| e.kind == "diverged") {
        return Vec::new();
    }
    let score = |e: &Evaluation| match &e.validation {
        Some(v) => v.score(),
        None => -e.loss_train,
    };
    run.evaluations.iter().map(|e| (e.t, score(e))).collect()
}

/// Chooses among the rates of a grid, given how runs with them fared.
fn tried_of(label: &str, grid: &[f64], curves: &[Vec<(u64, f64)>]) -> Tried {
    let highest = |curve: &Vec<(u64, f64)>| curve.iter().map(|(_, score)| *score).reduce(f64::max);
    let scores: Vec<Option<f64>> = curves.iter().map(highest).collect();
    let best = scores.iter().flatten().copied().reduce(f64::max);
    // Negative scores are losses.
    let enough = best.map(|best| match best < 0.0 {
        true => best * (1.0 + NEAR_LOSS),
        false => best * (1.0 - NEAR_AUC),
    });
    let reached = |curve: &Vec<(u64, f64)>| {
        let found = curve.iter().find(|(_, score)| Some(*score) >= enough)?;
        Some(found.0)
    };
    let near: Vec<Option<u64>> = curves.iter().map(reached).collect();
    let soonest = (0..grid.len())
        .filter(|i| near[*i].is_some())
        .min_by(|a, b| {
            // Of equally soon ones the better.
            near[*a].cmp(&near[*b]).then(
                scores[*b]
                    .partial_cmp(&scores[*a])
                    .unwrap_or(std::cmp::Ordering::Equal),
            )
        });
    Tried {
        label: label.into(),
        rates: grid.to_vec(),
        chosen: grid[soonest.unwrap_or(0)],
        scores,
        near,
    }
}

/// What was tried, as a table.
pub(crate) fn table(tuning: &Tuning) -> String {
    format::table(&rows(tuning))
}

/// Which variants chose an end of the grid, in a sentence.
pub(crate) fn ends(tuning: &Tuning) -> Vec<String> {
    let at_an_end = |tried: &&Tried| !edge(tuning, tried).is_empty();
    let names: Vec<&str> = tuning
        .variants
        .iter()
        .filter(at_an_end)
        .map(|t| &*t.label)
        .collect();
    vec![match names[..] {
        [] => "Nothing chooses an end of the grid.".into(),
        _ => format!("At an end of the grid: {}.", names.join(", ")),
    }]
}

/// The rows of that table.
pub(crate) fn rows(tuning: &Tuning) -> Vec<Vec<String>> {
    let all = tuning.variants.iter().flat_map(|t| t.rates(tuning));
    let mut columns: Vec<f64> = all.copied().collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    let mut head = vec![format!("learning rates tried (seed {})", tuning.seed)];
    head.extend(columns.iter().map(|rate| format!("η {}", text(*rate))));
    head.push("chosen".into());
    let mut rows = vec![head];
    for tried in &tuning.variants {
        let mut row = vec![tried.label.clone()];
        let cell = |rate: &f64| {
            let i = tried.rates(tuning).iter().position(|r| r == rate);
            let Some(i) = i else {
                return String::new();
            };
            match (tried.scores[i], tried.near[i]) {
                (None, _) => "diverged".into(),
                (Some(score), None) => format!("{score:.3}"),
                (Some(score), Some(t)) => format!("{score:.3} (near best at t {})", count(t)),
            }
        };
        row.extend(columns.iter().map(cell));
        row.push(format!("η {}{}", text(tried.chosen), edge(tuning, tried)));
        rows.push(row);
    }
    rows
}

/// Says so where a choice is at the end of what was tried: a better one may lie beyond.
fn edge(tuning: &Tuning, tried: &Tried) -> &'static str {
    let rates = tried.rates(tuning);
    let is = |rate: Option<&f64>| rate == Some(&tried.chosen);
    match (rates.len() > 1, is(rates.first()), is(rates.last())) {
        (true, true, _) => ", the smallest tried",
        (true, _, true) => ", the largest tried",
        _ => "",
    }
}

/// The same in a sentence for each variant.
pub(crate) fn sentences(tuning: &Tuning) -> Vec<String> {
    let sentence = |tried: &Tried| {
        let grid = tried.rates(tuning).iter().map(|rate| text(*rate));
        let grid: Vec<String> = grid.collect();
        format!(
            "{} uses learning rate {}{}, chosen from {} on seed {}",
            tried.label,
            text(tried.chosen),
            edge(tuning, tried),
            grid.join(", "),
            tuning.seed
        )
    };
    tuning.variants.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_that_is_soonest_near_the_best_is_chosen() {
        let grid = [0.1, 0.2, 0.4];
        let slow = vec![(0, 0.5), (10, 0.7), (20, 0.8), (30, 0.905)];
        let fast = vec![(0, 0.5), (10, 0.9), (20, 0.9), (30, 0.9)];
        let bad = vec![(0, 0.5), (10, 0.85), (20, 0.6), (30, 0.6)];
        let tried = tried_of("a", &grid, &[slow.clone(), fast, bad]);
        assert_eq!(tried.near, [Some(30), Some(10), None]);
        assert_eq!((tried.chosen, tried.scores[0]), (0.2, Some(0.905)));
        // One that diverged has no say; losses count downwards.
        let losses = vec![(0, -1.0), (10, -0.5), (20, -0.4)];
        let worse = vec![(0, -1.0), (10, -0.45), (20, -0.41)];
        let tried = tried_of("b", &grid, &[losses, Vec::new(), worse]);
        assert_eq!(tried.near, [Some(20), None, Some(20)]);
        assert_eq!((tried.chosen, tried.scores[1]), (0.1, None));
        assert_eq!(tried_of("c", &grid, &[vec![], vec![], vec![]]).chosen, 0.1);
    }

    #[test]
    fn a_grid_widens_where_its_end_is_chosen() {
        let grid = [0.05, 0.1, 0.2];
        assert_eq!(wider(&grid, 0.1), None);
        assert_eq!(wider(&grid, 0.2), Some(vec![0.05, 0.1, 0.2, 0.4]));
        assert_eq!(wider(&grid, 0.05), Some(vec![0.025, 0.05, 0.1, 0.2]));
        assert_eq!(wider(&[0.1], 0.1), None, "one rate has no next");
    }
}
