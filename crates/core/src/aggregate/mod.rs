//! The two aggregations: device models at the edge (line 12 of Algorithm 1), group models at the cloud (lines 3–4).
//!
//! What is not finite, or too long, is left out first ([`checks`](crate::checks)).
//!
//! A rule that [streams](Aggregation::streams), as the mean does, adds models up as they arrive; others get all of them
//! at once. Each number of a mean is its own sum, in the same order whoever computes it: at the edge by blocks of
//! [`BLOCK`] positions and then over the blocks, at the cloud by groups.

mod robust;

pub use robust::{Clip, GeometricMedian, Krum, Median, Trimmed};

use crate::checks::{Reason, judge, squared_length};
use crate::experiment::{DefenceSettings, Rule};
use crate::local_steps::BLOCK;
use crate::model::Model;
use rayon::prelude::*;
use selvedge_nn::simd::Level;
use selvedge_nn::vector::{self, are_finite};

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
    pub fn new(settings: &DefenceSettings) -> Self {
        let of = |rule, hostile| -> Box<dyn Aggregation> {
            match rule {
                Rule::Mean => Box::new(Mean),
                Rule::Clip => Box::new(Clip),
                Rule::Median => Box::new(Median),
                Rule::Trimmed => Box::new(Trimmed(hostile)),
                Rule::GeometricMedian => Box::new(GeometricMedian),
                Rule::Krum => Box::new(Krum(hostile)),
            }
        };
        Aggregations {
            edge: of(settings.devices, settings.hostile_devices),
            cloud: of(settings.groups, settings.hostile_groups),
        }
    }
}

/// How the models of a subset become one.
#[derive(Clone, Copy)]
pub(crate) struct Gatherer<'a> {
    pub(crate) rule: &'a dyn Aggregation,
    pub(crate) level: Level,
    /// A step that is so many times longer than usual is left out; 0: none is.
    pub(crate) limit: f64,
    /// Whether anything is left out. Who does not judge again comes to the same numbers all the same.
    pub(crate) judges: bool,
}

impl Gatherer<'_> {
    /// Whether models are added up as they come.
    fn streams(&self) -> bool {
        self.rule.streams() && self.limit == 0.0
    }
}

/// The models of a subset on their way to becoming one.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Their sum, where that is enough.
    sum: Vec<f32>,
    /// They themselves, where it is not.
    held: Vec<f32>,
    /// The places of those that arrived, in the subset.
    arrived: Vec<usize>,
    /// Of each place so far, whether its model counts.
    counts: Vec<bool>,
    /// The places of those that are left out, and why.
    pub(crate) rejected: Vec<(usize, Reason)>,
}

impl Gathering {
    /// Room for models of so many numbers.
    pub(crate) fn new(numbers: usize) -> Self {
        Gathering {
            sum: vec![0.0; numbers],
            held: Vec::new(),
            arrived: Vec::new(),
            counts: Vec::new(),
            rejected: Vec::new(),
        }
    }

    /// Forgets what has come.
    pub(crate) fn clear(&mut self) {
        self.sum.fill(0.0);
        self.held.clear();
        self.arrived.clear();
        self.counts.clear();
        self.rejected.clear();
    }

    /// Takes in those that arrived of the next positions of the subset, which begin with a block.
    pub(crate) fn add(&mut self, how: Gatherer<'_>, models: &[f32], arrived: &[bool]) {
        let (numbers, first) = (self.sum.len(), self.counts.len());
        let model = |place: usize| &models[place * numbers..][..numbers];
        for (place, arrived) in arrived.iter().enumerate() {
            if *arrived {
                self.arrived.push(first + place);
            }
            let judged = *arrived && how.streams() && how.judges;
            let sound = !judged || are_finite(how.level, model(place));
            if !sound {
                self.rejected.push((first + place, Reason::NotFinite));
            }
            self.counts.push(*arrived && sound);
        }
        let there = (0..arrived.len()).filter(|place| self.counts[first + place]);
        let there = there.map(|place| (first + place, model(place)));
        match how.streams() {
            true => add_up(how.level, &there.collect::<Vec<_>>(), &mut self.sum),
            false => there.for_each(|(_, model)| self.held.extend_from_slice(model)),
        }
    }

    /// What they have become; nothing if none is left, or a model has no numbers. `before` is the model that there was;
    /// where devices send steps from it there is none.
    /// `usual` is what length is usual, squared, given the median of those that arrived.
    pub(crate) fn finish(
        &mut self,
        how: Gatherer<'_>,
        before: Option<&[f32]>,
        usual: impl FnOnce(f64) -> f64,
    ) -> Option<&mut [f32]> {
        if self.arrived.is_empty() || self.sum.is_empty() {
            return None;
        }
        match how.streams() {
            true => self.divide(how)?,
            false => self.combine(how, before, usual)?,
        }
        Some(&mut self.sum)
    }

    fn divide(&mut self, how: Gatherer<'_>) -> Option<()> {
        let (all, broken) = (self.arrived.len(), self.rejected.len());
        if 2 * broken > all {
            self.rejected.clear();
            self.sum.fill(f32::NAN);
            return Some(());
        }
        vector::divide(how.level, &mut self.sum, (all - broken) as f32);
        Some(())
    }

    fn combine(
        &mut self,
        how: Gatherer<'_>,
        before: Option<&[f32]>,
        usual: impl FnOnce(f64) -> f64,
    ) -> Option<()> {
        let models = self.held.chunks_exact(self.sum.len());
        let length = |model| (1, squared_length(model, before));
        let judged = match how.judges {
            true => {
                let lengths: Vec<(u64, f64)> = models.clone().map(length).collect();
                judge(&lengths, how.limit, usual)
            }
            false => vec![None; self.arrived.len()],
        };
        let mut kept: Vec<(usize, &[f32])> = Vec::new();
        for ((place, model), verdict) in self.arrived.iter().zip(models).zip(judged) {
            match verdict {
                None => kept.push((*place, model)),
                Some(reason) => self.rejected.push((*place, reason)),
            }
        }
        if kept.is_empty() {
            return None;
        }
        if !kept.iter().all(|(_, model)| are_finite(how.level, model)) {
            // Most are not finite.
            self.sum.fill(f32::NAN);
            return Some(());
        }
        if how.rule.streams() {
            // To the bits that there would be had they been added up as they came.
            self.sum.fill(0.0);
            add_up(how.level, &kept, &mut self.sum);
            vector::divide(how.level, &mut self.sum, kept.len() as f32);
            return Some(());
        }
        match before {
            Some(before) => self.sum.copy_from_slice(before),
            None => self.sum.fill(0.0),
        }
        let kept: Vec<(u64, &[f32])> = kept.into_iter().map(|(_, model)| (1, model)).collect();
        how.rule.combine(how.level, &kept, &mut self.sum);
        Some(())
    }
}

/// Adds up models, each with its place in the subset: by blocks of places, and then over the blocks.
fn add_up(level: Level, models: &[(usize, &[f32])], sum: &mut [f32]) {
    let stretches = sum.par_chunks_mut(STRETCH).enumerate();
    stretches.for_each(|(i, sum)| {
        let mut block_sum = [0.0; STRETCH];
        let block_sum = &mut block_sum[..sum.len()];
        for block in models.chunk_by(|a, b| a.0 / BLOCK == b.0 / BLOCK) {
            block_sum.fill(0.0);
            for (_, model) in block {
                let stretch = &model[i * STRETCH..][..block_sum.len()];
                vector::add(level, stretch, block_sum);
            }
            vector::add(level, block_sum, sum);
        }
    });
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

    fn by(rule: &dyn Aggregation) -> Gatherer<'_> {
        let level = Level::detect();
        Gatherer {
            rule,
            level,
            limit: 0.0,
            judges: true,
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
                gathering.add(by(rule), models, arrived);
            }
            gathering
                .finish(by(rule), None, |m| m)
                .map(|theta2| theta2.to_vec())
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
    fn a_mean_of_models_that_are_held_has_the_bits_of_one_that_is_added_up() {
        let (all, numbers) = (150, 300);
        let mut stream = selvedge_nn::random::Key::new(3).stream();
        let models: Vec<f32> = (0..all * numbers).map(|_| stream.normal()).collect();
        let arrived: Vec<bool> = (0..all).map(|place| place % 7 != 2).collect();
        let mean = |limit| {
            let how = Gatherer { limit, ..by(&Mean) };
            let mut gathering = Gathering::new(numbers);
            let parts = models.chunks(64 * numbers).zip(arrived.chunks(64));
            parts.for_each(|(models, arrived)| gathering.add(how, models, arrived));
            let mean = gathering.finish(how, None, |m| m).unwrap();
            mean.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        assert!(mean(0.0) == mean(1e9), "nothing is left out");
    }

    #[test]
    fn towers_without_weights_gather_nothing() {
        for rule in [&Mean as &dyn Aggregation, &Largest] {
            let mut gathering = Gathering::new(0);
            gathering.add(by(rule), &[], &[true; 3]);
            let became = gathering.finish(by(rule), Some(&[]), |m| m);
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
