//! Probes of real networks: a gradient that is measured and not applied, against finite differences of the loss,
//! against the step that training takes, and against probes of single devices. Also with several samples per device,
//! class weights and weight decay.

mod common;

use common::draws::drawn;
use common::reference::{Theta, World, gradient, theta};
use common::{
    Chosen, Plan, TANH, checked, dataset, distance, experiment, for_seeds, model_bits, pick, run,
    stream, task, within,
};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{ClassWeights, Experiment};
use selvedge_core::gradient::Federation;
use selvedge_core::model::Model;
use selvedge_core::task::Task;
use selvedge_core::theory::estimate::{Probe, Problem, curvature, point};

/// One iteration on random data; every other seed with one sample per device and without weight decay.
fn case(seed: u64) -> (Experiment, Dataset) {
    let mut draw = stream(seed);
    let mut e = experiment(seed, [1, 1, 1], TANH);
    e.train.learning_rate = 4.0;
    e.train.participation = pick(&mut draw, &[0.2, 0.5, 1.0]);
    let mut plan = Plan::of_groups(&[6, 9, 4]);
    if seed % 2 == 1 {
        (e.train.weight_decay, e.train.combined_weight_decay) = (0.1, 0.2);
        e.train.class_weights = ClassWeights::Listed(vec![0.5, 1.7]);
        for samples in plan.devices.iter_mut().flatten() {
            *samples = within(&mut draw, 1..5) as usize;
        }
    }
    (checked(&e), dataset(seed, &plan))
}

/// The loss that descends when θ0 and θ1 do, a mean over samples, and that of θ2, a mean over devices of their own.
fn losses(world: &World<'_>, (m, t): (usize, u64), model: &Theta) -> [f64; 2] {
    let devices = drawn(world.task, m, t);
    let mean = |rows: &[usize]| {
        let losses = rows.iter().map(|row| world.loss_of(model, m, *row));
        losses.sum::<f64>() / rows.len() as f64
    };
    let of_devices: f64 = devices.iter().map(|rows| mean(rows)).sum();
    [mean(&devices.concat()), of_devices / devices.len() as f64]
}

/// What a probe should find, from the loss alone.
fn by_differences(world: &World<'_>, drawn_at: (usize, u64), model: &Theta) -> Theta {
    [0, 1, 2].map(|part| {
        gradient(&model[part], |params| {
            let mut model = model.clone();
            model[part] = params.to_vec();
            let decays = [
                world.task.experiment.train.combined_weight_decay,
                world.decay,
            ];
            let squares: f64 = params.iter().map(|x| x * x).sum();
            losses(world, drawn_at, &model)[part / 2] + decays[part.min(1)] / 2.0 * squares
        })
    })
}

/// Each part of `got` is `want`, to f32 accuracy.
#[track_caller]
fn assert_close(got: &Theta, want: &Theta, tolerance: f64, what: &str) {
    for (part, (got, want)) in got.iter().zip(want).enumerate() {
        let size = want.iter().map(|x| x * x).sum::<f64>().sqrt();
        let error = distance(got, want);
        assert!(
            error <= tolerance * (size + 1e-2),
            "{what}: θ{part} is {error:.2e} of {size:.2e} away"
        );
    }
}

/// The probe of a group that draws just these devices.
fn probe_of(task: &mut Task<'_>, m: usize, devices: &[u32], model: &Model) -> Probe {
    let devices = devices.to_vec();
    task.selection = Box::new(Chosen(move |_| devices.clone()));
    Federation(task).probe(m, 0, model)
}

#[test]
fn a_probe_is_the_slope_of_the_loss() {
    for_seeds(0..16, |seed| {
        let (e, data) = case(seed);
        let task = task(&e, &data);
        let world = World::new(&task);
        let model = task.architecture.initial(seed);
        for (m, t) in [(0, 0), (1, 5), (2, 11)] {
            let probe = Federation(&task).probe(m, t, &model);
            let what = format!("seed {seed}, group {m}, t = {t}");
            let want = by_differences(&world, (m, t), &theta(&model));
            assert_close(&theta(&probe.gradient), &want, 3e-6, &what);
            let loss = losses(&world, (m, t), &theta(&model))[0];
            assert!((probe.loss - loss).abs() < 1e-6, "{what}: {}", probe.loss);
            assert_eq!(probe.selected, drawn(&task, m, t).len(), "{what}");
            assert_eq!(probe.devices, data.groups[m].devices(), "{what}");
        }
    });
}

/// At P = Q = 1 nothing is stale, so the step that training takes is the mean of what groups would have found.
#[test]
fn a_probe_is_the_step_that_training_takes() {
    for_seeds(0..16, |seed| {
        let (e, data) = case(seed);
        let task = task(&e, &data);
        let federation = Federation(&task);
        let start = task.architecture.initial(e.seed);
        let after = theta(&run(&task).last.theta);
        let mut want = theta(&start).map(|part| vec![0.0; part.len()]);
        for m in 0..federation.groups() {
            let own = theta(&federation.probe(m, 0, &start).gradient);
            for (sum, own) in want.iter_mut().zip(own) {
                for (sum, x) in sum.iter_mut().zip(own) {
                    *sum += federation.weight(m) * x;
                }
            }
        }
        let start = theta(&start);
        let step = [0, 1, 2].map(|part| {
            let moved = start[part].iter().zip(&after[part]);
            moved.map(|(a, b)| (a - b) / 4.0).collect()
        });
        assert_close(&step, &want, 2e-6, &format!("seed {seed}"));
    });
}

#[test]
fn its_spread_is_that_of_its_devices() {
    for_seeds(0..16, |seed| {
        let (e, data) = case(seed);
        let mut task = task(&e, &data);
        let model = task.architecture.initial(seed);
        let decays = [e.train.combined_weight_decay, e.train.weight_decay];
        let subset = [0, 2, 3, 5];
        let all = probe_of(&mut task, 1, &subset, &model);
        let rows = |n: u32| data.groups[1].rows(n).len() as f64;
        let samples: f64 = subset.iter().map(|n| rows(*n)).sum();
        for part in 0..3 {
            let decay = decays[part.min(1)];
            let alone: Vec<Vec<f64>> = subset
                .iter()
                .map(|n| {
                    let probe = probe_of(&mut task, 1, &[*n], &model);
                    assert_eq!(probe.spread, [0.0; 3], "one alone has none");
                    // The hospital sums samples: a device counts as often as it has some.
                    let share = [rows(*n) * subset.len() as f64 / samples, 1.0][part / 2];
                    let numbers = theta(&probe.gradient)[part].clone().into_iter();
                    let decayed = numbers.zip(theta(&model)[part].clone());
                    decayed.map(|(g, x)| share * (g - decay * x)).collect()
                })
                .collect();
            let mean = |i: usize| alone.iter().map(|g| g[i]).sum::<f64>() / alone.len() as f64;
            let mean: Vec<f64> = (0..alone[0].len()).map(mean).collect();
            let squares = alone.iter().map(|g| distance(g, &mean).powi(2));
            let want = squares.sum::<f64>() / (alone.len() - 1) as f64;
            let error = (all.spread[part] / want - 1.0).abs();
            assert!(error < 1e-5, "seed {seed}, θ{part}: off by {error:.1e}");
        }
    });
}

/// All subsets of three of six devices: the variance of their means is what a probe of one of them tells on average.
#[test]
fn the_variance_of_a_mean_is_known_from_one_probe() {
    let e = experiment(3, [1, 1, 1], TANH);
    let data = dataset(3, &Plan::of_groups(&[6]));
    let mut task = task(&e, &data);
    let model = task.architecture.initial(3);
    let all = theta(&probe_of(&mut task, 0, &[0, 1, 2, 3, 4, 5], &model).gradient);
    let (mut told, mut varies, mut count) = ([0.0; 3], [0.0; 3], 0.0);
    for bits in (0u32..64).filter(|bits| bits.count_ones() == 3) {
        let subset: Vec<u32> = (0..6).filter(|n| bits >> n & 1 == 1).collect();
        let probe = probe_of(&mut task, 0, &subset, &model);
        let found = theta(&probe.gradient);
        for part in 0..3 {
            told[part] += probe.of_mean()[part];
            varies[part] += distance(&found[part], &all[part]).powi(2);
        }
        count += 1.0;
    }
    assert_eq!(count, 20.0);
    for part in 0..3 {
        let error = told[part] / varies[part] - 1.0;
        assert!(error.abs() < 1e-4, "θ{part}: off by {error:.1e}");
    }
}

/// ‖H‖ of a group's loss, by differences of differences and many steps of power iteration, all in f64.
fn largest_curvature(world: &World<'_>, at: &Theta) -> f64 {
    const STEP: f64 = 1e-3;
    let gradient_at = |at: &Theta| by_differences(world, (0, 0), at).concat();
    let mut hessian = Vec::new();
    for part in 0..3 {
        for i in 0..at[part].len() {
            let [ahead, behind] = [STEP, -STEP].map(|step| {
                let mut moved = at.clone();
                moved[part][i] += step;
                gradient_at(&moved)
            });
            let slopes = ahead
                .iter()
                .zip(&behind)
                .map(|(a, b)| (a - b) / (2.0 * STEP));
            hessian.push(slopes.collect::<Vec<f64>>());
        }
    }
    let mut v: Vec<f64> = (0..hessian.len()).map(|i| 1.0 + (i % 3) as f64).collect();
    let mut length = 0.0;
    for _ in 0..500 {
        let dot = |row: &Vec<f64>| row.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>();
        let next: Vec<f64> = hessian.iter().map(dot).collect();
        length = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        v = next.iter().map(|x| x / length).collect();
    }
    length
}

#[test]
fn the_curvature_of_a_network_is_found() {
    let mut ratios = Vec::new();
    for_seeds(0..8, |seed| {
        let e = experiment(seed, [1, 1, 1], TANH);
        let data = dataset(seed, &Plan::of_groups(&[10]));
        let task = task(&e, &data);
        let model = task.architecture.initial(seed);
        let want = largest_curvature(&World::new(&task), &theta(&model));
        let found = curvature(&Federation(&task), (0, 0), &model, None, 20);
        ratios.push(found.rho / want);
        let error = found.rho / want - 1.0;
        assert!(error.abs() < 0.1, "seed {seed}: {} not {want}", found.rho);
    });
    println!("ρ of networks, estimate / truth: {ratios:.3?}");
}

#[test]
fn the_same_bits_whatever_the_threads() {
    let (e, data) = case(7);
    let task = task(&e, &data);
    let model = task.architecture.initial(7);
    let found = [1, 2].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads").install(|| {
            let federation = Federation(&task);
            let p = point(&federation, 4, &model);
            let c = curvature(&federation, (1, 4), &model, None, 10);
            let numbers = [[p.loss, p.gradient, c.rho], p.variance, p.between];
            let bits = numbers.concat().into_iter().map(f64::to_bits);
            (bits.collect::<Vec<_>>(), model_bits(&c.direction))
        })
    });
    assert_eq!(found[0], found[1]);
}
