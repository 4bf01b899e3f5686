//! Who gets which rows: test, validation, and the groups.
//!
//! Rows are assigned in *units*: single rows, or rows that must stay together (pieces of one recording, samples of one
//! patient). Where the publisher has not decided it, units of each class are shuffled by the seed; the first go to the
//! test, the next to validation, the rest to training. A *scheme* then assigns training units to groups:
//!
//! | `data.split` | groups |
//! | --- | --- |
//! | `pairs` | two labels dominate in each group |
//! | `ramp` | the rarer of two classes grows more frequent from group to group |
//! | `dirichlet` | each class's shares of the groups are drawn from a Dirichlet distribution of `data.beta` |
//! | `iid` | every group has the same mix |
//! | `column` | as given by a column of the file |
//! | `paper` | what the paper does for the set: one of these |
//!
//! Everything handed out is in the order of the rows, and nothing is handed out twice.

mod dirichlet;
mod label_pairs;
mod ramp;
mod two_labels;

use crate::DataError;
use crate::rows::{Part, Rows};
use crate::settings::{rows_of, wrong};
use selvedge_core::experiment::{DataSettings, SPLITS, one_of};
use selvedge_nn::random::Key;
use std::collections::BTreeMap;

/// First words of the keys.
mod word {
    pub(super) const SHUFFLE: u64 = u64::from_be_bytes(*b"shuffled");
    pub(super) const SCHEME: u64 = u64::from_be_bytes(*b"dealplan");
}

/// Rows by where they go.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Split {
    /// The rows of each group.
    pub(crate) groups: Vec<Vec<usize>>,
    /// What the groups are called.
    pub(crate) names: Vec<String>,
    /// The rows for choosing.
    pub(crate) validation: Vec<usize>,
    /// The rows that training never sees.
    pub(crate) test: Vec<usize>,
    /// Training rows that no group gets, so that all are equally large.
    pub(crate) left_out: Vec<usize>,
}

impl Split {
    /// The groups, validation, test.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[usize]> {
        let held_out = [&self.validation[..], &self.test[..]];
        self.groups.iter().map(Vec::as_slice).chain(held_out)
    }

    /// What a user should know.
    pub(crate) fn notes(&self, rows: &Rows) -> Vec<String> {
        let mut notes = Vec::new();
        let kept: usize = self.groups.iter().map(Vec::len).sum();
        if !self.left_out.is_empty() {
            notes.push(format!(
                "{} of {} training rows are left out to make all groups the same size",
                self.left_out.len(),
                kept + self.left_out.len()
            ));
        }
        if self.test.is_empty() {
            notes.push(
                "no rows are held out for testing: performance on new patients cannot be estimated"
                    .into(),
            );
        }
        // Groups by the column are called as there; of other splits none is.
        if let Some(given) = &rows.given_groups
            && self.names.iter().all(|name| given.names.contains(name))
        {
            let held_out = given.names.iter().filter(|n| !self.names.contains(n));
            let held_out: Vec<&String> = held_out.collect();
            if !held_out.is_empty() {
                notes.push(format!("{}: held out as a whole", without_rows(&held_out)));
            }
        }
        let training: Vec<usize> = self.groups.iter().flatten().copied().collect();
        let parts = [
            ("training", &training),
            ("validation", &self.validation),
            ("test", &self.test),
        ];
        for (part, chosen) in parts {
            if rows.known.is_some() {
                continue;
            }
            let mut counts = vec![0u64; rows.classes.len()];
            chosen
                .iter()
                .for_each(|row| counts[rows.y[*row] as usize] += 1);
            let lacking = rows
                .classes
                .iter()
                .zip(&counts)
                .filter(|(_, count)| **count == 0);
            let lacking: Vec<String> = lacking.map(|(class, _)| format!("{class:?}")).collect();
            if !lacking.is_empty() && !chosen.is_empty() {
                notes.push(format!(
                    "no {part} rows have the label {}",
                    lacking.join(", ")
                ));
            }
        }
        notes
    }
}

/// What a scheme is given: the training units of each class, shuffled, and how many groups to make.
pub(crate) struct Stock<'a> {
    /// The units of each class.
    pub(crate) classes: Vec<Vec<usize>>,
    /// The names of the classes.
    pub(crate) class_names: &'a [String],
    /// M.
    pub(crate) groups: usize,
    /// How large the groups are to be, relative to each other; they add up to 1.
    pub(crate) shares: Vec<f64>,
}

impl Stock<'_> {
    fn total(&self) -> usize {
        self.classes.iter().map(Vec::len).sum()
    }

    /// Takes units as a table of counts says, group by class.
    fn take(&mut self, counts: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let mut take_group = |counts: &Vec<usize>| {
            let taken = counts.iter().zip(&mut self.classes);
            taken
                .flat_map(|(&count, class)| class.drain(..count))
                .collect()
        };
        counts.iter().map(&mut take_group).collect()
    }

    /// The sizes of the groups: their shares of all units, rounded so that they add up, or all equal.
    fn sizes(&self) -> Vec<usize> {
        let total = self.total();
        if self.shares.iter().all(|share| *share == self.shares[0]) {
            return vec![total / self.groups; self.groups];
        }
        let mut end = 0.0;
        let mut before = 0;
        let size = |share: &f64| {
            end += share;
            let until = ((end * total as f64).round() as usize).clamp(before, total);
            let size = until - before;
            before = until;
            size
        };
        self.shares.iter().map(size).collect()
    }
}

/// Why a scheme cannot deal these classes: what is wrong and what would be right.
pub(crate) type Refusal = String;

/// Rows that stay together.
struct Unit {
    class: usize,
    rows: Vec<usize>,
}

/// Says who gets which rows.
pub(crate) fn split_rows(
    rows: &Rows,
    settings: &DataSettings,
    seed: u64,
) -> Result<Split, DataError> {
    let count = rows.y.len();
    if settings.groups > count {
        let expected = format!("the data set has {count} rows: expected at most one group per row");
        return Err(wrong("groups", settings.groups, expected));
    }
    let units = units(rows)?;
    let key = Key::new(seed).with(word::SHUFFLE);
    let (mut validation, mut test) = (Vec::new(), Vec::new());
    let has = |part: Part| rows.parts.contains(&part);
    // A file that says what each row is for is not second-guessed.
    let (ships_validation, ships_test) =
        (has(Part::Validation), has(Part::Test) || !has(Part::Open));
    let mut classes = Vec::new();
    for class in 0..rows.strata().len() {
        let mut members = Vec::new();
        for (number, unit) in units.iter().enumerate().filter(|(_, u)| u.class == class) {
            match rows.parts[unit.rows[0]] {
                Part::Test => test.push(number),
                Part::Validation => validation.push(number),
                Part::Open | Part::Training => members.push(number),
            }
        }
        key.with(class as u64).stream().shuffle(&mut members);
        if !ships_test {
            test.extend(members.drain(..rows_of(settings.test, members.len())));
        }
        if !ships_validation {
            validation.extend(members.drain(..rows_of(settings.validation, members.len())));
        }
        classes.push(members);
    }
    let mut stock = Stock {
        classes,
        class_names: rows.strata(),
        groups: settings.groups,
        shares: shares(settings)?,
    };
    let (groups, names) = by_scheme(rows, settings, seed, &units, &mut stock)?;
    let in_order = |mut chosen: Vec<usize>| -> Vec<usize> {
        chosen.sort_unstable();
        let rows = chosen.into_iter().flat_map(|unit| units[unit].rows.iter());
        rows.copied().collect()
    };
    let split = Split {
        groups: groups.into_iter().map(in_order).collect(),
        names,
        validation: in_order(validation),
        test: in_order(test),
        left_out: in_order(stock.classes.concat()),
    };
    if let Some(empty) = split.groups.iter().position(Vec::is_empty) {
        return Err(refused(
            rows,
            format!(
                "{} gets no rows: expected fewer groups (data.groups = {}) or smaller held-out shares (data.test = {}, data.validation = {})",
                split.names[empty], settings.groups, settings.test, settings.validation
            ) + &rows
                .notes
                .iter()
                .map(|note| format!("; {note}"))
                .collect::<String>(),
        ));
    }
    Ok(split)
}

/// The groups' units and names.
fn by_scheme(
    rows: &Rows,
    settings: &DataSettings,
    seed: u64,
    units: &[Unit],
    stock: &mut Stock<'_>,
) -> Result<(Vec<Vec<usize>>, Vec<String>), DataError> {
    let refuse = |problem| refused(rows, problem);
    let key = Key::new(seed).with(word::SCHEME);
    let numbered = |groups: Vec<Vec<usize>>| {
        let names = (0..groups.len()).map(|m| format!("group {m}")).collect();
        (groups, names)
    };
    let scheme = match settings.split.as_str() {
        "paper" => rows.paper,
        "recording" => "pairs",
        named => named,
    };
    match scheme {
        "pairs" if rows.strata().len() == 5 && settings.groups == 10 => {
            no_sizes(settings, "the ten pairs of labels make equal groups")?;
            label_pairs::scheme(stock).map_err(refuse)
        }
        "pairs" => two_labels::scheme(stock).map_err(refuse),
        "ramp" => Ok(numbered(ramp::scheme(stock).map_err(refuse)?)),
        "dirichlet" => Ok(numbered(dirichlet::scheme(stock, settings.beta, key))),
        "iid" => Ok(numbered(iid(stock))),
        "column" => {
            no_sizes(settings, "the column determines the sizes of the groups")?;
            by_column(rows, settings, units, stock)
        }
        unknown => Err(wrong(
            "split",
            format!("{unknown:?}"),
            one_of(unknown, &SPLITS),
        )),
    }
}

/// Every group gets its share of every class.
fn iid(stock: &mut Stock<'_>) -> Vec<Vec<usize>> {
    let sizes = stock.sizes();
    // Dealt like cards, class after class, so that every group gets as many of each as possible.
    let mut groups = vec![Vec::new(); sizes.len()];
    let mut left = Vec::new();
    let mut turn = 0;
    for class in &mut stock.classes {
        for unit in class.drain(..) {
            let free = |m: &usize| groups[*m].len() < sizes[*m];
            // The group that is furthest behind its share comes next; of equals the next one around.
            let order = (0..sizes.len()).map(|i| (turn + i) % sizes.len());
            let behind = |m: &usize| groups[*m].len() as f64 / sizes[*m].max(1) as f64;
            match order
                .filter(free)
                .min_by(|a, b| behind(a).total_cmp(&behind(b)))
            {
                Some(m) => {
                    groups[m].push(unit);
                    turn = (m + 1) % sizes.len();
                }
                None => left.push(unit),
            }
        }
    }
    stock.classes = vec![left];
    groups
}

/// The groups that the file names, in the order of their names.
fn by_column(
    rows: &Rows,
    settings: &DataSettings,
    units: &[Unit],
    stock: &mut Stock<'_>,
) -> Result<(Vec<Vec<usize>>, Vec<String>), DataError> {
    let Some(given) = &rows.given_groups else {
        let expected =
            "the data set has no group column: expected a different split, or data.table.group";
        return Err(wrong("split", "\"column\"", expected));
    };
    let mut groups = vec![Vec::new(); given.names.len()];
    for unit in stock.classes.iter_mut().flat_map(|class| class.drain(..)) {
        groups[given.of_row[units[unit].rows[0]] as usize].push(unit);
    }
    // A group of which all rows are held out takes no part in training: so a hospital is left out.
    let named = groups.into_iter().zip(given.names.iter().cloned());
    let (trained, held_out): (Vec<_>, Vec<_>) = named.partition(|(units, _)| !units.is_empty());
    if trained.len() != settings.groups {
        let held_out: Vec<&String> = held_out.iter().map(|(_, name)| name).collect();
        let without = match held_out.is_empty() {
            true => String::new(),
            false => format!(", {}", without_rows(&held_out)),
        };
        let expected = format!(
            "the group column has {} different values{without}: expected data.groups = {}",
            given.names.len(),
            trained.len()
        );
        return Err(wrong("groups", settings.groups, expected));
    }
    Ok(trained.into_iter().unzip())
}

/// What is said of groups that take no part in training.
fn without_rows(groups: &[&String]) -> String {
    let names: Vec<String> = groups.iter().map(|name| format!("{name:?}")).collect();
    let have = if names.len() == 1 { "has" } else { "have" };
    format!("{} {have} no training rows", names.join(", "))
}

/// Refuses `data.sizes` where something else decides.
pub(crate) fn no_sizes(settings: &DataSettings, why: &str) -> Result<(), DataError> {
    match settings.sizes.is_empty() {
        true => Ok(()),
        false => Err(wrong(
            "sizes",
            format!("{:?}", settings.sizes),
            format!("{why}: expected []"),
        )),
    }
}

/// Relative sizes, from `data.sizes` or all equal.
fn shares(settings: &DataSettings) -> Result<Vec<f64>, DataError> {
    let sizes = &settings.sizes;
    if sizes.is_empty() {
        return Ok(vec![1.0 / settings.groups as f64; settings.groups]);
    }
    let text = || format!("{sizes:?}");
    if sizes.len() != settings.groups {
        let expected = format!("expected {} numbers, one for each group", settings.groups);
        return Err(wrong("sizes", text(), expected));
    }
    if !sizes.iter().all(|size| *size > 0.0 && size.is_finite()) {
        return Err(wrong(
            "sizes",
            text(),
            "expected numbers above 0, like [2, 1, 1]",
        ));
    }
    let total: f64 = sizes.iter().sum();
    Ok(sizes.iter().map(|size| size / total).collect())
}

/// Single rows, or what stays together: with one label and in one part.
fn units(rows: &Rows) -> Result<Vec<Unit>, DataError> {
    if rows.units.is_empty() {
        let unit = |(row, class): (usize, &u32)| Unit {
            class: *class as usize,
            rows: vec![row],
        };
        return Ok(rows.y.iter().enumerate().map(unit).collect());
    }
    let mut by_number: BTreeMap<u32, Unit> = BTreeMap::new();
    for (row, number) in rows.units.iter().enumerate() {
        let class = rows.y[row] as usize;
        let unit = by_number.entry(*number).or_insert(Unit {
            class,
            rows: Vec::new(),
        });
        // A patient's rows may have different labels; pieces of one recording may not.
        if unit.class != class && !rows.devices_are_units {
            let (first, other) = (&rows.ids[unit.rows[0]], &rows.ids[row]);
            let (a, b) = (&rows.strata()[unit.class], &rows.strata()[class]);
            return Err(refused(
                rows,
                format!(
                    "{first} and {other} belong together but have the labels {a} and {b}: expected one label"
                ),
            ));
        }
        if let Some(first) = unit.rows.first() {
            check_together(rows, *first, row)?;
        }
        unit.rows.push(row);
    }
    Ok(by_number.into_values().collect())
}

/// Rows that stay together must be for the same part and, if they are a patient's, in the same of the file's groups.
fn check_together(rows: &Rows, first: usize, other: usize) -> Result<(), DataError> {
    let (a, b) = (&rows.ids[first], &rows.ids[other]);
    let (part_of_a, part_of_b) = (rows.parts[first], rows.parts[other]);
    if part_of_a != part_of_b {
        return Err(refused(
            rows,
            format!(
                "{a:?} and {b:?} belong to one patient, but one is for {part_of_a} and one for {part_of_b}: one patient's rows must be in one part"
            ),
        ));
    }
    let Some(given) = rows
        .given_groups
        .as_ref()
        .filter(|_| rows.devices_are_units)
    else {
        return Ok(());
    };
    let (group_of_a, group_of_b) = (given.of_row[first], given.of_row[other]);
    match group_of_a == group_of_b {
        true => Ok(()),
        false => Err(refused(
            rows,
            format!(
                "{a:?} and {b:?} belong to one patient, but are in the groups {:?} and {:?}: one patient's rows must be in one group",
                given.names[group_of_a as usize], given.names[group_of_b as usize]
            ),
        )),
    }
}

fn refused(rows: &Rows, problem: String) -> DataError {
    DataError::file(&rows.file, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{GivenGroups, Side};
    use crate::statistics::Scaling;
    use selvedge_nn::Shape;
    use std::collections::BTreeSet;

    fn side() -> Side {
        Side::new(Shape::Flat(0), Vec::new(), Scaling::Together)
    }

    /// Rows of random classes; with units, some rows stay together.
    fn made_up(seed: u64, count: usize, classes: usize, with_units: bool) -> Rows {
        let mut stream = Key::new(seed).stream();
        let unit_class: Vec<u32> = (0..count)
            .map(|_| stream.below(classes as u64) as u32)
            .collect();
        let units: Vec<u32> = match with_units {
            true => (0..count)
                .map(|_| stream.below(count as u64 / 3 + 1) as u32)
                .collect(),
            false => Vec::new(),
        };
        let y = match with_units {
            true => units
                .iter()
                .map(|unit| unit_class[*unit as usize])
                .collect(),
            false => unit_class,
        };
        Rows {
            set: "made up".into(),
            file: "made up".into(),
            hospital: side(),
            device: side(),
            classes: (0..classes).map(|c| c.to_string()).collect(),
            ids: (0..count).map(|row| format!("row {row}")).collect(),
            parts: vec![Part::Open; count],
            units,
            devices_are_units: false,
            columns: Default::default(),
            new_categories: Default::default(),
            incomplete: false,
            given_groups: Some(GivenGroups {
                of_row: (0..count as u32).map(|row| row % 4).collect(),
                names: ["north", "east", "south", "west"].map(String::from).into(),
            }),
            paper: "iid",
            notes: Vec::new(),
            known: None,
            y,
        }
    }

    fn settings(split: &str, groups: usize) -> DataSettings {
        DataSettings {
            split: split.into(),
            groups,
            test: 0.2,
            validation: 0.1,
            ..DataSettings::default()
        }
    }

    fn every_row_once(rows: &Rows, split: &Split) {
        let mut all: Vec<usize> = split.parts().flatten().copied().collect();
        all.extend(&split.left_out);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..rows.y.len()), "every row once");
    }

    #[test]
    fn every_row_goes_to_one_place_and_held_out_shares_are_exact() {
        for seed in 0..60 {
            for (scheme, groups, classes) in [
                ("pairs", 10, 5),
                ("pairs", 4, 3),
                ("ramp", 7, 2),
                ("dirichlet", 6, 4),
                ("iid", 9, 3),
                ("column", 4, 3),
            ] {
                let rows = made_up(seed, 900 + seed as usize, classes, false);
                let settings = settings(scheme, groups);
                let split = split_rows(&rows, &settings, seed)
                    .unwrap_or_else(|e| panic!("{scheme} {seed}: {e}"));
                every_row_once(&rows, &split);
                assert_eq!((split.groups.len(), split.names.len()), (groups, groups));
                assert_eq!(
                    split,
                    split_rows(&rows, &settings, seed).unwrap(),
                    "the seed decides"
                );
                for class in 0..classes as u32 {
                    let of_class =
                        |part: &[usize]| part.iter().filter(|row| rows.y[**row] == class).count();
                    let all = rows.y.iter().filter(|y| **y == class).count();
                    let test = rows_of(0.2, all);
                    assert_eq!(of_class(&split.test), test);
                    assert_eq!(of_class(&split.validation), rows_of(0.1, all - test));
                }
                if ["pairs", "ramp", "iid"].contains(&scheme) {
                    assert!(
                        split
                            .groups
                            .iter()
                            .all(|g| g.len() == split.groups[0].len()),
                        "{scheme}"
                    );
                    assert!(
                        split.left_out.len() < groups,
                        "{scheme}: {}",
                        split.left_out.len()
                    );
                }
            }
        }
    }

    #[test]
    fn what_belongs_together_stays_together() {
        for seed in 0..40 {
            let rows = made_up(seed, 1_000, 3, true);
            for scheme in ["iid", "dirichlet"] {
                let split = split_rows(&rows, &settings(scheme, 5), seed).unwrap();
                every_row_once(&rows, &split);
                let mut seen = BTreeSet::new();
                for part in split.parts().chain([&split.left_out[..]]) {
                    let units: BTreeSet<u32> = part.iter().map(|row| rows.units[*row]).collect();
                    assert!(
                        units.iter().all(|unit| seen.insert(*unit)),
                        "a unit in two places"
                    );
                }
            }
        }
    }

    #[test]
    fn groups_as_the_file_names_them() {
        let rows = made_up(1, 400, 2, false);
        let split = split_rows(&rows, &settings("column", 4), 1).unwrap();
        for (m, group) in split.groups.iter().enumerate() {
            assert!(group.iter().all(|row| row % 4 == m));
        }
        assert_eq!(split.names, ["north", "east", "south", "west"]);
        let error = split_rows(&rows, &settings("column", 5), 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("data.groups = 5") && error.contains("4 different"),
            "{error}"
        );
    }

    #[test]
    fn groups_of_unequal_size() {
        let rows = made_up(2, 1_000, 2, false);
        let mut settings = settings("iid", 3);
        settings.sizes = vec![6.0, 3.0, 1.0];
        let split = split_rows(&rows, &settings, 2).unwrap();
        let sizes: Vec<usize> = split.groups.iter().map(Vec::len).collect();
        assert_eq!(sizes, [432, 216, 72], "of 720 training rows");
        settings.sizes = vec![1.0, 2.0];
        assert!(
            split_rows(&rows, &settings, 2)
                .unwrap_err()
                .to_string()
                .contains("expected 3 numbers")
        );
        settings.sizes = vec![1.0, 0.0, 1.0];
        assert!(
            split_rows(&rows, &settings, 2)
                .unwrap_err()
                .to_string()
                .contains("above 0")
        );
    }

    #[test]
    fn what_the_publisher_decides_is_decided() {
        let mut rows = made_up(3, 300, 2, false);
        for (row, part) in rows.parts.iter_mut().enumerate() {
            *part = match row % 3 {
                0 => Part::Test,
                1 => Part::Validation,
                _ => Part::Training,
            };
        }
        let split = split_rows(&rows, &settings("iid", 2), 3).unwrap();
        assert!(split.test.iter().all(|row| row % 3 == 0) && split.test.len() == 100);
        assert!(split.validation.iter().all(|row| row % 3 == 1) && split.validation.len() == 100);
    }

    #[test]
    fn too_few_rows_are_refused() {
        let rows = made_up(4, 10, 2, false);
        for scheme in ["iid", "ramp", "pairs"] {
            let error = split_rows(&rows, &settings(scheme, 50), 4)
                .unwrap_err()
                .to_string();
            assert!(error.contains("expected"), "{scheme}: {error}");
        }
        let mut rows = made_up(5, 100, 2, true);
        rows.y[0] = 1 - rows.y[rows
            .units
            .iter()
            .rposition(|u| *u == rows.units[0])
            .unwrap()];
        if rows.units.iter().filter(|u| **u == rows.units[0]).count() > 1 {
            let error = split_rows(&rows, &settings("iid", 2), 5)
                .unwrap_err()
                .to_string();
            assert!(error.contains("belong together"), "{error}");
        }
    }
}
