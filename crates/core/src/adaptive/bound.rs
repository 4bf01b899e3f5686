//! The paper's strategies, with constants measured on the run itself (`adaptive = "bound"`).
//!
//! Before the first iteration, and again whenever that costs less than a twentieth of the bytes since, all groups *probe*
//! ([`estimate`]): gradients that are measured and not applied give ρ, δ² and, at first, ‖∇F‖. In between, F is what
//! hospitals report, and ‖∇F‖ follows from how far θ has moved. At each global aggregation strategy 2 gives P = Q for the
//! experiment's η, and strategy 3 then η for that Q; both go at most by a factor of four at once, and small changes are not
//! made.
//!
//! Strategy 2 does not get the η that strategy 3 found last. Each taking the other's answer, they run away: Q* grows as
//! η^(−3/2), η* falls as 1/Q, and what is left after a few global aggregations is Q in the thousands and η near zero. The
//! reason is in the bound itself: with P = Q what it promises of an interval, ηQ·(‖∇F‖²/4 − 3ρδ²·ηQ − 24ρ²δ²·(ηQ)²), depends
//! on ηQ alone.

use super::Decision;
use crate::clock::Traffic;
use crate::gradient::Federation;
use crate::ledger::{Direction, Kind, Ledger, Link, Messages, Payload};
use crate::local_steps::Descended;
use crate::model::Model;
use crate::schedule::Segment;
use crate::task::Task;
use crate::theory::bill::Bill;
use crate::theory::bound::Constants;
use crate::theory::estimate::{self, Point};
use crate::theory::strategies::{Root, best_rate, equal_intervals};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// At most so many steps of power iteration in a probe: ρ is a matter of tens of percent.
const STEPS: usize = 6;
/// Probes cost at most this share of all bytes, but for the first.
const SHARE: f64 = 0.05;
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
    /// ‖∇F‖² as the last global intervals show it, newer ones weighing more; noise can take it below zero.
    pub gradient: f64,
}

/// What a probe has found.
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

impl Bound {
    pub(super) fn begin(
        &mut self,
        task: &Task<'_>,
        segment: Segment,
        theta: &Model,
        ledger: &mut Ledger,
    ) -> Decision {
        let known = probe(task, 0, theta, ledger);
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
        task: &Task<'_>,
        (seen, segment, left): (&Descended, Segment, u64),
        (before, theta): (&Model, &Model),
        t: u64,
        ledger: &mut Ledger,
    ) -> Decision {
        if !theta.is_finite() || !seen.first.is_finite() {
            return Decision {
                interval: segment.local_interval,
                learning_rate: segment.learning_rate / 4.0,
                restore: true,
                reason: "the loss is no number any more: back to the last good model, with η / 4"
                    .into(),
            };
        }
        let due = |known: &Known| {
            known.cost as f64 <= SHARE * (ledger.exact() - known.bytes) as f64 && left > 0
        };
        let known = match self.known.filter(|known| !due(known)) {
            Some(known) => known,
            None => probe(task, t, theta, ledger),
        };
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
    let learning_rate = near(best_rate(&constants, interval, interval, gradient), rate);
    Decision {
        interval: interval as u64,
        learning_rate,
        restore: false,
        reason: format!(
            "ρ {:.3}, δ² {:.3}, F {loss:.3}, ‖∇F‖ {gradient:.3}: Q* {:.2}, η ≤ {:.2e}",
            known.rho,
            constants.variance,
            chosen.real,
            constants.largest_rate(interval)
        ),
    }
}

/// All groups probe θ, with the patients that they would draw for `t`.
pub fn probe(task: &Task<'_>, t: u64, theta: &Model, ledger: &mut Ledger) -> Known {
    let federation = Federation(task);
    let point = estimate::point(&federation, t, theta);
    let found: Vec<(f64, usize)> = (0..task.dataset.groups.len())
        .into_par_iter()
        .map(|m| {
            let found = estimate::curvature(&federation, (m, t), theta, None, STEPS);
            (found.rho, found.probes)
        })
        .collect();
    let before = ledger.exact();
    for (m, (_, probes)) in found.iter().enumerate() {
        charge(task, m, *probes, ledger);
    }
    let bytes = ledger.exact();
    Known {
        rho: found
            .iter()
            .fold(0.0, |largest, (rho, _)| largest.max(*rho)),
        point,
        bytes,
        cost: bytes - before,
    }
}

/// What a group's probes send: each the messages of an exchange and the devices' gradients, as large as their models; to
/// the cloud the mean gradient once, and scalars.
pub fn charge(task: &Task<'_>, m: usize, probes: usize, ledger: &mut Ledger) {
    let sizes = Messages::new(
        task.architecture.widths(),
        &crate::compression::Compression::NONE,
    );
    let group = &task.dataset.groups[m];
    let devices = task.selected[m];
    let per_device = group.samples.len() as f64 / group.devices() as f64;
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
}
