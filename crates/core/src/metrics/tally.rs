//! What is counted of held-out samples, so that groups can add it up: histograms of scores, right and wrong answers, sums
//! of errors.

use super::{BINS, Metrics, argmax};
use crate::outcome::Kind;

/// Bins of the risks of patients of one interval.
const RISK_BINS: usize = 1024;

/// Sums are kept in whole multiples of this: they do not depend on the order of additions or on who makes them.
const UNIT: f64 = 1.0 / (1u64 << 48) as f64;

/// Errors beyond this count as it: a run has long gone wrong there.
const MOST: f64 = 1e18;

/// What a tally is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The kind of outcome.
    pub kind: Kind,
    /// The numbers that a model gives for a sample: classes, labels or intervals.
    pub outputs: usize,
}

impl Layout {
    /// Of so many classes.
    pub fn classes(classes: usize) -> Self {
        Layout {
            kind: Kind::Class,
            outputs: classes,
        }
    }

    /// Bins of scores, and counts of answers.
    fn counts(self) -> [usize; 2] {
        let n = self.outputs;
        match self.kind {
            Kind::Class => [2 * n * BINS, n * n],
            Kind::Labels => [2 * n * BINS, 4 * n],
            Kind::Quantity => [0, 1],
            Kind::Survival => [2 * (n + 1) * RISK_BINS, 0],
        }
    }

    fn sums(self) -> usize {
        match self.kind {
            Kind::Class | Kind::Labels => 0,
            Kind::Quantity => Sum::ALL,
            Kind::Survival => self.outputs,
        }
    }
}

/// The sums over quantities; all in standard deviations.
#[derive(Clone, Copy)]
enum Sum {
    /// Of distances from the truth.
    Absolute,
    /// Of their squares.
    Squares,
    /// Of true values.
    Truth,
    /// Of their squares.
    TruthSquares,
}

impl Sum {
    const ALL: usize = 4;
}

/// Counts of scores and of right and wrong answers, and sums of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    layout: Layout,
    /// For each class or label, bins of the scores of its own samples, then of the others'; for each number of intervals
    /// survived, bins of the risks of those without an event in the next, then of those with one.
    bins: Vec<u64>,
    /// Samples by true class and by most probable one; for each label, samples without and with it by what is said; or
    /// all samples.
    answers: Vec<u64>,
    /// Of quantities, see [`Sum`]; of survival, the squared errors at the end of each interval.
    sums: Vec<i128>,
}

impl Tally {
    /// No samples yet.
    pub fn new(layout: Layout) -> Self {
        let [bins, answers] = layout.counts();
        Tally {
            layout,
            bins: vec![0; bins],
            answers: vec![0; answers],
            sums: vec![0; layout.sums()],
        }
    }

    /// What it is of.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    fn score(&mut self, output: usize, p: f32, own: bool) {
        let bin = ((p * BINS as f32) as usize).min(BINS - 1);
        let half = usize::from(!own);
        self.bins[(2 * output + half) * BINS + bin] += 1;
    }

    fn sum(&mut self, place: usize, value: f64) {
        let value = if value.is_finite() { value } else { MOST };
        let units = (value.clamp(-MOST, MOST) / UNIT).round_ties_even() as i128;
        self.sums[place] = self.sums[place].saturating_add(units);
    }

    /// Counts samples, given the probabilities of the classes row after row.
    pub fn add(&mut self, probabilities: &[f32], classes: &[u32]) {
        let n = self.layout.outputs;
        for (row, class) in probabilities.chunks_exact(n).zip(classes) {
            let class = *class as usize;
            for (output, p) in row.iter().enumerate() {
                self.score(output, *p, output == class);
            }
            self.answers[class * n + argmax(row)] += 1;
        }
    }

    /// Counts a sample, given the probabilities of its labels and what is known of them.
    pub(crate) fn add_labels(&mut self, probabilities: &[f32], known: &[f32]) {
        for (label, (p, y)) in probabilities.iter().zip(known).enumerate() {
            if !y.is_nan() {
                let yes = *y > 0.5;
                self.score(label, *p, yes);
                self.answers[4 * label + 2 * usize::from(yes) + usize::from(*p > 0.5)] += 1;
            }
        }
    }

    /// Counts a sample, given what was said and what is true, both in standard deviations from the mean.
    pub(crate) fn add_quantity(&mut self, said: f64, truth: f64) {
        self.answers[0] += 1;
        self.sum(Sum::Absolute as usize, (said - truth).abs());
        self.sum(Sum::Squares as usize, (said - truth) * (said - truth));
        self.sum(Sum::Truth as usize, truth);
        self.sum(Sum::TruthSquares as usize, truth * truth);
    }

    /// Counts a sample, given its survival curve, in how many whole intervals nothing happened, and whether it did in the
    /// next.
    pub(crate) fn add_survival(&mut self, curve: &[f32], survived: usize, event: bool) {
        let bin = ((risk(curve) * RISK_BINS as f32) as usize).min(RISK_BINS - 1);
        self.bins[(2 * survived + usize::from(event)) * RISK_BINS + bin] += 1;
        // Who had the event did not survive any later end; without one, nothing is known of later ends.
        let known = if event { curve.len() } else { survived };
        for (place, p) in curve.iter().enumerate().take(known) {
            let off = f64::from(*p) - f64::from(u8::from(place < survived));
            self.sum(place, off * off);
        }
    }

    /// The same samples, all answered right and with certainty.
    pub(crate) fn perfect(&self) -> Tally {
        let mut perfect = Tally::new(self.layout);
        let n = self.layout.outputs;
        match self.layout.kind {
            Kind::Class => {
                for (class, row) in self.confusion().into_iter().enumerate() {
                    let all: u64 = row.iter().sum();
                    perfect.answers[class * n + class] = all;
                    for output in 0..n {
                        let (half, bin) = match output == class {
                            true => (0, BINS - 1),
                            false => (1, 0),
                        };
                        perfect.bins[(2 * output + half) * BINS + bin] += all;
                    }
                }
            }
            Kind::Labels => {
                for (label, row) in self.answers.chunks_exact(4).enumerate() {
                    let [no, yes] = [row[0] + row[1], row[2] + row[3]];
                    perfect.answers[4 * label] = no;
                    perfect.answers[4 * label + 3] = yes;
                    perfect.bins[2 * label * BINS + BINS - 1] = yes;
                    perfect.bins[(2 * label + 1) * BINS] = no;
                }
            }
            Kind::Quantity => {
                perfect.answers.copy_from_slice(&self.answers);
                for place in [Sum::Truth as usize, Sum::TruthSquares as usize] {
                    perfect.sums[place] = self.sums[place];
                }
            }
            Kind::Survival => {
                for (place, bins) in self.bins.chunks_exact(RISK_BINS).enumerate() {
                    let (survived, event) = (place / 2, place % 2 == 1);
                    let curve: Vec<f32> = (0..n)
                        .map(|k| if k < survived { 1.0 } else { 0.0 })
                        .collect();
                    let bin = ((risk(&curve) * RISK_BINS as f32) as usize).min(RISK_BINS - 1);
                    let event = usize::from(event);
                    perfect.bins[(2 * survived + event) * RISK_BINS + bin] = bins.iter().sum();
                }
            }
        }
        perfect
    }

    /// Adds another group's counts.
    pub fn merge(&mut self, other: &Tally) {
        let pairs = [
            (&mut self.bins, &other.bins),
            (&mut self.answers, &other.answers),
        ];
        for (ours, theirs) in pairs {
            for (ours, theirs) in ours.iter_mut().zip(theirs) {
                *ours = ours.saturating_add(*theirs);
            }
        }
        for (ours, theirs) in self.sums.iter_mut().zip(&other.sums) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// Bins of how the samples of a class or with a label score in it, and of how the others do.
    pub(crate) fn scores(&self, output: usize) -> [&[u64]; 2] {
        let (own, others) = self.bins[2 * output * BINS..][..2 * BINS].split_at(BINS);
        [own, others]
    }

    /// Of what scores can be compared: classes or labels.
    pub(crate) fn scored(&self) -> std::ops::Range<usize> {
        match self.layout.kind {
            Kind::Class | Kind::Labels => 0..self.layout.outputs,
            Kind::Quantity | Kind::Survival => 0..0,
        }
    }

    /// Sums of errors that are about as large as they vary, with the number of errors.
    pub(crate) fn errors(&self) -> Vec<(f64, u64)> {
        match self.layout.kind {
            Kind::Class | Kind::Labels => Vec::new(),
            Kind::Quantity => [Sum::Absolute, Sum::Squares]
                .map(|sum| (self.total(sum as usize), self.answers[0]))
                .to_vec(),
            Kind::Survival => {
                let ends = 0..self.layout.outputs;
                let all = ends.clone().map(|end| self.total(end)).sum();
                vec![(all, ends.map(|end| self.known_at(end)).sum())]
            }
        }
    }

    fn total(&self, place: usize) -> f64 {
        self.sums[place] as f64 * UNIT
    }

    /// All counts one after the other, for the wire: those that are not zero, with their places. Most are zero, and
    /// whole stretches of them are passed over at once.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        static ZEROS: [u64; 512] = [0; 512];
        let parts = [(0, &self.bins), (self.bins.len(), &self.answers)];
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
        match place.checked_sub(self.bins.len()) {
            None => self.bins.get_mut(place),
            Some(place) => self.answers.get_mut(place),
        }
    }

    /// The sums, for the wire.
    pub(crate) fn sums(&self) -> &[i128] {
        &self.sums
    }

    /// The same, to be filled.
    pub(crate) fn sums_mut(&mut self) -> &mut [i128] {
        &mut self.sums
    }

    /// Whether so many samples can have been counted: each has one true class, one largest score, and one bin of each
    /// class; or the same of each of its known labels; or a number of survived intervals.
    pub(crate) fn is_of(&self, samples: u64) -> bool {
        let n = self.layout.outputs;
        let halves = |output: usize| self.scores(output).map(sum);
        let errors_fit = self.errors().iter().all(|(total, errors)| {
            let most = if self.layout.kind == Kind::Survival {
                1.0
            } else {
                MOST
            };
            *total >= 0.0 && *total <= most * *errors as f64
        });
        match self.layout.kind {
            Kind::Class => {
                let class = |class: usize| {
                    let own = sum(&self.answers[class * n..][..n]);
                    let others = own.and_then(|own| samples.checked_sub(own));
                    others.is_some() && halves(class) == [own, others]
                };
                sum(&self.answers) == Some(samples) && (0..n).all(class)
            }
            Kind::Labels => (0..n).all(|label| {
                let [no, yes] = [0, 2].map(|at| sum(&self.answers[4 * label + at..][..2]));
                let all = no.zip(yes).and_then(|(no, yes)| no.checked_add(yes));
                all.is_some_and(|all| all <= samples) && halves(label) == [yes, no]
            }),
            Kind::Quantity => self.answers[0] == samples && errors_fit,
            Kind::Survival => {
                // Nobody can have an event after the last interval.
                let beyond = sum(&self.bins[(2 * n + 1) * RISK_BINS..]);
                sum(&self.bins) == Some(samples) && beyond == Some(0) && errors_fit
            }
        }
    }

    /// Samples by true class (rows) and by largest score (columns); of labels, each label's.
    pub fn confusion(&self) -> Vec<&[u64]> {
        match self.layout.kind {
            Kind::Class => self.answers.chunks_exact(self.layout.outputs).collect(),
            Kind::Labels => self.answers.chunks_exact(2).collect(),
            Kind::Quantity | Kind::Survival => Vec::new(),
        }
    }

    /// The metrics of what was counted, areas from the histograms. Quantities are in standard deviations.
    pub fn metrics(&self) -> Metrics {
        match self.layout.kind {
            Kind::Class => Metrics {
                auc: self.mean_area(area),
                ..of_confusion(&self.confusion())
            },
            Kind::Labels => self.of_labels(),
            Kind::Quantity => self.of_quantity(),
            Kind::Survival => Metrics {
                concordance: self.concordance(),
                brier: self.brier(),
                ..Metrics::default()
            },
        }
    }

    /// The metrics of what was counted, with the exact AUC of the same samples.
    #[cfg(test)]
    pub(crate) fn exact_metrics(&self, probabilities: &[f32], labels: &[u32]) -> Metrics {
        let n = self.layout.outputs;
        let each = (0..n).map(|class| exact_auc(probabilities, labels, n, class));
        Metrics {
            auc: mean(each.flatten()),
            ..of_confusion(&self.confusion())
        }
    }

    /// The mean over classes or labels of an area that is computed from (positives, negatives) by rising score.
    fn mean_area(
        &self,
        area: fn(&mut dyn Iterator<Item = (u64, u64)>) -> Option<f64>,
    ) -> Option<f64> {
        let of = |output: usize| {
            let [own, others] = self.scores(output);
            area(&mut own.iter().copied().zip(others.iter().copied()))
        };
        mean((0..self.layout.outputs).filter_map(of))
    }

    fn of_labels(&self) -> Metrics {
        // All labels in one histogram: rather what is said of one patient than who is said to have one label.
        let mut pooled = vec![(0, 0); BINS];
        for label in 0..self.layout.outputs {
            let [own, others] = self.scores(label);
            for (sum, (yes, no)) in pooled.iter_mut().zip(own.iter().zip(others)) {
                *sum = (sum.0 + yes, sum.1 + no);
            }
        }
        let each: Vec<[[f64; 2]; 2]> = self
            .answers
            .chunks_exact(4)
            .map(|c| [[c[0] as f64, c[1] as f64], [c[2] as f64, c[3] as f64]])
            .collect();
        let there = |c: &[[f64; 2]; 2]| c[1][0] + c[1][1] > 0.0;
        let over_labels = |of: fn(&[[f64; 2]; 2]) -> f64| {
            let all = each.iter().all(there);
            all.then(|| mean(each.iter().map(of))).flatten()
        };
        let precision = |c: &[[f64; 2]; 2]| ratio(c[1][1], c[0][1] + c[1][1]);
        let recall = |c: &[[f64; 2]; 2]| ratio(c[1][1], c[1][0] + c[1][1]);
        let right: f64 = each.iter().map(|c| c[0][0] + c[1][1]).sum();
        let known: u64 = self.answers.iter().sum();
        Metrics {
            auc: self.mean_area(area),
            precision: over_labels(precision),
            recall: over_labels(recall),
            f1: over_labels(|c| {
                let (yes, wrong) = (c[1][1], c[0][1] + c[1][0]);
                ratio(2.0 * yes, 2.0 * yes + wrong)
            }),
            accuracy: (known > 0).then(|| right / known as f64),
            auprc: self.mean_area(average_precision),
            micro_auc: area(&mut pooled.iter().copied()),
            micro_auprc: average_precision(&mut pooled.iter().copied()),
            ..Metrics::default()
        }
    }

    fn of_quantity(&self) -> Metrics {
        let n = self.answers[0] as f64;
        let mean = |sum: Sum| self.total(sum as usize) / n;
        let variance = mean(Sum::TruthSquares) - mean(Sum::Truth) * mean(Sum::Truth);
        Metrics {
            mae: (n > 0.0).then(|| mean(Sum::Absolute)),
            rmse: (n > 0.0).then(|| libm::sqrt(mean(Sum::Squares))),
            r2: (variance > 1e-12).then(|| 1.0 - mean(Sum::Squares) / variance),
            ..Metrics::default()
        }
    }

    /// Patients that survived so many intervals, by risk: those without an event in the next, and those with one.
    fn risks(&self, survived: usize) -> [&[u64]; 2] {
        let both = &self.bins[2 * survived * RISK_BINS..][..2 * RISK_BINS];
        let (none, event) = both.split_at(RISK_BINS);
        [none, event]
    }

    fn concordance(&self) -> Option<f64> {
        let mut longer = vec![0u64; RISK_BINS];
        let (mut halves, mut pairs) = (0u128, 0.0);
        for survived in (0..self.layout.outputs).rev() {
            // Whoever is known to have been without the event for longer.
            for half in self.risks(survived + 1) {
                for (sum, count) in longer.iter_mut().zip(half) {
                    *sum += count;
                }
            }
            let [_, events] = self.risks(survived);
            let all = events.iter().copied().zip(longer.iter().copied());
            let (own, of) = halves_of(all);
            halves += own;
            pairs += of;
        }
        (pairs > 0.0).then(|| halves as f64 / (2.0 * pairs))
    }

    /// Of how many patients it is known whether they were without the event at the end of an interval.
    fn known_at(&self, end: usize) -> u64 {
        let events = (0..=end).filter_map(|survived| sum(self.risks(survived)[1]));
        let longer = (end + 1..=self.layout.outputs).flat_map(|survived| self.risks(survived));
        let longer = longer.filter_map(sum);
        events.chain(longer).fold(0, u64::saturating_add)
    }

    fn brier(&self) -> Option<f64> {
        let at = |end: usize| {
            let known = self.known_at(end);
            (known > 0).then(|| self.total(end) / known as f64)
        };
        mean((0..self.layout.outputs).filter_map(at))
    }
}

/// The sum of counts, unless it is beyond all numbers.
fn sum(counts: &[u64]) -> Option<u64> {
    let add = |sum: u64, count: &u64| sum.checked_add(*count);
    counts.iter().try_fold(0, add)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// With 0/0 = 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// How likely the event is, on average over the ends of intervals.
pub fn risk(curve: &[f32]) -> f32 {
    let sum = curve.iter().fold(0.0, |sum, p| sum + f64::from(*p));
    (1.0 - sum / curve.len().max(1) as f64) as f32
}

/// The metrics of samples counted by true class (rows) and by the class that was guessed (columns); AUC is unknown.
pub(crate) fn of_confusion(confusion: &[impl AsRef<[u64]>]) -> Metrics {
    let count = |truth: usize, guess: usize| confusion[truth].as_ref()[guess] as f64;
    let classes = 0..confusion.len();
    let guessed = |c: usize| classes.clone().map(|t| count(t, c)).sum();
    let there = |c: usize| classes.clone().map(|g| count(c, g)).sum();
    let precision = |c: usize| ratio(count(c, c), guessed(c));
    let recall = |c: usize| ratio(count(c, c), there(c));
    let f1 = |c: usize| {
        let (precision, recall) = (precision(c), recall(c));
        ratio(2.0 * precision * recall, precision + recall)
    };
    let all_there = classes.clone().all(|c| there(c) > 0.0);
    let mean = |of: &dyn Fn(usize) -> f64| {
        all_there.then(|| classes.clone().map(of).sum::<f64>() / confusion.len() as f64)
    };
    let right: f64 = classes.clone().map(|c| count(c, c)).sum();
    let all: u64 = confusion.iter().flat_map(AsRef::as_ref).sum();
    Metrics {
        precision: mean(&precision),
        recall: mean(&recall),
        f1: mean(&f1),
        accuracy: (all > 0).then(|| right / all as f64),
        ..Metrics::default()
    }
}

/// Twice the number of pairs in which a positive scores above a negative, ties counting half, and the number of pairs;
/// from (positives, negatives) by rising score.
fn halves_of(counts: impl Iterator<Item = (u64, u64)>) -> (u128, f64) {
    let (mut positives, mut negatives, mut halves) = (0u64, 0u64, 0u128);
    for (p, n) in counts {
        halves += u128::from(p) * (2 * u128::from(negatives) + u128::from(n));
        positives += p;
        negatives += n;
    }
    (halves, positives as f64 * negatives as f64)
}

/// The chance that a positive scores above a negative, ties counting half, from (positives, negatives) by rising score.
/// `None` without both.
pub(crate) fn area(counts: &mut dyn Iterator<Item = (u64, u64)>) -> Option<f64> {
    let (halves, pairs) = halves_of(counts);
    (pairs > 0.0).then(|| halves as f64 / (2.0 * pairs))
}

/// The precision at each positive, on average: positives of one score count together. From (positives, negatives) by
/// rising score; `None` without both.
pub(crate) fn average_precision(counts: &mut dyn Iterator<Item = (u64, u64)>) -> Option<f64> {
    let counts: Vec<(u64, u64)> = counts.collect();
    let (mut positives, mut all, mut sum) = (0, 0, 0.0);
    for (p, n) in counts.iter().rev().filter(|(p, n)| p + n > 0) {
        positives += p;
        all += p + n;
        sum += *p as f64 * (positives as f64 / all as f64);
    }
    (positives > 0 && positives < all).then(|| sum / positives as f64)
}

/// One class against the rest, by ranks.
#[cfg(test)]
fn exact_auc(probabilities: &[f32], labels: &[u32], classes: usize, class: usize) -> Option<f64> {
    let mut scores: Vec<(f32, bool)> = probabilities
        .chunks_exact(classes)
        .zip(labels)
        .map(|(row, &label)| (row[class], label as usize == class))
        .collect();
    scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    area(&mut scores.chunk_by(|a, b| a.0 == b.0).map(|tied| {
        let positives = tied.iter().filter(|s| s.1).count() as u64;
        (positives, tied.len() as u64 - positives)
    }))
}
