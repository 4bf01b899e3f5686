//! The exchange: embeddings that hospital and devices send each other (lines 13–21 of Algorithm 1).

use crate::model::Architecture;
use selvedge_nn::Network;

/// What devices hold still for an interval: θ0 as the hospital sent it, with its transposed copies.
#[derive(Debug)]
pub struct Frozen {
    /// θ0 at the exchange.
    pub theta0: Vec<f32>,
    /// What backward passes through θ0 read.
    pub prepared0: Vec<f32>,
}

impl Frozen {
    /// Room for a frozen model.
    pub fn new(architecture: &Architecture) -> Self {
        Frozen {
            theta0: vec![0.0; architecture.combined.params()],
            prepared0: vec![0.0; architecture.combined.prepared()],
        }
    }

    /// Takes θ0 as it is now.
    pub fn freeze(&mut self, architecture: &Architecture, theta0: &[f32]) {
        self.theta0.copy_from_slice(theta0);
        architecture.combined.prepare(theta0, &mut self.prepared0);
    }
}

/// ζ of one sample: what a hospital or a device sends of it.
pub fn embed(tower: &Network, theta: &[f32], x: &[f32], tape: &mut [f32], zeta: &mut [f32]) {
    zeta.copy_from_slice(tower.forward(theta, x, tape));
}
