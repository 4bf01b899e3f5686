//! Data sets: readers, splits and generators.
//!
//! [`load`] turns the `[data]` table of an experiment into a [`Dataset`]: rows split by group, by side (hospital |
//! device) and by device, with separate validation and test sets, standardised with the statistics of training rows
//! only. The result depends on the settings, the seed and the bytes of the data files, and on nothing else: not on
//! threads, the order of rows in a file or the machine.
//!
//! A new data set is a module with a reader and a description of the set, and an entry in `ALL`.
//!
//! ```
//! use selvedge_core::experiment::DataSettings;
//!
//! let settings = DataSettings { groups: 3, devices: 50, ..DataSettings::default() };
//! let dataset = selvedge_data::load(&settings, 42, None)?;
//! assert_eq!((dataset.groups.len(), dataset.devices(), dataset.test.len()), (3, 150, 30));
//! # Ok::<(), selvedge_data::DataError>(())
//! ```

mod asked;
mod derived;
pub mod enrol;
mod error;
mod esr;
mod files;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod inputs;
mod medmnist;
mod mimic3;
mod patients;
mod physionet2012;
mod pseudonym;
mod rows;
mod sets;
mod settings;
mod shards;
mod sound;
mod split;
mod statistics;
mod synthetic;
mod table;
pub mod unfinished;

pub use error::DataError;
pub use files::npz::write_npz;
pub use inputs::{Column, Inputs, SideInputs};
pub use patients::{Labels, Odd, Oddity, Patients, Which, read_patients};
pub use pseudonym::PseudonymKey;
pub use selvedge_core::statistics::{Scale, SideStatistics, Statistics};
pub use sets::{SETS, kind_of, usual_targets};
pub use shards::{
    Cut, HeldOut, PartyLoaded, PartyPatients, PartyShard, cut, distribute, look_at_shards,
    read_party, read_party_and_patients,
};

use rows::Dealt;
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{DataSettings, Seen};
use sets::{DataSet, Source};
use std::path::Path;

/// All sets, in the order in which they are named.
static ALL: [&DataSet; 7] = [
    &synthetic::SET,
    &esr::SET,
    &medmnist::SET,
    &mimic3::SET,
    &physionet2012::SET,
    &table::SET,
    &shards::SET,
];

/// A loaded data set.
#[derive(Debug)]
pub struct Loaded {
    /// The set, split and scaled.
    pub dataset: Dataset,
    /// What it was scaled by.
    pub statistics: Statistics,
    /// The inputs of both sides, and their ranges in training.
    pub sides: [SideInputs; 2],
    /// Which rows of each group, of validation and of test belong to one patient: those with the same number. Empty
    /// where the files do not state it.
    pub persons: Vec<Vec<u32>>,
    /// The group of each test row, where the files state it.
    pub groups_of_test: Option<Vec<u32>>,
    /// Notes for the user: rows that were left out, for instance.
    pub notes: Vec<String>,
}

impl Loaded {
    /// What a model trained on it needs to read other patients.
    pub fn inputs(&self) -> Inputs {
        let [hospital, device] = self.sides.clone();
        Inputs {
            statistics: self.statistics.clone(),
            hospital,
            device,
        }
    }
}

/// A set that somebody has in memory, with numbers that are used as they are.
impl From<Dataset> for Loaded {
    fn from(dataset: Dataset) -> Self {
        let [hospital, device] = [dataset.hospital, dataset.device].map(SideStatistics::unscaled);
        let training = || dataset.groups.iter().map(|group| &group.samples);
        Loaded {
            sides: [
                SideInputs::new(Vec::new(), &hospital, training().map(|s| &s.x1)),
                SideInputs::new(Vec::new(), &device, training().map(|s| &s.x2)),
            ],
            statistics: Statistics {
                set: dataset.name.clone(),
                rows: dataset.training_samples(),
                outcome: dataset.outcome.clone(),
                classes: dataset.classes.clone(),
                hospital,
                device,
            },
            persons: vec![Vec::new(); dataset.groups.len() + 2],
            groups_of_test: None,
            notes: Vec::new(),
            dataset,
        }
    }
}

/// Loads or generates the data set that `settings` name.
///
/// `data_dir` is the folder with one sub-folder per set; sets made of files need it.
///
/// # Errors
/// If a setting is invalid, or a file is missing or malformed.
pub fn load(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
) -> Result<Dataset, DataError> {
    load_with_notes(settings, seed, data_dir).map(|loaded| loaded.dataset)
}

/// The same, with the statistics that it was scaled by and notes for the user.
///
/// # Errors
/// As [`load`].
pub fn load_with_notes(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
) -> Result<Loaded, DataError> {
    let loaded = match sets::find(&settings.set) {
        Some((set, _)) if matches!(set.source, Source::Shards) => shards::read(settings, data_dir),
        _ => read_or_generate(settings, seed, data_dir).map(Dealt::scale),
    }?;
    settings::check_positive(settings, &loaded.dataset)?;
    Ok(loaded)
}

/// Looks at a table for what a model must fit: which sides are time series, and how many classes there are. Nothing
/// where the settings say all of it, for other sets, or if the files cannot be read, which [`load`] then says.
pub fn look(settings: &DataSettings, data_dir: Option<&Path>) -> Option<Seen> {
    let is_told = settings.table.time.is_empty() && !settings.table.labels.is_empty();
    match settings.set == table::SET.name && !is_told {
        true => table::look(settings, data_dir).ok(),
        false => None,
    }
}

/// Reads or generates a set, and deals its rows.
fn read_or_generate(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
) -> Result<Dealt, DataError> {
    match sets::find(&settings.set) {
        Some((set, Some(twin))) => synthetic::generate(&twin.settings(set, settings), seed),
        Some((set, None)) => match set.source {
            Source::Generated => {
                settings::check(settings)?;
                synthetic::generate(settings, seed)
            }
            Source::Files { read, .. } => {
                settings::check(settings)?;
                read(settings, data_dir)?.deal(settings, seed)
            }
            Source::Shards => Err(settings::unknown_set(settings)),
        },
        None => Err(settings::unknown_set(settings)),
    }
}
