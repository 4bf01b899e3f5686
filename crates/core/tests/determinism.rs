//! The same bits whatever the threads, the instructions and the interruptions.

mod common;

use common::{
    Log, Plan, Run, TANH, absences, assert_same_run, assert_same_state, dataset, experiment,
    for_seeds, model_bits, run, saved, task, watch,
};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Averager, ClassWeights, Compute, Experiment, Fall, Method};
use selvedge_core::model::Architecture;
use selvedge_core::run::{self, Ending};
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_nn::{Shape, simd::Level};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Larger towers, so that parameters fill more than one stretch of a mean and more than one vector.
const WIDE: [&str; 3] = [
    r#"[{"linear": {"out": 9}}, "relu", {"linear": {"out": 2}}]"#,
    r#"[{"linear": {"out": 21}}, "tanh", {"linear": {"out": 19}}]"#,
    r#"[{"window": {"size": 3}}, {"lstm": {"hidden": 9}}]"#,
];

/// Experiments and data with little and much to share out.
fn cases() -> Vec<(&'static str, Experiment, Dataset)> {
    let many = |t: [u64; 3], devices: &[usize], model| {
        let mut e = experiment(5, t, model);
        e.train.participation = 1.0;
        (
            e,
            dataset(
                5,
                &Plan {
                    test: 200,
                    validation: 30,
                    ..Plan::of_groups(devices)
                },
            ),
        )
    };
    let (mut wide, mut small) = (
        experiment(5, [12, 6, 3], WIDE),
        experiment(5, [24, 6, 2], TANH),
    );
    small.train.class_weights = ClassWeights::Balanced;
    small.train.halve_every = 5;
    wide.train.weight_decay = 0.01;
    let mut adam = wide.clone();
    (adam.train.schedule, adam.train.warm_up) = (Fall::Cosine, 4);
    let o = &mut adam.optimiser;
    (o.hospital, o.edge, o.cloud) = (Method::AdamW, Averager::Adam, Averager::Adam);
    (o.hospital_clip, o.device_clip) = (0.5, 0.1);
    let plan = Plan {
        x1: Shape::Flat(8),
        x2: Shape::Flat(10),
        validation: 70,
        ..Plan::of_groups(&[70, 90, 8])
    };
    let (above_a_block, data_a) = many([6, 2, 2], &[33, 100, 4], TANH);
    let (above_a_wave, data_b) = many([4, 2, 2], &[64 * 32 + 70, 5], TANH);
    vec![
        (
            "small",
            small,
            dataset(
                5,
                &Plan {
                    validation: 20,
                    ..Plan::of_groups(&[7, 12, 5])
                },
            ),
        ),
        ("wide", wide, dataset(5, &plan)),
        ("Adam everywhere", adam, dataset(5, &plan)),
        ("more than 32 positions", above_a_block, data_a),
        ("more than 64 · 32 positions", above_a_wave, data_b),
    ]
}

fn with_absences<'a>(e: &'a Experiment, data: &'a Dataset) -> Task<'a> {
    let mut task = task(e, data);
    task.absences = absences(11, [0.1, 0.1, 0.25]);
    task
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for (name, e, data) in cases() {
        let task = with_absences(&e, &data);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| run(&task))
        };
        let one = on(1);
        assert_eq!(one.ending, Ending::Finished);
        for threads in [2, 5] {
            let other = on(threads);
            let what = format!("{name}, {threads} threads");
            assert_same_run(&one, &other, &what);
        }
    }
}

#[test]
fn the_instructions_change_no_bit() {
    for (name, e, data) in cases() {
        let on = |level: Level| {
            let mut task = with_absences(&e, &data);
            let built = Architecture::new(
                &e.model,
                data.hospital,
                data.device,
                (selvedge_core::outcome::Kind::Class, 2),
            )
            .unwrap();
            task.architecture = built.with_level(level);
            run(&task)
        };
        let plain = on(Level::PLAIN);
        for level in Level::available() {
            let other = on(level);
            let what = format!("{name}, {}", level.name());
            assert_same_run(&plain, &other, &what);
        }
    }
}

#[test]
fn running_twice_is_the_same_and_another_seed_is_not() {
    let (_, e, data) = cases().remove(0);
    let (a, b) = (run(&task(&e, &data)), run(&task(&e, &data)));
    assert_same_run(&a, &b, "twice");
    for seed in [0, 4, 6, u64::MAX] {
        let other = Experiment { seed, ..e.clone() };
        let c = run(&task(&other, &data));
        assert_ne!(a.last.theta, c.last.theta, "seed {seed}");
        assert_ne!(
            a.log.states[0].theta, c.log.states[0].theta,
            "seed {seed}: the initial model"
        );
        assert_ne!(a.log.parts, c.log.parts, "seed {seed}: the subsets");
        assert_eq!(
            a.last.progress.ledger, c.last.progress.ledger,
            "seed {seed}: the bill is the same"
        );
    }
}

/// Forward passes of the exchange serve the first step unless they would take too much memory, which is judged by
/// `data.samples_per_device`.
#[test]
fn keeping_the_forward_passes_changes_no_bit() {
    for (name, e, data) in cases() {
        let kept = run(&with_absences(&e, &data));
        let mut forgetful = e.clone();
        forgetful.data.samples_per_device = 1 << 30;
        let run = run(&with_absences(&forgetful, &data));
        assert_same_run(&kept, &run, name);
    }
}

#[test]
fn measured_time_steers_nothing_but_the_clock() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let (_, e, data) = cases().remove(0);
    let set = run(&task(&e, &data));
    let mut measured = e.clone();
    measured.time.compute = Compute::Measured;
    let mut task = task(&measured, &data);
    task.stopwatch = Some(|| CALLS.fetch_add(1, Ordering::Relaxed).pow(2) as f64);
    let run = run(&task);
    assert_eq!(model_bits(&run.last.theta), model_bits(&set.last.theta));
    assert_eq!(run.last.progress.ledger, set.last.progress.ledger);
    assert!(run.last.progress.clock.seconds() > set.last.progress.clock.seconds());
}

#[test]
fn a_run_that_stops_anywhere_goes_on_to_the_same_bits() {
    for_seeds(0..3, |seed| {
        let mut e = experiment(seed, [36, 6, 2], TANH);
        e.train.evaluate_every = Some([6, 12, 7][seed as usize % 3]);
        e.train.halve_every = 7;
        e.train.loss_samples = 9;
        let data = dataset(
            seed,
            &Plan {
                validation: 15,
                ..Plan::of_groups(&[7, 12, 5])
            },
        );
        let mut task = task(&e, &data);
        task.absences = absences(seed, [0.2, 0.2, 0.3]);
        let whole = run(&task);
        assert!(whole.last.best.is_some());
        let ends: Vec<u64> = whole.log.states.iter().map(|s| s.progress.t).collect();
        assert_eq!(ends, (0..=36).step_by(2).collect::<Vec<_>>());
        for &at in &ends {
            let (mut first, mut log) = (State::initial(&task), Log::default());
            let ending = watch(&task, &mut first, &mut log, Some(at));
            assert_eq!(
                ending,
                if at == 36 {
                    Ending::Finished
                } else {
                    Ending::Interrupted
                }
            );
            assert_eq!(first.progress.t, at);
            let mut last = saved(&first);
            assert_same_state(&first, &last, "saved and read");
            let ending = watch(&task, &mut last, &mut log, None);
            let what = format!("interrupted at t = {at}");
            assert_same_run(&whole, &Run { ending, log, last }, &what);
        }
        // Interrupted after every single interval.
        let (mut last, mut log) = (State::initial(&task), Log::default());
        for &at in &ends {
            watch(&task, &mut last, &mut log, Some(at));
            last = saved(&last);
        }
        let ending = watch(&task, &mut last, &mut log, None);
        assert_same_run(&whole, &Run { ending, log, last }, "all the time");
    });
}

#[test]
fn an_error_of_the_callback_is_handed_on_and_the_state_can_go_on() {
    let (_, e, data) = cases().remove(0);
    let task = task(&e, &data);
    let whole = run(&task);
    let mut state = State::initial(&task);
    let failed = run::train(&task, &mut state, |interval| {
        if interval.state.progress.t == 10 {
            Err("disk full")
        } else {
            Ok(ControlFlow::Continue(()))
        }
    });
    assert_eq!(failed, Err("disk full"));
    assert_eq!(
        watch(&task, &mut state, &mut Log::default(), None),
        Ending::Finished
    );
    assert_same_state(&state, &whole.last, "after an error");
    let mut log = Log::default();
    assert_eq!(watch(&task, &mut state, &mut log, None), Ending::Finished);
    assert_eq!(log, Log::default(), "a finished run has nothing left to do");
    assert_eq!(model_bits(&state.theta), model_bits(&whole.last.theta));
}

#[test]
fn an_evaluation_comes_back_from_json_to_the_bit() {
    for (validation, test) in [(0, 0), (9, 0), (0, 30), (9, 30)] {
        let e = experiment(2, [6, 3, 3], TANH);
        let data = dataset(
            2,
            &Plan {
                validation,
                test,
                ..Plan::of_groups(&[5, 4])
            },
        );
        for evaluation in run(&task(&e, &data)).log.evaluations {
            let line = serde_json::to_string(&evaluation).unwrap();
            let read: Evaluation = serde_json::from_str(&line).unwrap();
            assert_eq!(read, evaluation, "{line}");
        }
    }
}
