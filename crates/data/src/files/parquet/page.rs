//! Headers of pages.

use super::thrift::{Compact, Damage, Type};

/// What the header of a page says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// What the page holds.
    pub(super) page: Page,
    /// Its bytes, unpacked.
    pub(super) unpacked: u64,
    /// Its bytes in the file.
    pub(super) packed: u64,
    /// The checksum of its bytes in the file.
    pub(super) crc: Option<u32>,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// Values that others point to.
    Dictionary { values: u64, encoding: i64 },
    /// So many rows.
    Data {
        values: u64,
        encoding: i64,
        levels: Levels,
    },
    /// Nothing that is needed.
    Other,
}

/// Where the levels of a page are, which say what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Levels {
    /// Before the values and packed with them, in this encoding.
    Inside { encoding: i64 },
    /// Before the values and never packed: so many bytes of repetitions, then of definitions.
    Apart {
        repetitions: u64,
        definitions: u64,
        values_packed: bool,
    },
}

impl Header {
    /// Reads the header at the beginning of the bytes; with its length.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize), Damage> {
        let (mut kind_of_page, mut unpacked, mut packed, mut crc) = (None, None, None, None);
        let (mut data, mut data_2, mut dictionary) = (None, None, None);
        let mut compact = Compact::new(bytes);
        compact.fields(Type::Structure, |compact, number, kind| {
            match number {
                1 => kind_of_page = Some(compact.integer(kind)?),
                2 => unpacked = Some(compact.count(kind)?),
                3 => packed = Some(compact.count(kind)?),
                4 => crc = Some(compact.integer(kind)? as u32),
                5 => data = Some(data_page(compact, kind)?),
                7 => dictionary = Some(dictionary_page(compact, kind)?),
                8 => data_2 = Some(data_page_2(compact, kind)?),
                _ => compact.skip(kind)?,
            }
            Ok(())
        })?;
        let missing = Damage::Wrong("a page is not wholly described");
        let page = match kind_of_page.ok_or(missing)? {
            0 => data.ok_or(missing)?,
            2 => dictionary.ok_or(missing)?,
            3 => data_2.ok_or(missing)?,
            _ => Page::Other,
        };
        let header = Header {
            page,
            unpacked: unpacked.ok_or(missing)?,
            packed: packed.ok_or(missing)?,
            crc,
        };
        Ok((header, compact.at()))
    }
}

const NO_VALUES: Damage = Damage::Wrong("a page does not say what is in it");

fn data_page(compact: &mut Compact<'_>, kind: Type) -> Result<Page, Damage> {
    let [mut encoding, mut levels] = [None; 2];
    let mut values = None;
    compact.fields(kind, |compact, number, kind| {
        match number {
            1 => values = Some(compact.count(kind)?),
            2 => encoding = Some(compact.integer(kind)?),
            3 => levels = Some(compact.integer(kind)?),
            _ => compact.skip(kind)?,
        }
        Ok(())
    })?;
    Ok(Page::Data {
        values: values.ok_or(NO_VALUES)?,
        encoding: encoding.ok_or(NO_VALUES)?,
        levels: Levels::Inside {
            encoding: levels.ok_or(NO_VALUES)?,
        },
    })
}

fn data_page_2(compact: &mut Compact<'_>, kind: Type) -> Result<Page, Damage> {
    let [mut values, mut definitions, mut repetitions] = [None; 3];
    let mut encoding = None;
    let mut values_packed = true;
    compact.fields(kind, |compact, number, kind| {
        match number {
            1 => values = Some(compact.count(kind)?),
            4 => encoding = Some(compact.integer(kind)?),
            5 => definitions = Some(compact.count(kind)?),
            6 => repetitions = Some(compact.count(kind)?),
            7 => {
                values_packed = kind != Type::Boolean(false);
                compact.skip(kind)?;
            }
            _ => compact.skip(kind)?,
        }
        Ok(())
    })?;
    Ok(Page::Data {
        values: values.ok_or(NO_VALUES)?,
        encoding: encoding.ok_or(NO_VALUES)?,
        levels: Levels::Apart {
            repetitions: repetitions.ok_or(NO_VALUES)?,
            definitions: definitions.ok_or(NO_VALUES)?,
            values_packed,
        },
    })
}

fn dictionary_page(compact: &mut Compact<'_>, kind: Type) -> Result<Page, Damage> {
    let (mut values, mut encoding) = (None, None);
    compact.fields(kind, |compact, number, kind| {
        match number {
            1 => values = Some(compact.count(kind)?),
            2 => encoding = Some(compact.integer(kind)?),
            _ => compact.skip(kind)?,
        }
        Ok(())
    })?;
    Ok(Page::Dictionary {
        values: values.ok_or(NO_VALUES)?,
        encoding: encoding.ok_or(NO_VALUES)?,
    })
}
