//! Optimisers, clipping and schedules once more, in f64 and from their definitions; and experiments with any of them.

use super::{pick, within};
use selvedge_core::experiment::{Averager, Experiment, Fall, Method, TrainSettings};
use selvedge_nn::random::Stream;

/// Draws every key of `[optimiser]`, and the others that change steps.
pub fn any(stream: &mut Stream, e: &mut Experiment) {
    let train = &mut e.train;
    if train.halve_every == 0 {
        train.schedule = pick(stream, &[Fall::Halving, Fall::Cosine]);
    }
    let up = within(stream, 0..train.iterations.min(9));
    train.warm_up = pick(stream, &[0, up]);
    train.combined_weight_decay = pick(stream, &[0.0, 0.05]);
    let o = &mut e.optimiser;
    o.hospital = pick(
        stream,
        &[Method::Sgd, Method::Momentum, Method::Adam, Method::AdamW],
    );
    let averagers = [Averager::Sgd, Averager::Momentum, Averager::Adam];
    (o.edge, o.cloud) = (pick(stream, &averagers), pick(stream, &averagers));
    o.hospital_rate = pick(stream, &[None, Some(0.02)]);
    o.edge_rate = pick(stream, &[None, Some(0.03)]);
    o.cloud_rate = pick(stream, &[None, Some(0.04)]);
    o.momentum = pick(stream, &[0.0, 0.5]);
    (o.beta1, o.beta2) = pick(stream, &[(0.9, 0.999), (0.0, 0.9), (0.5, 0.5)]);
    o.epsilon = pick(stream, &[1e-2, 0.1]);
    o.hospital_clip = pick(stream, &[0.0, 0.1, 3.0]);
    o.device_clip = pick(stream, &[0.0, 0.1, 3.0]);
    let train = &mut e.train;
    if o.hospital == Method::AdamW && train.weight_decay + train.combined_weight_decay == 0.0 {
        train.weight_decay = 0.03;
    }
}

/// η_t, from an initial rate.
pub fn rate(train: &TrainSettings, initial: f64, t: u64) -> f64 {
    let halvings = t.checked_div(train.halve_every).unwrap_or(0);
    let rate = initial * 0.5f64.powi(halvings as i32);
    if t < train.warm_up {
        return rate * (t + 1) as f64 / train.warm_up as f64;
    }
    let gone = (t - train.warm_up) as f64 / (train.iterations - train.warm_up) as f64;
    match train.schedule {
        Fall::Halving => rate,
        Fall::Cosine => rate * (1.0 + libm::cos(std::f64::consts::PI * gone)) / 2.0,
    }
}

/// Gradients of one step are shortened, if their norm is beyond `clip`.
pub fn shorten<const N: usize>(gradients: [Vec<f64>; N], clip: f64) -> [Vec<f64>; N] {
    let norm = gradients
        .iter()
        .flatten()
        .map(|g| g * g)
        .sum::<f64>()
        .sqrt();
    let factor = match clip > 0.0 && norm > clip {
        true => clip / norm,
        false => 1.0,
    };
    gradients.map(|gradient| gradient.into_iter().map(|g| factor * g).collect())
}

/// What an optimiser knows of some parameters.
#[derive(Clone, Default)]
pub struct Memory {
    mean: Vec<f64>,
    square: Vec<f64>,
    steps: i32,
}

impl Memory {
    /// A step along the gradient of a loss, with weight decay.
    pub fn step(
        &mut self,
        (e, method): (&Experiment, Method),
        params: &mut [f64],
        gradient: &[f64],
        (rate, decay): (f64, f64),
    ) {
        let o = &e.optimiser;
        self.mean.resize(params.len(), 0.0);
        self.square.resize(params.len(), 0.0);
        self.steps += 1;
        let rows = params.iter_mut().zip(gradient);
        let memory = self.mean.iter_mut().zip(&mut self.square);
        for ((p, g), (mean, square)) in rows.zip(memory) {
            let slope = g + if method == Method::AdamW {
                0.0
            } else {
                decay * *p
            };
            match method {
                Method::Sgd => *p -= rate * slope,
                Method::Momentum => {
                    *mean = o.momentum * *mean + slope;
                    *p -= rate * *mean;
                }
                Method::Adam | Method::AdamW => {
                    *mean = o.beta1 * *mean + (1.0 - o.beta1) * slope;
                    *square = o.beta2 * *square + (1.0 - o.beta2) * slope * slope;
                    let of = |beta: f64| 1.0 - beta.powi(self.steps);
                    if method == Method::AdamW {
                        *p -= rate * decay * *p;
                    }
                    let size = (*square / of(o.beta2)).sqrt() + o.epsilon;
                    *p -= rate * (*mean / of(o.beta1)) / size;
                }
            }
        }
    }

    /// A step from a model towards an aggregate of others. `left` is the share of the learning rate that is left.
    pub fn move_on(
        &mut self,
        (e, method): (&Experiment, Method),
        rate: f64,
        left: f64,
        (before, aggregate): (&mut Vec<f64>, &[f64]),
    ) {
        let gradient: Vec<f64> = before.iter().zip(aggregate).map(|(a, b)| a - b).collect();
        let rate = match method {
            Method::Adam => rate * left,
            _ => rate,
        };
        self.step((e, method), before, &gradient, (rate, 0.0));
    }
}
