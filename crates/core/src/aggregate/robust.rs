//! Rules that a minority of hostile models cannot carry away. All of them need every model at once.
//!
//! | rule | what a hostile model can do | time for n models of d numbers |
//! | --- | --- | --- |
//! | clip | pull by its share of the median step, in any direction | n·d |
//! | trimmed | move each number within what honest models say | n·log n·d |
//! | median | the same; honest minorities are not heard | n·log n·d |
//! | geometric median | pull by about its share of the usual step | 10·n·d |
//! | Krum | nothing, unless it looks like most; honest outliers are not heard | n²·d |
//!
//! Each counts models by weight, and works on steps from the model before.

use super::{Aggregation, Mean, STRETCH};
use crate::checks::squared_length;
use rayon::prelude::*;
use selvedge_nn::simd::Level;
use selvedge_nn::vector;

/// Rounds in which the geometric median is approached.
const ROUNDS: usize = 10;

/// The mean of the steps, none longer than the median of their lengths.
#[derive(Clone, Copy, Debug)]
pub struct Clip;

impl Aggregation for Clip {
    fn combine(&self, level: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        let before = out.to_vec();
        let lengths = lengths(models, &before);
        let weighted: Vec<(u64, f64)> = weights(models).zip(lengths.iter().copied()).collect();
        let most = median(weighted);
        let shares = lengths.iter().map(|length| match *length > most {
            true => most / length,
            false => 1.0,
        });
        move_by(level, (models, shares), &before, out);
    }
}

/// Each number is the median of that number.
#[derive(Clone, Copy, Debug)]
pub struct Median;

impl Aggregation for Median {
    fn combine(&self, _: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        number_by_number(models, out, |sorted| {
            let all: u64 = sorted.iter().map(|(weight, _)| weight).sum();
            let mut below = 0;
            for (place, (weight, number)) in sorted.iter().enumerate() {
                below += weight;
                if 2 * below == all {
                    // Between two, as far from one as from the other.
                    return (number + sorted[place + 1].1) / 2.0;
                }
                if 2 * below > all {
                    return *number;
                }
            }
            f64::NAN
        });
    }
}

/// Each number is the mean of that number without this share of the weight at either end.
#[derive(Clone, Copy, Debug)]
pub struct Trimmed(pub f64);

impl Aggregation for Trimmed {
    fn combine(&self, _: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        number_by_number(models, out, |sorted| {
            let all: f64 = sorted.iter().map(|(weight, _)| *weight as f64).sum();
            let (first, last) = (self.0 * all, (1.0 - self.0) * all);
            let (mut at, mut sum) = (0.0, 0.0);
            for (weight, number) in sorted {
                let end = at + *weight as f64;
                let counts = end.min(last) - f64::max(at, first);
                if counts > 0.0 {
                    sum += counts * number;
                }
                at = end;
            }
            sum / (last - first)
        });
    }
}

/// The point with the smallest sum of distances to all models, nearly: Weiszfeld's steps from the clipped mean.
#[derive(Clone, Copy, Debug)]
pub struct GeometricMedian;

impl Aggregation for GeometricMedian {
    fn combine(&self, level: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        let before = out.to_vec();
        let usual = median(weights(models).zip(lengths(models, &before)).collect());
        Clip.combine(level, models, out);
        for _ in 0..ROUNDS {
            let here = out.to_vec();
            // Who is as near as this counts in full: no model stands for itself alone.
            let nearest = f64::max(0.1 * usual, f64::MIN_POSITIVE);
            let far = lengths(models, &here);
            let pulls = far.iter().map(|length| 1.0 / length.max(nearest));
            let pulls: Vec<f64> = pulls
                .zip(weights(models))
                .map(|(pull, w)| pull * w as f64)
                .collect();
            let all: f64 = pulls.iter().sum();
            out.copy_from_slice(&here);
            for (pull, (_, model)) in pulls.iter().zip(models) {
                add_step(level, (pull / all) as f32, model, &here, out);
            }
        }
    }
}

/// Multi-Krum: the mean of the models that are nearest to their neighbours, without this share of all.
#[derive(Clone, Copy, Debug)]
pub struct Krum(pub f64);

impl Aggregation for Krum {
    fn combine(&self, level: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        let n = models.len();
        let hostile = (self.0 * n as f64).ceil() as usize;
        let neighbours = n.saturating_sub(hostile + 2).max(1);
        let score = |i: usize| {
            let others = (0..n).filter(|j| *j != i);
            let mut far: Vec<f64> = others
                .map(|j| squared_length(models[i].1, Some(models[j].1)))
                .collect();
            far.sort_unstable_by(f64::total_cmp);
            far.iter().take(neighbours).sum::<f64>()
        };
        let mut order: Vec<(f64, usize)> = (0..n).into_par_iter().map(|i| (score(i), i)).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let kept = n.saturating_sub(hostile).max(1);
        let mut chosen: Vec<usize> = order[..kept].iter().map(|(_, i)| *i).collect();
        chosen.sort_unstable();
        let chosen: Vec<(u64, &[f32])> = chosen.into_iter().map(|i| models[i]).collect();
        Mean.combine(level, &chosen, out);
    }
}

fn weights<'a>(models: &'a [(u64, &[f32])]) -> impl Iterator<Item = u64> + 'a {
    models.iter().map(|(weight, _)| *weight)
}

/// How far the models are from a point.
fn lengths(models: &[(u64, &[f32])], from: &[f32]) -> Vec<f64> {
    let length = |(_, model): &(u64, &[f32])| libm::sqrt(squared_length(model, Some(from)));
    models.par_iter().map(length).collect()
}

/// The number that half of the weight does not exceed.
fn median(mut weighted: Vec<(u64, f64)>) -> f64 {
    weighted.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
    let all: u64 = weighted.iter().map(|(weight, _)| weight).sum();
    let mut below = 0;
    let half = weighted.iter().find(|(weight, _)| {
        below += weight;
        2 * below >= all
    });
    half.map_or(0.0, |(_, number)| *number)
}

/// `out` moves on from `before` by the mean of the steps, each of which counts by its share.
fn move_by(
    level: Level,
    (models, shares): (&[(u64, &[f32])], impl Iterator<Item = f64>),
    before: &[f32],
    out: &mut [f32],
) {
    let all: u64 = weights(models).sum();
    out.copy_from_slice(before);
    for ((weight, model), share) in models.iter().zip(shares) {
        let factor = share * *weight as f64 / all as f64;
        add_step(level, factor as f32, model, before, out);
    }
}

/// `out += factor · (model − before)`
fn add_step(level: Level, factor: f32, model: &[f32], before: &[f32], out: &mut [f32]) {
    vector::add_scaled(level, factor, model, out);
    vector::add_scaled(level, -factor, before, out);
}

/// Each number from all models' numbers of that place, with their weights, sorted.
fn number_by_number(
    models: &[(u64, &[f32])],
    out: &mut [f32],
    one: impl Fn(&[(u64, f64)]) -> f64 + Sync,
) {
    out.par_chunks_mut(STRETCH)
        .enumerate()
        .for_each(|(i, out)| {
            let mut sorted = Vec::with_capacity(models.len());
            for (j, out) in out.iter_mut().enumerate() {
                let number =
                    |(weight, model): &(u64, &[f32])| (*weight, f64::from(model[i * STRETCH + j]));
                sorted.clear();
                sorted.extend(models.iter().map(number));
                sorted.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
                *out = one(&sorted) as f32;
            }
        });
}
