//! Where rows come from: a CSV or a Parquet file, told apart by their first bytes.

use crate::DataError;
use crate::files::cell::Take;
use crate::files::csv::Csv;
use crate::files::lines::Lines;
use crate::files::parquet::{Failure, Parquet};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes that can be read in any order.
pub(crate) trait Bytes: Read + Seek {}
impl<T: Read + Seek> Bytes for T {}

/// How files are opened, so that tests can give bytes instead.
pub(crate) type Open<'a> = &'a dyn Fn(&Path) -> io::Result<Box<dyn Bytes>>;

/// A file whose header has been read.
pub(super) enum Source {
    Csv(Box<Csv<'static>>),
    Parquet(PathBuf, Box<Parquet<BufReader<Box<dyn Bytes>>>>),
}

/// How errors count the rows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Lines from 1, the header's.
    Lines,
    /// Rows from 1.
    Rows,
}

impl Counting {
    /// What a row is called.
    pub(super) fn word(self) -> &'static str {
        match self {
            Counting::Lines => "line",
            Counting::Rows => "row",
        }
    }
}

impl Source {
    pub(super) fn open(path: &Path, open: Open<'_>) -> Result<Self, DataError> {
        let failed = |source| DataError::io(path, source);
        let mut bytes = open(path).map_err(failed)?;
        let mut magic = Vec::new();
        (&mut bytes)
            .take(4)
            .read_to_end(&mut magic)
            .map_err(failed)?;
        bytes.rewind().map_err(failed)?;
        // The second is an encrypted file, of which the reader says so.
        if [b"PAR1", b"PARE"].contains(&magic[..].try_into().unwrap_or(b"\0\0\0\0")) {
            let parquet = Parquet::open(BufReader::new(bytes));
            let parquet = parquet.map_err(|problem| DataError::file(path, problem))?;
            return Ok(Source::Parquet(path.to_owned(), Box::new(parquet)));
        }
        let csv = Csv::open(Lines::of(path, bytes)?, path)?;
        Ok(Source::Csv(Box::new(csv)))
    }

    pub(super) fn columns(&self) -> &[String] {
        match self {
            Source::Csv(csv) => csv.columns(),
            Source::Parquet(_, parquet) => parquet.columns(),
        }
    }

    /// Columns that have columns of their own, or many values in a row.
    pub(super) fn nested(&self) -> &[String] {
        match self {
            Source::Csv(_) => &[],
            Source::Parquet(_, parquet) => parquet.nested(),
        }
    }

    pub(super) fn counting(&self) -> Counting {
        match self {
            Source::Csv(_) => Counting::Lines,
            Source::Parquet(..) => Counting::Rows,
        }
    }

    pub(super) fn read(
        self,
        wanted: &[usize],
        take: &mut Take<'_, DataError>,
    ) -> Result<(), DataError> {
        match self {
            Source::Csv(csv) => csv.read(wanted, take),
            Source::Parquet(file, mut parquet) => {
                parquet.read(wanted, take).map_err(|failure| match failure {
                    Failure::File(problem) => DataError::file(file, problem),
                    Failure::Taker(error) => error,
                })
            }
        }
    }
}
