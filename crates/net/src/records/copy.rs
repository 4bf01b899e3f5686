//! The copy of its last record that a party keeps in its own folder: should the server's disk be lost, or be restored
//! from a backup, the newer of the two counts.
//!
//! ```text
//! "SVR1"  checksum (8 bytes)  run (8)  epoch (8)  number in the stream (8)  record
//! ```

use crate::chunks::name;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What it is called.
const FILE: &str = "record";

/// What it is called until it is whole: a party writes one at a time, and nobody else has such a name.
const PARTIAL: &str = ".selvedge-record.partial";

const MAGIC: &[u8; 4] = b"SVR1";

/// Where the record begins.
const HEAD: usize = 36;

/// The file of a copy.
#[derive(Clone, Debug)]
pub struct RecordCopy {
    path: PathBuf,
    /// Whether it must survive a loss of power.
    synced: bool,
}

/// A copy that was read.
pub(super) struct Copied {
    pub(super) run: u64,
    pub(super) epoch: u64,
    pub(super) sequence: u64,
    pub(super) record: Vec<u8>,
}

impl RecordCopy {
    /// The copy in a folder. Without `synced` it survives the party, and perhaps not a loss of power: the record on the
    /// server does.
    pub fn of(folder: &Path, synced: bool) -> Self {
        RecordCopy {
            path: folder.join(FILE),
            synced,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it: nothing if it is not there, or not whole.
    pub(super) fn read(&self) -> io::Result<Option<Copied>> {
        let bytes = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        Ok(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Option<Copied> {
        let eight = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let whole = bytes.starts_with(MAGIC) && eight(4)? == name(bytes.get(12..)?);
        Some(Copied {
            run: eight(12)?,
            epoch: eight(20)?,
            sequence: eight(28)?,
            record: bytes.get(HEAD..)?.to_vec(),
        })
        .filter(|_| whole)
    }

    /// Replaces it, whole or not at all.
    pub(super) fn write(
        &self,
        (run, epoch, sequence): (u64, u64, u64),
        record: &[u8],
    ) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEAD + record.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; 8]);
        for number in [run, epoch, sequence] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(record);
        let checksum = name(&bytes[12..]);
        bytes[4..12].copy_from_slice(&checksum.to_le_bytes());
        let partial = self.path.with_file_name(PARTIAL);
        let written = self.put(&partial, &bytes);
        if written.is_err() {
            // Nothing is lost with it, and on a full disk its room is needed.
            let _ = fs::remove_file(&partial);
        }
        written
    }

    fn put(&self, partial: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        // A hospital's has ζ2 of its patients in it.
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file: File = options.open(partial)?;
        file.write_all(bytes)?;
        if self.synced {
            file.sync_all()?;
        }
        fs::rename(partial, &self.path)
    }

    /// Removes it.
    pub(super) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

    use super::*;

    #[test]
    fn a_copy_is_read_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("selvedge-copy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let copy = RecordCopy::of(&folder, true);
        assert!(copy.read().unwrap().is_none(), "there is none yet");
        copy.write((7, 2, 9), b"first").unwrap();
        copy.write((7, 3, 1), b"second").unwrap();
        let read = copy.read().unwrap().unwrap();
        assert_eq!((read.run, read.epoch, read.sequence), (7, 3, 1));
        assert_eq!(read.record, b"second");
        let whole = fs::read(copy.path()).unwrap();
        for cut in 0..whole.len() {
            assert!(RecordCopy::parse(&whole[..cut]).is_none(), "{cut} bytes");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 4;
            assert!(RecordCopy::parse(&other).is_none(), "byte {at}");
        }
        copy.forget().unwrap();
        assert!(copy.read().unwrap().is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
