//! Losses: softmax cross-entropy, questions of yes or no, hazards in discrete time, distances of numbers.

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

/// 1 / (1 + e^−z), without overflow.
pub fn logistic(z: f64) -> f64 {
    let e = libm::exp(-z.abs());
    if z < 0.0 {
        e / (1.0 + e)
    } else {
        1.0 / (1.0 + e)
    }
}

/// ln(1 + e^z), without overflow.
fn softplus(z: f64) -> f64 {
    z.max(0.0) + libm::log1p(libm::exp(-z.abs()))
}

/// The loss of one question with the answer yes or no, of which `z` is the logit of yes; and its derivative by `z`.
fn answered(z: f32, yes: bool) -> (f64, f64) {
    let z = f64::from(z);
    match yes {
        true => (softplus(-z), logistic(z) - 1.0),
        false => (softplus(z), logistic(z)),
    }
}

/// The mean loss of several questions, each with its own sigmoid, and its gradient with respect to the logits. `answers`
/// are 1 for yes, 0 for no, and NaN where the answer is unknown: such a question has no part in the loss, but counts in
/// the mean, so that a sample of which little is known weighs little. `weights` are those of no and of yes, question
/// after question; without any, all are 1.
///
/// ```
/// use selvedge_nn::loss::yes_or_no;
/// let mut d = [9.0; 2];
/// let loss = yes_or_no(&[0.0, 5.0], &[1.0, f32::NAN], &[], &mut d);
/// assert!((loss - libm::log(2.0) / 2.0).abs() < 1e-12);
/// assert_eq!(d, [-0.25, 0.0]);
/// ```
pub fn yes_or_no(logits: &[f32], answers: &[f32], weights: &[f32], d_logits: &mut [f32]) -> f64 {
    let share = 1.0 / logits.len() as f64;
    let mut loss = 0.0;
    for (k, (z, answer)) in logits.iter().zip(answers).enumerate() {
        d_logits[k] = 0.0;
        if answer.is_nan() {
            continue;
        }
        let yes = *answer > 0.5;
        let weight = weights
            .get(2 * k + usize::from(yes))
            .map_or(1.0, |w| f64::from(*w));
        let (own, derivative) = answered(*z, yes);
        loss += weight * share * own;
        d_logits[k] = (weight * share * derivative) as f32;
    }
    loss
}

/// The loss of what is known of one patient in discrete time, and its gradient with respect to the logits of the hazards:
/// nothing happened in the first `survived` intervals and, if there was an `event`, it was in the next. Later intervals
/// have no part in it.
///
/// ```
/// use selvedge_nn::loss::hazards;
/// let mut d = [9.0; 3];
/// let loss = hazards(&[0.0; 3], 1, true, &mut d);
/// assert!((loss - 2.0 * libm::log(2.0)).abs() < 1e-12);
/// assert_eq!(d, [0.5, -0.5, 0.0]);
/// ```
pub fn hazards(logits: &[f32], survived: usize, event: bool, d_logits: &mut [f32]) -> f64 {
    d_logits.fill(0.0);
    let known = survived + usize::from(event);
    let mut loss = 0.0;
    for (k, (z, d)) in logits.iter().zip(d_logits).enumerate().take(known) {
        let (own, derivative) = answered(*z, k == survived);
        loss += own;
        *d = derivative as f32;
    }
    loss
}

/// How far a number is from the right one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distance {
    /// Half the square: the mean is learnt.
    Squared,
    /// The same up to this far, and beyond it in proportion: outliers count less.
    Huber(f64),
    /// In proportion, too little this much and too much the rest of 1: that quantile is learnt.
    Quantile(f64),
}

impl Distance {
    /// The loss of saying `said` where `truth` is right, and its derivative by what was said.
    ///
    /// ```
    /// use selvedge_nn::loss::Distance;
    /// assert_eq!(Distance::Squared.of(3.0, 1.0), (2.0, 2.0));
    /// assert_eq!(Distance::Huber(1.0).of(3.0, 1.0), (1.5, 1.0));
    /// assert_eq!(Distance::Quantile(0.75).of(1.0, 3.0), (1.5, -0.75));
    /// ```
    pub fn of(self, said: f64, truth: f64) -> (f64, f64) {
        let off = said - truth;
        match self {
            Distance::Huber(far) if off.abs() > far => {
                (far * (off.abs() - far / 2.0), far * off.signum())
            }
            Distance::Squared | Distance::Huber(_) => (off * off / 2.0, off),
            Distance::Quantile(q) if off < 0.0 => (-q * off, -q),
            Distance::Quantile(q) => ((1.0 - q) * off, 1.0 - q),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a gradient is that of a loss, by central differences.
    fn is_gradient(logits: &[f32], loss: impl Fn(&[f32], &mut [f32]) -> f64) {
        let mut gradient = vec![0.0; logits.len()];
        let mut unused = gradient.clone();
        loss(logits, &mut gradient);
        for k in 0..logits.len() {
            let mut at = |h: f32| {
                let mut moved = logits.to_vec();
                moved[k] += h;
                loss(&moved, &mut unused)
            };
            let h = 1.0 / 64.0;
            let difference = (at(h) - at(-h)) / f64::from(2.0 * h);
            let apart = (f64::from(gradient[k]) - difference).abs();
            assert!(apart < 1e-4, "{k}: {} and {difference}", gradient[k]);
        }
    }

    #[test]
    fn gradients_are_those_of_the_losses() {
        let logits = [0.5f32, -1.25, 2.0, 0.0];
        let answers = [1.0, 0.0, f32::NAN, 0.0];
        let weights = [1.0, 3.0, 0.5, 2.0, 1.0, 1.0, 2.0, 0.25];
        for weights in [&weights[..], &[]] {
            is_gradient(&logits, |z, d| yes_or_no(z, &answers, weights, d));
        }
        for survived in 0..4 {
            for event in [false, true] {
                is_gradient(&logits, |z, d| hazards(z, survived, event, d));
            }
        }
        is_gradient(&logits, |z, d| hazards(z, 4, false, d));
        for distance in [
            Distance::Squared,
            Distance::Huber(0.7),
            Distance::Quantile(0.9),
        ] {
            for truth in [0.2, -0.5, 3.0] {
                is_gradient(&logits[..1], |z, d| {
                    let (loss, derivative) = distance.of(f64::from(z[0]), truth);
                    d[0] = derivative as f32;
                    loss
                });
            }
        }
    }

    #[test]
    fn far_logits_stay_finite() {
        let mut d = [0.0; 2];
        for z in [1e30, -1e30, f32::MAX, f32::MIN] {
            assert!(yes_or_no(&[z, -z], &[1.0, 1.0], &[], &mut d).is_finite());
            assert!(d.iter().all(|d| d.abs() <= 0.5));
        }
        assert_eq!(logistic(-1000.0), 0.0);
        assert_eq!(logistic(1000.0), 1.0);
    }
}
