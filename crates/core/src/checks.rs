//! What arrives is checked before anything is made of it: numbers that are not finite, and steps that are much longer than
//! those of the others, are left out, and who sent them is absent for that phase.
//!
//! What one party sends must not end the run for all. But if most of what arrives is not finite, the run itself has
//! diverged, and everything is taken as it is, so that this is seen.

use serde::{Deserialize, Serialize};

/// Why what a party sent is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It has numbers that are not finite.
    NotFinite,
    /// It is much longer than what the others sent.
    TooLong,
    /// It goes the wrong way: see [`reversal`](crate::reversal).
    Reversed,
    /// Its scores are unlike those of the others: see [`Evaluation::without`](crate::state::Evaluation::without).
    Implausible,
    /// The party has sent too much of that kind.
    Quarantined,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::NotFinite => "not finite",
            Reason::TooLong => "too long",
            Reason::Reversed => "reversed",
            Reason::Implausible => "implausible",
            Reason::Quarantined => "in quarantine",
        })
    }
}

/// Whether all numbers are finite: their exponents are not all ones.
pub(crate) fn are_finite(numbers: &[f32]) -> bool {
    const EXPONENT: u32 = 0x7f80_0000;
    let broken = |x: &f32| u32::from(x.to_bits() & EXPONENT == EXPONENT);
    // Without a way out in between, so that many numbers are looked at together.
    let stretches = numbers.chunks(1024);
    let any = |stretch: &[f32]| stretch.iter().fold(0, |any, x| any | broken(x)) != 0;
    !{ stretches }.any(any)
}

/// The length of a step, squared: of `to − from`, or of `to` itself. The same whatever computes it, since the order of
/// additions is fixed. Not finite if a number is not.
pub(crate) fn squared_length(to: &[f32], from: Option<&[f32]>) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let mut add = |to: &[f32], from: &[f32]| {
        for (sum, (to, from)) in sums.iter_mut().zip(to.iter().zip(from)) {
            let x = f64::from(*to) - f64::from(*from);
            *sum += x * x;
        }
    };
    match from {
        Some(from) => to
            .chunks(LANES)
            .zip(from.chunks(LANES))
            .for_each(|(a, b)| add(a, b)),
        None => to.chunks(LANES).for_each(|a| add(a, &[0.0; LANES])),
    }
    sums.iter().sum()
}

/// What a group knows of how far θ may go from one aggregation to the next: its own steps, of which the aggregated step
/// is a mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reach {
    /// The length of its own longest step, squared.
    pub(crate) longest: f64,
}

impl Reach {
    /// It has stepped from the last θ so far, squared.
    pub(crate) fn stepped(&mut self, length: f64) {
        if length.is_finite() {
            self.longest = self.longest.max(length);
        }
    }

    /// What is wrong with θ at `t`, if it is so far from the last, squared, which was `aggregations` ago.
    pub(crate) fn refuses(
        &self,
        length: f64,
        limit: f64,
        (t, aggregations): (u64, u64),
    ) -> Option<String> {
        let most = limit * aggregations as f64;
        // Not finite is too far as well.
        let is_near = length <= most * most * self.longest;
        if limit == 0.0 || self.longest == 0.0 || is_near {
            return None;
        }
        let times = libm::sqrt(length / self.longest);
        Some(format!(
            "the cloud's θ of t = {t} is not taken: it is {times:.0} times as far from the last one as this party's own \
             longest step, and defence.download = {limit} allows {most}; ask who runs the cloud before this party is \
             started again"
        ))
    }
}

/// What is wrong with arrivals, given the squared length and the weight of each. `limit` is how many times the usual
/// length is too long; with 0 none is. What is usual follows from the median.
pub(crate) fn judge(
    arrivals: &[(u64, f64)],
    limit: f64,
    usual: impl FnOnce(f64) -> f64,
) -> Vec<Option<Reason>> {
    let all: u128 = arrivals.iter().map(|(weight, _)| u128::from(*weight)).sum();
    let broken = arrivals.iter().filter(|(_, length)| !length.is_finite());
    let broken: u128 = broken.map(|(weight, _)| u128::from(*weight)).sum();
    if 2 * broken > all {
        return vec![None; arrivals.len()];
    }
    let usual = if limit > 0.0 {
        usual(median(arrivals))
    } else {
        0.0
    };
    let too_long = |length: f64| usual > 0.0 && length > limit * limit * usual;
    let of = |(_, length): &(u64, f64)| match length.is_finite() {
        false => Some(Reason::NotFinite),
        true => too_long(*length).then_some(Reason::TooLong),
    };
    arrivals.iter().map(of).collect()
}

/// The lower median of the finite ones of some lengths.
fn median(arrivals: &[(u64, f64)]) -> f64 {
    let finite = arrivals.iter().map(|(_, length)| *length);
    let mut lengths: Vec<f64> = finite.filter(|length| length.is_finite()).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    let at = lengths.len().saturating_sub(1) / 2;
    lengths.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_found_wherever_they_are() {
        for length in [0, 1, 5, 1024, 3000] {
            let mut numbers = vec![f32::MAX; length];
            assert!(are_finite(&numbers));
            for at in (0..length).step_by(97) {
                for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    numbers[at] = broken;
                    assert!(!are_finite(&numbers));
                    assert!(!squared_length(&numbers, None).is_finite());
                }
                numbers[at] = f32::MIN_POSITIVE / 4.0;
            }
            assert!(are_finite(&numbers));
        }
    }

    #[test]
    fn a_length_is_that_of_the_difference() {
        let (a, b): (Vec<f32>, Vec<f32>) = (0..21).map(|i| (i as f32, (2 * i) as f32)).unzip();
        let expected: f64 = (0..21).map(|i| f64::from(i * i)).sum();
        assert_eq!(squared_length(&b, Some(&a)), expected);
        assert_eq!(squared_length(&a, None), expected);
        // Not beyond what f64 holds.
        assert!(squared_length(&[f32::MAX; 1000], Some(&[f32::MIN; 1000])).is_finite());
    }

    #[test]
    fn a_few_are_left_out_but_not_the_most() {
        let judged = |lengths: &[f64], limit| {
            let arrivals: Vec<(u64, f64)> = lengths.iter().map(|x| (1, *x)).collect();
            judge(&arrivals, limit, |median| median)
        };
        let (none, broken, long) = (None, Some(Reason::NotFinite), Some(Reason::TooLong));
        let lengths = [1.0, f64::NAN, 2.0, 1.5, 900.0];
        assert_eq!(judged(&lengths, 0.0), [none, broken, none, none, none]);
        assert_eq!(judged(&lengths, 10.0), [none, broken, none, none, long]);
        assert_eq!(judged(&[f64::NAN, f64::INFINITY, 1.0], 1.0), [none; 3]);
        assert_eq!(judged(&[f64::NAN, 1.0], 1.0), [broken, none]);
        assert_eq!(
            judged(&[0.0, 0.0, 0.0, 0.0, 1.0], 2.0),
            [none; 5],
            "nothing to compare with"
        );
        // By weight: one group may be most of the devices.
        assert_eq!(
            judge(&[(10, f64::NAN), (3, 1.0), (4, 1.0)], 1.0, |m| m),
            [none; 3]
        );
    }
}
