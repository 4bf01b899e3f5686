//! Files of other people: each module knows one format, checks every byte that it relies on, and never takes more
//! memory than the bytes that are really there can fill.

pub(crate) mod cell;
pub(crate) mod collection;
pub(crate) mod csv;
pub(crate) mod lines;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod parquet;
pub(crate) mod unzip;
pub(crate) mod zip;

use crate::DataError;
use std::fs::File;
use std::path::Path;

/// Opens a regular file: a pipe could let a reader wait for ever.
pub(crate) fn open(path: &Path) -> Result<File, DataError> {
    let failed = |source| DataError::io(path, source);
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    let problem = match (kind.is_file(), kind.is_dir()) {
        (true, _) => return File::open(path).map_err(failed),
        (_, true) => "a folder: expected a file",
        _ => "a pipe or a device: expected a file",
    };
    Err(DataError::file(path, problem))
}
