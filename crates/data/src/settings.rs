//! Checks of the `[data]` table that several sets share.

use crate::DataError;
use crate::sets::{self, DataSet, SETS};
use crate::{mimic3, physionet2012};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{DataSettings, one_of};
use selvedge_core::outcome::Kind;
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

/// A set that nobody knows, or that cannot be used here.
pub(crate) fn unknown_set(settings: &DataSettings) -> DataError {
    let set = &settings.set;
    wrong("set", format!("{set:?}"), one_of(set, (SETS.names)()))
}

/// What each key alone must be, whatever the set.
pub(crate) fn check_values(settings: &DataSettings) -> Result<(), DataError> {
    let expected = |right: String| match right.starts_with("expected") {
        true => right,
        false => format!("expected {right}"),
    };
    settings.check_values().map_err(|refused| {
        let key = refused.key.trim_start_matches("data.");
        wrong(key, refused.value, expected(refused.right))
    })
}

/// What all sets that are read and split must have.
pub(crate) fn check(settings: &DataSettings) -> Result<(), DataError> {
    check_values(settings)?;
    let (set, _) = sets::find(&settings.set).ok_or_else(|| unknown_set(settings))?;
    outcome(settings, set)?;
    if !settings.derived.is_empty() && !set.has_steps {
        let expected = format!(
            "{:?} has no steps that measurements fall into: expected []",
            set.name
        );
        return Err(wrong(
            "derived",
            format!("{:?}", settings.derived),
            expected,
        ));
    }
    if settings.scaling != "standard" && !set.has_columns {
        return Err(scaled_together(settings));
    }
    if settings.hours != 1 && set.name != physionet2012::SET.name {
        let expected = "only \"physionet2012\" has hours: expected 1; a table has data.table.step";
        return Err(wrong("hours", settings.hours, expected));
    }
    if settings.every != 1 && !(set.name == mimic3::SET.name && mimic3::has_hours(settings)) {
        let expected = "only stays of \"mimic3\" have samples at many hours, with data.outcome = \"stay\" or \"decompensation\": expected 1";
        return Err(wrong("every", settings.every, expected));
    }
    if settings.split == "recording" && !set.has_recordings {
        let expected = format!(
            "only {:?} has recordings: expected a different split; data.table.patient keeps a patient's rows together",
            sets::with_recordings().join(", ")
        );
        return Err(wrong("split", "\"recording\"", expected));
    }
    Ok(())
}

/// An error about a way to scale columns, where there is another way already.
pub(crate) fn scaled_together(settings: &DataSettings) -> DataError {
    let expected = "these data are not scaled column by column: expected \"standard\"";
    wrong("scaling", format!("{:?}", settings.scaling), expected)
}

/// The positive class must be one of the classes.
pub(crate) fn check_positive(settings: &DataSettings, dataset: &Dataset) -> Result<(), DataError> {
    let (positive, classes) = (&settings.table.positive, &dataset.classes);
    if positive.is_empty() || (classes.contains(positive) && dataset.outcome.is_class()) {
        return Ok(());
    }
    if !dataset.outcome.is_class() {
        let expected = "the outcome is no class: expected \"\"";
        return Err(wrong("table.positive", format!("{positive:?}"), expected));
    }
    let known: Vec<&str> = classes.iter().map(String::as_str).collect();
    let expected = one_of(positive, &known);
    Err(wrong("table.positive", format!("{positive:?}"), expected))
}

/// The outcome of a set that `data.outcome` names, or its first, with its kind.
pub(crate) fn outcome(
    settings: &DataSettings,
    set: &DataSet,
) -> Result<(&'static str, Kind), DataError> {
    let word = settings.outcome.as_str();
    let found = set
        .outcomes
        .iter()
        .find(|(name, _)| word.is_empty() || *name == word);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = set.outcomes.iter().map(|(name, _)| *name).collect();
        wrong("outcome", format!("{word:?}"), one_of(word, &names))
    })
}

/// The word of `data.vertical`, which must be one of the set's; or none.
pub(crate) fn vertical<'a>(
    settings: &'a DataSettings,
    set: &DataSet,
) -> Result<&'a str, DataError> {
    let word = settings.vertical.as_str();
    match word.is_empty() || set.verticals.contains(&word) {
        true => Ok(word),
        false => Err(wrong(
            "vertical",
            format!("{word:?}"),
            one_of(word, set.verticals),
        )),
    }
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
            "data.set = {:?} is read from files, but no data folder is given",
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
