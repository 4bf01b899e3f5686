//! Who was in quarantine is heard again when an operator says so at a restart.

use super::*;

#[test]
fn who_is_pardoned_at_a_restart_is_heard_again() {
    let mut pardoned = 0;
    for_seeds(0..80, |seed| {
        let mut stream = stream(seed);
        let (mut experiment, dataset) = any_experiment(&mut stream, seed);
        if dataset.groups.len() < 3 {
            return;
        }
        experiment.train.algorithm = Algorithm::Hsgd;
        experiment.train.adaptive = Adaptive::Off;
        experiment.compression = Default::default();
        experiment.train.iterations = 12 * experiment.train.global_interval;
        experiment.defence.quarantine = 2;
        experiment.attack = AttackSettings {
            kind: AttackKind::NotANumber,
            hospitals: 1,
            ..AttackSettings::default()
        };
        let experiment = checked(&experiment);
        let task = task(&experiment, &dataset);
        let mut world = World::new(&task, &dataset, &mut stream);
        let quarantined =
            |world: &World<'_>| world.cloud().state().progress.quarantined_groups(&task);
        let mut steps = 0;
        // Until that is decided, and kept.
        let is_kept = |world: &World<'_>| {
            !quarantined(world).is_empty() && world.cloud().doing().what.contains("have uploaded")
        };
        while !is_kept(&world) && !world.is_over() && steps < 20_000 {
            world.step(&mut stream, Weather::default());
            steps += 1;
        }
        let [group] = quarantined(&world)[..] else {
            return;
        };
        world.begin(Party::Cloud);
        assert_eq!(
            quarantined(&world),
            [group],
            "a restart alone changes nothing"
        );
        world.pardoned = vec![group as u32];
        world.begin(Party::Cloud);
        assert!(quarantined(&world).is_empty());
        pardoned += 1;
    });
    assert!(replayed().is_some() || pardoned > 5, "{pardoned}");
}
