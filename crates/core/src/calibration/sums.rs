//! What has to be known of patients to find the likeliest correction: sums that groups can add up.

use super::{Calibration, LEAST, MOST_CLASSES};
use crate::outcome::{Target, Targets};
use crate::role::wire::{Reader, Wire, WireError, fields};

/// Sums are kept in whole multiples of this: they do not depend on the order of additions or on who makes them.
const UNIT: f64 = 1.0 / (1u128 << 64) as f64;

/// How a correction does for some samples, and how that changes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Samples of each class; or without and with each label as far as that is known, and then all.
    answers: Vec<u64>,
    /// In units: the loss; how it changes with the scale and with each bias; and how that changes: what lies on and
    /// below the diagonal, row after row.
    units: Vec<i128>,
}

fields!(Sums { answers, units });

impl Sums {
    /// Of no samples.
    pub fn none(correction: &Calibration) -> Self {
        let outputs = correction.bias.len();
        let free = free(outputs);
        let answers = match correction.each {
            true => 2 * outputs + 1,
            false => outputs,
        };
        Sums {
            answers: vec![0; answers],
            units: vec![0; 1 + free + free * (free + 1) / 2],
        }
    }

    /// Of samples, given probabilities row after row and what is true.
    pub fn of(correction: &Calibration, probabilities: &[f32], truth: &Targets) -> Self {
        let outputs = correction.bias.len();
        let mut sums = Sums::none(correction);
        let (mut said, mut row) = (vec![0.0; outputs], vec![0.0; outputs]);
        for (at, p) in probabilities.chunks_exact(outputs).enumerate() {
            correction.look_at(p, &mut said);
            row.copy_from_slice(&said);
            correction.correct(&mut row);
            match truth.at(at) {
                Target::Class(class) => sums.add(&said, &row, class as usize),
                Target::Numbers(known) => sums.add_each(&said, &row, known),
            }
        }
        sums
    }

    /// Adds a sample: logarithms of what a model says, what comes of them, and its class.
    fn add(&mut self, said: &[f64], row: &[f64], class: usize) {
        let Some(count) = self.answers.get_mut(class) else {
            return;
        };
        *count += 1;
        let mut units = self.units.iter_mut();
        let mut add = |value: f64| {
            if let Some(sum) = units.next() {
                add_to(sum, value);
            }
        };
        let biases = free(row.len()) - 1;
        let mean: f64 = row.iter().zip(said).map(|(p, l)| p * l).sum();
        let square: f64 = row.iter().zip(said).map(|(p, l)| p * l * l).sum();
        add(-libm::log(row[class].max(LEAST)));
        add(mean - said[class]);
        for (k, p) in row.iter().enumerate().take(biases) {
            add(p - f64::from(u8::from(class == k)));
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

    /// Adds a sample: the logits of what a model says of its labels, what comes of them, and what is known of each.
    fn add_each(&mut self, said: &[f64], row: &[f64], known: &[f32]) {
        let free = free(row.len());
        self.answers[2 * row.len()] += 1;
        let each = said.iter().zip(row).zip(known).enumerate();
        for (k, ((said, p), y)) in each.filter(|(_, (_, y))| !y.is_nan()) {
            let yes = *y > 0.5;
            self.answers[2 * k + usize::from(yes)] += 1;
            let right = if yes { *p } else { 1.0 - p };
            let off = p - f64::from(u8::from(yes));
            let curvature = p * (1.0 - p);
            let mut add = |place: usize, value: f64| add_to(&mut self.units[place], value);
            add(0, -libm::log(right.max(LEAST)));
            add(1, off * said);
            add(1 + free, curvature * said * said);
            if k + 1 < free {
                add(2 + k, off);
                let row = k + 1;
                let below = 1 + free + row * (row + 1) / 2;
                add(below, curvature * said);
                add(below + row, curvature);
            }
        }
    }

    /// Adds those of other samples.
    pub fn merge(&mut self, other: &Sums) {
        for (ours, theirs) in self.answers.iter_mut().zip(&other.answers) {
            *ours = ours.saturating_add(*theirs);
        }
        for (ours, theirs) in self.units.iter_mut().zip(&other.units) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// Whether they can be those of a correction, of samples of which there are no more than rows can have numbers.
    pub(crate) fn are_of(&self, correction: &Calibration) -> bool {
        let none = Self::none(correction);
        let fits = self.answers.len() == none.answers.len() && self.units.len() == none.units.len();
        let (samples, known) = (self.samples(correction), self.known(correction));
        let few = samples <= u64::from(u32::MAX);
        fits && few
            && known
                .chunks(2)
                .all(|both| !correction.each || sum(both) <= samples)
    }

    /// The number of samples.
    pub fn samples(&self, correction: &Calibration) -> u64 {
        match correction.each {
            true => self.answers.last().copied().unwrap_or_default(),
            false => sum(&self.answers),
        }
    }

    /// How often each answer is known.
    fn known(&self, correction: &Calibration) -> &[u64] {
        let all = self.answers.len();
        &self.answers[..all - usize::from(correction.each).min(all)]
    }

    /// Whether there are answers of more than one kind: of two classes, or without and with some label.
    pub(super) fn tell_answers_apart(&self, correction: &Calibration) -> bool {
        let there = |count: &u64| *count > 0;
        match correction.each {
            true => self
                .known(correction)
                .chunks(2)
                .any(|both| both.iter().all(there)),
            false => self.answers.iter().filter(|count| there(count)).count() > 1,
        }
    }

    /// How many biases can be fitted: one for each class or label or, where too little is known of some, none.
    pub(super) fn biases(&self, correction: &Calibration) -> usize {
        match self.known(correction).iter().all(|count| *count > 0) {
            true => free(correction.bias.len()) - 1,
            false => 0,
        }
    }

    /// The loss of a correction that these are the sums of.
    pub(super) fn loss(&self, correction: &Calibration) -> f64 {
        correction.prior() + self.units[0] as f64 * UNIT
    }

    /// How that changes with the scale and so many biases, and how that changes.
    pub(super) fn derivatives(&self, at: &Calibration, biases: usize) -> (Vec<f64>, Vec<f64>) {
        let (all, free) = (free(at.bias.len()), 1 + biases);
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

fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

fn add_to(sum: &mut i128, value: f64) {
    *sum = sum.saturating_add((value / UNIT).round_ties_even() as i128);
}

/// What can be changed of a correction for so many classes.
fn free(classes: usize) -> usize {
    match classes <= MOST_CLASSES {
        true => 1 + classes,
        false => 1,
    }
}
