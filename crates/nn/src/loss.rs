//! Softmax cross-entropy.

use crate::kernel::lanes;
use crate::math;
use crate::simd::{Kernel, Lanes, Level};

/// Shifted exponentials, in place.
struct Exponentials<'a>(&'a mut [f32], f32);

impl Kernel for Exponentials<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let largest = L::splat(self.1);
        lanes!(L, self.0, [z] => math::exp(z.sub(largest)));
    }
}

fn largest(logits: &[f32]) -> f32 {
    logits
        .iter()
        .fold(f32::NEG_INFINITY, |m, &z| if z > m { z } else { m })
}

/// Turns logits into probabilities, in place, and gives the sum of exponentials they were divided by.
fn softmax_in_place(level: Level, logits: &mut [f32]) -> f32 {
    let largest = largest(logits);
    level.run(Exponentials(logits, largest));
    let sum: f32 = logits.iter().fold(0.0, |sum, e| sum + e);
    for p in logits.iter_mut() {
        *p /= sum;
    }
    sum
}

/// Probabilities of the classes.
pub fn softmax(level: Level, logits: &[f32], probabilities: &mut [f32]) {
    probabilities.copy_from_slice(logits);
    softmax_in_place(level, probabilities);
}

/// The loss `−weight · ln p(label)`, and its gradient with respect to the logits.
///
/// ```
/// use selvedge_nn::{loss::cross_entropy, simd::Level};
/// let mut d = [0.0; 2];
/// let loss = cross_entropy(Level::detect(), &[0.0, 0.0], 1, 1.0, &mut d);
/// assert!((loss - libm::log(2f64)).abs() < 1e-6);
/// assert_eq!(d, [0.5, -0.5]);
/// ```
pub fn cross_entropy(
    level: Level,
    logits: &[f32],
    label: u32,
    weight: f32,
    d_logits: &mut [f32],
) -> f64 {
    let label = label as usize;
    d_logits.copy_from_slice(logits);
    let sum = softmax_in_place(level, d_logits);
    d_logits[label] -= 1.0;
    for d in d_logits.iter_mut() {
        *d *= weight;
    }
    let margin = f64::from(logits[label]) - f64::from(largest(logits));
    f64::from(weight) * (math::ln(f64::from(sum)) - margin)
}
