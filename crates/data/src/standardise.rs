//! Standardisation: mean 0 and variance 1, from training rows only.
//!
//! A [`Scale`] is measured once, on values in a fixed order and in `f64`, and then applied to every
//! row, the held-out ones included; they must not take part in the measuring.

/// A mean and a deviation: the numbers that standardise one column, or a whole table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    mean: f64,
    deviation: f64,
}

impl Scale {
    /// Measures `values` (twice: squares are taken around the mean, which loses no digits).
    ///
    /// Where nothing varies the deviation is 1, so that a constant becomes 0 and not NaN.
    pub(crate) fn of(values: impl Iterator<Item = f32> + Clone) -> Self {
        let (mut count, mut sum) = (0u64, 0.0);
        for value in values.clone() {
            count += 1;
            sum += f64::from(value);
        }
        let count = count.max(1) as f64;
        let mean = sum / count;
        let squares: f64 = values
            .map(|v| (f64::from(v) - mean) * (f64::from(v) - mean))
            .sum();
        let deviation = (squares / count).sqrt();
        Scale {
            mean,
            deviation: if deviation > 0.0 { deviation } else { 1.0 },
        }
    }

    /// One standardised value.
    pub(crate) fn apply(self, value: f32) -> f32 {
        ((f64::from(value) - self.mean) / self.deviation) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_zero_variance_one() {
        let values = [1.0f32, 2.0, 3.0, 6.0];
        let scale = Scale::of(values.iter().copied());
        assert_eq!(
            scale,
            Scale {
                mean: 3.0,
                deviation: 3.5f64.sqrt()
            }
        );
        let scaled = values.map(|v| f64::from(scale.apply(v)));
        assert!(scaled.iter().sum::<f64>().abs() < 1e-6);
        assert!((scaled.iter().map(|v| v * v).sum::<f64>() - 4.0).abs() < 1e-6);
    }

    #[test]
    fn a_constant_becomes_zero() {
        let scale = Scale::of([7.5f32; 3].iter().copied());
        assert_eq!(scale.apply(7.5), 0.0);
        assert_eq!(scale.apply(8.5), 1.0);
    }

    #[test]
    fn a_far_away_mean_does_not_spoil_the_deviation() {
        let scale = Scale::of([1e7f32, 1e7 + 1.0, 1e7 + 2.0].iter().copied());
        assert!((scale.deviation - (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn no_values_at_all_change_nothing() {
        assert_eq!(Scale::of(std::iter::empty()).apply(2.0), 2.0);
    }
}
