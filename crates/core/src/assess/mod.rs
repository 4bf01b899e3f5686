//! The quality of predictions, with its uncertainty: measures with intervals, curves, calibration, decisions.
//!
//! ```text
//! probabilities, labels ──► Scored ──► measures ──► bootstrap ──► Estimate (value, interval)
//!                             │
//!                             ├──► roc, precision_recall, reliability
//!                             └──► decision: a threshold for a wanted sensitivity or specificity
//! ```

mod answered;
mod bootstrap;
mod curves;
mod decision;

pub use answered::{Agreement, Answered, losses};
pub use bootstrap::{Bootstrap, Estimate};
pub use curves::{Bin, Point, precision_recall, reliability, roc};
pub use decision::{Decision, Goal, Operating};

use std::collections::BTreeSet;

/// The measures of predictions, in the order of [`Scored::measures`]. Precision, recall and F1 are means over the
/// classes; average precision and the last four are of the positive class, where there is one. Brier's score is the
/// squared error of the probability, summed over the classes if there are more than two.
pub const MEASURES: [&str; 12] = [
    "auc",
    "average_precision",
    "accuracy",
    "precision",
    "recall",
    "f1",
    "loss",
    "brier",
    "sensitivity",
    "specificity",
    "positive_predictive_value",
    "negative_predictive_value",
];

/// Values of [`MEASURES`]; NaN where one is not defined.
pub type Measures = [f64; MEASURES.len()];

/// Predictions with the true classes.
pub struct Scored {
    classes: usize,
    positive: Option<usize>,
    /// The classes that some rows have and some have not.
    ranked: Vec<usize>,
    labels: Vec<u32>,
    /// The class that is decided on.
    decided: Vec<u32>,
    loss: Vec<f64>,
    brier: Vec<f64>,
    rankings: Vec<Ranking>,
}

/// The rows by their score for one class, the least first.
struct Ranking {
    order: Vec<u32>,
    /// Where those of the next higher score begin, and where all end.
    ends: Vec<u32>,
}

impl Ranking {
    fn new(scores: impl Iterator<Item = f32>) -> Self {
        let scores: Vec<f32> = scores.collect();
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        let score = |row: u32| scores[row as usize];
        order.sort_unstable_by(|a, b| score(*a).total_cmp(&score(*b)));
        let mut ends = Vec::new();
        for tied in order.chunk_by(|a, b| score(*a) == score(*b)) {
            ends.push(ends.last().unwrap_or(&0) + tied.len() as u32);
        }
        Ranking { order, ends }
    }

    /// Rows of equal score, the least score first.
    fn tied(&self) -> impl DoubleEndedIterator<Item = &[u32]> {
        let from = |at: usize| if at == 0 { 0 } else { self.ends[at - 1] } as usize;
        (0..self.ends.len()).map(move |at| &self.order[from(at)..self.ends[at] as usize])
    }
}

impl Scored {
    /// From probabilities row after row, the true classes, the positive class, and how a class is chosen.
    pub fn new(
        probabilities: &[f32],
        labels: &[u32],
        (classes, positive): (usize, Option<usize>),
        decision: Decision,
    ) -> Self {
        let rows = || probabilities.chunks_exact(classes);
        let said = |(row, label): (&[f32], &u32)| f64::from(row[*label as usize]);
        let square = |(row, label): (&[f32], &u32)| {
            let miss = |(class, p): (usize, &f32)| {
                let truth = f64::from(u8::from(class == *label as usize));
                (f64::from(*p) - truth).powi(2)
            };
            let misses = row.iter().enumerate().map(miss).sum::<f64>();
            // Of two classes one says all: the usual score of a yes or no.
            if classes == 2 { misses / 2.0 } else { misses }
        };
        let class_of = |class: usize| Ranking::new(rows().map(move |row| row[class]));
        let count = |class: usize| labels.iter().filter(|l| **l as usize == class).count();
        Scored {
            classes,
            positive,
            ranked: (0..classes)
                .filter(|class| (1..labels.len()).contains(&count(*class)))
                .collect(),
            labels: labels.to_vec(),
            decided: rows().map(|row| decision.class(row) as u32).collect(),
            loss: rows()
                .zip(labels)
                .map(said)
                .map(|p| -libm::log(if p < 1e-30 { 1e-30 } else { p }))
                .collect(),
            brier: rows().zip(labels).map(square).collect(),
            rankings: (0..classes).map(class_of).collect(),
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Rows by true class and by chosen class.
    pub fn confusion(&self) -> Vec<Vec<u64>> {
        self.weighted_confusion(&vec![1; self.len()])
    }

    /// The values of [`MEASURES`] where each row counts once.
    pub fn measures(&self) -> Measures {
        self.weighted(&vec![1; self.len()])
    }

    /// On how many patients each of [`MEASURES`] rests, at least: a share on those that it is a share of, a mean over the
    /// classes on those of the smallest class, an area on those of each side. Rows with the same number in `persons` are
    /// of one patient; without numbers each is of another.
    pub(crate) fn patients(&self, persons: &[u32]) -> [usize; MEASURES.len()] {
        let person = |row: usize| persons.get(row).copied().unwrap_or(row as u32);
        let count = |is_there: &dyn Fn(usize) -> bool| {
            let rows = (0..self.len()).filter(|row| is_there(*row));
            rows.map(person).collect::<BTreeSet<u32>>().len()
        };
        let is = |class: usize| count(&|row| self.labels[row] as usize == class);
        let is_not = |class: usize| count(&|row| self.labels[row] as usize != class);
        let of_all = count(&|_| true);
        let of_classes = (0..self.classes).map(is).min().unwrap_or(0);
        let ranked = self.ranked.iter();
        let of_sides = ranked.map(|class| is(*class).min(is_not(*class))).min();
        let of_sides = of_sides.unwrap_or(0);
        let of_positive = match self.positive {
            None => [of_sides, 0, 0, 0, 0],
            Some(class) => {
                let said = count(&|row| self.decided[row] as usize == class);
                let not_said = count(&|row| self.decided[row] as usize != class);
                [is(class), is(class), is_not(class), said, not_said]
            }
        };
        let [average_precision, sensitivity, specificity, ppv, npv] = of_positive;
        [
            of_sides,
            average_precision,
            of_all,
            of_classes,
            of_classes,
            of_classes,
            of_all,
            of_all,
            sensitivity,
            specificity,
            ppv,
            npv,
        ]
    }

    /// The same where rows count as often as `weights` say.
    fn weighted(&self, weights: &[u32]) -> Measures {
        let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        let mean_of_rows = |values: &[f64]| {
            let weighted = values.iter().zip(weights).map(|(v, w)| v * f64::from(*w));
            weighted.sum::<f64>() / total
        };
        let confusion = self.weighted_confusion(weights);
        let [accuracy, precision, recall, f1] = by_argmax(&confusion);
        let mut measures = [f64::NAN; MEASURES.len()];
        measures[0] = mean(self.ranked.iter().map(|c| self.auc(*c, weights))).unwrap_or(f64::NAN);
        let average_precision = |class: &usize| self.average_precision(*class, weights);
        measures[1] = match &self.positive {
            Some(class) => average_precision(class),
            None => mean(self.ranked.iter().map(average_precision)),
        }
        .unwrap_or(f64::NAN);
        measures[2..6].copy_from_slice(&[accuracy, precision, recall, f1]);
        measures[6..8].copy_from_slice(&[mean_of_rows(&self.loss), mean_of_rows(&self.brier)]);
        if let Some(positive) = self.positive {
            measures[8..].copy_from_slice(&of_class(&confusion, positive));
        }
        measures
    }

    fn weighted_confusion(&self, weights: &[u32]) -> Vec<Vec<u64>> {
        let mut confusion = vec![vec![0; self.classes]; self.classes];
        for ((truth, guess), weight) in self.labels.iter().zip(&self.decided).zip(weights) {
            confusion[*truth as usize][*guess as usize] += u64::from(*weight);
        }
        confusion
    }

    /// Positives and negatives among tied rows.
    fn split(&self, tied: &[u32], class: usize, weights: &[u32]) -> (u64, u64) {
        let (mut positives, mut negatives) = (0, 0);
        for row in tied {
            let weight = u64::from(weights[*row as usize]);
            match self.labels[*row as usize] as usize == class {
                true => positives += weight,
                false => negatives += weight,
            }
        }
        (positives, negatives)
    }

    fn auc(&self, class: usize, weights: &[u32]) -> Option<f64> {
        let tied = self.rankings[class].tied();
        crate::metrics::area(&mut tied.map(|tied| self.split(tied, class, weights)))
    }

    /// The area under the curve of precision over recall, by steps.
    fn average_precision(&self, class: usize, weights: &[u32]) -> Option<f64> {
        let (mut positives, mut all, mut sum) = (0u64, 0u64, 0.0);
        for tied in self.rankings[class].tied().rev() {
            let (p, n) = self.split(tied, class, weights);
            positives += p;
            all += p + n;
            if p > 0 {
                sum += p as f64 * positives as f64 / all as f64;
            }
        }
        (positives > 0).then(|| sum / positives as f64)
    }
}

/// Nothing if one of them is not defined: a mean over fewer would be another measure.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sensitivity, specificity, and the shares of those said to have the class, and not to have it, of whom that is so.
fn of_class(confusion: &[Vec<u64>], class: usize) -> [f64; 4] {
    let (mut right, mut missed, mut alarms, mut rest) = (0.0, 0.0, 0.0, 0.0);
    for (truth, row) in confusion.iter().enumerate() {
        for (guess, count) in row.iter().enumerate() {
            *match (truth == class, guess == class) {
                (true, true) => &mut right,
                (true, false) => &mut missed,
                (false, true) => &mut alarms,
                (false, false) => &mut rest,
            } += *count as f64;
        }
    }
    [
        right / (right + missed),
        rest / (rest + alarms),
        right / (right + alarms),
        rest / (rest + missed),
    ]
}

/// Accuracy, and the means over the classes of precision, recall and F1, where 0/0 is 0.
fn by_argmax(confusion: &[Vec<u64>]) -> [f64; 4] {
    let metrics = crate::metrics::of_confusion(confusion);
    [
        metrics.accuracy.unwrap_or(f64::NAN),
        metrics.precision.unwrap_or(f64::NAN),
        metrics.recall.unwrap_or(f64::NAN),
        metrics.f1.unwrap_or(f64::NAN),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Layout, Tally};
    use selvedge_nn::random::Key;

    /// Probabilities that lean towards the label.
    pub(super) fn said(seed: u64, n: usize, classes: usize) -> (Vec<f32>, Vec<u32>) {
        let mut stream = Key::new(seed).stream();
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let label = stream.below(classes as u64) as usize;
            let mut row: Vec<f32> = (0..classes).map(|_| stream.uniform() + 0.02).collect();
            row[label] += 0.3;
            let sum: f32 = row.iter().sum();
            // Some scores are equal.
            rows.extend(row.iter().map(|p| (p / sum * 50.0).round() / 50.0));
            labels.push(label as u32);
        }
        (rows, labels)
    }

    #[test]
    fn measures_are_those_of_the_tally() {
        for classes in [2, 5] {
            let (rows, labels) = said(1, 400, classes);
            let mut tally = Tally::new(Layout::classes(classes));
            tally.add(&rows, &labels);
            let expected = tally.exact_metrics(&rows, &labels);
            let scored = Scored::new(
                &rows,
                &labels,
                (classes, (classes == 2).then_some(1)),
                Decision::Largest,
            );
            let m = scored.measures();
            assert!((m[0] - expected.auc.unwrap()).abs() < 1e-12);
            assert_eq!(
                [m[2], m[3], m[4], m[5]],
                [
                    expected.accuracy,
                    expected.precision,
                    expected.recall,
                    expected.f1
                ]
                .map(Option::unwrap)
            );
            assert_eq!(m[8].is_nan(), classes != 2);
        }
    }

    #[test]
    fn two_by_two_by_hand() {
        // True 1 said 0.9 and 0.4, true 0 said 0.6, 0.2 and 0.1.
        let p = [0.9f32, 0.4, 0.6, 0.2, 0.1];
        let rows: Vec<f32> = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
        let scored = Scored::new(&rows, &[1, 1, 0, 0, 0], (2, Some(1)), Decision::Largest);
        let m = scored.measures();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(close(m[0], 5.0 / 6.0));
        assert!(close(m[1], (1.0 + 2.0 / 3.0) / 2.0));
        assert!(close(m[8], 0.5) && close(m[9], 2.0 / 3.0));
        assert!(close(m[10], 0.5) && close(m[11], 2.0 / 3.0));
        let brier = (0.01 + 0.36 + 0.36 + 0.04 + 0.01) / 5.0;
        assert!(close(m[7], brier));
        assert_eq!(scored.confusion(), [[2, 1], [1, 1]]);
        // The other class is looked for: everything is the other way around.
        let other = Scored::new(&rows, &[1, 1, 0, 0, 0], (2, Some(0)), Decision::Largest);
        let o = other.measures();
        assert_eq!([o[8], o[9], o[10], o[11]], [m[9], m[8], m[11], m[10]]);
        assert!(close(o[1], (1.0 + 1.0 + 3.0 / 4.0) / 3.0));
    }

    #[test]
    fn one_class_alone_has_no_area() {
        let scored = Scored::new(
            &[0.3, 0.7, 0.6, 0.4],
            &[1, 1],
            (2, Some(1)),
            Decision::Largest,
        );
        let m = scored.measures();
        assert!(m[0].is_nan() && m[9].is_nan() && m[2] == 0.5);
    }
}
