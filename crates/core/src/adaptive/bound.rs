//! The paper's strategies, with constants measured on the run itself (`adaptive = "bound"`).
//!
//! Before the first iteration, and again whenever that costs less than a twentieth of the bytes since, the groups
//! *probe* ([`estimate`]): gradients that are measured and not applied give ρ, δ² and, at first, ‖∇F‖. In between, F is
//! what hospitals report, and ‖∇F‖ follows from how far θ has moved. At each global aggregation strategy 2 gives P = Q
//! for the experiment's η, and strategy 3 then η for that Q; both go at most by a factor of four at once, and small
//! changes are not made, but η never exceeds 1/(8Pρ), where the bound ends. The reason of a decision says whether
//! strategy 1's conditions for P = Q are met.
//!
//! Strategy 2 does not get the η that strategy 3 found last. Each taking the other's answer, they run away: Q* grows as
//! η^(−3/2), η* falls as 1/Q, and what is left after a few global aggregations is Q in the thousands and η near zero.
//! The reason is in the bound itself: with P = Q what it promises of an interval, ηQ·(‖∇F‖²/4 − 3ρδ²·ηQ −
//! 24ρ²δ²·(ηQ)²), depends on ηQ alone.

use super::Decision;
use crate::clock::{Clock, Rates, Traffic};
use crate::gradient::Federation;
use crate::hsgd::compute;
use crate::ledger::{Direction, Kind, Ledger, Link, Messages, Payload};
use crate::local_steps::Descended;
use crate::model::Model;
use crate::schedule::Segment;
use crate::task::Task;
use crate::theory::bill::Bill;
use crate::theory::bound::Constants;
use crate::theory::estimate::{self, Point, Probe, Problem};
use crate::theory::strategies::{EqualityCheck, Root, best_rate, equal_intervals};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// At most so many steps of power iteration in a probe: ρ is a matter of tens of percent.
const STEPS: usize = 6;
/// Probes cost at most this share of all bytes, but for the first.
const SHARE: f64 = 0.05;
/// A loss so many times that at the start is no model to go on with.
const WORST: f64 = 4.0;
/// How much of ‖∇F‖² is the newest.
const SMOOTHING: f64 = 0.2;
/// P, Q and η change by at most this factor at once, and by at least [`WORTHWHILE`].
const LARGEST_CHANGE: f64 = 4.0;
const WORTHWHILE: f64 = 1.2;

/// What it remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The last probe, if there was one.
    pub known: Option<Known>,
    /// The loss over fresh patients in the first interval.
    pub start: Option<f64>,
    /// ‖∇F‖² estimated from the last global intervals, with more weight on newer ones; noise can take it below zero.
    pub gradient: f64,
}

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// ρ, the largest over the groups.
    pub rho: f64,
    /// F, ‖∇F‖² and variances.
    pub point: Point,
    /// All bytes of the run after it.
    pub bytes: u64,
    /// Its own bytes.
    pub cost: u64,
}

impl Known {
    fn is_finite(&self) -> bool {
        let Point {
            loss,
            gradient,
            variance,
            between,
        } = self.point;
        let numbers = [self.rho, loss, gradient].into_iter();
        numbers
            .chain(variance)
            .chain(between)
            .all(|x| x.is_finite())
    }
}

/// Where probes are charged: the bytes they send, and the time that takes.
#[derive(Debug)]
pub struct Books<'a> {
    /// Bytes.
    pub ledger: &'a mut Ledger,
    /// Simulated time.
    pub clock: &'a mut Clock,
}

impl Bound {
    pub(super) fn begin(
        &mut self,
        task: &Task<'_>,
        segment: Segment,
        theta: &Model,
        books: Books<'_>,
    ) -> Decision {
        let all: Vec<usize> = (0..task.dataset.groups.len()).collect();
        let known = probe((task, &all, 0), theta, books);
        if !known.is_finite() {
            return Decision {
                interval: segment.local_interval,
                learning_rate: segment.learning_rate,
                restore: false,
                good: true,
                reason: "the experiment's Q and η: gradients are not finite".into(),
            };
        }
        self.known = Some(known);
        self.gradient = known.point.gradient;
        let (loss, gradient) = (known.point.loss, self.gradient.sqrt());
        decide(
            task,
            &known,
            (loss, gradient),
            segment,
            task.experiment.train.iterations,
        )
    }

    pub(super) fn steer(
        &mut self,
        (task, there, t): (&Task<'_>, &[usize], u64),
        (seen, segment, left): (&Descended, Segment, u64),
        (before, theta): (&Model, &Model),
        books: Books<'_>,
    ) -> Decision {
        let start = *self.start.get_or_insert(seen.first);
        let back = || Decision {
            interval: segment.local_interval,
            learning_rate: segment.learning_rate / 4.0,
            restore: true,
            good: false,
            reason: format!(
                "the loss on fresh patients is {:.3}, at first {start:.3}: back to the last good model, with η / 4",
                seen.first
            ),
        };
        // Not `>`: what is no number is not good either.
        let good = seen.first <= WORST * start;
        if !theta.is_finite() || !good {
            return back();
        }
        let (bytes, most) = (books.ledger.exact(), largest_cost(task, there) as f64);
        let due =
            |known: &Known| most <= SHARE * bytes.saturating_sub(known.bytes) as f64 && left > 0;
        let known = match self.known.filter(|known| !due(known)) {
            Some(known) => known,
            None => probe((task, there, t), theta, books),
        };
        // θ can be finite where its gradients are not; what is not a number cannot be saved either.
        if !known.is_finite() {
            return back();
        }
        self.known = Some(known);
        let squared = gradient(task, &known.point, segment, (before, theta));
        self.gradient += SMOOTHING * (squared - self.gradient);
        let gradient = self.gradient.max(0.0).sqrt();
        decide(task, &known, (seen.first, gradient), segment, left)
    }
}

/// ‖∇F‖² from how far θ has moved in a global interval, less what noise adds to it.
fn gradient(
    task: &Task<'_>,
    point: &Point,
    segment: Segment,
    (before, theta): (&Model, &Model),
) -> f64 {
    let way = segment.learning_rate * segment.global_interval as f64;
    let moved = estimate::norm(&estimate::moved(theta, before, -1.0)) / way;
    let squared_weights: f64 = super::weights(task).iter().map(|w| w * w).sum();
    let selected = mean_selected(task);
    let [theta0, theta1, theta2] = point.variance;
    let fresh = segment.global_interval as f64 / segment.local_interval as f64;
    let noise = (theta0 + theta1 + theta2 / selected) * squared_weights / fresh;
    moved * moved - noise
}

fn mean_selected(task: &Task<'_>) -> f64 {
    task.selected.iter().sum::<usize>() as f64 / task.selected.len() as f64
}

/// What decides the bytes of a task's groups.
pub fn bill(task: &Task<'_>) -> Bill {
    Bill {
        widths: task.architecture.widths(),
        selected: mean_selected(task),
    }
}

/// Strategy 2, then strategy 3.
fn decide(
    task: &Task<'_>,
    known: &Known,
    (loss, gradient): (f64, f64),
    segment: Segment,
    left: u64,
) -> Decision {
    let constants = Constants {
        drop: loss,
        rho: known.rho,
        variance: known.point.largest_variance(),
    };
    let (q, rate) = (segment.local_interval as f64, segment.learning_rate);
    let reference = task.experiment.train.learning_rate;
    let near = |new: f64, old: f64| {
        let new = new.clamp(old / LARGEST_CHANGE, old * LARGEST_CHANGE);
        match (1.0 / WORTHWHILE..WORTHWHILE).contains(&(new / old)) {
            true => old,
            false => new,
        }
    };
    let chosen = equal_intervals(
        &constants,
        &bill(task),
        reference,
        left.max(1) as f64,
        Root::Corrected,
    );
    let interval = near(chosen.interval as f64, q).round().max(1.0);
    // However far it must fall for that: beyond the limit the bound promises nothing.
    let limit = constants.largest_rate(interval);
    let learning_rate = near(best_rate(&constants, interval, interval, gradient), rate).min(limit);
    let equal = EqualityCheck::new(&constants, &bill(task), (interval, learning_rate), left);
    Decision {
        interval: interval as u64,
        learning_rate,
        restore: false,
        good: true,
        reason: format!(
            "ρ {:.3}, δ² {:.3}, F {loss:.3}, ‖∇F‖ {gradient:.3}: Q* {:.2}, η ≤ {limit:.2e}, {equal}",
            known.rho, constants.variance, chosen.real,
        ),
    }
}

/// The groups that are there, as the estimators see them.
struct There<'a>(Federation<'a>, &'a [usize]);

impl Problem for There<'_> {
    fn groups(&self) -> usize {
        self.1.len()
    }

    fn weight(&self, group: usize) -> f64 {
        let all: f64 = self.1.iter().map(|m| self.0.weight(*m)).sum();
        self.0.weight(self.1[group]) / all
    }

    fn probe(&self, group: usize, draw: u64, model: &Model) -> Probe {
        self.0.probe(self.1[group], draw, model)
    }
}

/// The groups that are there probe θ, with the patients that they would draw for `t`.
pub fn probe(
    (task, there, t): (&Task<'_>, &[usize], u64),
    theta: &Model,
    books: Books<'_>,
) -> Known {
    let federation = There(Federation(task), there);
    let point = estimate::point(&federation, t, theta);
    let found: Vec<(f64, usize)> = (0..there.len())
        .into_par_iter()
        .map(|i| {
            let found = estimate::curvature(&federation, (i, t), theta, None, STEPS);
            (found.rho, found.probes + second(task, there[i]))
        })
        .collect();
    let Books { ledger, clock } = books;
    let before = ledger.exact();
    for (m, (_, probes)) in there.iter().zip(&found) {
        let taken = charge(task, *m, *probes, ledger);
        clock.advance(*m, taken);
    }
    let w = task.architecture.widths();
    let up = [w.n0, w.n1, w.n2].map(Payload::dense);
    let rates = Rates::new(&task.experiment.time);
    clock.meet(rates.global_aggregation(&up, &[Payload::default(); 3]));
    let bytes = ledger.exact();
    Known {
        // Not `max`, which would pass over what is no number.
        rho: found
            .iter()
            .fold(0.0, |largest, (rho, _)| match *rho <= largest {
                true => largest,
                false => *rho,
            }),
        point,
        bytes,
        cost: bytes - before,
    }
}

/// How many probes a group makes more because one device alone shows no spread.
fn second(task: &Task<'_>, m: usize) -> usize {
    usize::from(task.selected[m] == 1 && task.dataset.groups[m].devices() > 1)
}

/// The most that probing these groups can send.
fn largest_cost(task: &Task<'_>, there: &[usize]) -> u64 {
    let mut ledger = Ledger::default();
    for &m in there {
        charge(task, m, 1 + STEPS + second(task, m), &mut ledger);
    }
    ledger.exact()
}

/// What a group's probes send: each the messages of an exchange and the devices' gradients, as large as their models;
/// to the cloud the mean gradient once, and scalars. Gives the seconds that the group takes, but for what goes to the
/// cloud.
pub fn charge(task: &Task<'_>, m: usize, probes: usize, ledger: &mut Ledger) -> f64 {
    let sizes = Messages::new(
        task.architecture.widths(),
        &crate::message_path::Compression::NONE,
    );
    let group = &task.dataset.groups[m];
    let devices = task.selected[m];
    let per_device = group.row_count() as f64 / group.devices() as f64;
    let traffic = Traffic {
        devices,
        samples: (devices as f64 * per_device).round() as usize,
        largest: per_device.ceil() as usize,
    };
    for _ in 0..probes {
        ledger.charge_exchange(&sizes, devices, traffic);
        let gradients = sizes.theta2_up.times(devices);
        ledger.charge(
            Link::DeviceEdge,
            Kind::Theta2,
            Direction::Up,
            devices,
            gradients,
        );
    }
    let w = task.architecture.widths();
    ledger.charge_global(&[w.n0, w.n1, w.n2].map(Payload::dense), Direction::Up);
    // Three variances, the loss and ρ.
    ledger.charge(
        Link::HospitalCloud,
        Kind::Report,
        Direction::Up,
        1,
        Payload::dense(5),
    );
    let rates = Rates::new(&task.experiment.time);
    let each = rates.exchange(&sizes, traffic) + rates.local_aggregation(&sizes, devices);
    probes as f64 * (each + compute(task, 1, None))
}
