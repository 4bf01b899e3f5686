//! The exchange: embeddings that hospital and devices send each other (lines 13–21 of Algorithm 1).

use crate::model::Architecture;
use rayon::prelude::*;
use selvedge_nn::Network;

/// What a group's devices have in common for an interval: θ0 as the hospital sent it, and what their first backward
/// passes read of the θ2 that they all start from.
#[derive(Debug)]
pub struct Frozen {
    /// θ0 at the exchange.
    pub theta0: Vec<f32>,
    /// What backward passes through θ0 read.
    pub prepared0: Vec<f32>,
    /// What the first step's backward passes through θ2 read.
    pub prepared2: Vec<f32>,
}

impl Frozen {
    /// Buffers for a frozen model.
    pub fn new(architecture: &Architecture) -> Self {
        Frozen {
            theta0: vec![0.0; architecture.combined.params()],
            prepared0: vec![0.0; architecture.combined.prepared()],
            prepared2: vec![0.0; architecture.device.prepared()],
        }
    }

    /// Takes θ0 as it was sent, and the θ2 that all devices start from.
    pub fn freeze(&mut self, architecture: &Architecture, theta0: &[f32], theta2: &[f32]) {
        self.theta0.copy_from_slice(theta0);
        self.prepare(architecture, theta2);
    }

    /// Makes ready what backward passes read, once `theta0` is in place.
    pub(crate) fn prepare(&mut self, architecture: &Architecture, theta2: &[f32]) {
        let Architecture {
            combined, device, ..
        } = architecture;
        combined.prepare(&self.theta0, &mut self.prepared0);
        device.prepare(theta2, &mut self.prepared2);
    }
}

/// Samples whose embeddings one task computes.
const SAMPLES_PER_TASK: usize = 8;

/// ζ of some samples, and what their forward passes left.
#[derive(Debug)]
pub struct Embeddings {
    /// A row for each sample.
    pub zeta: Vec<f32>,
    /// A tape for each sample, so that the first step need not compute it again; empty where that would take too much
    /// memory.
    pub tapes: Vec<f32>,
    keep: bool,
}

impl Embeddings {
    /// Buffers for embeddings, with their tapes or without.
    pub fn new(keep: bool) -> Self {
        Embeddings {
            zeta: Vec::new(),
            tapes: Vec::new(),
            keep,
        }
    }

    /// Computes ζ of the given rows of `x`: what a hospital or a device sends.
    pub fn embed(&mut self, tower: &Network, theta: &[f32], x: &[f32], rows: &[u32]) {
        let (inputs, width, tape) = (tower.input().len(), tower.output().len(), tower.tape());
        self.zeta.resize(rows.len() * width, 0.0);
        self.tapes
            .resize(if self.keep { rows.len() * tape } else { 0 }, 0.0);
        let input = |row: u32| &x[row as usize * inputs..][..inputs];
        // One or two samples: two side by side are faster than one after the other.
        let some = |rows: &[u32], tapes: &mut [f32], zeta: &mut [f32]| {
            let (first, second) = tapes.split_at_mut(tape);
            match *rows {
                [a, b] => tower.forward_both(theta, [input(a), input(b)], [first, second]),
                [a] => _ = tower.forward(theta, input(a), first),
                _ => {}
            }
            for (zeta, tape) in zeta.chunks_exact_mut(width).zip([first, second]) {
                zeta.copy_from_slice(tower.result(tape));
            }
        };
        let tasks = self.zeta.par_chunks_mut(SAMPLES_PER_TASK * width);
        let tasks = tasks.zip(rows.par_chunks(SAMPLES_PER_TASK));
        if self.keep {
            let tapes = self.tapes.par_chunks_mut(SAMPLES_PER_TASK * tape);
            tasks.zip(tapes).for_each(|((zeta, rows), tapes)| {
                let zeta = zeta.chunks_mut(2 * width);
                for ((zeta, rows), tapes) in
                    zeta.zip(rows.chunks(2)).zip(tapes.chunks_mut(2 * tape))
                {
                    some(rows, tapes, zeta);
                }
            });
        } else {
            tasks.for_each(|(zeta, rows)| {
                let mut tapes = vec![0.0; 2 * tape];
                for (zeta, rows) in zeta.chunks_mut(2 * width).zip(rows.chunks(2)) {
                    some(rows, &mut tapes, zeta);
                }
            });
        }
    }
}
