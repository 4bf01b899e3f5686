//! P, Q and η chosen while training (`train.adaptive`).
//!
//! ```text
//! hospitals ── models, Report ──► cloud ── θ, Segment ──► all
//!                                   │
//!                                 steer    at each global aggregation: a new segment, or none
//! ```
//!
//! Whoever steers sees only what may be shared: models that travel anyway, and the few numbers of a [`Report`], whose
//! bytes are in the ledger. It knows bytes and losses, never seconds, so that a run is the same wherever it is computed.
//! All that it remembers is part of the state.
//!
//! [`bound`] follows the paper's strategies with measured constants; [`gain`] looks at what an interval really gains.

pub mod bound;
pub mod gain;

use crate::experiment::Adaptive;
use crate::ledger::{Direction, Kind, Link, Payload};
use crate::local_steps::Descended;
use crate::model::Model;
use crate::schedule::Segment;
use crate::state::{Progress, State};
use crate::task::Task;
use bound::Bound;
use gain::Gain;
use serde::{Deserialize, Serialize};

/// What a hospital reports with its models: what it saw in the intervals since the last global aggregation.
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

    /// Adds an interval; one in which nobody was there shows nothing.
    pub fn add(&mut self, seen: Descended) {
        if seen == Descended::default() {
            return;
        }
        self.intervals += 1;
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

/// Who steers a run, with all that it remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Controller {
    /// Of each group, since the last global aggregation.
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

/// A segment that was begun, as `segments.jsonl` notes it.
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
    /// Why a segment begins.
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
    /// Why.
    pub reason: String,
}

impl Controller {
    /// Who steers a task, if anybody does.
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
            reason: "the experiment's Q and η".into(),
        },
        Memory::Bound(bound) => bound.begin(task, segment, &state.theta, &mut progress.ledger),
    };
    enter(task, progress, decision);
}

/// At a global aggregation, between the mean and its download: `before` is the θ that the groups started from. True if θ
/// is to be replaced by the last good model.
pub(crate) fn steer(
    task: &Task<'_>,
    progress: &mut Progress,
    (before, theta): (&Model, &Model),
) -> bool {
    let Some(controller) = &mut progress.controller else {
        return false;
    };
    let there = controller.reports.iter().filter(|r| r.intervals > 0);
    let numbers = Payload::dense(Report::NUMBERS);
    for _ in there {
        progress
            .ledger
            .charge(Link::HospitalCloud, Kind::Report, Direction::Up, 1, numbers);
    }
    let Some(seen) = mean(&weights(task), &controller.reports) else {
        return false;
    };
    let each = controller.reports.iter().zip(&task.selected);
    let patients = each.map(|(r, a)| r.intervals as f64 * *a as f64).sum();
    controller.reports.fill(Report::default());
    let segment = progress.segment;
    let decision = match &mut controller.memory {
        Memory::Gain(gain) => gain.steer(&seen, patients, theta.is_finite(), segment),
        Memory::Bound(bound) => {
            let left = task.experiment.train.iterations - progress.t;
            bound.steer(
                task,
                (&seen, segment, left),
                (before, theta),
                progress.t,
                &mut progress.ledger,
            )
        }
    };
    let restore = decision.restore;
    enter(task, progress, decision);
    restore
}

/// Begins a segment, if anything changes.
fn enter(task: &Task<'_>, progress: &mut Progress, decision: Decision) {
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
        learning_rate: decision.learning_rate,
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
        // P, Q and η, to each hospital and each edge.
        let payload = Payload::dense(3);
        for _ in 0..task.dataset.groups.len() {
            ledger.charge(
                Link::HospitalCloud,
                Kind::Settings,
                Direction::Down,
                1,
                payload,
            );
            ledger.charge(Link::EdgeCloud, Kind::Settings, Direction::Down, 1, payload);
        }
    }
}
