//! Several labels, each of which a sample has or has not, or of which that is unknown.
//!
//! Ordinal outcomes fit in as labels "at least 1", "at least 2", and so on.

use super::softmax::checked;
use super::{Objective, Target, Targets, lost};
use crate::experiment::ClassWeights;
use crate::metrics::{Layout, Tally};
use crate::outcome::Kind;
use crate::task::TaskError;
use selvedge_nn::loss;
use selvedge_nn::simd::Level;

/// A sigmoid for each label; unknown ones have no part in the loss.
#[derive(Clone, Debug)]
pub struct Sigmoids {
    labels: usize,
    /// Of no and of yes, label after label; empty where all are 1.
    weights: Vec<f32>,
}

impl Sigmoids {
    /// All answers have the same weight.
    pub fn new(labels: usize) -> Self {
        Sigmoids {
            labels,
            weights: Vec::new(),
        }
    }

    /// With these weights, for labels with these numbers of no and of yes in the training rows. A listed weight is that of
    /// a label, and counts for both its answers.
    pub(super) fn weighted(
        weights: &ClassWeights,
        labels: usize,
        counts: &[u64],
    ) -> Result<Self, TaskError> {
        let weights = match weights {
            ClassWeights::None => Vec::new(),
            ClassWeights::Balanced => {
                let of = |pair: &[u64]| {
                    let all = pair.iter().sum::<u64>() as f64;
                    [0, 1].map(|answer| match pair[answer] {
                        0 => 0.0,
                        n => (all / (2.0 * n as f64)) as f32,
                    })
                };
                counts.chunks_exact(2).flat_map(of).collect()
            }
            ClassWeights::Listed(list) => {
                let each = checked(list, labels)?;
                each.iter().flat_map(|weight| [*weight; 2]).collect()
            }
        };
        Ok(Sigmoids { labels, weights })
    }
}

impl Objective for Sigmoids {
    fn name(&self) -> &str {
        "labels"
    }

    fn logits(&self) -> usize {
        self.labels
    }

    fn loss(
        &self,
        _: Level,
        logits: &[f32],
        target: Target<'_>,
        weighted: bool,
        d_logits: &mut [f32],
    ) -> f64 {
        let Target::Numbers(answers) = target else {
            return lost(d_logits);
        };
        let weights = if weighted { &self.weights[..] } else { &[] };
        loss::yes_or_no(logits, answers, weights, d_logits)
    }

    fn answer(&self, _: Level, logits: &[f32], out: &mut [f32]) {
        for (out, z) in out.iter_mut().zip(logits) {
            *out = loss::logistic(f64::from(*z)) as f32;
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            kind: Kind::Labels,
            outputs: self.labels,
        }
    }

    fn count(&self, tally: &mut Tally, answers: &[f32], targets: &Targets) {
        for (row, said) in answers.chunks_exact(self.labels).enumerate() {
            if let Target::Numbers(known) = targets.at(row) {
                tally.add_labels(said, known);
            }
        }
    }

    fn class_weights(&self) -> &[f32] {
        &self.weights
    }
}
