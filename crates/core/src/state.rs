//! The state of a run at the end of an interval: enough to resume from there to the same bits.

use crate::adaptive::Controller;
use crate::checks::Reason;
use crate::clock::Clock;
use crate::conduct::{Conduct, DeviceConduct};
use crate::experiment::Adaptive;
use crate::ledger::{Kind, Ledger};
use crate::message_path::{Compression, Leg};
use crate::metrics::Metrics;
pub use crate::metrics::Validation;
use crate::model::{Model, Widths};
use crate::optimiser::Memories;
use crate::reversal::Reversals;
use crate::schedule::Segment;
use crate::task::Task;
use serde::{Deserialize, Serialize};

/// A run between two intervals. Devices carry nothing across: only the groups' models do.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Everything but the models.
    pub progress: Progress,
    /// θ of the last global aggregation.
    pub theta: Model,
    /// `θ[m]` of each group.
    pub groups: Vec<Model>,
    /// The last model with a finite loss: the result of a run that diverges.
    pub good: Model,
    /// The last model whose loss on fresh patients was good, in a steered run.
    pub safe: Option<Model>,
    /// The model with the best validation score so far.
    pub best: Option<Model>,
    /// What compression has lost of models so far, and what edges hold instead of them.
    pub residuals: Residuals,
    /// What optimisers remember.
    pub memories: Memories,
    /// What is held against the devices of each group, which only that group knows.
    pub devices: Vec<DeviceConduct>,
    /// What the cloud remembers of the groups' steps, to see who sends them reversed.
    pub reversals: Reversals,
}

/// What compression has lost of the models that each sender has sent, to be added to the next; and what the receiver
/// of θ0 has got of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Residuals {
    /// Each edge's copy of its hospital's θ0; empty where edges keep none.
    pub edges: Vec<Vec<f32>>,
    /// Of each group's uploads to the cloud; no groups where nothing is lost.
    pub uploads: Vec<Model>,
    /// Of the cloud's downloads; of no width where nothing is lost.
    pub cloud: Model,
}

impl Residuals {
    /// Nothing lost yet.
    pub fn none(compression: &Compression, widths: Widths, groups: usize) -> Self {
        let of = |leg: fn(Kind) -> Leg| {
            let part = |kind, numbers| compression.nothing_lost(leg(kind), numbers);
            Model {
                theta0: part(Kind::Theta0, widths.n0),
                theta1: part(Kind::Theta1, widths.n1),
                theta2: part(Kind::Theta2, widths.n2),
            }
        };
        let upload = of(Leg::Upload);
        let uploading = if upload == Model::default() {
            0
        } else {
            groups
        };
        Residuals {
            edges: vec![compression.no_theta0_yet(widths.n0); groups],
            uploads: vec![upload; uploading],
            cloud: of(Leg::Download),
        }
    }
}

impl Residuals {
    /// A group was absent: what it has sent since was not used, and it begins anew.
    pub(crate) fn forget(&mut self, group: usize) {
        self.edges[group].fill(0.0);
        let upload = self.uploads.get_mut(group).map(Model::parts_mut);
        upload.into_iter().flatten().for_each(|lost| lost.fill(0.0));
    }
}

/// Everything in a [`State`] but the models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The next iteration.
    pub t: u64,
    /// The segment it belongs to.
    pub segment: Segment,
    /// When θ was last aggregated.
    pub aggregated: u64,
    /// When θ was last evaluated.
    pub evaluated: Option<u64>,
    /// The iteration and the score of the best model.
    pub best: Option<Best>,
    /// The controller, if the run is steered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// The target or budget that ended the run, once one has.
    pub reached: Option<Reached>,
    /// What was sent.
    pub ledger: Ledger,
    /// How long it took, simulated.
    pub clock: Clock,
    /// What the cloud holds against groups.
    #[serde(default, skip_serializing_if = "Conduct::is_empty")]
    pub conduct: Conduct,
    /// Groups that were left out of the last aggregation although they were there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<(usize, Reason)>,
}

impl Progress {
    /// The groups that the cloud does not hear any more.
    pub fn quarantined_groups(&self, task: &Task<'_>) -> Vec<usize> {
        let after = task.experiment.defence.quarantine;
        let groups = self.conduct.quarantined(after);
        groups.map(|m| m as usize).collect()
    }
}

/// A key of `[stop]` and what was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// The key.
    pub key: String,
    /// The value that satisfied it.
    pub value: f64,
}

/// The best evaluation on the validation samples so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// When it was.
    pub t: u64,
    /// Its [score](Validation::score).
    pub score: f64,
    /// Its validation loss, which decides between equal scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

impl Best {
    /// What an evaluation at `t` says.
    pub fn new(t: u64, on: &Validation) -> Self {
        Best {
            t,
            score: on.score(),
            loss: Some(on.loss_validation),
        }
    }

    /// Whether it is to be chosen instead of another, or of none. Of equal scores the lower loss is better, then the
    /// earlier one; but the initial model has learnt nothing: what is as good as that is better.
    pub fn beats(self, other: Option<Best>) -> bool {
        let is_lower = |other: Best| {
            self.loss
                .zip(other.loss)
                .is_some_and(|(own, other)| own < other)
        };
        other.is_none_or(|other| {
            let is_equal = self.score == other.score;
            self.score > other.score || is_equal && (other.t == 0 || is_lower(other))
        })
    }
}

impl State {
    /// Iteration 0.
    pub fn initial(task: &Task<'_>) -> Self {
        let theta = task.architecture.initial(task.experiment.seed);
        let groups = task.dataset.groups.len();
        State {
            progress: Progress {
                t: 0,
                segment: task.segment(),
                aggregated: 0,
                evaluated: None,
                best: None,
                controller: Controller::new(task),
                reached: None,
                ledger: Ledger::default(),
                clock: Clock::new(groups),
                conduct: Conduct::default(),
                left_out: Vec::new(),
            },
            groups: vec![theta.clone(); groups],
            good: theta.clone(),
            safe: (task.experiment.train.adaptive != Adaptive::Off).then(|| theta.clone()),
            theta,
            best: None,
            residuals: Residuals::none(&task.compression, task.architecture.widths(), groups),
            memories: Memories::new(&task.optimisers, task.architecture.widths(), groups),
            devices: vec![DeviceConduct::default(); groups],
            reversals: Reversals::default(),
        }
    }
}

/// One line of `metrics.jsonl`: the global model at `t`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The iteration.
    pub t: u64,
    /// P from here on.
    pub p: u64,
    /// Q from here on.
    pub q: u64,
    /// η from here on.
    pub eta: f64,
    /// Mean loss over the training samples, without regulariser and class weights.
    pub loss_train: f64,
    /// Mean loss over the test samples; absent where there are none.
    pub loss_test: Option<f64>,
    /// Metrics over the test samples.
    #[serde(flatten)]
    pub test: Metrics,
    /// Bytes as the paper counts them, mean per group.
    pub bytes_paper: f64,
    /// All bytes, mean per group.
    pub bytes_exact: f64,
    /// Simulated seconds.
    pub seconds: f64,
    /// The same over the validation samples, where there are any.
    #[serde(flatten)]
    pub validation: Option<Validation>,
    /// Groups whose patients are not in these figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Without>,
}

/// A group that is missing from an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Without {
    /// Its number.
    pub group: u32,
    /// Why its scores were left out, if it has sent any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Validation {
    /// The score by which the best model is chosen, higher is better: AUC or, where there is none, the loss, negative,
    /// which is below every AUC.
    pub fn score(&self) -> f64 {
        self.auc_validation.unwrap_or(-self.loss_validation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_scores_the_lower_loss_is_better_then_the_earlier_one() {
        let best = |t, score, loss| Best { t, score, loss };
        let first = best(10, 0.8, Some(0.5));
        assert!(first.beats(None));
        assert!(best(20, 0.81, Some(0.9)).beats(Some(first)));
        assert!(best(20, 0.8, Some(0.4)).beats(Some(first)));
        assert!(!best(20, 0.8, Some(0.5)).beats(Some(first)));
        assert!(!best(20, 0.8, Some(0.6)).beats(Some(first)));
        assert!(!best(20, 0.79, Some(0.1)).beats(Some(first)));
        // A checkpoint of before does not say the loss.
        assert!(!best(20, 0.8, Some(0.1)).beats(Some(best(10, 0.8, None))));
        // What has learnt nothing is no better than what is as good.
        assert!(best(10, 0.8, Some(0.6)).beats(Some(best(0, 0.8, Some(0.5)))));
    }
}
