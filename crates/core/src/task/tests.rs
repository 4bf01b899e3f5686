//! A party that sees only its own columns of its own group has the same task as one that sees everything.

use super::*;
use crate::dataset::{Group as GroupData, Holders, Samples};
use crate::experiment::ClassWeights;
use crate::experiment::{Adaptive, Side};
use crate::group::Turnout;
use crate::objective::Softmax;
use crate::optimiser::Step;
use crate::state::State;
use selvedge_nn::Shape;
use selvedge_nn::simd::Level;

/// Three groups of uneven devices and uneven classes.
fn whole() -> Dataset {
    let group = |m: u32, sizes: &[u32]| {
        let mut offsets = vec![0];
        for size in sizes {
            offsets.push(offsets[offsets.len() - 1] + size);
        }
        let mut samples = Samples::default();
        for row in 0..offsets[sizes.len()] {
            let x = (m * 100 + row) as f32 / 50.0;
            samples.push(&[x, -x], &[x * x], u32::from(row % (m + 2) == 0));
        }
        GroupData {
            name: format!("group {m}"),
            samples,
            offsets: offsets.into(),
        }
    };
    let groups = vec![
        group(0, &[1, 4, 2, 1, 1, 3]),
        group(1, &[2; 9]),
        group(2, &[1, 1, 5]),
    ];
    Dataset {
        name: "test".into(),
        hospital: Shape::Flat(2),
        device: Shape::Flat(1),
        outcome: Outcome::Class,
        classes: vec!["no".into(), "yes".into()],
        test: groups[0].samples.clone(),
        groups,
        validation: Samples::default(),
        holders: Holders::InTurn,
    }
}

/// One layer over both sides.
fn experiment() -> Experiment {
    let mut experiment = Experiment::default();
    let combined = serde_json::from_str(r#"[{"linear": {"out": 2}}]"#);
    experiment.model.combined = Some(combined.unwrap());
    experiment
}

#[test]
fn data_that_is_not_what_it_says_of_itself_is_refused() {
    let refused = |change: &dyn Fn(&mut Dataset), said: &str| {
        let mut data = whole();
        change(&mut data);
        let experiment = experiment();
        let problem = Task::new(&experiment, &data).err().unwrap().to_string();
        assert!(problem.contains(said), "{problem}");
    };
    refused(
        &|d| d.groups[1].samples.push(&[1.0], &[1.0], 0),
        "group 1 (`group 1`): x1 has 37 numbers: expected 19 × 2, for 19 rows of 2 each",
    );
    refused(&|d| d.test.x2.push(0.0), "test: x2 has");
    refused(
        &|d| d.validation.push(&[1.0, 1.0], &[1.0], 2),
        "validation: row 0 has the label 2: expected one below 2",
    );
    refused(
        &|d| d.groups[2].offsets = vec![0, 3, 2, 7].into(),
        "group 2 (`group 2`): offsets must increase from 0 to its 7 rows",
    );
    refused(&|d| d.groups[0].offsets = vec![].into(), "offsets");
    refused(&|d| d.groups.clear(), "no groups");
}

#[test]
fn seams_that_do_not_fit_are_refused() {
    struct Backwards;
    impl Optimiser for Backwards {
        fn remembers(&self, _: usize) -> usize {
            0
        }

        fn step(&self, _: Level, _: Step<'_>, _: &mut [f32]) {}
    }
    let (mut experiment, data) = (experiment(), whole());
    experiment.train.adaptive = Adaptive::Gain;
    let mut task = Task::new(&experiment, &data).unwrap();
    task.check_seams().unwrap();
    task.optimisers.cloud = Box::new(Backwards);
    task.check_seams().unwrap();
    task.optimisers.hospital = Box::new(Backwards);
    assert!(matches!(task.check_seams(), Err(TaskError::Steered)));
    task.objective = Box::new(Softmax::new(3));
    let (wanted, given) = (3, 2);
    let refused = task.check_seams();
    assert!(
        matches!(refused, Err(TaskError::Logits { wanted: w, given: g }) if (w, g) == (wanted, given))
    );
}

/// What a party sees: one side of one group, the offsets alone (an edge), or sizes only (the cloud).
fn seen(whole: &Dataset, own: Option<(usize, Option<Side>)>) -> Dataset {
    let largest = whole.most_samples_of_a_device();
    let groups = whole.groups.iter().enumerate().map(|(m, group)| {
        let (devices, rows) = (group.devices(), group.row_count());
        let hollow = GroupData::hollow(group.name.clone(), devices, rows, largest);
        let Some((_, side)) = own.filter(|(own, _)| *own == m) else {
            return hollow;
        };
        let kept = |of: Side, x: &[f32]| match side == Some(of) {
            true => x.to_vec(),
            false => Vec::new(),
        };
        GroupData {
            samples: Samples {
                x1: kept(Side::Hospital, &group.samples.x1),
                x2: kept(Side::Device, &group.samples.x2),
                y: side.map_or_else(Default::default, |_| group.samples.y.clone()),
            },
            offsets: group.offsets.clone(),
            ..hollow
        }
    });
    Dataset {
        groups: groups.collect(),
        test: Samples::default(),
        ..whole.clone()
    }
}

/// Every party: the cloud, and the edge, the hospital and the devices of each group.
fn parties(groups: usize) -> impl Iterator<Item = Option<(usize, Option<Side>)>> {
    let sides = [None, Some(Side::Hospital), Some(Side::Device)];
    let of_group = move |m: usize| sides.map(|side| Some((m, side)));
    (0..groups).flat_map(of_group).chain([None])
}

#[test]
fn every_party_has_the_same_task() {
    let whole = whole();
    let labels = whole.label_counts();
    assert_eq!(labels.iter().sum::<u64>(), 37);
    let mut experiment = experiment();
    experiment.train.participation = 0.6;
    experiment.train.class_weights = ClassWeights::Balanced;
    experiment.stop.set_target("auc", 0.9);
    for (loss_samples, adaptive) in [(0, Adaptive::Off), (11, Adaptive::Gain)] {
        experiment.train.loss_samples = loss_samples;
        experiment.train.adaptive = adaptive;
        let task = Task::new(&experiment, &whole).unwrap();
        for own in parties(3) {
            let seen = seen(&whole, own);
            assert!(matches!(
                Task::new(&experiment, &seen),
                Err(TaskError::NoTest { key: "stop.auc" })
            ));
            let party = Task::of_party(&experiment, &seen, &labels).unwrap();
            assert_eq!(party.selected, task.selected);
            assert_eq!(
                party.objective.class_weights(),
                task.objective.class_weights()
            );
            assert_eq!(party.sizes(), task.sizes());
            assert_eq!(party.raw_bytes(), task.raw_bytes());
            assert_eq!(party.numbers(), task.numbers());
            assert_eq!(party.segment(), task.segment());
            assert_eq!(party.loss_rows, task.loss_rows);
            assert_eq!(State::initial(&party), State::initial(&task));
            draws_are_the_same(&party, &task, own.map(|(m, _)| m));
        }
    }
}

/// Who is drawn is known to all; which rows that are, to the parties of the group.
fn draws_are_the_same(party: &Task<'_>, task: &Task<'_>, own: Option<usize>) {
    for (m, t) in (0..3).flat_map(|m| [0, 5, 10].map(|t| (m, t))) {
        let [mut theirs, mut true_one] = [Turnout::default(), Turnout::default()];
        theirs.draw(party, m, t);
        true_one.draw(task, m, t);
        assert_eq!(theirs.subset, true_one.subset);
        assert_eq!(theirs.exchanged, true_one.exchanged);
        if own == Some(m) {
            assert_eq!(theirs.rows, true_one.rows);
            assert_eq!(theirs.starts, true_one.starts);
            assert_eq!(theirs.traffic(), true_one.traffic());
        }
    }
}

#[test]
fn all_groups_merged_have_all_rows() {
    let whole = whole();
    let merged = whole.merged();
    assert_eq!(merged.label_counts(), whole.label_counts());
    let seen = seen(&whole, Some((1, Some(Side::Device)))).merged();
    assert_eq!(seen.devices(), merged.devices());
    assert_eq!(seen.training_samples(), merged.training_samples());
    assert_eq!(
        seen.most_samples_of_a_device(),
        merged.most_samples_of_a_device()
    );
}

#[test]
fn hollow_groups_keep_to_their_sizes() {
    for (devices, rows, largest) in [(1, 1, 1), (1, 7, 7), (5, 5, 3), (4, 9, 6), (6, 12, 2)] {
        let group = GroupData::hollow("g".into(), devices, rows, largest);
        assert_eq!((group.devices(), group.row_count()), (devices, rows));
        let sizes: Vec<usize> = (0..devices as u32).map(|n| group.rows(n).len()).collect();
        assert!(
            sizes.iter().all(|size| (1..=largest).contains(size)),
            "{sizes:?}"
        );
        // The largest device fits in whenever the others can have one row each.
        let fits = rows + 1 >= devices + largest;
        assert_eq!(sizes.contains(&largest), fits, "{sizes:?}");
    }
    assert_eq!(GroupData::hollow("g".into(), 0, 0, 1).offsets.at(0), 0);
}

#[test]
fn counts_of_other_classes_are_refused() {
    let (whole, experiment) = (whole(), experiment());
    let refused = Task::of_party(&experiment, &whole, &[1, 2, 3]).err();
    assert_eq!(
        refused.unwrap().to_string(),
        "3 label counts, but the data needs 2: give one count for each answer"
    );
}
