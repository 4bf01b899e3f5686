//! What bytes really buy (`adaptive = "gain"`).
//!
//! With P = Q an interval costs the same bytes whatever Q is: the question is how far to go in it. Q steps of η go about
//! as far as ηQ says; measured on two data sets, runs with the same ηQ learn the same from the same number of intervals.
//! Go too far, and what the hospital and its devices learn is their few patients by heart, or their own group's mix of
//! diagnoses: the loss over the batch falls and that over fresh patients does not.
//!
//! A hospital sees both while it steps, and reports three losses of its batch: before the first step, when nothing of it is
//! learnt yet and the batch is a fresh sample; before the second; and before the last.
//!
//! - **How far to go, ηQ.** *Learnt* = ln(first/last), the share of the loss that the interval takes off its own batch. It
//!   grows with ηQ in proportion, so one look is enough to set ηQ: to `aim`/learnt times what it was. Aim is 0.6 (the
//!   batch's loss falls to 55 %), less after windows of intervals in which the loss over fresh patients rose, and slowly back
//!   after others.
//! - **η.** The first step should take η‖g‖² off the batch's loss, less what curvature gives back. *Kept* = what it took of
//!   that: 1 − ηκ/2 with the curvature κ along the gradient. Above 0.8, η can be doubled without harm, and Q halved: the same
//!   way in fewer steps. Below 0.1 a step is hardly worth taking: η is halved. Between, nothing happens; one doubling or
//!   halving does not lead from one end to the other. The lower end is low on purpose: a small η lets curvature grow until it
//!   is too large as well, and a large one keeps curvature away.
//! - **If it goes wrong.** Where the loss over fresh patients has doubled or is no number, the last good model comes back
//!   with an eighth of ηQ. Downloads carry it instead of the mean: it costs nothing but the interval.
//!
//! None of these numbers depends on units or sizes.

use super::Decision;
use crate::local_steps::Descended;
use crate::schedule::Segment;
use serde::{Deserialize, Serialize};

/// ln(first/last) of a good interval.
const AIM: f64 = 0.6;
/// `kept` above which η is doubled, and below which it is halved.
const KEPT: [f64; 2] = [0.1, 0.8];
/// Below this `kept`, a batch's loss that hardly falls is no reason to go further: steps go back and forth.
const SMOOTH: f64 = 0.5;
/// ηQ changes by at most this factor at once, and only if it would by more than [`WORTHWHILE`].
const LARGEST_CHANGE: f64 = 4.0;
const WORTHWHILE: f64 = 1.4;
/// Intervals whose losses over fresh patients are compared with as many before them.
const WINDOW: usize = 10;
/// The longest Q.
const LONGEST: f64 = 200.0;

/// What it remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// ln(first/last) that intervals are to have.
    pub aim: f64,
    /// Losses over fresh patients, newest last: at most two windows.
    pub fresh: Vec<f64>,
}

impl Default for Gain {
    fn default() -> Self {
        Gain {
            aim: AIM,
            fresh: Vec::new(),
        }
    }
}

impl Gain {
    /// What follows from a global interval with `segment`, in which this was seen. `finite` is whether the aggregated model
    /// still is.
    pub fn steer(&mut self, seen: &Descended, finite: bool, segment: Segment) -> Decision {
        let (rate, q) = (segment.learning_rate, segment.local_interval);
        let numbers = seen.first + seen.second + seen.last + seen.slope;
        let usual = mean(&self.fresh);
        let doubled = !self.fresh.is_empty() && seen.first > 2.0 * usual;
        if !finite || !numbers.is_finite() || doubled {
            // What comes back has another loss than what was seen of late.
            self.fresh.clear();
            let loss = match doubled {
                true => format!(
                    "the loss over fresh patients is {:.3}, {usual:.3} before",
                    seen.first
                ),
                false => "the loss is no number any more".into(),
            };
            return Decision {
                interval: q.div_ceil(2).max(2),
                learning_rate: rate / 4.0,
                restore: true,
                reason: format!("{loss}: back to the last good model, with η / 4 and Q / 2"),
            };
        }
        self.look_at(seen.first);
        if q == 1 {
            return Decision {
                interval: 2,
                learning_rate: rate,
                restore: false,
                reason: "one step shows nothing of what it changes: Q = 2".into(),
            };
        }
        self.go(seen, rate, q as f64)
    }

    /// How far the next interval goes, and in which steps.
    fn go(&self, seen: &Descended, rate: f64, q: f64) -> Decision {
        let kept = (seen.first - seen.second) / (rate * seen.slope);
        let learnt = (seen.first / seen.last).ln();
        let next_rate = match kept {
            k if k > KEPT[1] => 2.0 * rate,
            k if k < KEPT[0] => rate / 2.0,
            _ => rate,
        };
        let factor = match learnt > 0.0 {
            true => self.aim / learnt,
            false => 0.5,
        };
        let factor = match factor > 1.0 && kept < SMOOTH {
            true => 1.0,
            false => factor.clamp(1.0 / LARGEST_CHANGE, LARGEST_CHANGE),
        };
        let factor = match (1.0 / WORTHWHILE..WORTHWHILE).contains(&factor) {
            true => 1.0,
            false => factor,
        };
        let next = (rate * q * factor / next_rate).round().clamp(2.0, LONGEST);
        // The shortest interval is two steps: below it, only η can make the way shorter.
        let next_rate = match rate * q * factor < next_rate {
            true => next_rate / 2.0,
            false => next_rate,
        };
        Decision {
            interval: next as u64,
            learning_rate: next_rate,
            restore: false,
            reason: format!(
                "learnt {learnt:.2} of its patients (aim {:.2}), kept {kept:.2} of a step, loss {:.3}",
                self.aim, seen.first
            ),
        }
    }

    /// Notes a loss over fresh patients. At the end of a window in which it rose, beyond what chance does, the aim is lowered.
    fn look_at(&mut self, fresh: f64) {
        self.fresh.push(fresh);
        if self.fresh.len() < 2 * WINDOW {
            return;
        }
        let (old, new) = self.fresh.split_at(WINDOW);
        let chance = (error_of_mean(old).powi(2) + error_of_mean(new).powi(2)).sqrt();
        self.aim = match mean(new) > mean(old) + 2.0 * chance {
            true => 0.7 * self.aim,
            false => (1.15 * self.aim).min(AIM),
        };
        self.fresh.drain(..WINDOW);
    }
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// The standard error of a mean.
fn error_of_mean(x: &[f64]) -> f64 {
    let mean = mean(x);
    let squares: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
    (squares / (x.len() * (x.len() - 1)) as f64).sqrt()
}
