//! Checks of the `[data]` table that several sets share.

use crate::DataError;
use selvedge_core::experiment::DataSettings;
use std::fmt::Display;

/// An error about one key of the `[data]` table.
pub(crate) fn wrong(
    key: &'static str,
    value: impl Display,
    expected: impl Into<String>,
) -> DataError {
    DataError::Setting {
        key,
        value: value.to_string(),
        expected: expected.into(),
    }
}

/// A count that must not be zero.
pub(crate) fn at_least_one(key: &'static str, value: usize) -> Result<(), DataError> {
    match value {
        0 => Err(wrong(key, value, "expected at least 1")),
        _ => Ok(()),
    }
}

/// The shares kept for test and validation: each in [0, 1), so that training keeps something.
pub(crate) fn check_shares(settings: &DataSettings) -> Result<(), DataError> {
    for (key, share) in [("test", settings.test), ("validation", settings.validation)] {
        if !(0.0..1.0).contains(&share) {
            let expected = "expected a share of the rows, at least 0 and less than 1, like 0.2";
            return Err(wrong(key, share, expected));
        }
    }
    Ok(())
}

/// `share` of `count` rows, to the nearest row.
pub(crate) fn rows_of(share: f64, count: usize) -> usize {
    (share * count as f64).round() as usize
}
