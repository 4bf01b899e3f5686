//! Runs in which P, Q and η are chosen while training.
//!
//! - [`absent`]: who is not there neither reports nor is told, and models that come back come back whole.
//! - [`probes`]: what `adaptive = "bound"` measures is in the books.

mod absent;
#[path = "../common/mod.rs"]
mod common;
mod probes;

use common::{
    Log, Plan, Run, TANH, absences, assert_same_run, assert_same_state, checked, dataset,
    experiment, for_seeds, resumed, run, saved, task, watch,
};
use selvedge_core::adaptive::Change;
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Adaptive, Algorithm, Experiment};
use selvedge_core::ledger::{Direction, Kind, Ledger, Link};
use selvedge_core::model::Model;
use selvedge_core::run::Ending;
use selvedge_core::state::{Progress, State};
use selvedge_core::task::Task;

const MODES: [Adaptive; 2] = [Adaptive::Gain, Adaptive::Bound];

fn steered(mode: Adaptive, seed: u64, t: [u64; 3], rate: f64) -> Experiment {
    let mut e = experiment(seed, t, TANH);
    (e.train.adaptive, e.train.learning_rate) = (mode, rate);
    checked(&e)
}

fn compressed(mut e: Experiment) -> Experiment {
    e.train.algorithm = Algorithm::CHsgd;
    e.compression.codec = "top-k".into();
    e.compression.global_upload = "top-k".into();
    e.compression.global_download = "dither".into();
    checked(&e)
}

fn data(seed: u64) -> Dataset {
    dataset(
        seed,
        &Plan {
            validation: 15,
            ..Plan::of_groups(&[12, 9, 15])
        },
    )
}

/// The segment that begins at a state, if one does.
fn begun(state: &State) -> Option<Change> {
    let controller = state.progress.controller.as_ref().expect("somebody steers");
    let change = controller.change.as_ref();
    change.filter(|c| c.t == state.progress.t).cloned()
}

/// The segments of a run, as `segments.jsonl` would list them.
fn changes(run: &Run) -> Vec<Change> {
    run.log.states.iter().filter_map(begun).collect()
}

/// The last good model.
fn safe(state: &State) -> &Model {
    state.safe.as_ref().expect("a good model")
}

fn line(ledger: &Ledger, link: Link, kind: Kind) -> (u64, u64) {
    let found = ledger
        .entries()
        .iter()
        .filter(|e| (e.link, e.kind) == (link, kind));
    found.fold((0, 0), |(messages, bytes), e| {
        (messages + e.messages, bytes + e.bytes)
    })
}

/// It ends at T with a model that has a loss, could have been saved anywhere, and its segments leave no gap.
#[track_caller]
fn assert_sound(e: &Experiment, run: &Run) {
    let total = e.train.iterations;
    assert_eq!(run.ending, Ending::Finished);
    assert_eq!(run.last.progress.t, total);
    let last = run.log.evaluations.last().expect("an evaluation");
    assert_eq!(last.t, total, "the end is evaluated");
    assert!(run.log.evaluations.iter().all(|e| e.loss_train.is_finite()));
    assert!(run.last.theta.is_finite());
    for state in &run.log.states {
        assert!(state.theta.is_finite() && safe(state).is_finite());
        assert_same_state(state, &saved(state), "saved and read");
    }
    let segments = changes(run);
    assert_eq!(segments[0].t, 0);
    let ends: Vec<u64> = segments
        .iter()
        .skip(1)
        .map(|s| s.t)
        .chain([total])
        .collect();
    for (segment, end) in segments.iter().zip(ends) {
        assert!(segment.t < end && !segment.reason.is_empty(), "{segment:?}");
        assert!(segment.p.is_multiple_of(segment.q) && segment.q > 0);
        assert!(segment.eta > 0.0 && segment.eta.is_finite());
        assert!(
            (end - segment.t).is_multiple_of(segment.p),
            "{segment:?} to {end}"
        );
    }
    // Whoever looks at the state sees the segment that the next iteration belongs to.
    for state in &run.log.states {
        let Progress { t, segment, .. } = &state.progress;
        let of = segments.iter().rfind(|s| s.t <= *t).expect("one of them");
        assert_eq!(
            (
                segment.start,
                segment.global_interval,
                segment.learning_rate
            ),
            (of.t, of.p, of.eta)
        );
    }
}

#[test]
fn a_rate_a_thousand_times_too_large_is_found_out() {
    for_seeds(0..6, |seed| {
        let data = data(seed);
        for e in [
            steered(Adaptive::Gain, seed, [1000, 50, 50], 400.0),
            compressed(steered(Adaptive::Gain, seed, [1000, 50, 50], 400.0)),
        ] {
            let run = run(&task(&e, &data));
            assert_sound(&e, &run);
            let losses: Vec<f64> = run.log.evaluations.iter().map(|e| e.loss_train).collect();
            let (first, last) = (losses[0], losses[losses.len() - 1]);
            assert!(last < 0.9 * first, "{losses:?}");
        }
    });
}

#[test]
fn no_rate_ends_a_run_before_its_time_or_loses_its_model() {
    // Layers without tanh between them: weights that are finite with losses that are not.
    const LINEAR: [&str; 3] = [
        r#"[{"linear": {"out": 4}}, {"linear": {"out": 3}}, {"linear": {"out": 2}}]"#,
        r#"[{"linear": {"out": 3}}, {"linear": {"out": 2}}]"#,
        r#"[{"linear": {"out": 2}}]"#,
    ];
    for_seeds(0..42, |seed| {
        let rates = [1e-40, 30.0, 1e6, 1e14, 1e22, 1e30, 1e300];
        let rate = rates[seed as usize % 7];
        let total = [1, 2, 60][seed as usize / 7 % 3];
        for mode in MODES {
            let mut e = experiment(seed, [total, total.min(4), 1], LINEAR);
            (e.train.adaptive, e.train.learning_rate) = (mode, rate);
            e.train.evaluate_every = Some(total.min(9));
            let e = checked(&e);
            let data = data(seed);
            let run = run(&task(&e, &data));
            assert_sound(&e, &run);
            let last = &run.log.evaluations[run.log.evaluations.len() - 1];
            let again = {
                let task = task(&e, &data);
                let mut state = State::initial(&task);
                state.theta.copy_from(&run.last.theta);
                let mut log = Log::default();
                watch(&task, &mut state, &mut log, Some(0));
                log.evaluations[0].loss_train
            };
            assert_eq!(
                again, last.loss_train,
                "η = {rate}: the model is what was evaluated"
            );
        }
    });
}

/// Steps that move nothing learn nothing, and who steers makes them ever smaller.
#[test]
fn a_rate_that_moves_nothing_stays_a_number() {
    for mode in MODES {
        let (e, data) = (steered(mode, 1, [600, 2, 2], 1e-300), data(1));
        let run = run(&task(&e, &data));
        assert_sound(&e, &run);
    }
}

#[test]
fn a_budget_that_runs_out_with_an_infinite_loss_still_ends_the_run() {
    let data = data(2);
    let mut found = 0;
    for rate in [1e10, 1e14, 1e20, 1e26] {
        let mut e = steered(Adaptive::Bound, 2, [40, 2, 1], rate);
        e.stop.bytes = Some(1.0);
        let run = run(&task(&checked(&e), &data));
        assert!(
            matches!(
                run.ending,
                Ending::Reached {
                    key: "stop.bytes",
                    ..
                }
            ),
            "{:?}",
            run.ending
        );
        let last = &run.log.evaluations[run.log.evaluations.len() - 1];
        assert!(last.loss_train.is_finite());
        found += usize::from(last.t == run.last.progress.t);
    }
    assert_eq!(found, 4, "each is evaluated where it ends");
}

/// Steered runs of both kinds, with what can go wrong: absences, compression, a rate that is too large.
fn cases(seed: u64) -> Vec<(String, Experiment)> {
    let mut cases = Vec::new();
    for mode in MODES {
        let e = steered(mode, seed, [130, 26, 13], 40.0);
        cases.push((format!("{mode:?}"), e.clone()));
        cases.push((format!("{mode:?}, compressed"), compressed(e)));
    }
    cases
}

fn with_absences<'a>(e: &'a Experiment, data: &'a Dataset, seed: u64) -> Task<'a> {
    let mut task = task(e, data);
    task.absences = absences(seed, [0.2, 0.2, 0.3]);
    task
}

#[test]
fn threads_and_interruptions_change_no_bit() {
    for_seeds(0..2, |seed| {
        let data = data(seed);
        for (name, e) in cases(seed) {
            let task = with_absences(&e, &data, seed);
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                pool.build().expect("threads").install(|| run(&task))
            };
            let whole = on(1);
            assert_sound(&e, &whole);
            assert_same_run(&whole, &on(2), &format!("{name}, two threads"));
            for at in whole.log.states.iter().map(|s| s.progress.t) {
                let what = format!("{name}, resumed at {at}");
                assert_same_run(&whole, &resumed(&task, at), &what);
            }
        }
    });
}

#[test]
fn reports_and_settings_are_in_the_ledger() {
    for_seeds(0..4, |seed| {
        let data = data(seed);
        for e in [
            steered(Adaptive::Gain, seed, [400, 40, 20], 4.0),
            compressed(steered(Adaptive::Gain, seed, [400, 40, 20], 400.0)),
        ] {
            let run = run(&task(&e, &data));
            assert_sound(&e, &run);
            let groups = data.groups.len() as u64;
            // P = Q: each state but the first is behind a global aggregation.
            let aggregations = run.log.states.len() as u64 - 1;
            let begun = changes(&run).len() as u64 - 1;
            assert!(
                begun > 1 && begun < aggregations,
                "{begun} of {aggregations}"
            );
            let ledger = &run.last.progress.ledger;
            let report = line(ledger, Link::HospitalCloud, Kind::Report);
            assert_eq!(report, (groups * aggregations, 16 * groups * aggregations));
            for link in [Link::HospitalCloud, Link::EdgeCloud] {
                let settings = line(ledger, link, Kind::Settings);
                assert_eq!(settings, (groups * begun, 12 * groups * begun));
            }
            for e in ledger.entries() {
                if matches!(e.kind, Kind::Report | Kind::Settings) {
                    assert_eq!(e.paper_bits, 0, "the paper does not count them");
                    let way = [Direction::Up, Direction::Down];
                    assert_eq!(e.direction, way[usize::from(e.kind == Kind::Settings)]);
                }
            }
        }
    });
}
