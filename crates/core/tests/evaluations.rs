//! When models are evaluated, and on what.

mod common;

use common::reference::{World, theta};
use common::{
    Plan, Run, TANH, checked, dataset, experiment, for_seeds, model_bits, run, stream, task, within,
};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Experiment, StopSettings};
use selvedge_core::run::Ending;
use selvedge_core::state::Evaluation;
use selvedge_core::task::Task;

#[test]
fn evaluations_are_at_0_at_t_and_no_closer_than_asked() {
    for_seeds(0..30, |seed| {
        let mut draw = stream(seed);
        let (q, a, b) = (
            within(&mut draw, 1..4),
            within(&mut draw, 1..4),
            within(&mut draw, 1..9),
        );
        let (p, t) = (q * a, q * a * b);
        let every = within(&mut draw, 1..t + 4);
        let mut e = experiment(seed, [t, p, q], TANH);
        let halve = within(&mut draw, 1..10);
        (e.train.evaluate_every, e.train.halve_every) = (Some(every), halve);
        let data = dataset(seed, &Plan::of_groups(&[4, 3]));
        let run = run(&task(&e, &data));
        let mut want = vec![0];
        for at in (p..=t).step_by(p as usize) {
            if at - want[want.len() - 1] >= every || at == t {
                want.push(at);
            }
        }
        assert_eq!(run.evaluated(), want, "T = {t}, P = {p}, every {every}");
        for e in &run.log.evaluations {
            let eta = 0.4 * 0.5f64.powi((e.t / halve) as i32);
            assert_eq!((e.p, e.q, e.eta), (p, q, eta), "from t = {} on", e.t);
        }
        // How often one looks changes nothing of what there is to see.
        e.train.evaluate_every = Some(1);
        let all = common::run(&task(&e, &data));
        assert!(
            run.log
                .evaluations
                .iter()
                .all(|e| all.log.evaluations.contains(e))
        );
        assert_eq!(model_bits(&run.last.theta), model_bits(&all.last.theta));
    });
}

#[test]
fn an_empty_test_set_has_no_loss_and_takes_no_target() {
    let mut e = experiment(1, [12, 6, 3], TANH);
    let data = dataset(
        1,
        &Plan {
            test: 0,
            ..Plan::of_groups(&[5, 6])
        },
    );
    for key in ["auc", "precision", "recall", "f1", "accuracy"] {
        let target = format!("[stop]\n{key} = 0.01");
        e.stop = Experiment::parse(&target, &[]).unwrap().stop;
        let refused = Task::new(&e, &data).err().map(|e| e.to_string());
        assert!(refused.is_some_and(|e| e.contains(key) && e.contains("data.test")));
    }
    e.stop = StopSettings::default();
    let run = run(&task(&checked(&e), &data));
    assert_eq!(run.ending, Ending::Finished);
    for e in &run.log.evaluations {
        assert!(e.loss_train.is_finite() && e.loss_test.is_none() && e.test.auc.is_none());
        let metrics = [e.test.precision, e.test.recall, e.test.f1, e.test.accuracy];
        assert_eq!(metrics, [None; 4]);
    }
}

#[test]
fn the_best_model_is_the_first_with_the_highest_validation_score() {
    let mut e = experiment(4, [90, 6, 3], TANH);
    e.train.learning_rate = 0.15;
    let mut data = dataset(4, &Plan::of_groups(&[30, 18, 10]));
    data.validation = dataset(
        9,
        &Plan {
            validation: 50,
            ..Plan::of_groups(&[1])
        },
    )
    .validation;
    let Run { log, last, .. } = run(&task(&e, &data));
    let score = |e: &Evaluation| e.validation.unwrap().auc_validation.unwrap();
    let highest = log.evaluations.iter().map(score).fold(0.0, f64::max);
    let first = log
        .evaluations
        .iter()
        .find(|e| score(e) == highest)
        .unwrap();
    let best = last.progress.best.unwrap();
    assert_eq!((best.t, best.score), (first.t, highest));
    let state = log.states.iter().find(|s| s.progress.t == first.t).unwrap();
    assert_eq!(last.best.as_ref(), Some(&state.theta));
}

/// The rows whose loss is reported, and that the reported loss is theirs.
#[track_caller]
fn assert_loss_sample(e: &Experiment, data: &Dataset, wanted: usize) -> Vec<Vec<u32>> {
    let task = task(e, data);
    let rows = task.loss_rows.clone().expect("a sample");
    for (group, rows) in data.groups.iter().zip(&rows) {
        assert!(rows.is_sorted_by(|a, b| a < b));
        assert!(
            rows.last()
                .is_none_or(|last| (*last as usize) < group.samples.len())
        );
    }
    let count = rows.iter().map(Vec::len).sum::<usize>();
    assert_eq!(
        count,
        wanted,
        "samples in the loss, by group: {:?}",
        rows.iter().map(Vec::len).collect::<Vec<_>>()
    );
    assert_eq!(task.sizes().loss_samples, count);
    let world = World::new(&task);
    let Run { log, .. } = run(&task);
    for evaluation in &log.evaluations {
        let state = log
            .states
            .iter()
            .find(|s| s.progress.t == evaluation.t)
            .expect("evaluated at a call");
        let model = theta(&state.theta);
        let places = rows
            .iter()
            .enumerate()
            .flat_map(|(m, rows)| rows.iter().map(move |row| (m, *row as usize)));
        let mean = places
            .map(|(m, row)| world.loss_of(&model, m, row))
            .sum::<f64>()
            / count as f64;
        assert!(
            (evaluation.loss_train - mean).abs() < 1e-6,
            "t = {}",
            evaluation.t
        );
    }
    rows
}

#[test]
fn the_loss_is_over_a_fixed_keyed_sample_in_proportion_to_the_groups() {
    let mut e = experiment(1, [12, 6, 3], TANH);
    let data = dataset(1, &Plan::of_groups(&[40, 20, 10]));
    e.train.loss_samples = 14;
    let rows = assert_loss_sample(&e, &data, 14);
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [8, 4, 2]);
    assert_eq!(rows, assert_loss_sample(&e, &data, 14), "fixed");
    e.seed = 2;
    assert_ne!(rows, assert_loss_sample(&e, &data, 14), "keyed");
    for all in [0, 70, 71] {
        e.train.loss_samples = all;
        let task = task(&e, &data);
        assert_eq!(
            (task.loss_rows.is_none(), task.sizes().loss_samples),
            (true, 70)
        );
    }
}

#[test]
fn the_loss_sample_is_as_large_as_asked_when_groups_do_not_divide_it() {
    for (wanted, groups) in [
        (15, vec![100; 10]),
        (5, vec![10; 10]),
        (14, vec![100; 10]),
        (10, vec![7, 13, 1, 30]),
    ] {
        let mut e = experiment(1, [2, 2, 2], TANH);
        e.train.loss_samples = wanted;
        let data = dataset(1, &Plan::of_groups(&groups));
        assert_loss_sample(&e, &data, wanted);
    }
}
