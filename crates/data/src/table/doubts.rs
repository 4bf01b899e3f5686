//! What a table may not mean: names that differ in case or spaces alone, a number that may stand for a missing value,
//! held-out rows that training has too. It is read as it is; who knows better is told.

use crate::derived::is_of_another;
use crate::inputs::Column;
use crate::rows::{Rows, Side};
use crate::split::Split;
use std::collections::{HashMap, HashSet};

/// Fewer rows with the same values, or a number that occurs less often, may be chance.
const FEW: usize = 3;

/// Rows of fewer different values than this share of all rows are the same by chance.
const DISTINCT: f64 = 0.4;

/// How far a number that stands for a missing value is from all others, in multiples of what these differ by.
const FAR: f64 = 3.0;

/// What a user should know of the rows of a table.
pub(crate) fn doubts(rows: &Rows, split: &Split) -> Vec<String> {
    if rows.columns.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let mut notes = Vec::new();
    for (side, columns) in [&rows.hospital, &rows.device]
        .into_iter()
        .zip(&rows.columns)
    {
        for column in columns {
            let names = column.categories.iter().flatten();
            notes.extend(
                alike(names.map(String::as_str))
                    .map(|(a, b)| of_names("categories", &column.name, (a, b))),
            );
        }
        notes.extend(sentinels(side, columns));
    }
    if let Some(given) = &rows.given_groups {
        let pair = alike(given.names.iter().map(String::as_str));
        notes.extend(pair.map(|pair| of_names("groups", "the group column", pair)));
    }
    notes.extend(doubles(rows, split));
    notes
}

fn of_names(what: &str, column: &str, (a, b): (&str, &str)) -> String {
    format!(
        "{column:?}: {a:?} and {b:?} count as different {what}: write them alike if they are the same"
    )
}

/// Two names that are the same but for case and spaces, if there are any.
pub(super) fn alike<'a>(names: impl Iterator<Item = &'a str>) -> Option<(&'a str, &'a str)> {
    let mut known: HashMap<String, &str> = HashMap::new();
    for name in names {
        let plain: Vec<&str> = name.split_whitespace().collect();
        if let Some(other) = known.insert(plain.join(" ").to_lowercase(), name) {
            return Some((other, name));
        }
    }
    None
}

/// Columns with a least or greatest number that occurs again and again, far from all others, such as −999.
fn sentinels(side: &Side, columns: &[Column]) -> Vec<String> {
    let width = side.names.len();
    let is_categorical = |name: &String| {
        let of = |column: &&Column| column.categories.is_some() && name.starts_with(&column.name);
        columns.iter().find(of).is_some()
    };
    let told = |(number, name): (usize, &String)| {
        if is_of_another(&side.names, name) || is_categorical(name) {
            return None;
        }
        let values = side.values.iter().skip(number).step_by(width);
        let mut values: Vec<f32> = values.copied().filter(|value| !value.is_nan()).collect();
        values.sort_unstable_by(f32::total_cmp);
        let (value, times) = sentinel(&values)?;
        Some(format!(
            "{name:?}: {value} occurs {times} times and is far from all other values: if it stands for a missing one, add it to data.table.blank"
        ))
    };
    side.names.iter().enumerate().filter_map(told).collect()
}

/// Such a number among sorted ones, and how often it occurs.
fn sentinel(sorted: &[f32]) -> Option<(f32, usize)> {
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    for value in [least, most] {
        let rest: Vec<f32> = sorted.iter().copied().filter(|x| *x != value).collect();
        let times = sorted.len() - rest.len();
        let different: HashSet<u32> = rest.iter().map(|x| x.to_bits()).collect();
        let (Some(low), Some(high)) = (rest.first(), rest.last()) else {
            continue;
        };
        let gap = f64::from(low - value).max(f64::from(value - high));
        let is_far = gap > FAR * f64::from(high - low);
        if times >= FEW && times < rest.len() && different.len() > FEW && is_far {
            return Some((value, times));
        }
    }
    None
}

/// Held-out rows with all values and the label of a training row: perhaps the same patients under other ids.
fn doubles(rows: &Rows, split: &Split) -> Vec<String> {
    let bits = |row: usize| -> Vec<u32> {
        let both = rows.hospital.row(row).iter().chain(rows.device.row(row));
        both.map(|x| x.to_bits()).chain([rows.y[row]]).collect()
    };
    let training: HashSet<Vec<u32>> = split
        .groups
        .iter()
        .flatten()
        .map(|row| bits(*row))
        .collect();
    let all: usize = split.groups.iter().map(Vec::len).sum();
    if (training.len() as f64) < DISTINCT * all as f64 {
        return Vec::new();
    }
    let parts = [("validation", &split.validation), ("test", &split.test)];
    let told = |(part, held_out): (&str, &Vec<usize>)| {
        let known = held_out
            .iter()
            .filter(|row| training.contains(&bits(**row)));
        let known = known.count();
        (known >= FEW).then(|| {
            format!(
                "{known} of {} {part} rows have all values and the label of a training row: if these are the same patients under other ids, metrics on them are too good (data.table.patient keeps a patient's rows together)",
                held_out.len()
            )
        })
    };
    parts.into_iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::{alike, sentinel};

    #[test]
    fn names_are_alike_but_for_case_and_spaces() {
        let found = |names: &[&'static str]| alike(names.iter().copied());
        assert_eq!(found(&["yes", "no", "Yes"]), Some(("yes", "Yes")));
        assert_eq!(
            found(&["St. Mary", "st.  mary "]),
            Some(("St. Mary", "st.  mary "))
        );
        assert_eq!(found(&["Zürich", "ZÜRICH"]), Some(("Zürich", "ZÜRICH")));
        assert_eq!(found(&["a", "b", "ab", ""]), None);
    }

    #[test]
    fn a_number_far_from_all_others_that_occurs_often_may_mean_nothing() {
        let with = |value: f32, times: usize| {
            let mut all: Vec<f32> = (0..40).map(|n| n as f32 / 10.0).collect();
            all.extend(vec![value; times]);
            all.sort_unstable_by(f32::total_cmp);
            sentinel(&all)
        };
        assert_eq!(with(-999.0, 5), Some((-999.0, 5)));
        assert_eq!(with(9999.0, 3), Some((9999.0, 3)));
        assert_eq!(with(-999.0, 2), None, "one or two may be real");
        assert_eq!(with(-5.0, 5), None, "near enough");
        assert_eq!(with(-999.0, 40), None, "as many as all others");
        assert_eq!(sentinel(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]), None);
        assert_eq!(sentinel(&[]), None);
    }
}
