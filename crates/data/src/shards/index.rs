//! What every party is given: `shards.json`, which says who is there, and `stats.json`, by which all scale.

use super::shard::Asked;
use super::{INDEX, STATISTICS};
use crate::{DataError, Statistics};
use selvedge_core::dataset::Group;
pub(crate) use selvedge_core::enrol::{INDEX_VERSION as VERSION, Index, IndexGroup};
use selvedge_nn::Shape;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest index or statistics that are still taken for them.
const LONGEST_JSON: u64 = 256 << 20;

/// What every `shards.json` begins with, whatever its version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The index and the statistics of a folder, which fit each other.
pub(super) struct Common {
    pub(super) index: Index,
    pub(super) statistics: Statistics,
    /// The shape of a row of the hospital and of the device.
    pub(super) shapes: [Shape; 2],
    index_file: PathBuf,
}

impl Common {
    /// Reads both files.
    pub(super) fn read(folder_of_all: &Path) -> Result<Self, DataError> {
        let index_file = folder_of_all.join(INDEX);
        let text = read_text(&index_file)?;
        let Versioned { version } = parse(&index_file, &text)?;
        if version != VERSION {
            return Err(wrong_file(
                &index_file,
                format!(
                    "version {version}: expected {VERSION}; make the shards again with `selvedge data split`"
                ),
            ));
        }
        let index: Index = parse(&index_file, &text)?;
        let statistics_file = folder_of_all.join(STATISTICS);
        let refused = |problem| wrong_file(&statistics_file, problem);
        let value = parse(&statistics_file, &read_text(&statistics_file)?)?;
        let statistics = Statistics::from_json(value).map_err(refused)?;
        if !statistics.has_fingerprint(&index.statistics) {
            return Err(refused(format!(
                "its fingerprint is {}: expected {}, as in {INDEX}",
                statistics.fingerprint(),
                index.statistics
            )));
        }
        let shape = |dims: &[usize]| {
            Shape::try_from(dims.to_vec()).map_err(|error| refused(error.to_string()))
        };
        let shapes = [
            shape(&statistics.hospital.shape)?,
            shape(&statistics.device.shape)?,
        ];
        index
            .check(&statistics)
            .map_err(|problem| wrong_file(&index_file, problem))?;
        Ok(Common {
            index,
            statistics,
            shapes,
            index_file,
        })
    }

    /// The outcome, and the names of its classes.
    pub(super) fn asked(&self) -> Asked<'_> {
        (&self.statistics.outcome, &self.statistics.classes)
    }

    /// An error about the index.
    pub(super) fn wrong_index(&self, problem: String) -> DataError {
        wrong_file(&self.index_file, problem)
    }

    /// All groups as somebody sees them who has no rows at all.
    pub(super) fn hollow_groups(&self) -> Vec<Group> {
        let Index {
            groups, largest, ..
        } = &self.index;
        let hollow = |group: &IndexGroup| {
            Group::hollow(group.name.clone(), group.devices, group.rows, *largest)
        };
        groups.iter().map(hollow).collect()
    }
}

/// An error about a file as a whole.
pub(super) fn wrong_file(file: &Path, problem: String) -> DataError {
    DataError::file(file, problem)
}

fn read_text(file: &Path) -> Result<String, DataError> {
    let mut text = String::new();
    crate::files::open(file)?
        .take(LONGEST_JSON)
        .read_to_string(&mut text)
        .map_err(|source| DataError::io(file, source))?;
    Ok(text)
}

fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, DataError> {
    serde_json::from_str(text).map_err(|error| {
        let problem = format!("{error}: expected a file written by `selvedge data split`");
        DataError::line(file, error.line(), problem)
    })
}
