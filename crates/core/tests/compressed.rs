//! Compression in training: what it leaves as it is, how much it disturbs, and who may be absent meanwhile.

mod common;

use common::reference::theta;
use common::{
    Plan, Run, TANH, absences, assert_same_run, checked, dataset, distance, experiment, for_seeds,
    model_bits, resumed, run, task, with_algorithm,
};
use selvedge_core::absence::Listed;
use selvedge_core::codec::Codec;
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Algorithm, Experiment};
use selvedge_core::ledger::{Direction, Kind, Link};
use selvedge_core::model::Architecture;
use selvedge_core::protocol::{Absence, Phase};
use selvedge_core::run::Ending;
use selvedge_core::state::State;
use selvedge_core::task::Task;
use selvedge_nn::simd::Level;

/// Every kind of message goes through a codec.
fn with_codecs(mut e: Experiment) -> Experiment {
    let codecs = &mut e.compression;
    codecs.theta0 = Some("top-k:1000".into());
    codecs.zeta1 = Some("dither:64".into());
    codecs.zeta2 = Some("dither:200".into());
    codecs.device_upload = "dither:32".into();
    codecs.device_download = "dither:256".into();
    codecs.global_upload = "top-k:256".into();
    codecs.global_download = "dither:128".into();
    with_algorithm(&e, Algorithm::CHsgd)
}

/// Wider than a stretch of a mean and than a vector.
const WIDE: [&str; 3] = [
    r#"[{"linear": {"out": 9}}, "relu", {"linear": {"out": 2}}]"#,
    r#"[{"linear": {"out": 21}}, "tanh", {"linear": {"out": 19}}]"#,
    r#"[{"linear": {"out": 20}}, "tanh", {"linear": {"out": 17}}]"#,
];

/// Groups with fewer and with more rows than one task codes (64).
fn case(algorithm: Algorithm) -> (Experiment, Dataset) {
    let mut e = with_codecs(experiment(8, [12, 6, 2], WIDE));
    e.train.participation = 0.8;
    e.train.learning_rate = 0.1;
    let plan = Plan {
        validation: 10,
        ..Plan::of_groups(&[7, 100, 30])
    };
    (with_algorithm(&e, algorithm), dataset(8, &plan))
}

/// Runs to the end in one go, and once more from each interval of it.
#[track_caller]
fn assert_goes_on_from_anywhere(task: &Task<'_>, what: &str) {
    let whole = run(task);
    assert_eq!(whole.ending, Ending::Finished, "{what}");
    let ends: Vec<u64> = whole.log.states.iter().map(|s| s.progress.t).collect();
    for at in ends {
        let what = format!("{what} from t = {at}");
        assert_same_run(&whole, &resumed(task, at), &what);
    }
}

#[test]
fn every_algorithm_goes_on_from_any_interval_to_the_same_bits() {
    for algorithm in Algorithm::ALL {
        let (e, data) = case(algorithm);
        assert_goes_on_from_anywhere(&task(&e, &data), algorithm.name());
    }
}

/// In some intervals nobody of a group is there, and in some aggregations no group.
#[test]
fn absences_and_compression_together_go_on_from_any_interval_to_the_same_bits() {
    for_seeds(0..12, |seed| {
        let mut e = with_codecs(experiment(seed, [24, 6, 2], TANH));
        e.compression.error_feedback = seed % 3 > 0;
        e.compression.theta0_feedback = seed % 2 > 0;
        e.train.participation = 0.4;
        let data = dataset(seed, &Plan::of_groups(&[3, 8, 2]));
        let mut task = task(&e, &data);
        task.absences = absences(seed, [0.5, 0.3, 0.4]);
        assert_goes_on_from_anywhere(&task, "c-hsgd");
    });
}

#[test]
fn threads_and_instructions_change_no_bit_of_any_algorithm() {
    for algorithm in Algorithm::ALL {
        let (e, data) = case(algorithm);
        let on = |threads: usize, level: Level| {
            let mut task = task(&e, &data);
            let blind_to = task.architecture.blind_to;
            let built = Architecture::new(
                &e.model,
                data.hospital,
                data.device,
                (selvedge_core::outcome::Kind::Class, 2),
            );
            task.architecture = Architecture {
                blind_to,
                ..built.expect("it was built before").with_level(level)
            };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().expect("a pool").install(|| run(&task))
        };
        let first = on(1, Level::PLAIN);
        assert_eq!(first.ending, Ending::Finished);
        for level in Level::available() {
            for threads in [1, 3] {
                let what = format!("{}, {threads}, {}", algorithm.name(), level.name());
                assert_same_run(&first, &on(threads, level), &what);
            }
        }
    }
}

/// How far two runs end from each other, as a share of the way that the second has gone.
fn gap(a: &Run, b: &Run) -> f64 {
    let start = theta(&b.log.states[0].theta).concat();
    let [a, b] = [a, b].map(|run| theta(&run.last.theta).concat());
    distance(&a, &b) / distance(&b, &start)
}

#[test]
fn more_levels_bring_dithered_runs_nearer_to_the_uncompressed_one() {
    let kinds: [fn(&mut Experiment, &str); 6] = [
        |e, codec| e.compression.codec = codec.into(),
        |e, codec| e.compression.device_upload = codec.into(),
        |e, codec| e.compression.device_download = codec.into(),
        |e, codec| e.compression.global_upload = codec.into(),
        |e, codec| e.compression.global_download = codec.into(),
        |e, codec| e.compression.zeta2 = Some(codec.into()),
    ];
    for (kind, set) in kinds.into_iter().enumerate() {
        for_seeds(0..3, |seed| {
            let data = dataset(seed, &Plan::of_groups(&[9, 14]));
            let mut e = experiment(seed, [60, 6, 3], TANH);
            let plain = run(&task(&e, &data));
            e.compression.codec = "none".into();
            let gaps = [16, 256, 4096, 65536].map(|levels| {
                set(&mut e, &format!("dither:{levels}"));
                let e = with_algorithm(&e, Algorithm::CHsgd);
                gap(&run(&task(&e, &data)), &plain)
            });
            let what = format!("kind {kind}: {gaps:?}");
            assert!(gaps[0] > 1e-4, "{what}: 16 levels disturb");
            // Sixteen times the levels are a sixteenth of the noise.
            assert!(gaps.is_sorted_by(|a, b| *b < a / 4.0), "{what}");
            assert!(gaps[3] < 1e-4, "{what}: 65536 levels hardly do");
        });
    }
}

/// Two groups whose steps differ in which numbers are largest, and an upload that keeps one number in 32.
#[test]
fn error_feedback_on_what_groups_upload_gets_much_further_than_none() {
    for_seeds(0..5, |seed| {
        let data = dataset(seed, &Plan::of_groups(&[40, 40]));
        let mut e = experiment(seed, [400, 4, 4], TANH);
        (e.train.participation, e.train.learning_rate) = (1.0, 0.2);
        let loss = |e: &Experiment| {
            let run = run(&task(e, &data));
            assert_eq!(run.ending, Ending::Finished);
            let [first, .., last] = &run.log.evaluations[..] else {
                panic!("a run has two evaluations");
            };
            (first.loss_train, last.loss_train)
        };
        let (start, plain) = loss(&e);
        e.compression.codec = "none".into();
        e.compression.global_upload = "top-k:2".into();
        e = with_algorithm(&e, Algorithm::CHsgd);
        let (_, with) = loss(&e);
        e.compression.error_feedback = false;
        let (_, without) = loss(&checked(&e));
        let what = format!("{start:.3} → plain {plain:.3}, with {with:.3}, without {without:.3}");
        assert!(with < without - 0.1 * (start - plain), "{what}");
        assert!(with < plain + 0.2 * (start - plain), "{what}");
    });
}

/// What a state holds for compression: each edge's copy of θ0, residuals of each group's uploads, of the cloud.
fn residuals(state: &State) -> (Vec<Vec<u32>>, Vec<Vec<u32>>, Vec<u32>) {
    let lost = &state.residuals;
    let bits = |x: &Vec<f32>| x.iter().map(|x| x.to_bits()).collect();
    (
        lost.edges.iter().map(bits).collect(),
        lost.uploads.iter().map(model_bits).collect(),
        model_bits(&lost.cloud),
    )
}

#[test]
fn who_sends_nothing_keeps_what_compression_has_lost_and_who_is_absent_begins_anew() {
    let mut e = with_codecs(experiment(3, [24, 6, 2], TANH));
    e.compression.theta0_feedback = true;
    e.train.participation = 1.0;
    let data = dataset(3, &Plan::of_groups(&[4, 5, 3]));
    let mut task = task(&e, &data);
    let mut missing = Listed::default();
    // Group 1 misses the second global aggregation; nobody of group 2 is there from 8 to 10; one device is late at 4.
    let group = |t, m| Absence::of_group(Phase::Global, t, m);
    missing.add(group(12, 1));
    (0..3).for_each(|n| missing.add(Absence::of_device(Phase::Exchange, 8, 2, n)));
    missing.add(Absence::of_device(Phase::Upload, 4, 0, 1));
    task.absences = Box::new(missing.clone());
    let run = run(&task);
    assert_eq!(run.ending, Ending::Finished);
    for states in run.log.states.windows(2) {
        let until = states[1].progress.t;
        let t = until - 2;
        let [before, after] = [&states[0], &states[1]].map(residuals);
        for m in 0..3 {
            let nobody = t == 8 && m == 2;
            let (a, b) = (&before.0[m], &after.0[m]);
            assert_eq!(a == b, nobody, "θ0 of hospital {m} at t = {t}");
            let (a, b) = (&before.1[m], &after.1[m]);
            assert_eq!(a != b, until % 6 == 0, "θ of group {m} at t = {until}");
            if (until, m) == (12, 1) {
                let lost = after.0[m].iter().chain(&after.1[m]);
                assert!(
                    lost.into_iter().all(|bits| *bits == 0),
                    "group {m} at {until}"
                );
            }
        }
        let aggregates = until % 6 == 0;
        assert_eq!(before.2 != after.2, aggregates, "the cloud at {until}");
    }
    // If no group is there, nothing is sent at all.
    (0..3).for_each(|m| missing.add(group(12, m)));
    task.absences = Box::new(missing);
    let run = common::run(&task);
    let [before, after] = [5, 6].map(|i| &run.log.states[i]);
    assert_eq!((before.progress.t, after.progress.t), (10, 12));
    assert_eq!(residuals(before).2, residuals(after).2);
    assert_eq!(before.theta, after.theta);
}

/// Behind an absence a group has missed differences, so it fetches all of θ.
#[test]
fn a_group_that_returns_pays_for_a_whole_model_even_if_downloads_are_differences() {
    let mut e = with_codecs(experiment(3, [36, 6, 2], TANH));
    let data = dataset(3, &Plan::of_groups(&[4, 5]));
    e.compression.global_download = "top-k:16".into();
    let e = checked(&e);
    let mut task = task(&e, &data);
    let mut missing = Listed::default();
    for (t, m) in [(12, 1), (18, 1), (30, 0)] {
        missing.add(Absence::of_group(Phase::Global, t, m));
    }
    task.absences = Box::new(missing);
    let w = task.architecture.widths();
    let entries = run(&task).last.progress.ledger;
    let line = |kind: Kind| {
        let entries = entries.entries().iter();
        let mut cloud = entries.filter(|e| matches!(e.link, Link::HospitalCloud | Link::EdgeCloud));
        let found = cloud.find(|e| e.kind == kind && e.direction == Direction::Down);
        let found = found.expect("the cloud sends all parts");
        (found.messages, found.bytes)
    };
    let codec = Codec::TopK { levels: 16 };
    for (kind, numbers) in [
        (Kind::Theta0, w.n0),
        (Kind::Theta1, w.n1),
        (Kind::Theta2, w.n2),
    ] {
        // Twelve messages but for three absences, and two returns.
        let bytes = 9 * codec.frame_len(numbers) + 2 * 4 * numbers;
        assert_eq!(line(kind), (11, bytes as u64), "{kind:?}");
    }
}

/// A lossy codec has no code for what is no number: a run must not seem to go on because of that. Models without a
/// squashing layer, so that numbers grow beyond all bounds.
#[test]
fn a_run_that_diverges_is_found_out_whatever_its_messages_go_through() {
    let data = dataset(2, &Plan::of_groups(&[5, 6]));
    let linear = [r#"[{"linear": {"out": 2}}]"#; 3];
    let kinds: [fn(&mut Experiment, &str); 6] = [
        |_, _| {},
        |e, codec| e.compression.codec = codec.into(),
        |e, codec| e.compression.device_upload = codec.into(),
        |e, codec| e.compression.device_download = codec.into(),
        |e, codec| e.compression.global_upload = codec.into(),
        |e, codec| e.compression.global_download = codec.into(),
    ];
    for codec in ["top-k:128", "top-k:65536", "dither:64"] {
        // One kind of message after the other, until all go through the codec.
        for compressed in 1..=kinds.len() {
            let mut e = experiment(2, [40, 4, 2], linear);
            e.train.learning_rate = 1e12;
            e.compression.codec = "none".into();
            kinds[..compressed]
                .iter()
                .for_each(|set| set(&mut e, codec));
            let e = with_algorithm(&e, Algorithm::CHsgd);
            let run = run(&task(&e, &data));
            let ending = matches!(run.ending, Ending::Diverged { .. });
            let losses: Vec<f64> = run.log.evaluations.iter().map(|e| e.loss_train).collect();
            assert!(
                ending,
                "{codec}, {compressed} kinds: {:?} {losses:?}",
                run.ending
            );
        }
    }
}
