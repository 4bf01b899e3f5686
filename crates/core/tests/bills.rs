//! What every algorithm is charged, in bytes by both counters and in seconds, against closed forms.

mod common;

use common::closed_forms::{Bill, Case, Sizes, bits, fixed, with_codecs};
use common::{for_seeds, replayed, run, stream, task};
use selvedge_core::experiment::{Algorithm, TimeSettings};
use selvedge_core::ledger::{Direction, Kind, Link};
use selvedge_core::model::Widths;
use selvedge_nn::random::Stream;
use {Direction::*, Kind::*, Link::*};

fn cases(algorithm: Algorithm, law: impl Fn(Case, &mut Stream)) {
    for_seeds(0..150, |seed| {
        let mut draw = stream(seed);
        let case = Case::new(seed, &mut draw, algorithm);
        law(case, &mut draw);
    });
}

#[test]
fn jfl_pays_for_every_pairs_exchanges_and_models() {
    cases(Algorithm::Jfl, |c, _| {
        let z = Sizes::dense(c.w);
        let a = c.a();
        let bill = |t: u64| {
            let (exchanges, up) = (t / c.q * a, t / c.p * a);
            let mut bill = Bill::default();
            let zetas = exchanges * c.samples;
            bill.counted((DeviceHospital, Zeta2, Up), exchanges, zetas, z.zeta2);
            bill.counted(
                (DeviceHospital, Theta0, Down),
                exchanges,
                exchanges,
                z.theta0,
            );
            bill.counted((DeviceHospital, Zeta1, Down), exchanges, zetas, z.zeta1);
            let [n0, n1, n2] = z.global_up;
            bill.counted((HospitalCloud, Theta1, Up), up, up, n1);
            bill.counted((DeviceCloud, Theta2, Up), up, up, n2);
            bill.uncounted((HospitalCloud, Theta0, Up), up, up, n0);
            bill.uncounted((HospitalCloud, Theta0, Down), up, up, n0);
            bill.uncounted((HospitalCloud, Theta1, Down), up, up, n1);
            bill.uncounted((DeviceCloud, Theta2, Down), up, up, n2);
            bill
        };
        // §6: w·A·(d2 + n0 + d1) per exchange, w·A·(n0 + n1 + n2) up and as much down.
        let Widths { n0, n1, n2, d1, d2 } = c.w;
        let (pair, model) = (n0 + c.samples as usize * (d1 + d2), n0 + n1 + n2);
        let t = c.e.train.iterations;
        let closed = 4 * a * (t / c.q * pair as u64 + 2 * (t / c.p) * model as u64);
        assert_eq!(bill(t).exact(), closed);

        let TimeSettings {
            mobile_up: mu,
            mobile_down: md,
            fixed_up: fu,
            fixed_down: fd,
            ..
        } = c.e.time;
        let (s, n) = (c.samples as f64, |n: usize| 32.0 * n as f64);
        let share = c.share(c.largest());
        let exchange = c.exchange(share * s * n(d2) / mu, (n(n0) + s * n(d1)) / md);
        let hospital = c.largest() * n(n0 + n1);
        let aggregation = (share * n(n2) / mu).max(hospital / fu) + (n(n2) / md).max(hospital / fd);
        c.check(bill, |t| {
            (t / c.q) as f64 * exchange + (t / c.p) as f64 * aggregation + c.compute(t)
        });
    });
}

/// (M − 1)·S/M² bytes per group before training, and max(8(S/M)/fu, 8(M − 1)S/(M·fd)) seconds.
fn merging(c: &Case) -> (u64, f64) {
    let (s, m, time) = (c.raw().0, c.m, &c.e.time);
    let moved = (u128::from(s) * u128::from(m - 1) / u128::from(m)) as u64;
    let (whole, groups) = (s as f64, m as f64);
    let leaves = 8.0 * whole / groups / time.fixed_up;
    let arrives = 8.0 * (groups - 1.0) * whole / (groups * time.fixed_down);
    (moved, if m > 1 { leaves.max(arrives) } else { 0.0 })
}

fn tdcd_bill(c: &Case, z: Sizes, t: u64) -> Bill {
    let mut bill = Bill::default();
    bill.raw(HospitalHospital, c.m as usize - 1, merging(c).0);
    bill.inside(z, t / c.q, 1, [c.a(), c.receivers(), c.samples]);
    bill
}

#[test]
fn tdcd_pays_for_the_raw_data_and_not_for_global_aggregations() {
    let mut configured = 0;
    for_seeds(0..150, |seed| {
        let c = Case::new(seed, &mut stream(seed), Algorithm::Tdcd);
        configured += u32::from(c.e.train.raw_bytes.is_some());
        let z = Sizes::dense(c.w);
        let (s, m) = (c.raw().0 as f64, c.m as f64);
        let per_group = merging(&c).0 as f64 / m;
        let closed = (m - 1.0) * s / (m * m);
        assert!((per_group - closed).abs() <= 1.0, "{per_group} {closed}");
        let interval = c.interval(z);
        c.check(
            |t| tdcd_bill(&c, z, t),
            |t| merging(&c).1 + (t / c.q) as f64 * interval,
        );
    });
    assert!(replayed().is_some() || (20..130).contains(&configured));
}

#[test]
fn c_hsgd_and_c_tdcd_pay_for_frames_and_the_time_they_take() {
    cases(Algorithm::CHsgd, |mut c, draw| {
        let z = with_codecs(&mut c, draw);
        let bill = |t: u64| {
            let mut bill = Bill::default();
            bill.inside(z, t / c.q, c.m, [c.a(), c.receivers(), c.samples]);
            bill.global(z, t / c.p * c.m);
            bill
        };
        let (interval, t_g) = (c.interval(z), c.t_g(z));
        c.check(bill, |t| {
            (t / c.q) as f64 * interval + (t / c.p) as f64 * t_g
        });
    });
    cases(Algorithm::CTdcd, |mut c, draw| {
        let z = with_codecs(&mut c, draw);
        let interval = c.interval(z);
        c.check(
            |t| tdcd_bill(&c, z, t),
            |t| merging(&c).1 + (t / c.q) as f64 * interval,
        );
    });
}

/// By default: θ0, ζ1 and ζ2 by top-k of 128 levels, θ2 and global aggregation dense.
#[test]
fn the_papers_counter_sees_seven_bits_of_32_of_what_c_hsgd_compresses() {
    cases(Algorithm::CHsgd, |c, _| {
        let Widths { n0, n1, n2, d1, d2 } = c.w;
        let [n0, n1, n2, d1, d2] = [n0, n1, n2, d1, d2].map(|n| n as f64);
        let (a, s, t) = (c.a() as f64, c.samples as f64, c.e.train.iterations);
        let coded = c.m as f64 * n0 + a * s * (d1 + d2);
        let paper =
            4.0 * ((t / c.p * c.m) as f64 * n1 + (t / c.q) as f64 * (a * n2 + coded * 7.0 / 32.0));
        let run = run(&task(&c.e, &c.data));
        assert_eq!(run.last.progress.ledger.paper(), paper);
        let last = &run.log.evaluations[run.log.evaluations.len() - 1];
        assert_eq!(last.bytes_paper, paper / c.m as f64);
    });
}

#[test]
fn fedavg_pays_for_the_devices_raw_data_and_then_for_whole_models() {
    cases(Algorithm::FedAvg, |c, _| {
        let (z, (_, raw)) = (Sizes::dense(c.w), c.raw());
        let bill = |t: u64| {
            let mut bill = Bill::default();
            bill.raw(DeviceEdge, c.devices as usize, raw);
            bill.raw(EdgeHospital, c.m as usize, raw);
            let n = t / c.p * c.m;
            for (kind, size) in [Theta0, Theta1, Theta2].into_iter().zip(z.global_up) {
                match kind {
                    Theta1 => bill.counted((HospitalCloud, kind, Up), n, n, size),
                    _ => bill.uncounted((HospitalCloud, kind, Up), n, n, size),
                }
                bill.uncounted((HospitalCloud, kind, Down), n, n, size);
            }
            bill
        };
        let time = &c.e.time;
        let theta = 32.0 * (c.w.n0 + c.w.n1 + c.w.n2) as f64;
        let t_g = theta / time.fixed_up + theta / time.fixed_down;
        let first = devices_give(&c) + 8.0 * raw as f64 / c.m as f64 / fixed(time);
        c.check(bill, |t| first + c.compute(t) + (t / c.p) as f64 * t_g);
    });
}

/// Until the edges have what the devices gave, groups being of one size.
fn devices_give(c: &Case) -> f64 {
    let per_group = c.devices as f64 / c.m as f64;
    8.0 * c.share(per_group) * c.raw().1 as f64 / c.devices as f64 / c.e.time.mobile_up
}

#[test]
fn centralised_training_pays_for_all_raw_data_and_nothing_after() {
    cases(Algorithm::Centralised, |c, _| {
        let (all, devices) = c.raw();
        let bill = |_| {
            let mut bill = Bill::default();
            bill.raw(HospitalCloud, c.m as usize, all - devices);
            bill.raw(DeviceEdge, c.devices as usize, devices);
            bill.raw(EdgeCloud, c.m as usize, devices);
            bill
        };
        // The cloud is no subscriber: towards it only the sender's uplink counts.
        let share = |bytes: u64| 8.0 * bytes as f64 / c.m as f64 / c.e.time.fixed_up;
        let first = share(all - devices).max(devices_give(&c) + share(devices));
        c.check(bill, |t| first + c.compute(t));
    });
}

#[test]
fn hospital_only_pays_for_theta0_and_theta1_at_global_aggregations() {
    cases(Algorithm::HospitalOnly, |c, _| {
        let z = Sizes::dense(c.w);
        let bill = |t: u64| {
            let (mut bill, n) = (Bill::default(), t / c.p * c.m);
            bill.uncounted((HospitalCloud, Theta0, Up), n, n, z.global_up[0]);
            bill.counted((HospitalCloud, Theta1, Up), n, n, z.global_up[1]);
            bill.uncounted((HospitalCloud, Theta0, Down), n, n, z.global_up[0]);
            bill.uncounted((HospitalCloud, Theta1, Down), n, n, z.global_up[1]);
            bill
        };
        let theta = 32.0 * (c.w.n0 + c.w.n1) as f64;
        let t_g = theta / c.e.time.fixed_up + theta / c.e.time.fixed_down;
        c.check(bill, |t| c.compute(t) + (t / c.p) as f64 * t_g);
    });
}

#[test]
fn device_only_pays_for_theta0_and_theta2_between_devices_edges_and_cloud() {
    cases(Algorithm::DeviceOnly, |c, _| {
        let [n0, _, n2] = Sizes::dense(c.w).global_up;
        let bill = |t: u64| {
            let (mut bill, n, g) = (Bill::default(), t / c.q * c.a(), t / c.p * c.m);
            bill.counted((DeviceEdge, Theta2, Up), n, n, n2);
            bill.uncounted((DeviceEdge, Theta2, Down), n, n, n2);
            for direction in [Up, Down] {
                bill.uncounted((DeviceEdge, Theta0, direction), n, n, n0);
                bill.uncounted((EdgeCloud, Theta0, direction), g, g, n0);
                bill.uncounted((EdgeCloud, Theta2, direction), g, g, n2);
            }
            bill
        };
        let time = &c.e.time;
        let both = bits(n0) + bits(n2);
        let local = both * (c.share(c.largest()) / time.mobile_up + 1.0 / time.mobile_down);
        let t_g = both * (1.0 / time.fixed_up + 1.0 / time.fixed_down);
        c.check(bill, |t| {
            (t / c.q) as f64 * local + (t / c.p) as f64 * t_g + c.compute(t)
        });
    });
}
