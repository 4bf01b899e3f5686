//! The folder of one party, written by itself from rows that nobody else has.

use super::gateway::Carried;
use super::party::PartyShard;
use super::shard::{OFFSETS, Shard, ShardPart};
use super::write::{check_empty, fill, replace, write_json};
use super::{INDEX, Index, STATISTICS};
use crate::files::npz::NpzWriter;
use crate::{DataError, Statistics};
use selvedge_nn::Shape;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

/// What one party has of its group: one row for each device.
#[derive(Clone, Debug)]
pub(crate) struct OwnShard {
    pub(crate) party: PartyShard,
    /// Devices of the whole group.
    pub(crate) devices: u32,
    /// Where a gateway's held-out rows begin among the group's.
    pub(crate) from: [u32; 2],
    /// The shape of a row.
    pub(crate) shape: Shape,
    /// Training, validation, test.
    pub(crate) parts: [OwnPart; 3],
}

/// Some of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnPart {
    /// Pseudonyms.
    pub(crate) patients: Vec<String>,
    /// As they were measured.
    pub(crate) x: Vec<f32>,
    pub(crate) y: Vec<u32>,
    /// The place of the first among the rows of all groups; of no use in training.
    pub(crate) base: u32,
}

/// Refuses a folder that a party's shard cannot be written to: one that holds something or, where it may be replaced, holds
/// something that is no such shard.
pub(crate) fn check_folder(folder: &Path, again: bool) -> Result<(), DataError> {
    match again && folder.join(INDEX).is_file() {
        true => Ok(()),
        false => check_empty(folder),
    }
}

/// Writes a party's folder: the index, the statistics, its own shard if it has one, and a file that says how it came about.
pub(crate) fn write_own(
    folder: &Path,
    again: bool,
    (index, statistics): (&Index, &Statistics),
    own: Option<&OwnShard>,
    (name, about): (&str, &serde_json::Value),
) -> Result<(), DataError> {
    check_folder(folder, again)?;
    let write = |partial: &Path| {
        fs::create_dir_all(partial)?;
        write_json(&partial.join(INDEX), index)?;
        write_json(&partial.join(STATISTICS), &statistics.to_json())?;
        write_json(&partial.join(name), about)?;
        match own.and_then(|own| Some((own, own.party.file()?))) {
            Some((own, file)) => {
                let file = partial.join(file);
                fs::create_dir_all(file.parent().unwrap_or(partial))?;
                own.write(&file)
            }
            None => Ok(()),
        }
    };
    match again {
        true => replace(folder, write),
        false => fill(folder, write),
    }
}

impl OwnShard {
    fn write(&self, file: &Path) -> io::Result<()> {
        let offsets: Vec<u32> = (0..=self.devices).collect();
        let carried = match &self.party {
            PartyShard::Edge(_) | PartyShard::Coordinator => {
                let mut npz = NpzWriter::new(BufWriter::new(File::create(file)?))?;
                npz.integers(OFFSETS, &offsets)?;
                return npz.finish();
            }
            PartyShard::Hospital(_) => None,
            PartyShard::Gateway {
                devices, held_out, ..
            } => Some(Carried {
                devices: devices.clone(),
                held_out: *held_out,
                from: self.from,
            }),
        };
        let part = |(number, part): (usize, &OwnPart)| ShardPart {
            patients: part.patients.clone(),
            x: part.x.clone(),
            y: part.y.clone(),
            rows: match number {
                0 => Vec::new(),
                _ => (part.base..).take(part.y.len()).collect(),
            },
        };
        let mut parts = self.parts.iter().enumerate().map(part);
        let shard = Shard {
            parts: [(); 3].map(|()| parts.next().unwrap_or_default()),
            offsets,
            carried,
        };
        shard.write(file, self.shape)
    }
}
