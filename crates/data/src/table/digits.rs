//! What is lost of the numbers of a column, of which about seven digits are kept.

/// Where more than this share of what a column's numbers differ by is lost, it is said.
const MOST_LOST: f64 = 0.01;

/// The numbers of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digits {
    low: f64,
    high: f64,
    /// The most that one has lost.
    lost: f64,
}

impl Default for Digits {
    fn default() -> Self {
        Digits {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            lost: 0.0,
        }
    }
}

impl Digits {
    /// Notes a number and what is kept of it.
    pub(super) fn note(&mut self, number: f64, kept: f32) {
        (self.low, self.high) = (self.low.min(number), self.high.max(number));
        self.lost = self.lost.max((number - f64::from(kept)).abs());
    }

    /// What a user should know of a column whose differences are lost.
    pub(super) fn lost(&self, column: &str) -> Option<String> {
        let (low, high) = (self.low, self.high);
        (low < high && self.lost > MOST_LOST * (high - low)).then(|| {
            if low.abs().max(high.abs()) < f64::from(f32::MIN_POSITIVE) {
                return format!(
                    "{column:?}: numbers between {low:e} and {high:e} are too small to be told apart: use a larger unit"
                );
            }
            format!(
                "{column:?}: numbers between {low} and {high} differ in digits that are lost, since about seven are kept: subtract {low} from all of them"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(numbers: &[f64]) -> bool {
        let mut digits = Digits::default();
        numbers.iter().for_each(|n| digits.note(*n, *n as f32));
        digits.lost("x").is_some()
    }

    #[test]
    fn differences_in_the_last_digits_are_lost() {
        assert!(lost(&[1e9, 1e9 + 1.0]));
        assert!(!lost(&[1e9, 2e9]));
        assert!(!lost(&[0.1, 0.2, 0.30001]));
        assert!(!lost(&[1e9 + 1.0, 1e9 + 1.0]), "none to lose");
        assert!(!lost(&[]));
        let mut tiny = Digits::default();
        for n in [4e-300, 5e-300] {
            tiny.note(n, 0.0);
        }
        let said = tiny.lost("x").unwrap();
        assert_eq!(
            said,
            "\"x\": numbers between 4e-300 and 5e-300 are too small to be told apart: use a larger unit"
        );
    }
}
