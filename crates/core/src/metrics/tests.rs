use super::*;
use selvedge_nn::random::Key;

/// Probabilities that lean towards the label.
fn scored(seed: u64, n: usize, classes: usize) -> (Vec<f32>, Vec<u32>) {
    let mut stream = Key::new(seed).stream();
    let labels: Vec<u32> = (0..n)
        .map(|_| stream.below(classes as u64) as u32)
        .collect();
    let mut rows = Vec::new();
    for &label in &labels {
        let mut row: Vec<f32> = (0..classes).map(|_| stream.uniform() + 0.01).collect();
        row[label as usize] += 0.4;
        let sum: f32 = row.iter().sum();
        rows.extend(row.iter().map(|x| x / sum));
    }
    (rows, labels)
}

/// All pairs, one by one.
fn brute_force_auc(rows: &[f32], labels: &[u32], classes: usize, class: usize) -> f64 {
    let score = |i: usize| rows[i * classes + class];
    let (mut won, mut pairs) = (0.0, 0.0);
    for i in (0..labels.len()).filter(|&i| labels[i] as usize == class) {
        for j in (0..labels.len()).filter(|&j| labels[j] as usize != class) {
            pairs += 1.0;
            won += match score(i).total_cmp(&score(j)) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    won / pairs
}

#[test]
fn the_histogram_is_near_the_exact_area_and_that_is_all_pairs() {
    for (seed, classes) in [(1, 2), (2, 5)] {
        let (mut rows, labels) = scored(seed, 300, classes);
        rows[..classes * 20]
            .iter_mut()
            .for_each(|p| *p = 1.0 / classes as f32);
        let mut tally = Tally::new(Layout::classes(classes));
        tally.add(&rows, &labels);
        let exact = tally.exact_metrics(&rows, &labels).auc.unwrap();
        let pairs = (0..classes)
            .map(|c| brute_force_auc(&rows, &labels, classes, c))
            .sum::<f64>();
        assert!((exact - pairs / classes as f64).abs() < 1e-12);
        assert!((tally.metrics().auc.unwrap() - exact).abs() < 1e-3);
    }
}

#[test]
fn merged_tallies_are_the_tally_of_all() {
    let (rows, labels) = scored(3, 100, 3);
    let mut whole = Tally::new(Layout::classes(3));
    whole.add(&rows, &labels);
    let (mut a, mut b) = (
        Tally::new(Layout::classes(3)),
        Tally::new(Layout::classes(3)),
    );
    a.add(&rows[..120], &labels[..40]);
    b.add(&rows[120..], &labels[40..]);
    a.merge(&b);
    assert_eq!(a, whole);
}

#[test]
fn a_sum_of_losses_is_the_same_in_any_order() {
    let mut stream = Key::new(4).stream();
    let losses: Vec<f64> = (0..1000)
        .map(|_| f64::from(stream.uniform()).powi(-3))
        .collect();
    let sum = |losses: &mut dyn Iterator<Item = &f64>| {
        let mut sum = LossSum::default();
        losses.for_each(|loss| sum.add(*loss));
        sum
    };
    let forward = sum(&mut losses.iter());
    assert_eq!(forward, sum(&mut losses.iter().rev()));
    let halves = sum(&mut losses[500..].iter()).merged(sum(&mut losses[..500].iter()));
    assert_eq!(forward, halves);
    let plain = losses.iter().sum::<f64>() / 1000.0;
    assert!((forward.mean() - plain).abs() < 1e-12 * plain);
    let mut with_hole = forward;
    with_hole.add(f64::NAN);
    assert!(!with_hole.mean().is_finite() && with_hole.samples() == 1001);
    assert!(LossSum::default().mean().is_nan());
}

#[test]
fn precision_recall_f1_and_accuracy_by_hand() {
    let mut tally = Tally::new(Layout::classes(3));
    // True 0 guessed 0, true 0 guessed 1, true 1 guessed 1; nobody is 2: what it would add to a mean, nobody knows.
    tally.add(&[0.8, 0.1, 0.1, 0.1, 0.8, 0.1, 0.2, 0.7, 0.1], &[0, 0, 1]);
    let m = tally.metrics();
    assert_eq!([m.precision, m.recall, m.f1], [None; 3]);
    assert!((m.accuracy.unwrap() - 2.0 / 3.0).abs() < 1e-12);
    // True 2 guessed 0: nobody is said to be 2, which counts as 0.
    tally.add(&[0.6, 0.2, 0.2], &[2]);
    let m = tally.metrics();
    let means = [
        (0.5 + 0.5) / 3.0,
        (0.5 + 1.0) / 3.0,
        (0.5 + 2.0 / 3.0) / 3.0,
    ];
    for (found, mean) in [m.precision, m.recall, m.f1].into_iter().zip(means) {
        assert!((found.unwrap() - mean).abs() < 1e-12);
    }
    assert_eq!(m.accuracy, Some(0.5));
    assert_eq!(tally.confusion()[0], [1, 1, 0]);
}

#[test]
fn no_negatives_no_area() {
    let mut tally = Tally::new(Layout::classes(2));
    tally.add(&[0.8, 0.2], &[0]);
    assert_eq!(tally.metrics().auc, None);
    assert_eq!(tally.metrics().f1, None);
    assert_eq!(Tally::new(Layout::classes(2)).metrics().accuracy, None);
}
