//! A cloud that sends one group another θ: its parties stop, and say why.

use super::*;

fn cautious(seed: u64) -> (Experiment, Dataset) {
    let (mut experiment, dataset) = any_experiment(&mut stream(seed), seed);
    experiment.attack = AttackSettings::default();
    experiment.train.algorithm = Algorithm::Hsgd;
    experiment.compression = Default::default();
    experiment.train.learning_rate = 0.01;
    experiment.train.iterations = 6 * experiment.train.global_interval;
    experiment.defence.download = 20.0;
    (checked(&experiment), dataset)
}

#[test]
fn zeros_are_not_taken_for_a_model_and_an_honest_cloud_is_believed() {
    let mut refused = 0;
    for_seeds(0..60, |seed| {
        let (experiment, dataset) = cautious(seed);
        let task = task(&experiment, &dataset);
        let mut stream = stream(seed);
        let mut world = World::new(&task, &dataset, &mut stream);
        let weather = Weather {
            doubled: 10,
            lost: 5,
            ..Weather::default()
        };
        world.run(&mut stream, weather);
        assert_eq!(world.stops, []);

        let mut world = World::new(&task, &dataset, &mut stream);
        let from = 2 * experiment.train.global_interval;
        world.zeros = Some((0, from));
        let mut steps = 0;
        while world.stops.is_empty() && !world.is_over() && steps < 20_000 {
            world.step(&mut stream, Weather::default());
            steps += 1;
        }
        let Some((party, why)) = world.stops.first() else {
            // A run may end before, at a model of before, or hardly have moved from its start.
            return;
        };
        assert!(
            matches!(party, Party::Hospital(0) | Party::Edge(0)),
            "{party}"
        );
        assert!(
            why.contains("is not taken") && why.contains("defence.download = 20"),
            "{why}"
        );
        refused += 1;
    });
    assert!(replayed().is_some() || refused > 30, "{refused}");
}
