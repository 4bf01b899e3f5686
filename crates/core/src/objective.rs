//! The objective: what a model is to learn about a sample, the loss, and the counts by which it is judged.
//!
//! ```text
//!  combined model ──► logits ──► loss and its gradient by the logits     training
//!                           └──► answer ──► Tally ──► metrics            evaluation, by sums that hospitals can add up
//! ```
//!
//! One file each: `softmax` for classes, `labels`, `quantity`, `survival`. What is known of samples is an
//! [outcome](crate::outcome).

mod labels;
mod quantity;
mod softmax;
mod survival;
#[cfg(test)]
mod tests;

pub use labels::Sigmoids;
pub use quantity::Number;
pub use softmax::{SOFTMAX, Softmax};
pub use survival::Hazards;

pub use crate::outcome::{Target, Targets};

use crate::experiment::TrainSettings;
use crate::metrics::{Layout, Metrics, Tally};
use crate::outcome::Outcome;
use crate::task::TaskError;
use selvedge_nn::simd::Level;

/// What a model is to learn.
pub trait Objective: Send + Sync {
    /// Its name in manifests, so that a model is not used for what it was not trained for.
    fn name(&self) -> &str;

    /// How many logits the combined model must give.
    fn logits(&self) -> usize;

    /// The loss of one sample, and its gradient by the logits. Weights of classes and labels count in training, and not in
    /// what is reported, so that runs with different weights can be compared.
    fn loss(
        &self,
        level: Level,
        logits: &[f32],
        target: Target<'_>,
        weighted: bool,
        d_logits: &mut [f32],
    ) -> f64;

    /// What is said of a sample, from its logits, in as many numbers: probabilities of classes or labels, a quantity in its
    /// own unit, or a survival curve.
    fn answer(&self, level: Level, logits: &[f32], out: &mut [f32]);

    /// What a tally of its answers is of.
    fn layout(&self) -> Layout;

    /// Counts answers, row after row, beside what is known.
    fn count(&self, tally: &mut Tally, answers: &[f32], targets: &Targets);

    /// The metrics of what was counted.
    fn metrics(&self, tally: &Tally) -> Metrics {
        tally.metrics()
    }

    /// The weight of each class in the loss, or of no and of yes for each label, for manifests; may be none.
    fn class_weights(&self) -> &[f32];
}

/// The objective that an experiment names, for an outcome with these [counts](Outcome::counts) over the training rows.
///
/// # Errors
/// If the class weights do not fit the outcome.
pub fn objective_of(
    train: &TrainSettings,
    outcome: &Outcome,
    names: &[String],
    counts: &[u64],
) -> Result<Box<dyn Objective>, TaskError> {
    Ok(match outcome {
        Outcome::Class => Box::new(Softmax::weighted(&train.class_weights, counts)?),
        Outcome::Labels => Box::new(Sigmoids::weighted(
            &train.class_weights,
            names.len(),
            counts,
        )?),
        Outcome::Quantity { mean, deviation } => {
            unweighted(train)?;
            Box::new(Number::new(train.distance(), *mean, *deviation))
        }
        Outcome::Survival { ends } => {
            unweighted(train)?;
            Box::new(Hazards::new(ends.clone()))
        }
    })
}

/// The objective of an experiment whose model is used and not trained, so without weights.
pub fn objective_of_trained(
    train: &TrainSettings,
    outcome: &Outcome,
    names: &[String],
) -> Box<dyn Objective> {
    match outcome {
        Outcome::Class => Box::new(Softmax::new(names.len())),
        Outcome::Labels => Box::new(Sigmoids::new(names.len())),
        Outcome::Quantity { mean, deviation } => {
            Box::new(Number::new(train.distance(), *mean, *deviation))
        }
        Outcome::Survival { ends } => Box::new(Hazards::new(ends.clone())),
    }
}

/// No number, as loss and as gradient: what is known of the sample is of another kind than what is learnt.
fn lost(d_logits: &mut [f32]) -> f64 {
    d_logits.fill(f32::NAN);
    f64::NAN
}

fn unweighted(train: &TrainSettings) -> Result<(), TaskError> {
    match train.class_weights.is_none() {
        true => Ok(()),
        false => Err(TaskError::Unweighted),
    }
}
