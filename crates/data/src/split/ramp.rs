//! The rarer of two classes grows more frequent from group to group.
//!
//! Group m of M gets it at `1 − RAMP + 2·RAMP·m/(M − 1)` times the rate that it has in all: hospitals that see few and
//! hospitals that see many of the patients who die.

use super::{Refusal, Stock};

/// How far the first and the last group are from the rate of all.
const RAMP: f64 = 0.6;

/// The groups' units.
pub(super) fn scheme(stock: &mut Stock<'_>) -> Result<Vec<Vec<usize>>, Refusal> {
    let [a, b] = &stock.classes[..] else {
        return Err(format!(
            "data.split = \"ramp\" is for two classes, but there are {}: expected \"pairs\", \"dirichlet\" or \"iid\"",
            stock.classes.len()
        ));
    };
    let (rare, common) = if b.len() <= a.len() { (1, 0) } else { (0, 1) };
    let (of_rare, of_common) = (stock.classes[rare].len(), stock.classes[common].len());
    let sizes = stock.sizes();
    let last = sizes.len().saturating_sub(1).max(1) as f64;
    let tilt = |m: usize| match sizes.len() {
        1 => 1.0,
        _ => 1.0 - RAMP + 2.0 * RAMP * m as f64 / last,
    };
    let wanted = |m: usize| sizes[m] as f64 * tilt(m);
    let total: f64 = (0..sizes.len()).map(wanted).sum();
    let (mut end, mut before) = (0.0, 0);
    let mut counts = Vec::new();
    for (m, size) in sizes.iter().enumerate() {
        end += wanted(m) / total * of_rare as f64;
        let until = (end.round() as usize).clamp(before, of_rare);
        let rare_here = (until - before).min(*size);
        before += rare_here;
        let mut row = vec![0; 2];
        row[rare] = rare_here;
        row[common] = size - rare_here;
        counts.push(row);
    }
    let needed: usize = counts.iter().map(|row| row[common]).sum();
    if needed > of_common {
        return Err(format!(
            "class {} has {of_common} training rows: too few to fill groups of {sizes:?}",
            stock.class_names[common]
        ));
    }
    Ok(stock.take(&counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock(a: usize, b: usize, names: &[String], shares: Vec<f64>) -> Stock<'_> {
        Stock {
            classes: vec![(0..a).collect(), (a..a + b).collect()],
            class_names: names,
            groups: shares.len(),
            shares,
        }
    }

    #[test]
    fn the_rarer_class_ramps_and_sizes_are_exact() {
        let names = ["no".to_owned(), "yes".to_owned()];
        for (a, b) in [(3446, 554), (554, 3446), (100, 100), (90, 11), (37, 0)] {
            for m in [1, 2, 3, 10] {
                let mut stock = stock(a, b, &names, vec![1.0 / m as f64; m]);
                let groups = scheme(&mut stock).unwrap();
                let rare = |group: &Vec<usize>| {
                    let of_b = group.iter().filter(|unit| **unit >= a).count();
                    if b <= a { of_b } else { group.len() - of_b }
                };
                let counts: Vec<usize> = groups.iter().map(rare).collect();
                assert!(groups.iter().all(|g| g.len() == (a + b) / m), "{a} {b} {m}");
                assert!(counts.windows(2).all(|w| w[0] <= w[1] + 1), "{counts:?}");
                let mut all: Vec<usize> = groups.concat();
                all.extend(stock.classes.concat());
                all.sort_unstable();
                assert!(all.into_iter().eq(0..a + b));
            }
        }
    }

    #[test]
    fn three_classes_are_refused() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let mut stock = Stock {
            classes: vec![vec![0], vec![1], vec![2]],
            class_names: &names,
            groups: 1,
            shares: vec![1.0],
        };
        assert!(scheme(&mut stock).unwrap_err().contains("two classes"));
    }
}
