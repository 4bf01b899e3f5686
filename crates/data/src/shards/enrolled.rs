//! The folder of one party, written by itself from rows that nobody else has.

use super::gateway::Carried;
use super::party::PartyShard;
use super::shard::{OFFSETS, Shard, ShardPart};
use super::write::{check_empty, fill, replace, write_json};
use super::{DEVICES, EDGE, HOSPITAL, INDEX, Index, STATISTICS};
use crate::files::npz::NpzWriter;
use crate::{DataError, Statistics};
use selvedge_core::enrol::{OwnPart, OwnShard};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Refuses a folder that a party's shard cannot be written to: one that holds something or, where it may be replaced,
/// holds something else than what was written with such a shard and the file `about`. Returns what is replaced.
pub(crate) fn check_folder(
    folder: &Path,
    again: bool,
    about: &str,
) -> Result<Vec<PathBuf>, DataError> {
    let mut files = Vec::new();
    if !again || !folder.join(INDEX).is_file() || !folder.join(about).is_file() {
        check_empty(folder)?;
        return Ok(files);
    }
    let in_folder = |folder: &Path| -> Result<Vec<PathBuf>, DataError> {
        let paths = fs::read_dir(folder).and_then(|all| all.map(|e| Ok(e?.path())).collect());
        paths.map_err(|source| DataError::io(folder, source))
    };
    let is_one = |path: &Path, names: &[&str]| {
        path.symlink_metadata().is_ok_and(|there| there.is_file())
            && path
                .file_name()
                .is_some_and(|name| names.iter().any(|own| *own == name))
    };
    let is_group = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("group-"));
        number.is_some_and(|n| n.parse::<u32>().is_ok())
            && path.symlink_metadata().is_ok_and(|there| there.is_dir())
    };
    for path in in_folder(folder)? {
        let (own, names) = match is_group(&path) {
            true => (in_folder(&path)?, &[HOSPITAL, DEVICES, EDGE]),
            false => (vec![path], &[INDEX, STATISTICS, about]),
        };
        if let Some(other) = own.iter().find(|path| !is_one(path, names)) {
            return Err(DataError::file(
                other,
                format!(
                    "{} is replaced as a whole, and this was not written by an enrolment: move it to another folder",
                    folder.display()
                ),
            ));
        }
        files.extend(own);
    }
    Ok(files)
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
    let files = check_folder(folder, again, name)?;
    let write = |partial: &Path| {
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
        true => replace(folder, &files, write),
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
        y: part.y.clone(),
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
