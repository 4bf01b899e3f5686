//! Label skew as it is usual in studies of federated learning: each class's shares of the groups are drawn from a
//! Dirichlet distribution. A small β gives a class to few groups, a large one to all alike.

use super::Stock;
use selvedge_nn::random::{Key, Stream};

/// The groups' units. A group that would get nothing gets one unit of the largest, so that every hospital has a
/// patient.
pub(super) fn scheme(stock: &mut Stock<'_>, beta: f64, key: Key) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); stock.groups];
    for (class, units) in stock.classes.iter_mut().enumerate() {
        let mut stream = key.with(class as u64).stream();
        let weights: Vec<f64> = stock
            .shares
            .iter()
            .map(|share| share * gamma(&mut stream, beta))
            .collect();
        let total: f64 = weights.iter().sum();
        let (count, mut end, mut before) = (units.len(), 0.0, 0);
        let mut rest = units.drain(..);
        for (m, (group, weight)) in groups.iter_mut().zip(&weights).enumerate() {
            end += if total > 0.0 { weight / total } else { 0.0 };
            let until = match m + 1 == weights.len() {
                true => count,
                false => ((end * count as f64).round() as usize).clamp(before, count),
            };
            group.extend(rest.by_ref().take(until - before));
            before = until;
        }
    }
    for m in 0..groups.len() {
        if groups[m].is_empty() {
            let largest = (0..groups.len()).max_by_key(|g| (groups[*g].len(), *g));
            let spare = largest
                .filter(|g| groups[*g].len() > 1)
                .and_then(|g| groups[g].pop());
            groups[m].extend(spare);
        }
    }
    groups
}

/// A number from the gamma distribution of this shape: Marsaglia and Tsang's squeeze, from a shape above one.
fn gamma(stream: &mut Stream, shape: f64) -> f64 {
    if shape < 1.0 {
        let uniform = stream.uniform_f64().max(f64::MIN_POSITIVE);
        return gamma(stream, shape + 1.0) * libm::pow(uniform, 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = f64::from(stream.normal());
        let v = (1.0 + c * x).powi(3);
        let uniform = stream.uniform_f64().max(f64::MIN_POSITIVE);
        if v > 0.0 && libm::log(uniform) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_has_its_mean_and_variance() {
        for shape in [0.1, 0.5, 1.0, 2.5, 20.0] {
            let mut stream = Key::new(7).stream();
            let draws: Vec<f64> = (0..40_000).map(|_| gamma(&mut stream, shape)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance =
                draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64;
            assert!(
                (mean - shape).abs() < 0.05 * shape.max(0.3),
                "{shape}: {mean}"
            );
            assert!(
                (variance - shape).abs() < 0.15 * shape.max(0.3),
                "{shape}: {variance}"
            );
        }
    }

    #[test]
    fn every_unit_goes_to_one_group_and_beta_decides_the_skew() {
        let names: Vec<String> = (0..4).map(|c| c.to_string()).collect();
        let skew = |beta: f64| {
            let mut stock = Stock {
                classes: (0..4).map(|c| (c * 500..(c + 1) * 500).collect()).collect(),
                class_names: &names,
                groups: 8,
                shares: vec![0.125; 8],
            };
            let groups = scheme(&mut stock, beta, Key::new(3));
            let mut all = groups.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..2000));
            assert!(groups.iter().all(|g| !g.is_empty()));
            // How far the largest class of a group is ahead, on average.
            let ahead = groups.iter().map(|group| {
                let of_class = |c: usize| group.iter().filter(|u| **u / 500 == c).count();
                (0..4).map(of_class).max().unwrap() as f64 / group.len() as f64
            });
            ahead.sum::<f64>() / 8.0
        };
        assert!(
            skew(0.1) > 0.6 && skew(100.0) < 0.35,
            "{} {}",
            skew(0.1),
            skew(100.0)
        );
    }
}
