//! How much a measure would vary with other patients: bootstrap confidence intervals over resampled patients.

use super::{MEASURES, Scored};
use rayon::prelude::*;
use selvedge_nn::random::Key;
use serde::Serialize;

const WORD: u64 = u64::from_be_bytes(*b"resample");

/// The parameters of the bootstrap.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap {
    /// The number of resamples.
    pub resamples: usize,
    /// The confidence level of an interval.
    pub confidence: f64,
    /// The result depends on it and on nothing else, not on threads.
    pub seed: u64,
}

/// A measure and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Its value over all patients.
    pub value: f64,
    /// Its bounds; nothing where it rests on one patient or all resamples give the same: nobody knows how much others
    /// differ.
    pub interval: Option<[f64; 2]>,
}

impl Bootstrap {
    /// Every measure that is defined. Rows with the same number in `persons` belong to one patient and are resampled
    /// together; without numbers each row is a different patient.
    pub fn estimate(&self, scored: &Scored, persons: &[u32]) -> [Option<Estimate>; MEASURES.len()] {
        let weighted = |weights: &[u32]| scored.weighted(weights).to_vec();
        let rows = (scored.len(), persons);
        let estimates = self.resampled(rows, &scored.patients(persons), weighted);
        std::array::from_fn(|at| estimates[at])
    }

    /// Every value that is defined of those that `weighted` gives, by how often each row counts. An interval needs more
    /// than one of the patients that its value rests on.
    pub(super) fn resampled(
        &self,
        (rows, persons): (usize, &[u32]),
        patients: &[usize],
        weighted: impl Fn(&[u32]) -> Vec<f64> + Sync,
    ) -> Vec<Option<Estimate>> {
        let of_person = rows_by_person(persons);
        let values = weighted(&vec![1; rows]);
        let drawn: Vec<Vec<f64>> = (0..self.resamples as u64)
            .into_par_iter()
            .map_init(
                || vec![0; rows],
                |weights, number| {
                    let key = Key::new(self.seed).with(WORD).with(number);
                    draw(key, &of_person, weights);
                    weighted(weights)
                },
            )
            .collect();
        let of = |(at, value): (usize, &f64)| {
            let mut column: Vec<f64> = drawn
                .iter()
                .map(|m| m[at])
                .filter(|v| !v.is_nan())
                .collect();
            column.sort_unstable_by(f64::total_cmp);
            let beyond = (1.0 - self.confidence) / 2.0;
            let interval = [quantile(&column, beyond), quantile(&column, 1.0 - beyond)];
            let is_known = patients[at] > 1 && interval[0] < interval[1];
            (!value.is_nan()).then_some(Estimate {
                value: *value,
                interval: is_known.then_some(interval),
            })
        };
        values.iter().enumerate().map(of).collect()
    }
}

/// The rows of each patient; nothing where each row is of another.
fn rows_by_person(persons: &[u32]) -> Vec<Vec<u32>> {
    let mut numbers: Vec<(u32, u32)> = persons.iter().copied().zip(0..).collect();
    numbers.sort_unstable();
    let rows = |of_one: &[(u32, u32)]| of_one.iter().map(|(_, row)| *row).collect();
    numbers.chunk_by(|a, b| a.0 == b.0).map(rows).collect()
}

/// Counts how often each row is drawn.
fn draw(key: Key, of_person: &[Vec<u32>], weights: &mut [u32]) {
    weights.fill(0);
    let mut stream = key.stream();
    match of_person.len() {
        0 => {
            let rows = weights.len() as u64;
            for _ in 0..rows {
                weights[stream.below(rows) as usize] += 1;
            }
        }
        patients => {
            for _ in 0..patients {
                for row in &of_person[stream.below(patients as u64) as usize] {
                    weights[*row as usize] += 1;
                }
            }
        }
    }
}

/// Between the two values that lie around the share.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - place.floor())
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::assess::Decision;

    const BOOTSTRAP: Bootstrap = Bootstrap {
        resamples: 2000,
        confidence: 0.95,
        seed: 1,
    };

    /// The variance of an area by DeLong, DeLong and Clarke-Pearson: from how each positive fares against all
    /// negatives, and each negative against all positives.
    fn delong(rows: &[f32], labels: &[u32]) -> f64 {
        let scores = |class: u32| -> Vec<f32> {
            let own = labels.iter().enumerate().filter(|(_, l)| **l == class);
            own.map(|(row, _)| rows[2 * row + 1]).collect()
        };
        let (positives, negatives) = (scores(1), scores(0));
        let won = |p: f32, n: f32| match p.total_cmp(&n) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let of_positive =
            |p: &f32| mean(&negatives.iter().map(|n| won(*p, *n)).collect::<Vec<_>>());
        let of_negative =
            |n: &f32| mean(&positives.iter().map(|p| won(*p, *n)).collect::<Vec<_>>());
        let variance = |values: Vec<f64>| {
            let centre = mean(&values);
            let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
            squares / (values.len() - 1) as f64 / values.len() as f64
        };
        variance(positives.iter().map(of_positive).collect())
            + variance(negatives.iter().map(of_negative).collect())
    }

    #[test]
    fn the_interval_of_the_area_is_as_wide_as_delong_says() {
        let (rows, labels) = said(3, 600, 2);
        let scored = Scored::new(&rows, &labels, (2, Some(1)), Decision::Largest);
        let auc = BOOTSTRAP.estimate(&scored, &[])[0].unwrap();
        let expected = 2.0 * 1.96 * delong(&rows, &labels).sqrt();
        let [low, high] = auc.interval.unwrap();
        let width = high - low;
        assert!((width / expected - 1.0).abs() < 0.08, "{width} {expected}");
        assert!(low < auc.value && auc.value < high);
    }

    #[test]
    fn rows_of_one_patient_are_drawn_together() {
        // Each patient ten times over: as sure as with one row each, not as with ten patients.
        let (rows, labels) = said(4, 100, 2);
        let scored = Scored::new(&rows, &labels, (2, Some(1)), Decision::Largest);
        let once = BOOTSTRAP.estimate(&scored, &[])[0].unwrap();
        let (rows, labels) = (rows.repeat(10), labels.repeat(10));
        let persons: Vec<u32> = (0..100).collect::<Vec<_>>().repeat(10);
        let scored = Scored::new(&rows, &labels, (2, Some(1)), Decision::Largest);
        let often = BOOTSTRAP.estimate(&scored, &persons)[0].unwrap();
        let alone = BOOTSTRAP.estimate(&scored, &[])[0].unwrap();
        let width = |e: Estimate| {
            let [low, high] = e.interval.unwrap();
            high - low
        };
        assert!((width(often) / width(once) - 1.0).abs() < 0.1);
        assert!(width(alone) < 0.5 * width(once));
    }

    #[test]
    fn of_one_patient_there_is_no_interval() {
        // True 1 said 0.9 and 0.4, true 0 said 0.3.
        let rows = [0.1, 0.9, 0.6, 0.4, 0.7, 0.3];
        let scored = Scored::new(&rows, &[1, 1, 0], (2, Some(1)), Decision::Largest);
        let known = |persons: &[u32]| {
            let estimates = BOOTSTRAP.estimate(&scored, persons);
            let known = |e: &Option<Estimate>| e.is_some_and(|e| e.interval.is_some());
            assert!(estimates.iter().all(Option::is_some));
            estimates.iter().map(known).collect::<Vec<_>>()
        };
        let all = known(&[]);
        let of = |name: &str| {
            MEASURES
                .iter()
                .position(|measure| *measure == name)
                .unwrap()
        };
        for (name, is_known) in [
            ("sensitivity", true),
            ("specificity", false),
            ("positive_predictive_value", false),
            ("negative_predictive_value", true),
            ("auc", false),
            ("accuracy", true),
            ("recall", false),
        ] {
            assert_eq!(all[of(name)], is_known, "{name}");
        }
        assert!(
            !known(&[7, 7, 8])[of("sensitivity")],
            "one patient with two rows"
        );
        assert!(known(&[7, 7, 8])[of("accuracy")]);
        assert!(!known(&[7, 7, 7]).contains(&true));
        // All answers are right in each resample.
        let scored = Scored::new(&rows, &[1, 0, 0], (2, Some(1)), Decision::Largest);
        let accuracy = BOOTSTRAP.estimate(&scored, &[])[of("accuracy")].unwrap();
        assert_eq!((accuracy.value, accuracy.interval), (1.0, None));
    }

    #[test]
    fn threads_change_nothing() {
        let (rows, labels) = said(5, 200, 3);
        let scored = Scored::new(&rows, &labels, (3, None), Decision::Largest);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| BOOTSTRAP.estimate(&scored, &[]))
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[7.0], 0.025), 7.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
