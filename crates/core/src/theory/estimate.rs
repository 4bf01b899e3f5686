//! Estimating what the bound needs: ρ, δ² and ‖∇F‖.
//!
//! A *probe* is a gradient that is measured and not applied ([`Probe`]). Inside a group it takes the messages of an
//! exchange and of the devices' uploads. What leaves the group are the mean gradient, which at P = Q = 1 is what a
//! model's upload shows anyway, and scalars.
//!
//! - **ρ**: power iteration on H·v ≈ (∇F_m(θ + εv) − ∇F_m(θ))/ε, both with the same patients. ‖H·v‖ rises to the largest
//!   curvature from below. The direction stays in its group.
//! - **δ²**: the variance of what is really applied, around the gradient of all groups together: for θ0 and θ1 that of a
//!   group's mini-batch mean, for θ2 that of a single device's gradient. Differences between groups are part of it: the
//!   paper's Assumption 2 measures against ∇F, not against ∇F_m. The groups are all there are, not a sample of more, so
//!   nothing is added for groups that were not seen.
//! - **‖∇F‖²**: that of the mean gradient, less what noise adds to it.
//!
//! All but ρ are unbiased (up to values that are cut at zero): the mean over draws is right however few devices are
//! drawn.

use crate::model::Model;
use rayon::prelude::*;
use selvedge_nn::random::Key;
use serde::{Deserialize, Serialize};

/// What estimators ask of a problem.
pub trait Problem: Sync {
    /// M
    fn groups(&self) -> usize;
    /// K_m/K
    fn weight(&self, group: usize) -> f64;
    /// A group's probe at `model`, with the patients that it draws for `draw`: the same ones each time.
    fn probe(&self, group: usize, draw: u64, model: &Model) -> Probe;
}

/// A gradient that was measured and not applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The mean over the drawn devices.
    pub gradient: Model,
    /// The mean loss.
    pub loss: f64,
    /// Of each part, the variance of one device's gradient around their mean: Σ‖g_n − g‖²/(|A| − 1); zero for a single
    /// device, which needs a [`second`](Probe::with_second) draw.
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

    /// Whether its spread is meaningless, because one device was drawn of several.
    pub fn is_alone(&self) -> bool {
        self.selected == 1 && self.devices > 1
    }

    /// The same, with the spread that another draw of one device shows.
    #[must_use]
    pub fn with_second(mut self, second: &Probe) -> Self {
        let k = self.devices as f64;
        for part in 0..3 {
            let (ours, theirs) = (self.gradient.parts()[part], second.gradient.parts()[part]);
            let apart = ours.iter().zip(theirs);
            let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
            // Half of the square, but that one time in K both draws are of the same device.
            self.spread[part] = 0.5 * apart.map(square).sum::<f64>() * k / (k - 1.0);
        }
        self
    }
}

/// The probes of all groups at one model, combined.
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

/// Probes all groups at a model; groups that draw one device, for `draw + 1` as well.
pub fn point(problem: &impl Problem, draw: u64, model: &Model) -> Point {
    let groups = 0..problem.groups();
    let weights: Vec<f64> = groups.clone().map(|m| problem.weight(m)).collect();
    let probe = |m: usize| {
        let probe = problem.probe(m, draw, model);
        match probe.is_alone() {
            true => probe.with_second(&problem.probe(m, draw.wrapping_add(1), model)),
            false => probe,
        }
    };
    let probes: Vec<Probe> = groups.into_par_iter().map(probe).collect();
    from_probes(&weights, &probes)
}

/// Combines every group's probe at the same model.
pub fn from_probes(weights: &[f64], probes: &[Probe]) -> Point {
    let weighted = |of: &dyn Fn(&Probe) -> f64| -> f64 {
        weights.iter().zip(probes).map(|(w, p)| w * of(p)).sum()
    };
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
        // Groups are apart by noise, less what their mean shares of it, and by what differs between them.
        let differs = apart - (of_mean - noise);
        between[part] = differs.max(0.0);
        let own = match part {
            2 => weighted(&|p| p.spread[2] * (1.0 - 1.0 / p.devices as f64)),
            _ => of_mean,
        };
        // `differs` as it is, so that its errors cancel over draws. But for rounding, the sum is never below zero.
        variance[part] = (own + differs).max(0.0);
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
    /// The next direction, to continue from.
    pub direction: Model,
    /// Probes it took.
    pub probes: usize,
}

/// Where power iteration starts: the gradient, which leans towards large curvature, and as much of a direction that has
/// nothing to do with it. From the gradient alone, curvature that it happens not to see would never be found.
fn opening(gradient: &Model) -> Model {
    let mut other = gradient.clone();
    // Always the same: no step of training depends on it, and every group may start alike.
    let mut stream = Key::new(0).with(0x9d0).stream();
    for part in other.parts_mut() {
        part.iter_mut().for_each(|x| *x = stream.normal());
    }
    match norm(gradient) {
        0.0 => other,
        length => moved(gradient, &other, length / norm(&other)),
    }
}

/// At most `steps` of power iteration on a group's curvature at `model`, from `direction` or else from where its
/// gradient points; they end once two in a row change less than a hundredth. (After one it may be between two
/// eigenvalues, having lost the others and not yet seen the largest.)
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
        direction: direction.unwrap_or_else(|| opening(&base)),
        probes: 1,
    };
    let size = STEP * norm(model).max(1.0);
    let mut quiet = 0;
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
        quiet = match (rho - before).abs() <= 0.01 * rho {
            true => quiet + 1,
            false => 0,
        };
        if quiet == 2 {
            break;
        }
    }
    found
}
