//! Just enough of the ZIP format to write files uncompressed, one after another.
//!
//! Receives named files whose size is known before their bytes, and sends them to a writer that can seek: a file's
//! checksum is known at its end only, and is put into its header then. Sizes, offsets and counts that do not fit the
//! classic fields use the ZIP64 extension, and only those, so that small archives open everywhere.

use flate2::Crc;
use std::io::{self, Seek, SeekFrom, Write};

/// Stands in a 32-bit field whose value is in the ZIP64 extension.
const IN_ZIP64: u64 = 0xffff_ffff;

/// Where the checksum stands in a local file header.
const CHECKSUM_AT: u64 = 14;

/// 1 January 1980, the earliest date of the format: archives of the same data are the same bytes.
const DATE: u16 = (1 << 5) | 1;

struct Entry {
    name: String,
    size: u64,
    crc: u32,
    /// Where its local header starts, counted from the start of the archive.
    offset: u64,
}

/// An archive being written.
pub(crate) struct ZipWriter<W> {
    out: W,
    start: u64,
    entries: Vec<Entry>,
}

impl<W: Write + Seek> ZipWriter<W> {
    /// Starts an archive where the writer stands.
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        let start = out.stream_position()?;
        Ok(ZipWriter {
            out,
            start,
            entries: Vec::new(),
        })
    }

    /// Writes one file of exactly `size` bytes, which `fill` provides piece by piece.
    pub(crate) fn file(
        &mut self,
        name: &str,
        size: u64,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let header_at = self.out.stream_position()?;
        let mut entry = Entry {
            name: name.into(),
            size,
            crc: 0,
            offset: header_at - self.start,
        };
        self.out.write_all(&entry.local_header())?;

        let mut body = Checked {
            out: &mut self.out,
            crc: Crc::new(),
            written: 0,
        };
        fill(&mut body)?;
        if body.written != size {
            let message = format!("{name}: {} bytes written, expected {size}", body.written);
            return Err(io::Error::other(message));
        }
        entry.crc = body.crc.sum();

        let end = self.out.stream_position()?;
        self.out.seek(SeekFrom::Start(header_at + CHECKSUM_AT))?;
        self.out.write_all(&entry.crc.to_le_bytes())?;
        self.out.seek(SeekFrom::Start(end))?;
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the directory, without which the archive is none.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let offset = self.out.stream_position()? - self.start;
        let mut size = 0;
        for entry in &self.entries {
            let record = entry.central_header();
            self.out.write_all(&record)?;
            size += record.len() as u64;
        }
        let end = end_of_directory(self.entries.len() as u64, size, offset);
        self.out.write_all(&end)?;
        self.out.flush()
    }
}

/// Passes bytes on and keeps their checksum and count.
struct Checked<'a, W> {
    out: &'a mut W,
    crc: Crc,
    written: u64,
}

impl<W: Write> Write for Checked<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.crc.update(&bytes[..count]);
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Entry {
    fn local_header(&self) -> Vec<u8> {
        // Here the extension holds both sizes or none: the compressed and the plain one.
        let wide: &[u64] = if self.size >= IN_ZIP64 {
            &[self.size, self.size]
        } else {
            &[]
        };
        let extension = zip64_extension(wide);
        let mut header = Record::new(0x0403_4b50);
        self.common_fields(&mut header, wide);
        header
            .u16(self.name.len() as u16)
            .u16(extension.len() as u16);
        header.bytes(self.name.as_bytes()).bytes(&extension);
        header.0
    }

    fn central_header(&self) -> Vec<u8> {
        let mut wide = Vec::new();
        if self.size >= IN_ZIP64 {
            wide.extend([self.size, self.size]);
        }
        if self.offset >= IN_ZIP64 {
            wide.push(self.offset);
        }
        let extension = zip64_extension(&wide);
        let mut header = Record::new(0x0201_4b50);
        header.u16(version(&wide)); // made by
        self.common_fields(&mut header, &wide);
        header
            .u16(self.name.len() as u16)
            .u16(extension.len() as u16);
        header.u16(0).u16(0).u16(0).u32(0); // comment, disk, attributes
        header.u32_or_zip64(self.offset);
        header.bytes(self.name.as_bytes()).bytes(&extension);
        header.0
    }

    /// The fields that both headers have in common: version to size.
    fn common_fields(&self, header: &mut Record, wide: &[u64]) {
        header.u16(version(wide)).u16(0).u16(0); // no flags, stored
        header.u16(0).u16(DATE);
        header.u32(self.crc);
        header.u32_or_zip64(self.size).u32_or_zip64(self.size);
    }
}

/// The version of the format that a reader must know.
fn version(wide: &[u64]) -> u16 {
    if wide.is_empty() { 20 } else { 45 }
}

fn zip64_extension(values: &[u64]) -> Vec<u8> {
    if values.is_empty() {
        return Vec::new();
    }
    let mut extension = Record(Vec::new());
    extension.u16(1).u16(8 * values.len() as u16);
    for value in values {
        extension.u64(*value);
    }
    extension.0
}

/// What ends an archive: the ZIP64 directory where needed, then the classic one.
fn end_of_directory(entries: u64, size: u64, offset: u64) -> Vec<u8> {
    let mut end = Record(Vec::new());
    let classic_entries = u16::try_from(entries).unwrap_or(u16::MAX);
    if classic_entries == u16::MAX || size >= IN_ZIP64 || offset >= IN_ZIP64 {
        end = Record::new(0x0606_4b50);
        end.u64(44).u16(45).u16(45).u32(0).u32(0);
        end.u64(entries).u64(entries).u64(size).u64(offset);
        // Where the record just written starts: right behind the directory.
        end.u32(0x0706_4b50).u32(0).u64(offset + size).u32(1);
    }
    end.u32(0x0605_4b50).u16(0).u16(0);
    end.u16(classic_entries).u16(classic_entries);
    end.u32_or_zip64(size).u32_or_zip64(offset).u16(0);
    end.0
}

/// Bytes of a header, little-endian.
struct Record(Vec<u8>);

impl Record {
    fn new(signature: u32) -> Self {
        Record(signature.to_le_bytes().to_vec())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// The value where it fits, else the mark that it is in the ZIP64 extension.
    fn u32_or_zip64(&mut self, value: u64) -> &mut Self {
        self.u32(value.min(IN_ZIP64) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u64_at(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn small_archives_have_no_extension() {
        let entry = Entry {
            name: "a".into(),
            size: IN_ZIP64 - 1,
            crc: 7,
            offset: 9,
        };
        assert_eq!(entry.local_header().len(), 30 + 1);
        assert_eq!(entry.central_header().len(), 46 + 1);
        assert_eq!(end_of_directory(65_534, 10, 20).len(), 22);
    }

    #[test]
    fn large_sizes_and_offsets_go_to_the_extension() {
        let (size, offset) = (5 << 30, 6 << 30);
        let entry = Entry {
            name: "a".into(),
            size,
            crc: 7,
            offset,
        };
        let local = entry.local_header();
        assert_eq!(local.len(), 31 + 20);
        assert_eq!((u64_at(&local, 35), u64_at(&local, 43)), (size, size));
        let central = entry.central_header();
        assert_eq!(central.len(), 47 + 28);
        assert_eq!(u64_at(&central, 47 + 20), offset);

        let far = Entry {
            name: "a".into(),
            size: 3,
            crc: 7,
            offset,
        };
        assert_eq!(far.local_header().len(), 31);
        assert_eq!(u64_at(&far.central_header(), 47 + 4), offset);
    }

    #[test]
    fn many_files_or_a_far_directory_need_the_wide_end() {
        for (entries, offset) in [(65_535, 0), (1, 6 << 30)] {
            let end = end_of_directory(entries, 100, offset);
            assert_eq!(end.len(), 56 + 20 + 22);
            assert_eq!((u64_at(&end, 32), u64_at(&end, 48)), (entries, offset));
            assert_eq!(u64_at(&end, 56 + 8), offset + 100);
        }
    }

    #[test]
    fn a_file_that_breaks_its_promise_is_an_error() {
        let mut zip = ZipWriter::new(io::Cursor::new(Vec::new())).unwrap();
        let error = zip.file("a", 3, |out| out.write_all(b"four")).unwrap_err();
        assert_eq!(error.to_string(), "a: 4 bytes written, expected 3");
    }
}
