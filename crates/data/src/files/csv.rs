//! A table of text: comma-, semicolon- or tab-separated values under a header, plain or gzipped.
//!
//! A field may stand in double quotes and then hold separators, and quotes doubled. A line is a row: line breaks inside of
//! quotes are refused rather than guessed at.

use super::cell::{Cell, Take};
use super::lines::Lines;
use crate::DataError;
use std::path::{Path, PathBuf};

const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// More columns than this are no table.
const MOST_COLUMNS: usize = 1 << 20;

/// A table whose header has been read.
pub(crate) struct Csv {
    file: PathBuf,
    lines: Lines,
    separator: char,
    columns: Vec<String>,
}

/// The fields of one line, without their quotes.
#[derive(Default)]
struct Fields {
    text: String,
    ends: Vec<usize>,
}

impl Fields {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    /// Takes a line apart; fails with the field (counted from 0) whose quotes make no sense.
    fn split(&mut self, line: &str, separator: char) -> Result<(), usize> {
        self.text.clear();
        self.ends.clear();
        let mut rest = Some(line);
        while let Some(field) = rest {
            rest = match field.strip_prefix('"') {
                None => match field.split_once(separator) {
                    Some((value, after)) => {
                        self.text.push_str(value.trim());
                        Some(after)
                    }
                    None => {
                        self.text.push_str(field.trim());
                        None
                    }
                },
                Some(quoted) => self.unquote(quoted, separator)?,
            };
            self.ends.push(self.text.len());
            if self.ends.len() > MOST_COLUMNS {
                return Err(self.ends.len());
            }
        }
        Ok(())
    }

    /// Takes what stands behind an opening quote; gives what follows the field.
    fn unquote<'a>(
        &mut self,
        mut quoted: &'a str,
        separator: char,
    ) -> Result<Option<&'a str>, usize> {
        loop {
            let (value, after) = quoted.split_once('"').ok_or(self.ends.len())?;
            self.text.push_str(value);
            if after.is_empty() {
                return Ok(None);
            }
            if let Some(after) = after.strip_prefix(separator) {
                return Ok(Some(after));
            }
            quoted = after.strip_prefix('"').ok_or(self.ends.len())?;
            self.text.push('"');
        }
    }
}

impl Csv {
    /// Reads the header.
    pub(crate) fn open(mut lines: Lines, file: &Path) -> Result<Self, DataError> {
        let problem = |problem: String| DataError::file(file, problem);
        let Some(header) = lines.next_line()? else {
            return Err(problem(
                "an empty file: expected a header with the names of the columns".into(),
            ));
        };
        let count = |separator: &char| header.chars().filter(|c| c == separator).count();
        // Of equals the first: a header without any has one column.
        let separator = SEPARATORS.into_iter().rev().max_by_key(count);
        let separator = separator.unwrap_or(',');
        let mut fields = Fields::default();
        if let Err(column) = fields.split(header, separator) {
            return Err(stray_quotes(file, 1, &(column + 1).to_string()));
        }
        let columns: Vec<String> = (0..fields.len()).map(|c| fields.get(c).into()).collect();
        let mut sorted: Vec<&String> = columns.iter().filter(|name| !name.is_empty()).collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(problem(format!(
                "the header has the column {:?} twice: expected different names",
                twice[0]
            )));
        }
        Ok(Csv {
            file: file.to_owned(),
            lines,
            separator,
            columns,
        })
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Hands out each row in order with its line, counted from 1, and the cells of the `wanted` columns.
    pub(crate) fn read(
        mut self,
        wanted: &[usize],
        take: &mut Take<'_, DataError>,
    ) -> Result<(), DataError> {
        let mut fields = Fields::default();
        // Each cell borrows from `fields` for one row only; the vector's memory is kept.
        let mut cells: Vec<Cell<'static>> = Vec::new();
        let mut line = 1;
        while let Some(text) = self.lines.next_line()? {
            line += 1;
            if text.trim().is_empty() {
                continue;
            }
            if let Err(column) = fields.split(text, self.separator) {
                let name = self.columns.get(column);
                let name = name.cloned().unwrap_or_else(|| (column + 1).to_string());
                return Err(stray_quotes(&self.file, line, &name));
            }
            if fields.len() != self.columns.len() {
                let problem = format!(
                    "{} values: expected {}, as many as the header has names (a line cut short, or a separator without quotes around the value?)",
                    fields.len(),
                    self.columns.len()
                );
                return Err(DataError::line(self.file, line, problem));
            }
            let mut row = std::mem::take(&mut cells);
            row.extend(wanted.iter().map(|column| match fields.get(*column) {
                "" => Cell::Missing,
                text => Cell::Text(text),
            }));
            take(line as u64, &row)?;
            cells = emptied(row);
        }
        Ok(())
    }
}

/// The memory of a vector without its borrows.
fn emptied(mut cells: Vec<Cell<'_>>) -> Vec<Cell<'static>> {
    cells.clear();
    cells.into_iter().map(|_| Cell::Missing).collect()
}

fn stray_quotes(file: &Path, line: usize, column: &str) -> DataError {
    let problem = format!(
        "the quotes in column {column} make no sense: expected a value, plain or between two double quotes, with quotes inside doubled, on one line"
    );
    DataError::line(file, line, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str, separator: char) -> Result<Vec<String>, usize> {
        let mut fields = Fields::default();
        fields.split(line, separator)?;
        Ok((0..fields.len()).map(|i| fields.get(i).into()).collect())
    }

    #[test]
    fn fields_of_a_line() {
        assert_eq!(all("a, b ,", ',').unwrap(), ["a", "b", ""]);
        assert_eq!(all("\"a,b\",\"\",c", ',').unwrap(), ["a,b", "", "c"]);
        assert_eq!(
            all("\"say \"\"no\"\"\";1,5", ';').unwrap(),
            ["say \"no\"", "1,5"]
        );
        assert_eq!(all("", ',').unwrap(), [""]);
        assert_eq!(all("1\t2", '\t').unwrap(), ["1", "2"]);
    }

    #[test]
    fn stray_quotes_name_their_field() {
        assert_eq!(all("1,\"2,3", ','), Err(1));
        assert_eq!(all("\"2\"x,3", ','), Err(0));
        assert_eq!(all("\"\"\"", ','), Err(0));
    }
}
