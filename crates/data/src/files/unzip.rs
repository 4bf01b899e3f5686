//! Just enough of the ZIP format to read what NumPy writes: files stored or deflated, found by the directory at the
//! end.
//!
//! Every offset and size is checked against the archive before it is used, and a file is unpacked piece by piece: what
//! a header claims takes no memory. ZIP64 is understood, encryption and archives in parts are not.

use flate2::{Crc, read::DeflateDecoder};
use std::io::{self, Read, Seek, SeekFrom, Take};

const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
const IN_ZIP64: u64 = 0xffff_ffff;

/// The end record with the longest comment.
const LONGEST_END: u64 = 22 + 0xffff;

/// More than this is no archive of arrays.
const MOST_ENTRIES: u64 = 100_000;
const MOST_DIRECTORY: u64 = 64 << 20;

/// A file of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: String,
    /// Its size, unpacked, as the directory says.
    pub(crate) size: u64,
    method: u16,
    packed: u64,
    crc: u32,
    offset: u64,
}

/// What is wrong with an archive, as the end of a sentence about its file.
pub(crate) type Problem = String;

/// An archive.
pub(crate) struct Archive<R> {
    file: R,
    length: u64,
    /// The files in it.
    pub(crate) entries: Vec<Entry>,
}

fn broken(what: &str) -> Problem {
    format!(
        "not a complete ZIP archive ({what}): expected an .npz file; if it was downloaded, repeat the download"
    )
}

fn of_io(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => broken("it ends early"),
        _ => error.to_string(),
    }
}

/// Little-endian numbers of a record.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let (first, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| broken("a record is cut short"))?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, Problem> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32, Problem> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn bytes(&mut self, count: usize) -> Result<&[u8], Problem> {
        let (first, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| broken("a record is cut short"))?;
        self.0 = rest;
        Ok(first)
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the directory.
    pub(crate) fn open(mut file: R) -> Result<Self, Problem> {
        let length = file.seek(SeekFrom::End(0)).map_err(of_io)?;
        let tail_at = length.saturating_sub(LONGEST_END);
        let tail = read_at(&mut file, tail_at, length - tail_at)?;
        let end = (0..tail.len().saturating_sub(21))
            .rev()
            .find(|at| tail[*at..].starts_with(&END.to_le_bytes()))
            .ok_or_else(|| broken("there is no directory at its end"))?;
        let mut fields = Fields(&tail[end + 4..]);
        let (disk, directory_disk) = (fields.u16()?, fields.u16()?);
        let _on_this_disk = fields.u16()?;
        let mut entries = u64::from(fields.u16()?);
        let mut size = u64::from(fields.u32()?);
        let mut offset = u64::from(fields.u32()?);
        if disk != directory_disk {
            return Err(broken("it is split into several files"));
        }
        if entries == 0xffff || size == IN_ZIP64 || offset == IN_ZIP64 {
            (entries, size, offset) = end_64(&mut file, &tail, end, length)?;
        }
        if entries > MOST_ENTRIES || size > MOST_DIRECTORY {
            return Err(broken("its directory is too large"));
        }
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(broken("its directory lies outside the file"));
        }
        let directory = read_at(&mut file, offset, size)?;
        let mut fields = Fields(&directory);
        let mut list = Vec::new();
        for _ in 0..entries {
            let entry = central_entry(&mut fields)?;
            if entry.offset >= length || entry.packed > length {
                return Err(broken(&format!("{} lies outside the file", entry.name)));
            }
            list.push(entry);
        }
        Ok(Archive {
            file,
            length,
            entries: list,
        })
    }

    /// The file of that name.
    pub(crate) fn find(&self, name: &str) -> Option<Entry> {
        self.entries
            .iter()
            .find(|entry| entry.name == name)
            .cloned()
    }

    /// Begins to unpack a file.
    pub(crate) fn unpack(&mut self, entry: &Entry) -> Result<Unpacking<'_, R>, Problem> {
        let header = read_at(
            &mut self.file,
            entry.offset,
            30.min(self.length - entry.offset),
        )?;
        let mut fields = Fields(&header);
        if fields.u32()? != LOCAL {
            return Err(broken(&format!(
                "{} is not where the directory says",
                entry.name
            )));
        }
        fields.bytes(22)?;
        let (name, extra) = (u64::from(fields.u16()?), u64::from(fields.u16()?));
        let start = entry.offset + 30 + name + extra;
        if start
            .checked_add(entry.packed)
            .is_none_or(|end| end > self.length)
        {
            return Err(broken(&format!("{} is cut off", entry.name)));
        }
        self.file.seek(SeekFrom::Start(start)).map_err(of_io)?;
        let packed = (&mut self.file).take(entry.packed);
        let source = match entry.method {
            0 => Source::Stored(packed),
            8 => Source::Deflated(DeflateDecoder::new(packed)),
            other => {
                return Err(format!(
                    "{} is compressed by method {other}: expected stored or deflated, as NumPy writes it",
                    entry.name
                ));
            }
        };
        Ok(Unpacking {
            source,
            crc: Crc::new(),
            left: entry.size,
            expected: entry.crc,
            name: entry.name.clone(),
        })
    }
}

enum Source<'a, R> {
    Stored(Take<&'a mut R>),
    Deflated(DeflateDecoder<Take<&'a mut R>>),
}

/// A file being unpacked.
pub(crate) struct Unpacking<'a, R> {
    source: Source<'a, R>,
    crc: Crc,
    left: u64,
    expected: u32,
    name: String,
}

impl<R: Read> Unpacking<'_, R> {
    /// Bytes that are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Fills the buffer.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Problem> {
        if buffer.len() as u64 > self.left {
            return Err(broken(&format!(
                "{} is shorter than its header states",
                self.name
            )));
        }
        let result = match &mut self.source {
            Source::Stored(source) => source.read_exact(buffer),
            Source::Deflated(source) => source.read_exact(buffer),
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                broken(&format!("{} cannot be unpacked", self.name))
            }
            _ => of_io(error),
        })?;
        self.crc.update(buffer);
        self.left -= buffer.len() as u64;
        Ok(())
    }

    /// At the end: nothing must be left, and the checksum must be right.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        if self.left > 0 {
            return Err(broken(&format!(
                "{} is longer than its header states",
                self.name
            )));
        }
        if self.crc.sum() != self.expected {
            return Err(broken(&format!("the checksum of {} is wrong", self.name)));
        }
        Ok(())
    }
}

/// Reads bytes that are known to be there; memory grows with what is read.
fn read_at(file: &mut (impl Read + Seek), at: u64, count: u64) -> Result<Vec<u8>, Problem> {
    file.seek(SeekFrom::Start(at)).map_err(of_io)?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes).map_err(of_io)?;
    match bytes.len() as u64 == count {
        true => Ok(bytes),
        false => Err(broken("it ends early")),
    }
}

/// Entries, size and offset of the directory, from the ZIP64 record.
fn end_64(
    file: &mut (impl Read + Seek),
    tail: &[u8],
    end: usize,
    length: u64,
) -> Result<(u64, u64, u64), Problem> {
    let locator = end.checked_sub(20).map(|at| &tail[at..end]);
    let mut fields = Fields(locator.ok_or_else(|| broken("its ZIP64 locator is missing"))?);
    if fields.u32()? != LOCATOR_64 {
        return Err(broken("its ZIP64 locator is missing"));
    }
    fields.u32()?;
    let at = fields.u64()?;
    if at.checked_add(56).is_none_or(|end| end > length) {
        return Err(broken("its ZIP64 record lies outside the file"));
    }
    let record = read_at(file, at, 56)?;
    let mut fields = Fields(&record);
    if fields.u32()? != END_64 {
        return Err(broken("its ZIP64 record is missing"));
    }
    fields.bytes(28)?;
    Ok((fields.u64()?, fields.u64()?, fields.u64()?))
}

fn central_entry(fields: &mut Fields<'_>) -> Result<Entry, Problem> {
    if fields.u32()? != CENTRAL {
        return Err(broken("its directory is damaged"));
    }
    fields.u32()?;
    let flags = fields.u16()?;
    let method = fields.u16()?;
    fields.u32()?;
    let crc = fields.u32()?;
    let mut packed = u64::from(fields.u32()?);
    let mut size = u64::from(fields.u32()?);
    let (name, extra, comment) = (fields.u16()?, fields.u16()?, fields.u16()?);
    fields.bytes(8)?;
    let mut offset = u64::from(fields.u32()?);
    let name = String::from_utf8_lossy(fields.bytes(usize::from(name))?).into_owned();
    let mut extra = Fields(fields.bytes(usize::from(extra))?);
    while extra.0.len() >= 4 {
        let (id, length) = (extra.u16()?, extra.u16()?);
        let mut field = Fields(extra.bytes(usize::from(length))?);
        if id == 1 {
            for value in [&mut size, &mut packed, &mut offset] {
                if *value == IN_ZIP64 {
                    *value = field.u64()?;
                }
            }
        }
    }
    fields.bytes(usize::from(comment))?;
    if flags & 1 != 0 {
        return Err(format!("{name} is encrypted: expected a plain .npz file"));
    }
    Ok(Entry {
        name,
        size,
        method,
        packed,
        crc,
        offset,
    })
}
