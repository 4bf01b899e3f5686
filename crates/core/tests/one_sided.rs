//! Baselines of single parties and pairs against what they are said to do, written down once more in f64 and without a
//! backward pass; and what they must not look at.

mod common;

use common::draws::{drawn, learning_rate};
use common::reference::{Theta, World, descend, gradient, theta, weighted_mean};
use common::{
    Plan, TANH, assert_near, assert_same_run, checked, dataset, experiment, for_seeds, model_bits,
    pick, run, stream, task, with_algorithm, within,
};
use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::experiment::{Algorithm, ClassWeights, Experiment};
use selvedge_core::run::Ending;
use selvedge_core::task::Task;

/// A random experiment on unequal groups with one or two samples on each device.
fn random_case(seed: u64, algorithm: Algorithm) -> (Experiment, Dataset) {
    let mut draw = stream(seed);
    let q = within(&mut draw, 1..4);
    let p = q * within(&mut draw, 1..4);
    let mut e = experiment(seed, [2 * p, p, q], TANH);
    e.train.participation = pick(&mut draw, &[0.3, 0.6, 1.0]);
    e.train.weight_decay = pick(&mut draw, &[0.0, 0.05]);
    e.train.halve_every = pick(&mut draw, &[0, 2]);
    e.train.class_weights = ClassWeights::Listed(vec![0.6, 1.5]);
    let mut plan = Plan {
        test: 10,
        validation: 10,
        ..Plan::of_groups(&[])
    };
    for _ in 0..within(&mut draw, 1..4) {
        let devices = within(&mut draw, 1..6);
        let samples = |_| within(&mut draw, 1..3) as usize;
        plan.devices.push((0..devices).map(samples).collect());
    }
    let e = with_algorithm(&e, algorithm);
    (e, dataset(seed, &plan))
}

/// The global models that follow from what each group makes of θ in the P iterations from `t`.
fn federated(task: &Task<'_>, interval: impl Fn(usize, u64, &Theta) -> Theta) -> Vec<Theta> {
    let train = &task.experiment.train;
    let mut models = vec![theta(&task.architecture.initial(task.experiment.seed))];
    for t in (0..train.iterations).step_by(train.global_interval as usize) {
        let last = &models[models.len() - 1];
        let groups: Vec<Theta> = (0..task.dataset.groups.len())
            .map(|m| interval(m, t, last))
            .collect();
        let devices = task.dataset.groups.iter().map(|g| g.devices() as f64);
        let weighted: Vec<(f64, &Theta)> = devices.zip(&groups).collect();
        models.push(weighted_mean(&weighted).expect("there are groups"));
    }
    models
}

fn mean(models: &[Theta]) -> Theta {
    let weighted: Vec<(f64, &Theta)> = models.iter().map(|m| (1.0, m)).collect();
    weighted_mean(&weighted).expect("somebody is drawn")
}

/// Trains, and compares θ at every global aggregation with `want`.
#[track_caller]
fn assert_trains_to(task: &Task<'_>, want: &[Theta]) {
    let run = run(task);
    assert_eq!(run.ending, Ending::Finished);
    let aggregated = run.log.states.iter();
    let aggregated = aggregated.filter(|s| s.progress.aggregated == s.progress.t);
    let got: Vec<Theta> = aggregated.map(|s| theta(&s.theta)).collect();
    assert_eq!(got.len(), want.len());
    for (i, (got, want_now)) in got.iter().zip(want).enumerate() {
        let what = format!("global aggregation {i}, {:?}", task.experiment.train);
        assert_near(got, want_now, &want[0], &what);
    }
}

/// P iterations of one pair: every Q it exchanges ζ2 for (θ0, ζ1), then both take Q steps on what the other sent.
fn pair(world: &World<'_>, m: usize, first: u64, from: &Theta, rows: &[usize]) -> Theta {
    let e = world.task.experiment;
    let [mut theta0, mut theta1, mut theta2] = from.clone();
    let (mut zeta1, mut zeta2, mut frozen0) = (vec![], vec![], vec![]);
    for t in first..first + e.train.global_interval {
        if t.is_multiple_of(e.train.local_interval) {
            let embed = |tower: usize, params: &[f64], row: usize| {
                let (x1, x2, _) = world.row(m, row);
                let x = if tower == 1 { x1 } else { x2 };
                (row, world.zeta(tower, params, &x))
            };
            zeta1 = rows.iter().map(|r| embed(1, &theta1, *r)).collect();
            zeta2 = rows.iter().map(|r| embed(2, &theta2, *r)).collect();
            frozen0 = theta0.clone();
        }
        let [g0, g1] = world.hospital_gradient(m, [&theta0, &theta1], &zeta2);
        let g2 = world.device_gradient(m, &theta2, &frozen0, &zeta1);
        let rate = learning_rate(e, t);
        descend(&mut theta0, &g0, rate, 0.0);
        descend(&mut theta1, &g1, rate, world.decay);
        descend(&mut theta2, &g2, rate, world.decay);
    }
    [theta0, theta1, theta2]
}

#[test]
fn jfl_is_pairs_that_train_for_themselves_between_global_aggregations() {
    let mut longer = 0;
    for_seeds(0..40, |seed| {
        let (e, data) = random_case(seed, Algorithm::Jfl);
        longer += u32::from(e.train.global_interval > e.train.local_interval);
        let task = task(&e, &data);
        let world = World::new(&task);
        let want = federated(&task, |m, t, from| {
            let pairs = drawn(&task, m, t);
            let models: Vec<Theta> = pairs.iter().map(|r| pair(&world, m, t, from, r)).collect();
            mean(&models)
        });
        assert_trains_to(&task, &want);
    });
    assert!(
        common::replayed().is_some() || longer > 10,
        "P > Q: {longer}"
    );
}

/// A loss that knows nothing of the other side: a step of its gradient on θ0 and one tower, over some rows.
fn blind_step(
    world: &World<'_>,
    (m, tower): (usize, usize),
    at: &mut Theta,
    rows: &[usize],
    t: u64,
) {
    let unknown = {
        let w = world.task.architecture.widths();
        vec![0.0; if tower == 1 { w.d2 } else { w.d1 }]
    };
    let loss = |theta0: &[f64], params: &[f64]| {
        let one = |row: &usize| {
            let (x1, x2, y) = world.row(m, *row);
            let own = world.zeta(tower, params, if tower == 1 { &x1 } else { &x2 });
            let (zeta1, zeta2) = if tower == 1 {
                (&own, &unknown)
            } else {
                (&unknown, &own)
            };
            world.class_weights[y] * world.loss(theta0, zeta1, zeta2, y)
        };
        rows.iter().map(one).sum::<f64>() / rows.len() as f64
    };
    let g0 = gradient(&at[0], |p| loss(p, &at[tower]));
    let g = gradient(&at[tower], |p| loss(&at[0], p));
    let rate = learning_rate(world.task.experiment, t);
    descend(&mut at[0], &g0, rate, 0.0);
    descend(&mut at[tower], &g, rate, world.decay);
}

#[test]
fn hospital_only_is_federated_averaging_of_theta0_and_theta1_with_a_zeta2_of_zeros() {
    for_seeds(0..30, |seed| {
        let (e, data) = random_case(seed, Algorithm::HospitalOnly);
        let task = task(&e, &data);
        let world = World::new(&task);
        let (p, q) = (e.train.global_interval, e.train.local_interval);
        let want = federated(&task, |m, first, from| {
            let mut at = from.clone();
            for t in first..first + p {
                let rows = drawn(&task, m, t / q * q).concat();
                blind_step(&world, (m, 1), &mut at, &rows, t);
            }
            at
        });
        assert_trains_to(&task, &want);
    });
}

#[test]
fn device_only_is_federated_averaging_of_theta0_and_theta2_with_a_zeta1_of_zeros() {
    for_seeds(0..30, |seed| {
        let (e, data) = random_case(seed, Algorithm::DeviceOnly);
        let task = task(&e, &data);
        let world = World::new(&task);
        let (p, q) = (e.train.global_interval, e.train.local_interval);
        let want = federated(&task, |m, first, from| {
            let mut edge = from.clone();
            for t in (first..first + p).step_by(q as usize) {
                let devices = drawn(&task, m, t);
                let models = devices.iter().map(|rows| {
                    let mut own = edge.clone();
                    (t..t + q).for_each(|t| blind_step(&world, (m, 2), &mut own, rows, t));
                    own
                });
                edge = mean(&models.collect::<Vec<_>>());
            }
            edge
        });
        assert_trains_to(&task, &want);
    });
}

/// With P = Q = 1, equal groups and one sample per device.
#[test]
fn a_device_only_step_is_one_of_the_mean_gradient_over_all_drawn_devices() {
    for_seeds(0..10, |seed| {
        let mut e = experiment(seed, [12, 1, 1], TANH);
        e.train.weight_decay = 0.03;
        let e = with_algorithm(&e, Algorithm::DeviceOnly);
        let data = dataset(seed, &Plan::of_groups(&[6, 6, 6]));
        // The same devices as one group, so that a mean over them is a mean over rows.
        let one = data.merged();
        let (apart, together) = (task(&e, &data), task(&e, &one));
        let world = World::new(&together);
        let mut at = theta(&apart.architecture.initial(e.seed));
        let mut want = vec![at.clone()];
        for t in 0..e.train.iterations {
            let rows = (0..3).flat_map(|m| {
                let rows = drawn(&apart, m, t).concat().into_iter();
                rows.map(move |row| 6 * m + row)
            });
            blind_step(&world, (0, 2), &mut at, &rows.collect::<Vec<_>>(), t);
            want.push(at.clone());
        }
        assert_trains_to(&apart, &want);
    });
}

/// The data with one side of every sample being no number.
fn without_side(data: &Dataset, side: usize) -> Dataset {
    let mut data = data.clone();
    let blot = |samples: &mut Samples| match side {
        1 => samples.x1.fill(f32::NAN),
        _ => samples.x2.fill(f32::NAN),
    };
    data.groups.iter_mut().for_each(|g| blot(&mut g.samples));
    blot(&mut data.test);
    blot(&mut data.validation);
    data
}

#[test]
fn hospital_only_and_device_only_never_look_at_the_other_side() {
    for_seeds(0..20, |seed| {
        for (algorithm, own, other) in [
            (Algorithm::HospitalOnly, 1, 2),
            (Algorithm::DeviceOnly, 2, 1),
        ] {
            let (e, data) = random_case(seed, algorithm);
            let seen = run(&task(&e, &data));
            let blotted = without_side(&data, other);
            let unseen = run(&task(&e, &blotted));
            assert_eq!(seen.ending, Ending::Finished);
            assert_same_run(&seen, &unseen, algorithm.name());
            assert!(
                seen.log
                    .evaluations
                    .iter()
                    .all(|e| e.loss_train.is_finite())
            );

            let initial = seen.log.states[0].theta.clone();
            for state in &seen.log.states {
                let models = [&state.theta, &state.good].into_iter();
                for model in models.chain(&state.groups).chain(&state.best) {
                    assert_eq!(model.parts()[other], initial.parts()[other]);
                }
            }
            for part in [0, own] {
                let moved = seen.last.theta.parts()[part] != initial.parts()[part];
                assert!(moved, "{}: θ{part} learns", algorithm.name());
            }
            // Its own side it does look at, and other algorithms look at both.
            let blind = without_side(&data, own);
            let diverged = |e: &Experiment, data: &Dataset| {
                matches!(run(&task(e, data)).ending, Ending::Diverged { t: 0, .. })
            };
            assert!(diverged(&e, &blind), "{}", algorithm.name());
            assert!(diverged(&with_algorithm(&e, Algorithm::Hsgd), &blotted));
        }
    });
}

/// Towers without weights have nothing to learn and to send, but they embed.
#[test]
fn every_algorithm_trains_with_towers_that_have_no_weights() {
    let combined = r#"[{"linear": {"out": 2}}]"#;
    let linear = r#"[{"linear": {"out": 2}}]"#;
    for [hospital, device] in [
        [r#"["tanh"]"#, linear],
        [linear, r#"["tanh"]"#],
        [r#"["tanh"]"#; 2],
    ] {
        let mut e = experiment(4, [12, 6, 3], [combined, hospital, device]);
        let codecs = &mut e.compression;
        codecs.codec = "dither:64".into();
        codecs.device_upload = "top-k".into();
        codecs.device_download = "dither".into();
        codecs.global_upload = "top-k".into();
        codecs.global_download = "dither".into();
        let data = dataset(4, &Plan::of_groups(&[5, 8]));
        for algorithm in Algorithm::ALL {
            let e = checked(&with_algorithm(&e, algorithm));
            let run = run(&task(&e, &data));
            assert_eq!(run.ending, Ending::Finished, "{}", algorithm.name());
            let first = &run.log.states[0].theta;
            assert_ne!(model_bits(&run.last.theta), model_bits(first));
        }
    }
}
