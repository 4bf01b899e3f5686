//! What of a set is there already.

use super::catalogue::{RemoteFile, Set};
use super::checksum::Checksum;
use super::download::partial;
use anyhow::{Context, Result};
use selvedge_run::format::{bytes, count};
use std::fmt;
use std::fs;
use std::path::Path;

/// How far a file is.
pub(super) enum Status {
    Missing,
    /// So many bytes came.
    Begun(u64),
    /// It is there, and it is the right one.
    There,
    /// It is there, and nobody says how to recognise it.
    Unverified,
    /// Something else has its name, and what is wrong with it.
    Other(String),
}

impl Status {
    /// Looks at a file, all of it if there is a checksum.
    pub(super) fn of(file: &RemoteFile, target: &Path) -> Result<Self> {
        let failed = || format!("cannot read {}", target.display());
        let found = match fs::metadata(target) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let part = fs::metadata(partial(target)).ok();
                let begun = part
                    .filter(fs::Metadata::is_file)
                    .map_or(0, |part| part.len());
                return Ok(match begun {
                    0 => Status::Missing,
                    begun => Status::Begun(begun),
                });
            }
            Err(error) => return Err(error).with_context(failed),
        };
        if !found.is_file() {
            return Ok(Status::Other("a folder, expected a file".into()));
        }
        if let Some(size) = file.bytes.filter(|size| *size != found.len()) {
            return Ok(Status::Other(format!(
                "{} bytes, expected {}",
                count(found.len()),
                count(size)
            )));
        }
        let Some(expected) = file.checksum() else {
            return Ok(Status::Unverified);
        };
        let found = Checksum::of(expected.kind, target).with_context(failed)?;
        Ok(match found == expected {
            true => Status::There,
            false => Status::Other(format!("{found}, expected {}", expected.digits)),
        })
    }

    /// A word for programs.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Status::Missing => "missing",
            Status::Begun(_) => "begun",
            Status::There => "there",
            Status::Unverified => "unverified",
            Status::Other(_) => "other",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Missing => f.write_str("not downloaded yet"),
            Status::Begun(have) => write!(f, "partly downloaded: {}", bytes(*have as f64)),
            Status::There => f.write_str("already there"),
            Status::Unverified => f.write_str("already there, not verified"),
            Status::Other(problem) => write!(f, "a different file is there: {problem}"),
        }
    }
}

/// Whether all of a set is there, by name.
pub(super) fn is_there(set: &Set, data_dir: &Path) -> bool {
    let folder = set.folder(data_dir);
    match set.files.is_empty() {
        true => set.places.iter().any(|place| folder.join(place).exists()),
        false => set
            .files
            .iter()
            .all(|file| folder.join(&file.name).is_file()),
    }
}

/// A word for a list: files are not read for it.
pub(super) fn at_a_glance(set: &Set, data_dir: &Path) -> String {
    let folder = set.folder(data_dir);
    let begun = |name: &str| {
        let target = folder.join(name);
        target.is_file() || partial(&target).is_file()
    };
    match is_there(set, data_dir) {
        true => "yes",
        false if set.files.iter().any(|file| begun(&file.name)) => "partly",
        false => "no",
    }
    .into()
}
