//! Measures of labels.

use super::{Agreement, Answered, surprise};
use crate::assess::mean;
use crate::metrics::{area, average_precision};

/// Of all labels together; two of each follow.
pub(super) const MEASURES: [&str; 7] = [
    "auc",
    "auprc",
    "micro_auc",
    "micro_auprc",
    "accuracy",
    "loss",
    "brier",
];

impl Answered<'_> {
    pub(super) fn of_labels(&self, weights: &[u32], loss: f64) -> Vec<f64> {
        let n = self.names.len();
        let known = self.targets.numbers();
        let count = |label: usize, tied: &[u32]| {
            let mut split = (0u64, 0u64);
            for row in tied {
                let weight = u64::from(weights[*row as usize]);
                let y = known[*row as usize * n + label];
                match y > 0.5 {
                    _ if y.is_nan() => {}
                    true => split.0 += weight,
                    false => split.1 += weight,
                }
            }
            split
        };
        let curve = |label: usize| -> Vec<(u64, u64)> {
            let tied = self.rankings[label].tied();
            tied.map(|tied| count(label, tied)).collect()
        };
        let curves: Vec<Vec<(u64, u64)>> = (0..n).map(curve).collect();
        let auc: Vec<Option<f64>> = curves
            .iter()
            .map(|curve| area(&mut curve.iter().copied()))
            .collect();
        let auprc: Vec<Option<f64>> = curves
            .iter()
            .map(|curve| average_precision(&mut curve.iter().copied()))
            .collect();
        // All labels of all patients in one list.
        let mut pooled: Vec<(f32, (u64, u64))> = Vec::new();
        let (mut right, mut squares, mut all) = (0.0, 0.0, 0.0);
        for (row, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0) {
            for label in 0..n {
                let (p, y) = (self.answers[row * n + label], known[row * n + label]);
                if y.is_nan() {
                    continue;
                }
                let weight = u64::from(*weight);
                let yes = y > 0.5;
                let split = if yes { (weight, 0) } else { (0, weight) };
                pooled.push((p, split));
                all += weight as f64;
                right += weight as f64 * f64::from(u8::from((p > 0.5) == yes));
                squares += weight as f64 * (f64::from(p) - f64::from(y)).powi(2);
            }
        }
        pooled.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let add = |(a, b): (u64, u64), (c, d): (u64, u64)| (a + c, b + d);
        let tied = pooled.chunk_by(|a, b| a.0 == b.0);
        let pooled: Vec<(u64, u64)> = tied
            .map(|tied| tied.iter().fold((0, 0), |sum, (_, split)| add(sum, *split)))
            .collect();
        let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let mut values = vec![
            or_nan(mean(auc.iter().copied().filter(Option::is_some))),
            or_nan(mean(auprc.iter().copied().filter(Option::is_some))),
            or_nan(area(&mut pooled.iter().copied())),
            or_nan(average_precision(&mut pooled.iter().copied())),
            right / all,
            loss,
            squares / all,
        ];
        for (auc, auprc) in auc.into_iter().zip(auprc) {
            values.push(or_nan(auc));
            values.push(or_nan(auprc));
        }
        values
    }

    pub(super) fn agreement_of_labels(&self) -> Vec<Agreement> {
        let (known, rows, n) = (self.targets.numbers(), self.targets.len(), self.names.len());
        let of_label = |label: usize| {
            let there = (0..rows).filter(move |row| !known[row * n + label].is_nan());
            let pairs = there.map(move |row| (row, f64::from(self.answers[row * n + label])));
            self.grouped(pairs.collect(), &self.names[label], &|rows| {
                let yes = rows.iter().map(|row| f64::from(known[row * n + label]));
                yes.sum::<f64>() / rows.len() as f64
            })
        };
        (0..n).flat_map(of_label).collect()
    }
}

/// The negative logarithm of the likelihood of what is known, as a mean over all labels.
pub(super) fn loss(said: &[f32], known: &[f32]) -> f64 {
    let each = said.iter().zip(known).filter(|(_, y)| !y.is_nan());
    let terms = each.map(|(p, y)| {
        let p = f64::from(*p);
        surprise(if *y > 0.5 { p } else { 1.0 - p })
    });
    terms.sum::<f64>() / known.len() as f64
}
