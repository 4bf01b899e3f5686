//! Γ(P, Q) of Theorem 1 against what HSGD does.

use crate::hsgd::{Setting, hsgd};
use crate::problem::{N, Quadratic, Theta, dot, plus};

/// P with its Q: all of 1, P itself and, where there is one, a divisor between.
const INTERVALS: [(u64, &[u64]); 11] = [
    (1, &[1]),
    (2, &[1, 2]),
    (3, &[1, 3]),
    (4, &[1, 2, 4]),
    (6, &[1, 3, 6]),
    (8, &[1, 2, 8]),
    (12, &[1, 4, 12]),
    (16, &[1, 8, 16]),
    (20, &[1, 5, 20]),
    (30, &[1, 10, 30]),
    (40, &[1, 8, 40]),
];

/// (M, α). With 20 centres the smallest α draws a single device, where noise is largest.
const FEDERATIONS: [(usize, f64); 7] = [
    (1, 0.03),
    (1, 0.25),
    (2, 0.1),
    (3, 0.03),
    (5, 0.5),
    (10, 0.1),
    (4, 1.0),
];

/// The bound, and the mean over seeds of what it bounds.
fn measure(problem: &Quadratic, s: &Setting, start: &Theta, aggregations: u64) -> (f64, f64) {
    // Nothing is random where everybody takes part; short runs need more of them for the same mean.
    let seeds = match s.participation {
        1.0 => 1,
        _ => 4 + 120 / aggregations,
    };
    let (mut squares, mut last) = (0.0, 0.0);
    for seed in 0..seeds {
        let mut seen = 0;
        hsgd(problem, s, seed, start, aggregations, |theta| {
            if seen < aggregations {
                let gradient = problem.gradient(theta);
                squares += dot(&gradient, &gradient);
            } else {
                last += problem.excess(theta);
            }
            seen += 1;
        });
    }
    let drop = problem.excess(start) - last / seeds as f64;
    let bound = s.constants(problem, drop).bound(s.over(aggregations));
    (squares / (seeds * aggregations) as f64, bound.total())
}

/// Starts at the optimum, where only noise is left; at the edge of the noise; and far away, where the first term is
/// all.
fn starts(problem: &Quadratic) -> [Theta; 3] {
    [0.0, 0.2, 30.0].map(|far| plus(&problem.optimum, far, &[1.0; N]))
}

/// A problem for each (P, Q, M, α): a few federations for each (P, Q), in turn, so that all of them meet short and long
/// intervals. η is at the theorem's limit.
fn cases() -> Vec<(Quadratic, Setting)> {
    let mut cases = Vec::new();
    for (i, (p, qs)) in INTERVALS.into_iter().enumerate() {
        for (j, q) in qs.iter().copied().enumerate() {
            for (k, rho) in [0.1, 1.0, 7.0].into_iter().enumerate() {
                let (groups, participation) = FEDERATIONS[(i + 2 * j + 3 * k) % FEDERATIONS.len()];
                let seed = (100 * i + 10 * j + k) as u64;
                let problem = Quadratic::new(seed, rho, [2.0, 20.0][(i + j) % 2], 20);
                let eta = 1.0 / (8.0 * p as f64 * rho);
                let setting = Setting {
                    p,
                    q,
                    groups,
                    participation,
                    eta,
                };
                cases.push((problem, setting));
            }
        }
    }
    cases
}

/// The least and the largest ratio of measured to bound, with where they were seen.
#[derive(Clone)]
struct Extremes([(f64, String); 2]);

impl Extremes {
    fn new() -> Self {
        Extremes([f64::MAX, 0.0].map(|ratio| (ratio, String::new())))
    }

    fn see(&mut self, ratio: f64, what: &str) {
        let [least, largest] = &mut self.0;
        if ratio < least.0 {
            *least = (ratio, what.into());
        }
        if ratio > largest.0 {
            *largest = (ratio, what.into());
        }
    }
}

#[test]
fn the_bound_is_never_crossed() {
    let cases = cases();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut extremes = [(); 3].map(|()| Extremes::new());
    for (problem, at_limit) in &cases {
        for (share, longest) in [(1.0, 40), (0.1, 100)] {
            let s = Setting {
                eta: share * at_limit.eta,
                ..*at_limit
            };
            assert!(s.constants(problem, 0.0).is_valid(s.over(1)));
            for (start, extremes) in starts(problem).iter().zip(&mut extremes) {
                // Few aggregations from the optimum: F rises, Δ < 0, and the bound is at its lowest.
                for aggregations in [2, longest] {
                    let (measured, bound) = measure(problem, &s, start, aggregations);
                    let what = format!("{s:?}, R = {aggregations}");
                    // Not `measured > bound`: NaN must fail.
                    assert!(
                        measured <= bound,
                        "{what}: {measured:.3e} crosses {bound:.3e}"
                    );
                    // Where everybody takes part there is no noise, and at the optimum nothing moves.
                    if s.participation < 1.0 {
                        extremes.see(measured / bound, &what);
                    }
                }
            }
        }
    }
    println!("measured / bound, {} settings (P, Q, M, α):", cases.len());
    for (from, extremes) in ["the optimum", "near", "far"].iter().zip(&extremes) {
        for (ratio, what) in &extremes.0 {
            println!("  from {from}: {ratio:.2e} at {what}");
        }
    }
    // Were ρ or δ² too large by much, nothing could cross the bound.
    let [of_noise, _, of_start] = extremes.map(|e| e.0[1].0);
    assert!(of_noise > 0.03 && of_start > 0.2, "{of_noise}, {of_start}");
}

/// The floor of plain SGD is known: Σ ηh·v/(2 − ηh) over the axes, v the noise's variance along each. It ties the
/// measurements above to something that is not the bound.
#[test]
fn one_device_at_a_time_in_one_group_has_the_floor_of_sgd() {
    let problem = Quadratic::new(5, 2.0, 3.0, 20);
    let s = Setting {
        p: 1,
        q: 1,
        groups: 1,
        participation: 0.05,
        eta: 0.05,
    };
    let floor = crate::floor::floor(&problem, &s, 2000.0);
    let mut want = 0.0;
    for axis in &problem.axes {
        let h = dot(axis, &problem.bend(axis));
        let apart = |c: &Theta| (h * dot(axis, &plus(c, -1.0, &problem.optimum))).powi(2);
        let variance =
            problem.centres.iter().map(apart).sum::<f64>() / problem.centres.len() as f64;
        want += s.eta * h * variance / (2.0 - s.eta * h);
    }
    assert!(
        (floor / want - 1.0).abs() < 0.05,
        "{floor:.4e} is not {want:.4e}"
    );
}

/// α = 1, P = Q = 1 is gradient descent.
#[test]
fn everybody_at_every_step_is_gradient_descent() {
    let problem = Quadratic::new(6, 1.5, 10.0, 7);
    let s = Setting {
        p: 1,
        q: 1,
        groups: 3,
        participation: 1.0,
        eta: 0.3,
    };
    let mut want = [4.0; N];
    hsgd(&problem, &s, 1, &[4.0; N], 20, |theta| {
        let error = plus(theta, -1.0, &want);
        assert!(dot(&error, &error) < 1e-24, "{theta:?} is not {want:?}");
        want = plus(&want, -s.eta, &problem.gradient(&want));
    });
}
