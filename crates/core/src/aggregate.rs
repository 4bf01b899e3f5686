//! The two aggregations: device models at the edge (line 12 of Algorithm 1), group models at the cloud
//! (lines 3–4).
//!
//! Each number of the result is its own sum, in the same order whoever computes it: at the edge by blocks of
//! [`BLOCK`] positions and then over the blocks, at the cloud by groups.

use crate::local_steps::BLOCK;
use crate::model::Model;
use rayon::prelude::*;
use selvedge_nn::{simd::Level, vector};

/// Parameters that one task sums: small enough to share out, large enough to be worth it.
const STRETCH: usize = 256;

/// θ2 of a group = the mean of the models that arrived, one row of `models` per position of the subset. If
/// none did, θ2 stays.
pub fn local_mean(level: Level, models: &[f32], arrived: &[bool], theta2: &mut [f32]) {
    let mut sum = vec![0.0; theta2.len()];
    add_models(level, models, arrived, &mut sum);
    finish_mean(level, &sum, arrived, theta2);
}

/// Adds the models that arrived: the next positions of the subset, from the start of a block.
pub(crate) fn add_models(level: Level, models: &[f32], arrived: &[bool], sum: &mut [f32]) {
    let n2 = sum.len();
    sum.par_chunks_mut(STRETCH)
        .enumerate()
        .for_each(|(i, sum)| {
            let at = i * STRETCH;
            let mut block_sum = [0.0; STRETCH];
            let block_sum = &mut block_sum[..sum.len()];
            for first in (0..arrived.len()).step_by(BLOCK) {
                block_sum.fill(0.0);
                let last = arrived.len().min(first + BLOCK);
                for position in (first..last).filter(|p| arrived[*p]) {
                    vector::add(level, &models[position * n2 + at..][..sum.len()], block_sum);
                }
                vector::add(level, block_sum, sum);
            }
        });
}

/// θ2 = the sum over how many arrived; it stays if none did.
pub(crate) fn finish_mean(level: Level, sum: &[f32], arrived: &[bool], theta2: &mut [f32]) {
    let count = arrived.iter().filter(|a| **a).count();
    if count > 0 {
        theta2.copy_from_slice(sum);
        vector::divide(level, theta2, count as f32);
    }
}

/// θ = Σ_m (K_m/K) `θ[m]` over the groups that are there, K being the devices of those. If none is there, θ stays.
pub fn global_mean(level: Level, groups: &[(u64, &Model)], theta: &mut Model) {
    global_mean_of(level, groups, &[0, 1, 2], theta);
}

/// The same for some parts of θ; the others stay.
pub(crate) fn global_mean_of(
    level: Level,
    groups: &[(u64, &Model)],
    parts: &[usize],
    theta: &mut Model,
) {
    let devices: u64 = groups.iter().map(|g| g.0).sum();
    if devices == 0 {
        return;
    }
    let theta = theta.parts_mut().into_iter().enumerate();
    for (part, mean) in theta.filter(|(part, _)| parts.contains(part)) {
        mean.par_chunks_mut(STRETCH)
            .enumerate()
            .for_each(|(i, mean)| {
                mean.fill(0.0);
                for (weight, model) in groups {
                    let weight = (*weight as f64 / devices as f64) as f32;
                    let stretch = &model.parts()[part][i * STRETCH..][..mean.len()];
                    vector::add_scaled(level, weight, stretch, mean);
                }
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absentees_are_holes_in_the_mean() {
        let models: Vec<f32> = (0..70 * 3).map(|i| i as f32).collect();
        let mut arrived = vec![true; 70];
        let mut theta2 = vec![9.0; 3];
        local_mean(Level::detect(), &models, &arrived, &mut theta2);
        assert_eq!(theta2, [103.5, 104.5, 105.5]);
        arrived[..69].fill(false);
        local_mean(Level::detect(), &models, &arrived, &mut theta2);
        assert_eq!(theta2, [207.0, 208.0, 209.0]);
        arrived.fill(false);
        local_mean(Level::detect(), &models, &arrived, &mut theta2);
        assert_eq!(theta2, [207.0, 208.0, 209.0], "nobody there: θ2 stays");
    }

    #[test]
    fn groups_count_by_their_devices() {
        let model = |x: f32| Model {
            theta0: vec![x],
            theta1: vec![2.0 * x],
            theta2: vec![x; 300],
        };
        let (a, b) = (model(1.0), model(5.0));
        let mut theta = model(0.0);
        global_mean(Level::detect(), &[(3, &a), (1, &b)], &mut theta);
        assert_eq!(
            (theta.theta0[0], theta.theta1[0], theta.theta2[299]),
            (2.0, 4.0, 2.0)
        );
        global_mean(Level::detect(), &[], &mut theta);
        assert_eq!(theta.theta0[0], 2.0);
    }
}
