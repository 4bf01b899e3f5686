//! HSGD on quadratics, as plainly as it can be said.

use crate::problem::{N, PARTS, Quadratic, Theta, dot, draw, plus};
use selvedge_core::theory::bound;
use selvedge_nn::random::Key;

/// What θ0 and θ1 take together.
const HOSPITAL: usize = PARTS[2].start;

/// P, Q, M, α and η.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub p: u64,
    pub q: u64,
    pub groups: usize,
    pub participation: f64,
    pub eta: f64,
}

impl Setting {
    /// K_m: every other group has each centre twice, so that the weights K_m/K differ.
    pub(crate) fn devices(&self, problem: &Quadratic, group: usize) -> usize {
        (1 + group % 2) * problem.centres.len()
    }

    /// |A_m|
    pub(crate) fn selected(&self, problem: &Quadratic, group: usize) -> usize {
        let devices = self.devices(problem, group);
        ((self.participation * devices as f64).round() as usize).clamp(1, devices)
    }

    /// What Theorem 1 knows, if the loss falls by `drop`: δ² is the largest of all groups and parts.
    pub(crate) fn constants(&self, problem: &Quadratic, drop: f64) -> bound::Constants {
        let applied = |m| problem.applied(self.selected(problem, m), self.devices(problem, m));
        bound::Constants {
            drop,
            rho: problem.rho,
            variance: (0..self.groups).flat_map(applied).fold(0.0, f64::max),
        }
    }

    /// The run's setting as the bound takes it.
    pub(crate) fn over(&self, aggregations: u64) -> bound::Setting {
        bound::Setting {
            global_interval: self.p as f64,
            local_interval: self.q as f64,
            learning_rate: self.eta,
            iterations: (self.p * aggregations) as f64,
        }
    }
}

/// Trains for `aggregations` global intervals, and shows θ at t = 0 and behind each of them.
pub(crate) fn hsgd(
    problem: &Quadratic,
    s: &Setting,
    seed: u64,
    start: &Theta,
    aggregations: u64,
    mut see: impl FnMut(&Theta),
) {
    let mut global = *start;
    let mut groups = vec![global; s.groups];
    let key = Key::new(seed).with(0xd4a);
    let whole: usize = (0..s.groups).map(|m| s.devices(problem, m)).sum();
    for t in 0..=s.p * aggregations {
        if t % s.p == 0 {
            if t > 0 {
                let weight = |m| s.devices(problem, m) as f64 / whole as f64;
                let models = groups.iter().enumerate();
                global = models.fold([0.0; N], |sum, (m, model)| plus(&sum, weight(m), model));
                groups.fill(global);
            }
            see(&global);
        }
        if t % s.q == 0 && t < s.p * aggregations {
            for (m, model) in groups.iter_mut().enumerate() {
                let (all, count) = (s.devices(problem, m), s.selected(problem, m));
                let subset = draw(key.with_all([m as u64, t]), all, count);
                interval(problem, model, &subset, s);
            }
        }
    }
}

/// From an exchange to the local aggregation.
fn interval(problem: &Quadratic, model: &mut Theta, subset: &[usize], s: &Setting) {
    let count = subset.len() as f64;
    // θ2 as it was at the exchange, for the hospital; θ0 and θ1 as they were, for the devices.
    let mut hospital = *model;
    let mut devices = vec![*model; subset.len()];
    for _ in 0..s.q {
        let away = |sum: Theta, n: &usize| plus(&sum, -1.0 / count, problem.centre(*n));
        let gradient = problem.bend(&subset.iter().fold(hospital, away));
        for i in 0..HOSPITAL {
            hospital[i] -= s.eta * gradient[i];
        }
        for (n, device) in subset.iter().zip(&mut devices) {
            let away = plus(device, -1.0, problem.centre(*n));
            let rows = device.iter_mut().zip(&problem.hessian).skip(HOSPITAL);
            rows.for_each(|(x, row)| *x -= s.eta * dot(row, &away));
        }
    }
    model[..HOSPITAL].copy_from_slice(&hospital[..HOSPITAL]);
    for i in HOSPITAL..N {
        model[i] = devices.iter().map(|d| d[i]).sum::<f64>() / count;
    }
}
