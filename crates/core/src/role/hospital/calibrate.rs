//! A hospital's part in finding out how probabilities are corrected: sums over its validation samples.

use super::super::message::Message;
use super::super::{Outbox, Party};
use super::Hospital;
use crate::calibration::{Calibration, FEWEST_SAMPLES, MOST_AT_ONCE, MOST_QUESTIONS, Sums};
use crate::checks::are_finite;

/// What a model says of the validation samples.
pub(super) struct Validated {
    answers: Vec<f32>,
    /// What was asked.
    asked: Vec<Vec<Calibration>>,
}

impl Validated {
    pub(super) fn new(answers: Vec<f32>) -> Self {
        Validated {
            answers,
            asked: Vec::new(),
        }
    }
}

impl Hospital<'_> {
    /// What corrections do to what the measured model says. Only so many questions are answered for a model: from any
    /// number of sums, what it says of single samples could be worked out. Of very few nothing is said.
    pub(super) fn calibrate(
        &mut self,
        number: u64,
        corrections: Vec<Calibration>,
        outbox: &mut Outbox,
    ) {
        let possible = corrections.iter().all(|one| self.can_be_of(Some(one)));
        if corrections.len() > MOST_AT_ONCE || !possible {
            return;
        }
        let measured = self.measured.iter_mut().find(|m| m.number == number);
        let sums = match measured.and_then(|measured| measured.validated.as_mut()) {
            None => None,
            Some(validated) => {
                if !validated.asked.contains(&corrections) {
                    if validated.asked.len() == MOST_QUESTIONS {
                        return;
                    }
                    validated.asked.push(corrections.clone());
                }
                let truth = &self.held_out[0].y;
                let said = &validated.answers;
                let tells = truth.len() >= FEWEST_SAMPLES && are_finite(said);
                let of = |correction: &Calibration| match tells {
                    true => Sums::of(correction, said, truth),
                    false => Sums::none(correction),
                };
                Some(corrections.iter().map(of).collect())
            }
        };
        let message = Message::Calibrated {
            number,
            corrections,
            sums,
        };
        outbox.send(Party::Cloud, message);
    }

    /// Whether a correction, if there is one, is for this run's outcome.
    pub(super) fn can_be_of<'c>(&self, correction: impl Into<Option<&'c Calibration>>) -> bool {
        let layout = self.task.objective.layout();
        correction.into().is_none_or(|found| found.is_for(layout))
    }
}
