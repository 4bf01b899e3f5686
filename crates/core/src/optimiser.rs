//! The optimiser: how a gradient becomes a step, and what is remembered for the next one.
//!
//! | who | steps on | along | remembers |
//! | --- | --- | --- | --- |
//! | hospital | θ0, θ1 | the mean gradient of its batch | [`Memories::groups`], in its record |
//! | edge | θ2 | from θ2 to what its devices' models aggregate to | [`Memories::groups`], in its record |
//! | cloud | θ | from θ to what the groups' models aggregate to | [`Memories::cloud`], in its record |
//!
//! Edge and cloud step along a *pseudo-gradient*, the difference between the model that they had and the aggregated
//! one, with a rate of 1; one that is [plain](Optimiser::is_plain) takes the aggregated model as it is, to the bit.
//! Devices remember nothing from interval to interval, and step by plain descent, which is fused into the kernels.
//!
//! Of the baselines, fedavg, tdcd and centralised step at hospital and edge like hsgd, hospital-only at its hospital;
//! jfl and device-only by plain descent. The cloud steps wherever groups are averaged, so not in tdcd and centralised.

use crate::experiment::TrainSettings;
use crate::model::{Model, Widths};
use selvedge_nn::simd::Level;
use selvedge_nn::vector;

/// One step of some parameters.
#[derive(Debug)]
pub struct Step<'a> {
    /// What moves.
    pub params: &'a mut [f32],
    /// The sum of the gradients of `count` samples.
    pub gradient: &'a [f32],
    /// How many.
    pub count: f32,
    /// η
    pub rate: f32,
    /// λ of the regulariser (λ/2)‖θ‖².
    pub decay: f32,
}

/// How a gradient becomes a step.
pub trait Optimiser: Send + Sync {
    /// How many numbers it remembers from step to step for this many parameters. They begin as zeros, and are reset to
    /// zeros when a group starts over.
    fn remembers(&self, parameters: usize) -> usize;

    /// Whether a step of rate 1 along a pseudo-gradient ends at the aggregated model. It is then adopted to the bit,
    /// without rounding a difference.
    fn is_plain(&self) -> bool {
        false
    }

    /// Takes a step. Each parameter is independent of the others: results must not depend on threads.
    fn step(&self, level: Level, step: Step<'_>, memory: &mut [f32]);
}

/// Plain stochastic gradient descent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sgd;

impl Optimiser for Sgd {
    fn remembers(&self, _: usize) -> usize {
        0
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn step(&self, level: Level, step: Step<'_>, _: &mut [f32]) {
        let (length, decay) = (step.rate / step.count, step.rate * step.decay);
        vector::descend(level, step.params, step.gradient, length, decay);
    }
}

/// The optimisers of a run.
pub struct Optimisers {
    /// Of θ0 and θ1, at hospitals.
    pub hospital: Box<dyn Optimiser>,
    /// Of θ2, at edges.
    pub edge: Box<dyn Optimiser>,
    /// Of θ, at the cloud.
    pub cloud: Box<dyn Optimiser>,
}

impl Optimisers {
    /// Those that an experiment names.
    pub fn new(_: &TrainSettings) -> Self {
        Optimisers {
            hospital: Box::new(Sgd),
            edge: Box::new(Sgd),
            cloud: Box::new(Sgd),
        }
    }
}

impl Optimisers {
    /// How many numbers they remember for so many groups.
    pub(crate) fn remembered(&self, w: Widths, groups: u128) -> u128 {
        let of = |optimiser: &dyn Optimiser, numbers: usize| optimiser.remembers(numbers) as u128;
        let group = of(&*self.hospital, w.n0) + of(&*self.hospital, w.n1) + of(&*self.edge, w.n2);
        groups * group
            + [w.n0, w.n1, w.n2]
                .map(|n| of(&*self.cloud, n))
                .iter()
                .sum::<u128>()
    }
}

/// What the optimisers of a run remember. Empty where they remember nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memories {
    /// Of each group: its hospital's of θ0 and θ1, its edge's of θ2.
    pub groups: Vec<Model>,
    /// The cloud's.
    pub cloud: Model,
}

impl Memories {
    /// Nothing to remember yet.
    pub fn new(optimisers: &Optimisers, w: Widths, groups: usize) -> Self {
        let zeros = |of: [&dyn Optimiser; 3]| Model {
            theta0: vec![0.0; of[0].remembers(w.n0)],
            theta1: vec![0.0; of[1].remembers(w.n1)],
            theta2: vec![0.0; of[2].remembers(w.n2)],
        };
        let Optimisers {
            hospital,
            edge,
            cloud,
        } = optimisers;
        Memories {
            groups: vec![zeros([&**hospital, &**hospital, &**edge]); groups],
            cloud: zeros([&**cloud; 3]),
        }
    }

    /// Whether anything is remembered at all.
    pub fn is_any(&self) -> bool {
        let of = |model: &Model| *model != Model::default();
        of(&self.cloud) || self.groups.iter().any(of)
    }

    /// A group was absent: it begins anew.
    pub(crate) fn forget(&mut self, group: usize) {
        let memory = self.groups[group].parts_mut();
        memory.into_iter().for_each(|part| part.fill(0.0));
    }
}

/// Steps from a model towards an aggregated one, which becomes the result.
pub(crate) fn move_on(
    optimiser: &dyn Optimiser,
    level: Level,
    before: &[f32],
    aggregated: &mut [f32],
    memory: &mut [f32],
) {
    if optimiser.is_plain() {
        return;
    }
    let gradient: Vec<f32> = before
        .iter()
        .zip(&*aggregated)
        .map(|(a, b)| a - b)
        .collect();
    aggregated.copy_from_slice(before);
    let step = Step {
        params: aggregated,
        gradient: &gradient,
        count: 1.0,
        rate: 1.0,
        decay: 0.0,
    };
    optimiser.step(level, step, memory);
}
