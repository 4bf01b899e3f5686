//! Groups in which two labels dominate, for any number of classes and groups.
//!
//! All groups have K = ⌊N/M⌋ units, most of them of two labels (the paper's 3,000 of 3,458, or the same share of
//! another size), the rest of the other labels. Equal halves of a pair are not possible with unequal classes, so:
//!
//! 1. what the groups get of "others" is set apart, from every class in proportion to its size;
//! 2. group by group, the pair is filled. With one class more than groups left, the smallest class goes whole and the
//!    largest fills up, so that a class is used up with every group; with fewer classes the two largest give half each;
//! 3. the others are dealt like cards, each group taking what there is most of, its own two labels excepted.

use super::{Refusal, Stock};

/// The paper's pairs have so many of about so many samples.
const PAIR: (usize, usize) = (3_000, 3_458);

/// Sizes that are still the paper's: it used an older file.
const ABOUT: std::ops::RangeInclusive<usize> = 3_300..=3_700;

/// The groups' units and names.
pub(super) fn scheme(stock: &mut Stock<'_>) -> Result<(Vec<Vec<usize>>, Vec<String>), Refusal> {
    let sizes: Vec<usize> = stock.classes.iter().map(Vec::len).collect();
    let groups = stock.groups;
    if stock.shares.iter().any(|share| *share != stock.shares[0]) {
        return Err("data.split = \"pairs\" makes groups of equal size: expected no data.sizes, or \"iid\" or \"dirichlet\"".into());
    }
    let counts = counts(&sizes, groups).map_err(|scarce| {
        format!(
            "class {} has {} training rows, of {} in all: too few for two labels to dominate in each of {groups} \
             groups; expected classes of more similar size, fewer groups, or data.split = \"dirichlet\" or \"iid\"",
            stock.class_names[scarce],
            sizes[scarce],
            sizes.iter().sum::<usize>()
        )
    })?;
    let name = |row: &Vec<usize>| {
        let [a, b] = front(row);
        format!(
            "labels {}+{}",
            stock.class_names[a.min(b)],
            stock.class_names[a.max(b)]
        )
    };
    let names = counts.iter().map(name).collect();
    Ok((stock.take(&counts), names))
}

/// The two classes that a group has most of.
fn front(row: &[usize]) -> [usize; 2] {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by_key(|class| (std::cmp::Reverse(row[*class]), *class));
    [order[0], order[1]]
}

/// Units of each class (column) for each group (row), or the class that is too small.
fn counts(sizes: &[usize], groups: usize) -> Result<Vec<Vec<usize>>, usize> {
    let classes = sizes.len();
    let scarcest = (0..classes).min_by_key(|c| sizes[*c]).unwrap_or(0);
    let size = sizes.iter().sum::<usize>() / groups;
    if classes < 2 || size < 2 {
        return Err(scarcest);
    }
    let mut pair = match ABOUT.contains(&size) {
        true => PAIR.0,
        false => (size * PAIR.0 + PAIR.1 / 2) / PAIR.1,
    };
    if classes == 2 {
        pair = size;
    }
    let (mut stock, mut others) = set_apart(sizes, groups, size, &mut pair);
    let mut rows = vec![vec![0; classes]; groups];
    let mut pairs = Vec::new();
    for (done, row) in rows.iter_mut().enumerate() {
        let mut left: Vec<usize> = (0..classes).filter(|c| stock[*c] > 0).collect();
        left.sort_by_key(|c| (stock[*c], *c));
        let [.., second, largest] = left[..] else {
            return Err(scarcest);
        };
        let (a, of_a) = if left.len() > groups - done {
            (left[0], stock[left[0]].min(pair))
        } else {
            (second, stock[second].min(pair / 2))
        };
        row[a] = of_a;
        row[largest] = pair - of_a;
        stock[a] -= of_a;
        stock[largest] = stock[largest].checked_sub(pair - of_a).ok_or(scarcest)?;
        pairs.push([a, largest]);
    }
    deal_others(&mut rows, &pairs, &mut others, size - pair);
    for (row, [a, b]) in rows.iter().zip(&pairs) {
        let others = (0..classes).filter(|c| c != a && c != b);
        let most_of_others = others.map(|c| row[c]).max().unwrap_or(0);
        if row[*a].min(row[*b]) <= most_of_others {
            return Err(scarcest);
        }
    }
    Ok(rows)
}

/// What pairs are made of, and what is dealt as others: M·pair and M·(K − pair) units in all.
fn set_apart(
    sizes: &[usize],
    groups: usize,
    size: usize,
    pair: &mut usize,
) -> (Vec<usize>, Vec<usize>) {
    let total: usize = sizes.iter().sum();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|c| (sizes[*c], *c));
    // Of more classes than groups and one, the smallest are in no pair.
    let only_others = sizes.len().saturating_sub(groups + 1);
    let mut others = vec![0; sizes.len()];
    for class in &order[..only_others] {
        others[*class] = sizes[*class];
    }
    let fixed: usize = others.iter().sum();
    *pair = (*pair).min(size - fixed.div_ceil(groups).min(size));
    let wanted = groups * (size - *pair);
    let free: usize = total - fixed;
    let (mut end, mut before) = (0usize, 0usize);
    for class in &order[only_others..] {
        end += sizes[*class];
        let until =
            ((wanted.saturating_sub(fixed)) as u128 * end as u128 / free.max(1) as u128) as usize;
        others[*class] = until - before;
        before = until;
    }
    let mut stock: Vec<usize> = sizes.iter().zip(&others).map(|(n, o)| n - o).collect();
    // What does not fill a group is left out, of the largest first.
    let mut surplus = stock.iter().sum::<usize>().saturating_sub(groups * *pair);
    while surplus > 0 {
        let largest = (0..stock.len())
            .max_by_key(|c| (stock[*c], *c))
            .unwrap_or(0);
        stock[largest] -= 1;
        surplus -= 1;
    }
    (stock, others)
}

/// Gives every group `each` units of what is set apart, none of its own pair as long as that is possible.
fn deal_others(rows: &mut [Vec<usize>], pairs: &[[usize; 2]], others: &mut [usize], each: usize) {
    for _ in 0..each {
        for m in 0..rows.len() {
            let most = (0..others.len())
                .filter(|c| !pairs[m].contains(c) && others[*c] > 0)
                .max_by_key(|c| (others[*c], *c));
            match most {
                Some(class) => {
                    others[class] -= 1;
                    rows[m][class] += 1;
                }
                None => swap_in(rows, pairs, others, m),
            }
        }
    }
}

/// A unit for a group that can only be given its own labels: another group takes one of those that are left and hands
/// over one of its others, if need be over several groups. Where nobody can, the group gets more of its own.
fn swap_in(rows: &mut [Vec<usize>], pairs: &[[usize; 2]], others: &mut [usize], m: usize) {
    let classes = others.len();
    // The way to each group: who asked it, and for which class.
    let mut asked_by: Vec<Option<(usize, usize)>> = vec![None; rows.len()];
    let mut waiting = std::collections::VecDeque::from([m]);
    while let Some(group) = waiting.pop_front() {
        for class in (0..classes).filter(|c| !pairs[group].contains(c)) {
            if others[class] > 0 {
                others[class] -= 1;
                rows[group][class] += 1;
                let mut giver = group;
                while let Some((asker, class)) = asked_by[giver] {
                    rows[giver][class] -= 1;
                    rows[asker][class] += 1;
                    giver = asker;
                }
                return;
            }
            for other in 0..rows.len() {
                let spare = rows[other][class] > 0 && !pairs[other].contains(&class);
                if other != m && asked_by[other].is_none() && spare {
                    asked_by[other] = Some((group, class));
                    waiting.push_back(other);
                }
            }
        }
    }
    if let Some(class) = (0..classes).find(|c| others[*c] > 0) {
        others[class] -= 1;
        rows[m][class] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_nn::random::Key;

    fn check(sizes: &[usize], groups: usize, rows: &[Vec<usize>]) {
        let size = sizes.iter().sum::<usize>() / groups;
        for row in rows {
            assert_eq!(row.iter().sum::<usize>(), size, "{sizes:?} {row:?}");
            let [a, b] = front(row);
            let others = (0..row.len()).filter(|c| *c != a && *c != b);
            assert!(
                others.map(|c| row[c]).max().unwrap_or(0) < row[b],
                "{sizes:?} {row:?}"
            );
        }
        for (class, available) in sizes.iter().enumerate() {
            let dealt: usize = rows.iter().map(|row| row[class]).sum();
            assert!(dealt <= *available, "{sizes:?}: {dealt} of class {class}");
        }
    }

    /// OrganAMNIST's training labels, of both files that are around.
    const ORGANS: [[usize; 11]; 2] = [
        [
            1956, 1390, 1357, 1474, 3963, 3817, 6164, 3919, 3929, 3031, 3581,
        ],
        [
            1956, 1390, 1357, 1474, 3963, 3817, 6164, 3919, 3929, 3031, 3561,
        ],
    ];

    #[test]
    fn the_papers_groups() {
        for sizes in ORGANS {
            let rows = counts(&sizes, 10).unwrap();
            check(&sizes, 10, &rows);
            for row in rows {
                let [a, b] = front(&row);
                assert_eq!(row[a] + row[b], 3_000);
            }
        }
    }

    #[test]
    fn six_classes_of_images() {
        let sizes = [6_000, 5_372, 6_000, 6_000, 5_735, 6_000];
        check(&sizes, 10, &counts(&sizes, 10).unwrap());
    }

    #[test]
    fn any_classes_are_dealt_exactly_or_refused() {
        let mut refused = 0;
        for seed in 0..3_000 {
            let mut stream = Key::new(seed).stream();
            let classes = 2 + stream.below(14) as usize;
            let groups = 1 + stream.below(14) as usize;
            let base = 50 + stream.below(3_000);
            let sizes: Vec<usize> = (0..classes)
                .map(|_| (base + stream.below(base)) as usize)
                .collect();
            match counts(&sizes, groups) {
                Ok(rows) => check(&sizes, groups, &rows),
                Err(_) => refused += 1,
            }
        }
        assert!(refused < 1_500, "{refused} of 3,000 were refused");
    }

    #[test]
    fn too_few_are_refused() {
        assert_eq!(counts(&[5], 1), Err(0));
        assert_eq!(counts(&[0, 0], 1), Err(0));
        assert!(counts(&[1000, 1], 10).is_err());
    }
}
