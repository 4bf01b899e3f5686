//! Records that are lost, or of before: whoever has lost what, the group goes back to the last aggregation, or all
//! groups to the one that the cloud knows, and the run is the loop's.

use super::*;

/// So often in one run.
const MOST: usize = 4;

/// A world in which some that die come back with an early record, or with none.
fn forgets(seed: u64, parties: impl Fn(&mut Stream, &World<'_>) -> Vec<Party>) -> usize {
    let mut stream = stream(seed);
    let (mut experiment, dataset) = any_experiment(&mut stream, seed);
    let train = &mut experiment.train;
    // What compression, optimisers and defences remember cannot be had again.
    (train.algorithm, train.adaptive) = (Algorithm::Hsgd, Adaptive::Off);
    experiment.compression = Default::default();
    let defence = &mut experiment.defence;
    (defence.device_limit, defence.embedding_limit) = (0.0, 0.0);
    (defence.reversal, defence.quarantine) = (0.0, 0);
    // Nor is it known what a group had sent that is left out.
    defence.group_limit = 0.0;
    experiment.attack = AttackSettings::default();
    let o = &mut experiment.optimiser;
    (o.hospital, o.edge, o.cloud) = Default::default();
    let experiment = checked(&experiment);
    let own = task(&experiment, &dataset);
    let mut world = World::new(&own, &dataset, &mut stream);
    let (mut early, mut lost) = (world.records.clone(), 0);
    let weather = Weather {
        doubled: 10,
        lost: 5,
        ..Weather::default()
    };
    for step in 0.. {
        assert!(step < 100_000, "the world stands still: {}", doing(&world));
        if world.is_over() {
            break;
        }
        if step % 97 == 50 {
            early = world.records.clone();
        }
        // Who has heard of the end exits, and does not come back.
        let nobody_ends = world.roles.values().all(|role| !role.has_ended());
        if step % 97 == 96 && lost < MOST && nobody_ends {
            for party in parties(&mut stream, &world) {
                match early.get(&party).filter(|_| stream.below(2) == 0) {
                    Some(record) => _ = world.records.insert(party, record.clone()),
                    None => _ = world.records.remove(&party),
                }
                lost += 1;
                world.begin(party);
                let all: Vec<Party> = world.roles.keys().copied().collect();
                for other in all {
                    world.happen(other, Event::Appeared(party), false);
                }
            }
        }
        world.step(&mut stream, weather);
    }
    let looped = run(&own);
    let state = world.cloud().state();
    assert_eq!(world.ending.as_ref(), Some(&looped.ending));
    assert!(
        model_bits(&state.theta) == model_bits(&looped.last.theta),
        "the models differ"
    );
    assert_eq!(state.progress.ledger, looped.last.progress.ledger);
    let evaluations: Vec<_> = world.evaluations.values().cloned().collect();
    assert_eq!(evaluations, looped.log.evaluations);
    lost
}

fn doing(world: &World<'_>) -> String {
    let said = |(party, role): (&Party, &Role<'_>)| {
        let doing = role.doing();
        format!(
            "{party}: t = {}, {}, {:?}\n",
            doing.t, doing.what, doing.missing
        )
    };
    world.roles.iter().map(said).collect()
}

#[test]
fn a_group_that_has_lost_a_record_goes_back_and_the_run_is_the_same() {
    let mut lost = 0;
    for_seeds(0..200, |seed| {
        lost += forgets(seed, |stream, world| {
            let m = stream.below(world.home.gateways.len() as u64) as usize;
            match stream.below(3) {
                0 => vec![Party::Hospital(m)],
                1 => vec![Party::Edge(m)],
                _ => vec![Party::Edge(m), Party::Hospital(m)],
            }
        });
    });
    assert!(replayed().is_some() || lost > 200, "{lost}");
}

#[test]
fn groups_go_back_to_a_cloud_that_has_lost_its_record() {
    let mut lost = 0;
    for_seeds(0..200, |seed| {
        lost += forgets(seed, |_, _| vec![Party::Cloud]);
    });
    assert!(replayed().is_some() || lost > 100, "{lost}");
}
