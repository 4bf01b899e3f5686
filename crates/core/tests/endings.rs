//! How runs end: at T, at a target or a budget, by divergence, by an interruption.

mod common;

use common::{
    Log, Plan, Run, TANH, assert_same_state, checked, dataset, experiment, for_seeds, model_bits,
    pick, replayed, run, stream, task, watch, within,
};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Experiment, StopSettings};
use selvedge_core::run::Ending;
use selvedge_core::scores::predict;
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;

/// A run that learns, slowly enough to have a history, and its data.
fn learning(seed: u64) -> (Experiment, Dataset) {
    let mut e = experiment(seed, [90, 6, 3], TANH);
    e.train.learning_rate = 0.15;
    (
        e,
        dataset(
            seed,
            &Plan {
                test: 60,
                ..Plan::of_groups(&[30, 18, 10])
            },
        ),
    )
}

/// A key of `[stop]`: its name, where it is set, and the value it is compared with, the larger the better.
type Key = (
    &'static str,
    fn(&mut StopSettings, f64),
    fn(&Evaluation) -> f64,
);

const TARGETS: [Key; 6] = [
    (
        "stop.loss",
        |s, x| s.set_target("loss", x),
        |e| e.loss_train,
    ),
    (
        "stop.auc",
        |s, x| s.set_target("auc", x),
        |e| e.test.auc.unwrap_or(0.0),
    ),
    (
        "stop.precision",
        |s, x| s.set_target("precision", x),
        |e| e.test.precision.unwrap_or(0.0),
    ),
    (
        "stop.recall",
        |s, x| s.set_target("recall", x),
        |e| e.test.recall.unwrap_or(0.0),
    ),
    (
        "stop.f1",
        |s, x| s.set_target("f1", x),
        |e| e.test.f1.unwrap_or(0.0),
    ),
    (
        "stop.accuracy",
        |s, x| s.set_target("accuracy", x),
        |e| e.test.accuracy.unwrap_or(0.0),
    ),
];

const BUDGETS: [Key; 2] = [
    ("stop.bytes", |s, x| s.bytes = Some(x), |e| e.bytes_exact),
    ("stop.seconds", |s, x| s.seconds = Some(x), |e| e.seconds),
];

/// A stopped run is the beginning of the whole one, up to and with its last evaluation at `t`.
#[track_caller]
fn assert_ends_at(whole: &Run, stopped: &Run, t: u64, key: &'static str, value: f64) {
    assert_eq!(stopped.ending, Ending::Reached { key, value });
    assert_eq!(stopped.last.progress.t, t, "{key} {value}");
    let (end, before) = stopped.log.states.split_last().expect("at least t = 0");
    for (a, b) in before.iter().zip(&whole.log.states) {
        assert_same_state(a, b, key);
    }
    assert_same_state(&stopped.last, end, key);
    // The end knows that it is one; all else is as if the run went on.
    let same = &whole.log.states[before.len()];
    let (a, b) = (&end.progress, &same.progress);
    assert_eq!(
        (a.t, &a.ledger, &a.clock),
        (b.t, &b.ledger, &b.clock),
        "{key}"
    );
    assert_eq!(model_bits(&end.theta), model_bits(&same.theta), "{key}");
    let before = whole.log.evaluations.iter().filter(|e| e.t <= t);
    assert!(stopped.log.evaluations.iter().eq(before), "{key} {value}");
}

#[test]
fn a_target_ends_the_run_at_the_first_global_aggregation_that_reaches_it() {
    for_seeds(0..2, |seed| {
        let (e, data) = learning(seed);
        let whole = run(&task(&e, &data));
        let later = &whole.log.evaluations[1..];
        for (key, set, value) in TARGETS {
            let reaches = |e: &Evaluation, target: f64| {
                if key == "stop.loss" {
                    value(e) <= target
                } else {
                    value(e) >= target
                }
            };
            let mut ends = Vec::new();
            for target in later.iter().map(value).filter(|v| *v > 0.0) {
                let mut e = e.clone();
                set(&mut e.stop, target);
                let e = checked(&e);
                let first = later.iter().find(|e| reaches(e, target)).unwrap();
                assert_ends_at(&whole, &run(&task(&e, &data)), first.t, key, value(first));
                ends.push(first.t);
            }
            ends.dedup();
            assert!(ends.len() > 2, "{key} is reached at {ends:?} only");
        }
    });
}

#[test]
fn a_target_that_the_initial_model_reaches_ends_the_run_at_the_first_global_aggregation() {
    let (mut e, data) = learning(1);
    e.stop.set_target("loss", 1e3);
    let stopped = run(&task(&e, &data));
    assert_eq!(stopped.last.progress.t, 6);
    assert_eq!(stopped.evaluated(), [0, 6]);
}

#[test]
fn a_run_that_reached_its_target_stays_there() {
    let (mut e, data) = learning(1);
    e.stop.set_target("loss", 1e3);
    let task = task(&e, &data);
    let stopped = run(&task);
    let (mut state, mut log) = (stopped.last.clone(), Log::default());
    assert_eq!(watch(&task, &mut state, &mut log, None), stopped.ending);
    assert_eq!(log, Log::default(), "nothing is left to do");
    assert_same_state(&state, &stopped.last, "once more");
}

#[test]
fn a_target_out_of_reach_changes_nothing() {
    let (e, data) = learning(0);
    let whole = run(&task(&e, &data));
    let mut other = e.clone();
    other.stop = StopSettings::default();
    (other.stop.bytes, other.stop.seconds) = (Some(1e15), Some(1e9));
    other.stop.set_target("loss", 1e-9);
    let run = run(&task(&checked(&other), &data));
    assert_eq!(run.ending, Ending::Finished);
    assert_same_state(&run.last, &whole.last, "no target");
}

#[test]
fn a_budget_ends_the_run_at_the_first_global_aggregation_that_uses_it_up() {
    for_seeds(0..2, |seed| {
        let (e, data) = learning(seed);
        let whole = run(&task(&e, &data));
        let later = &whole.log.evaluations[1..];
        for (key, set, value) in BUDGETS {
            for (i, at) in later.iter().enumerate() {
                let used = value(at);
                for (budget, first) in [(used, Some(at)), (used * 1.0001, later.get(i + 1))] {
                    let mut e = e.clone();
                    set(&mut e.stop, budget);
                    let e = checked(&e);
                    let stopped = run(&task(&e, &data));
                    match first {
                        Some(first) => assert_ends_at(&whole, &stopped, first.t, key, value(first)),
                        None => assert_eq!(stopped.ending, Ending::Finished),
                    }
                }
            }
        }
    });
}

#[test]
fn a_budget_ends_the_run_between_evaluations_and_with_one() {
    let (mut e, data) = learning(0);
    let used = run(&task(&e, &data)).log.evaluations[3].bytes_exact;
    e.train.evaluate_every = Some(60);
    e.stop.bytes = Some(used);
    let stopped = run(&task(&e, &data));
    assert_eq!(
        stopped.ending,
        Ending::Reached {
            key: "stop.bytes",
            value: used
        }
    );
    assert_eq!(stopped.evaluated(), [0, 18]);
}

/// Linear layers only: nothing holds the numbers back.
const LINEAR: [&str; 3] = [
    r#"[{"linear": {"out": 3}}, {"linear": {"out": 2}}]"#,
    r#"[{"linear": {"out": 3}}]"#,
    r#"[{"linear": {"out": 2}}]"#,
];

/// A run of linear layers with a validation set and this learning rate.
fn reckless(seed: u64, intervals: [u64; 3], learning_rate: f64) -> (Experiment, Dataset) {
    let mut e = experiment(seed, intervals, LINEAR);
    e.train.learning_rate = learning_rate;
    let plan = Plan {
        validation: 20,
        ..Plan::of_groups(&[5, 8])
    };
    (e, dataset(seed, &plan))
}

#[test]
fn divergence_ends_the_run_with_the_last_good_model() {
    let mut ends = Vec::new();
    for_seeds(0..48, |seed| {
        let rate = [3.0, 8.0, 20.0, 1e3, 1e14, 3e38][seed as usize % 6];
        let p = [1, 4][seed as usize / 6 % 2];
        let (mut e, data) = reckless(seed, [60, p, p.min(2)], rate);
        e.train.halve_every = 50;
        e.train.evaluate_every = Some(p * [1, 3][seed as usize / 12 % 2]);
        let Run { ending, log, last } = run(&task(&e, &data));
        for state in &log.states {
            assert!(
                state.theta.is_finite(),
                "the callback saw t = {}",
                state.progress.t
            );
        }
        assert!(log.evaluations.iter().all(|e| e.loss_train.is_finite()));
        assert!(last.theta.is_finite());
        let evaluated = log.evaluations[log.evaluations.len() - 1].t;
        let good = log
            .states
            .iter()
            .find(|s| s.progress.t == evaluated)
            .unwrap();
        assert_eq!(
            model_bits(&last.theta),
            model_bits(&good.theta),
            "θ as last evaluated"
        );
        let Ending::Diverged { t, learning_rate } = ending else {
            assert_eq!((ending, last.progress.t), (Ending::Finished, 60));
            return;
        };
        let halved = if t > 50 { rate / 2.0 } else { rate };
        assert_eq!((t, learning_rate), (last.progress.t, halved));
        let seen = log.states[log.states.len() - 1].progress.t;
        assert!(
            t.is_multiple_of(p) && t - seen == p.min(2),
            "seen at the first aggregation"
        );
        ends.push(t);
    });
    let late = ends.iter().filter(|t| **t > 4).count();
    let enough = late > 4 && ends.len() - late > 4 && ends.len() < 48;
    assert!(
        common::replayed().is_some() || enough,
        "divergence at {ends:?} only"
    );
}

#[test]
fn the_model_that_divergence_leaves_has_a_finite_loss() {
    for_seeds(0..12, |seed| {
        let (mut e, data) = reckless(seed, [60, 1, 1], 1e14);
        e.train.evaluate_every = Some([1, 10][seed as usize % 2]);
        let task = task(&e, &data);
        let Run { ending, last, .. } = run(&task);
        let Ending::Diverged { t, .. } = ending else {
            panic!("{ending:?}")
        };
        let every = e.train.evaluate_every.unwrap();
        let predicted = data
            .groups
            .iter()
            .map(|g| predict(task.networks(), &last.theta, &g.samples, None));
        let loss: f64 = predicted.map(|p| p.losses.total()).sum();
        assert!(
            loss.is_finite(),
            "diverged at t = {t}, evaluated every {every}: θ has a loss of {loss}"
        );
    });
}

#[test]
fn a_run_that_diverges_after_an_interruption_ends_like_the_whole_one() {
    for_seeds(0..12, |seed| {
        let rate = [3.0, 8.0, 1e3, 1e14][seed as usize % 4];
        let (mut e, data) = reckless(seed, [60, 1, 1], rate);
        e.train.evaluate_every = Some(10);
        let task = task(&e, &data);
        let whole = run(&task);
        for at in whole
            .log
            .states
            .iter()
            .map(|s| s.progress.t)
            .filter(|t| *t < 60)
        {
            let (mut state, mut log) = (State::initial(&task), Log::default());
            watch(&task, &mut state, &mut log, Some(at));
            let ending = watch(&task, &mut state, &mut log, None);
            let what = format!("η = {rate}, interrupted at {at}");
            assert_eq!(ending, whole.ending, "{what}");
            assert_eq!(
                model_bits(&state.theta),
                model_bits(&whole.last.theta),
                "{what}: θ"
            );
        }
    });
}

#[test]
fn data_without_a_finite_loss_end_the_run_before_it_begins() {
    let (e, mut data) = reckless(1, [60, 1, 1], 0.1);
    data.groups[1].samples.x2[3] = f32::NAN;
    let Run { ending, log, last } = run(&task(&e, &data));
    assert!(
        matches!(ending, Ending::Diverged { t: 0, .. }),
        "{ending:?}"
    );
    assert!(log.states.is_empty() && last.best.is_none() && last.theta.is_finite());
}

#[test]
fn a_model_that_diverged_is_never_the_best_one() {
    for_seeds(0..12, |seed| {
        let (e, data) = reckless(seed, [60, 1, 1], 1e14);
        let task = task(&e, &data);
        let Run { ending, log, last } = run(&task);
        let Ending::Diverged { t, .. } = ending else {
            panic!("{ending:?}")
        };
        let best = last.progress.best.unwrap();
        let model = last.best.as_ref().unwrap();
        let loss = predict(task.networks(), model, &data.validation, None)
            .losses
            .total();
        let auc = |e: &Evaluation| (e.t, e.validation.unwrap().auc_validation);
        let seen: Vec<_> = log.evaluations.iter().map(auc).collect();
        assert!(
            loss.is_finite(),
            "diverged at {t}; {best:?} has loss {loss}; evaluated were {seen:?}"
        );
        assert!(
            seen.iter().any(|(t, _)| *t == best.t),
            "{best:?} is none of {seen:?}"
        );
    });
}

#[test]
fn a_break_at_an_interval_is_an_interruption_there() {
    let (e, data) = learning(2);
    let task = task(&e, &data);
    for until in [0, 3, 6, 87] {
        let (mut state, mut log) = (State::initial(&task), Log::default());
        assert_eq!(
            watch(&task, &mut state, &mut log, Some(until)),
            Ending::Interrupted
        );
        assert_eq!(state.progress.t, until);
    }
}

#[test]
fn patience_ends_the_run_at_the_first_evaluation_that_is_that_far_from_the_best() {
    let mut ended = 0;
    for_seeds(0..60, |seed| {
        let mut draw = stream(seed);
        let mut plan = Plan::of_groups(&[6, 5]);
        plan.validation = 12;
        let (mut e, data) = (experiment(seed, [60, 2, 1], TANH), dataset(seed, &plan));
        e.train.learning_rate = 1.5;
        e.train.evaluate_every = Some(pick(&mut draw, &[2, 6]));
        let whole = run(&task(&e, &data));
        let patience = within(&mut draw, 1..30);
        e.stop.patience = Some(patience);
        let cut = run(&task(&e, &data));
        // What was seen of the whole run tells where the other has to end.
        let (mut best, mut end) = (0, None);
        let (mut score, mut loss) = (f64::NEG_INFINITY, f64::INFINITY);
        for seen in &whole.log.evaluations {
            let on = seen.validation.unwrap();
            let (now, lower) = (on.score(), on.loss_validation < loss);
            if now > score || (now == score && (best == 0 || lower)) {
                (best, score, loss) = (seen.t, now, on.loss_validation);
            }
            if seen.t - best >= patience && end.is_none() {
                end = Some((seen.t, seen.t - best));
            }
        }
        match end {
            None => assert_eq!(cut.ending, Ending::Finished),
            Some((t, waited)) => {
                ended += 1;
                let reached = Ending::Reached {
                    key: "stop.patience",
                    value: waited as f64,
                };
                assert_eq!((cut.ending, cut.last.progress.t), (reached, t));
            }
        }
        let evaluated = cut.log.evaluations.len();
        assert_eq!(cut.log.evaluations, whole.log.evaluations[..evaluated]);
    });
    assert!(replayed().is_some() || ended > 20, "{ended}");
}

#[test]
fn patience_needs_samples_to_wait_for() {
    let (mut e, data) = (
        experiment(1, [6, 2, 1], TANH),
        dataset(1, &Plan::of_groups(&[4])),
    );
    e.stop.patience = Some(5);
    let refused = Task::new(&e, &data).err().unwrap().to_string();
    assert!(refused.contains("stop.patience") && refused.contains("data.validation"));
}
