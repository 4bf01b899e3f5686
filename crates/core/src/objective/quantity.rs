//! A number, such as a length of stay.

use super::{Objective, Target, Targets, lost};
use crate::metrics::{Layout, Metrics, Tally};
use crate::outcome::Kind;
use selvedge_nn::loss::Distance;
use selvedge_nn::simd::Level;

/// One number. What is learnt is how many standard deviations it is from the mean of the training rows.
#[derive(Clone, Debug)]
pub struct Number {
    distance: Distance,
    mean: f64,
    deviation: f64,
}

impl Number {
    /// With a distance in standard deviations.
    pub fn new(distance: Distance, mean: f64, deviation: f64) -> Self {
        Number {
            distance,
            mean,
            deviation,
        }
    }

    fn scaled(&self, value: f32) -> f64 {
        (f64::from(value) - self.mean) / self.deviation
    }
}

impl Objective for Number {
    fn name(&self) -> &str {
        match self.distance {
            Distance::Squared => "squared",
            Distance::Huber(_) => "huber",
            Distance::Quantile(_) => "quantile",
        }
    }

    fn logits(&self) -> usize {
        1
    }

    fn loss(
        &self,
        _: Level,
        logits: &[f32],
        target: Target<'_>,
        _: bool,
        d_logits: &mut [f32],
    ) -> f64 {
        let Target::Numbers([truth]) = target else {
            return lost(d_logits);
        };
        let (loss, derivative) = self.distance.of(f64::from(logits[0]), self.scaled(*truth));
        d_logits[0] = derivative as f32;
        loss
    }

    fn answer(&self, _: Level, logits: &[f32], out: &mut [f32]) {
        out[0] = (self.mean + self.deviation * f64::from(logits[0])) as f32;
    }

    fn layout(&self) -> Layout {
        Layout {
            kind: Kind::Quantity,
            outputs: 1,
        }
    }

    fn count(&self, tally: &mut Tally, answers: &[f32], targets: &Targets) {
        for (said, truth) in answers.iter().zip(targets.numbers()) {
            tally.add_quantity(self.scaled(*said), self.scaled(*truth));
        }
    }

    fn metrics(&self, tally: &Tally) -> Metrics {
        let Metrics { mae, rmse, r2, .. } = tally.metrics();
        let in_its_unit = |deviations: f64| deviations * self.deviation;
        Metrics {
            mae: mae.map(in_its_unit),
            rmse: rmse.map(in_its_unit),
            r2,
            ..Metrics::default()
        }
    }

    fn class_weights(&self) -> &[f32] {
        &[]
    }
}
