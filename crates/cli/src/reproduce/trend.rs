//! How a cost changes with P = Q: a fitted curve, and whether it first falls and then rises.

use super::claims::{Comparison, Verdict, compare};

/// exp(a + b·ln Q + c·ln² Q): costs are positive and span powers of ten, so that logarithms weigh all of them alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend([f64; 3]);

impl Trend {
    /// The curve of least squares through points (Q, cost). Nothing for fewer than three different Q.
    pub(super) fn fit(points: &[(f64, f64)]) -> Option<Self> {
        // Normal equations, one row per power of ln Q.
        let mut rows = [[0.0; 4]; 3];
        for (q, cost) in points {
            let x = libm::log(*q);
            let powers = [1.0, x, x * x];
            for (row, left) in rows.iter_mut().zip(powers) {
                for (cell, right) in row.iter_mut().zip(powers) {
                    *cell += left * right;
                }
                row[3] += left * libm::log(*cost);
            }
        }
        solve(rows).map(Trend)
    }

    pub(super) fn at(&self, q: f64) -> f64 {
        let ([a, b, c], x) = (self.0, libm::log(q));
        libm::exp(a + b * x + c * x * x)
    }

    /// Where it is lowest between two Q.
    pub(super) fn lowest(&self, from: f64, to: f64) -> f64 {
        let [_, b, c] = self.0;
        let turn = match c > 0.0 {
            true => libm::exp(-b / (2.0 * c)).clamp(from, to),
            false => from,
        };
        let better = |a: f64, b: f64| if self.at(b) < self.at(a) { b } else { a };
        better(better(from, turn), to)
    }
}

/// Three equations by elimination with pivots; nothing where they do not determine the unknowns.
fn solve(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for i in 0..3 {
        let largest = |a: &usize, b: &usize| rows[*a][i].abs().total_cmp(&rows[*b][i].abs());
        let pivot = (i..3).max_by(largest)?;
        rows.swap(i, pivot);
        let head = rows[i];
        if head[i].is_nan() || head[i].abs() < 1e-9 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = row[i] / head[i];
            for (k, cell) in row.iter_mut().enumerate() {
                *cell -= factor * head[k];
            }
        }
    }
    let unknowns = [0, 1, 2].map(|i| rows[i][3] / rows[i][i]);
    unknowns.iter().all(|x| x.is_finite()).then_some(unknowns)
}

/// One P = Q and what each seed costs with it.
pub(super) type Costs = (u64, Vec<Option<f64>>);

/// Where costs are lowest, and how far above both ends are.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The P = Q with the lowest mean of those with which every seed gets there.
    pub(super) lowest: Option<u64>,
    /// What each seed costs at the P = Q that the others find lowest.
    pub(super) best: Vec<Option<f64>>,
    /// The shortest and the longest interval with which every seed gets there.
    pub(super) ends: Option<(u64, u64)>,
    /// The lowest of the others against the first of them.
    pub(super) falls: Comparison,
    /// The lowest of the others against the last of them.
    pub(super) rises: Comparison,
}

impl Shape {
    /// Compares the lowest costs with those at both ends. Of many values that differ by chance the lowest is lower than
    /// any given one, so each seed is compared at the place that the *other* seeds find lowest. That a longer interval
    /// does not get there says nothing of what it would cost.
    pub(super) fn of(costs: &[Costs]) -> Self {
        let all_there = |(_, c): &&Costs| c.iter().all(Option::is_some);
        let there: Vec<Costs> = costs.iter().filter(all_there).cloned().collect();
        let (first, last) = (there.first(), there.last());
        let against = |end: Option<&Costs>| {
            let others = there.iter().filter(|c| end.is_some_and(|end| end.0 != c.0));
            let others: Vec<Costs> = others.cloned().collect();
            let end = end.map_or(Vec::new(), |(_, c)| c.clone());
            compare(&best(&others, end.len()), &end)
        };
        Shape {
            lowest: lowest(costs, |_| true),
            best: best(costs, costs.first().map_or(0, |(_, c)| c.len())),
            ends: first.zip(last).map(|(a, b)| (a.0, b.0)),
            falls: against(first),
            rises: against(last),
        }
    }

    /// What it looks like, in words.
    pub(super) fn sentence(&self) -> &'static str {
        let is_shown = |found: &Comparison| found.verdict(true) == Verdict::Holds;
        match (is_shown(&self.falls), is_shown(&self.rises)) {
            (true, true) => "the cost first falls and then rises",
            (true, false) => "the cost falls and is not shown to rise again: no U",
            (false, true) => "the cost rises and is not shown to fall first: no U",
            (false, false) => "neither a fall nor a rise is shown: no U",
        }
    }
}

/// What each seed costs at the place that the others find lowest.
fn best(costs: &[Costs], seeds: usize) -> Vec<Option<f64>> {
    let of = |i: usize| {
        let place = lowest(costs, |seed| seeds == 1 || seed != i)?;
        let (_, costs) = costs.iter().find(|(q, _)| *q == place)?;
        costs.get(i).copied().flatten()
    };
    (0..seeds).map(of).collect()
}

/// The place with the lowest mean over some seeds, of those where all of these get there.
fn lowest(costs: &[Costs], counts: impl Fn(usize) -> bool) -> Option<u64> {
    let mean = |costs: &[Option<f64>]| -> Option<f64> {
        let chosen = costs.iter().enumerate().filter(|(seed, _)| counts(*seed));
        let values: Option<Vec<f64>> = chosen.map(|(_, cost)| *cost).collect();
        let values = values.filter(|v| !v.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    let means = costs.iter().filter_map(|(q, c)| Some((*q, mean(c)?)));
    means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(q, _)| q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_of_its_own_kind_is_found_again() {
        let curve = |q: f64| libm::exp(3.0 - 2.0 * libm::log(q) + 0.5 * libm::log(q).powi(2));
        let points: Vec<(f64, f64)> = (1..=20)
            .map(|q| (f64::from(q), curve(f64::from(q))))
            .collect();
        let trend = Trend::fit(&points).unwrap();
        for (q, cost) in &points {
            assert!((trend.at(*q) / cost - 1.0).abs() < 1e-9, "{q}");
        }
        // ln Q = 2/(2 · 0.5)
        assert!((trend.lowest(1.0, 20.0) - libm::exp(2_f64)).abs() < 1e-6);
        assert_eq!(trend.lowest(1.0, 5.0), 5.0);
        assert_eq!(trend.lowest(10.0, 20.0), 10.0);
    }

    /// Moving the curve in any way makes it worse.
    #[test]
    fn the_fit_has_the_least_squares() {
        let points = [(1.0, 9.0), (2.0, 5.5), (4.0, 4.6), (8.0, 4.0), (20.0, 7.0)];
        let squares = |t: &Trend| -> f64 {
            let of = |(q, cost): &(f64, f64)| (libm::log(t.at(*q)) - libm::log(*cost)).powi(2);
            points.iter().map(of).sum()
        };
        let best = Trend::fit(&points).unwrap();
        for i in 0..3 {
            for by in [-1e-3, 1e-3] {
                let mut other = best;
                other.0[i] += by;
                assert!(squares(&other) > squares(&best), "{i} {by}");
            }
        }
    }

    #[test]
    fn too_few_points_have_no_curve() {
        assert_eq!(Trend::fit(&[]), None);
        assert_eq!(Trend::fit(&[(1.0, 5.0), (2.0, 4.0)]), None);
        assert_eq!(Trend::fit(&[(3.0, 5.0); 10]), None);
        let falling = Trend::fit(&[(1.0, 8.0), (2.0, 4.0), (4.0, 2.0)]).unwrap();
        assert_eq!(falling.lowest(1.0, 4.0), 4.0);
    }

    /// Five seeds around a curve, apart by a few per cent.
    fn around(curve: impl Fn(f64) -> f64) -> Vec<Costs> {
        let noise = |seed: u64, q: u64| 0.03 * (((seed * 7 + q * 13) % 5) as f64 - 2.0) / 2.0;
        let of = |q: u64| {
            let cost = |seed| Some(curve(q as f64) * (1.0 + noise(seed, q)));
            (q, (0..5).map(cost).collect())
        };
        (1..=20).map(of).collect()
    }

    #[test]
    fn shapes_are_told_apart() {
        let shape = |curve: fn(f64) -> f64| Shape::of(&around(curve));
        let both = shape(|q| 10.0 / q + q);
        assert!((2..=4).contains(&both.lowest.unwrap()), "{:?}", both.lowest);
        assert_eq!(both.sentence(), "the cost first falls and then rises");
        let falling = shape(|q| 10.0 / q);
        assert_eq!(falling.lowest, Some(20));
        assert!(
            falling
                .sentence()
                .starts_with("the cost falls and is not shown to rise")
        );
        let rising = shape(|q| q);
        assert_eq!(rising.lowest, Some(1));
        assert!(
            rising
                .sentence()
                .starts_with("the cost rises and is not shown")
        );
        // The lowest of twenty that differ by chance is lower than the ends, and that is no shape.
        let flat = shape(|_| 1.0);
        assert!(flat.sentence().starts_with("neither"), "{flat:?}");
    }

    #[test]
    fn a_rise_is_not_shown_by_what_is_never_reached() {
        let mut costs = around(|q| 10.0 / q + 0.01 * q);
        // The long ones never get there, and in the middle one seed does not.
        for (_, costs) in costs.iter_mut().filter(|(q, _)| *q > 15) {
            costs.fill(None);
        }
        costs[11].1[2] = None;
        let shape = Shape::of(&costs);
        assert!((13..=15).contains(&shape.lowest.unwrap()), "{shape:?}");
        assert_eq!(shape.ends, Some((1, 15)));
        assert!(shape.sentence().starts_with("the cost falls and is not"));
        let never: Vec<Costs> = (1..=3).map(|q| (q, vec![None; 5])).collect();
        let shape = Shape::of(&never);
        assert_eq!((shape.lowest, shape.ends), (None, None));
        assert_eq!(shape.rises.verdict(true), Verdict::Unreached);
        assert!(Shape::of(&[]).lowest.is_none());
        // One seed chooses for itself, and shows nothing.
        let one: Vec<Costs> = (1..=3).map(|q| (q, vec![Some(1.0 / q as f64)])).collect();
        assert_eq!(Shape::of(&one).falls.verdict(true), Verdict::Open);
    }
}
