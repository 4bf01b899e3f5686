//! The time until an event, in intervals, of patients of whom some were only seen for a while.
//!
//! A hazard for each interval is the probability of the event there for whoever comes to it. The likelihood of a patient
//! is a product over the intervals that the patient came to: no patient is compared with another, so nobody has to know
//! who else is at risk.

use super::{Objective, Target, Targets, lost};
use crate::metrics::{Layout, Tally};
use crate::outcome::{Kind, interval};
use selvedge_nn::loss;
use selvedge_nn::simd::Level;

/// A hazard for each interval.
#[derive(Clone, Debug)]
pub struct Hazards {
    ends: Vec<f64>,
}

impl Hazards {
    /// Of intervals that end at these times.
    pub fn new(ends: Vec<f64>) -> Self {
        Hazards { ends }
    }
}

impl Objective for Hazards {
    fn name(&self) -> &str {
        "hazards"
    }

    fn logits(&self) -> usize {
        self.ends.len()
    }

    fn loss(
        &self,
        _: Level,
        logits: &[f32],
        target: Target<'_>,
        _: bool,
        d_logits: &mut [f32],
    ) -> f64 {
        let Target::Numbers([time, event]) = target else {
            return lost(d_logits);
        };
        let (survived, event) = interval(&self.ends, [*time, *event]);
        loss::hazards(logits, survived, event, d_logits)
    }

    /// For each interval, the probability that the event was not by its end.
    fn answer(&self, _: Level, logits: &[f32], out: &mut [f32]) {
        let mut survival = 1.0;
        for (out, z) in out.iter_mut().zip(logits) {
            survival *= loss::logistic(-f64::from(*z));
            *out = survival as f32;
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            kind: Kind::Survival,
            outputs: self.ends.len(),
        }
    }

    fn count(&self, tally: &mut Tally, answers: &[f32], targets: &Targets) {
        for (row, curve) in answers.chunks_exact(self.ends.len()).enumerate() {
            if let Target::Numbers([time, event]) = targets.at(row) {
                let (survived, event) = interval(&self.ends, [*time, *event]);
                tally.add_survival(curve, survived, event);
            }
        }
    }

    fn class_weights(&self) -> &[f32] {
        &[]
    }
}
