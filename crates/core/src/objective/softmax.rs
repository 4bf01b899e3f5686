//! One class of several.

use super::{Objective, Target, Targets, lost};
use crate::experiment::ClassWeights;
use crate::metrics::{Layout, Tally};
use crate::task::TaskError;
use selvedge_nn::loss;
use selvedge_nn::simd::Level;

/// The name of the usual objective.
pub const SOFTMAX: &str = "softmax";

/// One class of several: softmax and cross-entropy.
#[derive(Clone, Debug)]
pub struct Softmax {
    weights: Vec<f32>,
}

impl Softmax {
    /// All classes have the same weight.
    pub fn new(classes: usize) -> Self {
        Softmax {
            weights: vec![1.0; classes],
        }
    }

    /// With these weights, for classes with these numbers of training rows.
    pub(super) fn weighted(weights: &ClassWeights, counts: &[u64]) -> Result<Self, TaskError> {
        let classes = counts.len();
        let weights = match weights {
            ClassWeights::None => return Ok(Softmax::new(classes)),
            ClassWeights::Balanced => {
                let all: u64 = counts.iter().sum();
                let weight = |&n: &u64| {
                    if n == 0 {
                        0.0
                    } else {
                        all as f64 / (classes as f64 * n as f64)
                    }
                };
                counts.iter().map(|n| weight(n) as f32).collect()
            }
            ClassWeights::Listed(list) => checked(list, classes)?,
        };
        Ok(Softmax { weights })
    }
}

/// Listed weights, if there are so many of them and they can be weights.
pub(super) fn checked(list: &[f32], wanted: usize) -> Result<Vec<f32>, TaskError> {
    if list.len() != wanted {
        return Err(TaskError::ClassWeights {
            listed: list.len(),
            classes: wanted,
        });
    }
    let weights = list.iter().all(|w| *w >= 0.0 && w.is_finite());
    if !weights || list.iter().all(|w| *w == 0.0) {
        return Err(TaskError::ClassWeightValue {
            weights: list.to_vec(),
        });
    }
    Ok(list.to_vec())
}

impl Objective for Softmax {
    fn name(&self) -> &str {
        SOFTMAX
    }

    fn logits(&self) -> usize {
        self.weights.len()
    }

    fn loss(
        &self,
        level: Level,
        logits: &[f32],
        target: Target<'_>,
        weighted: bool,
        d_logits: &mut [f32],
    ) -> f64 {
        let Target::Class(label) = target else {
            return lost(d_logits);
        };
        let weight = match weighted {
            true => self.weights[label as usize],
            false => 1.0,
        };
        loss::cross_entropy(level, logits, label, weight, d_logits)
    }

    fn answer(&self, level: Level, logits: &[f32], out: &mut [f32]) {
        loss::softmax(level, logits, out);
    }

    fn layout(&self) -> Layout {
        Layout::classes(self.weights.len())
    }

    fn count(&self, tally: &mut Tally, answers: &[f32], targets: &Targets) {
        tally.add(answers, targets.classes());
    }

    fn class_weights(&self) -> &[f32] {
        &self.weights
    }
}
