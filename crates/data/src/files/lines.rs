//! Text files line by line: plain or gzipped, numbered, checked.
//!
//! Receives the bytes of a file, hands out lines without their ending. Never holds more than one line, and refuses a
//! "line" that no table has, so that a wrong file cannot fill the memory.

use crate::DataError;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is still taken for a line of a table.
pub(crate) const LONGEST_LINE: u64 = 1 << 24;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The lines of one file.
pub(crate) struct Lines<'a> {
    file: PathBuf,
    reader: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
    number: usize,
    /// Whether the line in the buffer is to be handed out again.
    peeked: bool,
    compressed: bool,
}

impl<'a> Lines<'a> {
    /// Opens a file.
    pub(crate) fn open(file: &Path) -> Result<Self, DataError> {
        let opened = super::open(file)?;
        Self::of(file, opened)
    }

    /// The lines of bytes from anywhere; errors call them `file`. Their first bytes, not the name, say whether they are
    /// compressed: browsers and archivers unpack files without renaming them.
    pub(crate) fn of(file: &Path, bytes: impl Read + 'a) -> Result<Self, DataError> {
        let failed = |source| DataError::io(file, source);
        let mut plain = BufReader::with_capacity(1 << 16, bytes);
        let compressed = plain.fill_buf().map_err(failed)?.starts_with(&GZIP_MAGIC);
        let reader: Box<dyn BufRead + 'a> = if compressed {
            Box::new(BufReader::with_capacity(
                1 << 16,
                MultiGzDecoder::new(plain),
            ))
        } else {
            Box::new(plain)
        };
        Ok(Lines {
            file: file.to_owned(),
            reader,
            buffer: Vec::new(),
            number: 0,
            peeked: false,
            compressed,
        })
    }

    /// The lines of a text; errors call it `file`.
    pub(crate) fn of_text(file: &Path, text: &'a str) -> Self {
        Lines {
            file: file.to_owned(),
            reader: Box::new(text.as_bytes()),
            buffer: Vec::new(),
            number: 0,
            peeked: false,
            compressed: false,
        }
    }

    /// The next line, which is still the next one afterwards.
    pub(crate) fn peek(&mut self) -> Result<Option<&str>, DataError> {
        self.peeked = self.fill()?;
        self.line()
    }

    /// The next line, or nothing at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, DataError> {
        if !std::mem::take(&mut self.peeked) {
            self.fill()?;
        }
        self.line()
    }

    /// Reads a line into the buffer; false at the end of the file.
    fn fill(&mut self) -> Result<bool, DataError> {
        self.buffer.clear();
        let mut bounded = (&mut self.reader).take(LONGEST_LINE);
        if let Err(source) = bounded.read_until(b'\n', &mut self.buffer) {
            return Err(self.broken(source));
        }
        self.number += usize::from(!self.buffer.is_empty());
        if self.buffer.len() as u64 == LONGEST_LINE && !self.buffer.ends_with(b"\n") {
            let problem = format!("longer than {LONGEST_LINE} bytes: not a line of a table");
            return Err(self.line_error(problem));
        }
        Ok(!self.buffer.is_empty())
    }

    /// The line in the buffer.
    fn line(&self) -> Result<Option<&str>, DataError> {
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let length = line_length(&self.buffer);
        if self.number == 1
            && !self.buffer.ends_with(b"\n")
            && self.buffer[..length].contains(&b'\r')
        {
            let problem = "its lines end with a carriage return alone, as old Macs wrote them: save it with line feeds (\"Unix\" or \"Windows\" text)";
            return Err(DataError::file(&self.file, problem));
        }
        let Ok(line) = str::from_utf8(&self.buffer[..length]) else {
            let problem = "not UTF-8 text: save the table as UTF-8";
            return Err(self.line_error(problem.into()));
        };
        let mark = if self.number == 1 {
            BYTE_ORDER_MARK
        } else {
            ""
        };
        Ok(Some(line.strip_prefix(mark).unwrap_or(line)))
    }

    /// The number of the line last handed out, counted from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    fn line_error(&self, problem: String) -> DataError {
        DataError::line(&self.file, self.number, problem)
    }

    fn broken(&self, source: io::Error) -> DataError {
        if !self.compressed {
            return DataError::io(&self.file, source);
        }
        let what = match source.kind() {
            io::ErrorKind::UnexpectedEof => "the gzip data ends early (a truncated download?)",
            _ => "the gzip data is corrupt",
        };
        let problem = format!("{what} after line {}: {source}", self.number);
        DataError::file(&self.file, problem)
    }
}

/// The length of a line without `\n` or `\r\n`.
fn line_length(bytes: &[u8]) -> usize {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes).len()
}
