//! Measures of what is no class: labels, quantities, survival.
//!
//! One file for each of them. As for classes, each measure is a function of how often each row counts, so that intervals come from resampled
//! patients.

mod labels;
mod quantity;
mod survival;

use super::{Bootstrap, Estimate, Ranking};
use crate::metrics::risk;
use crate::outcome::{Outcome, Target, Targets};

/// Groups of equal size that calibration is shown in.
const GROUPS: usize = 10;

/// What was said of some patients, with what is known of them.
pub struct Answered<'a> {
    outcome: &'a Outcome,
    names: &'a [String],
    answers: &'a [f32],
    targets: &'a Targets,
    /// Of each row, the loss that training would have had.
    losses: Vec<f64>,
    /// Of labels: the order of what is said of each.
    rankings: Vec<Ranking>,
    /// Of survival: rows by time, the earliest first.
    by_time: Vec<u32>,
    /// And the risk that each row is given, as its rank among all.
    ranks: Vec<u32>,
    /// The quantile that was learnt, if one was.
    quantile: Option<f64>,
}

/// Samples of which similar things were said, and what was so.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Agreement {
    /// The label, where there are several; the quantity, or the event.
    pub of: String,
    /// The mean of what was said.
    pub said: f64,
    /// The mean of what was so; of survival by Kaplan and Meier.
    pub observed: f64,
    /// How many samples.
    pub samples: usize,
}

impl<'a> Answered<'a> {
    /// From what was said, row after row, what is known, and the loss of each row; with the quantile that was learnt.
    pub fn new(
        (outcome, names): (&'a Outcome, &'a [String]),
        answers: &'a [f32],
        targets: &'a Targets,
        losses: Vec<f64>,
        quantile: Option<f64>,
    ) -> Self {
        let outputs = outcome.outputs(names);
        let rows = targets.len();
        let rankings = match outcome {
            Outcome::Labels => (0..outputs)
                .map(|k| Ranking::new((0..rows).map(|row| answers[row * outputs + k])))
                .collect(),
            _ => Vec::new(),
        };
        let (mut by_time, mut ranks) = (Vec::new(), Vec::new());
        if let Outcome::Survival { .. } = outcome {
            let time = |row: &u32| targets.numbers()[2 * *row as usize];
            by_time = (0..rows as u32).collect();
            by_time.sort_by(|a, b| time(a).total_cmp(&time(b)));
            let ranking = Ranking::new(answers.chunks_exact(outputs).map(risk));
            ranks = vec![0; rows];
            for (rank, tied) in (1..).zip(ranking.tied()) {
                tied.iter().for_each(|row| ranks[*row as usize] = rank);
            }
        }
        Answered {
            outcome,
            names,
            answers,
            targets,
            losses,
            rankings,
            by_time,
            ranks,
            quantile,
        }
    }

    /// The names of the measures.
    pub fn measures(&self) -> Vec<String> {
        let names: &[&str] = match self.outcome {
            Outcome::Class => &[],
            Outcome::Labels => &labels::MEASURES,
            Outcome::Quantity { .. } => &quantity::MEASURES,
            Outcome::Survival { .. } => &survival::MEASURES,
        };
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        match self.outcome {
            Outcome::Labels => {
                for name in self.names {
                    names.push(format!("auc of {name}"));
                    names.push(format!("auprc of {name}"));
                }
            }
            Outcome::Survival { ends } => {
                names.extend(ends.iter().map(|end| format!("brier at {}", *end as f32)));
            }
            Outcome::Quantity { .. } if self.quantile.is_some() => {
                names.push("share_below".into());
            }
            Outcome::Class | Outcome::Quantity { .. } => {}
        }
        names
    }

    /// The measures where each row counts so often; NaN where one is not defined.
    fn weighted(&self, weights: &[u32]) -> Vec<f64> {
        let all: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        let per_row = self.losses.iter().zip(weights);
        let loss = per_row.map(|(loss, w)| loss * f64::from(*w)).sum::<f64>() / all;
        match self.outcome {
            Outcome::Class => Vec::new(),
            Outcome::Labels => self.of_labels(weights, loss),
            Outcome::Quantity { .. } => self.of_quantity(weights, loss),
            Outcome::Survival { ends } => self.of_survival(ends, weights, loss),
        }
    }

    /// Every measure that is defined, with its interval. Rows with the same number in `persons` belong to one patient.
    pub fn estimate(&self, bootstrap: &Bootstrap, persons: &[u32]) -> Vec<Option<Estimate>> {
        let rows = self.targets.len();
        let mut known: Vec<u32> = persons.to_vec();
        known.sort_unstable();
        known.dedup();
        let patients = if persons.is_empty() {
            rows
        } else {
            known.len()
        };
        let count = self.measures().len();
        bootstrap.resampled((rows, persons), &vec![patients; count], |weights| {
            self.weighted(weights)
        })
    }

    /// What was said beside what was so, in groups of about equal size from the lowest to the highest; of survival at the
    /// horizon.
    pub fn agreement(&self) -> Vec<Agreement> {
        match self.outcome {
            Outcome::Class => Vec::new(),
            Outcome::Labels => self.agreement_of_labels(),
            Outcome::Quantity { .. } => self.agreement_of_quantity(),
            Outcome::Survival { ends } => self.agreement_of_survival(ends),
        }
    }

    fn grouped(
        &self,
        mut said: Vec<(usize, f64)>,
        of: &str,
        observed: &dyn Fn(&[usize]) -> f64,
    ) -> Vec<Agreement> {
        said.sort_by(|a, b| a.1.total_cmp(&b.1));
        let all = said.len();
        let group = |k: usize| {
            let some = &said[k * all / GROUPS..(k + 1) * all / GROUPS];
            let rows: Vec<usize> = some.iter().map(|(row, _)| *row).collect();
            (!rows.is_empty()).then(|| Agreement {
                of: of.to_owned(),
                said: some.iter().map(|(_, said)| said).sum::<f64>() / rows.len() as f64,
                observed: observed(&rows),
                samples: rows.len(),
            })
        };
        (0..GROUPS).filter_map(group).collect()
    }
}

/// The loss of each row by what was said of it: of labels and survival the negative logarithm of its likelihood.
pub fn losses(
    (outcome, names): (&Outcome, &[String]),
    answers: &[f32],
    targets: &Targets,
) -> Vec<f64> {
    let of = |(row, said): (usize, &[f32])| match (outcome, targets.at(row)) {
        (Outcome::Labels, Target::Numbers(known)) => labels::loss(said, known),
        (Outcome::Survival { ends }, Target::Numbers(known)) => survival::loss(ends, said, known),
        _ => f64::NAN,
    };
    let outputs = outcome.outputs(names);
    answers.chunks_exact(outputs).enumerate().map(of).collect()
}

/// The negative logarithm of a probability.
fn surprise(p: f64) -> f64 {
    const LEAST: f64 = 1e-30;
    -libm::log(p.max(LEAST))
}

#[cfg(test)]
fn value(answered: &Answered<'_>, name: &str) -> f64 {
    let at = answered.measures().iter().position(|n| n == name).unwrap();
    answered.weighted(&vec![1; answered.targets.len()])[at]
}
