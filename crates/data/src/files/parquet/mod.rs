//! Just enough of Parquet to read flat tables, as pandas, Polars, DuckDB and Spark write them.
//!
//! Every offset, size and count is checked against the file before it is used. Columns are read page by page and rows
//! are handed over one by one, so memory is taken only for the pages at hand, as they unpack, and never for what a
//! header claims. Columns with columns in them are left aside; encryption is not understood.

mod bits;
mod codec;
mod cursor;
mod delta;
mod footer;
mod hybrid;
mod kind;
mod page;
mod schema;
mod thrift;
mod values;

#[cfg(test)]
mod tests;

use super::cell::Take;
use cursor::{Cursor, Source};
use footer::Footer;
use std::io::{self, Read, Seek, SeekFrom};

/// What is wrong with a file, as the end of a sentence about it.
pub(crate) type Problem = String;

/// Why the reading of rows ended before the last one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure<E> {
    /// The file is not what it should be.
    File(Problem),
    /// Whoever was given the rows did not like one.
    Taker(E),
}

/// A file whose footer has been read.
pub(crate) struct Parquet<R> {
    file: R,
    length: u64,
    footer: Footer,
}

impl<R: Read + Seek> Parquet<R> {
    /// Reads the footer.
    pub(crate) fn open(mut file: R) -> Result<Self, Problem> {
        let length = file.seek(SeekFrom::End(0)).map_err(of_io)?;
        let footer = Footer::read(&mut file, length)?;
        Ok(Parquet {
            file,
            length,
            footer,
        })
    }

    /// The names of the columns that can be read, in the file's order.
    pub(crate) fn columns(&self) -> &[String] {
        &self.footer.names
    }

    /// The names of the columns that cannot: each of their rows has many values, or columns of its own.
    pub(crate) fn nested(&self) -> &[String] {
        &self.footer.nested
    }

    /// How many rows there are.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> u64 {
        self.footer.rows
    }

    /// Gives `take` each row in order, with a cell for each of the `wanted` columns, which are places in
    /// [`Parquet::columns`]. Other columns are not read.
    pub(crate) fn read<E>(
        &mut self,
        wanted: &[usize],
        take: &mut Take<'_, E>,
    ) -> Result<(), Failure<E>> {
        let columns = self.footer.chosen(wanted).map_err(Failure::File)?;
        let mut row = 0;
        for (number, group) in self.footer.groups.iter().enumerate() {
            let mut source = Source::new(&mut self.file, self.length);
            let place = |at: usize, row: u64, problem: Problem| {
                let (name, group) = (columns[at].1, number + 1);
                Failure::File(format!(
                    "column {name:?}, row {row} in row group {group}: {problem}"
                ))
            };
            let mut cursors = Vec::new();
            for (at, (column, _)) in columns.iter().enumerate() {
                let cursor = match group.chunks.get(column.leaf) {
                    Some(chunk) => Cursor::new(column, chunk, group.rows),
                    None => Err("it has no values: the file is damaged".into()),
                };
                cursors.push(cursor.map_err(|problem| place(at, row + 1, problem))?);
            }
            for _ in 0..group.rows {
                row += 1;
                for (at, cursor) in cursors.iter_mut().enumerate() {
                    cursor
                        .step(&mut source)
                        .map_err(|problem| place(at, row, problem))?;
                }
                let mut cells = Vec::with_capacity(cursors.len());
                for (at, cursor) in cursors.iter().enumerate() {
                    cells.push(cursor.cell().map_err(|problem| place(at, row, problem))?);
                }
                take(row, &cells).map_err(Failure::Taker)?;
            }
        }
        Ok(())
    }
}

fn broken(what: &str) -> Problem {
    format!("not a whole Parquet file ({what}): expected one, or the download has to be repeated")
}

fn of_io(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => broken("it ends early"),
        _ => error.to_string(),
    }
}

/// Reads bytes that lie inside of the file, so that there is memory for them if there is for the file.
fn read_at(file: &mut (impl Read + Seek), at: u64, count: u64) -> Result<Vec<u8>, Problem> {
    file.seek(SeekFrom::Start(at)).map_err(of_io)?;
    let mut bytes =
        Vec::with_capacity(usize::try_from(count).map_err(|_| broken("it is too long"))?);
    file.take(count).read_to_end(&mut bytes).map_err(of_io)?;
    match bytes.len() as u64 == count {
        true => Ok(bytes),
        false => Err(broken("it ends early")),
    }
}
