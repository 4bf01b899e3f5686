//! The folder of one party, written by itself from rows that nobody else has.

use super::gateway::Carried;
use super::party::PartyShard;
use super::shard::{OFFSETS, Shard, ShardPart};
use super::write::{check_empty, fill, replace, write_json};
use super::{INDEX, Index, STATISTICS};
use crate::files::npz::NpzWriter;
use crate::{DataError, Statistics};
use selvedge_core::enrol::{OwnPart, OwnShard};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

/// Refuses a folder that a party's shard cannot be written to: one that holds something or, where it may be replaced,
/// holds something that is no such shard.
pub(crate) fn check_folder(folder: &Path, again: bool) -> Result<(), DataError> {
    match again && folder.join(INDEX).is_file() {
        true => Ok(()),
        false => check_empty(folder),
    }
}

/// Writes a party's folder: the index, the statistics, its own shard if it has one, and a file that says how it came
/// about.
pub(crate) fn write_own(
    folder: &Path,
    again: bool,
    (index, statistics): (&Index, &Statistics),
    own: Option<(&PartyShard, &OwnShard)>,
    (name, about): (&str, &serde_json::Value),
) -> Result<(), DataError> {
    check_folder(folder, again)?;
    let write = |partial: &Path| {
        fs::create_dir_all(partial)?;
        write_json(&partial.join(INDEX), index)?;
        write_json(&partial.join(STATISTICS), &statistics.to_json())?;
        write_json(&partial.join(name), about)?;
        match own.and_then(|(party, own)| Some((party, own, party.file()?))) {
            Some((party, own, file)) => {
                let file = partial.join(file);
                fs::create_dir_all(file.parent().unwrap_or(partial))?;
                write_shard(party, own, &file)
            }
            None => Ok(()),
        }
    };
    match again {
        true => replace(folder, write),
        false => fill(folder, write),
    }
}

fn write_shard(party: &PartyShard, own: &OwnShard, file: &Path) -> io::Result<()> {
    let offsets: Vec<u32> = (0..=own.devices).collect();
    let carried = match party {
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
            from: own.from,
        }),
    };
    let part = |(number, part): (usize, &OwnPart)| ShardPart {
        patients: part.patients.clone(),
        x: part.x.clone(),
        y: part.y.clone().into(),
        rows: match number {
            0 => Vec::new(),
            _ => (part.base..).take(part.y.len()).collect(),
        },
    };
    let mut parts = own.parts.iter().enumerate().map(part);
    let shard = Shard {
        parts: [(); 3].map(|()| parts.next().unwrap_or_default()),
        offsets,
        carried,
    };
    shard.write(file, own.shape)
}
