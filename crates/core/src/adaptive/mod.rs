//! P, Q and η chosen while training (`train.adaptive`).
//!
//! ```text
//! hospitals ── models, Report ──► cloud ── θ, Segment ──► all
//!                                   │
//!                                 steer    at each global aggregation: a new segment, or none
//! ```
//!
//! The controller sees only what may be shared: models that are sent anyway, and the few numbers of a [`Report`], whose
//! bytes are in the ledger. It knows bytes and losses, never seconds, so that a run is the same wherever it is
//! computed. Everything that it remembers is part of the state.
//!
//! [`bound`] follows the paper's strategies with measured constants; [`gain`] looks at what an interval really gains.

pub mod bound;
pub mod gain;

use crate::experiment::Adaptive;
use crate::ledger::{Direction, Kind, Ledger, Link, Payload};
use crate::local_steps::Descended;
use crate::model::Model;
use crate::schedule::Segment;
use crate::state::{Progress, State};
use crate::task::Task;
use bound::{Books, Bound};
use gain::Gain;
use serde::{Deserialize, Serialize};

/// What a hospital reports with its models: its observations in the intervals since the last global aggregation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How many intervals.
    pub intervals: u64,
    /// Sums over them.
    pub seen: Descended,
}

impl Report {
    /// Numbers in a report: the mean of each sum.
    const NUMBERS: usize = 4;

    /// No sum of a run is beyond this, if it is a number at all: losses and gradients are of single precision. Squares
    /// of what is below are numbers too, so that all that is kept of a report can be saved.
    const MOST: f64 = 1e100;

    /// Whether a hospital can have seen this in a global interval of P iterations. Where a run diverges it is no
    /// number.
    pub(crate) fn is_sound(&self, global_interval: u64) -> bool {
        let Descended {
            first,
            second,
            last,
            slope,
        } = self.seen;
        let sums = [first, second, last, slope];
        let fits = |sum: &f64| !sum.is_finite() || sum.abs() <= Self::MOST;
        self.intervals <= global_interval && sums.iter().all(fits)
    }

    /// Adds an interval; one in which nobody took part adds nothing.
    pub fn add(&mut self, seen: Option<Descended>) {
        let Some(seen) = seen else { return };
        self.intervals = self.intervals.saturating_add(1);
        self.seen.first += seen.first;
        self.seen.second += seen.second;
        self.seen.last += seen.last;
        self.seen.slope += seen.slope;
    }
}

/// The mean over the groups that have anything to report, by their weights; nothing if none has.
fn mean(weights: &[f64], reports: &[Report]) -> Option<Descended> {
    let there = || weights.iter().zip(reports).filter(|(_, r)| r.intervals > 0);
    let all: f64 = there().map(|(w, _)| w).sum();
    let of = |value: fn(&Descended) -> f64| -> f64 {
        let values = there().map(|(w, r)| w * value(&r.seen) / r.intervals as f64);
        values.sum::<f64>() / all
    };
    (all > 0.0).then(|| Descended {
        first: of(|s| s.first),
        second: of(|s| s.second),
        last: of(|s| s.last),
        slope: of(|s| s.slope),
    })
}

/// The controller that steers a run, with all that it remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Controller {
    /// The report of each group, since the last global aggregation.
    pub reports: Vec<Report>,
    /// What its mode remembers.
    pub memory: Memory,
    /// The last segment that it began.
    pub change: Option<Change>,
}

/// What a mode remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// `adaptive = "bound"`
    Bound(Bound),
    /// `adaptive = "gain"`
    Gain(Gain),
}

/// A segment that was begun, as recorded in `segments.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its first iteration.
    pub t: u64,
    /// P
    pub p: u64,
    /// Q
    pub q: u64,
    /// η
    pub eta: f64,
    /// Why.
    pub reason: String,
}

impl Change {
    /// The change to a segment, with the reason.
    pub fn new(segment: &Segment, reason: String) -> Self {
        Change {
            t: segment.start,
            p: segment.global_interval,
            q: segment.local_interval,
            eta: segment.learning_rate,
            reason,
        }
    }
}

/// What the cloud decides at a global aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// P = Q from here on.
    pub interval: u64,
    /// η from here on.
    pub learning_rate: f64,
    /// Whether the last model that is known to be good takes the place of the one that has just been aggregated.
    pub restore: bool,
    /// Whether the model that the groups started from is now known to be good.
    pub good: bool,
    /// Why.
    pub reason: String,
}

impl Controller {
    /// The controller of a task, if it is steered.
    pub fn new(task: &Task<'_>) -> Option<Self> {
        let memory = match task.experiment.train.adaptive {
            Adaptive::Off => return None,
            Adaptive::Bound => Memory::Bound(Bound::default()),
            Adaptive::Gain => Memory::Gain(Gain::default()),
        };
        Some(Controller {
            reports: vec![Report::default(); task.dataset.groups.len()],
            memory,
            change: None,
        })
    }
}

/// K_m/K of each group.
pub(crate) fn weights(task: &Task<'_>) -> Vec<f64> {
    let devices = task.dataset.groups.iter().map(|g| g.devices() as f64);
    let all: f64 = devices.clone().sum();
    devices.map(|k| k / all).collect()
}

/// Before the first iteration: P = Q, by strategy 1, and what a mode wants to know first.
pub(crate) fn begin(task: &Task<'_>, state: &mut State) {
    let progress = &mut state.progress;
    let Some(controller) = &mut progress.controller else {
        return;
    };
    if progress.t > 0 || controller.change.is_some() {
        return;
    }
    let segment = progress.segment;
    let decision = match &mut controller.memory {
        Memory::Gain(_) => Decision {
            interval: segment.local_interval,
            learning_rate: segment.learning_rate,
            restore: false,
            good: true,
            reason: "the experiment's Q and η".into(),
        },
        Memory::Bound(bound) => {
            let Progress { ledger, clock, .. } = progress;
            bound.begin(task, segment, &state.theta, Books { ledger, clock })
        }
    };
    enter(task, progress, &[], decision);
}

/// What is known, at a global aggregation, of the θ that the groups started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: nobody has reported.
    Unknown,
    /// It is good.
    Good,
    /// It is not, or what became of it is not: the last good model is to take its place.
    Restore,
}

/// At a global aggregation, between the mean and its download: `there` are the groups that take part, `before` is the θ
/// that they started from.
pub(crate) fn steer(
    task: &Task<'_>,
    progress: &mut Progress,
    there: &[usize],
    (before, theta): (&Model, &Model),
) -> Verdict {
    let Progress {
        controller: Some(controller),
        ledger,
        clock,
        segment,
        t,
        ..
    } = progress
    else {
        return Verdict::Unknown;
    };
    // A group that is absent reports nothing, and goes on from θ when it returns.
    let mut reports = std::mem::take(&mut controller.reports);
    controller.reports = vec![Report::default(); reports.len()];
    for (m, report) in reports.iter_mut().enumerate() {
        if !there.contains(&m) {
            *report = Report::default();
        } else if report.intervals > 0 {
            let numbers = Payload::dense(Report::NUMBERS);
            ledger.charge(Link::HospitalCloud, Kind::Report, Direction::Up, 1, numbers);
        }
    }
    let seen = mean(&weights(task), &reports);
    let each = reports.iter().zip(&task.selected);
    let patients = each.map(|(r, a)| r.intervals as f64 * *a as f64).sum();
    let decision = match (&seen, &mut controller.memory) {
        (None, _) => Decision {
            interval: segment.local_interval,
            learning_rate: segment.learning_rate,
            restore: !theta.is_finite(),
            good: false,
            reason: "no group has reported".into(),
        },
        (Some(seen), Memory::Gain(gain)) => gain.steer(seen, patients, theta.is_finite(), *segment),
        (Some(seen), Memory::Bound(bound)) => {
            let left = task.experiment.train.iterations - *t;
            bound.steer(
                (task, there, *t),
                (seen, *segment, left),
                (before, theta),
                Books { ledger, clock },
            )
        }
    };
    let verdict = match decision.restore {
        true => Verdict::Restore,
        false if decision.good => Verdict::Good,
        false => Verdict::Unknown,
    };
    enter(task, progress, there, decision);
    verdict
}

/// P, Q and η, to one group's hospital and to its edge.
pub(crate) fn announce(ledger: &mut Ledger) {
    for link in [Link::HospitalCloud, Link::EdgeCloud] {
        ledger.charge(link, Kind::Settings, Direction::Down, 1, Payload::dense(3));
    }
}

/// Begins a segment, if anything changes: what is left of a run may be shorter than the interval that was chosen.
fn enter(task: &Task<'_>, progress: &mut Progress, there: &[usize], decision: Decision) {
    let Progress {
        t,
        segment,
        controller,
        ledger,
        ..
    } = progress;
    let left = task.experiment.train.iterations - *t;
    let next = Segment {
        start: *t,
        global_interval: decision.interval,
        local_interval: decision.interval,
        // Steps are taken in single precision: beyond it there is nothing to choose, and what is saved must be a
        // number.
        learning_rate: decision
            .learning_rate
            .clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
        halve_every: None,
    }
    .cut(left);
    let same = |a: &Segment, b: &Segment| {
        let numbers = |s: &Segment| (s.global_interval, s.local_interval, s.learning_rate);
        numbers(a) == numbers(b)
    };
    let Some(controller) = controller else { return };
    if left == 0 || (same(&next, segment) && !decision.restore && controller.change.is_some()) {
        return;
    }
    *segment = next;
    controller.change = Some(Change::new(&next, decision.reason));
    if *t > 0 {
        // Who is absent asks for them when it returns.
        there.iter().for_each(|_| announce(ledger));
    }
}
