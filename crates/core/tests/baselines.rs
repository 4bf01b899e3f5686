//! Where the baselines meet HSGD: identities that hold to the bit, or to rounding where sums run in another order.

mod common;

use common::bills::{Lines, lines, random_time};
use common::reference::theta;
use common::{
    Log, Plan, Run, TANH, assert_near, assert_same_run, checked, dataset, distance, experiment,
    for_seeds, model_bits, pick, run, stream, task, with_algorithm, within,
};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Algorithm, ClassWeights, Experiment, TimeSettings};
use selvedge_core::ledger::{Kind, Link};
use selvedge_core::model::Widths;
use selvedge_core::run::Ending;
use selvedge_core::state::Evaluation;
use selvedge_nn::random::Stream;

/// A random experiment on a few small groups, with one to three samples on each device.
fn random_case(seed: u64, draw: &mut Stream) -> (Experiment, Dataset) {
    let q = within(draw, 1..5);
    let p = q * within(draw, 1..4);
    let t = p * within(draw, 2..5);
    let mut e = experiment(seed, [t, p, q], TANH);
    e.time = random_time(draw);
    let train = &mut e.train;
    train.participation = pick(draw, &[0.2, 0.5, 0.8, 1.0]);
    train.learning_rate = pick(draw, &[0.1, 0.4, 0.7]);
    train.weight_decay = pick(draw, &[0.0, 0.05]);
    train.halve_every = pick(draw, &[0, 3, 5]);
    train.class_weights = match draw.below(3) {
        0 => ClassWeights::None,
        1 => ClassWeights::Balanced,
        _ => ClassWeights::Listed(vec![0.5, 1.7]),
    };
    let mut plan = Plan {
        validation: 20,
        ..Plan::of_groups(&[])
    };
    let most = pick(draw, &[1, 3]);
    for _ in 0..within(draw, 2..5) {
        let devices = within(draw, 1..9);
        let samples = |_| within(draw, 1..most + 1) as usize;
        plan.devices.push((0..devices).map(samples).collect());
    }
    (checked(&e), dataset(seed, &plan))
}

/// The data in one group, with what is held out of training.
fn merged(data: &Dataset) -> Dataset {
    Dataset {
        validation: data.validation.clone(),
        test: data.test.clone(),
        ..data.merged()
    }
}

fn trained(e: &Experiment, algorithm: Algorithm, data: &Dataset) -> Run {
    let e = with_algorithm(e, algorithm);
    let run = run(&task(&e, data));
    assert_eq!(run.ending, Ending::Finished, "{algorithm:?}");
    run
}

/// The same models at every interval, drawn from the same devices.
#[track_caller]
fn assert_same_models(a: &Log, b: &Log, what: &str) {
    assert_eq!(a.states.len(), b.states.len(), "{what}");
    for (a, b) in a.states.iter().zip(&b.states) {
        let t = a.progress.t;
        assert_eq!(t, b.progress.t, "{what}");
        let bits = |s: &selvedge_core::state::State| {
            let models = [&s.theta, &s.good].into_iter();
            let models = models.chain(&s.groups).chain(&s.best);
            models.map(model_bits).collect::<Vec<_>>()
        };
        assert!(bits(a) == bits(b), "{what}: models differ at t = {t}");
    }
    assert_eq!(a.parts, b.parts, "{what}");
}

/// The same evaluations but for bytes and seconds.
#[track_caller]
fn assert_same_metrics(a: &[Evaluation], b: &[Evaluation], what: &str) {
    let bare = |e: &Evaluation| Evaluation {
        bytes_paper: 0.0,
        bytes_exact: 0.0,
        seconds: 0.0,
        ..e.clone()
    };
    let [a, b] = [a, b].map(|all| all.iter().map(bare).collect::<Vec<_>>());
    assert_eq!(a, b, "{what}");
}

/// Lines without those of some links.
fn without(mut lines: Lines, links: &[Link]) -> Lines {
    lines.retain(|(link, _, _), _| !links.contains(link));
    lines
}

const CLOUD: [Link; 2] = [Link::HospitalCloud, Link::EdgeCloud];

/// Seconds of a global aggregation.
fn t_g(time: &TimeSettings, w: Widths) -> f64 {
    32.0 * (w.n0 + w.n1).max(w.n2) as f64 * (1.0 / time.fixed_up + 1.0 / time.fixed_down)
}

#[test]
fn tdcd_is_hsgd_on_the_merged_data_to_the_bit() {
    for_seeds(0..60, |seed| {
        let (e, data) = random_case(seed, &mut stream(seed));
        let what = format!("{:?}", e.train);
        let tdcd = trained(&e, Algorithm::Tdcd, &data);
        let one = merged(&data);
        let hsgd = trained(&e, Algorithm::Hsgd, &one);
        assert_same_models(&tdcd.log, &hsgd.log, &what);
        // The training loss is summed group by group, so its last bits depend on what a group is.
        let mut evaluations = hsgd.log.evaluations.clone();
        for (want, got) in evaluations.iter_mut().zip(&tdcd.log.evaluations) {
            let (a, b) = (want.loss_train, got.loss_train);
            assert!((a - b).abs() <= 1e-14 * a, "F at t = {}: {b} {a}", got.t);
            want.loss_train = b;
        }
        assert_same_metrics(&tdcd.log.evaluations, &evaluations, &what);

        // The bill: raw data on top, no global aggregation, and all of it shared out over M groups.
        let [ours, theirs] = [&tdcd, &hsgd].map(|run| lines(&run.last.progress.ledger));
        let raw = ours.keys().filter(|(_, kind, _)| *kind == Kind::Raw);
        assert_eq!(raw.count(), 1, "{what}");
        assert_eq!(
            without(ours, &[Link::HospitalHospital]),
            without(theirs, &CLOUD),
            "{what}"
        );
        let groups = data.groups.len() as f64;
        let last = &tdcd.log.evaluations[tdcd.log.evaluations.len() - 1];
        let ledger = &tdcd.last.progress.ledger;
        assert_eq!(last.bytes_exact, ledger.exact() as f64 / groups);
        assert_eq!(last.bytes_paper, ledger.paper() / groups);
        // Merging changes the run, or the comparison above says nothing.
        let apart = trained(&e, Algorithm::Hsgd, &data);
        assert_ne!(apart.last.theta, tdcd.last.theta, "{what}");
    });
}

#[test]
fn tdcd_of_one_group_is_hsgd_without_the_global_aggregation() {
    for_seeds(0..60, |seed| {
        let (e, data) = random_case(seed, &mut stream(seed));
        let data = merged(&data);
        let w = task(&e, &data).architecture.widths();
        let what = format!("{:?}", e.train);
        let [tdcd, hsgd] = [Algorithm::Tdcd, Algorithm::Hsgd].map(|a| trained(&e, a, &data));
        assert_same_models(&tdcd.log, &hsgd.log, &what);
        assert_same_metrics(&tdcd.log.evaluations, &hsgd.log.evaluations, &what);
        for (ours, theirs) in tdcd.log.states.iter().zip(&hsgd.log.states) {
            let [ours, theirs] = [ours, theirs].map(|s| lines(&s.progress.ledger));
            assert_eq!(ours, without(theirs, &CLOUD), "{what}");
        }
        let saved = t_g(&e.time, w);
        for (ours, theirs) in tdcd.log.evaluations.iter().zip(&hsgd.log.evaluations) {
            let want = theirs.seconds - (ours.t / ours.p) as f64 * saved;
            let near = (ours.seconds - want).abs() <= 1e-11 * theirs.seconds;
            assert!(near, "t = {}: {} and not {want} s", ours.t, ours.seconds);
            assert_eq!(ours.bytes_paper + paper_global(ours, w), theirs.bytes_paper);
        }
    });
}

/// What the paper counts of all global aggregations until an evaluation: θ1 of one group.
fn paper_global(at: &Evaluation, w: Widths) -> f64 {
    (at.t / at.p) as f64 * 4.0 * w.n1 as f64
}

/// Σ over the parts of the distance between two models, and of the way from where they began.
fn gap_and_way(a: &Run, b: &Run) -> (f64, f64) {
    let start = theta(&a.log.states[0].theta);
    let [a, b] = [a, b].map(|run| theta(&run.last.theta));
    let sum = |x: &[Vec<f64>; 3]| (0..3).map(|i| distance(&b[i], &x[i])).sum::<f64>();
    (sum(&a), sum(&start))
}

/// A mean of models one step away is one step of the mean gradient, if all pairs have equally many samples. Sums run in
/// another order, so that numbers agree to rounding: `assert_near` allows 1e-5 of the way.
#[test]
fn jfl_is_hsgd_where_p_and_q_are_1() {
    for_seeds(0..20, |seed| {
        let mut draw = stream(seed);
        let (mut e, mut data) = random_case(seed, &mut draw);
        let samples = pick(&mut draw, &[1, 2, 3]);
        let mut plan = Plan::of_groups(&[7, 4, 9]);
        plan.devices.iter_mut().flatten().for_each(|n| *n = samples);
        data.groups = dataset(seed, &plan).groups;
        let [jfl, hsgd] = both(&e, 1, &data);
        assert_eq!(jfl.log.states.len(), hsgd.log.states.len());
        let start = theta(&hsgd.log.states[0].theta);
        for (ours, theirs) in jfl.log.states.iter().zip(&hsgd.log.states) {
            let what = format!("t = {}, {:?}", ours.progress.t, e.train);
            assert_near(&theta(&ours.theta), &theta(&theirs.theta), &start, &what);
        }
        // At longer intervals a pair's (θ0, θ1) follows its own sample, and the runs part.
        e.train.halve_every = 0;
        let [jfl, hsgd] = both(&e, 5, &data);
        let (gap, way) = gap_and_way(&jfl, &hsgd);
        assert!(gap > 1e-3 * way, "only {gap:.1e} apart after {way:.1e}");
    });
}

/// Thirty iterations of JFL and HSGD with P = Q.
fn both(e: &Experiment, p: u64, data: &Dataset) -> [Run; 2] {
    let mut e = e.clone();
    (e.train.iterations, e.train.evaluate_every) = (30, Some(p));
    (e.train.global_interval, e.train.local_interval) = (p, p);
    [Algorithm::Jfl, Algorithm::Hsgd].map(|a| trained(&e, a, data))
}

#[test]
fn without_codecs_c_hsgd_and_c_tdcd_are_hsgd_and_tdcd_in_everything() {
    for_seeds(0..20, |seed| {
        let (mut e, data) = random_case(seed, &mut stream(seed));
        for (plain, compressed) in [
            (Algorithm::Hsgd, Algorithm::CHsgd),
            (Algorithm::Tdcd, Algorithm::CTdcd),
        ] {
            e.compression.codec = "none".into();
            let plain_run = trained(&e, plain, &data);
            assert_same_run(&trained(&e, compressed, &data), &plain_run, "codec none");
            e.compression.codec = "top-k:16".into();
            let unused = trained(&e, plain, &data);
            assert_same_run(&unused, &plain_run, "codecs that are not asked for");
            let other = trained(&e, compressed, &data);
            assert_ne!(
                other.last.theta, plain_run.last.theta,
                "top-k changes the run"
            );
        }
    });
}

#[test]
fn all_start_from_one_model_and_hsgd_c_hsgd_and_jfl_draw_the_same_devices() {
    for_seeds(0..20, |seed| {
        let (e, data) = random_case(seed, &mut stream(seed));
        let (p, q) = (e.train.global_interval, e.train.local_interval);
        let runs = Algorithm::ALL.map(|a| (a, trained(&e, a, &data)));
        let first = model_bits(&runs[0].1.log.states[0].theta);
        for (a, run) in &runs {
            let state = &run.log.states[0];
            assert_eq!(model_bits(&state.theta), first, "{a:?}");
            let groups = state.groups.iter().map(model_bits);
            assert!(groups.into_iter().all(|g| g == first), "{a:?}");
        }
        let subsets = |algorithm: Algorithm| {
            let found = runs.iter().find(|(a, _)| *a == algorithm);
            let parts = &found.expect("all algorithms ran").1.log.parts;
            let subsets = parts.iter().map(|groups| {
                let subsets = groups.iter().map(|part| part.subset.clone());
                subsets.collect::<Vec<_>>()
            });
            subsets.collect::<Vec<_>>()
        };
        let hsgd = subsets(Algorithm::Hsgd);
        assert_eq!(subsets(Algorithm::CHsgd), hsgd);
        // JFL draws at global aggregations only.
        let at_global: Vec<_> = hsgd.into_iter().step_by((p / q) as usize).collect();
        assert_eq!(subsets(Algorithm::Jfl), at_global, "P = {p}, Q = {q}");
    });
}

#[test]
fn fedavg_is_hsgd_and_centralised_is_tdcd_where_q_is_1() {
    for_seeds(0..40, |seed| {
        let (e, data) = random_case(seed, &mut stream(seed));
        let mut fresh = e.clone();
        fresh.train.local_interval = 1;
        for (whole, parts) in [
            (Algorithm::FedAvg, Algorithm::Hsgd),
            (Algorithm::Centralised, Algorithm::Tdcd),
        ] {
            let what = format!("{whole:?}, {:?}", e.train);
            // Whatever Q is: both sides are in one place.
            let [a, b] = [trained(&e, whole, &data), trained(&fresh, parts, &data)];
            assert_same_models(&a.log, &b.log, &what);
            assert_same_metrics(&a.log.evaluations, &b.log.evaluations, &what);
        }
        if e.train.local_interval > 1 {
            let [a, b] = [Algorithm::FedAvg, Algorithm::Hsgd].map(|a| trained(&e, a, &data));
            assert_ne!(a.last.theta, b.last.theta, "stale steps are others");
        }
    });
}
