//! Files of JSON lines: they grow, and only their last line may be cut off.

use crate::error::{Context, Result};
use crate::files::read_bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file of JSON lines that is being written.
pub struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
}

impl Lines {
    /// Opens a file, which need not be there, and cuts it to `length`.
    ///
    /// # Errors
    /// If it cannot be opened, or is shorter.
    pub(crate) fn cut_to(path: PathBuf, length: u64) -> Result<Self> {
        let open = || -> std::io::Result<File> {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            if file.metadata()?.len() < length {
                return Err(std::io::Error::other(format!(
                    "it is shorter than the {length} bytes recorded in the checkpoint"
                )));
            }
            file.set_len(length)?;
            Ok(file)
        };
        let file = open().with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Lines {
            file: BufWriter::new(file),
            path,
            length,
        })
    }

    /// Opens a file, drops a line that a crash left incomplete, and returns the others.
    ///
    /// # Errors
    /// If it cannot be opened, or a whole line is damaged.
    pub fn reopen<T: DeserializeOwned>(path: PathBuf) -> Result<(Self, Vec<T>)> {
        let mut bytes = match path.exists() {
            true => read_bytes(&path)?,
            false => Vec::new(),
        };
        let whole = bytes.iter().rposition(|b| *b == b'\n');
        bytes.truncate(whole.map_or(0, |end| end + 1));
        let found = numbered(&bytes).map(|(number, line)| {
            serde_json::from_slice(line).with_context(|| damaged(&path, number))
        });
        let found = found.collect::<Result<_>>()?;
        Ok((Self::cut_to(path, bytes.len() as u64)?, found))
    }

    /// Its lines as they are in the file, with where each begins.
    pub(crate) fn raw(&self) -> Result<Vec<(u64, Vec<u8>)>> {
        let bytes = read_bytes(&self.path)?;
        let mut start = 0;
        let place = |(_, line): (usize, &[u8])| {
            let at = start;
            start += line.len() as u64;
            (at, line.to_vec())
        };
        Ok(numbered(&bytes).map(place).collect())
    }

    /// How many bytes it has, with what is not written yet.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Adds a line, which is in the file after [`flush`](Self::flush).
    pub(crate) fn add(&mut self, value: &impl Serialize) -> Result<()> {
        let line = line(value)?;
        self.length += line.len() as u64;
        let written = self.file.write_all(&line);
        written.with_context(|| self.cannot_write())
    }

    /// So that whoever follows the file sees all lines.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = self.file.flush();
        flushed.with_context(|| self.cannot_write())
    }

    /// So that all lines are there after a loss of power.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let synced = self.file.get_ref().sync_data();
        synced.with_context(|| self.cannot_write())
    }

    /// Adds a line for good.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&mut self, value: &impl Serialize) -> Result<()> {
        self.add(value)?;
        self.sync()
    }

    /// Removes all lines.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn clear(&mut self) -> Result<()> {
        self.cut(0)
    }

    /// Removes the lines behind `length` bytes.
    pub(crate) fn cut(&mut self, length: u64) -> Result<()> {
        self.flush()?;
        self.length = length;
        let cut = self.file.get_ref().set_len(length);
        cut.with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write {}", self.path.display())
    }
}

/// A value as a line, with its end.
pub(crate) fn line(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Lines with their numbers, which begin with 1.
pub(crate) fn numbered(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (1..).zip(bytes.split_inclusive(|b| *b == b'\n'))
}

/// What is said of a line that is not what it should be.
pub(crate) fn damaged(path: &Path, number: usize) -> String {
    format!("{}, line {number} is damaged", path.display())
}
