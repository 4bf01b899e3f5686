//! One column's piece of a row group, read page by page and row by row.
//!
//! Only one page of a column is held, and its dictionary: rows that cost no bytes take no memory either.

use super::codec::Codec;
use super::footer::Chunk;
use super::hybrid::Hybrid;
use super::kind::Kind;
use super::page::{Header, Levels, Page};
use super::schema::Column;
use super::thrift::Damage;
use super::values::{BIT_PACKED, Dictionary, RLE, Raw, Values};
use super::{Problem, bits, read_at};
use crate::files::cell::Cell;
use flate2::Crc;
use std::io::{Read, Seek};
use std::ops::Range;

/// The largest page, unpacked.
pub(super) const MOST_PAGE: u64 = 256 << 20;

/// Pages and dictionaries of all columns together may take so much, unpacked, and so much more for each byte of the
/// file: a small file cannot fill the memory by being packed cleverly.
const FREE_ROOM: u64 = 256 << 20;
const ROOM_OF_A_BYTE: u64 = 64;

/// The first bytes that are tried for a page's header, and the last: statistics in it may hold long texts.
const FIRST_HEADER: u64 = 512;
const LONGEST_HEADER: u64 = 16 << 20;

/// The file, and the memory that its pages may still take.
pub(super) struct Source<'a, R> {
    file: &'a mut R,
    room: u64,
}

impl<'a, R> Source<'a, R> {
    /// A file of that length, of which nothing is held.
    pub(super) fn new(file: &'a mut R, length: u64) -> Self {
        Source {
            file,
            room: FREE_ROOM.saturating_add(length.saturating_mul(ROOM_OF_A_BYTE)),
        }
    }

    fn hold(&mut self, size: u64) -> Result<(), Problem> {
        if size > MOST_PAGE {
            return Err(format!(
                "a page claims {size} bytes: expected at most {MOST_PAGE}"
            ));
        }
        self.room = self.room.checked_sub(size).ok_or_else(|| {
            format!("the pages that are read together take more than {FREE_ROOM} bytes: expected smaller ones")
        })?;
        Ok(())
    }
}

/// Where the reading of a column stands.
pub(super) struct Cursor {
    kind: Kind,
    optional: bool,
    codec: Codec,
    /// The bytes of the file that are still to be read.
    at: u64,
    end: u64,
    /// Rows that are in no page yet.
    unread: u64,
    dictionary: Option<Dictionary>,
    page: Vec<u8>,
    /// Rows that the page still has.
    left: u64,
    levels: Option<Hybrid>,
    values: Values,
    /// The value of the row.
    raw: Raw,
}

impl Cursor {
    /// Begins to read the piece, of so many rows.
    pub(super) fn new(column: &Column, chunk: &Chunk, rows: u64) -> Result<Self, Problem> {
        if let Some(elsewhere) = chunk.elsewhere {
            return Err(format!(
                "its values are {elsewhere}: expected them plain and in this file"
            ));
        }
        if chunk.values != rows {
            return Err(format!(
                "it has {} values: expected one for each of {rows} rows",
                chunk.values
            ));
        }
        if chunk.physical != column.physical {
            return Err("it has another type than in the schema: the file is damaged".into());
        }
        Ok(Cursor {
            kind: column.kind.clone()?,
            optional: column.optional,
            codec: Codec::of(chunk.codec)?,
            at: chunk.start,
            end: chunk.start.saturating_add(chunk.length),
            unread: rows,
            dictionary: None,
            page: Vec::new(),
            left: 0,
            levels: None,
            values: Values::Plain { at: 0 },
            raw: Raw::Missing,
        })
    }

    /// Goes on to the next row.
    #[inline]
    pub(super) fn step<R: Read + Seek>(
        &mut self,
        source: &mut Source<'_, R>,
    ) -> Result<(), Problem> {
        while self.left == 0 {
            self.next_page(source)?;
        }
        self.left -= 1;
        let there = match &mut self.levels {
            None => true,
            Some(levels) => match levels.next(&self.page) {
                Some(level) => level == 1,
                None => return Err("a page has too few levels: it is damaged".into()),
            },
        };
        self.raw = match there {
            true => self
                .values
                .next(self.kind, &self.page, self.dictionary.as_ref())?,
            false => Raw::Missing,
        };
        Ok(())
    }

    /// The value of the row.
    #[inline]
    pub(super) fn cell(&self) -> Result<Cell<'_>, Problem> {
        let bytes = match &self.raw {
            Raw::Missing => return Ok(Cell::Missing),
            Raw::Integer(number) => return Ok(self.kind.of_integer(*number)),
            Raw::Page(from, to) => self.page.get(*from..*to),
            Raw::Dictionary(from, to) => self
                .dictionary
                .as_ref()
                .and_then(|all| all.bytes.get(*from..*to)),
            Raw::Rebuilt => Some(self.values.rebuilt()),
            Raw::Gathered(bytes) => self.kind.width().and_then(|width| bytes.get(..width)),
        };
        self.kind.of_bytes(bytes.unwrap_or_default())
    }

    fn next_page<R: Read + Seek>(&mut self, source: &mut Source<'_, R>) -> Result<(), Problem> {
        source.room = source.room.saturating_add(self.page.len() as u64);
        self.page = Vec::new();
        let header = self.header(source.file)?;
        if header.packed > self.end - self.at {
            return Err(format!(
                "a page claims {} bytes of the {} that the column still has: the file is damaged",
                header.packed,
                self.end - self.at
            ));
        }
        if header.page == Page::Other {
            self.at += header.packed;
            return Ok(());
        }
        source.hold(header.unpacked)?;
        let packed = read_at(source.file, self.at, header.packed)?;
        self.at += header.packed;
        check_sum(&header, &packed)?;
        match &header.page {
            Page::Dictionary { values, encoding } => {
                if self.dictionary.is_some() {
                    return Err("it has a second dictionary: expected one".into());
                }
                let mut bytes = Vec::new();
                self.codec
                    .unpack(&packed, header.unpacked as usize, &mut bytes)?;
                self.dictionary = Some(Dictionary::new(self.kind, bytes, *values, *encoding)?);
                Ok(())
            }
            Page::Data {
                values,
                encoding,
                levels,
            } => {
                self.unread = self.unread.checked_sub(*values).ok_or_else(|| {
                    format!(
                        "a page claims {values} rows of {} that are left: the file is damaged",
                        self.unread
                    )
                })?;
                self.left = *values;
                let (levels, start) = self.unpack(&packed, header.unpacked, levels)?;
                self.levels = levels.map(|range| Hybrid::new(range, 1));
                self.values = Values::new(self.kind, *encoding, &self.page, start)?;
                Ok(())
            }
            Page::Other => Ok(()),
        }
    }

    fn header(&mut self, file: &mut (impl Read + Seek)) -> Result<Header, Problem> {
        if self.at >= self.end {
            return Err(format!(
                "it ends {} rows too early: the file is damaged",
                self.unread
            ));
        }
        let mut window = FIRST_HEADER;
        loop {
            let there = window.min(self.end - self.at);
            match Header::read(&read_at(file, self.at, there)?) {
                Ok((header, used)) => {
                    self.at += used as u64;
                    return Ok(header);
                }
                Err(Damage::Short) if there == window && window < LONGEST_HEADER => window *= 8,
                Err(Damage::Short) => {
                    return Err("a page's header is cut short: the file is damaged".into());
                }
                Err(Damage::Wrong(what)) => {
                    return Err(format!("in a page's header, {what}: the file is damaged"));
                }
            }
        }
    }

    /// Unpacks a page; gives where its levels lie, if they matter, and where its values begin.
    fn unpack(
        &mut self,
        packed: &[u8],
        unpacked: u64,
        levels: &Levels,
    ) -> Result<(Option<Range<usize>>, usize), Problem> {
        match levels {
            Levels::Inside { encoding } => {
                self.codec
                    .unpack(packed, unpacked as usize, &mut self.page)?;
                if !self.optional {
                    return Ok((None, 0));
                }
                let range = levels_inside(&self.page, *encoding)?;
                let start = range.end;
                Ok((Some(range), start))
            }
            Levels::Apart {
                repetitions,
                definitions,
                values_packed,
            } => {
                let start = repetitions.checked_add(*definitions);
                let start = start
                    .filter(|start| *start <= unpacked)
                    .ok_or(LONG_LEVELS)? as usize;
                let (levels, values) = packed.split_at_checked(start).ok_or(LONG_LEVELS)?;
                self.page.extend_from_slice(levels);
                // Without any value, there may be nothing that was packed.
                let codec = match *values_packed && !values.is_empty() {
                    true => self.codec,
                    false => Codec::Plain,
                };
                codec.unpack(values, unpacked as usize - start, &mut self.page)?;
                let range = *repetitions as usize..start;
                Ok((self.optional.then_some(range), start))
            }
        }
    }
}

const LONG_LEVELS: &str = "the levels of a page are longer than it: it is damaged";

/// Where the levels lie at the beginning of a page, after their length.
fn levels_inside(page: &[u8], encoding: i64) -> Result<Range<usize>, Problem> {
    match encoding {
        RLE => {
            let size = bits::length(page, 0).ok_or(LONG_LEVELS)?;
            match size <= page.len() - 4 {
                true => Ok(4..4 + size),
                false => Err(LONG_LEVELS.into()),
            }
        }
        BIT_PACKED => Err("its levels are in the old encoding BIT_PACKED: expected RLE".into()),
        other => Err(format!(
            "its levels are in encoding number {other}: expected RLE"
        )),
    }
}

fn check_sum(header: &Header, packed: &[u8]) -> Result<(), Problem> {
    let Some(expected) = header.crc else {
        return Ok(());
    };
    let mut crc = Crc::new();
    crc.update(packed);
    match crc.sum() == expected {
        true => Ok(()),
        false => Err("the checksum of a page is wrong: the file is damaged".into()),
    }
}
