//! What every party is given: `shards.json`, which says who is there, and `stats.json`, by which all scale.

use super::{INDEX, STATISTICS};
use crate::{DataError, Statistics};
use selvedge_core::dataset::Group;
use selvedge_nn::Shape;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The layout that this version writes and reads.
pub(crate) const VERSION: u32 = 2;

/// The longest index or statistics that are still taken for them.
const LONGEST_JSON: u64 = 256 << 20;

/// The most devices of all groups: more are a mistake.
const MOST_DEVICES: usize = 1 << 28;

/// `shards.json`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) version: u32,
    /// The set that was cut.
    pub(crate) set: String,
    pub(crate) groups: Vec<IndexGroup>,
    /// Training rows of each class, in all groups together.
    pub(crate) labels: Vec<u64>,
    /// Training rows of the device that owns the most.
    pub(crate) largest: usize,
    /// Rows of validation and of the test, over all groups.
    pub(crate) validation: usize,
    pub(crate) test: usize,
    /// The fingerprint of `stats.json`.
    pub(crate) statistics: String,
    /// The fingerprint of the whole set as training sees it.
    pub(crate) dataset: String,
    /// A name for the key of the pseudonyms.
    pub(crate) pseudonyms: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IndexGroup {
    pub(crate) name: String,
    pub(crate) devices: usize,
    pub(crate) rows: usize,
}

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
                format!("version {version}: expected {VERSION}; cut the shards again"),
            ));
        }
        let index: Index = parse(&index_file, &text)?;
        let statistics_file = folder_of_all.join(STATISTICS);
        let refused = |problem| wrong_file(&statistics_file, problem);
        let value = parse(&statistics_file, &read_text(&statistics_file)?)?;
        let statistics = Statistics::from_json(value).map_err(refused)?;
        if statistics.fingerprint() != index.statistics {
            return Err(refused(format!(
                "its fingerprint is {}: expected {}, as {INDEX} says",
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

impl Index {
    /// The counts must fit each other, and the rows that were measured.
    pub(crate) fn check(&self, statistics: &Statistics) -> Result<(), String> {
        for (number, group) in self.groups.iter().enumerate() {
            let IndexGroup { devices, rows, .. } = group;
            let most = devices.saturating_mul(self.largest);
            if rows < devices || *rows > most || u32::try_from(*rows).is_err() {
                return Err(format!(
                    "group {number} has {rows} rows of {devices} devices: expected {devices} to {most} rows, at most {} on a device, and below 2^32",
                    self.largest
                ));
            }
        }
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.map(u128::from).sum::<u128>();
        let devices = sum(&mut self.groups.iter().map(|g| g.devices as u64));
        if devices > MOST_DEVICES as u128 {
            return Err(format!(
                "{devices} devices: expected at most {MOST_DEVICES}"
            ));
        }
        let rows = sum(&mut self.groups.iter().map(|g| g.rows as u64));
        let measured = statistics.rows;
        if rows != measured as u128 {
            return Err(format!(
                "the groups have {rows} rows: expected {measured}, as {STATISTICS} says"
            ));
        }
        let classes = statistics.classes.len();
        let labels = sum(&mut self.labels.iter().copied());
        if self.labels.len() != classes || labels != rows {
            return Err(format!(
                "labels = {:?} are {labels} rows of {} classes: expected {rows} of {classes}",
                self.labels,
                self.labels.len()
            ));
        }
        // The others of its group have at least one each.
        let room = self.groups.iter().map(|g| g.rows + 1 - g.devices);
        let room = room.max().unwrap_or(0);
        match rows == 0 || self.largest <= room {
            true => Ok(()),
            false => Err(format!(
                "largest = {}: expected at most {room}, since no group has room for more",
                self.largest
            )),
        }
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
    serde_json::from_str(text).map_err(|error| DataError::Line {
        file: file.to_owned(),
        line: error.line(),
        problem: format!("{error}: expected what `selvedge data split` wrote"),
    })
}
