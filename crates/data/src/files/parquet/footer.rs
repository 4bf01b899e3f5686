//! The footer: the columns of the table, and where their pieces lie in the file.

use super::schema::{self, Column, Element};
use super::thrift::{Compact, Damage, Type};
use super::{Problem, broken, read_at};
use std::collections::HashSet;
use std::io::{Read, Seek};

/// The bytes around the footer: its length and the mark of the format.
const TAIL: u64 = 8;

/// Rows that a small file may claim, and those that each byte may add. Columns that never change cost no bytes, but
/// reading their rows costs time.
const FREE_ROWS: u64 = 1 << 22;
const ROWS_OF_A_BYTE: u64 = 256;

/// What a footer says.
#[derive(Debug)]
pub(super) struct Footer {
    /// The names of the flat columns, in the file's order.
    pub(super) names: Vec<String>,
    /// The flat columns.
    pub(super) columns: Vec<Column>,
    /// The names of the other ones.
    pub(super) nested: Vec<String>,
    /// The rows of all groups.
    pub(super) rows: u64,
    /// The row groups.
    pub(super) groups: Vec<Group>,
}

/// Rows that are stored together.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// How many.
    pub(super) rows: u64,
    /// The piece of each column, flat or not.
    pub(super) chunks: Vec<Chunk>,
}

/// A column's piece of a row group.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The number of the physical type.
    pub(super) physical: i64,
    /// The number of the codec.
    pub(super) codec: i64,
    /// Values, with missing ones.
    pub(super) values: u64,
    /// Where the pages begin.
    pub(super) start: u64,
    /// The bytes of all pages.
    pub(super) length: u64,
    /// Why it cannot be read.
    pub(super) elsewhere: Option<&'static str>,
}

impl Footer {
    /// Reads and checks the footer of a file of that length.
    pub(super) fn read(file: &mut (impl Read + Seek), length: u64) -> Result<Self, Problem> {
        let tail_at = length
            .checked_sub(TAIL)
            .ok_or_else(|| broken("it is too short"))?;
        let tail = read_at(file, tail_at, TAIL)?;
        match &tail[4..] {
            b"PAR1" => {}
            b"PARE" => return Err("an encrypted Parquet file: expected a plain one".into()),
            _ => return Err(broken("it does not end like one")),
        }
        let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let start = tail_at
            .checked_sub(size)
            .ok_or_else(|| broken("its footer is longer than it"))?;
        let bytes = read_at(file, start, size)?;
        let footer = parse(&bytes).map_err(|damage| match damage {
            Damage::Short => broken("its footer is cut short"),
            Damage::Wrong(what) => broken(&format!("in its footer, {what}")),
        })?;
        footer.check(start, length)?;
        Ok(footer)
    }

    /// Those columns, with their names, if all of them can be read.
    pub(super) fn chosen(&self, wanted: &[usize]) -> Result<Vec<(&Column, &String)>, Problem> {
        let find = |index: &usize| {
            let found = self.columns.get(*index).zip(self.names.get(*index));
            let (column, name) = found.ok_or_else(|| {
                let count = self.columns.len();
                format!("there is no column {index}: expected one of the first {count}")
            })?;
            match &column.kind {
                Ok(_) => Ok((column, name)),
                Err(problem) => Err(format!("column {name:?} has {problem}")),
            }
        };
        wanted.iter().map(find).collect()
    }

    fn check(&self, data_end: u64, length: u64) -> Result<(), Problem> {
        let most = FREE_ROWS.saturating_add(length.saturating_mul(ROWS_OF_A_BYTE));
        if self.rows > most {
            return Err(format!(
                "claims {} rows in {length} bytes: expected at most {most}",
                self.rows
            ));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = self
            .names
            .iter()
            .chain(&self.nested)
            .find(|name| !seen.insert(*name))
        {
            return Err(format!(
                "two columns are called {twice:?}: expected each name once"
            ));
        }
        let mut rows = Some(0u64);
        let mut bytes = Some(0u64);
        for chunk in self.groups.iter().flat_map(|group| &group.chunks) {
            let end = chunk.start.checked_add(chunk.length);
            if end.is_none_or(|end| end > data_end) {
                return Err(broken("a column lies outside of it"));
            }
            bytes = bytes.and_then(|bytes| bytes.checked_add(chunk.length));
        }
        for group in &self.groups {
            rows = rows.and_then(|rows| rows.checked_add(group.rows));
        }
        // Columns share no bytes, so a small file cannot be made to be read again and again.
        if bytes.is_none_or(|bytes| bytes > data_end) {
            return Err(broken("its columns overlap"));
        }
        match rows == Some(self.rows) {
            true => Ok(()),
            false => Err(broken("its row groups have not as many rows as it")),
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Footer, Damage> {
    let (mut elements, mut groups, mut rows) = (Vec::new(), Vec::new(), None);
    Compact::new(bytes).fields(Type::Structure, |compact, number, kind| match number {
        2 => compact.items(kind, |compact, kind| {
            elements.push(Element::read(compact, kind)?);
            Ok(())
        }),
        3 => compact.count(kind).map(|count| rows = Some(count)),
        4 => compact.items(kind, |compact, kind| {
            groups.push(group(compact, kind)?);
            Ok(())
        }),
        _ => compact.skip(kind),
    })?;
    let schema = schema::flatten(elements)?;
    if groups
        .iter()
        .any(|group| group.chunks.len() != schema.leaves)
    {
        return Err(Damage::Wrong(
            "a row group has not as many columns as the table",
        ));
    }
    Ok(Footer {
        names: schema.names,
        columns: schema.columns,
        nested: schema.nested,
        rows: rows.ok_or(Damage::Wrong("the number of rows is missing"))?,
        groups,
    })
}

fn group(compact: &mut Compact<'_>, kind: Type) -> Result<Group, Damage> {
    let (mut chunks, mut rows) = (Vec::new(), None);
    compact.fields(kind, |compact, number, kind| match number {
        1 => compact.items(kind, |compact, kind| {
            chunks.push(chunk(compact, kind)?);
            Ok(())
        }),
        3 => compact.count(kind).map(|count| rows = Some(count)),
        _ => compact.skip(kind),
    })?;
    Ok(Group {
        rows: rows.ok_or(Damage::Wrong("a row group's number of rows is missing"))?,
        chunks,
    })
}

fn chunk(compact: &mut Compact<'_>, kind: Type) -> Result<Chunk, Damage> {
    let (mut found, mut elsewhere) = (None, None);
    compact.fields(kind, |compact, number, kind| {
        match number {
            1 => elsewhere = Some("in another file"),
            8 => elsewhere = Some("encrypted"),
            _ => {}
        }
        match number {
            3 => metadata(compact, kind).map(|chunk| found = Some(chunk)),
            _ => compact.skip(kind),
        }
    })?;
    match (found, elsewhere) {
        (Some(chunk), _) => Ok(Chunk { elsewhere, ..chunk }),
        // Of an encrypted column, nothing else may be known.
        (None, Some(_)) => Ok(Chunk {
            elsewhere,
            ..Chunk::default()
        }),
        (None, None) => Err(Damage::Wrong("a column is not described")),
    }
}

fn metadata(compact: &mut Compact<'_>, kind: Type) -> Result<Chunk, Damage> {
    let [mut physical, mut codec] = [None; 2];
    let [mut values, mut length, mut data, mut dictionary] = [None; 4];
    compact.fields(kind, |compact, number, kind| {
        match number {
            1 => physical = Some(compact.integer(kind)?),
            4 => codec = Some(compact.integer(kind)?),
            5 => values = Some(compact.count(kind)?),
            7 => length = Some(compact.count(kind)?),
            9 => data = Some(compact.count(kind)?),
            11 => dictionary = Some(compact.count(kind)?),
            _ => compact.skip(kind)?,
        }
        Ok(())
    })?;
    let missing = Damage::Wrong("a column is not wholly described");
    let data = data.ok_or(missing)?;
    Ok(Chunk {
        physical: physical.ok_or(missing)?,
        codec: codec.ok_or(missing)?,
        values: values.ok_or(missing)?,
        // Some writers say 0 where there is no dictionary.
        start: dictionary
            .filter(|start| (1..data).contains(start))
            .unwrap_or(data),
        length: length.ok_or(missing)?,
        elsewhere: None,
    })
}
