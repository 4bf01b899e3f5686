//! A table of text: comma-, semicolon- or tab-separated values under a header, plain or gzipped.
//!
//! A field may be in double quotes and then contain separators, line breaks and doubled quotes; csv-core takes such
//! rows apart. Quotes that it would only tolerate, and a quote that is never closed, are refused rather than guessed
//! at.

use super::cell::{Cell, Take};
use super::lines::{LONGEST_LINE, Lines};
use crate::DataError;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use std::ops::Range;
use std::path::{Path, PathBuf};

const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// More columns than this are no table.
const MOST_COLUMNS: usize = 1 << 20;

/// A table whose header has been read.
pub(crate) struct Csv<'a> {
    rows: Rows<'a>,
    columns: Vec<String>,
}

/// The rows of a file.
struct Rows<'a> {
    file: PathBuf,
    lines: Lines<'a>,
    separator: char,
    /// Made for the first row with quotes: most files have none, and it takes a while.
    reader: Option<Reader>,
    /// A row with quotes as the file has it, each line with its ending, and what csv-core makes of it.
    raw: String,
    unquoted: Vec<u8>,
    ends: Vec<usize>,
}

/// The fields of one row, without their quotes.
#[derive(Default)]
struct Row {
    text: String,
    fields: Vec<Range<usize>>,
    /// Where it begins, counted from 1.
    line: usize,
}

impl Row {
    fn len(&self) -> usize {
        self.fields.len()
    }

    fn get(&self, index: usize) -> &str {
        &self.text[self.fields[index].clone()]
    }

    /// Takes a line without quotes apart; false if it has any.
    fn split(&mut self, line: &str, separator: u8) -> bool {
        self.fields.clear();
        let mut start = 0;
        for (place, byte) in line.bytes().enumerate() {
            if byte == b'"' {
                return false;
            }
            if byte == separator && self.fields.len() <= MOST_COLUMNS {
                self.fields.push(start..place);
                start = place + 1;
            }
        }
        self.fields.push(start..line.len());
        self.text.clear();
        self.text.push_str(line);
        true
    }

    /// Fails with the field whose quotes do not enclose it.
    fn check_quotes(&self, raw: &str, separator: char) -> Result<(), usize> {
        let mut rest = raw.strip_suffix('\n').unwrap_or(raw);
        for index in 0..self.len() {
            let field = self.get(index);
            let after = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let inside = match field.contains('"') {
                        true => quoted.strip_prefix(&field.replace('"', "\"\"")),
                        false => quoted.strip_prefix(field),
                    };
                    inside.and_then(|after| after.strip_prefix('"'))
                }
                None => rest.strip_prefix(field),
            };
            rest = match after.ok_or(index)? {
                "" => "",
                after => after.strip_prefix(separator).ok_or(index)?,
            };
        }
        Ok(())
    }
}

impl<'a> Rows<'a> {
    fn new(lines: Lines<'a>, file: &Path, separator: char) -> Self {
        Rows {
            file: file.to_owned(),
            lines,
            separator,
            reader: None,
            raw: String::new(),
            unquoted: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Reads the next row that is not blank; false at the end. Columns are called as in `names`, where there are any.
    fn next(&mut self, row: &mut Row, names: &[String]) -> Result<bool, DataError> {
        loop {
            let Some(line) = self.lines.next_line()? else {
                return Ok(false);
            };
            if trimmed(line).is_empty() {
                continue;
            }
            if row.split(line, self.separator as u8) {
                row.line = self.lines.number();
            } else {
                self.raw.clear();
                self.raw.push_str(line);
                row.line = self.lines.number();
                self.unquote(row, names)?;
            }
            if row.len() > MOST_COLUMNS {
                let problem = format!("more than {MOST_COLUMNS} values: not a row of a table");
                return Err(DataError::line(&self.file, row.line, problem));
            }
            return Ok(true);
        }
    }

    /// Takes a row with quotes apart, of which the first line is read; it ends where no quote is open.
    fn unquote(&mut self, row: &mut Row, names: &[String]) -> Result<(), DataError> {
        let reader = self.reader.get_or_insert_with(|| {
            ReaderBuilder::new()
                .delimiter(self.separator as u8)
                .terminator(Terminator::Any(b'\n'))
                .build()
        });
        let (mut from, mut written, mut fields) = (0, 0, 0);
        loop {
            self.raw.push('\n');
            let input = &self.raw.as_bytes()[from..];
            from = self.raw.len();
            let most = (fields + input.len()).min(MOST_COLUMNS + 1);
            let (result, read, text, ends) = reader.read_record(
                input,
                &mut grown(&mut self.unquoted, written + input.len())[written..],
                &mut grown(&mut self.ends, most)[fields..],
            );
            (written, fields) = (written + text, fields + ends);
            if result == ReadRecordResult::Record && read == input.len()
                || result == ReadRecordResult::OutputEndsFull
            {
                break;
            }
            // In a quoted value, whose other lines follow.
            let line = match self.raw.len() as u64 {
                0..LONGEST_LINE => self.lines.next_line()?,
                _ => None,
            };
            let Some(line) = line else {
                return Err(self.stray_quotes(row.line, fields, names));
            };
            self.raw.push_str(line);
        }
        let text = str::from_utf8(&self.unquoted[..written]).unwrap_or_default();
        row.text.clear();
        row.text.push_str(text);
        row.fields.clear();
        let mut start = 0;
        for end in &self.ends[..fields] {
            row.fields.push(start..*end);
            start = *end;
        }
        if row.len() > MOST_COLUMNS {
            return Ok(());
        }
        row.check_quotes(&self.raw, self.separator)
            .map_err(|column| self.stray_quotes(row.line, column, names))
    }

    fn stray_quotes(&self, line: usize, column: usize, names: &[String]) -> DataError {
        let name = names.get(column).cloned();
        let name = name.unwrap_or_else(|| (column + 1).to_string());
        let problem = format!(
            "malformed quotes in column {name}: expected a value, plain or between two double quotes, with quotes inside doubled"
        );
        DataError::line(&self.file, line, problem)
    }
}

/// A text without blanks around it; nearly none has any.
fn trimmed(text: &str) -> &str {
    let bare = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_graphic());
    match bare(text.as_bytes().first()) && bare(text.as_bytes().last()) {
        true => text,
        false => text.trim(),
    }
}

/// As much room as is needed: nothing that is unquoted is longer than what it was.
fn grown<T: Clone + Default>(room: &mut Vec<T>, length: usize) -> &mut [T] {
    if room.len() < length {
        room.resize(length, T::default());
    }
    room
}

impl<'a> Csv<'a> {
    /// Reads the header.
    pub(crate) fn open(mut lines: Lines<'a>, file: &Path) -> Result<Self, DataError> {
        let problem = |problem: String| DataError::file(file, problem);
        let empty =
            || problem("an empty file: expected a header with the names of the columns".into());
        let header = lines.peek()?.ok_or_else(empty)?;
        let count = |separator: &char| header.bytes().filter(|b| *b == *separator as u8).count();
        // Of equals the first: a header without any has one column.
        let separator = SEPARATORS.into_iter().rev().max_by_key(count);
        let mut rows = Rows::new(lines, file, separator.unwrap_or(','));
        let mut row = Row::default();
        if !rows.next(&mut row, &[])? {
            return Err(empty());
        }
        let columns: Vec<String> = (0..row.len()).map(|c| row.get(c).trim().into()).collect();
        let mut sorted: Vec<&String> = columns.iter().filter(|name| !name.is_empty()).collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(problem(format!(
                "the header has the column {:?} twice: expected different names (is the header row missing?)",
                twice[0]
            )));
        }
        Ok(Csv { rows, columns })
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
        let mut row = Row::default();
        // Each cell borrows from `row` for one row only; the vector's memory is kept.
        let mut cells: Vec<Cell<'static>> = Vec::new();
        while self.rows.next(&mut row, &self.columns)? {
            if row.len() != self.columns.len() {
                let reason = match row.len() < self.columns.len() {
                    true => "is the line cut short?",
                    false => "does a value contain the separator, without quotes around it?",
                };
                let problem = format!(
                    "{} values: expected {}, one for each name in the header; {reason}",
                    row.len(),
                    self.columns.len()
                );
                return Err(DataError::line(self.rows.file, row.line, problem));
            }
            let mut borrowed = std::mem::take(&mut cells);
            borrowed.extend(wanted.iter().map(|column| match trimmed(row.get(*column)) {
                "" => Cell::Missing,
                text => Cell::Text(text),
            }));
            take(row.line as u64, &borrowed)?;
            cells = emptied(borrowed);
        }
        Ok(())
    }
}

/// The memory of a vector without its borrows.
fn emptied(mut cells: Vec<Cell<'_>>) -> Vec<Cell<'static>> {
    cells.clear();
    cells.into_iter().map(|_| Cell::Missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows under a header that sets the separator and the number of columns, with their lines.
    fn all(text: &str) -> Result<Vec<(u64, Vec<String>)>, String> {
        let file = Path::new("t.csv");
        let mut rows = Vec::new();
        let csv = Lines::of(file, text.as_bytes()).and_then(|lines| Csv::open(lines, file));
        let csv = csv.map_err(|error| error.to_string())?;
        let wanted: Vec<usize> = (0..csv.columns().len()).collect();
        csv.read(&wanted, &mut |line, cells| {
            rows.push((line, cells.iter().map(Cell::to_string).collect()));
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        Ok(rows)
    }

    fn row(header: &str, line: &str) -> Vec<String> {
        all(&format!("{header}\n{line}\n")).unwrap().remove(0).1
    }

    #[test]
    fn fields_of_a_line() {
        assert_eq!(row("x,y,z", "a, b ,"), ["a", "b", ""]);
        assert_eq!(row("x,y,z", "\"a,b\",\"\",c"), ["a,b", "", "c"]);
        assert_eq!(row("x;y", "\"say \"\"no\"\"\";1,5"), ["say \"no\"", "1,5"]);
        assert_eq!(row("x\ty", "1\t2"), ["1", "2"]);
        assert_eq!(row("x,y", "5\" pipe,\u{e9}"), ["5\" pipe", "\u{e9}"]);
    }

    #[test]
    fn quoted_line_breaks_belong_to_their_row() {
        let rows = all("x,y\r\n\"a\r\nb\",1\r\n\r\n\"c\n\n,\"\"d\",2").unwrap();
        let expected = [(2, "a\nb", "1"), (5, "c\n\n,\"d", "2")];
        let expected = expected.map(|(line, x, y)| (line, vec![x.to_string(), y.to_string()]));
        assert_eq!(rows, expected);
    }

    #[test]
    fn stray_quotes_name_their_line_and_column() {
        for (text, place) in [
            (
                "x,y\n1,\"2,3\n4,5\n",
                "line 2: malformed quotes in column y",
            ),
            (
                "x,y\n1,2\n\"2\"x,3\n",
                "line 3: malformed quotes in column x",
            ),
            ("x\n\"\"\"\n", "line 2: malformed quotes in column x"),
            ("\"x\n", "line 1: malformed quotes in column 1"),
        ] {
            let error = all(text).unwrap_err();
            assert!(error.contains(place), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_fills_no_memory() {
        let text = format!("x,y\n1,\"{}", "line\n".repeat(4 << 20));
        assert!(all(&text).unwrap_err().contains("malformed quotes"));
    }
}
