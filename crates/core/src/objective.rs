//! The objective: what a model is to learn about a sample, the loss, and the counts by which it is judged.
//!
//! ```text
//!  combined model ──► logits ──► loss and its gradient by the logits     training
//!                           └──► probabilities ──► Tally ──► metrics     evaluation, by sums that hospitals can add up
//! ```

use crate::experiment::{ClassWeights, TrainSettings};
use crate::metrics::Tally;
use crate::task::TaskError;
use selvedge_nn::loss;
use selvedge_nn::simd::Level;

/// What is known about one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Its class.
    Class(u32),
}

impl From<u32> for Target {
    fn from(class: u32) -> Self {
        Target::Class(class)
    }
}

/// What is known about samples, row after row.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// Their classes, as indices into [`Dataset::classes`](crate::dataset::Dataset::classes).
    Classes(Vec<u32>),
}

impl Default for Targets {
    fn default() -> Self {
        Targets::Classes(Vec::new())
    }
}

impl From<Vec<u32>> for Targets {
    fn from(classes: Vec<u32>) -> Self {
        Targets::Classes(classes)
    }
}

impl FromIterator<u32> for Targets {
    fn from_iter<I: IntoIterator<Item = u32>>(classes: I) -> Self {
        Targets::Classes(classes.into_iter().collect())
    }
}

impl Targets {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.classes().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of the sample in a row.
    pub fn at(&self, row: usize) -> Target {
        Target::Class(self.classes()[row])
    }

    /// Appends what is known of one sample.
    pub fn push(&mut self, target: Target) {
        let (Targets::Classes(classes), Target::Class(class)) = (self, target);
        classes.push(class);
    }

    /// Appends what is known of others.
    pub fn extend(&mut self, others: &Targets) {
        let (Targets::Classes(classes), Targets::Classes(more)) = (self, others);
        classes.extend_from_slice(more);
    }

    /// What is known of the samples in some rows.
    #[must_use]
    pub fn of(&self, rows: &[u32]) -> Targets {
        rows.iter()
            .map(|row| self.classes()[*row as usize])
            .collect()
    }

    /// The classes.
    pub fn classes(&self) -> &[u32] {
        let Targets::Classes(classes) = self;
        classes
    }
}

/// What a model is to learn.
pub trait Objective: Send + Sync {
    /// Its name in manifests, so that a model is not used for what it was not trained for.
    fn name(&self) -> &str;

    /// How many logits the combined model must give.
    fn logits(&self) -> usize;

    /// The loss of one sample, and its gradient by the logits. Weights of classes count in training, and not in what is
    /// reported, so that runs with different weights can be compared.
    fn loss(
        &self,
        level: Level,
        logits: &[f32],
        target: Target,
        weighted: bool,
        d_logits: &mut [f32],
    ) -> f64;

    /// The probabilities for a sample, from its logits: as many numbers.
    fn probabilities(&self, level: Level, logits: &[f32], out: &mut [f32]);

    /// An empty tally of predictions, from which metrics are computed.
    fn tally(&self) -> Tally;

    /// The weight of each class in the loss, for manifests.
    fn class_weights(&self) -> &[f32];
}

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
        target: Target,
        weighted: bool,
        d_logits: &mut [f32],
    ) -> f64 {
        let Target::Class(label) = target;
        let weight = match weighted {
            true => self.weights[label as usize],
            false => 1.0,
        };
        loss::cross_entropy(level, logits, label, weight, d_logits)
    }

    fn probabilities(&self, level: Level, logits: &[f32], out: &mut [f32]) {
        loss::softmax(level, logits, out);
    }

    fn tally(&self) -> Tally {
        Tally::new(self.weights.len())
    }

    fn class_weights(&self) -> &[f32] {
        &self.weights
    }
}

/// The objective that an experiment names, for classes with these numbers of training rows.
///
/// # Errors
/// If the class weights do not fit the classes.
pub fn objective_of(
    train: &TrainSettings,
    labels: &[u64],
) -> Result<Box<dyn Objective>, TaskError> {
    let weights = class_weights(&train.class_weights, labels)?;
    Ok(Box::new(Softmax { weights }))
}

/// The objective of an experiment whose model is used and not trained, so without class weights.
pub fn objective_of_trained(_: &TrainSettings, classes: usize) -> Box<dyn Objective> {
    Box::new(Softmax::new(classes))
}

/// The factor of each class, of which there are so many training rows.
fn class_weights(weights: &ClassWeights, labels: &[u64]) -> Result<Vec<f32>, TaskError> {
    let classes = labels.len();
    match weights {
        ClassWeights::None => Ok(vec![1.0; classes]),
        ClassWeights::Balanced => {
            let all: u64 = labels.iter().sum();
            let weight = |&n: &u64| {
                if n == 0 {
                    0.0
                } else {
                    all as f64 / (classes as f64 * n as f64)
                }
            };
            Ok(labels.iter().map(|n| weight(n) as f32).collect())
        }
        ClassWeights::Listed(list) => {
            if list.len() != classes {
                return Err(TaskError::ClassWeights {
                    listed: list.len(),
                    classes,
                });
            }
            let weights = list.iter().all(|w| *w >= 0.0 && w.is_finite());
            if !weights || list.iter().all(|w| *w == 0.0) {
                return Err(TaskError::ClassWeightValue {
                    weights: list.clone(),
                });
            }
            Ok(list.clone())
        }
    }
}
