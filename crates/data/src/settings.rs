//! Checks of the `[data]` table that several sets share.

use crate::DataError;
use crate::deal::SCHEMES;
use selvedge_core::experiment::{DataSettings, one_of};
use std::fmt::Display;
use std::path::{Path, PathBuf};

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

/// What all sets that are read and split must have.
pub(crate) fn check(settings: &DataSettings) -> Result<(), DataError> {
    at_least_one("groups", settings.groups)?;
    at_least_one("samples_per_device", settings.samples_per_device)?;
    check_shares(settings)?;
    if !SCHEMES.contains(&settings.split.as_str()) {
        let expected = one_of(&settings.split, &SCHEMES);
        return Err(wrong("split", format!("{:?}", settings.split), expected));
    }
    if settings.split == "recording" && settings.set != "esr" {
        let expected = "only \"esr\" has recordings: expected another split; data.table.patient keeps a patient's rows together";
        return Err(wrong("split", "\"recording\"", expected));
    }
    if !(1e-3..=1e6).contains(&settings.beta) {
        return Err(wrong(
            "beta",
            settings.beta,
            "expected a number from 0.001 (skewed) to 1000000 (even)",
        ));
    }
    Ok(())
}

/// `share` of `count` rows, to the nearest row.
pub(crate) fn rows_of(share: f64, count: usize) -> usize {
    (share * count as f64).round() as usize
}

/// The file or folder of a set: `data.path`, or the first of its usual places that is there, below the data folder.
pub(crate) fn find_file(
    title: &str,
    settings: &DataSettings,
    data_dir: Option<&Path>,
    usual: &[&str],
    origin: &'static str,
) -> Result<PathBuf, DataError> {
    let wanted = match settings.path.as_str() {
        "" => usual.to_vec(),
        path => vec![path],
    };
    let missing = |problem: String| DataError::Missing {
        problem,
        file: wanted.first().copied().unwrap_or(title).into(),
        origin,
    };
    if let Some(path) = wanted.iter().map(Path::new).find(|path| path.is_absolute()) {
        return match path.exists() {
            true => Ok(path.to_owned()),
            false => Err(missing(format!("{} does not exist", path.display()))),
        };
    }
    let Some(dir) = data_dir else {
        return Err(missing(format!(
            "data.set = {:?} is read from files, and no folder is given",
            settings.set
        )));
    };
    let mut candidates = wanted.iter().map(|path| dir.join(path));
    candidates.find(|path| path.exists()).ok_or_else(|| {
        missing(match dir.is_dir() {
            true if settings.path.is_empty() => {
                format!("the data folder {} has no {title} file", dir.display())
            }
            true => format!("the data folder {} has no {}", dir.display(), settings.path),
            false => format!("the data folder {} does not exist", dir.display()),
        })
    })
}

/// Bytes of memory that are free on this machine, as far as it tells.
pub(crate) fn memory() -> u128 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u128>().ok());
    kilobytes.map_or(u128::MAX, |kilobytes| kilobytes * 1024)
}
