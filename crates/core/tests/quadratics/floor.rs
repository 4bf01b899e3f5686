//! The noise floor: what is left of ‖∇F‖² once the start is forgotten, and how it grows with η, P and Q.

use crate::hsgd::{Setting, hsgd};
use crate::problem::{N, Quadratic, Theta, dot, plus};

/// The mean of ‖∇F‖² over the global aggregations of a run from the optimum, `lengths` times as long as the slowest
/// direction takes to forget, behind three such times that do not count.
pub(crate) fn floor(problem: &Quadratic, s: &Setting, lengths: f64) -> f64 {
    let memory = 1.0 / (s.eta * problem.least * s.p as f64);
    let (skipped, counted) = (
        (3.0 * memory).ceil() as u64,
        (lengths * memory).ceil() as u64,
    );
    let (mut seen, mut squares) = (0, 0.0);
    hsgd(
        problem,
        s,
        11,
        &problem.optimum,
        skipped + counted,
        |theta| {
            seen += 1;
            if seen > skipped + 1 {
                let gradient = problem.gradient(theta);
                squares += dot(&gradient, &gradient);
            }
        },
    );
    squares / counted as f64
}

/// What the bound says of it: Γ without the start's term.
fn floor_of_bound(problem: &Quadratic, s: &Setting) -> f64 {
    s.constants(problem, 0.0).bound(s.over(1)).total()
}

/// The least-squares slope of ln y over ln x.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|(x, y)| (libm::log(*x), libm::log(*y)))
        .collect();
    let mean_x = logs.iter().map(|l| l.0).sum::<f64>() / count;
    let mean_y = logs.iter().map(|l| l.1).sum::<f64>() / count;
    let both: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    both / logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

/// The measured floors and those of the bound over `settings`, printed; their slopes over `x`. No floor is above the
/// bound's.
fn table(problem: &Quadratic, title: &str, settings: &[(f64, Setting)]) -> [f64; 2] {
    println!("{title}");
    let (mut measured, mut bounds) = (Vec::new(), Vec::new());
    for (x, s) in settings {
        let (floor, bound) = (floor(problem, s, 500.0), floor_of_bound(problem, s));
        println!(
            "  {x:8.5}  floor {floor:.3e}  bound {bound:.3e}  ratio {:.4}",
            floor / bound
        );
        assert!(
            floor < bound,
            "{s:?}: a floor of {floor:.3e} is above {bound:.3e}"
        );
        measured.push((*x, floor));
        bounds.push((*x, bound));
    }
    let slopes = [slope(&measured), slope(&bounds)];
    println!("  slope {:.2}, of the bound {:.2}", slopes[0], slopes[1]);
    slopes
}

#[test]
fn the_floor_is_proportional_to_the_learning_rate() {
    for (i, (p, q, groups, participation)) in [
        (1, 1, 1, 0.05),
        (4, 2, 2, 0.1),
        (8, 8, 1, 0.25),
        (12, 3, 3, 0.05),
        (10, 1, 2, 0.1),
    ]
    .into_iter()
    .enumerate()
    {
        let problem = Quadratic::new(20 + i as u64, 1.0, 3.0, 20);
        let settings = [1.0, 0.5, 0.25, 0.125, 0.0625].map(|share| {
            let eta = share / (8.0 * p as f64 * problem.rho);
            (
                eta,
                Setting {
                    p,
                    q,
                    groups,
                    participation,
                    eta,
                },
            )
        });
        let title = format!("floor over η: P = {p}, Q = {q}, M = {groups}, α = {participation}");
        let [measured, _] = table(&problem, &title, &settings);
        assert!(
            (measured - 1.0).abs() <= 0.15,
            "{title}: slope {measured:.3}"
        );
    }
}

const LENGTHS: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// A quadratic, and settings at the largest η that all P up to 32 allow.
fn at_fixed_rate(intervals: impl Fn(u64) -> (u64, u64)) -> (Quadratic, [(f64, Setting); 6]) {
    let problem = Quadratic::new(31, 1.0, 3.0, 20);
    let settings = LENGTHS.map(|x| {
        let (p, q) = intervals(x);
        let eta = 1.0 / (8.0 * 32.0 * problem.rho);
        let s = Setting {
            p,
            q,
            groups: 2,
            participation: 0.1,
            eta,
        };
        (x as f64, s)
    });
    (problem, settings)
}

/// The bound's noise grows with P. Measured, P alone costs nothing.
#[test]
fn the_floor_does_not_grow_with_p_alone() {
    let (problem, settings) = at_fixed_rate(|x| (x, 1));
    let [measured, bound] = table(&problem, "floor over P, Q = 1", &settings);
    assert!(measured <= bound + 0.15);
    assert!(measured.abs() < 0.1, "{measured:.3}");
}

/// P = Q: a subset that is kept for Q steps acts like one step Q times as long.
#[test]
fn the_floor_grows_with_p_and_q_together_no_faster_than_the_bound() {
    let (problem, settings) = at_fixed_rate(|x| (x, x));
    let [measured, bound] = table(&problem, "floor over P = Q", &settings);
    assert!(measured <= bound + 0.15);
    assert!((measured - 1.0).abs() < 0.15, "{measured:.3}");
}

/// At fixed P the floor follows Q, and faster than the bound, whose noise term has room for Q = P from the start. Not a
/// fault of the bound, which stays above, but it must not be read as saying that Q is cheap.
#[test]
fn at_fixed_p_the_floor_follows_q_below_a_bound_that_hardly_does() {
    let (problem, settings) = at_fixed_rate(|x| (32, x));
    let [measured, bound] = table(&problem, "floor over Q, P = 32", &settings);
    assert!((measured - 1.0).abs() < 0.15, "{measured:.3}");
    assert!(bound < 0.5, "{bound:.3}");
}

/// Why P alone costs nothing here: with one curvature for all, steps are affine in θ, and a mean of groups' steps is
/// the step of their mean. Only where curvatures differ can groups drift apart in a way that averaging does not undo.
#[test]
fn with_one_curvature_and_the_same_draws_p_changes_nothing() {
    let problem = Quadratic::new(41, 1.0, 10.0, 20);
    let start: Theta = plus(&problem.optimum, 1.0, &[1.0; N]);
    let last = |p: u64| {
        let s = Setting {
            p,
            q: 3,
            groups: 4,
            participation: 0.1,
            eta: 0.1,
        };
        let mut last = start;
        hsgd(&problem, &s, 3, &start, 36 / p, |theta| last = *theta);
        last
    };
    let often = last(3);
    for p in [6, 12, 36] {
        let error = plus(&last(p), -1.0, &often);
        assert!(dot(&error, &error) < 1e-24, "P = {p} ends elsewhere");
    }
}
