//! The effect of every threshold, and whether probabilities are reliable.

use serde::Serialize;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// False positive rate, or recall.
    pub x: f64,
    /// True positive rate, or precision.
    pub y: f64,
    /// The least probability of the class.
    pub threshold: f32,
}

/// Patients with about the same predicted probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// How many.
    pub samples: u64,
    /// The mean predicted probability.
    pub said: f64,
    /// The share of them that has the class.
    pub observed: f64,
}

/// More points than this nobody sees.
const MOST_POINTS: usize = 500;

/// The true over the false positive rate of one class, from nobody to everybody. Empty without both positives and
/// negatives.
pub fn roc(probabilities: &[f32], labels: &[u32], classes: usize, class: usize) -> Vec<Point> {
    let steps = steps(probabilities, labels, classes, class);
    let Some((_, positives, negatives)) = steps.last().copied().filter(|(_, p, n)| p * n > 0.0)
    else {
        return Vec::new();
    };
    let start = Point {
        x: 0.0,
        y: 0.0,
        threshold: f32::INFINITY,
    };
    let point = |(threshold, p, n): &(f32, f64, f64)| Point {
        x: n / negatives,
        y: p / positives,
        threshold: *threshold,
    };
    thinned(
        std::iter::once(start)
            .chain(steps.iter().map(point))
            .collect(),
    )
}

/// Precision over recall of one class. Empty without patients who have it.
pub fn precision_recall(
    probabilities: &[f32],
    labels: &[u32],
    classes: usize,
    class: usize,
) -> Vec<Point> {
    let steps = steps(probabilities, labels, classes, class);
    let Some(positives) = steps.last().map(|(_, p, _)| *p).filter(|p| *p > 0.0) else {
        return Vec::new();
    };
    let point = |(threshold, p, n): &(f32, f64, f64)| Point {
        x: p / positives,
        y: p / (p + n),
        threshold: *threshold,
    };
    thinned(steps.iter().map(point).collect())
}

/// Every threshold, the largest first, with the positives and negatives at or above it.
fn steps(
    probabilities: &[f32],
    labels: &[u32],
    classes: usize,
    class: usize,
) -> Vec<(f32, f64, f64)> {
    let rows = probabilities.chunks_exact(classes).zip(labels);
    let mut scores: Vec<(f32, bool)> = rows
        .map(|(row, label)| (row[class], *label as usize == class))
        .collect();
    scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut positives, mut negatives) = (0.0, 0.0);
    let mut step = |tied: &[(f32, bool)]| {
        let own = tied.iter().filter(|(_, is)| *is).count() as f64;
        positives += own;
        negatives += tied.len() as f64 - own;
        (tied[0].0, positives, negatives)
    };
    scores.chunk_by(|a, b| a.0 == b.0).map(&mut step).collect()
}

/// The first, the last, and what lies far enough from the one before.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= MOST_POINTS {
        return points;
    }
    let apart = 2.0 / MOST_POINTS as f64;
    let last = points.len() - 1;
    let mut kept: Vec<Point> = Vec::with_capacity(MOST_POINTS + 1);
    for (at, point) in points.into_iter().enumerate() {
        let far = |before: &Point| {
            (point.x - before.x).abs() >= apart || (point.y - before.y).abs() >= apart
        };
        if at == last || kept.last().is_none_or(far) {
            kept.push(point);
        }
    }
    kept
}

/// Patients by the predicted probability of one class, in `bins` ranges of equal width, without empty ones; and the
/// mean absolute difference between predicted and observed.
pub fn reliability(
    probabilities: &[f32],
    labels: &[u32],
    classes: usize,
    class: usize,
    bins: usize,
) -> (Vec<Bin>, f64) {
    let mut sums = vec![(0u64, 0.0, 0u64); bins];
    for (row, label) in probabilities.chunks_exact(classes).zip(labels) {
        let p = f64::from(row[class]);
        let bin = &mut sums[((p * bins as f64) as usize).min(bins - 1)];
        bin.0 += 1;
        bin.1 += p;
        bin.2 += u64::from(*label as usize == class);
    }
    let bins: Vec<Bin> = sums
        .into_iter()
        .filter(|(samples, ..)| *samples > 0)
        .map(|(samples, said, observed)| Bin {
            samples,
            said: said / samples as f64,
            observed: observed as f64 / samples as f64,
        })
        .collect();
    let miss = |bin: &Bin| bin.samples as f64 * (bin.said - bin.observed).abs();
    let error = bins.iter().map(miss).sum::<f64>() / labels.len().max(1) as f64;
    (bins, error)
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::assess::{Decision, Scored};

    #[test]
    fn the_area_under_the_curve_is_the_measure() {
        let (rows, labels) = said(9, 5000, 2);
        // Without ties a curve has many points and is thinned.
        let rows: Vec<f32> = rows
            .chunks(2)
            .zip(0..)
            .flat_map(|(row, n)| {
                let p = (row[1] + n as f32 * 1e-7).clamp(0.0, 1.0);
                [1.0 - p, p]
            })
            .collect();
        let points = roc(&rows, &labels, 2, 1);
        assert!(points.len() <= MOST_POINTS + 1);
        let trapezia: f64 = points
            .windows(2)
            .map(|pair| (pair[1].x - pair[0].x) * (pair[1].y + pair[0].y) / 2.0)
            .sum();
        let auc = Scored::new(&rows, &labels, (2, Some(1)), Decision::Largest).measures()[0];
        assert!((trapezia - auc).abs() < 2e-3, "{trapezia} {auc}");
        assert_eq!((points[0].x, points[0].y), (0.0, 0.0));
        let last = points.last().unwrap();
        assert_eq!((last.x, last.y), (1.0, 1.0));
    }

    #[test]
    fn precision_and_recall_by_hand() {
        let p = [0.9f32, 0.6, 0.4];
        let rows: Vec<f32> = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
        let points = precision_recall(&rows, &[1, 0, 1], 2, 1);
        let xy: Vec<(f64, f64)> = points.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(xy, [(0.5, 1.0), (0.5, 0.5), (1.0, 2.0 / 3.0)]);
        assert!(precision_recall(&rows, &[0; 3], 2, 1).is_empty());
        assert!(roc(&rows, &[1; 3], 2, 1).is_empty());
    }

    #[test]
    fn what_is_said_and_what_is_so() {
        let rows: Vec<f32> = [0.95f32, 0.92, 0.1, 0.1]
            .iter()
            .flat_map(|p| [1.0 - p, *p])
            .collect();
        let (bins, error) = reliability(&rows, &[1, 0, 0, 0], 2, 1, 10);
        assert_eq!(bins.iter().map(|b| b.samples).collect::<Vec<_>>(), [2, 2]);
        assert_eq!([bins[0].observed, bins[1].observed], [0.0, 0.5]);
        assert!((error - (0.1 * 2.0 + 0.435 * 2.0) / 4.0).abs() < 1e-6);
    }
}
