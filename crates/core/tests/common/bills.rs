//! Random experiments and links, and what their ledgers say.

use super::{Plan, checked, dataset, experiment, pick, within};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Experiment, TimeSettings};
use selvedge_core::ledger::{Direction, Kind, Ledger, Link};
use selvedge_nn::{Shape, random::Stream};
use std::collections::BTreeMap;

/// Messages and bytes by link, kind and direction.
pub type Lines = BTreeMap<(Link, Kind, Direction), (u64, u64)>;

pub fn lines(ledger: &Ledger) -> Lines {
    let entries = ledger.entries();
    assert!(entries.is_sorted_by_key(|e| (e.link, e.kind, e.direction)));
    let line =
        |e: &selvedge_core::ledger::Entry| ((e.link, e.kind, e.direction), (e.messages, e.bytes));
    entries.iter().map(line).collect()
}

/// A random experiment with random widths and this many samples on every device.
pub fn random_case(seed: u64, draw: &mut Stream, samples: usize) -> (Experiment, Dataset) {
    let [a, b, d1, d2, hidden] = [0; 5].map(|_| within(draw, 1..8));
    let combined = match draw.below(2) {
        0 => r#"[{"linear": {"out": 2}}]"#.to_owned(),
        _ => format!(r#"[{{"linear": {{"out": {hidden}}}}}, "tanh", {{"linear": {{"out": 2}}}}]"#),
    };
    let [hospital, device] = [d1, d2].map(|d| format!(r#"[{{"linear": {{"out": {d}}}}}, "tanh"]"#));
    let q = within(draw, 1..5);
    let p = q * within(draw, 1..5);
    let t = p * within(draw, 1..6);
    let mut e = experiment(seed, [t, p, q], [&combined, &hospital, &device]);
    e.train.participation = f64::from(draw.uniform()).max(0.01);
    let groups: Vec<usize> = (0..within(draw, 1..6))
        .map(|_| within(draw, 1..12) as usize)
        .collect();
    let mut plan = Plan {
        x1: Shape::Flat(a as usize + 1),
        x2: Shape::Flat(b as usize),
        test: 2,
        ..Plan::of_groups(&groups)
    };
    plan.devices.iter_mut().flatten().for_each(|n| *n = samples);
    let data = dataset(seed, &plan);
    (checked(&e), data)
}

/// Random links.
pub fn random_time(draw: &mut Stream) -> TimeSettings {
    let mut rate = || f64::from(1.0 + 99.0 * draw.uniform()) * 1e5;
    TimeSettings {
        mobile_up: rate(),
        mobile_down: rate(),
        fixed_up: rate(),
        fixed_down: rate(),
        compute_seconds: Some(f64::from(draw.uniform()) * 1e-3),
        compute_scale: pick(draw, &[0.1, 1.0, 10.0]),
        shared_uplink: draw.below(2) == 0,
        sequential_exchange: draw.below(2) == 0,
        ..TimeSettings::default()
    }
}
