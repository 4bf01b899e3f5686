//! What can be wrong with the settings or with a file.

use std::io;
use std::path::PathBuf;

/// Why a data set could not be loaded. Every message names the place, the value found there and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A key of the `[data]` table has an invalid value.
    #[error("data.{key} = {value}: {expected}")]
    Setting {
        /// The key, as written in the experiment.
        key: &'static str,
        /// The value it has.
        value: String,
        /// What would be right.
        expected: String,
    },

    /// The data set is read from files, but the folder or the file is missing.
    #[error("{problem}; set SELVEDGE_DATA or --data-dir to the folder that holds {file}\n{origin}")]
    Missing {
        /// What was not found.
        problem: String,
        /// The file, relative to the data folder.
        file: String,
        /// Where the set comes from, and what works without it.
        origin: &'static str,
    },

    /// The file as a whole is invalid.
    #[error("{}: {problem}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong and what would be right.
        problem: String,
    },

    /// One line of the file is invalid.
    #[error("{}, line {line}: {problem}", .file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1 (the header is line 1).
        line: usize,
        /// What is wrong and what would be right.
        problem: String,
    },

    /// One value of the file is invalid.
    #[error("{}, line {line}, column {column}: {}", .file.display(), wrong(.value, .expected))]
    Value {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1 (the header is line 1).
        line: usize,
        /// The column's name.
        column: String,
        /// The value found there.
        value: String,
        /// What would be right.
        expected: String,
    },

    /// The same in a file without lines.
    #[error("{}, row {row}, column {column}: {}", .file.display(), wrong(.value, .expected))]
    Row {
        /// The file.
        file: PathBuf,
        /// The row, counted from 1.
        row: u64,
        /// The column's name.
        column: String,
        /// The value found there.
        value: String,
        /// What would be right.
        expected: String,
    },

    /// The operating system could not open or read the file.
    #[error("{}: {source}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is wrong with a value, and what would be right.
fn wrong(value: &str, expected: &str) -> String {
    match value {
        "" => format!("it is empty: expected {expected}"),
        _ => format!("{value:?} is not {expected}"),
    }
}

impl DataError {
    /// The file as a whole is invalid.
    pub(crate) fn file(file: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        DataError::File {
            file: file.into(),
            problem: problem.into(),
        }
    }

    /// One line of the file is invalid.
    pub(crate) fn line(file: impl Into<PathBuf>, line: usize, problem: impl Into<String>) -> Self {
        DataError::Line {
            file: file.into(),
            line,
            problem: problem.into(),
        }
    }

    /// The operating system could not open or read the file.
    pub(crate) fn io(file: impl Into<PathBuf>, source: io::Error) -> Self {
        DataError::Io {
            file: file.into(),
            source,
        }
    }
}
