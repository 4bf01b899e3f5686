//! The quality of a model: from integer counts that groups can add up, or exactly.
//!
//! Nobody in a deployment may pool scores and labels, so AUC is computed from histograms of scores with 4,096 bins per
//! class. The simulation uses the same, so that a stop on a target is the same stop.

mod tally;

pub use tally::{Layout, Tally, risk};
pub(crate) use tally::{area, average_precision, of_confusion};

use crate::experiment::{ABOVE_0, KeyInfo, SHARE};
use crate::outcome::Kind;
use crate::role::wire::{Reader, Wire, WireError};
use crate::state::Evaluation;
use serde::{Deserialize, Serialize};

/// Bins of a class's histogram of scores.
pub const BINS: usize = 4096;

/// A metric of a run. Everything about it is in its row of [`METRICS`].
#[derive(Debug)]
pub struct Metric {
    /// As in `--target`, tables and curves.
    pub name: &'static str,
    /// Above a chart.
    pub title: &'static str,
    /// Above a column.
    pub heading: &'static str,
    /// In a sentence, with the samples it is over.
    pub words: &'static str,
    /// Whether it is over the test samples, and not over those of training.
    pub tested: bool,
    /// Whether lower or higher values are better.
    pub better: Better,
    /// The kinds of outcome that it is defined for.
    pub kinds: &'static [Kind],
    /// The key that ends a run at a value of it, if it can be a target.
    pub stop: Option<KeyInfo>,
    read: fn(&Evaluation) -> Option<f64>,
    /// How it is read of an evaluation on validation samples, if it is measured there.
    pub on_validation: Option<fn(&Validation) -> Option<f64>>,
}

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower ones.
    Lower,
    /// Higher ones; they are at most 1.
    Higher,
}

impl Metric {
    /// The metric of that name, if there is one.
    pub fn find(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Those that can be targets.
    pub fn targets() -> impl Iterator<Item = &'static Metric> + Clone {
        METRICS.iter().filter(|metric| metric.stop.is_some())
    }

    /// Those of a kind of outcome.
    pub fn of_kind(kind: Kind) -> impl Iterator<Item = &'static Metric> + Clone {
        METRICS.iter().filter(move |metric| metric.is_of(kind))
    }

    /// The one that stands for all where there is room for one.
    pub fn chief(kind: Kind) -> &'static Metric {
        let name = match kind {
            Kind::Class | Kind::Labels => "auc",
            Kind::Quantity => "r2",
            Kind::Survival => "concordance",
        };
        Metric::find(name).unwrap_or(&METRICS[0])
    }

    /// Whether it is defined for a kind of outcome.
    pub fn is_of(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Its value; none where it was not measured. All but the training loss are over the test samples, and mean nothing
    /// without any.
    pub fn of(&self, evaluation: &Evaluation) -> Option<f64> {
        (self.read)(evaluation).filter(|value| value.is_finite())
    }

    /// Its value over the samples that choices are made by: those of validation where there are any, else those of the
    /// test; the training loss is over the training samples.
    pub fn judged(&self, evaluation: &Evaluation) -> Option<f64> {
        match (self.on_validation, &evaluation.validation) {
            (Some(read), Some(validation)) => read(validation).filter(|value| value.is_finite()),
            _ => self.of(evaluation),
        }
    }

    /// Which samples those are: `training`, `validation` or `test`.
    pub fn judged_on(&self, has_validation: bool) -> &'static str {
        match (self.tested, self.on_validation.is_some() && has_validation) {
            (false, _) => "training",
            (true, true) => "validation",
            (true, false) => "test",
        }
    }

    /// Whether a value is as good as a target.
    pub fn reaches(&self, value: f64, target: f64) -> bool {
        match self.better {
            Better::Lower => value <= target,
            Better::Higher => value >= target,
        }
    }

    /// The better of two values.
    pub fn better_of(&self, a: f64, b: f64) -> f64 {
        match self.better {
            Better::Lower => a.min(b),
            Better::Higher => a.max(b),
        }
    }
}

/// The rows of all metrics. The second list are those that follow from what is counted of held-out samples: they are
/// the fields of [`Metrics`] and of [`Validation`], in the order of `metrics.jsonl`.
macro_rules! metrics {
    (
        $($own:literal, $own_title:literal, $own_heading:literal, $own_words:literal, $tested:literal, $own_read:expr,
            $stop:expr;)*
        of what is counted:
        $($(#[$attribute:meta])+ $name:ident, $validation:ident: $title:literal, $heading:literal, $better:ident, $kinds:expr;)*
    ) => {
        /// Every metric, in the order in which they are shown.
        pub static METRICS: &[Metric] = &[
            $(Metric {
                name: $own,
                title: $own_title,
                heading: $own_heading,
                words: $own_words,
                tested: $tested,
                better: Better::Lower,
                kinds: &Kind::ALL,
                stop: $stop,
                read: $own_read,
                on_validation: None,
            },)*
            $(Metric {
                name: stringify!($name),
                title: $title,
                heading: $heading,
                words: concat!("test ", $heading),
                tested: true,
                better: Better::$better,
                kinds: $kinds,
                stop: Some(KeyInfo {
                    path: concat!("stop.", stringify!($name)),
                    values: metrics!(@values $better),
                    meaning: concat!(
                        "end when the ",
                        $heading,
                        metrics!(@reached $better),
                        ", on validation samples or, without any, on test samples"
                    ),
                }),
                read: |e| e.loss_test.and(e.test.$name),
                on_validation: Some(|on| on.$validation),
            },)*
        ];

        /// Quality of a model on some samples, as far as it is defined for their kind of outcome. Precision, recall and F1
        /// are means over classes by argmax, or over labels by what is more likely, with 0/0 = 0 for a class that is never
        /// guessed; absent if a class or label has no samples, since nobody knows its share then.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Metrics {
            $($(#[$attribute])+ pub $name: Option<f64>,)*
        }

        /// An evaluation on the validation samples.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Validation {
            /// Mean loss.
            pub loss_validation: f64,
            $($(#[$attribute])+ pub $validation: Option<f64>,)*
        }

        impl Validation {
            /// The loss and the metrics over some samples.
            pub(crate) fn new(loss: f64, metrics: &Metrics) -> Self {
                Validation {
                    loss_validation: loss,
                    $($validation: metrics.$name,)*
                }
            }
        }

        // By name, so that a record that was written before a metric was thought of can still be read.
        impl Wire for Metrics {
            fn put(&self, out: &mut Vec<u8>) {
                let values = [$((stringify!($name), self.$name)),*];
                let there = values.into_iter().filter(|(name, value)| value.is_some() || !is_new(name));
                let named = there.map(|(name, value)| (name.to_owned(), value));
                named.collect::<Vec<(String, Option<f64>)>>().put(out);
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                let named: Vec<(String, Option<f64>)> = Wire::get(reader)?;
                let value = |name: &str| {
                    let found = named.iter().find(|(known, _)| known == name);
                    found.and_then(|(_, value)| *value)
                };
                Ok(Metrics {
                    $($name: value(stringify!($name)),)*
                })
            }
        }

        /// By name too; records of format 2 have four of them.
        impl Wire for Validation {
            fn put(&self, out: &mut Vec<u8>) {
                let loss = ("loss".to_owned(), Some(self.loss_validation));
                let values = [$((stringify!($name), self.$validation)),*];
                let there = values.into_iter().filter(|(name, value)| value.is_some() || !is_new(name));
                let named = there.map(|(name, value)| (name.to_owned(), value));
                [loss].into_iter().chain(named).collect::<Vec<(String, Option<f64>)>>().put(out);
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                if reader.format == 2 {
                    return Ok(Validation {
                        loss_validation: Wire::get(reader)?,
                        auc_validation: Wire::get(reader)?,
                        f1_validation: Some(Wire::get(reader)?),
                        accuracy_validation: Some(Wire::get(reader)?),
                        ..Validation::default()
                    });
                }
                let named: Vec<(String, Option<f64>)> = Wire::get(reader)?;
                let value = |name: &str| {
                    let found = named.iter().find(|(known, _)| known == name);
                    found.and_then(|(_, value)| *value)
                };
                Ok(Validation {
                    loss_validation: value("loss").ok_or(WireError::Short("a validation metric"))?,
                    $($validation: value(stringify!($name)),)*
                })
            }
        }
    };
    (@values Higher) => { SHARE };
    (@values Lower) => { ABOVE_0 };
    (@reached Higher) => { " is at least this" };
    (@reached Lower) => { " is at most this" };
}

/// Whether a metric is of kinds of outcome that older records cannot have.
fn is_new(name: &str) -> bool {
    Metric::find(name).is_some_and(|metric| !metric.is_of(Kind::Class))
}

/// Kinds whose answers are probabilities of classes or labels.
const ANSWERS: &[Kind] = &[Kind::Class, Kind::Labels];

metrics! {
    "loss", "Training loss", "train loss", "training loss", false, |e| Some(e.loss_train), Some(KeyInfo {
        path: "stop.loss",
        values: ABOVE_0,
        meaning: "end when the training loss is at most this",
    });
    "loss_test", "Test loss", "test loss", "test loss", true, |e| e.loss_test, None;

    of what is counted:
    /// Mean over classes or labels of the area under the ROC curve of one against the rest; absent where none has both
    /// positives and negatives.
    #[serde(default)]
    auc, auc_validation: "AUC", "AUC", Higher, ANSWERS;
    /// Mean precision.
    #[serde(default)]
    precision, precision_validation: "Precision", "precision", Higher, ANSWERS;
    /// Mean recall.
    #[serde(default)]
    recall, recall_validation: "Recall", "recall", Higher, ANSWERS;
    /// Mean F1.
    #[serde(default)]
    f1, f1_validation: "F1", "F1", Higher, ANSWERS;
    /// Share of right answers: of samples whose most probable class is theirs, or of known labels.
    #[serde(default)]
    accuracy, accuracy_validation: "Accuracy", "accuracy", Higher, ANSWERS;
    /// Mean over labels of the area under the curve of precision by recall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auprc, auprc_validation: "AUPRC", "AUPRC", Higher, &[Kind::Labels];
    /// The area under the ROC curve of all labels taken together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    micro_auc, micro_auc_validation: "Micro AUC", "micro AUC", Higher, &[Kind::Labels];
    /// The area under the curve of precision by recall of all labels taken together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    micro_auprc, micro_auprc_validation: "Micro AUPRC", "micro AUPRC", Higher, &[Kind::Labels];
    /// Mean distance of a quantity from the truth, in its own unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mae, mae_validation: "Mean absolute error", "MAE", Lower, &[Kind::Quantity];
    /// The root of the mean squared distance, in its own unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rmse, rmse_validation: "Root mean squared error", "RMSE", Lower, &[Kind::Quantity];
    /// The share of the variance that is explained: below 0 it is worse than always saying the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    r2, r2_validation: "R²", "R²", Higher, &[Kind::Quantity];
    /// Of two patients of whom it is known who had the event in an earlier interval, how often that one is given the
    /// higher risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    concordance, concordance_validation: "Concordance", "concordance", Higher, &[Kind::Survival];
    /// Mean over the ends of intervals of the squared distance of a survival curve from what is known at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    brier, brier_validation: "Brier score", "Brier score", Lower, &[Kind::Survival];
}

/// A sum of losses. Kept in whole multiples of a small unit, it does not depend on the order of additions or on who
/// makes them: a deployment gets the simulation's mean to the bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossSum {
    /// In units of 2⁻⁴⁸.
    units: i128,
    samples: u64,
    /// Losses that are not finite.
    infinite: u64,
}

impl LossSum {
    const UNIT: f64 = 1.0 / (1u64 << 48) as f64;

    /// Losses beyond this count as it: a run has long gone wrong there.
    const MOST: f64 = 1e18;

    /// Adds one sample's.
    pub fn add(&mut self, loss: f64) {
        self.samples += 1;
        match loss.is_finite() {
            true => {
                let loss = loss.clamp(-Self::MOST, Self::MOST);
                let units = (loss / Self::UNIT).round_ties_even() as i128;
                self.units = self.units.saturating_add(units);
            }
            false => self.infinite += 1,
        }
    }

    /// Both together.
    #[must_use]
    pub fn merged(self, other: LossSum) -> LossSum {
        LossSum {
            units: self.units.saturating_add(other.units),
            samples: self.samples.saturating_add(other.samples),
            infinite: self.infinite.saturating_add(other.infinite),
        }
    }

    /// How many were added.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The sum; infinite if one of them is not finite.
    pub fn total(&self) -> f64 {
        match self.infinite {
            0 => self.units as f64 * Self::UNIT,
            _ => f64::INFINITY,
        }
    }

    /// The mean; NaN if there are none.
    pub fn mean(&self) -> f64 {
        self.total() / self.samples as f64
    }

    /// Its numbers, for the wire.
    pub(crate) fn parts(&self) -> (i128, u64, u64) {
        (self.units, self.samples, self.infinite)
    }

    /// Whether it can be one of so many samples; of more than rows can have numbers it is of none.
    pub(crate) fn is_of(&self, samples: u64) -> bool {
        let counts = samples <= u64::from(u32::MAX) && self.infinite <= samples;
        self.samples == samples && counts
    }

    pub(crate) fn from_parts((units, samples, infinite): (i128, u64, u64)) -> Self {
        LossSum {
            units,
            samples,
            infinite,
        }
    }
}

/// The class with the largest probability in a row; the first in a tie.
pub fn argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (i, p) in row.iter().enumerate() {
        if *p > row[best] {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests;
