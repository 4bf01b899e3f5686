//! The quality of a model: from integer counts that groups can add up, or exactly.
//!
//! Nobody in a deployment may pool scores and labels, so AUC is computed from histograms of scores with 4,096 bins per
//! class. The simulation uses the same, so that a stop on a target is the same stop.

use crate::experiment::{ABOVE_0, KeyInfo, SHARE};
use crate::role::wire::{Reader, Wire, WireError};
use crate::state::{Evaluation, Validation};
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
    /// Higher ones; they lie between 0 and 1.
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
/// the fields of [`Metrics`], in the order of `metrics.jsonl`. Older runs lack a new one: its type is `Option<f64>`.
macro_rules! metrics {
    (
        $($own:literal, $own_title:literal, $own_heading:literal, $own_words:literal, $tested:literal, $own_read:expr,
            $stop:expr;)*
        of what is counted:
        $($(#[doc = $doc:literal])+ $name:ident: $type:ty, $title:literal, $heading:literal, $value:expr $(, $validation:ident)?;)*
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
                better: Better::Higher,
                stop: Some(KeyInfo {
                    path: concat!("stop.", stringify!($name)),
                    values: SHARE,
                    meaning: concat!(
                        "end when the ",
                        $heading,
                        " is at least this, on validation samples or, without any, on test samples"
                    ),
                }),
                read: |e| e.loss_test.and(e.test.$name.into()),
                on_validation: metrics!(@validation $($validation)?),
            },)*
        ];

        /// Quality of a model on some samples. Precision, recall and F1 are means over the classes, by argmax, with 0/0
        /// = 0 for a class that is never guessed; absent if a class has no samples, since nobody knows its share then.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $name: $type,)*
        }

        // By name, so that a record that was written before a metric was thought of can still be read.
        impl Wire for Metrics {
            fn put(&self, out: &mut Vec<u8>) {
                let values: [(&str, Option<f64>); _] = [$((stringify!($name), self.$name.into())),*];
                let named = values.map(|(name, value)| (name.to_owned(), value));
                named.to_vec().put(out);
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

        impl Counted<'_> {
            fn metrics(&self) -> Metrics {
                Metrics { $($name: $value(self),)* }
            }
        }
    };
    (@validation) => { None };
    (@validation $field:ident) => { Some(|on| on.$field.into()) };
}

metrics! {
    "loss", "Training loss", "train loss", "training loss", false, |e| Some(e.loss_train), Some(KeyInfo {
        path: "stop.loss",
        values: ABOVE_0,
        meaning: "end when the training loss is at most this",
    });
    "loss_test", "Test loss", "test loss", "test loss", true, |e| e.loss_test, None;

    of what is counted:
    /// Mean over the classes of the one-vs-rest area under the ROC curve; absent where no class has both positives and
    /// negatives.
    auc: Option<f64>, "AUC", "AUC", |c: &Counted| c.auc, auc_validation;
    /// Mean precision.
    precision: Option<f64>, "Precision", "precision", |c: &Counted| c.mean(Counted::precision), precision_validation;
    /// Mean recall.
    recall: Option<f64>, "Recall", "recall", |c: &Counted| c.mean(Counted::recall), recall_validation;
    /// Mean F1.
    f1: Option<f64>, "F1", "F1", |c: &Counted| c.mean(Counted::f1), f1_validation;
    /// Share of samples whose largest probability is the right one; absent without samples.
    accuracy: Option<f64>, "Accuracy", "accuracy", Counted::accuracy, accuracy_validation;
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

/// Counts of scores and of right and wrong answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    classes: usize,
    /// For each class, bins of the scores of its own samples, then of the others'.
    histogram: Vec<u64>,
    /// Samples by true class and by largest score.
    confusion: Vec<u64>,
}

impl Tally {
    /// No samples yet.
    pub fn new(classes: usize) -> Self {
        Tally {
            classes,
            histogram: vec![0; classes * 2 * BINS],
            confusion: vec![0; classes * classes],
        }
    }

    /// Counts samples, given their probabilities row after row.
    pub fn add(&mut self, probabilities: &[f32], labels: &[u32]) {
        for (row, &label) in probabilities.chunks_exact(self.classes).zip(labels) {
            let label = label as usize;
            for (class, &p) in row.iter().enumerate() {
                let bin = ((p * BINS as f32) as usize).min(BINS - 1);
                let half = usize::from(class != label);
                self.histogram[(2 * class + half) * BINS + bin] += 1;
            }
            self.confusion[label * self.classes + argmax(row)] += 1;
        }
    }

    /// The same samples, all answered right and with certainty.
    pub(crate) fn perfect(&self) -> Tally {
        let mut perfect = Tally::new(self.classes);
        for (class, row) in self.confusion().into_iter().enumerate() {
            let mut answer = vec![0.0; self.classes];
            answer[class] = 1.0;
            (0..row.iter().sum()).for_each(|_: u64| perfect.add(&answer, &[class as u32]));
        }
        perfect
    }

    /// Adds another group's counts.
    pub fn merge(&mut self, other: &Tally) {
        for (ours, theirs) in self.histogram.iter_mut().zip(&other.histogram) {
            *ours = ours.saturating_add(*theirs);
        }
        for (ours, theirs) in self.confusion.iter_mut().zip(&other.confusion) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// Bins of how the samples of a class score in it, and of how the others do.
    pub(crate) fn scores(&self, class: usize) -> [&[u64]; 2] {
        let (own, others) = self.histogram[2 * class * BINS..][..2 * BINS].split_at(BINS);
        [own, others]
    }

    /// How many classes there are.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// All counts one after the other, for the wire: those that are not zero, with their places. Most are zero, and
    /// whole stretches of them are passed over at once.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        static ZEROS: [u64; 512] = [0; 512];
        let parts = [
            (0, &self.histogram),
            (self.histogram.len(), &self.confusion),
        ];
        parts.into_iter().flat_map(|(first, counts)| {
            let stretches = counts.chunks(ZEROS.len()).enumerate();
            let some = stretches.filter(|(_, stretch)| **stretch != ZEROS[..stretch.len()]);
            some.flat_map(move |(number, stretch)| {
                let places = first + number * ZEROS.len()..;
                let counts = places.zip(stretch.iter().copied());
                counts.filter(|(_, count)| *count > 0)
            })
        })
    }

    /// One of them, by its place there.
    pub(crate) fn count_mut(&mut self, place: usize) -> Option<&mut u64> {
        match place.checked_sub(self.histogram.len()) {
            None => self.histogram.get_mut(place),
            Some(place) => self.confusion.get_mut(place),
        }
    }

    /// Whether so many samples can have been counted: each has one true class, one largest score, and one bin of each
    /// class.
    pub(crate) fn is_of(&self, samples: u64) -> bool {
        let sum = |counts: &[u64]| {
            let add = |sum: u64, count: &u64| sum.checked_add(*count);
            counts.iter().try_fold(0, add)
        };
        let class = |class: usize| {
            let own = sum(&self.confusion[class * self.classes..][..self.classes]);
            let bins = self.histogram[2 * class * BINS..][..2 * BINS].split_at(BINS);
            let others = own.and_then(|own| samples.checked_sub(own));
            others.is_some() && sum(bins.0) == own && sum(bins.1) == others
        };
        sum(&self.confusion) == Some(samples) && (0..self.classes).all(class)
    }

    /// Samples by true class (rows) and by largest score (columns).
    pub fn confusion(&self) -> Vec<&[u64]> {
        self.confusion.chunks_exact(self.classes).collect()
    }

    /// The metrics of what was counted, AUC from the histograms.
    pub fn metrics(&self) -> Metrics {
        let auc = |class: usize| {
            let [own, others] = self.scores(class);
            area(own.iter().copied().zip(others.iter().copied()))
        };
        self.metrics_with((0..self.classes).map(auc))
    }

    /// The metrics of what was counted, with the exact AUC of the same samples.
    pub fn exact_metrics(&self, probabilities: &[f32], labels: &[u32]) -> Metrics {
        self.metrics_with(
            (0..self.classes).map(|class| exact_auc(probabilities, labels, self.classes, class)),
        )
    }

    fn metrics_with(&self, aucs: impl Iterator<Item = Option<f64>>) -> Metrics {
        let defined: Vec<f64> = aucs.flatten().collect();
        let counted = Counted {
            auc: (!defined.is_empty()).then(|| defined.iter().sum::<f64>() / defined.len() as f64),
            confusion: &self.confusion(),
        };
        counted.metrics()
    }
}

/// The metrics of samples counted by true class (rows) and by the class that was guessed (columns); AUC is unknown.
pub(crate) fn of_confusion(confusion: &[impl AsRef<[u64]>]) -> Metrics {
    let confusion: Vec<&[u64]> = confusion.iter().map(AsRef::as_ref).collect();
    let counted = Counted {
        auc: None,
        confusion: &confusion,
    };
    counted.metrics()
}

/// What metrics are computed from.
struct Counted<'a> {
    auc: Option<f64>,
    /// Samples by true class (rows) and by the class that was guessed (columns).
    confusion: &'a [&'a [u64]],
}

impl Counted<'_> {
    fn classes(&self) -> std::ops::Range<usize> {
        0..self.confusion.len()
    }

    fn count(&self, truth: usize, guess: usize) -> f64 {
        self.confusion[truth][guess] as f64
    }

    fn mean(&self, of: fn(&Self, usize) -> f64) -> Option<f64> {
        let is_there = |c: usize| self.confusion[c].iter().any(|count| *count > 0);
        let all = self.classes().all(is_there);
        all.then(|| self.classes().map(|c| of(self, c)).sum::<f64>() / self.confusion.len() as f64)
    }

    fn precision(&self, c: usize) -> f64 {
        ratio(
            self.count(c, c),
            self.classes().map(|t| self.count(t, c)).sum(),
        )
    }

    fn recall(&self, c: usize) -> f64 {
        ratio(
            self.count(c, c),
            self.classes().map(|g| self.count(c, g)).sum(),
        )
    }

    fn f1(&self, c: usize) -> f64 {
        let (precision, recall) = (self.precision(c), self.recall(c));
        ratio(2.0 * precision * recall, precision + recall)
    }

    fn accuracy(&self) -> Option<f64> {
        let right: f64 = self.classes().map(|c| self.count(c, c)).sum();
        let all: u64 = self.confusion.iter().copied().flatten().sum();
        (all > 0).then(|| right / all as f64)
    }
}

/// With 0/0 = 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
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

/// The chance that a positive scores above a negative, ties counting half, from (positives, negatives) by rising score.
/// `None` without both.
pub(crate) fn area(counts: impl Iterator<Item = (u64, u64)>) -> Option<f64> {
    let (mut positives, mut negatives, mut halves) = (0u64, 0u64, 0u128);
    for (p, n) in counts {
        halves += u128::from(p) * (2 * u128::from(negatives) + u128::from(n));
        positives += p;
        negatives += n;
    }
    let pairs = 2.0 * positives as f64 * negatives as f64;
    (pairs > 0.0).then(|| halves as f64 / pairs)
}

/// One class against the rest, by ranks.
fn exact_auc(probabilities: &[f32], labels: &[u32], classes: usize, class: usize) -> Option<f64> {
    let mut scores: Vec<(f32, bool)> = probabilities
        .chunks_exact(classes)
        .zip(labels)
        .map(|(row, &label)| (row[class], label as usize == class))
        .collect();
    scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    area(scores.chunk_by(|a, b| a.0 == b.0).map(|tied| {
        let positives = tied.iter().filter(|s| s.1).count() as u64;
        (positives, tied.len() as u64 - positives)
    }))
}

#[cfg(test)]
mod tests;
