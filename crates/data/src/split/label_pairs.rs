//! How many samples of each class go to each of the ten groups, when a group is a pair of labels.
//!
//! Five labels make ten pairs. Group `{a, b}` gets 700/920 of its samples from `a` and `b`, the rest from the other
//! three; all groups are equally large. Receives how many samples each class has, gives a table of counts, group by
//! class. Its invariants: every row adds up to K = ⌊N/10⌋, the pair of every row to round(K·700/920), every column to
//! what the class has, less the N − 10·K left out.
//!
//! With equal classes the answer is K·350/920 for each of the pair and a third of the rest for each of the others. With
//! unequal ones it is the table of fractions that is nearest to this and has the right sums, in closed form (see
//! [`ninetieths`]), rounded up or down to integers with the same sums. That this is always possible is the integrality
//! of flows: a cell lies in one block (the pair of a group, or its others) and in one column, so the cells are the
//! edges of a bipartite graph.

use super::{Refusal, Stock};

/// Labels.
pub(crate) const CLASSES: usize = 5;

/// Groups: the pairs of labels.
pub(crate) const PAIRS: [[usize; 2]; 10] = [
    [0, 1],
    [0, 2],
    [0, 3],
    [0, 4],
    [1, 2],
    [1, 3],
    [1, 4],
    [2, 3],
    [2, 4],
    [3, 4],
];

/// The paper's shares: 350 + 350 of a group's 920 samples have its two labels.
const PAIR_SHARE: (usize, usize) = (700, 920);

/// The common denominator of all fractions of the table.
const DENOMINATOR: i64 = 90;

type Table<T> = [[T; CLASSES]; PAIRS.len()];

/// Counts per group and class.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Samples of each class (column) for each group (row).
    pub(crate) counts: Table<usize>,
    /// Samples that no group gets, so that all groups are equally large: at most 9.
    pub(crate) left_out: usize,
}

/// The class that has too few samples for every group to have its two labels in front.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooFew(pub(crate) usize);

/// The groups' units and names.
pub(super) fn scheme(stock: &mut Stock<'_>) -> Result<(Vec<Vec<usize>>, Vec<String>), Refusal> {
    let available: [usize; CLASSES] = std::array::from_fn(|class| stock.classes[class].len());
    let shares = share_out(available).map_err(|TooFew(class)| {
        format!(
            "class {} has {} rows left for training, of {} in all: too few to give each of the ten groups its two labels; \
             expected about as many as the other classes have, or smaller data.test and data.validation",
            stock.class_names[class],
            available[class],
            available.iter().sum::<usize>(),
        )
    })?;
    let names =
        PAIRS.map(|[a, b]| format!("labels {}+{}", stock.class_names[a], stock.class_names[b]));
    let counts: Vec<Vec<usize>> = shares.counts.iter().map(|row| row.to_vec()).collect();
    Ok((stock.take(&counts), names.into()))
}

/// Deals classes of these sizes to the ten groups.
pub(crate) fn share_out(mut available: [usize; CLASSES]) -> Result<Shares, TooFew> {
    let scarcest = (0..CLASSES)
        .min_by_key(|&class| available[class])
        .unwrap_or(0);
    let total: usize = available.iter().sum();
    let (size, left_out) = (total / PAIRS.len(), total % PAIRS.len());
    for _ in 0..left_out {
        let largest = (0..CLASSES)
            .rev()
            .max_by_key(|&class| available[class])
            .unwrap_or(0);
        available[largest] -= 1;
    }
    let (share, of) = PAIR_SHARE;
    let pair_size = (size * share + of / 2) / of;
    let fractions = ninetieths(available, size, pair_size);
    let counts = Rounding::new(fractions, available, [pair_size, size - pair_size]).finish();

    let mut table = [[0; CLASSES]; PAIRS.len()];
    for ((row, counts), [a, b]) in table.iter_mut().zip(counts).zip(PAIRS) {
        for (cell, count) in row.iter_mut().zip(counts) {
            *cell = usize::try_from(count).map_err(|_| TooFew(scarcest))?;
        }
        let others = (0..CLASSES).filter(|&class| class != a && class != b);
        let most_of_others = others.map(|class| row[class]).max().unwrap_or(0);
        if row[a].min(row[b]) <= most_of_others {
            return Err(TooFew(scarcest));
        }
    }
    Ok(Shares {
        counts: table,
        left_out,
    })
}

/// The table before rounding, in ninetieths.
///
/// Let a class have e more samples than the mean (the e add up to 0), and P and R be the sizes of a pair and of its
/// rest. With a price λ per class, the least-squares change of a table of P/2 and R/3 that keeps the sums of pairs and
/// rests is λ less the mean λ of the cell's block. A column then grows by 5/2·λ in its 4 pairs and by 5·λ in its 6
/// rests, so λ = e·2/15.
fn ninetieths(available: [usize; CLASSES], size: usize, pair_size: usize) -> Table<i64> {
    let rest_size = (size - pair_size) as i64;
    let excess = available.map(|count| count as i64 - 2 * size as i64);
    PAIRS.map(|[a, b]| {
        let pair_excess = excess[a] + excess[b];
        std::array::from_fn(|class| {
            if class == a || class == b {
                45 * pair_size as i64 + 12 * excess[class] - 6 * pair_excess
            } else {
                30 * rest_size + 12 * excess[class] + 4 * pair_excess
            }
        })
    })
}

/// Rounds the cells so that blocks and columns keep their sums: all cells down, then some up again, found as a flow of
/// the missing units from blocks to columns.
struct Rounding {
    floors: Table<i64>,
    fractional: Table<bool>,
    up: Table<bool>,
    /// Units that the pair and the rest of each group still miss.
    missing_in_block: [[i64; 2]; PAIRS.len()],
    missing_in_column: [i64; CLASSES],
}

impl Rounding {
    fn new(ninetieths: Table<i64>, columns: [usize; CLASSES], blocks: [usize; 2]) -> Self {
        let floors = ninetieths.map(|row| row.map(|cell| cell.div_euclid(DENOMINATOR)));
        let mut missing_in_block = [blocks.map(|size| size as i64); PAIRS.len()];
        let mut missing_in_column = columns.map(|size| size as i64);
        for (group, row) in floors.iter().enumerate() {
            for (class, cell) in row.iter().enumerate() {
                missing_in_block[group][block_of(group, class)] -= cell;
                missing_in_column[class] -= cell;
            }
        }
        Rounding {
            floors,
            fractional: ninetieths.map(|row| row.map(|cell| cell.rem_euclid(DENOMINATOR) > 0)),
            up: [[false; CLASSES]; PAIRS.len()],
            missing_in_block,
            missing_in_column,
        }
    }

    fn finish(mut self) -> Table<i64> {
        for group in 0..PAIRS.len() {
            for block in 0..2 {
                for _ in 0..self.missing_in_block[group][block] {
                    let found = self.place(group, block, &mut [false; CLASSES]);
                    debug_assert!(found, "fractions with integer sums can be rounded");
                }
            }
        }
        std::array::from_fn(|group| {
            std::array::from_fn(|class| {
                self.floors[group][class] + i64::from(self.up[group][class])
            })
        })
    }

    /// Rounds one more cell of a block up, moving units of other blocks out of the way where their columns are full.
    fn place(&mut self, group: usize, block: usize, tried: &mut [bool; CLASSES]) -> bool {
        for class in 0..CLASSES {
            let free = self.fractional[group][class] && !self.up[group][class];
            if !free || block_of(group, class) != block || tried[class] {
                continue;
            }
            tried[class] = true;
            if self.missing_in_column[class] > 0 {
                self.missing_in_column[class] -= 1;
                self.up[group][class] = true;
                return true;
            }
            for other in 0..PAIRS.len() {
                if self.up[other][class] && self.place(other, block_of(other, class), tried) {
                    self.up[other][class] = false;
                    self.up[group][class] = true;
                    return true;
                }
            }
        }
        false
    }
}

/// 0 where the class is one of the group's pair, 1 where it is one of the others.
fn block_of(group: usize, class: usize) -> usize {
    usize::from(!PAIRS[group].contains(&class))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_nn::random::Key;

    /// The invariants of the module's description.
    fn check(available: [usize; CLASSES], shares: &Shares) {
        let total: usize = available.iter().sum();
        let size = total / 10;
        let pair_size = (size as f64 * 700.0 / 920.0).round() as usize;
        assert_eq!(shares.left_out, total - 10 * size);
        for (row, [a, b]) in shares.counts.iter().zip(PAIRS) {
            assert_eq!(row.iter().sum::<usize>(), size, "{available:?}: {row:?}");
            assert_eq!(row[a] + row[b], pair_size, "{available:?}: {row:?}");
            let mut ranked: Vec<usize> = (0..CLASSES).collect();
            ranked.sort_by_key(|&class| std::cmp::Reverse(row[class]));
            ranked.truncate(2);
            ranked.sort_unstable();
            assert_eq!(ranked, [a, b], "{available:?}: {row:?}");
        }
        let mut unused = 0;
        for (class, available) in available.into_iter().enumerate() {
            let dealt: usize = shares.counts.iter().map(|row| row[class]).sum();
            assert!(
                dealt <= available,
                "class {class} is dealt {dealt} of {available}"
            );
            unused += available - dealt;
        }
        assert_eq!(unused, shares.left_out, "{available:?}");
    }

    #[test]
    fn the_papers_counts() {
        let shares = share_out([1_840; CLASSES]).unwrap();
        check([1_840; CLASSES], &shares);
        for (row, pair) in shares.counts.iter().zip(PAIRS) {
            for (class, count) in row.iter().enumerate() {
                let right: &[usize] = if pair.contains(&class) {
                    &[350]
                } else {
                    &[73, 74]
                };
                assert!(right.contains(count), "{row:?}");
            }
        }
    }

    #[test]
    fn nearly_equal_classes_are_dealt_out_nearly_equally() {
        for seed in 0..3_000 {
            let mut stream = Key::new(seed).stream();
            let base = 20 + stream.below(2_000) as usize;
            let jitter = 1 + base as u64 / 20;
            let available = std::array::from_fn(|_| base + stream.below(jitter) as usize);
            let shares =
                share_out(available).unwrap_or_else(|e| panic!("seed {seed}: {available:?} {e:?}"));
            check(available, &shares);
            for (row, pair) in shares.counts.iter().zip(PAIRS) {
                for (class, &count) in row.iter().enumerate() {
                    let share = if pair.contains(&class) {
                        0.35
                    } else {
                        0.22 / 3.0
                    };
                    let even = share / 0.92 * base as f64 / 2.0;
                    let slack = 2.0 + 0.05 * base as f64;
                    assert!((count as f64 - even).abs() < slack, "seed {seed}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn unequal_classes_are_dealt_out_exactly_or_refused() {
        let mut refused = 0;
        for seed in 0..3_000 {
            let mut stream = Key::new(seed).with(1).stream();
            let available = std::array::from_fn(|_| 300 + stream.below(700) as usize);
            match share_out(available) {
                Ok(shares) => check(available, &shares),
                Err(TooFew(class)) => {
                    assert_eq!(available.iter().min(), Some(&available[class]));
                    refused += 1;
                }
            }
        }
        assert!((100..2_900).contains(&refused), "{refused}");
    }

    #[test]
    fn too_few_are_refused() {
        assert_eq!(share_out([0; CLASSES]), Err(TooFew(0)));
        assert_eq!(share_out([1, 2, 0, 3, 2]), Err(TooFew(2)));
        assert_eq!(share_out([1_000, 1_000, 1_000, 1_000, 0]), Err(TooFew(4)));
    }
}
