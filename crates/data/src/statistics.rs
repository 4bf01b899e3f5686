//! What the training rows of a set show about their columns, measured in a fixed order and in `f64`.

use crate::DataError;
use crate::derived;
use crate::rows::{Rows, Side};
use crate::settings::scaled_together;
use rayon::prelude::*;
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::Outcome;
pub(crate) use selvedge_core::statistics::{Scale, SideStatistics, Statistics};

/// How a side is brought to one size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scaling {
    /// One mean and one deviation for both sides together: all columns are moments of one signal.
    Together,
    /// Each column, or each feature of a step, for itself: those that are marked. What is missing becomes the mean,
    /// that is zero; others and their gaps are left alone, gaps as zero.
    Columns {
        /// Which columns are scaled; the others are masks or one-hot.
        scaled: Vec<bool>,
        /// Values beyond the 1st and the 99th percentile are brought back to them.
        clipped: bool,
    },
    /// By what the publisher measured.
    Given(Vec<Scale>),
}

/// How columns are measured (`data.scaling`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// By mean and deviation.
    Standard,
    /// By median and quartiles.
    Robust,
    /// By mean and deviation, those of skewed columns by logarithms.
    Logarithm,
}

impl Method {
    /// That of the settings, if these rows can be scaled by it.
    pub(crate) fn of(settings: &DataSettings, rows: &Rows) -> Result<Self, DataError> {
        let method = match settings.scaling.as_str() {
            "robust" => Method::Robust,
            "log" => Method::Logarithm,
            _ => Method::Standard,
        };
        let by_columns = |side: &Side| matches!(side.scaling, Scaling::Columns { .. });
        if method != Method::Standard && ![&rows.hospital, &rows.device].into_iter().all(by_columns)
        {
            return Err(scaled_together(settings));
        }
        Ok(method)
    }

    fn measure(self, values: &[f32]) -> Scale {
        match self {
            Method::Standard => Scale::of(values.iter().copied()),
            Method::Robust => Scale::robust(values),
            Method::Logarithm => Scale::unskewed(values),
        }
    }
}

/// Measures the training rows of a set.
pub(crate) fn measure<I: Iterator<Item = usize> + Clone>(
    rows: &Rows,
    method: Method,
    training: impl Fn() -> I + Sync,
) -> Statistics {
    let both = [&rows.hospital, &rows.device];
    let is_together = |side: &&Side| side.scaling == Scaling::Together;
    let together = both.iter().any(is_together).then(|| {
        let of_row = |row| both.into_iter().flat_map(move |side| side.row(row));
        Scale::of(training().flat_map(of_row).copied())
    });
    let side = |side: &Side| SideStatistics {
        names: side.names.clone(),
        shape: side.shape.dims(),
        scales: match &side.scaling {
            Scaling::Together => together.into_iter().collect(),
            Scaling::Given(scales) => scales.clone(),
            Scaling::Columns { scaled, clipped } => {
                columns(side, (scaled, *clipped, method), &training)
            }
        },
        missing: missing(side, &training),
    };
    Statistics {
        set: rows.set.clone(),
        rows: training().count(),
        outcome: Outcome::Class,
        classes: rows.classes.clone(),
        hospital: side(&rows.hospital),
        device: side(&rows.device),
    }
}

/// Whether a column says if others of the side were measured.
pub(crate) fn is_mask(names: &[String], name: &str) -> bool {
    let Some(base) = name.strip_suffix(" measured") else {
        return false;
    };
    let is_of = |other: &String| {
        let rest = other.strip_prefix(base);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" = "))
    };
    names.iter().any(is_of)
}

/// For each column of a side that has a name, the share of values that were not measured. Where a column's mask is
/// there too it knows, since gaps may have been filled; else the reader may have counted them, in all rows, before it
/// did so.
fn missing<I: Iterator<Item = usize>>(side: &Side, training: &impl Fn() -> I) -> Vec<f64> {
    let width = side.names.len();
    let mask = |name: &String| {
        let mask = |name: &str| {
            let mask = format!("{name} measured");
            side.names.iter().position(|other| *other == mask)
        };
        mask(name).or_else(|| mask(derived::channel_of(name)?))
    };
    let masks: Vec<Option<usize>> = side.names.iter().map(mask).collect();
    let mut counts = vec![0u64; width];
    let mut all = 0u64;
    for row in training() {
        for step in side.row(row).chunks(width.max(1)).filter(|_| width > 0) {
            all += 1;
            for ((count, value), mask) in counts.iter_mut().zip(step).zip(&masks) {
                *count += u64::from(match mask {
                    Some(mask) => step[*mask] == 0.0,
                    None => value.is_nan(),
                });
            }
        }
    }
    let share = |(at, count): (usize, u64)| match (masks[at], side.gaps.get(at)) {
        (None, Some(gap)) => *gap,
        _ => count as f64 / all.max(1) as f64,
    };
    counts.into_iter().enumerate().map(share).collect()
}

/// The scale of each column of a side; of a series, of each feature over all steps.
fn columns<I: Iterator<Item = usize> + Clone>(
    side: &Side,
    (scaled, clipped, method): (&[bool], bool, Method),
    training: &(impl Fn() -> I + Sync),
) -> Vec<Scale> {
    let width = scaled.len();
    let column = |at: usize| {
        let values = training().flat_map(move |row| side.row(row)[at..].iter().step_by(width));
        values.copied().filter(|value| !value.is_nan())
    };
    let scale = |(at, scaled): (usize, &bool)| match (scaled, clipped) {
        (false, _) => Scale::IDENTITY,
        (true, false) if method == Method::Standard => Scale::of(column(at)).still(column(at)),
        (true, false) => method
            .measure(&column(at).collect::<Vec<_>>())
            .still(column(at)),
        (true, true) => Scale::clipped(&column(at).collect::<Vec<_>>(), |values| {
            method.measure(values)
        }),
    };
    scaled.par_iter().enumerate().map(scale).collect()
}
