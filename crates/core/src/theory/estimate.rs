//! Estimating what the bound needs: ρ, δ² and ‖∇F‖.
//!
//! A *probe* is a gradient that is measured and not applied ([`Probe`]). Inside a group it takes the messages of an
//! exchange and of the devices' uploads. What leaves the group are the mean gradient, which at P = Q = 1 is what a model's
//! upload shows anyway, and scalars.
//!
//! - **ρ**: power iteration on H·v ≈ (∇F_m(θ + εv) − ∇F_m(θ))/ε, both with the same patients. ‖H·v‖ rises to the largest
//!   curvature from below. The direction stays in its group.
//! - **δ²**: the variance of what is really applied, around the gradient of all groups together: for θ0 and θ1 that of a
//!   group's mini-batch mean, for θ2 that of a single device's gradient. Differences between groups are part of it: the
//!   paper's Assumption 2 measures against ∇F, not against ∇F_m.
//! - **‖∇F‖²**: that of the mean gradient, less what noise adds to it.

use crate::model::Model;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What estimators ask of a problem.
pub trait Problem: Sync {
    /// M
    fn groups(&self) -> usize;
    /// K_m/K
    fn weight(&self, group: usize) -> f64;
    /// What a group finds at `model`, with the patients that it draws for `draw`: the same ones each time.
    fn probe(&self, group: usize, draw: u64, model: &Model) -> Probe;
}

/// A gradient that was measured and not applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The mean over the drawn devices.
    pub gradient: Model,
    /// The mean loss.
    pub loss: f64,
    /// Of each part, the variance of one device's gradient around their mean: Σ‖g_n − g‖²/(|A| − 1); zero if it is alone.
    pub spread: [f64; 3],
    /// |A|
    pub selected: usize,
    /// K_m
    pub devices: usize,
}

impl Probe {
    /// Of each part, the variance of the mean over a subset that is drawn without replacement.
    pub fn of_mean(&self) -> [f64; 3] {
        let (a, k) = (self.selected as f64, self.devices as f64);
        self.spread.map(|s| s / a * (1.0 - a / k))
    }
}

/// What all groups together found at one model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// F
    pub loss: f64,
    /// ‖∇F‖², at least zero.
    pub gradient: f64,
    /// Of θ0, θ1 and θ2, the variance of what is applied.
    pub variance: [f64; 3],
    /// The part of it that is differences between groups.
    pub between: [f64; 3],
}

impl Point {
    /// δ², the largest of the three.
    pub fn largest_variance(&self) -> f64 {
        self.variance.into_iter().fold(0.0, f64::max)
    }
}

/// Probes all groups at a model.
pub fn point(problem: &impl Problem, draw: u64, model: &Model) -> Point {
    let groups = 0..problem.groups();
    let weights: Vec<f64> = groups.clone().map(|m| problem.weight(m)).collect();
    let probes: Vec<Probe> = groups
        .into_par_iter()
        .map(|m| problem.probe(m, draw, model))
        .collect();
    from_probes(&weights, &probes)
}

/// What follows from every group's probe at the same model.
pub fn from_probes(weights: &[f64], probes: &[Probe]) -> Point {
    let weighted = |of: &dyn Fn(&Probe) -> f64| -> f64 {
        weights.iter().zip(probes).map(|(w, p)| w * of(p)).sum()
    };
    let squared_weights: f64 = weights.iter().map(|w| w * w).sum();
    let (mut gradient, mut variance, mut between) = (0.0, [0.0; 3], [0.0; 3]);
    for part in 0..3 {
        let of_mean = weighted(&|p| p.of_mean()[part]);
        let noise: f64 = weights
            .iter()
            .zip(probes)
            .map(|(w, p)| w * w * p.of_mean()[part])
            .sum();
        let (mean, apart) = dispersion(weights, probes, part);
        gradient += mean - noise;
        // Two groups apart are so by noise and by what differs between them.
        let total = match squared_weights < 1.0 {
            true => apart / (1.0 - squared_weights),
            false => of_mean,
        };
        between[part] = (total - of_mean).max(0.0);
        variance[part] = match part {
            2 => weighted(&|p| p.spread[2] * (1.0 - 1.0 / p.devices as f64)) + between[2],
            _ => total,
        };
    }
    Point {
        loss: weighted(&|p| p.loss),
        gradient: gradient.max(0.0),
        variance,
        between,
    }
}

/// ‖ḡ‖² of the weighted mean ḡ of the groups' gradients, and Σ w_m‖g_m − ḡ‖².
fn dispersion(weights: &[f64], probes: &[Probe], part: usize) -> (f64, f64) {
    let width = probes.first().map_or(0, |p| p.gradient.parts()[part].len());
    let (mut mean_squared, mut apart) = (0.0, 0.0);
    for i in 0..width {
        let of = |p: &Probe| f64::from(p.gradient.parts()[part][i]);
        let mean: f64 = weights.iter().zip(probes).map(|(w, p)| w * of(p)).sum();
        mean_squared += mean * mean;
        let squares = weights
            .iter()
            .zip(probes)
            .map(|(w, p)| w * (of(p) - mean).powi(2));
        apart += squares.sum::<f64>();
    }
    (mean_squared, apart)
}

/// How large a step of a difference is, relative to the model.
const STEP: f64 = 1e-3;

/// ‖x‖ over all parts.
pub fn norm(model: &Model) -> f64 {
    let squares = |part: &[f32]| part.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    model.parts().map(squares).iter().sum::<f64>().sqrt()
}

/// `model` + `factor` · `direction`
pub fn moved(model: &Model, direction: &Model, factor: f64) -> Model {
    let mut moved = model.clone();
    for (out, along) in moved.parts_mut().into_iter().zip(direction.parts()) {
        for (out, along) in out.iter_mut().zip(along) {
            *out += (factor * f64::from(*along)) as f32;
        }
    }
    moved
}

/// The largest curvature that power iteration finds at a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Curvature {
    /// ‖H·v‖ of the last direction.
    pub rho: f64,
    /// The next direction, to go on from.
    pub direction: Model,
    /// Probes it took.
    pub probes: usize,
}

/// At most `steps` of power iteration on a group's curvature at `model`, from `direction` or else from its gradient; they
/// end once a step changes less than a hundredth.
pub fn curvature(
    problem: &impl Problem,
    (group, draw): (usize, u64),
    model: &Model,
    direction: Option<Model>,
    steps: usize,
) -> Curvature {
    let base = problem.probe(group, draw, model).gradient;
    let mut found = Curvature {
        rho: 0.0,
        direction: direction.unwrap_or_else(|| base.clone()),
        probes: 1,
    };
    let size = STEP * norm(model).max(1.0);
    for _ in 0..steps {
        let length = norm(&found.direction);
        if !(length > 0.0 && length.is_finite()) {
            break;
        }
        let step = size / length;
        let ahead = problem.probe(group, draw, &moved(model, &found.direction, step));
        found.probes += 1;
        // (g(θ + εv) − g(θ))/ε with ‖εv‖ = size
        found.direction = moved(&ahead.gradient, &base, -1.0);
        let (before, rho) = (found.rho, norm(&found.direction) / size);
        found.rho = rho;
        if (rho - before).abs() <= 0.01 * rho {
            break;
        }
    }
    found
}
