//! The ledger and the clock of runs against the closed forms of the design.

mod common;

use common::bills::{Lines, lines, random_case, random_time};
use common::{
    Chosen, Part, Plan, Run, TANH, absences, dataset, experiment, for_seeds, replayed, run, stream,
    task, within,
};
use selvedge_core::experiment::{Broadcast, TimeSettings};
use selvedge_core::ledger::{Direction, Kind, Link};
use selvedge_core::model::Widths;
use selvedge_core::selection::Draw;
use selvedge_core::task::Task;
use {Direction::*, Kind::*, Link::*};

/// The table of the design: what all groups have sent after t iterations, `selected` being A of each group and
/// `receivers` how many devices are sent the device model.
fn table(w: Widths, [t, p, q]: [u64; 3], selected: &[u64], receivers: &[u64]) -> Lines {
    let Widths { n0, n1, n2, d1, d2 } = w;
    let [n0, n1, n2, d1, d2] = [n0, n1, n2, d1, d2].map(|n| n as u64);
    let (local, global, m) = (t / q, t / p, selected.len() as u64);
    let (a, r): (u64, u64) = (selected.iter().sum(), receivers.iter().sum());
    let mut lines = Lines::new();
    let mut line = |link, kind, direction, messages: u64, words: u64| {
        if messages > 0 {
            lines.insert((link, kind, direction), (messages, 4 * words));
        }
    };
    line(DeviceEdge, Theta2, Up, local * a, local * a * n2);
    line(DeviceEdge, Theta2, Down, local * r, local * r * n2);
    line(DeviceEdge, Zeta2, Up, local * a, local * a * d2);
    line(EdgeHospital, Zeta2, Up, local * m, local * a * d2);
    line(EdgeHospital, Theta0, Down, local * m, local * m * n0);
    line(EdgeHospital, Zeta1, Down, local * m, local * a * d1);
    line(DeviceEdge, Theta0, Down, local * a, local * a * n0);
    line(DeviceEdge, Zeta1, Down, local * a, local * a * d1);
    for direction in [Up, Down] {
        line(
            HospitalCloud,
            Theta0,
            direction,
            global * m,
            global * m * n0,
        );
        line(
            HospitalCloud,
            Theta1,
            direction,
            global * m,
            global * m * n1,
        );
        line(EdgeCloud, Theta2, direction, global * m, global * m * n2);
    }
    lines
}

#[test]
fn the_ledger_is_the_closed_form_at_every_evaluation() {
    for_seeds(0..200, |seed| {
        let mut draw = stream(seed);
        let (mut e, data) = random_case(seed, &mut draw, 1);
        if seed % 4 == 3 {
            e.train.broadcast = Broadcast::All;
        }
        let task = task(&e, &data);
        let w = task.architecture.widths();
        let alpha = e.train.participation;
        let devices: Vec<u64> = data.groups.iter().map(|g| g.devices() as u64).collect();
        let selected: Vec<u64> = devices
            .iter()
            .map(|k| ((alpha * *k as f64).round() as u64).max(1))
            .collect();
        let all = e.train.broadcast == Broadcast::All;
        let receivers = if all {
            devices.clone()
        } else {
            selected.clone()
        };
        let (p, q) = (e.train.global_interval, e.train.local_interval);
        let Run { log, last, .. } = run(&task);
        assert_eq!(log.evaluations.len() as u64, e.train.iterations / p + 1);

        for state in &log.states {
            let t = state.progress.t;
            // Between global aggregations every local message has been sent, the global ones of before too.
            let (want, got) = (
                table(w, [t, p, q], &selected, &receivers),
                lines(&state.progress.ledger),
            );
            assert_eq!(
                got, want,
                "t = {t}, P = {p}, Q = {q}, A = {selected:?}, K = {devices:?}, {w:?}"
            );
        }
        let [n0, n1, n2, d1, d2] = [w.n0, w.n1, w.n2, w.d1, w.d2].map(|n| n as u64);
        for evaluation in &log.evaluations {
            let t = evaluation.t;
            let exact = selected.iter().zip(&receivers).map(|(&a, &r)| {
                t / q * 4 * (a * n2 + r * n2 + 2 * a * d2 + n0 + a * d1 + a * (n0 + d1))
                    + t / p * 8 * (n0 + n1 + n2)
            });
            let paper = selected
                .iter()
                .map(|&a| 4 * (t / p * n1 + t / q * (a * n2 + n0 + a * d1 + a * d2)));
            let groups = devices.len() as f64;
            let (exact, paper) = (
                exact.sum::<u64>() as f64 / groups,
                paper.sum::<u64>() as f64 / groups,
            );
            assert_eq!(
                (evaluation.bytes_exact, evaluation.bytes_paper),
                (exact, paper),
                "t = {t}"
            );
        }
        let ledger = &last.progress.ledger;
        assert_eq!(
            ledger.exact(),
            ledger.entries().iter().map(|e| e.bytes).sum::<u64>()
        );
    });
}

#[test]
fn broadcast_all_changes_the_bill_and_nothing_else() {
    let data = dataset(3, &Plan::of_groups(&[9, 4]));
    let mut e = experiment(3, [12, 4, 2], TANH);
    let selected = run(&task(&e, &data));
    e.train.broadcast = Broadcast::All;
    let all = run(&task(&e, &data));
    assert_eq!(selected.last.theta, all.last.theta);
    let (mut a, mut b) = (
        lines(&selected.last.progress.ledger),
        lines(&all.last.progress.ledger),
    );
    let line = (DeviceEdge, Theta2, Down);
    let (a_line, b_line) = (a.remove(&line).unwrap(), b.remove(&line).unwrap());
    assert_eq!(a, b);
    assert_eq!((a_line.0, b_line.0), (6 * (5 + 2), 6 * (9 + 4)));
    assert_eq!(
        a_line.1 * b_line.0,
        b_line.1 * a_line.0,
        "the same bytes a message"
    );
    assert_eq!(
        selected.last.progress.ledger.paper(),
        all.last.progress.ledger.paper()
    );
}

/// Who of a group takes part in the interval from `t` to `until`: the drawn devices, those of them that exchange, and
/// those of these whose model arrives.
fn parts(task: &Task<'_>, drawn: &Part, m: usize, t: u64, until: u64) -> [Vec<u32>; 3] {
    let subset = drawn.subset.clone();
    let mut there = subset.clone();
    there.retain(|n| !task.absences.exchange(t, m, *n));
    let mut arrived = there.clone();
    arrived.retain(|n| !task.absences.upload(until, m, *n));
    [subset, there, arrived]
}

/// Several samples a device and absences: every message counted one by one from who took part.
#[test]
fn what_was_not_sent_is_not_charged() {
    for_seeds(0..40, |seed| {
        let mut draw = stream(seed);
        let e = experiment(seed, [24, 6, 2], TANH);
        let mut plan = Plan::of_groups(&[7, 4, 9]);
        plan.devices
            .iter_mut()
            .flatten()
            .for_each(|n| *n = within(&mut draw, 1..4) as usize);
        let data = dataset(seed, &plan);
        let mut task = task(&e, &data);
        task.absences = absences(seed, [0.3, 0.3, 0.4]);
        let w = task.architecture.widths();
        let Run { log, last, .. } = run(&task);

        let mut want = Lines::new();
        let mut send = |link, kind, direction, words: usize| {
            let line = want.entry((link, kind, direction)).or_default();
            *line = (line.0 + 1, line.1 + 4 * words as u64);
        };
        for (i, m) in (0..log.parts.len()).flat_map(|i| (0..3).map(move |m| (i, m))) {
            let (t, until) = (2 * i as u64, 2 * i as u64 + 2);
            let [subset, there, arrived] = parts(&task, &log.parts[i][m], m, t, until);
            let rows = |n: u32| data.groups[m].rows(n).len();
            let samples: usize = there.iter().map(|n| rows(*n)).sum();
            subset
                .iter()
                .for_each(|_| send(DeviceEdge, Theta2, Down, w.n2));
            for &n in &there {
                send(DeviceEdge, Zeta2, Up, rows(n) * w.d2);
                send(DeviceEdge, Theta0, Down, w.n0);
                send(DeviceEdge, Zeta1, Down, rows(n) * w.d1);
            }
            if !there.is_empty() {
                send(EdgeHospital, Zeta2, Up, samples * w.d2);
                send(EdgeHospital, Theta0, Down, w.n0);
                send(EdgeHospital, Zeta1, Down, samples * w.d1);
            }
            arrived
                .iter()
                .for_each(|_| send(DeviceEdge, Theta2, Up, w.n2));
            if until % 6 != 0 || task.absences.group(until, m) {
                continue;
            }
            // Back again, a group has fetched what it missed.
            let missed = until > 6 && task.absences.group(until - 6, m);
            for direction in if missed {
                &[Up, Down, Down][..]
            } else {
                &[Up, Down]
            } {
                send(HospitalCloud, Theta0, *direction, w.n0);
                send(HospitalCloud, Theta1, *direction, w.n1);
                send(EdgeCloud, Theta2, *direction, w.n2);
            }
        }
        assert_eq!(lines(&last.progress.ledger), want);
    });
}

/// t_l + t_e + Q·t_c of one group, A being the devices that exchange and U those that upload.
fn interval(time: &TimeSettings, w: Widths, q: u64, a: usize, u: usize) -> f64 {
    let [n0, n2, d1, d2] = [w.n0, w.n2, w.d1, w.d2].map(|n| n as f64);
    let (mu, md, fixed) = (
        time.mobile_up,
        time.mobile_down,
        time.fixed_up.min(time.fixed_down),
    );
    let [share_a, share_u] = [a, u].map(|n| if time.shared_uplink { n as f64 } else { 1.0 });
    let a = a as f64;
    let t_l = 32.0 * n2 * (share_u / mu + 1.0 / md);
    let up = share_a * 32.0 * d2 / mu + 32.0 * a * d2 / fixed;
    let down = 32.0 * (n0 + a * d1) / fixed + 32.0 * (n0 + d1) / md;
    let t_e = if time.sequential_exchange {
        up + down
    } else {
        up.max(down)
    };
    t_l + t_e + q as f64 * time.compute_seconds() * time.compute_scale
}

fn t_g(time: &TimeSettings, w: Widths) -> f64 {
    32.0 * (w.n0 + w.n1).max(w.n2) as f64 * (1.0 / time.fixed_up + 1.0 / time.fixed_down)
}

#[test]
fn the_clock_is_the_closed_form() {
    for_seeds(0..200, |seed| {
        let mut draw = stream(seed);
        let (mut e, data) = random_case(seed, &mut draw, 1);
        e.time = random_time(&mut draw);
        let task = task(&e, &data);
        let w = task.architecture.widths();
        let (p, q) = (e.train.global_interval, e.train.local_interval);
        // Groups differ in A only: the one that takes longest counts in every global interval.
        let alpha = e.train.participation;
        let selected = data
            .groups
            .iter()
            .map(|g| ((alpha * g.devices() as f64).round() as usize).max(1));
        let slowest = selected
            .map(|a| interval(&e.time, w, q, a, a))
            .fold(0.0, f64::max);
        for evaluation in run(&task).log.evaluations {
            let want = (evaluation.t / p) as f64 * ((p / q) as f64 * slowest + t_g(&e.time, w));
            let got = evaluation.seconds;
            assert!(
                (got - want).abs() <= 1e-11 * want,
                "t = {}: {got} and not {want} s, {:?}",
                evaluation.t,
                e.time
            );
        }
    });
}

#[test]
fn the_slowest_group_counts_once_per_global_interval() {
    let mut tried = 0;
    for_seeds(0..40, |seed| {
        let mut draw = stream(seed);
        let mut e = experiment(seed, [24, 6, 2], TANH);
        e.train.participation = 1.0;
        e.time = random_time(&mut draw);
        let data = dataset(seed, &Plan::of_groups(&[6, 7, 8]));
        let mut task = task(&e, &data);
        task.absences = absences(seed, [0.4, 0.2, 0.0]);
        task.selection = Box::new(Chosen(|draw: Draw| (0..draw.devices as u32).collect()));
        let w = task.architecture.widths();
        let log = run(&task).log;
        let count = |i: usize, m: usize| {
            let (t, until) = (2 * i as u64, 2 * i as u64 + 2);
            let [_, there, arrived] = parts(&task, &log.parts[i][m], m, t, until);
            (there.len(), arrived.len())
        };
        if (0..12).any(|i| (0..3).any(|m| count(i, m).1 == 0)) {
            return; // How long nobody takes is not laid down.
        }
        tried += 1;
        let mut want = 0.0;
        for p in 0..4 {
            let one = |i: usize, m: usize| {
                let (there, arrived) = count(i, m);
                interval(&e.time, w, 2, there, arrived)
            };
            let of_group = |m: usize| (3 * p..3 * p + 3).map(|i| one(i, m)).sum::<f64>();
            want += (0..3).map(of_group).fold(0.0, f64::max) + t_g(&e.time, w);
            let got = log.evaluations[p + 1].seconds;
            let near = (got - want).abs() <= 1e-11 * want;
            assert!(near, "global interval {p}: {got} and not {want} s");
        }
    });
    assert!(
        replayed().is_some() || tried > 20,
        "{tried} runs had somebody in every interval"
    );
}
