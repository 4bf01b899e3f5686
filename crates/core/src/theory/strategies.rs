//! The paper's adaptive strategies.
//!
//! **Strategy 1: how many exchanges in a global interval.** With Q = P/Λ, Γ ≤ Ξ is 96(P/Λ)²ρ²η²δ² ≤ Ξ − 4Δ/(ηT) −
//! 12Pρηδ², so Λ ≥ 4√6·Pρηδ/√(Ξ − 4Δ/(ηT) − 12Pρηδ²). The bill grows with Λ at fixed P: the smallest Λ that is allowed
//! is best.
//!
//! **Strategy 2: P = Q.** With P = Q, C = Z·T/Q, Z being the bytes of an exchange and a global aggregation together,
//! and
//!
//! ```text
//! Γ·C/Z = 4Δ/(ηQ) + 12ρηδ²T + 96Qρ²η²δ²T
//! d/dQ  = −4Δ/(ηQ²) + 96ρ²η²δ²T = 0      ⇒      Q* = √(Δ/(24ρ²η³δ²T))
//! ```
//!
//! The paper's own derivative says so too, but it prints η² under the root, where η³ belongs. (The printed root is not
//! even dimensionless: ρη and ηδ²T/Δ are, ρ²η²δ²T/Δ is not.) At η = 0.01 it is ten times too small. [`Root::Printed`]
//! gives it for comparison.
//!
//! **Strategy 3: η for given P and Q.** Within one global interval the loss falls by at least cη − bη² − aη³, with a =
//! 24Q²Pρ²δ², b = 3P²ρδ², c = P‖∇F‖²/4. The best η is the positive root of 3aη² + 2bη − c; written as 1/(β + √(β² +
//! 3α)) with β = b/c and α = a/c it loses no digits where b² ≫ ac.

use super::bill::{Bill, Counter};
use super::bound::{Constants, Setting};
use serde::{Deserialize, Serialize};

/// Λ* of strategy 1, rounded up to a divisor of P: how many exchanges there are in a global interval so that Γ stays
/// below `wanted`. Nothing if no Λ does.
///
/// ```
/// use selvedge_core::theory::{bound::{Constants, Setting}, strategies::exchanges};
/// let problem = Constants { drop: 1.0, rho: 1.0, variance: 1.0 };
/// let setting = Setting { global_interval: 12.0, local_interval: 12.0, learning_rate: 0.01, iterations: 1000.0 };
/// assert_eq!(exchanges(&problem, setting, 2.0), Some(3)); // Q = 4: 0.4 + 1.44 + 0.15
/// assert_eq!(exchanges(&problem, setting, 1.0), None);
/// ```
pub fn exchanges(problem: &Constants, setting: Setting, wanted: f64) -> Option<u64> {
    let p = setting.global_interval;
    let bound = problem.bound(setting);
    let room = wanted - bound.start - bound.noise;
    if room <= 0.0 {
        return None;
    }
    // 96Q²ρ²η²δ² at Q = P.
    let rho_eta = problem.rho * setting.learning_rate;
    let at_most = 96.0 * (p * rho_eta).powi(2) * problem.variance;
    let least = (at_most / room).sqrt().ceil().max(1.0);
    let p = p as u64;
    (least as u64..=p).find(|lambda| p.is_multiple_of(*lambda))
}

/// Γ may be so many times what it would be if hospital and devices exchanged at every iteration.
pub const ALLOWED: f64 = 1.1;

/// Strategy 1's two conditions for P = Q: one exchange in a global interval is enough (Λ* ≤ 1), and exchanges cost
/// enough of the bytes (B ≥ 2·n1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EqualityCheck {
    /// Λ* for Γ ≤ [`ALLOWED`] times its value at Q = 1; nothing if P itself is too large for it.
    pub exchanges: Option<u64>,
    /// B ≥ 2·n1
    pub exchanges_weigh: bool,
}

impl EqualityCheck {
    /// The conditions at P = Q and η, with so many iterations left.
    pub fn new(problem: &Constants, bill: &Bill, (interval, rate): (f64, f64), left: u64) -> Self {
        let often = Setting {
            global_interval: interval,
            local_interval: 1.0,
            learning_rate: rate,
            iterations: left.max(1) as f64,
        };
        let wanted = ALLOWED * problem.bound(often).total();
        EqualityCheck {
            exchanges: exchanges(problem, often, wanted),
            exchanges_weigh: bill.favours_equal_intervals(),
        }
    }

    /// Whether strategy 1 concludes P = Q.
    pub fn concludes(&self) -> bool {
        self.exchanges == Some(1) && self.exchanges_weigh
    }
}

/// `P = Q (Λ* 1, B ≥ 2·n1)`
impl std::fmt::Display for EqualityCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lambda = match self.exchanges {
            Some(lambda) => lambda.to_string(),
            None => "> P".into(),
        };
        let sign = if self.exchanges_weigh { '≥' } else { '<' };
        let but = if self.concludes() {
            ""
        } else {
            ", though strategy 1 does not conclude it"
        };
        write!(f, "P = Q{but} (Λ* {lambda}, B {sign} 2·n1)")
    }
}

/// Which root strategy 2 takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    /// √(Δ/(24ρ²η³δ²T)), where the derivative is zero.
    Corrected,
    /// √(Δ/(24ρ²η²δ²T)), as the paper prints it.
    Printed,
}

/// The real Q* = P* of strategy 2.
pub fn best_interval(problem: &Constants, learning_rate: f64, iterations: f64, root: Root) -> f64 {
    let power = match root {
        Root::Corrected => 3,
        Root::Printed => 2,
    };
    let under = 24.0 * problem.rho.powi(2) * learning_rate.powi(power) * problem.variance;
    (problem.drop / (under * iterations)).sqrt()
}

/// What strategy 2 chooses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EqualIntervals {
    /// Q = P
    pub interval: u64,
    /// Before it was clipped and made whole.
    pub real: f64,
    /// Whether the bound holds there: η ≤ 1/(8Pρ).
    pub is_valid: bool,
}

/// Q* of strategy 2 as a whole number: clipped to [1, 1/(8ρη)], where the bound holds, and then the better of its
/// neighbours by Γ·C. Where ρη > 1/8 no interval is allowed: 1, and the bound does not hold.
pub fn equal_intervals(
    problem: &Constants,
    bill: &Bill,
    learning_rate: f64,
    iterations: f64,
    root: Root,
) -> EqualIntervals {
    let real = best_interval(problem, learning_rate, iterations, root);
    let most = 1.0 / (8.0 * problem.rho * learning_rate);
    if most.is_nan() || most < 1.0 {
        return EqualIntervals {
            interval: 1,
            real,
            is_valid: false,
        };
    }
    let clipped = real.clamp(1.0, most.min(iterations).floor().max(1.0));
    let product = |q: f64| {
        let setting = Setting {
            global_interval: q,
            local_interval: q,
            learning_rate,
            iterations,
        };
        problem.bound(setting).total() * bill.iteration(Counter::Paper, q, q)
    };
    let (below, above) = (clipped.floor(), clipped.ceil());
    let interval = match product(above) < product(below) {
        true => above,
        false => below,
    };
    EqualIntervals {
        interval: interval as u64,
        real,
        is_valid: true,
    }
}

/// η* of strategy 3 for P, Q and G = ‖∇F‖ at the last global aggregation: the root, or 1/(8Pρ) where that is less.
pub fn best_rate(problem: &Constants, p: f64, q: f64, gradient: f64) -> f64 {
    root_of_rate(problem, p, q, gradient).min(problem.largest_rate(p))
}

/// η2, the positive root of 3aη² + 2bη − c; infinite where nothing is noisy, as large as can be where G is zero.
pub fn root_of_rate(problem: &Constants, p: f64, q: f64, gradient: f64) -> f64 {
    let squared = gradient * gradient;
    if squared == 0.0 {
        return f64::INFINITY;
    }
    let Constants { rho, variance, .. } = *problem;
    let beta = 12.0 * p * rho * variance / squared;
    let alpha = 96.0 * (q * rho).powi(2) * variance / squared;
    1.0 / (beta + (beta * beta + 3.0 * alpha).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Widths;

    fn draw(state: &mut u64, low: f64, high: f64) -> f64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let unit = (*state >> 11) as f64 / (1u64 << 53) as f64;
        low * libm::pow(high / low, unit)
    }

    fn problem(state: &mut u64) -> Constants {
        Constants {
            drop: draw(state, 0.1, 10.0),
            rho: draw(state, 0.1, 50.0),
            variance: draw(state, 1e-3, 10.0),
        }
    }

    const BILL: Bill = Bill {
        widths: Widths {
            n0: 325,
            n1: 5248,
            n2: 5248,
            d1: 32,
            d2: 32,
        },
        selected: 18.0,
    };

    fn product(problem: &Constants, eta: f64, t: f64, q: f64) -> f64 {
        let setting = Setting {
            global_interval: q,
            local_interval: q,
            learning_rate: eta,
            iterations: t,
        };
        problem.bound(setting).total() * BILL.iteration(Counter::Paper, q, q)
    }

    #[test]
    fn the_corrected_root_is_where_the_derivative_is_zero() {
        let mut state = 1;
        for _ in 0..200 {
            let constants = problem(&mut state);
            let (eta, t) = (draw(&mut state, 1e-4, 1.0), draw(&mut state, 100.0, 1e5));
            let q = best_interval(&constants, eta, t, Root::Corrected);
            let h = 1e-5 * q;
            let slope = |at: f64| {
                (product(&constants, eta, t, at + h) - product(&constants, eta, t, at - h))
                    / (2.0 * h)
            };
            let scale = product(&constants, eta, t, q) / q;
            assert!(slope(q).abs() < 1e-6 * scale, "{} of {scale}", slope(q));
            assert!(slope(0.5 * q) < 0.0 && slope(2.0 * q) > 0.0);
            let printed = best_interval(&constants, eta, t, Root::Printed);
            assert!((printed / q - eta.sqrt()).abs() < 1e-9);
        }
    }

    #[test]
    fn no_whole_interval_that_is_allowed_is_better() {
        let mut state = 2;
        let mut inner = 0;
        for _ in 0..300 {
            let constants = problem(&mut state);
            let (eta, t) = (draw(&mut state, 1e-4, 0.1), draw(&mut state, 100.0, 1e4));
            let chosen = equal_intervals(&constants, &BILL, eta, t, Root::Corrected);
            let most = 1.0 / (8.0 * constants.rho * eta);
            if most < 1.0 {
                assert_eq!((chosen.interval, chosen.is_valid), (1, false));
                continue;
            }
            let all = 1..=(most.floor() as u64).min(t as u64);
            let best = all
                .min_by(|a, b| {
                    let of = |q: u64| product(&constants, eta, t, q as f64);
                    of(*a).total_cmp(&of(*b))
                })
                .unwrap_or(1);
            assert_eq!(chosen.interval, best, "{constants:?} {eta} {t}");
            inner += usize::from(best > 1 && (best as f64) < most.floor());
        }
        assert!(inner > 20, "{inner} of the minima are inside");
    }

    #[test]
    fn the_rate_is_the_positive_root() {
        let mut state = 3;
        for _ in 0..300 {
            let constants = problem(&mut state);
            let q = draw(&mut state, 1.0, 50.0).round();
            let p = q * draw(&mut state, 1.0, 8.0).round();
            let gradient = draw(&mut state, 1e-3, 10.0);
            let eta = root_of_rate(&constants, p, q, gradient);
            let a = 24.0 * q * q * p * constants.rho.powi(2) * constants.variance;
            let b = 3.0 * p * p * constants.rho * constants.variance;
            let c = p * gradient * gradient / 4.0;
            let value = 3.0 * a * eta * eta + 2.0 * b * eta - c;
            assert!(eta > 0.0 && value.abs() < 1e-9 * c, "{value} of {c}");
            // The bound on the decrease is least there.
            let decrease = |eta: f64| a * eta.powi(3) + b * eta * eta - c * eta;
            assert!(decrease(eta) <= decrease(0.99 * eta) && decrease(eta) <= decrease(1.01 * eta));
        }
    }

    #[test]
    fn the_rate_falls_with_p_and_with_q_at_a_fixed_ratio() {
        let mut state = 4;
        for _ in 0..200 {
            let constants = problem(&mut state);
            let gradient = draw(&mut state, 1e-3, 10.0);
            let rate = |p: f64, q: f64| best_rate(&constants, p, q, gradient);
            for q in [1.0, 2.0, 5.0] {
                for ratio in [1.0, 2.0, 4.0] {
                    assert!(rate(2.0 * ratio * q, q) < rate(ratio * q, q));
                    assert!(rate(2.0 * ratio * q, 2.0 * q) < rate(ratio * q, q));
                }
            }
            assert_eq!(
                best_rate(&constants, 4.0, 2.0, 0.0),
                constants.largest_rate(4.0)
            );
        }
    }

    #[test]
    fn the_number_of_exchanges_is_the_least_that_keeps_the_bound() {
        let mut state = 5;
        let mut found = [0; 2];
        for _ in 0..500 {
            let constants = problem(&mut state);
            let p = draw(&mut state, 1.0, 60.0).round();
            let setting = Setting {
                global_interval: p,
                local_interval: p,
                learning_rate: draw(&mut state, 1e-3, 1.0) * constants.largest_rate(p),
                iterations: draw(&mut state, 100.0, 1e5),
            };
            let wanted = problem_bound(&constants, setting) * draw(&mut state, 0.3, 2.0);
            let brute = (1..=p as u64)
                .filter(|l| (p as u64).is_multiple_of(*l))
                .find(|l| {
                    let local_interval = p / *l as f64;
                    problem_bound(
                        &constants,
                        Setting {
                            local_interval,
                            ..setting
                        },
                    ) <= wanted
                });
            let lambda = exchanges(&constants, setting, wanted);
            assert_eq!(lambda, brute, "{constants:?} {setting:?} {wanted}");
            found[usize::from(lambda.is_some())] += 1;
        }
        assert!(found[0] > 20 && found[1] > 20, "{found:?}");
    }

    /// P = Q is concluded where one exchange keeps Γ within a tenth of what it is at Q = 1, and exchanges weigh.
    #[test]
    fn equality_is_concluded_by_both_conditions_of_strategy_1() {
        let mut light = BILL;
        light.widths.n1 = 1_000_000;
        let mut state = 7;
        let mut found = [0; 2];
        for _ in 0..500 {
            let constants = problem(&mut state);
            let p = draw(&mut state, 1.0, 40.0).round();
            let eta = draw(&mut state, 0.01, 1.0) * constants.largest_rate(p);
            let left = draw(&mut state, 100.0, 1e5).round();
            let bound = |local_interval: f64| {
                let setting = Setting {
                    global_interval: p,
                    local_interval,
                    learning_rate: eta,
                    iterations: left,
                };
                problem_bound(&constants, setting)
            };
            let is_enough = bound(p) <= ALLOWED * bound(1.0);
            let with = |bill| EqualityCheck::new(&constants, bill, (p, eta), left as u64);
            let (heavy, light) = (with(&BILL), with(&light));
            assert_eq!(heavy.concludes(), is_enough, "{constants:?} {p} {eta}");
            assert_eq!(heavy.exchanges, light.exchanges);
            assert!(heavy.exchanges_weigh && !light.exchanges_weigh && !light.concludes());
            let doubts = |check: EqualityCheck| check.to_string().contains("does not conclude it");
            assert_eq!([doubts(heavy), doubts(light)], [!is_enough, true]);
            found[usize::from(is_enough)] += 1;
        }
        assert!(found[0] > 20 && found[1] > 20, "{found:?}");
        let check = EqualityCheck {
            exchanges: Some(1),
            exchanges_weigh: true,
        };
        assert_eq!(check.to_string(), "P = Q (Λ* 1, B ≥ 2·n1)");
    }

    fn problem_bound(constants: &Constants, setting: Setting) -> f64 {
        constants.bound(setting).total()
    }

    /// With the paper's count, real P ≥ Q, B ≥ 2·n1 and where the bound holds, no pair keeps a bound at fewer bytes
    /// than an equal one.
    #[test]
    fn equal_intervals_are_best_where_exchanges_dominate_the_bill() {
        let mut state = 6;
        for _ in 0..60 {
            let constants = problem(&mut state);
            let eta = draw(&mut state, 1e-4, 1e-2) / constants.rho;
            let t = draw(&mut state, 100.0, 1e5);
            let at = |p: f64, q: f64| {
                let setting = Setting {
                    global_interval: p,
                    local_interval: q,
                    learning_rate: eta,
                    iterations: t,
                };
                (
                    problem_bound(&constants, setting),
                    BILL.iteration(Counter::Paper, p, q),
                )
            };
            assert!(BILL.favours_equal_intervals());
            let grid: Vec<f64> = (0..60).map(|i| 1.12_f64.powi(i)).collect();
            for &q in &grid {
                // Where the bound holds, staleness weighs no more than noise.
                let valid = |p: &&f64| **p > q * 1.0001 && eta <= constants.largest_rate(**p);
                for &p in grid.iter().filter(valid) {
                    let (bound, bytes) = at(p, q);
                    // An equal pair with the same bound, by bisection: Γ grows with both.
                    let (mut low, mut high) = (q, p);
                    for _ in 0..60 {
                        let middle = 0.5 * (low + high);
                        match at(middle, middle).0 <= bound {
                            true => low = middle,
                            false => high = middle,
                        }
                    }
                    assert!(
                        at(low, low).1 <= bytes * (1.0 + 1e-9),
                        "{p} {q}: {constants:?}"
                    );
                }
            }
        }
    }
}
