//! What bytes really buy (`adaptive = "gain"`).
//!
//! With P = Q an interval costs the same bytes whatever Q is: the question is how far to go in it. Q steps of η go
//! about as far as ηQ says; measured on two data sets, runs with the same ηQ learn the same from the same number of
//! intervals. Go too far, and what the hospital and its devices learn is their few patients by heart, or their own
//! group's mix of diagnoses: the loss over the batch falls and that over fresh patients does not.
//!
//! A hospital sees both while it steps, and reports three losses of its batch: before the first step, when nothing of
//! it is learnt yet and the batch is a fresh sample; before the second; and before the last.
//!
//! - **How far to go, ηQ.** *Learnt* = ln(first/last), the share of the loss that the interval takes off its own batch. It
//!   grows with ηQ in proportion, so one look is enough to set ηQ: to `aim`/learnt times what it was. Aim is 0.6 at first (the
//!   batch's loss falls to 55 %). After every window of decisions it falls by 30 % if the loss over fresh patients is above
//!   that of the best window, beyond what chance does; it grows by 15 % if that loss is a new best, beyond chance; else it
//!   falls by 5 %: what no longer helps is done with less.
//! - **η.** The first step should take η‖g‖² off the batch's loss, less what curvature gives back. *Kept* = what it took of
//!   that: 1 − ηκ/2 with the curvature κ along the gradient. Above 0.8, η grows, and with it the way, before Q does: the same
//!   way in fewer steps. Below 0.1 a step is hardly worth taking: η is halved. Between, nothing happens. The lower end is low on
//!   purpose: a small η lets curvature grow until it is too large as well, and a large one keeps curvature away. A step that
//!   promises less than a thousandth of the loss shows nothing but rounding, and η grows fourfold.
//! - **Enough to tell.** A decision takes a hundred patients: where intervals have fewer, it waits for several of them.
//! - **If it goes wrong.** Where the loss over fresh patients is twice that at the start, ten times that over a few of them, or no
//!   number, the last good model comes back with an eighth of ηQ. Downloads carry it instead of the mean: it costs nothing
//!   but the intervals.
//!
//! None of these numbers has a unit, but for the hundred patients.

use super::Decision;
use crate::local_steps::Descended;
use crate::schedule::Segment;
use serde::{Deserialize, Serialize};

/// ln(first/last) of a good interval, to begin with, and the bounds that it stays within.
const AIM: f64 = 0.6;
const AIMS: [f64; 2] = [0.2, 1.0];
/// `kept` below which η is halved, and above which it grows.
const KEPT: [f64; 2] = [0.1, 0.8];
/// Below this `kept`, a batch's loss that hardly falls is no reason to go further: steps go back and forth.
const SMOOTH: f64 = 0.5;
/// A first step that promises less than this share of the loss shows nothing but rounding.
const NOTHING: f64 = 1e-3;
/// ηQ changes by at most this factor at once, and only if it would by more than [`WORTHWHILE`].
const LARGEST_CHANGE: f64 = 4.0;
const WORTHWHILE: f64 = 1.4;
/// Patients that a decision needs: fewer are more chance than signal.
const PATIENTS: f64 = 100.0;
/// A loss so many times that of the start is bad if a hundred patients show it, or a disaster that any number of them
/// does.
const BAD: f64 = 2.0;
const DISASTER: f64 = 10.0;
/// Decisions whose losses over fresh patients are looked at together.
const WINDOW: usize = 10;
/// The longest Q.
const LONGEST: f64 = 200.0;

/// What it remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// ln(first/last) that intervals are to have.
    pub aim: f64,
    /// What was seen since the last decision: sums over patients, and how many these are.
    pub seen: Descended,
    /// Patients.
    pub patients: f64,
    /// The loss over fresh patients in the first interval.
    pub start: Option<f64>,
    /// Losses over fresh patients at the decisions of this window.
    pub fresh: Vec<f64>,
    /// The window with the lowest mean: that mean, and its error.
    pub best: Option<(f64, f64)>,
}

impl Default for Gain {
    fn default() -> Self {
        Gain {
            aim: AIM,
            seen: Descended::default(),
            patients: 0.0,
            start: None,
            fresh: Vec::new(),
            best: None,
        }
    }
}

impl Gain {
    /// What follows from a global interval with `segment`, in which this was seen of so many patients. `finite` is
    /// whether the aggregated model still is.
    pub fn steer(
        &mut self,
        seen: &Descended,
        patients: f64,
        finite: bool,
        segment: Segment,
    ) -> Decision {
        let (rate, q) = (segment.learning_rate, segment.local_interval);
        let stay = |reason: &str| Decision {
            interval: q,
            learning_rate: rate,
            restore: false,
            good: false,
            reason: reason.into(),
        };
        let numbers = seen.first + seen.second + seen.last + seen.slope;
        if !finite || !numbers.is_finite() {
            return self.back(rate, q, "the loss is no longer a number");
        }
        let start = *self.start.get_or_insert(seen.first);
        let above =
            |loss: f64| format!("the loss on fresh patients is {loss:.3}, at first {start:.3}");
        if seen.first > DISASTER * start {
            return self.back(rate, q, &above(seen.first));
        }
        self.add(seen, patients);
        if self.patients < PATIENTS {
            return stay("too few patients to judge by");
        }
        let seen = self.mean();
        if seen.first > BAD * start {
            return self.back(rate, q, &above(seen.first));
        }
        self.look_at(seen.first);
        if q == 1 {
            let mut next = stay("one step does not show its effect: Q = 2");
            (next.interval, next.good) = (2, true);
            return next;
        }
        self.go(&seen, rate, q as f64)
    }

    fn add(&mut self, seen: &Descended, patients: f64) {
        let Descended {
            first,
            second,
            last,
            slope,
        } = &mut self.seen;
        *first += patients * seen.first;
        *second += patients * seen.second;
        *last += patients * seen.last;
        *slope += patients * seen.slope;
        self.patients += patients;
    }

    /// The mean since the last decision, which begins anew.
    fn mean(&mut self) -> Descended {
        let n = std::mem::take(&mut self.patients);
        let sums = std::mem::take(&mut self.seen);
        Descended {
            first: sums.first / n,
            second: sums.second / n,
            last: sums.last / n,
            slope: sums.slope / n,
        }
    }

    /// Back to the last good model, more carefully.
    fn back(&mut self, rate: f64, q: u64, why: &str) -> Decision {
        (self.seen, self.patients) = (Descended::default(), 0.0);
        self.fresh.clear();
        let interval = q.div_ceil(2).max(2);
        Decision {
            interval,
            learning_rate: rate / 4.0,
            restore: true,
            good: false,
            reason: format!("{why}: back to the last good model, with η / 4 and Q = {interval}"),
        }
    }

    /// How far the next interval goes, and in which steps.
    fn go(&self, seen: &Descended, rate: f64, q: f64) -> Decision {
        let promised = rate * seen.slope / seen.first;
        let kept = (seen.first - seen.second) / (rate * seen.slope);
        let learnt = libm::log(seen.first / seen.last);
        let (next_rate, next) = if promised < NOTHING {
            (LARGEST_CHANGE * rate, q)
        } else {
            self.far(kept, learnt, rate, q)
        };
        Decision {
            interval: next as u64,
            learning_rate: next_rate,
            restore: false,
            good: true,
            reason: format!(
                "loss {:.3}, {:.0} % of it left after an interval (aim {:.0} %), {:.0} % of a step's promise kept",
                seen.first,
                100.0 * libm::exp(-learnt),
                100.0 * libm::exp(-self.aim),
                100.0 * kept
            ),
        }
    }

    fn far(&self, kept: f64, learnt: f64, rate: f64, q: f64) -> (f64, f64) {
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
        let way = rate * q * factor;
        let rate = match kept {
            // Steps as large as they may be come first, fewer or more of them second.
            k if k > KEPT[1] => rate * factor.max(2.0),
            k if k < KEPT[0] => rate / 2.0,
            _ => rate,
        };
        // The shortest interval is two steps: below it, only η can make the way shorter.
        let rate = rate.min(way);
        (rate, (way / rate).round().clamp(2.0, LONGEST))
    }

    /// Notes a loss over fresh patients. At the end of a window: the aim falls if the loss is above that of the best
    /// window, beyond what chance does, and else grows.
    fn look_at(&mut self, fresh: f64) {
        self.fresh.push(fresh);
        if self.fresh.len() < WINDOW {
            return;
        }
        let window = std::mem::take(&mut self.fresh);
        let (now, error) = (mean(&window), error_of_mean(&window));
        let (best, of_best) = *self.best.get_or_insert((now, error));
        let chance = (error.powi(2) + of_best.powi(2)).sqrt();
        let factor = if now > best + 2.0 * chance {
            0.7
        } else if now < best - chance {
            1.15
        } else {
            0.95
        };
        self.aim = (factor * self.aim).clamp(AIMS[0], AIMS[1]);
        if now < best {
            self.best = Some((now, error));
        }
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

#[cfg(test)]
mod tests;
