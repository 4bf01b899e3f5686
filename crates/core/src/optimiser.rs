//! The optimiser: how a gradient becomes a step, and what is remembered for the next one.
//!
//! | who | steps on | along | remembers |
//! | --- | --- | --- | --- |
//! | hospital | θ0, θ1 | the mean gradient of its batch | [`Memories::groups`], in its record |
//! | edge | θ2 | from θ2 to what its devices' models aggregate to | [`Memories::groups`], in its record |
//! | cloud | θ | from θ to what the groups' models aggregate to | [`Memories::cloud`], in its record |
//!
//! Edge and cloud step along a *pseudo-gradient*, the difference between the model that they had and the aggregated
//! one, with a rate of 1 unless the experiment says otherwise; one that is [plain](Optimiser::is_plain) takes the
//! aggregated model as it is, to the bit.
//!
//! Devices remember nothing from interval to interval: which of them take part is drawn anew, and a memory that is as old
//! as the last time would be of another model. So they step by plain descent, which is fused into the kernels.
//!
//! A memory is per part of the model and starts at zeros. Adam's ends with what its two moving averages would be of
//! ones: dividing by that corrects their bias to zero, so that no count of steps is needed.
//!
//! Of the baselines, fedavg, tdcd and centralised step at hospital and edge like hsgd, hospital-only at its hospital;
//! jfl and device-only by plain descent. The cloud steps wherever groups are averaged, so not in tdcd and centralised.

use crate::experiment::{Method, OptimiserSettings};
use crate::model::{Model, Widths};
use selvedge_nn::simd::Level;
use selvedge_nn::vector::{self, Slope};

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

    /// Whether its steps are as short as gradients are. Pseudo-gradients shrink with the learning rate; where steps do
    /// not shrink with them, their rate is to.
    fn is_proportional(&self) -> bool {
        true
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

/// Heavy-ball momentum: `velocity = keep · velocity + gradient`, `params −= rate · velocity`.
#[derive(Clone, Copy, Debug)]
pub struct Momentum {
    /// The share of its velocity that it keeps.
    pub keep: f32,
}

impl Optimiser for Momentum {
    fn remembers(&self, parameters: usize) -> usize {
        parameters
    }

    fn step(&self, level: Level, step: Step<'_>, memory: &mut [f32]) {
        let slope = step.slope(step.decay);
        vector::push(level, (step.params, memory), slope, step.rate, self.keep);
    }
}

/// Adam: moving averages of the gradient and of its square.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// β1 and β2
    pub betas: [f64; 2],
    /// ε
    pub epsilon: f32,
    /// Whether weight decay acts on the weights themselves (AdamW), or is part of the gradient.
    pub decoupled: bool,
}

impl Optimiser for Adam {
    fn remembers(&self, parameters: usize) -> usize {
        match parameters {
            0 => 0,
            n => 2 * n + 2,
        }
    }

    fn is_proportional(&self) -> bool {
        false
    }

    fn step(&self, level: Level, step: Step<'_>, memory: &mut [f32]) {
        let (averages, ones) = memory.split_at_mut(2 * step.params.len());
        let (mean, square) = averages.split_at_mut(step.params.len());
        let [ones1, ones2] = ones else { return };
        let keeps = self.betas.map(|beta| beta as f32);
        let takes = self.betas.map(|beta| (1.0 - beta) as f32);
        *ones1 = keeps[0].mul_add(*ones1, takes[0]);
        *ones2 = keeps[1].mul_add(*ones2, takes[1]);
        let (decay, keep) = match self.decoupled {
            true => (0.0, 1.0 - step.rate * step.decay),
            false => (step.decay, 1.0),
        };
        let numbers = vector::Adam {
            keeps,
            takes,
            ones: [*ones1, *ones2],
            epsilon: self.epsilon,
            rate: step.rate,
            keep,
        };
        let slope = step.slope(decay);
        vector::adapt(level, step.params, [mean, square], slope, numbers);
    }
}

impl<'a> Step<'a> {
    /// The mean gradient, with a regulariser.
    fn slope(&self, decay: f32) -> Slope<'a> {
        Slope {
            gradient: self.gradient,
            scale: 1.0 / self.count,
            decay,
        }
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
    pub fn new(settings: &OptimiserSettings) -> Self {
        let adam = |decoupled| Adam {
            betas: [settings.beta1, settings.beta2],
            epsilon: settings.epsilon as f32,
            decoupled,
        };
        let of = |method| -> Box<dyn Optimiser> {
            match method {
                Method::Sgd => Box::new(Sgd),
                Method::Momentum => Box::new(Momentum {
                    keep: settings.momentum as f32,
                }),
                Method::Adam => Box::new(adam(false)),
                Method::AdamW => Box::new(adam(true)),
            }
        };
        Optimisers {
            hospital: of(settings.hospital),
            edge: of(settings.edge.into()),
            cloud: of(settings.cloud.into()),
        }
    }

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

/// How edges or the cloud move from a model to the aggregate of others.
#[derive(Clone, Copy)]
pub(crate) struct Mover<'a> {
    pub(crate) optimiser: &'a dyn Optimiser,
    /// The learning rate, and the share of it that is left.
    pub(crate) rate: (f64, f64),
    pub(crate) level: Level,
}

impl Mover<'_> {
    /// Whether the aggregate is taken as it is.
    pub(crate) fn adopts(&self) -> bool {
        self.optimiser.is_plain() && self.rate.0 == 1.0
    }

    /// Moves towards an aggregate, of which nothing is left.
    pub(crate) fn move_on(&self, params: &mut [f32], aggregate: &mut [f32], memory: &mut [f32]) {
        if self.adopts() {
            return params.copy_from_slice(aggregate);
        }
        for (number, before) in aggregate.iter_mut().zip(&*params) {
            *number = before - *number;
        }
        let rate = match self.optimiser.is_proportional() {
            true => self.rate.0,
            false => self.rate.0 * self.rate.1,
        };
        let step = Step {
            params,
            gradient: aggregate,
            count: 1.0,
            rate: rate as f32,
            decay: 0.0,
        };
        self.optimiser.step(self.level, step, memory);
    }
}
