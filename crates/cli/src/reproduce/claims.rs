//! Whether an ordering that the paper claims holds here: pairs of runs with the same seed, and a paired test.

use serde::{Deserialize, Serialize};

/// What was found of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The same ordering, beyond chance.
    Holds,
    /// The opposite ordering, beyond chance.
    Reversed,
    /// Neither beyond chance.
    Open,
    /// Nobody got there.
    Unreached,
}

impl Verdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Reversed => "REVERSED",
            Verdict::Open => "no difference shown",
            Verdict::Unreached => "neither reaches it",
        }
    }
}

/// Two algorithms' costs over the same seeds. A cost is nothing where the target was not reached: more than any number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Seeds in which the first needs less.
    pub(crate) less: usize,
    /// Seeds in which it needs more.
    pub(crate) more: usize,
    pub(crate) seeds: usize,
    /// The geometric mean of first / second over the seeds in which both get there.
    pub(crate) ratio: Option<f64>,
    /// Of a paired t test on logarithms where both get there with every seed, else of a sign test; two-sided.
    pub(crate) p: f64,
    /// Whether it is of a sign test.
    pub(crate) by_signs: bool,
}

/// Below this, a difference is beyond chance.
pub(crate) const LEVEL: f64 = 0.05;

/// A smaller difference is none, however sure: two algorithms that need the same iterations differ by a fixed few
/// bytes.
const VISIBLE: f64 = 0.02;

/// Compares costs, seed by seed.
pub(crate) fn compare(first: &[Option<f64>], second: &[Option<f64>]) -> Comparison {
    let infinite = |cost: &Option<f64>| cost.unwrap_or(f64::INFINITY);
    let pairs: Vec<(f64, f64)> = first
        .iter()
        .zip(second)
        .map(|(a, b)| (infinite(a), infinite(b)))
        .collect();
    let less = pairs.iter().filter(|(a, b)| a < b).count();
    let more = pairs.iter().filter(|(a, b)| a > b).count();
    let both = pairs.iter().filter(|(a, b)| a.is_finite() && b.is_finite());
    // What costs nothing has no logarithm; a byte or a second more changes no finding.
    let logs: Vec<f64> = both
        .map(|(a, b)| libm::log((a + 1e-9) / (b + 1e-9)))
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    let by_signs = logs.len() < pairs.len() || pairs.len() < 2;
    Comparison {
        less,
        more,
        seeds: pairs.len(),
        ratio: (!logs.is_empty()).then(|| libm::exp(mean)),
        p: match by_signs {
            true => sign_test(less, more),
            false => paired_t(&logs),
        },
        by_signs,
    }
}

impl Comparison {
    /// Whether the first needs less, as claimed.
    pub(crate) fn verdict(&self, claimed_less: bool) -> Verdict {
        let (with, against) = match claimed_less {
            true => (self.less, self.more),
            false => (self.more, self.less),
        };
        if with + against == 0 && self.ratio.is_none() {
            return Verdict::Unreached;
        }
        // With every seed on one side a sign test of five cannot do better: that counts as a finding.
        let all = self.seeds >= 5 && with.max(against) == self.seeds;
        let one_sided = self.by_signs && all;
        let visible = self.by_signs || self.ratio.is_none_or(|r| libm::log(r).abs() > VISIBLE);
        match ((self.p < LEVEL && visible) || one_sided, with.cmp(&against)) {
            (true, std::cmp::Ordering::Greater) => Verdict::Holds,
            (true, std::cmp::Ordering::Less) => Verdict::Reversed,
            _ => Verdict::Open,
        }
    }

    /// `0.48 ×, less in 5 of 5 seeds, p 0.0002`
    pub(crate) fn text(&self) -> String {
        let ratio = self.ratio.map_or(String::new(), |r| format!("{r:.2} ×, "));
        let p = match self.p {
            p if p < 1e-4 => "p < 0.0001".to_owned(),
            p => format!("p {p:.4}"),
        };
        format!("{ratio}less in {} of {} seeds, {p}", self.less, self.seeds)
    }
}

/// Two-sided p of a paired t test that the mean is zero.
fn paired_t(differences: &[f64]) -> f64 {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    if mean.abs() < 1e-12 {
        return 1.0;
    }
    if error < 1e-12 * mean.abs() {
        return 0.0;
    }
    let t = mean / error;
    // P(|T| > t) = I(ν / (ν + t²); ν/2, 1/2)
    let nu = n - 1.0;
    incomplete_beta(nu / (nu + t * t), nu / 2.0, 0.5)
}

/// Two-sided p of as many signs one way and the other, ties left out.
fn sign_test(less: usize, more: usize) -> f64 {
    let (n, few) = (less + more, less.min(more));
    let mut term = 0.5_f64.powi(n as i32);
    let mut sum = 0.0;
    for k in 0..=few {
        sum += term;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    (2.0 * sum).min(1.0)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's method).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = libm::exp(
        ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * libm::log(x) + b * libm::log(1.0 - x),
    ) / a;
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// ln Γ of multiples of one half, which is all that is asked for: by Γ(x + 1) = x Γ(x), down to 1 or 1/2.
fn ln_gamma(x: f64) -> f64 {
    let mut sum = 0.0;
    let mut x = x;
    while x > 1.0 {
        x -= 1.0;
        sum += libm::log(x);
    }
    match x < 0.75 {
        true => sum + libm::log(std::f64::consts::PI.sqrt()),
        false => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Student's distribution from its closed forms for one and two degrees, and from printed tables.
    #[test]
    fn p_values_are_those_of_students_distribution() {
        let two_sided = |t: f64, nu: f64| incomplete_beta(nu / (nu + t * t), nu / 2.0, 0.5);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-4, "{a} {b}");
        close(two_sided(1.0, 1.0), 0.5);
        close(two_sided(2.0_f64.sqrt(), 2.0), 1.0 - 2.0_f64.sqrt() / 2.0);
        close(two_sided(2.776_445, 4.0), 0.05);
        close(two_sided(4.604_095, 4.0), 0.01);
        close(two_sided(2.262_157, 9.0), 0.05);
        close(two_sided(0.0, 4.0), 1.0);
    }

    #[test]
    fn signs_are_counted_as_coins() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(sign_test(5, 0), 2.0 / 32.0);
        close(sign_test(4, 1), 12.0 / 32.0);
        close(sign_test(3, 3), 1.0);
        close(sign_test(0, 0), 1.0);
    }

    #[test]
    fn verdicts_follow_the_seeds() {
        let costs = |values: &[f64]| values.iter().map(|v| Some(*v)).collect::<Vec<_>>();
        let a = costs(&[1.0, 1.1, 0.9, 1.0, 1.05]);
        let b = costs(&[2.0, 2.1, 1.9, 2.2, 2.0]);
        let found = compare(&a, &b);
        assert_eq!((found.less, found.more), (5, 0));
        assert!(found.p < 0.001 && (found.ratio.unwrap() - 0.49).abs() < 0.02);
        assert_eq!(found.verdict(true), Verdict::Holds);
        assert_eq!(found.verdict(false), Verdict::Reversed);

        let mixed = costs(&[2.0, 0.5, 1.9, 0.4, 1.2]);
        assert_eq!(compare(&a, &mixed).verdict(true), Verdict::Open);

        let never = vec![None; 5];
        assert_eq!(compare(&a, &never).verdict(true), Verdict::Holds);
        assert_eq!(compare(&never, &never).verdict(true), Verdict::Unreached);
        let few = compare(&costs(&[1.0, 1.0]), &costs(&[2.0, 30.0]));
        assert_eq!((few.less, few.verdict(true)), (2, Verdict::Open));
        assert_eq!(
            compare(&a[..1], &never[..1]).verdict(true),
            Verdict::Open,
            "one seed"
        );
        let same = compare(&a, &a);
        assert_eq!((same.verdict(true), same.p), (Verdict::Open, 1.0));
    }
}
