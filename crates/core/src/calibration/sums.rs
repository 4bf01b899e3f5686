//! What has to be known of patients to find the likeliest correction: sums that groups can add up.

use super::{Calibration, LEAST, MOST_CLASSES, log};
use crate::role::wire::{Reader, Wire, WireError, fields};

/// Sums are kept in whole multiples of this: they do not depend on the order of additions or on who makes them.
const UNIT: f64 = 1.0 / (1u128 << 64) as f64;

/// How a correction does for some samples, and how that changes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Samples of each class.
    labels: Vec<u64>,
    /// In units: the loss; how it changes with the scale and with each bias; and how that changes: what lies on and
    /// below the diagonal, row after row.
    units: Vec<i128>,
}

fields!(Sums { labels, units });

impl Sums {
    /// Of no samples.
    pub fn none(classes: usize) -> Self {
        let free = free(classes);
        Sums {
            labels: vec![0; classes],
            units: vec![0; 1 + free + free * (free + 1) / 2],
        }
    }

    /// Of samples, given probabilities row after row and what is true.
    pub fn of(correction: &Calibration, probabilities: &[f32], labels: &[u32]) -> Self {
        let classes = correction.bias.len();
        let mut sums = Sums::none(classes);
        let (mut said, mut row) = (vec![0.0; classes], vec![0.0; classes]);
        for (p, label) in probabilities.chunks_exact(classes).zip(labels) {
            for (said, p) in said.iter_mut().zip(p) {
                *said = log(*p);
            }
            row.copy_from_slice(&said);
            correction.softmax(&mut row);
            sums.add(&said, &row, *label as usize);
        }
        sums
    }

    /// Adds a sample: logarithms of what a model says, what comes of them, and its class.
    fn add(&mut self, said: &[f64], row: &[f64], label: usize) {
        let Some(count) = self.labels.get_mut(label) else {
            return;
        };
        *count += 1;
        let mut units = self.units.iter_mut();
        let mut add = |value: f64| {
            if let Some(sum) = units.next() {
                *sum = sum.saturating_add((value / UNIT).round_ties_even() as i128);
            }
        };
        let biases = free(row.len()) - 1;
        let mean: f64 = row.iter().zip(said).map(|(p, l)| p * l).sum();
        let square: f64 = row.iter().zip(said).map(|(p, l)| p * l * l).sum();
        add(-libm::log(row[label].max(LEAST)));
        add(mean - said[label]);
        for (k, p) in row.iter().enumerate().take(biases) {
            add(p - f64::from(u8::from(label == k)));
        }
        add(square - mean * mean);
        for k in 0..biases {
            add(row[k] * (said[k] - mean));
            for j in 0..=k {
                let same = if j == k { row[k] } else { 0.0 };
                add(same - row[j] * row[k]);
            }
        }
    }

    /// Adds those of other samples.
    pub fn merge(&mut self, other: &Sums) {
        for (ours, theirs) in self.labels.iter_mut().zip(&other.labels) {
            *ours = ours.saturating_add(*theirs);
        }
        for (ours, theirs) in self.units.iter_mut().zip(&other.units) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// Whether they can be of samples of so many classes, of which there are no more than rows can have numbers.
    pub(crate) fn are_of(&self, classes: usize) -> bool {
        let few = |count: &u64| *count <= u64::from(u32::MAX);
        self.labels.len() == classes
            && self.units.len() == Self::none(classes).units.len()
            && self.labels.iter().all(few)
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.labels.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// How many classes have samples.
    pub(super) fn classes_seen(&self) -> usize {
        self.labels.iter().filter(|count| **count > 0).count()
    }

    /// How many biases can be fitted: one for each class or, where too little is known of some, none.
    pub(super) fn biases(&self) -> usize {
        match self.classes_seen() == self.labels.len() {
            true => free(self.labels.len()) - 1,
            false => 0,
        }
    }

    /// The loss of a correction that these are the sums of.
    pub(super) fn loss(&self, correction: &Calibration) -> f64 {
        correction.prior() + self.units[0] as f64 * UNIT
    }

    /// How that changes with the scale and so many biases, and how that changes.
    pub(super) fn derivatives(&self, at: &Calibration, biases: usize) -> (Vec<f64>, Vec<f64>) {
        let (all, free) = (free(self.labels.len()), 1 + biases);
        let value = |place: usize| self.units[place] as f64 * UNIT;
        let prior = [at.scale - 1.0].into_iter().chain(at.bias.iter().copied());
        let gradient = prior.take(free).enumerate();
        let gradient = gradient.map(|(i, prior)| prior + value(1 + i)).collect();
        let mut curvature = vec![0.0; free * free];
        for i in 0..free {
            for j in 0..=i {
                let prior = f64::from(u8::from(i == j));
                curvature[i * free + j] = prior + value(1 + all + i * (i + 1) / 2 + j);
            }
        }
        (gradient, curvature)
    }
}

/// What can be changed of a correction for so many classes.
fn free(classes: usize) -> usize {
    match classes <= MOST_CLASSES {
        true => 1 + classes,
        false => 1,
    }
}
