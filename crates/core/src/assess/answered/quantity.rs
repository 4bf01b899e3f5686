//! Measures of a quantity.

use super::{Agreement, Answered};

/// Its measures; where a quantile was learnt, one more follows.
pub(super) const MEASURES: [&str; 7] = [
    "mae",
    "rmse",
    "r2",
    "median_absolute_error",
    "bias",
    "correlation",
    "loss",
];

impl Answered<'_> {
    pub(super) fn of_quantity(&self, weights: &[u32], loss: f64) -> Vec<f64> {
        let truth = self.targets.numbers();
        let pairs = || {
            let each = self.answers.iter().zip(truth).zip(weights);
            each.map(|((said, y), w)| (f64::from(*said), f64::from(*y), f64::from(*w)))
        };
        let all: f64 = pairs().map(|(_, _, w)| w).sum();
        let over =
            |of: &dyn Fn(f64, f64) -> f64| pairs().map(|(a, y, w)| w * of(a, y)).sum::<f64>() / all;
        let (said, so) = (over(&|a, _| a), over(&|_, y| y));
        let squares = over(&|a, y| (a - y) * (a - y));
        let variance = over(&|_, y| (y - so) * (y - so));
        let of_said = over(&|a, _| (a - said) * (a - said));
        let both = over(&|a, y| (a - said) * (y - so));
        let mut errors: Vec<(f64, f64)> = pairs()
            .filter(|(_, _, w)| *w > 0.0)
            .map(|(a, y, w)| ((a - y).abs(), w))
            .collect();
        errors.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut before = 0.0;
        let middle = errors.iter().find(|(_, weight)| {
            before += weight;
            2.0 * before >= all
        });
        let defined = |value: f64, is: bool| if is { value } else { f64::NAN };
        let mut values = vec![
            over(&|a, y| (a - y).abs()),
            squares.sqrt(),
            defined(1.0 - squares / variance, variance > 0.0),
            middle.map_or(f64::NAN, |(error, _)| *error),
            said - so,
            defined(
                both / (variance * of_said).sqrt(),
                variance > 0.0 && of_said > 0.0,
            ),
            loss,
        ];
        if self.quantile.is_some() {
            values.push(over(&|a, y| f64::from(u8::from(y <= a))));
        }
        values
    }

    pub(super) fn agreement_of_quantity(&self) -> Vec<Agreement> {
        let known = self.targets.numbers();
        let said = self.answers.iter().map(|said| f64::from(*said));
        self.grouped(said.enumerate().collect(), &self.names[0], &|rows| {
            rows.iter().map(|row| f64::from(known[*row])).sum::<f64>() / rows.len() as f64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::value;
    use super::*;
    use crate::outcome::{Outcome, Targets};

    #[test]
    fn a_quantity_has_the_measures_of_its_definitions() {
        let outcome = Outcome::Quantity {
            mean: 2.0,
            deviation: 1.0,
        };
        let names = ["days".to_owned()];
        let targets = Targets::Numbers {
            each: 1,
            values: vec![1.0, 2.0, 3.0, 6.0],
        };
        let answers = [2.0, 2.0, 2.0, 4.0];
        let answered = Answered::new(
            (&outcome, &names),
            &answers,
            &targets,
            vec![0.0; 4],
            Some(0.5),
        );
        assert_eq!(value(&answered, "mae"), 1.0);
        assert_eq!(value(&answered, "bias"), -0.5);
        assert_eq!(value(&answered, "median_absolute_error"), 1.0);
        assert_eq!(value(&answered, "share_below"), 0.5);
        assert!((value(&answered, "r2") - (1.0 - 1.5 / 3.5)).abs() < 1e-12);
    }
}
