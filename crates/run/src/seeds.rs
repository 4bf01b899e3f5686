//! `seeds.json`: which runs differ in the seed only, in the folder above theirs.

use crate::error::{Context, Result};
use crate::files::{SEEDS, make_folder, read_json, write_whole};
use selvedge_core::experiment::Experiment;
use selvedge_data::SETS;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Runs of one experiment, one for each seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seeds {
    /// The name of the experiment.
    pub name: String,
    /// The seeds, each of which has a folder ([`of_seed`](crate::files::of_seed)).
    pub seeds: Vec<u64>,
    /// The experiment, with the first seed.
    pub experiment: serde_json::Value,
}

impl Seeds {
    /// The note in a folder, if there is one.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(SEEDS);
        path.is_file().then(|| read_json(&path)).transpose()
    }

    /// Its experiment; `folder` is where the note was read from.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn experiment(&self, folder: &Path) -> Result<Experiment> {
        SETS.from_json(&self.experiment)
            .with_context(|| format!("{} is invalid", folder.join(SEEDS).display()))
    }

    /// Writes it into a folder, which it creates.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        make_folder(folder)?;
        let text = serde_json::to_string_pretty(self)?;
        write_whole(&folder.join(SEEDS), text.as_bytes())
    }
}
