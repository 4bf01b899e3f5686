//! The gradient steps between two exchanges (lines 22–26 of Algorithm 1).
//!
//! The hospital steps on θ0 and θ1 with ζ2 held still; each device steps on its own θ2 with θ0 and ζ1 held still.
//! Nothing crosses parties, so each takes its Q steps at once.
//!
//! The hospital's gradient is a sum over the subset in blocks of [`BLOCK`] positions, then over the blocks in order; an
//! absent device leaves a hole. Threads take whole blocks, so their number changes no bit.

use crate::checks::squared_length;
use crate::dataset::Samples;
use crate::exchange::Frozen;
use crate::experiment::Side;
use crate::model::Architecture;
use crate::objective::{Objective, Targets};
use crate::optimiser::{Optimiser, Step};
use crate::schedule::{Schedule, Segment};
use rayon::prelude::*;
use selvedge_nn::{Network, Update, vector};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Positions of the subset in one block of a sum.
pub const BLOCK: usize = 32;

/// Blocks whose gradients are held at the same time: it bounds the memory of a hospital with many selected samples, and
/// leaves enough for any number of threads.
const WAVE: usize = 64;

/// The steps of one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// Q and the learning rates.
    pub segment: Segment,
    /// The interval's first iteration.
    pub first: u64,
}

impl Steps {
    /// The learning rate of each step.
    fn rates(self, schedule: Schedule) -> impl Iterator<Item = f32> {
        let Steps { segment, first } = self;
        (first..first + segment.local_interval).map(move |t| schedule.rate(&segment, t) as f32)
    }

    /// The share of the initial learning rate that is left at the last of them.
    pub(crate) fn share(self, schedule: Schedule) -> f64 {
        let Steps { segment, first } = self;
        schedule.share(&segment, first + segment.local_interval - 1)
    }
}

/// How a step is taken.
#[derive(Clone, Copy)]
pub struct Descent<'a> {
    /// What is learnt.
    pub objective: &'a dyn Objective,
    /// How a gradient becomes a step.
    pub optimiser: &'a dyn Optimiser,
    /// How long the steps are.
    pub schedule: Schedule,
    /// λ of the regulariser (λ/2)‖θ‖² on θ1 and θ2.
    pub weight_decay: f32,
    /// The same on θ0.
    pub combined_weight_decay: f32,
    /// The norm beyond which a gradient is shortened; 0: never.
    pub clip: f64,
}

impl Descent<'_> {
    /// By what a sum of gradients is divided: how many they are, or more, so that what results is no longer than it may
    /// be.
    fn divisor(&self, count: usize, parts: &[&[f32]]) -> f32 {
        if self.clip == 0.0 {
            return count as f32;
        }
        let squares = parts.iter().map(|part| squared_length(part, None));
        (squares.sum::<f64>().sqrt() / self.clip).max(count as f64) as f32
    }
}

/// The parameters of a party that steps on θ0 and a tower, and the optimiser's memory of them.
pub struct Stepped<'a> {
    /// θ0
    pub theta0: &'a mut [f32],
    /// The tower.
    pub theta: &'a mut [f32],
    /// The memory of θ0.
    pub memory0: &'a mut [f32],
    /// The memory of the tower.
    pub memory: &'a mut [f32],
}

impl<'a> Stepped<'a> {
    /// Of an optimiser that remembers nothing.
    pub(crate) fn plain(theta0: &'a mut [f32], theta: &'a mut [f32]) -> Self {
        Stepped {
            theta0,
            theta,
            memory0: &mut [],
            memory: &mut [],
        }
    }
}

/// The samples of the selected devices, as the hospital sees them.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The hospital's rows.
    pub samples: &'a Samples,
    /// What is to be learnt of them.
    pub y: &'a Targets,
    /// The rows in the batch, device by device.
    pub rows: &'a [u32],
    /// Position `i` of the subset owns `rows[starts[i]..starts[i + 1]]`.
    pub starts: &'a [u32],
    /// Whether the device at a position sent its ζ2.
    pub present: &'a [bool],
    /// The other side's embeddings, held still: a row for each place in `rows`. Empty where nothing is known of that
    /// side: then they are zeros.
    pub other: &'a [f32],
    /// What the exchange's forward passes left at each place, if it was kept: then the first step need not compute it
    /// again. Otherwise empty.
    pub tapes: &'a [f32],
}

impl Batch<'_> {
    /// Places in `rows` that the position owns; none if its device is absent.
    pub fn places(&self, position: usize) -> std::ops::Range<usize> {
        if !self.present[position] {
            return 0..0;
        }
        self.starts[position] as usize..self.starts[position + 1] as usize
    }

    fn positions(&self) -> usize {
        self.present.len()
    }

    /// Samples of all present devices.
    pub fn len(&self) -> usize {
        (0..self.positions()).map(|p| self.places(p).len()).sum()
    }

    /// Whether nobody is present.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Buffers for passes of one sample through the combined model, and of one or two through a tower.
#[derive(Debug)]
struct Pass {
    tower: Vec<f32>,
    combined: Vec<f32>,
    embeddings: Vec<f32>,
    d_embeddings: Vec<f32>,
    d_logits: Vec<f32>,
    scratch: Vec<f32>,
}

impl Pass {
    fn new(architecture: &Architecture, tower: &Network, samples: usize) -> Self {
        let combined = &architecture.combined;
        Pass {
            tower: vec![0.0; samples * tower.tape()],
            combined: vec![0.0; combined.tape()],
            embeddings: vec![0.0; combined.input().len()],
            d_embeddings: vec![0.0; combined.input().len()],
            d_logits: vec![0.0; combined.output().len()],
            scratch: vec![0.0; tower.scratch().max(combined.scratch())],
        }
    }
}

/// Buffers of a party that steps on θ0 and a tower together.
#[derive(Debug)]
pub struct TowerWorkspace {
    prepared0: Vec<f32>,
    prepared: Vec<f32>,
    sum: Gradient,
    blocks: Vec<(Gradient, Pass)>,
}

#[derive(Debug)]
struct Gradient {
    theta0: Vec<f32>,
    tower: Vec<f32>,
    /// The sum of the losses.
    loss: f64,
}

impl Gradient {
    fn new(architecture: &Architecture, tower: &Network) -> Self {
        Gradient {
            theta0: vec![0.0; architecture.combined.params()],
            tower: vec![0.0; tower.params()],
            loss: 0.0,
        }
    }

    fn clear(&mut self) {
        self.theta0.fill(0.0);
        self.tower.fill(0.0);
        self.loss = 0.0;
    }
}

impl TowerWorkspace {
    /// Buffers for subsets of this many devices.
    pub fn new(architecture: &Architecture, side: Side, positions: usize) -> Self {
        let blocks = positions.div_ceil(BLOCK).min(WAVE);
        let tower = architecture.tower(side);
        TowerWorkspace {
            prepared0: vec![0.0; architecture.combined.prepared()],
            prepared: vec![0.0; tower.prepared()],
            sum: Gradient::new(architecture, tower),
            blocks: (0..blocks)
                .map(|_| {
                    (
                        Gradient::new(architecture, tower),
                        Pass::new(architecture, tower, 2),
                    )
                })
                .collect(),
        }
    }
}

/// What the hospital observes during an interval: the mean loss over its batch, with the devices' embeddings held
/// still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Descended {
    /// Before the first step, with fresh embeddings: a sample of F.
    pub first: f64,
    /// Before the second step, if there is one; else before the first.
    pub second: f64,
    /// Before the last step.
    pub last: f64,
    /// ‖g‖² of the first step's gradient by θ0 and θ1.
    pub slope: f64,
}

/// The hospital's Q steps on θ0 and θ1, both from one backward pass, with ζ2 held still. None if nobody is there.
pub fn hospital_steps(
    architecture: &Architecture,
    descent: Descent<'_>,
    steps: Steps,
    batch: Batch<'_>,
    stepped: Stepped<'_>,
    workspace: &mut TowerWorkspace,
) -> Option<Descended> {
    let context = (architecture, Side::Hospital);
    tower_steps(context, descent, steps, batch, stepped, workspace)
}

/// Q steps on θ0 and the tower of one side, both from one backward pass, with the other side's embeddings held still.
/// Nobody being there, nothing is seen.
pub(crate) fn tower_steps(
    (architecture, side): (&Architecture, Side),
    descent: Descent<'_>,
    steps: Steps,
    batch: Batch<'_>,
    stepped: Stepped<'_>,
    workspace: &mut TowerWorkspace,
) -> Option<Descended> {
    let Stepped {
        theta0,
        theta,
        memory0,
        memory,
    } = stepped;
    let count = batch.len();
    if count == 0 {
        return None;
    }
    let level = architecture.level();
    let TowerWorkspace {
        prepared0,
        prepared,
        sum,
        blocks,
    } = workspace;
    let wave = blocks.len();
    let mut seen = Descended::default();
    for (step, rate) in steps.rates(descent.schedule).enumerate() {
        architecture.combined.prepare(theta0, prepared0);
        architecture.tower(side).prepare(theta, prepared);
        let tower = Tower {
            architecture,
            side,
            descent,
            theta0,
            theta,
            prepared0,
            prepared,
            batch: if step == 0 {
                batch
            } else {
                Batch {
                    tapes: &[],
                    ..batch
                }
            },
        };
        let all = batch.positions().div_ceil(BLOCK);
        for first in (0..all).step_by(wave) {
            let blocks = &mut blocks[..wave.min(all - first)];
            if let [(gradient, pass)] = blocks {
                tower.block(first, gradient, pass);
            } else {
                let work = blocks.par_iter_mut().enumerate();
                work.for_each(|(i, (gradient, pass))| tower.block(first + i, gradient, pass));
            }
            if first == 0 {
                sum.clear();
            }
            for (gradient, _) in blocks.iter() {
                vector::add(level, &gradient.theta0, &mut sum.theta0);
                vector::add(level, &gradient.tower, &mut sum.tower);
                sum.loss += gradient.loss;
            }
        }
        seen.last = sum.loss / count as f64;
        match step {
            0 => {
                (seen.first, seen.second) = (seen.last, seen.last);
                let squared = squares(&sum.theta0) + squares(&sum.tower);
                seen.slope = squared / (count as f64).powi(2);
            }
            1 => seen.second = seen.last,
            _ => {}
        }
        let count = descent.divisor(count, &[&sum.theta0, &sum.tower]);
        let step = |params, gradient, decay, memory: &mut [f32]| {
            let step = Step {
                params,
                gradient,
                count,
                rate,
                decay,
            };
            descent.optimiser.step(level, step, memory);
        };
        let decay0 = descent.combined_weight_decay;
        step(theta0, &sum.theta0, decay0, memory0);
        step(theta, &sum.tower, descent.weight_decay, memory);
    }
    Some(seen)
}

fn squares(part: &[f32]) -> f64 {
    part.iter().map(|x| f64::from(*x).powi(2)).sum()
}

/// What all blocks of one step read.
struct Tower<'a> {
    architecture: &'a Architecture,
    side: Side,
    descent: Descent<'a>,
    theta0: &'a [f32],
    theta: &'a [f32],
    prepared0: &'a [f32],
    prepared: &'a [f32],
    batch: Batch<'a>,
}

impl Tower<'_> {
    /// The gradient of one block of positions.
    fn block(&self, block: usize, gradient: &mut Gradient, pass: &mut Pass) {
        gradient.clear();
        let last = self.batch.positions().min((block + 1) * BLOCK);
        let mut places = (block * BLOCK..last).flat_map(|position| self.batch.places(position));
        while let Some(first) = places.next() {
            self.samples(first, places.next(), gradient, pass);
        }
    }

    /// Adds the gradients of one or two samples.
    fn samples(
        &self,
        first: usize,
        second: Option<usize>,
        gradient: &mut Gradient,
        pass: &mut Pass,
    ) {
        let tower = self.architecture.tower(self.side);
        if !self.batch.tapes.is_empty() {
            for place in [Some(first), second].into_iter().flatten() {
                let tape = &self.batch.tapes[place * tower.tape()..][..tower.tape()];
                self.sample(place, tape, gradient, pass);
            }
            return;
        }
        // The tapes are taken out, since the rest of the pass is needed beside them.
        let mut tapes = std::mem::take(&mut pass.tower);
        let (tape, other) = tapes.split_at_mut(tower.tape());
        match second {
            Some(second) => {
                let inputs = [self.features(first), self.features(second)];
                tower.forward_both(self.theta, inputs, [&mut *tape, &mut *other]);
                self.sample(first, tape, gradient, pass);
                self.sample(second, other, gradient, pass);
            }
            None => {
                tower.forward(self.theta, self.features(first), tape);
                self.sample(first, tape, gradient, pass);
            }
        }
        pass.tower = tapes;
    }

    /// What this side holds of the sample at a place.
    fn features(&self, place: usize) -> &[f32] {
        let inputs = self.architecture.tower(self.side).input().len();
        let x = match self.side {
            Side::Hospital => &self.batch.samples.x1,
            Side::Device => &self.batch.samples.x2,
        };
        &x[self.batch.rows[place] as usize * inputs..][..inputs]
    }

    /// Adds the gradient of one sample, given the tape of its forward pass.
    fn sample(&self, place: usize, tape: &[f32], gradient: &mut Gradient, pass: &mut Pass) {
        let combined = &self.architecture.combined;
        let tower = self.architecture.tower(self.side);
        let target = self.batch.y.at(self.batch.rows[place] as usize);
        let (own, others) = self.architecture.places(self.side);

        pass.embeddings[own.clone()].copy_from_slice(tower.result(tape));
        let others = &mut pass.embeddings[others];
        match self.batch.other {
            [] => others.fill(0.0),
            zeta => others.copy_from_slice(&zeta[place * others.len()..][..others.len()]),
        }
        let logits = combined.forward(self.theta0, &pass.embeddings, &mut pass.combined);
        let (objective, level) = (self.descent.objective, self.architecture.level());
        gradient.loss += objective.loss(level, logits, target, true, &mut pass.d_logits);
        combined.backward(
            self.prepared0,
            &pass.embeddings,
            &pass.combined,
            &pass.d_logits,
            Update::Accumulate(&mut gradient.theta0),
            &mut pass.scratch,
            Some(&mut pass.d_embeddings),
        );
        tower.backward(
            self.prepared,
            self.features(place),
            tape,
            &pass.d_embeddings[own],
            Update::Accumulate(&mut gradient.tower),
            &mut pass.scratch,
            None,
        );
    }
}

/// The tape of a place, if tapes were kept.
pub(crate) fn kept(tapes: &[f32], place: usize, len: usize) -> Option<&[f32]> {
    tapes
        .get(place * len..(place + 1) * len)
        .filter(|tape| !tape.is_empty())
}

/// A device's buffers; any number of devices can use them one after the other.
#[derive(Debug)]
pub struct DeviceWorkspace {
    prepared2: Vec<f32>,
    gradient: Vec<f32>,
    pass: Pass,
}

impl DeviceWorkspace {
    /// Buffers for any device.
    pub fn new(architecture: &Architecture) -> Self {
        DeviceWorkspace {
            prepared2: vec![0.0; architecture.device.prepared()],
            gradient: vec![0.0; architecture.device.params()],
            pass: Pass::new(architecture, &architecture.device, 1),
        }
    }
}

/// What a device owns, and the ζ1 it was sent for it: rows of the same samples.
#[derive(Clone, Debug)]
pub struct Owned<'a> {
    /// The device's features.
    pub x2: &'a [f32],
    /// What is to be learnt of them: these rows of it.
    pub y: (&'a Targets, Range<usize>),
    /// The hospital's embeddings of the same samples.
    pub zeta1: &'a [f32],
    /// What the exchange's forward passes left for each sample, if it was kept; else empty.
    pub tapes: &'a [f32],
}

/// A device's Q steps from its group's θ2 to its own, with θ0 and ζ1 held still. The gradient is the mean over its own
/// samples.
pub fn device_steps(
    architecture: &Architecture,
    descent: Descent<'_>,
    steps: Steps,
    owned: Owned<'_>,
    frozen: &Frozen,
    (theirs, own): (&[f32], &mut [f32]),
    workspace: &mut DeviceWorkspace,
) {
    let Architecture {
        hospital,
        combined,
        device,
        ..
    } = architecture;
    let (d1, inputs) = (hospital.output().len(), device.input().len());
    let level = architecture.level();
    let DeviceWorkspace {
        prepared2,
        gradient,
        pass,
    } = workspace;
    for (step, rate) in steps.rates(descent.schedule).enumerate() {
        let first = step == 0;
        let prepared2 = if first {
            &frozen.prepared2
        } else {
            device.prepare(own, prepared2);
            &*prepared2
        };
        let samples = owned.y.1.len();
        let decay = rate * descent.weight_decay;
        // One sample's gradient needs no place of its own: the weights step as it comes.
        let fused = samples == 1 && descent.clip == 0.0;
        if !fused {
            gradient.fill(0.0);
            if first {
                own.copy_from_slice(theirs);
            }
        }
        for (i, row) in owned.y.1.clone().enumerate() {
            let x2 = &owned.x2[i * inputs..][..inputs];
            let tapes = if first { owned.tapes } else { &[] };
            let tape = kept(tapes, i, device.tape()).unwrap_or_else(|| {
                device.forward(if first { theirs } else { own }, x2, &mut pass.tower);
                &pass.tower
            });
            pass.embeddings[..d1].copy_from_slice(&owned.zeta1[i * d1..][..d1]);
            pass.embeddings[d1..].copy_from_slice(device.result(tape));
            let logits = combined.forward(&frozen.theta0, &pass.embeddings, &mut pass.combined);
            let target = owned.y.0.at(row);
            (descent.objective).loss(level, logits, target, true, &mut pass.d_logits);
            combined.backward(
                &frozen.prepared0,
                &pass.embeddings,
                &pass.combined,
                &pass.d_logits,
                Update::Frozen,
                &mut pass.scratch,
                Some(&mut pass.d_embeddings),
            );
            let update = match fused {
                true => Update::Descend {
                    from: first.then_some(theirs),
                    params: own,
                    step: rate,
                    decay,
                },
                false => Update::Accumulate(gradient),
            };
            let d_zeta2 = &pass.d_embeddings[d1..];
            device.backward(
                prepared2,
                x2,
                tape,
                d_zeta2,
                update,
                &mut pass.scratch,
                None,
            );
        }
        if !fused {
            let length = rate / descent.divisor(samples, &[gradient]);
            vector::descend(level, own, gradient, length, decay);
        }
    }
}
