//! Data sets: readers, splits and generators.
//!
//! [`load`] turns the `[data]` table of an experiment into a [`Dataset`]: rows split by group, by side
//! (hospital | device) and by device, with a validation and a test set apart, standardised with what
//! training rows alone show. The result depends on the settings, the seed and the bytes of the data
//! files, and on nothing else: not on threads, the order of rows in a file or the machine.
//!
//! A new set is a module and a line in [`load_with_notes`].
//!
//! ```
//! use selvedge_core::experiment::DataSettings;
//!
//! let settings = DataSettings { groups: 3, devices: 50, ..DataSettings::default() };
//! let dataset = selvedge_data::load(&settings, 42, None)?;
//! assert_eq!((dataset.groups.len(), dataset.devices(), dataset.test.len()), (3, 150, 30));
//! # Ok::<(), selvedge_data::DataError>(())
//! ```

mod error;
mod esr;
mod fields;
mod label_pairs;
mod lines;
mod npz;
mod settings;
mod standardise;
mod synthetic;
mod zip;

pub use error::DataError;
pub use npz::write_npz;

use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{DataSettings, one_of};
use std::path::Path;

/// The names that `data.set` may have.
pub const SETS: [&str; 2] = ["synthetic", "esr"];

/// Loads or generates the set that `settings` name.
///
/// `data_dir` is the folder with one sub-folder per set; sets made of files need it.
///
/// # Errors
/// If a setting cannot work, or a file is missing or not what it should be.
pub fn load(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
) -> Result<Dataset, DataError> {
    load_with_notes(settings, seed, data_dir).map(|(dataset, _)| dataset)
}

/// The same, and what a user should be told about it: rows that were left out, for instance.
///
/// # Errors
/// As [`load`].
pub fn load_with_notes(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
) -> Result<(Dataset, Vec<String>), DataError> {
    match settings.set.as_str() {
        "synthetic" => Ok((synthetic::load(settings, seed)?, Vec::new())),
        "esr" => esr::load(settings, seed, data_dir),
        unknown => Err(settings::wrong(
            "set",
            format!("{unknown:?}"),
            one_of(unknown, &SETS),
        )),
    }
}
