//! What theory says of HSGD, where it meets algorithms that are simpler to write down.

mod common;

use common::optimisers::Memory;
use common::reference::{Theta, World, descend, gradient, theta};
use common::{
    Plan, TANH, absences, assert_near, checked, dataset, experiment, for_seeds, model_bits, pick,
    run, stream, task, within,
};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Averager, ClassWeights, Experiment};
use selvedge_core::model::{Architecture, Model};
use selvedge_core::selection::{Draw, Selection, Uniform};
use selvedge_nn::{Update, loss::cross_entropy};

/// (group, row) of samples.
type Rows = Vec<(usize, usize)>;

/// Rounds a model to what networks compute with.
fn narrow(theta: &Theta) -> Model {
    let [theta0, theta1, theta2] = [0, 1, 2].map(|i| theta[i].iter().map(|x| *x as f32).collect());
    Model {
        theta0,
        theta1,
        theta2,
    }
}

/// The gradient of the mean loss over rows with every part live: one backward pass from the logits through the combined
/// model into both towers.
fn whole_gradient(
    a: &Architecture,
    data: &Dataset,
    weights: &[f32],
    at: &Theta,
    rows: &Rows,
) -> Theta {
    let model = narrow(at);
    let (networks, parts) = (a.parts(), model.parts());
    let prepared = [0, 1, 2].map(|i| {
        let mut prepared = vec![0.0; networks[i].prepared()];
        networks[i].prepare(parts[i], &mut prepared);
        prepared
    });
    let [len1, len2] = [data.hospital.len(), data.device.len()];
    let mut sum = [0, 1, 2].map(|i| vec![0.0f64; networks[i].params()]);
    for &(m, row) in rows {
        let samples = &data.groups[m].samples;
        let (x1, x2) = (
            &samples.x1[row * len1..][..len1],
            &samples.x2[row * len2..][..len2],
        );
        let label = samples.y.classes()[row];
        let mut tapes = networks.map(|n| vec![0.0; n.tape()]);
        let zeta1 = a.hospital.forward(parts[1], x1, &mut tapes[1]).to_vec();
        let zeta2 = a.device.forward(parts[2], x2, &mut tapes[2]).to_vec();
        let embeddings = [&zeta1[..], &zeta2[..]].concat();
        let logits = a
            .combined
            .forward(parts[0], &embeddings, &mut tapes[0])
            .to_vec();
        let mut d_logits = vec![0.0; logits.len()];
        cross_entropy(
            a.level(),
            &logits,
            label,
            weights[label as usize],
            &mut d_logits,
        );
        let mut d_embeddings = vec![0.0; embeddings.len()];
        let (d_zeta1, d_zeta2);
        let mut back = |i: usize, input: &[f32], d_output: &[f32], d_input: Option<&mut [f32]>| {
            let mut g = vec![0.0; networks[i].params()];
            let mut scratch = vec![0.0; networks[i].scratch()];
            networks[i].backward(
                &prepared[i],
                input,
                &tapes[i],
                d_output,
                Update::Accumulate(&mut g),
                &mut scratch,
                d_input,
            );
            sum[i]
                .iter_mut()
                .zip(g)
                .for_each(|(sum, g)| *sum += f64::from(g));
        };
        back(0, &embeddings, &d_logits, Some(&mut d_embeddings));
        (d_zeta1, d_zeta2) = d_embeddings.split_at(zeta1.len());
        back(1, x1, d_zeta1, None);
        back(2, x2, d_zeta2, None);
    }
    sum.map(|part| part.iter().map(|g| g / rows.len() as f64).collect())
}

/// One step of ordinary mini-batch SGD on the whole model.
fn centralised_step(e: &Experiment, a: &Architecture, data: &Dataset, at: &mut Theta, rows: &Rows) {
    let weights = match &e.train.class_weights {
        ClassWeights::Listed(list) => list.clone(),
        _ => vec![1.0; data.classes.len()],
    };
    let gradient = whole_gradient(a, data, &weights, at, rows);
    let (decay0, decay) = (e.train.combined_weight_decay, e.train.weight_decay);
    for ((params, gradient), decay) in at.iter_mut().zip(&gradient).zip([decay0, decay, decay]) {
        descend(params, gradient, e.train.learning_rate, decay);
    }
}

/// The subset that anyone can recompute, as rows: one sample per device.
fn subset_rows(e: &Experiment, data: &Dataset, m: usize, t: u64) -> Rows {
    let devices = data.groups[m].devices();
    let count = (e.train.participation * devices as f64).round() as usize;
    let mut subset = Vec::new();
    Uniform.select(Draw::new(e.seed, m, t, devices, count.max(1)), &mut subset);
    subset.iter().map(|n| (m, *n as usize)).collect()
}

fn weighted(mut e: Experiment) -> Experiment {
    (e.train.weight_decay, e.train.combined_weight_decay) = (0.03, 0.05);
    e.train.class_weights = ClassWeights::Listed(vec![0.7, 1.6]);
    checked(&e)
}

#[test]
fn p_and_q_of_1_are_centralised_sgd_on_the_union_of_the_subsets() {
    centralised(Averager::Sgd);
}

/// The pseudo-gradient is η times the gradient on the union.
#[test]
fn with_an_optimiser_at_the_cloud_p_and_q_of_1_are_centralised_too() {
    centralised(Averager::Momentum);
    centralised(Averager::Adam);
}

fn centralised(method: Averager) {
    for_seeds(0..10, |seed| {
        let mut draw = stream(seed);
        // Every group selects the same share of its devices, exactly.
        let part = pick(&mut draw, &[1, 2, 3]);
        let groups = within(&mut draw, 1..5);
        let devices: Vec<usize> = (0..groups)
            .map(|_| (part * within(&mut draw, 1..6)) as usize)
            .collect();
        let mut e = weighted(experiment(seed, [30, 1, 1], TANH));
        e.train.participation = 1.0 / part as f64;
        (e.optimiser.cloud, e.optimiser.momentum) = (method, 0.5);
        // A difference of models is rounded as they are, and Adam makes small ones large.
        e.optimiser.epsilon = 0.1;
        let mut memories: [Memory; 3] = Default::default();
        let data = dataset(seed, &Plan::of_groups(&devices));
        let task = task(&e, &data);
        let run = run(&task);
        let start = theta(&run.log.states[0].theta);
        let mut want = start.clone();
        for t in 0..e.train.iterations {
            let union: Rows = (0..devices.len())
                .flat_map(|m| subset_rows(&e, &data, m, t))
                .collect();
            assert_eq!(union.len(), devices.iter().sum::<usize>() / part as usize);
            let mut mean = want.clone();
            centralised_step(&e, &task.architecture, &data, &mut mean, &union);
            for (part, memory) in memories.iter_mut().enumerate() {
                let rate = e.optimiser.cloud_rate();
                let way = (&mut want[part], &mean[part][..]);
                memory.move_on((&e, method.into()), rate, 1.0, way);
            }
            let got = theta(&run.log.states[t as usize + 1].theta);
            assert_near(
                &got,
                &want,
                &start,
                &format!("devices {devices:?}, 1/α = {part}, t = {t}"),
            );
        }
    });
}

/// Sums over more positions than one block (32) holds, and more blocks (64) than are held at a time.
#[test]
fn large_subsets_are_centralised_sgd_too() {
    let mut e = weighted(experiment(3, [3, 1, 1], TANH));
    e.train.participation = 1.0;
    let data = dataset(3, &Plan::of_groups(&[64 * 32 + 40, 33, 300]));
    let task = task(&e, &data);
    let run = run(&task);
    let start = theta(&run.log.states[0].theta);
    let mut want = start.clone();
    for state in &run.log.states[1..] {
        let all: Rows = (0..3).flat_map(|m| subset_rows(&e, &data, m, 0)).collect();
        centralised_step(&e, &task.architecture, &data, &mut want, &all);
        assert_near(&theta(&state.theta), &want, &start, "everybody");
    }
}

#[test]
fn q_of_1_has_no_staleness_each_group_takes_a_live_step() {
    for_seeds(0..6, |seed| {
        let e = weighted(experiment(seed, [12, 4, 1], TANH));
        let data = dataset(seed, &Plan::of_groups(&[5, 9, 3]));
        let task = task(&e, &data);
        let run = run(&task);
        for (t, states) in run.log.states.windows(2).enumerate() {
            let t = t as u64;
            let before: Vec<Theta> = states[0].groups.iter().map(theta).collect();
            let mut want = before.clone();
            for (m, want) in want.iter_mut().enumerate() {
                centralised_step(
                    &e,
                    &task.architecture,
                    &data,
                    want,
                    &subset_rows(&e, &data, m, t),
                );
            }
            if (t + 1).is_multiple_of(4) {
                let share = |m: usize| data.groups[m].devices() as f64 / data.devices() as f64;
                let mean = [0, 1, 2].map(|part: usize| {
                    let number = |i| (0..3).map(|m| share(m) * want[m][part][i]).sum::<f64>();
                    (0..want[0][part].len()).map(number).collect::<Vec<_>>()
                });
                want.fill(mean);
            }
            for m in 0..3 {
                let got = theta(&states[1].groups[m]);
                assert_near(&got, &want[m], &before[m], &format!("group {m}, step {t}"));
            }
        }
    });
}

#[test]
fn one_group_does_not_depend_on_p() {
    for_seeds(0..4, |seed| {
        let data = dataset(seed, &Plan::of_groups(&[11]));
        let trained = |p: u64| {
            let mut e = weighted(experiment(seed, [24, p, 2], TANH));
            e.train.halve_every = 7;
            let mut task = task(&e, &data);
            task.absences = absences(seed, [0.2, 0.2, 0.0]);
            run(&task)
        };
        let reference = trained(2);
        assert_ne!(reference.last.theta, reference.log.states[0].theta);
        for p in [4, 6, 8, 12, 24] {
            let run = trained(p);
            for (a, b) in run.log.states.iter().zip(&reference.log.states) {
                let t = a.progress.t;
                assert_eq!(
                    model_bits(&a.groups[0]),
                    model_bits(&b.groups[0]),
                    "P = {p}, t = {t}"
                );
            }
            assert_eq!(
                model_bits(&run.last.theta),
                model_bits(&reference.last.theta),
                "P = {p}"
            );
            for e in &run.log.evaluations {
                let other = reference
                    .log
                    .evaluations
                    .iter()
                    .find(|o| o.t == e.t)
                    .unwrap();
                assert_eq!(
                    (e.loss_train, e.test),
                    (other.loss_train, other.test),
                    "P = {p}, t = {}",
                    e.t
                );
            }
        }
    });
}

#[test]
fn everybody_with_p_and_q_of_1_is_full_batch_descent() {
    for_seeds(0..4, |seed| {
        let mut e = experiment(seed, [10, 1, 1], TANH);
        e.train.participation = 1.0;
        let data = dataset(seed, &Plan::of_groups(&[4, 7, 2]));
        let task = task(&e, &data);
        let run = run(&task);
        let world = World::new(&task);
        let rows: Rows = (0..3)
            .flat_map(|m| (0..data.groups[m].samples.len()).map(move |row| (m, row)))
            .collect();
        let f = |model: &Theta| {
            rows.iter()
                .map(|(m, row)| world.loss_of(model, *m, *row))
                .sum::<f64>()
                / rows.len() as f64
        };
        let start = theta(&run.log.states[0].theta);
        let mut want = start.clone();
        for (t, evaluation) in run.log.evaluations.iter().enumerate() {
            let got = theta(&run.log.states[t].theta);
            assert_near(&got, &want, &start, &format!("t = {t}"));
            assert!(
                (evaluation.loss_train - f(&want)).abs() < 1e-5,
                "F at t = {t}"
            );
            let slopes = [0, 1, 2].map(|part: usize| {
                gradient(&want[part], |p| {
                    let mut at = want.clone();
                    at[part] = p.to_vec();
                    f(&at)
                })
            });
            for (params, slope) in want.iter_mut().zip(&slopes) {
                descend(params, slope, e.train.learning_rate, 0.0);
            }
        }
        let losses: Vec<f64> = run.log.evaluations.iter().map(|e| e.loss_train).collect();
        assert!(
            losses.is_sorted_by(|a, b| a > b),
            "full-batch descent goes down: {losses:?}"
        );
    });
}
