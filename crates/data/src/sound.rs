//! What training rows cannot teach: sides and columns without any value, scales that a few values set.

use crate::DataError;
use crate::derived::is_of_another;
use crate::rows::{Rows, Side};
use crate::split::Split;
use crate::statistics::{Scaling, SideStatistics, Statistics};

/// Columns that are named; of more it is said how many.
const MOST_NAMED: usize = 8;

/// Where the middle nine tenths of a column's values lie within this share of its deviation, a few others set it.
const FLAT: f64 = 0.05;

/// Refuses a side without values; says which columns will teach nothing.
pub(crate) fn check(
    rows: &Rows,
    split: &Split,
    statistics: &Statistics,
) -> Result<Vec<String>, DataError> {
    let sides = [
        ("hospital", &rows.hospital, &statistics.hospital),
        ("device", &rows.device, &statistics.device),
    ];
    let mut notes = Vec::new();
    for (name, side, measured) in sides {
        let (empty, some) = without_values(measured);
        if some == 0 && !empty.is_empty() {
            return Err(DataError::file(
                &rows.file,
                format!(
                    "no training row has a value at the {name}, in {}: expected some (a model cannot learn from a side without values)",
                    named(&empty)
                ),
            ));
        }
        if !empty.is_empty() {
            let have = if empty.len() == 1 { "has" } else { "have" };
            notes.push(format!(
                "{} {have} no value in any training row: the model learns nothing from it",
                named(&empty)
            ));
        }
        if let Scaling::Columns {
            scaled,
            clipped: false,
        } = &side.scaling
        {
            let columns = (0..scaled.len()).filter(|at| scaled[*at]);
            notes.extend(columns.filter_map(|at| set_by_few(rows, split, side, at)));
        }
    }
    Ok(notes)
}

/// The columns without any value, and how many have some.
fn without_values(side: &SideStatistics) -> (Vec<&str>, usize) {
    let columns = side.names.iter().zip(&side.missing);
    let columns = columns.filter(|(name, _)| !is_of_another(&side.names, name));
    let (empty, some): (Vec<_>, Vec<_>) = columns.partition(|(_, missing)| **missing >= 1.0);
    let names = empty.into_iter().map(|(name, _)| name.as_str());
    (names.collect(), some.len())
}

fn named(columns: &[&str]) -> String {
    let shown: Vec<String> = columns.iter().map(|name| format!("{name:?}")).collect();
    match columns.len().saturating_sub(MOST_NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more columns", shown[..MOST_NAMED].join(", ")),
    }
}

/// What is said of a column that becomes nearly constant when it is scaled, since a few of its values are far away.
fn set_by_few(rows: &Rows, split: &Split, side: &Side, at: usize) -> Option<String> {
    let width = side.names.len();
    let training = || split.groups.iter().flatten().copied();
    let of_row = |row: usize| side.row(row)[at..].iter().step_by(width).copied();
    let mut values: Vec<f32> = training()
        .flat_map(of_row)
        .filter(|value| !value.is_nan())
        .collect();
    let scale = crate::Scale::of(values.iter().copied());
    let last = values.len().checked_sub(1)?;
    let mut of_rank = |rank: usize| {
        let (_, value, _) = values.select_nth_unstable_by(rank, f32::total_cmp);
        f64::from(*value)
    };
    let (low, high) = (of_rank(last / 20), of_rank(last - last / 20));
    if low == high || high - low > FLAT * scale.deviation {
        return None;
    }
    let away = |value: f32| (f64::from(value) - low).abs();
    let furthest = |row: usize| {
        let values = of_row(row).filter(|value| !value.is_nan());
        values.max_by(|a, b| away(*a).total_cmp(&away(*b)))
    };
    let (row, value) = training()
        .filter_map(|row| Some((row, furthest(row)?)))
        .max_by(|(_, a), (_, b)| away(*a).total_cmp(&away(*b)))?;
    Some(format!(
        "{:?}: most training values are between {low} and {high}, but {:?} has {value}, which sets the scale: the others become nearly equal (correct it, add it to data.table.blank, or set data.table.clip = true)",
        side.names[at], rows.ids[row]
    ))
}
