//! The values of a page, one after the other, in every encoding.

use super::Problem;
use super::bits::{bits, length};
use super::cursor::MOST_PAGE;
use super::delta::Delta;
use super::hybrid::Hybrid;
use super::kind::Kind;

/// The format's numbers of encodings.
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
pub(super) const RLE: i64 = 3;
pub(super) const BIT_PACKED: i64 = 4;
const DELTA_BINARY_PACKED: i64 = 5;
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;
const RLE_DICTIONARY: i64 = 8;
const BYTE_STREAM_SPLIT: i64 = 9;

/// The bytes of a value are gathered here if they do not lie together; no value of fixed length is longer.
const LONGEST_GATHERED: usize = 16;

/// Where a value was found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Raw {
    /// Nowhere.
    Missing,
    /// It is a whole number.
    Integer(i64),
    /// In the page, from here to there.
    Page(usize, usize),
    /// In the dictionary, from here to there.
    Dictionary(usize, usize),
    /// Put together from the one before it.
    Rebuilt,
    /// Gathered from the page.
    Gathered([u8; LONGEST_GATHERED]),
}

/// Values that pages of a column point to.
pub(super) struct Dictionary {
    /// The page.
    pub(super) bytes: Vec<u8>,
    entries: Entries,
}

enum Entries {
    Fixed { width: usize, count: usize },
    Varying(Vec<(u32, u32)>),
}

impl Dictionary {
    /// Finds the values of a dictionary's page.
    pub(super) fn new(
        kind: Kind,
        bytes: Vec<u8>,
        values: u64,
        encoding: i64,
    ) -> Result<Self, Problem> {
        if ![PLAIN, PLAIN_DICTIONARY].contains(&encoding) || kind == Kind::Boolean {
            return Err(format!(
                "a dictionary in encoding {encoding}: expected a plain one"
            ));
        }
        let short = || {
            format!(
                "a dictionary claims {values} values in {} bytes: it is damaged",
                bytes.len()
            )
        };
        let count = usize::try_from(values).map_err(|_| short())?;
        let entries = match kind.width() {
            Some(width)
                if count
                    .checked_mul(width)
                    .is_some_and(|size| size <= bytes.len()) =>
            {
                Entries::Fixed { width, count }
            }
            Some(_) => return Err(short()),
            None => {
                let mut entries = Vec::new();
                let mut at = 0;
                for _ in 0..count {
                    let (from, to) = varying(&bytes, at).ok_or_else(short)?;
                    // A page is far shorter than four gigabytes.
                    entries.push((from as u32, to as u32));
                    at = to;
                }
                Entries::Varying(entries)
            }
        };
        Ok(Dictionary { bytes, entries })
    }

    #[inline]
    fn find(&self, index: usize) -> Option<Raw> {
        match &self.entries {
            Entries::Fixed { width, count } => {
                let from = (index < *count).then_some(index * width)?;
                Some(Raw::Dictionary(from, from + width))
            }
            Entries::Varying(entries) => {
                let (from, to) = *entries.get(index)?;
                Some(Raw::Dictionary(from as usize, to as usize))
            }
        }
    }
}

/// Where the value lies whose length is at `at`.
#[inline]
fn varying(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let to = (at + 4).checked_add(length(bytes, at)?)?;
    (to <= bytes.len()).then_some((at + 4, to))
}

/// Where the reading of a page's values stands.
pub(super) enum Values {
    /// One after the other.
    Plain { at: usize },
    /// Booleans, a bit each.
    Bits { bit: usize },
    /// Booleans in runs.
    Runs(Hybrid),
    /// Places in the dictionary.
    Indices(Hybrid),
    /// Differences between whole numbers.
    Differences(Delta),
    /// All lengths, then all bytes.
    Lengths { lengths: Delta, at: usize },
    /// What each value shares with the one before it, then the rest of each.
    Shared(Box<Shared>),
    /// The first bytes of all values, then the second ones, and so on.
    Split {
        start: usize,
        count: usize,
        index: usize,
    },
}

/// The state of [`Values::Shared`].
pub(super) struct Shared {
    prefixes: Delta,
    suffixes: Delta,
    at: usize,
    whole: Vec<u8>,
    /// Bytes of all values so far: they may be far more than those of the page.
    total: usize,
}

impl Values {
    /// Begins to read the values that lie in a page from `start`.
    pub(super) fn new(
        kind: Kind,
        encoding: i64,
        page: &[u8],
        start: usize,
    ) -> Result<Self, Problem> {
        // Without any value, writers leave out what would have to be read here.
        if start >= page.len() {
            return Ok(Values::Plain { at: start });
        }
        let damaged = || {
            "the values of a page do not begin as their encoding should: it is damaged".to_string()
        };
        match (encoding, kind) {
            (PLAIN, Kind::Boolean) => Ok(Values::Bits { bit: start * 8 }),
            (PLAIN, _) => Ok(Values::Plain { at: start }),
            (PLAIN_DICTIONARY | RLE_DICTIONARY, _) if kind != Kind::Boolean => {
                let width = u32::from(page[start]);
                match width <= 32 {
                    true => Ok(Values::Indices(Hybrid::new(start + 1..page.len(), width))),
                    false => Err(damaged()),
                }
            }
            (RLE, Kind::Boolean) => runs(page, start).map(Values::Runs).ok_or_else(damaged),
            (DELTA_BINARY_PACKED, Kind::Integer32(_) | Kind::Integer64(_)) => {
                Delta::new(page, start)
                    .map(Values::Differences)
                    .ok_or_else(damaged)
            }
            (DELTA_LENGTH_BYTE_ARRAY, Kind::Text | Kind::Decimal { bytes: None, .. }) => {
                Self::lengths(page, start).ok_or_else(damaged)
            }
            (DELTA_BYTE_ARRAY, Kind::Text | Kind::Decimal { .. }) => {
                Self::shared(page, start).ok_or_else(damaged)
            }
            (BYTE_STREAM_SPLIT, _) if kind.width().is_some() => {
                Self::split(page, start, kind).ok_or_else(damaged)
            }
            _ => Err(format!(
                "{} are in encoding number {encoding}: expected one that Parquet has for them",
                match kind {
                    Kind::Boolean => "booleans",
                    Kind::Text => "texts",
                    _ => "numbers",
                }
            )),
        }
    }

    fn lengths(page: &[u8], start: usize) -> Option<Self> {
        let lengths = Delta::new(page, start)?;
        let at = lengths.end(page)?;
        Some(Values::Lengths { lengths, at })
    }

    fn shared(page: &[u8], start: usize) -> Option<Self> {
        let prefixes = Delta::new(page, start)?;
        let suffixes = Delta::new(page, prefixes.end(page)?)?;
        let at = suffixes.end(page)?;
        Some(Values::Shared(Box::new(Shared {
            prefixes,
            suffixes,
            at,
            whole: Vec::new(),
            total: 0,
        })))
    }

    fn split(page: &[u8], start: usize, kind: Kind) -> Option<Self> {
        let width = kind
            .width()
            .filter(|width| (1..=LONGEST_GATHERED).contains(width))?;
        let size = page.len() - start;
        size.is_multiple_of(width).then_some(Values::Split {
            start,
            count: size / width,
            index: 0,
        })
    }

    /// The next value.
    #[inline]
    pub(super) fn next(
        &mut self,
        kind: Kind,
        page: &[u8],
        dictionary: Option<&Dictionary>,
    ) -> Result<Raw, Problem> {
        let found = match self {
            Values::Plain { at } => match kind.width() {
                Some(width) => fixed(page, at, width),
                None => varying(page, *at).map(|(from, to)| {
                    *at = to;
                    Raw::Page(from, to)
                }),
            },
            Values::Bits { bit } => {
                *bit += 1;
                bits(page, *bit - 1, 1).map(|bit| Raw::Integer(bit as i64))
            }
            Values::Runs(runs) => runs.next(page).map(|bit| Raw::Integer(i64::from(bit))),
            Values::Indices(indices) => {
                let Some(dictionary) = dictionary else {
                    return Err("a page points into a dictionary, but there is none".into());
                };
                indices
                    .next(page)
                    .and_then(|index| dictionary.find(index as usize))
            }
            Values::Differences(numbers) => numbers.next(page).map(|number| {
                Raw::Integer(match kind {
                    Kind::Integer32(_) => i64::from(number as i32),
                    _ => number,
                })
            }),
            Values::Lengths { lengths, at } => lengths
                .next(page)
                .and_then(|length| fixed(page, at, usize::try_from(length).ok()?)),
            Values::Shared(shared) => return shared.next(page),
            Values::Split {
                start,
                count,
                index,
            } => {
                *index += 1;
                gather(page, kind, *start, *count, *index - 1)
            }
        };
        found.ok_or_else(|| "the values of a page are damaged, or too few".into())
    }

    /// The value that was put together last.
    pub(super) fn rebuilt(&self) -> &[u8] {
        match self {
            Values::Shared(shared) => &shared.whole,
            _ => &[],
        }
    }
}

#[inline]
fn fixed(page: &[u8], at: &mut usize, width: usize) -> Option<Raw> {
    let (from, to) = (*at, at.checked_add(width)?);
    *at = to;
    (to <= page.len()).then_some(Raw::Page(from, to))
}

/// Runs of booleans have their length before them.
fn runs(page: &[u8], start: usize) -> Option<Hybrid> {
    let (from, to) = varying(page, start)?;
    Some(Hybrid::new(from..to, 1))
}

#[inline]
fn gather(page: &[u8], kind: Kind, start: usize, count: usize, index: usize) -> Option<Raw> {
    let mut bytes = [0; LONGEST_GATHERED];
    if index >= count {
        return None;
    }
    for (place, byte) in bytes.iter_mut().take(kind.width()?).enumerate() {
        *byte = *page.get(start + place * count + index)?;
    }
    Some(Raw::Gathered(bytes))
}

impl Shared {
    fn next(&mut self, page: &[u8]) -> Result<Raw, Problem> {
        let more = self.extend(page);
        self.total = self.total.saturating_add(self.whole.len());
        match more {
            Some(()) if self.total as u64 > MOST_PAGE => Err(format!(
                "the texts of a page take more than {MOST_PAGE} bytes: expected smaller pages"
            )),
            Some(()) => Ok(Raw::Rebuilt),
            None => Err("the values of a page are damaged, or too few".into()),
        }
    }

    fn extend(&mut self, page: &[u8]) -> Option<()> {
        let prefix = usize::try_from(self.prefixes.next(page)?).ok()?;
        let suffix = usize::try_from(self.suffixes.next(page)?).ok()?;
        let more = page.get(self.at..)?.get(..suffix)?;
        if prefix > self.whole.len() {
            return None;
        }
        self.whole.truncate(prefix);
        self.whole.extend_from_slice(more);
        self.at += suffix;
        Some(())
    }
}
