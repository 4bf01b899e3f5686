//! What must not matter: the order of groups and devices, and who takes no part.

mod common;

use common::reference::theta;
use common::{
    Chosen, Missing, Phase, Plan, TANH, absences, absent, assert_near, assert_same_state, checked,
    dataset, experiment, for_seeds, run, stream, task, within,
};
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::experiment::{ClassWeights, Experiment};
use selvedge_core::run::Ending;
use selvedge_core::selection::{Draw, Selection, Uniform};

fn weighted(mut e: Experiment) -> Experiment {
    e.train.weight_decay = 0.03;
    e.train.class_weights = ClassWeights::Listed(vec![0.7, 1.6]);
    checked(&e)
}

/// The group with its devices in another order: device n is what device `order[n]` was.
fn reordered(group: &Group, data: &Dataset, order: &[u32]) -> Group {
    let [len1, len2] = [data.hospital.len(), data.device.len()];
    let (mut samples, mut offsets) = (Samples::default(), vec![0]);
    for &device in order {
        for row in group.rows(device) {
            let s = &group.samples;
            samples.push(
                &s.x1[row * len1..][..len1],
                &s.x2[row * len2..][..len2],
                s.y.classes()[row],
            );
        }
        offsets.push(samples.len() as u32);
    }
    Group {
        name: group.name.clone(),
        samples,
        offsets: offsets.into(),
    }
}

#[test]
fn the_order_of_groups_and_devices_changes_nothing_beyond_rounding() {
    for_seeds(0..8, |seed| {
        let mut draw = stream(seed);
        let mut e = weighted(experiment(seed, [24, 6, 3], TANH));
        e.time.shared_uplink = seed % 2 == 0;
        let mut plan = Plan::of_groups(&[100, 8, 5, 13]);
        plan.devices
            .iter_mut()
            .flatten()
            .for_each(|n| *n = within(&mut draw, 1..4) as usize);
        let data = dataset(seed, &plan);
        let chances = [0.15, 0.15, 0.2];

        let mut of_groups: Vec<usize> = (0..data.groups.len()).collect();
        draw.shuffle(&mut of_groups);
        let of_devices: Vec<Vec<u32>> = of_groups
            .iter()
            .map(|m| {
                let mut order: Vec<u32> = (0..data.groups[*m].devices() as u32).collect();
                draw.shuffle(&mut order);
                order
            })
            .collect();
        let groups = of_groups
            .iter()
            .zip(&of_devices)
            .map(|(m, order)| reordered(&data.groups[*m], &data, order));
        let other = Dataset {
            groups: groups.collect(),
            ..data.clone()
        };

        let mut straight = task(&e, &data);
        straight.absences = absences(seed, chances);
        let mut permuted = task(&e, &other);
        let (groups, devices, e_seed) = (of_groups.clone(), of_devices.clone(), e.seed);
        permuted.selection = Box::new(Chosen(move |draw: Draw| {
            let m = groups[draw.group];
            let mut subset = Vec::new();
            Uniform.select(
                Draw::new(e_seed, m, draw.t, draw.devices, draw.count),
                &mut subset,
            );
            let chosen = |n: &u32| subset.contains(&devices[draw.group][*n as usize]);
            (0..draw.devices as u32).filter(chosen).collect()
        }));
        let (groups, devices) = (of_groups, of_devices);
        permuted.absences = Box::new(Missing(move |t, m: usize, phase| {
            let phase = match phase {
                Phase::Exchange(n) => Phase::Exchange(devices[m][n as usize]),
                Phase::Upload(n) => Phase::Upload(devices[m][n as usize]),
                Phase::Global => Phase::Global,
            };
            absent(seed, chances, t, groups[m], phase)
        }));

        let (a, b) = (run(&straight), run(&permuted));
        assert_eq!(a.log.states.len(), b.log.states.len());
        for (a, b) in a.log.states.iter().zip(&b.log.states) {
            let start = theta(&straight.architecture.initial(e.seed));
            assert_near(
                &theta(&b.theta),
                &theta(&a.theta),
                &start,
                &format!("t = {}", a.progress.t),
            );
        }
        assert_eq!(a.last.progress.ledger, b.last.progress.ledger);
        let [a, b] = [a, b].map(|run| run.last.progress.clock.seconds());
        assert!((a - b).abs() < 1e-9 * a, "{a} and {b} seconds");
    });
}

#[test]
fn nan_in_a_device_that_takes_no_part_changes_nothing() {
    for_seeds(0..6, |seed| {
        let e = weighted(experiment(seed, [18, 6, 3], TANH));
        let mut plan = Plan::of_groups(&[9, 6, 40]);
        plan.devices[1].fill(2);
        let clean = dataset(seed, &plan);
        // The last two devices of a group are never drawn; the first is drawn, but misses every exchange.
        let mut poisoned = clean.clone();
        let mut good_rows = Vec::new();
        for (m, group) in poisoned.groups.iter_mut().enumerate() {
            let devices = group.devices() as u32;
            let bad: Vec<usize> = [0, devices - 2, devices - 1]
                .into_iter()
                .flat_map(|n| group.rows(n))
                .collect();
            for (i, row) in bad.iter().enumerate() {
                let poison = [f32::NAN, f32::INFINITY][(seed as usize + i) % 2];
                group.samples.x1[row * 3..][..3].fill(poison);
                group.samples.x2[row * 2..][..2].fill(f32::NAN);
            }
            let rows = 0..clean.groups[m].samples.len() as u32;
            good_rows.push(
                rows.filter(|row| !bad.contains(&(*row as usize)))
                    .collect::<Vec<u32>>(),
            );
        }
        let trained = |data: &Dataset| {
            let mut task = task(&e, data);
            task.loss_rows = Some(good_rows.clone());
            task.selection = Box::new(Chosen(|draw: Draw| {
                let mut order: Vec<u32> = (1..draw.devices as u32 - 2).collect();
                draw.key.stream().shuffle(&mut order);
                order.truncate(draw.count - 1);
                order.push(0);
                order.sort_unstable();
                order
            }));
            task.absences = Box::new(Missing(|_, _, phase| phase == Phase::Exchange(0)));
            run(&task)
        };
        let (a, b) = (trained(&clean), trained(&poisoned));
        assert_eq!(
            (&a.ending, &b.ending),
            (&Ending::Finished, &Ending::Finished)
        );
        for (a, b) in a.log.states.iter().zip(&b.log.states) {
            assert_same_state(a, b, "clean and poisoned");
        }
        assert_eq!(a.log.evaluations, b.log.evaluations);
        // The poison is strong enough: drawn once, it is everywhere, unless what arrives is checked.
        let mut drawn = task(&e, &poisoned);
        drawn.loss_rows = Some(good_rows.clone());
        drawn.selection = Box::new(Chosen(|draw: Draw| (0..draw.count as u32).collect()));
        assert_eq!(run(&drawn).ending, Ending::Finished);
        drawn.judges = false;
        assert!(matches!(run(&drawn).ending, Ending::Diverged { .. }));
    });
}

#[test]
fn subsets_differ_between_groups_intervals_and_seeds_and_have_the_right_size() {
    let data = dataset(1, &Plan::of_groups(&[50, 50, 1, 7]));
    let subsets = |seed| {
        let mut e = experiment(seed, [12, 4, 2], TANH);
        e.train.participation = 0.2;
        let run = run(&task(&e, &data));
        for parts in &run.log.parts {
            assert_eq!(
                parts.iter().map(|p| p.subset.len()).collect::<Vec<_>>(),
                [10, 10, 1, 1]
            );
        }
        run.log
            .parts
            .iter()
            .flat_map(|p| [p[0].subset.clone(), p[1].subset.clone()])
            .collect::<Vec<_>>()
    };
    let mut all = [subsets(1), subsets(2)].concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2 * 2 * 6, "no subset of 10 in 50 comes twice");
}
