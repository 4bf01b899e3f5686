//! The two aggregations: device models at the edge (line 12 of Algorithm 1), group models at the cloud (lines 3–4).
//!
//! A rule that [streams](Aggregation::streams), as the mean does, adds models up as they arrive; others get all of them
//! at once. Each number of a mean is its own sum, in the same order whoever computes it: at the edge by blocks of
//! [`BLOCK`] positions and then over the blocks, at the cloud by groups.

use crate::experiment::TrainSettings;
use crate::local_steps::BLOCK;
use crate::model::Model;
use rayon::prelude::*;
use selvedge_nn::{simd::Level, vector};

/// Parameters that one task sums: small enough to share out, large enough to be worth it.
const STRETCH: usize = 256;

/// Combines many models into one.
pub trait Aggregation: Send + Sync {
    /// Whether an edge may add models up as they arrive, and divide by their number at the end. Otherwise it holds all
    /// of an interval's models at the same time: [`Task::numbers`](crate::task::Task::numbers) counts them.
    fn streams(&self) -> bool {
        false
    }

    /// Combines one or more models, each with its weight: 1 at an edge, the number of the group's devices at the cloud.
    /// On entry `out` holds the previous model; at edges whose devices send steps, and in baselines, zeros. The cloud
    /// combines θ0, θ1 and θ2 one after the other. A rule may use threads, but its result must not depend on them. An
    /// edge does not call a rule that streams.
    fn combine(&self, level: Level, models: &[(u64, &[f32])], out: &mut [f32]);
}

/// The mean, by weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean;

impl Aggregation for Mean {
    fn streams(&self) -> bool {
        true
    }

    fn combine(&self, level: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        let all: u64 = models.iter().map(|(weight, _)| weight).sum();
        let stretches = out.par_chunks_mut(STRETCH).enumerate();
        stretches.for_each(|(i, mean)| {
            mean.fill(0.0);
            for (weight, model) in models {
                let weight = (*weight as f64 / all as f64) as f32;
                let stretch = &model[i * STRETCH..][..mean.len()];
                vector::add_scaled(level, weight, stretch, mean);
            }
        });
    }
}

/// The rules of a run.
pub struct Aggregations {
    /// Of device models, at edges.
    pub edge: Box<dyn Aggregation>,
    /// Of group models, at the cloud.
    pub cloud: Box<dyn Aggregation>,
}

impl Aggregations {
    /// Those that an experiment names.
    pub fn new(_: &TrainSettings) -> Self {
        Aggregations {
            edge: Box::new(Mean),
            cloud: Box::new(Mean),
        }
    }
}

/// The models of a subset on their way to becoming one.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Their sum, where that is enough.
    sum: Vec<f32>,
    /// They themselves, where it is not.
    held: Vec<f32>,
    arrived: usize,
}

impl Gathering {
    /// Room for models of so many numbers.
    pub(crate) fn new(numbers: usize) -> Self {
        Gathering {
            sum: vec![0.0; numbers],
            held: Vec::new(),
            arrived: 0,
        }
    }

    /// Forgets what has come.
    pub(crate) fn clear(&mut self) {
        self.sum.fill(0.0);
        self.held.clear();
        self.arrived = 0;
    }

    /// Takes in those that arrived of the next positions of the subset, which begin with a block.
    pub(crate) fn add(
        &mut self,
        rule: &dyn Aggregation,
        level: Level,
        models: &[f32],
        arrived: &[bool],
    ) {
        let numbers = self.sum.len();
        self.arrived += arrived.iter().filter(|a| **a).count();
        if !rule.streams() {
            let models = models.chunks_exact(numbers.max(1)).zip(arrived);
            let there = models.filter(|(_, arrived)| **arrived);
            there.for_each(|(model, _)| self.held.extend_from_slice(model));
            return;
        }
        let stretches = self.sum.par_chunks_mut(STRETCH).enumerate();
        stretches.for_each(|(i, sum)| {
            let at = i * STRETCH;
            let mut block_sum = [0.0; STRETCH];
            let block_sum = &mut block_sum[..sum.len()];
            for first in (0..arrived.len()).step_by(BLOCK) {
                block_sum.fill(0.0);
                let last = arrived.len().min(first + BLOCK);
                for position in (first..last).filter(|p| arrived[*p]) {
                    let model = &models[position * numbers + at..][..sum.len()];
                    vector::add(level, model, block_sum);
                }
                vector::add(level, block_sum, sum);
            }
        });
    }

    /// What they have become; nothing if none arrived, or a model has no numbers. `before` is the model that there was.
    pub(crate) fn finish(
        &mut self,
        rule: &dyn Aggregation,
        level: Level,
        before: Option<&[f32]>,
    ) -> Option<&mut [f32]> {
        if self.arrived == 0 || self.sum.is_empty() {
            return None;
        }
        match rule.streams() {
            true => vector::divide(level, &mut self.sum, self.arrived as f32),
            false => {
                if let Some(before) = before {
                    self.sum.copy_from_slice(before);
                }
                let models = self.held.chunks_exact(self.sum.len());
                let models: Vec<(u64, &[f32])> = models.map(|model| (1, model)).collect();
                rule.combine(level, &models, &mut self.sum);
            }
        }
        Some(&mut self.sum)
    }
}

/// Some parts of θ become one of the models of the groups that are there, by weights K_m; with none there, θ stays.
pub(crate) fn of_groups(
    rule: &dyn Aggregation,
    level: Level,
    groups: &[(u64, &Model)],
    parts: &[usize],
    theta: &mut Model,
) {
    if groups.iter().all(|(devices, _)| *devices == 0) {
        return;
    }
    let theta = theta.parts_mut().into_iter().enumerate();
    for (part, out) in theta.filter(|(part, _)| parts.contains(part)) {
        let models: Vec<(u64, &[f32])> = groups
            .iter()
            .map(|(weight, model)| (*weight, model.parts()[part]))
            .collect();
        rule.combine(level, &models, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest of each number: needs all models at once.
    struct Largest;

    impl Aggregation for Largest {
        fn combine(&self, _: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = models.iter().fold(f32::MIN, |most, m| most.max(m.1[i]));
            }
        }
    }

    #[test]
    fn absentees_are_holes_in_the_mean() {
        let models: Vec<f32> = (0..70 * 3).map(|i| i as f32).collect();
        let mut arrived = vec![true; 70];
        let mut gathering = Gathering::new(3);
        let mut of = |rule: &dyn Aggregation, arrived: &[bool]| {
            gathering.clear();
            for (models, arrived) in models.chunks(64 * 3).zip(arrived.chunks(64)) {
                gathering.add(rule, Level::detect(), models, arrived);
            }
            let became = gathering.finish(rule, Level::detect(), None);
            became.map(|theta2| theta2.to_vec())
        };
        assert_eq!(of(&Mean, &arrived).unwrap(), [103.5, 104.5, 105.5]);
        arrived[..69].fill(false);
        assert_eq!(of(&Mean, &arrived).unwrap(), [207.0, 208.0, 209.0]);
        arrived[3] = true;
        assert_eq!(of(&Largest, &arrived).unwrap(), [207.0, 208.0, 209.0]);
        arrived[69] = false;
        assert_eq!(of(&Largest, &arrived).unwrap(), [9.0, 10.0, 11.0]);
        arrived.fill(false);
        assert_eq!(of(&Mean, &arrived), None, "nobody there: θ2 stays");
        assert_eq!(of(&Largest, &arrived), None);
    }

    #[test]
    fn towers_without_weights_gather_nothing() {
        for rule in [&Mean as &dyn Aggregation, &Largest] {
            let mut gathering = Gathering::new(0);
            gathering.add(rule, Level::detect(), &[], &[true; 3]);
            let became = gathering.finish(rule, Level::detect(), Some(&[]));
            assert_eq!(became, None);
        }
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
        let all = [0, 1, 2];
        let groups = [(3, &a), (1, &b)];
        of_groups(&Mean, Level::detect(), &groups, &all, &mut theta);
        assert_eq!(
            (theta.theta0[0], theta.theta1[0], theta.theta2[299]),
            (2.0, 4.0, 2.0)
        );
        of_groups(&Mean, Level::detect(), &[], &all, &mut theta);
        assert_eq!(theta.theta0[0], 2.0);
        of_groups(&Largest, Level::detect(), &groups, &[1], &mut theta);
        assert_eq!((theta.theta0[0], theta.theta1[0]), (2.0, 10.0));
    }
}
