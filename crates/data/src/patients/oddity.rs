//! What is unlike training about patients: values beyond its range, unknown categories, missing measurements.

use crate::derived::is_of_another;
use crate::inputs::{Inputs, SideInputs};
use crate::rows::Rows;
use crate::statistics::{Scale, SideStatistics};
use std::collections::HashSet;

/// So many deviations from the mean are far: at most one training value in a hundred can be, whatever the column.
const FAR: f64 = 10.0;

/// Something of a patient that is unlike training.
#[derive(Clone, Debug, PartialEq)]
pub struct Oddity {
    /// The patient's row.
    pub row: usize,
    /// The column.
    pub column: String,
    /// What is odd about it.
    pub odd: Odd,
}

/// What can be odd.
#[derive(Clone, Debug, PartialEq)]
pub enum Odd {
    /// A value beyond the range of training.
    Beyond {
        /// The value; of several the first.
        value: f32,
        /// The least and the greatest value in training.
        range: [f32; 2],
    },
    /// A value many deviations from the mean of training, where nobody may know the range.
    Far {
        /// The value; of several the one that is found first.
        value: f32,
        /// The mean and the standard deviation in training.
        scale: [f64; 2],
    },
    /// A value in a column that was never measured in training.
    Unseen(f32),
    /// A category not seen in training; it counts as not measured.
    Category(String),
    /// A category that is listed, but which no training row had: the model has learnt nothing about it.
    Untrained(String),
    /// No value where training always had one; or no value on a whole side.
    Unmeasured,
}

/// All that is odd, patient by patient.
pub(super) fn oddities(
    rows: &Rows,
    chosen: &[usize],
    measured: &[Vec<f32>; 2],
    inputs: &Inputs,
) -> Vec<Oddity> {
    let mut oddities = Vec::new();
    for (row, place) in chosen.iter().enumerate() {
        let of_row = rows.new_categories.get(&rows.ids[*place]);
        for (column, category) in of_row.into_iter().flatten() {
            oddities.push(Oddity {
                row,
                column: column.clone(),
                odd: Odd::Category(category.clone()),
            });
        }
    }
    for (number, name) in ["hospital", "device"].into_iter().enumerate() {
        let (statistics, side) = inputs.sides()[number];
        let of_side = (name, statistics);
        match side.ranges.is_empty() {
            true => far(&measured[number], of_side, &mut oddities),
            false => beyond(&measured[number], of_side, &side.ranges, &mut oddities),
        }
        untrained(&measured[number], statistics, side, &mut oddities);
        unmeasured(&measured[number], (name, statistics), side, &mut oddities);
    }
    // A new category is told as what it is.
    let new: HashSet<(usize, String)> = oddities
        .iter()
        .filter(|oddity| matches!(oddity.odd, Odd::Category(_)))
        .map(|oddity| (oddity.row, oddity.column.clone()))
        .collect();
    oddities.retain(|oddity| {
        oddity.odd != Odd::Unmeasured || !new.contains(&(oddity.row, oddity.column.clone()))
    });
    oddities.sort_by_key(|oddity| oddity.row);
    oddities
}

/// Finds values beyond those of training: of each row and column the first.
fn beyond(
    values: &[f32],
    (side, statistics): (&str, &SideStatistics),
    ranges: &[Option<[f32; 2]>],
    oddities: &mut Vec<Oddity>,
) {
    let wide = statistics.shape.iter().product::<usize>().max(1);
    let names = &statistics.names;
    let is_more_of_another = |column: usize| {
        names
            .get(column)
            .is_some_and(|name| is_of_another(names, name))
    };
    for (row, values) in values.chunks_exact(wide).enumerate() {
        for (column, range) in ranges.iter().enumerate() {
            // One of several categories, or whether something was measured, has no range.
            let is_scaled = statistics.scales.get(column) != Some(&Scale::IDENTITY);
            if (!is_scaled && !statistics.names.is_empty()) || is_more_of_another(column) {
                continue;
            }
            let mut own = values[column..].iter().step_by(ranges.len());
            let inside =
                |value: &f32| range.is_some_and(|[low, high]| (low..=high).contains(value));
            let Some(value) = own.find(|value| !value.is_nan() && !inside(value)) else {
                continue;
            };
            let name = statistics.names.get(column);
            oddities.push(Oddity {
                row,
                column: name.map_or_else(|| format!("the {side} side"), String::clone),
                odd: match range {
                    Some(range) => Odd::Beyond {
                        value: *value,
                        range: *range,
                    },
                    None => Odd::Unseen(*value),
                },
            });
        }
    }
}

/// Finds values that are many deviations from the mean: of each row and column the first. In a deployed run only means
/// and deviations are known, since a least and a greatest value are single patients'.
fn far(values: &[f32], (side, statistics): (&str, &SideStatistics), oddities: &mut Vec<Oddity>) {
    let wide = statistics.shape.iter().product::<usize>().max(1);
    let columns = statistics.names.len().max(1);
    for (row, values) in values.chunks_exact(wide).enumerate() {
        for column in 0..columns {
            let scale = statistics.scales.get(column);
            let is_own = |name: &String| !is_of_another(&statistics.names, name);
            let is_own = statistics.names.get(column).is_none_or(is_own);
            let Some(scale) = scale.filter(|scale| is_own && **scale != Scale::IDENTITY) else {
                continue;
            };
            let is_far = |value: &&f32| scale.deviations(**value).abs() > FAR;
            let mut own = values[column..].iter().step_by(columns);
            if let Some(value) = own.find(is_far) {
                let name = statistics.names.get(column);
                oddities.push(Oddity {
                    row,
                    column: name.map_or_else(|| format!("the {side} side"), String::clone),
                    odd: Odd::Far {
                        value: *value,
                        scale: [scale.at(0.0), scale.at(1.0) - scale.at(0.0)],
                    },
                });
            }
        }
    }
}

/// Finds categories that the model has an input for, but that no training row had.
fn untrained(
    values: &[f32],
    statistics: &SideStatistics,
    side: &SideInputs,
    oddities: &mut Vec<Oddity>,
) {
    let wide = statistics.shape.iter().product::<usize>().max(1);
    let mut at = 0;
    for column in &side.columns {
        for category in column.categories.iter().flatten() {
            let number = at;
            at += 1;
            if side.ranges.get(number) != Some(&Some([0.0; 2])) {
                continue;
            }
            for (row, values) in values.chunks_exact(wide).enumerate() {
                let mut own = values[number..].iter().step_by(side.ranges.len());
                if own.any(|value| *value == 1.0) {
                    oddities.push(Oddity {
                        row,
                        column: column.name.clone(),
                        odd: Odd::Untrained(category.clone()),
                    });
                }
            }
        }
        at += usize::from(column.categories.is_none());
    }
}

/// Finds what was not measured of a patient at any time, though training always had it.
fn unmeasured(
    values: &[f32],
    (side, statistics): (&str, &SideStatistics),
    inputs: &SideInputs,
    oddities: &mut Vec<Oddity>,
) {
    let width = statistics.names.len();
    let features = features(statistics, inputs);
    if features.is_empty() {
        return;
    }
    let wide = statistics.shape.iter().product::<usize>().max(1);
    for (row, values) in values.chunks_exact(wide).enumerate() {
        let is_there = |feature: &&Feature<'_>| {
            let mut steps = values.chunks_exact(width);
            steps.any(|step| match feature.mask {
                Some(mask) => step[mask] != 0.0,
                None => !step[feature.at].is_nan(),
            })
        };
        let mut odd = |column: String| {
            oddities.push(Oddity {
                row,
                column,
                odd: Odd::Unmeasured,
            });
        };
        if !features.iter().any(|feature| is_there(&feature)) {
            odd(format!("the whole {side} side"));
            continue;
        }
        for feature in features.iter().filter(|feature| feature.is_always_there) {
            if !is_there(&feature) {
                odd(feature.name.to_owned());
            }
        }
    }
}

/// Something that is measured of patients.
struct Feature<'a> {
    name: &'a str,
    /// Its first number in a row or step, and the number that says whether it was measured.
    at: usize,
    mask: Option<usize>,
    /// Whether training never lacked it.
    is_always_there: bool,
}

/// The features of a side, as far as it has names.
fn features<'a>(statistics: &'a SideStatistics, inputs: &'a SideInputs) -> Vec<Feature<'a>> {
    let mut at = 0;
    let of_table = inputs.columns.iter().map(|column| {
        let first = at;
        at += column.categories.as_ref().map_or(1, Vec::len);
        (first, column.name.as_str())
    });
    let mut found: Vec<(usize, &str)> = of_table.collect();
    if found.is_empty() {
        let is_scaled = |at: &usize| statistics.scales.get(*at) != Some(&Scale::IDENTITY);
        let is_own = |name: &str| !is_of_another(&statistics.names, name);
        let names = statistics.names.iter().map(String::as_str).enumerate();
        found.extend(names.filter(|(at, name)| is_scaled(at) && is_own(name)));
    }
    let feature = |(at, name): (usize, &'a str)| {
        let mask = format!("{name} measured");
        Feature {
            name,
            at,
            mask: statistics.names.iter().position(|other| *other == mask),
            is_always_there: statistics.missing.get(at) == Some(&0.0),
        }
    };
    let inside = found
        .into_iter()
        .filter(|(at, _)| *at < statistics.names.len());
    inside.map(feature).collect()
}
