//! The loop against Algorithm 1 written down once more, without a backward pass (`common::reference`).

mod common;

use common::optimisers;
use common::reference::{Theta, World, descend, hsgd, theta, wide};
use common::{
    Log, Plan, TANH, absences, assert_near, checked, dataset, distance, experiment, for_seeds,
    pick, replayed, run, stream, task, watch, within,
};
use selvedge_core::dataset::{Dataset, Group};
use selvedge_core::experiment::{ClassWeights, Experiment};
use selvedge_core::run::Ending;
use selvedge_core::schedule::Segment;
use selvedge_core::state::State;
use selvedge_core::task::Task;
use selvedge_nn::{Shape, random::Stream};

/// Layers of θ0, θ1, θ2 with the shapes of x1 and x2. The last layer of θ0 is added.
const MODELS: [(Shape, Shape, [&str; 3]); 5] = [
    (
        Shape::Flat(3),
        Shape::Flat(2),
        [
            "",
            r#"[{"linear": {"out": 3}}, "tanh"]"#,
            r#"[{"linear": {"out": 2}}, "tanh"]"#,
        ],
    ),
    (
        Shape::Flat(2),
        Shape::Flat(3),
        [
            r#"{"linear": {"out": 3}}, "tanh","#,
            r#"[{"linear": {"out": 2}}]"#,
            r#"[{"linear": {"out": 3}}, "tanh", {"linear": {"out": 1}}]"#,
        ],
    ),
    (
        Shape::Steps(3, 2),
        Shape::Flat(2),
        [
            "",
            r#"[{"lstm": {"hidden": 2}}]"#,
            r#"[{"linear": {"out": 2}}, "tanh"]"#,
        ],
    ),
    (
        Shape::Flat(2),
        Shape::Steps(4, 1),
        [
            "",
            r#"[{"linear": {"out": 2}}, "tanh"]"#,
            r#"[{"lstm": {"hidden": 2}}]"#,
        ],
    ),
    // A device without parameters.
    (
        Shape::Flat(2),
        Shape::Flat(2),
        ["", r#"[{"linear": {"out": 2}}]"#, r#"["tanh"]"#],
    ),
];

/// A random experiment with its data.
fn random_case(seed: u64, draw: &mut Stream) -> (Experiment, Dataset) {
    let (x1, x2, [combined, hospital, device]) = MODELS[seed as usize % MODELS.len()];
    let classes = pick(draw, &[2, 2, 3]);
    let combined = format!(r#"[{combined} {{"linear": {{"out": {classes}}}}}]"#);
    let q = within(draw, 1..5);
    let p = q * within(draw, 1..4);
    let t = p * (8u64.div_ceil(p) + within(draw, 0..2));
    let mut e = experiment(seed, [t, p, q], [&combined, hospital, device]);
    e.train.participation = pick(draw, &[0.3, 0.5, 0.7, 1.0]);
    e.train.learning_rate = pick(draw, &[0.2, 0.4, 0.7]);
    e.train.weight_decay = pick(draw, &[0.0, 0.04, 0.1]);
    e.train.halve_every = pick(draw, &[0, 3, 5]);
    e.train.class_weights = match draw.below(3) {
        0 => ClassWeights::None,
        1 => ClassWeights::Balanced,
        _ => ClassWeights::Listed([0.5, 2.0, 1.3][..classes].to_vec()),
    };
    if seed % 2 == 1 {
        optimisers::any(draw, &mut e);
    }
    let groups = within(draw, 1..5);
    let most = pick(draw, &[1, 3]);
    let devices = (0..groups).map(|_| {
        (0..within(draw, 1..8))
            .map(|_| within(draw, 1..most + 1) as usize)
            .collect()
    });
    let plan = Plan {
        x1,
        x2,
        classes,
        devices: devices.collect(),
        test: 5,
        validation: 0,
    };
    (checked(&e), dataset(seed, &plan))
}

#[test]
fn the_references_networks_are_the_real_ones() {
    for (i, seed) in (0..MODELS.len()).zip(0..) {
        let (e, data) = random_case(seed, &mut stream(seed));
        let task = task(&e, &data);
        let (world, model) = (World::new(&task), task.architecture.initial(7));
        for (part, network) in task.architecture.parts().into_iter().enumerate() {
            let mut draw = stream(seed);
            let x: Vec<f32> = (0..network.input().len()).map(|_| draw.normal()).collect();
            let mut tape = vec![0.0; network.tape()];
            let got = wide(network.forward(model.parts()[part], &x, &mut tape));
            let want = world.nets[part].forward(&wide(model.parts()[part]), &wide(&x));
            assert!(
                distance(&got, &want) < 1e-6,
                "model {i}, part {part}: {got:?} is not {want:?}"
            );
        }
    }
}

#[test]
fn the_loop_is_algorithm_1_step_by_step() {
    let mut met = [0; 5];
    for_seeds(0..120, |seed| {
        let mut draw = stream(seed);
        let (e, data) = random_case(seed, &mut draw);
        let chances = [0, 1, 2].map(|_| pick(&mut draw, &[0.0, 0.0, 0.25, 0.6]));
        let mut task = task(&e, &data);
        task.absences = absences(seed, chances);
        let run = run(&task);
        assert_eq!(run.ending, Ending::Finished);

        let initial = task.architecture.initial(e.seed);
        let want = hsgd(&task, &initial, &[task.segment()]);
        let states = &run.log.states[1..];
        assert_eq!(states.len(), want.len());
        for (state, want) in states.iter().zip(&want) {
            let what = format!("t = {}, absent {chances:?}, {:?}", want.t, e.train);
            assert_eq!(state.progress.t, want.t);
            let start = theta(&initial);
            assert_near(&theta(&state.theta), &want.theta, &start, &what);
            for (m, group) in state.groups.iter().enumerate() {
                assert_near(
                    &theta(group),
                    &want.groups[m],
                    &start,
                    &format!("group {m}, {what}"),
                );
            }
        }
        for part in run.log.parts.iter().flatten() {
            let (sent, arrived) = (&part.exchanged, &part.uploaded);
            met[0] += usize::from(sent.iter().any(|x| *x) && sent.iter().any(|x| !x));
            met[1] += usize::from(sent.iter().all(|x| !x));
            met[2] += usize::from(sent != arrived && arrived.iter().any(|x| *x));
            met[3] += usize::from(sent != arrived && arrived.iter().all(|x| !x));
        }
        let aggregations = (1..=e.train.iterations).filter(|t| t % e.train.global_interval == 0);
        met[4] += aggregations
            .filter(|t| (0..data.groups.len()).any(|m| task.absences.group(*t, m)))
            .count();
    });
    assert!(
        replayed().is_some() || met.iter().all(|n| *n >= 5),
        "some absences hardly happen: {met:?}"
    );
}

#[test]
fn a_segment_counts_p_q_and_halving_from_its_start() {
    for_seeds(0..6, |seed| {
        let e = experiment(seed, [21, 3, 1], TANH);
        let data = dataset(seed, &Plan::of_groups(&[5, 3]));
        let task = task(&e, &data);
        let second = Segment {
            start: 9,
            global_interval: 6,
            local_interval: 2,
            learning_rate: 0.9,
            halve_every: Some(5),
        };
        let (mut state, mut log) = (State::initial(&task), Log::default());
        assert_eq!(
            watch(&task, &mut state, &mut log, Some(9)),
            Ending::Interrupted
        );
        state.progress.segment = second;
        assert_eq!(watch(&task, &mut state, &mut log, None), Ending::Finished);

        let initial = task.architecture.initial(e.seed);
        let want = hsgd(&task, &initial, &[task.segment(), second]);
        assert_eq!(log.states.len(), want.len() + 1);
        for (state, want) in log.states[1..].iter().zip(&want) {
            assert_eq!(state.progress.t, want.t);
            assert_near(
                &theta(&state.theta),
                &want.theta,
                &theta(&initial),
                &format!("t = {}", want.t),
            );
        }
        let evaluated: Vec<u64> = log.evaluations.iter().map(|e| e.t).collect();
        assert_eq!(evaluated, [0, 3, 6, 9, 15, 21]);
    });
}

/// Such a device is refused, or has nothing to learn from: its model stays as it was handed out, or is left out.
#[test]
fn a_device_without_samples_brings_nothing_into_the_mean() {
    let mut e = experiment(1, [3, 1, 1], TANH);
    e.train.participation = 1.0;
    let plan = Plan {
        devices: vec![vec![1, 0]],
        ..Plan::of_groups(&[])
    };
    let data = dataset(1, &plan);
    let Ok(task) = Task::new(&e, &data) else {
        return;
    };
    let alone = Dataset {
        groups: vec![Group::one_sample_per_device(
            "alone".into(),
            data.groups[0].samples.clone(),
        )],
        ..data.clone()
    };
    let alone = common::task(&e, &alone);
    let (mut got, mut want) = (State::initial(&task), State::initial(&alone));
    let start = theta(&got.theta);
    watch(&task, &mut got, &mut Log::default(), Some(1));
    watch(&alone, &mut want, &mut Log::default(), Some(1));
    let (got, left_out) = (theta(&got.theta)[2].clone(), theta(&want.theta)[2].clone());
    let stays: Vec<f64> = left_out
        .iter()
        .zip(&start[2])
        .map(|(a, b)| (a + b) / 2.0)
        .collect();
    let error = distance(&got, &left_out).min(distance(&got, &stays));
    assert!(error < 1e-6, "θ2 is {got:?}, not {left_out:?} or {stays:?}");
}

/// One interval of one group, with Q > 1: each update is rebuilt from finite differences of the loss at the arguments
/// that the exchange froze.
#[test]
fn stale_updates_are_finite_differences_at_the_frozen_arguments() {
    for_seeds(0..10, |seed| {
        let (x1, x2, [combined, hospital, device]) = MODELS[seed as usize % 4];
        let combined = format!(r#"[{combined} {{"linear": {{"out": 2}}}}]"#);
        let mut e = experiment(seed, [4, 4, 4], [&combined, hospital, device]);
        e.train.participation = if seed < 5 { 0.1 } else { 0.5 };
        e.train.learning_rate = 0.6;
        let data = dataset(
            seed,
            &Plan {
                x1,
                x2,
                ..Plan::of_groups(&[6])
            },
        );
        let task = task(&e, &data);
        let run = run(&task);
        let subset = &run.log.parts[0][0].subset;
        assert_eq!(subset.len(), if seed < 5 { 1 } else { 3 });

        let world = World::new(&task);
        let start = theta(&task.architecture.initial(e.seed));
        let side = |tower: usize, row: usize| {
            let (x1, x2, _) = world.row(0, row);
            (
                row,
                world.zeta(tower, &start[tower], if tower == 1 { &x1 } else { &x2 }),
            )
        };
        let frozen_zeta2: Vec<_> = subset.iter().map(|n| side(2, *n as usize)).collect();
        let [mut theta0, mut theta1, _] = start.clone();
        let mut models = vec![start[2].clone(); subset.len()];
        for _ in 0..4 {
            let [g0, g1] = world.hospital_gradient(0, [&theta0, &theta1], &frozen_zeta2);
            descend(&mut theta0, &g0, 0.6, 0.0);
            descend(&mut theta1, &g1, 0.6, 0.0);
            for (n, theta2) in subset.iter().zip(&mut models) {
                let own = [side(1, *n as usize)];
                let g2 = world.device_gradient(0, theta2, &start[0], &own);
                descend(theta2, &g2, 0.6, 0.0);
            }
        }
        let mean = |i: usize| models.iter().map(|m| m[i]).sum::<f64>() / models.len() as f64;
        let theta2 = (0..start[2].len()).map(mean).collect();
        let want = [theta0, theta1, theta2];
        assert_near(&theta(&run.last.theta), &want, &start, "frozen");

        // The same steps with everything live end elsewhere, so that the comparison above means something.
        let mut live = start.clone();
        for _ in 0..4 {
            let rows = |tower: usize, params: &[f64]| {
                let zeta = |n: &u32| {
                    let (x1, x2, _) = world.row(0, *n as usize);
                    (
                        *n as usize,
                        world.zeta(tower, params, if tower == 1 { &x1 } else { &x2 }),
                    )
                };
                subset.iter().map(zeta).collect::<Vec<_>>()
            };
            let [g0, g1] = world.hospital_gradient(0, [&live[0], &live[1]], &rows(2, &live[2]));
            let g2 = world.device_gradient(0, &live[2], &live[0], &rows(1, &live[1]));
            for (params, gradient) in live.iter_mut().zip([g0, g1, g2]) {
                descend(params, &gradient, 0.6, 0.0);
            }
        }
        let sum = |a: &Theta, b: &Theta| (0..3).map(|i| distance(&a[i], &b[i])).sum::<f64>();
        let (gap, way) = (sum(&live, &want), sum(&want, &start));
        assert!(
            gap > 1e-3 * way,
            "live and frozen differ by {gap:.1e} only, of {way:.1e}"
        );
    });
}
