//! Other instances of the seams than those that come with the engine.

use selvedge_core::aggregate::Aggregation;
use selvedge_core::optimiser::{Optimiser, Step};
use selvedge_nn::simd::Level;

/// Heavy-ball momentum: remembers a velocity.
pub struct Momentum(pub f32);

impl Optimiser for Momentum {
    fn remembers(&self, parameters: usize) -> usize {
        parameters
    }

    fn step(&self, _: Level, step: Step<'_>, memory: &mut [f32]) {
        let params = step.params.iter_mut().zip(step.gradient);
        for ((x, gradient), velocity) in params.zip(memory) {
            *velocity = self.0 * *velocity + gradient / step.count + step.decay * *x;
            *x -= step.rate * *velocity;
        }
    }
}

/// Goes half of the way, and remembers nothing of it.
pub struct Halfway;

impl Optimiser for Halfway {
    fn remembers(&self, _: usize) -> usize {
        0
    }

    fn step(&self, _: Level, step: Step<'_>, _: &mut [f32]) {
        for (x, gradient) in step.params.iter_mut().zip(step.gradient) {
            *x -= 0.5 * step.rate * gradient / step.count;
        }
    }
}

/// The median of each number, whatever the weights: needs all models at once.
pub struct Median;

impl Aggregation for Median {
    fn combine(&self, _: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        for (i, out) in out.iter_mut().enumerate() {
            let mut values: Vec<f32> = models.iter().map(|(_, model)| model[i]).collect();
            values.sort_unstable_by(f32::total_cmp);
            *out = values[values.len() / 2];
        }
    }
}
