use super::*;
use crate::outcome::interval;
use selvedge_nn::random::{Key, Stream};

const LEVEL: fn() -> Level = Level::detect;

/// What is said of some patients and what is true of them, for each kind of outcome.
fn judged(
    objective: &dyn Objective,
    rows: usize,
    target: fn(&mut Stream) -> Vec<f32>,
) -> (Vec<f32>, Targets) {
    let mut stream = Key::new(11).stream();
    let n = objective.logits();
    let (mut answers, mut targets) = (vec![0.0; rows * n], Targets::default());
    for out in answers.chunks_exact_mut(n) {
        let logits: Vec<f32> = (0..n).map(|_| 2.0 * stream.normal()).collect();
        objective.answer(LEVEL(), &logits, out);
        targets.push(Target::Numbers(&target(&mut stream)));
    }
    (answers, targets)
}

fn metrics_of(objective: &dyn Objective, answers: &[f32], targets: &Targets) -> Metrics {
    let mut tally = Tally::new(objective.layout());
    objective.count(&mut tally, answers, targets);
    assert!(tally.is_of(targets.len() as u64));
    objective.metrics(&tally)
}

fn near(found: Option<f64>, expected: f64, by: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < by, "{found} and {expected}");
}

/// The share of pairs in which the first is above the second, ties counting half.
fn share_above(pairs: impl Iterator<Item = (f32, f32)>) -> f64 {
    let won = |(a, b): (f32, f32)| {
        if a == b {
            0.5
        } else {
            f64::from(u8::from(a > b))
        }
    };
    let all: Vec<f64> = pairs.map(won).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn labels_are_judged_by_what_is_known() {
    let objective = Sigmoids::new(2);
    let (answers, targets) = judged(&objective, 400, |stream| {
        let known = |stream: &mut Stream| match stream.below(3) {
            0 => f32::NAN,
            y => (y - 1) as f32,
        };
        vec![known(stream), known(stream)]
    });
    let found = metrics_of(&objective, &answers, &targets);
    let of = |label: usize, truth: f32| -> Vec<f32> {
        let rows = answers
            .chunks_exact(2)
            .zip(targets.numbers().chunks_exact(2));
        let own = rows.filter(|(_, y)| y[label] == truth);
        own.map(|(p, _)| p[label]).collect()
    };
    let auc = |label: usize| {
        let (yes, no) = (of(label, 1.0), of(label, 0.0));
        share_above(yes.iter().flat_map(|a| no.iter().map(|b| (*a, *b))))
    };
    near(found.auc, (auc(0) + auc(1)) / 2.0, 1e-3);
    let right = |p: &f32, y: f32| usize::from((*p > 0.5) == (y == 1.0));
    let (mut hits, mut known) = (0, 0);
    for (label, truth) in [(0, 0.0), (0, 1.0), (1, 0.0), (1, 1.0)] {
        let scores = of(label, truth);
        hits += scores.iter().map(|p| right(p, truth)).sum::<usize>();
        known += scores.len();
    }
    near(found.accuracy, hits as f64 / known as f64, 1e-12);
    assert!(known < 800 && found.auprc.is_some() && found.micro_auc.is_some());
}

#[test]
fn average_precision_of_labels_is_that_of_its_definition() {
    let objective = Sigmoids::new(1);
    let targets = Targets::Numbers {
        each: 1,
        values: vec![1.0, 0.0, 1.0, 0.0],
    };
    let found = metrics_of(&objective, &[0.9, 0.8, 0.7, 0.1], &targets);
    near(found.auprc, (1.0 + 2.0 / 3.0) / 2.0, 1e-12);
    near(found.auc, 0.75, 1e-12);
}

#[test]
fn a_quantity_is_judged_in_its_own_unit() {
    let objective = Number::new(selvedge_nn::loss::Distance::Squared, 10.0, 4.0);
    let (answers, targets) = judged(&objective, 300, |stream| vec![10.0 + 4.0 * stream.normal()]);
    let found = metrics_of(&objective, &answers, &targets);
    let pairs = || {
        answers
            .iter()
            .zip(targets.numbers())
            .map(|(a, y)| (f64::from(*a), f64::from(*y)))
    };
    let n = 300.0;
    near(
        found.mae,
        pairs().map(|(a, y)| (a - y).abs()).sum::<f64>() / n,
        1e-5,
    );
    let squares = pairs().map(|(a, y)| (a - y).powi(2)).sum::<f64>() / n;
    near(found.rmse, squares.sqrt(), 1e-5);
    let mean = pairs().map(|(_, y)| y).sum::<f64>() / n;
    let variance = pairs().map(|(_, y)| (y - mean).powi(2)).sum::<f64>() / n;
    near(found.r2, 1.0 - squares / variance, 1e-6);
    // Nobody knows what share of no variance is explained.
    let one = Targets::Numbers {
        each: 1,
        values: vec![3.0],
    };
    assert_eq!(metrics_of(&objective, &[3.0], &one).r2, None);
}

#[test]
fn survival_is_judged_by_pairs_and_by_what_is_known_at_each_end() {
    let ends = vec![10.0, 20.0, 40.0];
    let objective = Hazards::new(ends.clone());
    let (answers, targets) = judged(&objective, 200, |stream| {
        vec![
            50.0 * stream.uniform(),
            f32::from(u8::from(stream.uniform() < 0.5)),
        ]
    });
    let found = metrics_of(&objective, &answers, &targets);
    let patients: Vec<(&[f32], (usize, bool))> = answers
        .chunks_exact(3)
        .zip(targets.numbers().chunks_exact(2))
        .map(|(curve, known)| (curve, interval(&ends, [known[0], known[1]])))
        .collect();
    let pairs = patients.iter().flat_map(|(a, (first, event))| {
        let later = patients
            .iter()
            .filter(move |(_, (survived, _))| *event && survived > first);
        later.map(|(b, _)| (crate::metrics::risk(a), crate::metrics::risk(b)))
    });
    near(found.concordance, share_above(pairs), 2e-3);
    let brier = |end: usize| {
        let known = patients
            .iter()
            .filter(|(_, (survived, event))| *event || *survived > end);
        let squares: Vec<f64> = known
            .map(|(curve, (survived, _))| {
                let truth = f64::from(u8::from(*survived > end));
                (f64::from(curve[end]) - truth).powi(2)
            })
            .collect();
        squares.iter().sum::<f64>() / squares.len() as f64
    };
    near(found.brier, (brier(0) + brier(1) + brier(2)) / 3.0, 1e-9);
    assert!(
        answers
            .chunks_exact(3)
            .all(|curve| curve.is_sorted_by(|a, b| a >= b))
    );
}

#[test]
fn tallies_of_groups_add_up_and_perfect_ones_are_perfect() {
    type Kind = (Box<dyn Objective>, fn(&mut Stream) -> Vec<f32>);
    let objectives: [Kind; 3] = [
        (Box::new(Sigmoids::new(1)), |s| vec![s.below(2) as f32]),
        (
            Box::new(Number::new(selvedge_nn::loss::Distance::Squared, 0.0, 1.0)),
            |s| vec![s.normal()],
        ),
        (Box::new(Hazards::new(vec![1.0, 2.0])), |s| {
            vec![3.0 * s.uniform(), s.below(2) as f32]
        }),
    ];
    for (objective, target) in &objectives {
        let (answers, targets) = judged(&**objective, 100, *target);
        let n = objective.logits();
        let mut whole = Tally::new(objective.layout());
        objective.count(&mut whole, &answers, &targets);
        let mut sum = Tally::new(objective.layout());
        for rows in [30..100u32, 0..30] {
            let rows: Vec<u32> = rows.collect();
            let some = &answers[rows[0] as usize * n..][..rows.len() * n];
            let mut part = Tally::new(objective.layout());
            objective.count(&mut part, some, &targets.of(&rows));
            sum.merge(&part);
        }
        assert_eq!(sum, whole);
        let perfect = whole.perfect();
        assert!(perfect.is_of(100));
        let Metrics {
            auc,
            r2,
            concordance,
            ..
        } = objective.metrics(&perfect);
        assert_eq!(
            auc.or(r2).or(concordance),
            Some(1.0),
            "{}",
            objective.name()
        );
        assert!(!whole.is_of(99));
    }
}
