//! Categories are those of training rows: of one that only held-out rows have nothing can be learnt, so it counts as not
//! measured, as it does in patients whom training has not seen.

use crate::inputs::Column;
use crate::rows::{Rows, Side};
use crate::split::Split;
use crate::statistics::Scaling;
use selvedge_core::experiment::{DataSettings, TableSettings};
use selvedge_nn::Shape;
use std::ops::Range;

/// Removes categories that no training row has, unless they are listed; gives what a user should know.
pub(crate) fn keep_trained(rows: &mut Rows, split: &Split, settings: &DataSettings) -> Vec<String> {
    let t = &settings.table;
    let mut notes = Vec::new();
    let Rows {
        hospital,
        device,
        columns,
        ..
    } = rows;
    for (side, columns) in [hospital, device].into_iter().zip(columns) {
        keep_of_side(side, columns, split, t, &mut notes);
    }
    notes
}

/// A column of categories: its numbers in a row or step, the one that says whether it was measured, and its name.
struct Place {
    numbers: Range<usize>,
    mask: Option<usize>,
    column: usize,
}

fn keep_of_side(
    side: &mut Side,
    columns: &mut [Column],
    split: &Split,
    t: &TableSettings,
    notes: &mut Vec<String>,
) {
    let width = side.names.len();
    let lost: Vec<(Place, Vec<usize>)> = places(columns, t.masks)
        .into_iter()
        .filter_map(|place| {
            let unseen = unseen(side, width, &place.numbers, split);
            (!unseen.is_empty()).then_some((place, unseen))
        })
        .collect();
    let mut removed = vec![false; width];
    for (place, unseen) in &lost {
        let column = &mut columns[place.column];
        let (name, all) = (&column.name, column.categories.get_or_insert_default());
        let of = |n: &usize| format!("{:?}", all[*n - place.numbers.start]);
        let named: Vec<String> = unseen.iter().map(of).collect();
        let named = named.join(", ");
        let is_listed = t
            .categorical
            .of(name)
            .is_some_and(|given| !given.is_empty());
        if is_listed || t.categories == "all" {
            notes.push(format!(
                "{name:?}: no training row has the category {named}: the model learns nothing about it"
            ));
            continue;
        }
        notes.push(format!(
            "{name:?}: only held-out rows have the category {named}: it counts as not measured"
        ));
        unseen.iter().for_each(|n| removed[*n] = true);
        let first = place.numbers.start;
        let mut number = first..;
        all.retain(|_| number.next().is_none_or(|n| !removed[n]));
        forget(side, width, (place, unseen), t.missing == "carry");
    }
    remove(side, &removed);
}

/// Where the columns of categories are.
fn places(columns: &[Column], masks: bool) -> Vec<Place> {
    let widths = columns.iter().map(|column| match &column.categories {
        Some(categories) => categories.len(),
        None => 1,
    });
    let numbers: usize = widths.clone().sum();
    let mut at = 0;
    let places = widths.enumerate().map(|(column, wide)| {
        at += wide;
        Place {
            numbers: at - wide..at,
            mask: masks.then_some(numbers + column),
            column,
        }
    });
    let places: Vec<Place> = places.collect();
    let are_categories = |place: &Place| columns[place.column].categories.is_some();
    places.into_iter().filter(are_categories).collect()
}

/// Which of these numbers no training row has.
fn unseen(side: &Side, width: usize, numbers: &Range<usize>, split: &Split) -> Vec<usize> {
    let mut unseen: Vec<usize> = numbers.clone().collect();
    for row in split.groups.iter().flatten() {
        for step in side.row(*row).chunks_exact(width) {
            unseen.retain(|n| step[*n] != 1.0);
        }
        if unseen.is_empty() {
            break;
        }
    }
    unseen
}

/// Makes such categories what was not measured, as a reader does that does not know them.
fn forget(side: &mut Side, width: usize, (place, unseen): (&Place, &[usize]), carry: bool) {
    for row in side.values.chunks_exact_mut(side.shape.len()) {
        for step in (0..row.len()).step_by(width) {
            if unseen.iter().all(|n| row[step + n] != 1.0) {
                continue;
            }
            let numbers = place.numbers.start + step..place.numbers.end + step;
            match step.checked_sub(width).filter(|_| carry) {
                Some(before) => {
                    let from = place.numbers.start + before..place.numbers.end + before;
                    row.copy_within(from, numbers.start);
                }
                None => row[numbers].fill(f32::NAN),
            }
            if let Some(mask) = place.mask {
                row[step + mask] = 0.0;
            }
        }
    }
}

fn remove(side: &mut Side, removed: &[bool]) {
    if !removed.contains(&true) {
        return;
    }
    let width = removed.len();
    let mut at = 0..;
    let mut kept = || at.next().is_some_and(|n: usize| !removed[n % width]);
    side.values.retain(|_| kept());
    side.names = of_kept(&side.names, removed);
    side.gaps = of_kept(&side.gaps, removed);
    if let Scaling::Columns { scaled, .. } = &mut side.scaling {
        *scaled = of_kept(scaled, removed);
    }
    side.shape = match side.shape {
        Shape::Steps(steps, _) => Shape::Steps(steps, side.names.len()),
        _ => Shape::Flat(side.names.len()),
    };
}

/// The values of the columns that stay.
fn of_kept<T: Clone>(values: &[T], removed: &[bool]) -> Vec<T> {
    let kept = values.iter().zip(removed).filter(|(_, removed)| !**removed);
    kept.map(|(value, _)| value.clone()).collect()
}
