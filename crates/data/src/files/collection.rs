//! Many small text files: in a folder, or in a tar archive, gzipped or not, as it was downloaded.
//!
//! An archive is read once from its beginning to its end and never unpacked to disk. What a header claims takes no
//! memory: a file grows with the bytes that are really there, up to a bound.

use super::csv::Csv;
use super::lines::Lines;
use crate::DataError;
use flate2::bufread::MultiGzDecoder;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The longest file that is still taken for one patient's.
const LONGEST_FILE: u64 = 64 << 20;

/// The longest list of what became of patients; mimic3-benchmarks names each of three million hours.
const LONGEST_LIST: u64 = 1 << 30;

/// How long a file may be, by its name.
fn longest(name: &str) -> u64 {
    match name.ends_with("listfile.csv") {
        true => LONGEST_LIST,
        false => LONGEST_FILE,
    }
}

/// What may stand behind the end of an archive; writers fill up their last block.
const LONGEST_END: u64 = 64 << 20;

/// What may come before a file: its header, long names and other records.
const LONGEST_HEADER: u64 = 64 << 10;

/// Folders in folders that are looked into.
const DEEPEST: usize = 8;

/// More files than this are no set that fits this machine.
const MOST_FILES: usize = 10_000_000;

/// A text file of the collection.
pub(crate) struct Text {
    /// Where it lies, for errors: in a folder a path, in an archive the archive's path and the name in it.
    pub(crate) place: PathBuf,
    /// Its name below the collection, with slashes.
    pub(crate) name: String,
    /// What it says.
    pub(crate) text: String,
}

impl Text {
    /// An error about one value.
    pub(crate) fn wrong(
        &self,
        line: usize,
        column: &str,
        value: &str,
        expected: &str,
    ) -> DataError {
        DataError::Value {
            file: self.place.clone(),
            line,
            column: column.into(),
            value: value.chars().take(60).collect(),
            expected: expected.into(),
        }
    }

    /// It as a table.
    pub(crate) fn csv(&self) -> Result<Csv<'_>, DataError> {
        Csv::open(Lines::of_text(&self.place, &self.text), &self.place)
    }

    /// An error about one line.
    pub(crate) fn wrong_line(&self, line: usize, problem: impl Into<String>) -> DataError {
        DataError::line(&self.place, line, problem)
    }
}

/// Reads every file whose name `wanted` likes and hands them to `take`, some at a time, in the order in which they lie
/// there: for an archive that is its own, for a folder that of the names.
pub(crate) fn read(
    path: &Path,
    wanted: &dyn Fn(&str) -> bool,
    take: &mut dyn FnMut(Vec<Text>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    if path.is_dir() {
        let mut batch = Batch::new(take);
        read_folder(path, (wanted, DEEPEST), &mut batch)?;
        return batch.hand_over();
    }
    let opened = super::open(path)?;
    read_archive(path, opened, wanted, take)
}

/// The same for new patients, whose files are told by `is_patient`: a folder that has none is the archives that lie in
/// it, and what ends so may be a single file.
pub(crate) fn read_new(
    (path, ending): (&Path, &str),
    wanted: &dyn Fn(&str) -> bool,
    is_patient: &dyn Fn(&str) -> bool,
    take: &mut dyn FnMut(Vec<Text>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    if path.extension().is_some_and(|end| end == ending) && path.is_file() {
        return read_file(path, take);
    }
    if path.is_dir() && names_below(path, is_patient, DEEPEST)?.is_empty() {
        for archive in names_below(path, &is_archive, 0)? {
            read(&path.join(archive), wanted, take)?;
        }
    }
    read(path, wanted, take)
}

/// The last part of a name.
pub(crate) fn file_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A download that is not whole has .part at the end of its name.
pub(crate) fn is_archive(name: &str) -> bool {
    let ends = [".tar.gz", ".tgz", ".tar"];
    ends.iter().any(|end| name.ends_with(end))
}

/// The same of a folder, but nothing that lies deeper in it.
pub(crate) fn read_top(
    folder: &Path,
    wanted: &dyn Fn(&str) -> bool,
    take: &mut dyn FnMut(Vec<Text>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut batch = Batch::new(take);
    read_folder(folder, (wanted, 0), &mut batch)?;
    batch.hand_over()
}

/// The same of one text file.
fn read_file(
    path: &Path,
    take: &mut dyn FnMut(Vec<Text>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut batch = Batch::new(take);
    let bytes = bounded(super::open(path)?, path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    batch.push(path.to_owned(), name.into_owned(), bytes)?;
    batch.hand_over()
}

/// The same of an archive's bytes; errors call it `path`.
pub(crate) fn read_archive(
    path: &Path,
    bytes: impl Read,
    wanted: &dyn Fn(&str) -> bool,
    take: &mut dyn FnMut(Vec<Text>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut batch = Batch::new(take);
    unpack(path, bytes, wanted, &mut batch)?;
    batch.hand_over()
}

/// Files that are handed over together: enough to share out to threads.
struct Batch<'a> {
    texts: Vec<Text>,
    bytes: usize,
    take: &'a mut dyn FnMut(Vec<Text>) -> Result<(), DataError>,
}

impl<'a> Batch<'a> {
    fn new(take: &'a mut dyn FnMut(Vec<Text>) -> Result<(), DataError>) -> Self {
        Batch {
            texts: Vec::new(),
            bytes: 0,
            take,
        }
    }

    fn push(&mut self, place: PathBuf, name: String, bytes: Vec<u8>) -> Result<(), DataError> {
        let text = String::from_utf8(bytes)
            .map_err(|_| DataError::file(&place, "not UTF-8 text: save the table as UTF-8"))?;
        self.bytes += text.len();
        self.texts.push(Text { place, name, text });
        if self.bytes > 4 << 20 {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), DataError> {
        self.bytes = 0;
        (self.take)(std::mem::take(&mut self.texts))
    }
}

fn read_folder(
    folder: &Path,
    (wanted, deepest): (&dyn Fn(&str) -> bool, usize),
    batch: &mut Batch<'_>,
) -> Result<(), DataError> {
    for name in names_below(folder, wanted, deepest)? {
        let path = folder.join(&name);
        let file = super::open(&path)?;
        let bytes = bounded(file, &path)?;
        batch.push(path, name, bytes)?;
    }
    Ok(())
}

/// The names of files that `wanted` likes, in order, as they lie in a folder and so many folders in it.
fn names_below(
    folder: &Path,
    wanted: &dyn Fn(&str) -> bool,
    deepest: usize,
) -> Result<Vec<String>, DataError> {
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |source| DataError::io(file, source)
    };
    let mut names = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((path, prefix, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&path).map_err(failed(&path))? {
            let entry = entry.map_err(failed(&path))?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(failed(&entry.path()))?;
            if kind.is_dir() && depth < deepest {
                folders.push((entry.path(), format!("{name}/"), depth + 1));
            } else if !kind.is_dir() && wanted(&name) {
                names.push(name);
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// All bytes of a file, which may be gzipped.
fn bounded(file: File, path: &Path) -> Result<Vec<u8>, DataError> {
    let mut plain = BufReader::new(file);
    let failed = |source| DataError::io(path, source);
    let longest = longest(&path.to_string_lossy());
    let mut bytes = Vec::new();
    if plain.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]) {
        let read = MultiGzDecoder::new(plain)
            .take(longest)
            .read_to_end(&mut bytes);
        read.map_err(|source| damaged(path, &source))?;
    } else {
        plain
            .take(longest)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    match bytes.len() as u64 == longest {
        false => Ok(bytes),
        true => Err(DataError::file(
            path,
            format!("longer than {longest} bytes: expected the file of one patient"),
        )),
    }
}

fn damaged(path: &Path, source: &io::Error) -> DataError {
    let what = match source.kind() {
        io::ErrorKind::UnexpectedEof => "ends early (a truncated download?)",
        _ => "is damaged, or is no tar archive",
    };
    DataError::file(path, format!("the archive {what}: {source}"))
}

fn unpack(
    path: &Path,
    bytes: impl Read,
    wanted: &dyn Fn(&str) -> bool,
    batch: &mut Batch<'_>,
) -> Result<(), DataError> {
    let failed = |source| DataError::io(path, source);
    let mut plain = BufReader::with_capacity(1 << 18, bytes);
    let packed = plain.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
    let reader: Box<dyn Read + '_> = match packed {
        true => Box::new(BufReader::with_capacity(
            1 << 18,
            MultiGzDecoder::new(plain),
        )),
        false => Box::new(plain),
    };
    tar(reader, wanted, |name, bytes| {
        batch.push(path.join(&name), name, bytes)
    })
    .map_err(|stop| match stop {
        Stop::Io(source) => damaged(path, &source),
        Stop::Format(problem) => DataError::file(path, problem),
        Stop::Taker(error) => error,
    })
}

/// Why the reading of an archive ended before its end.
enum Stop {
    /// It could not be read or unpacked.
    Io(io::Error),
    /// It is not what it should be.
    Format(String),
    /// Whoever was given the files did not like one.
    Taker(DataError),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

/// How far an archive was read, and may be.
#[derive(Default)]
struct Meter {
    /// Bytes that may still be read: names and other headers take memory, of which a forged archive would take any
    /// amount.
    left: Cell<u64>,
    /// Zeros at the end of what was read so far.
    zeros: Cell<u64>,
    /// Whether there is no more.
    ended: Cell<bool>,
}

struct Metered<'a> {
    reader: Box<dyn Read + 'a>,
    meter: Rc<Meter>,
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.meter.left.get() as usize);
        if most == 0 && !buffer.is_empty() {
            let problem = "a header is longer than any name";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let count = self.reader.read(&mut buffer[..most])?;
        let Meter { left, zeros, ended } = &*self.meter;
        left.set(left.get() - count as u64);
        match buffer[..count].iter().rposition(|byte| *byte != 0) {
            Some(last) => zeros.set((count - last - 1) as u64),
            None => zeros.set(zeros.get() + count as u64),
        }
        ended.set(count == 0 && !buffer.is_empty());
        Ok(count)
    }
}

/// Hands out the files of a tar archive.
fn tar(
    reader: Box<dyn Read + '_>,
    wanted: &dyn Fn(&str) -> bool,
    mut take: impl FnMut(String, Vec<u8>) -> Result<(), DataError>,
) -> Result<(), Stop> {
    let meter = Rc::new(Meter::default());
    let mut archive = tar::Archive::new(Metered {
        reader,
        meter: Rc::clone(&meter),
    });
    let early = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let mut entries = archive.entries()?;
    let (mut unread, mut count) = (0u64, 0);
    loop {
        meter.left.set(unread.saturating_add(LONGEST_HEADER));
        let Some(entry) = entries.next() else {
            break;
        };
        let entry = entry.map_err(|error| if meter.ended.get() { early() } else { error })?;
        let size = entry.size();
        unread = size.saturating_add(512);
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        // In the classic kind only the end of its name tells a folder.
        if !entry.header().entry_type().is_file() || name.ends_with('/') {
            continue;
        }
        count += 1;
        if count > MOST_FILES {
            return Err(Stop::Format(format!(
                "the archive has more than {MOST_FILES} files"
            )));
        }
        let name = name.trim_start_matches("./").to_owned();
        check_name(&name)?;
        if !wanted(&name) {
            continue;
        }
        let longest = longest(&name);
        if size > longest {
            return Err(Stop::Format(format!(
                "{name} claims {size} bytes: expected the file of one patient"
            )));
        }
        meter.left.set(unread);
        let mut bytes = Vec::new();
        entry.take(longest).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            return Err(Stop::Format(format!(
                "the archive ends in the middle of {name} (a truncated download?)"
            )));
        }
        unread = 512;
        take(name, bytes).map_err(Stop::Taker)?;
    }
    // An archive ends with empty blocks, or something is missing.
    if meter.zeros.get() < 512 {
        return Err(early().into());
    }
    // The checksum of what is packed follows the archive's own end.
    meter.left.set(LONGEST_END);
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(())
}

/// Refuses names that would lie outside.
fn check_name(name: &str) -> Result<(), Stop> {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    match Path::new(name).components().all(inside) && !name.is_empty() {
        true => Ok(()),
        false => Err(Stop::Format(format!(
            "the archive has a file {name:?}, which leaves it: expected names below the archive"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    /// A tar archive of these files, the sizes of whose headers can be wrong.
    fn tarred(files: &[(&str, &[u8], u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, bytes, claimed) in files {
            let mut header = [0; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..136].copy_from_slice(format!("{claimed:011o} ").as_bytes());
            header[148..156].fill(b' ');
            header[156] = b'0';
            header[257..265].copy_from_slice(b"ustar\x0000");
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            out.extend(header);
            out.extend_from_slice(bytes);
            out.resize(out.len().next_multiple_of(512), 0);
        }
        out.resize(out.len() + 1024, 0);
        out
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn names(bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let path = Path::new("a.tar.gz");
        read_archive(path, bytes, &|_| true, &mut |texts| {
            names.extend(
                texts
                    .into_iter()
                    .map(|text| format!("{}={}", text.name, text.text)),
            );
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        Ok(names)
    }

    #[test]
    fn archives_are_read_packed_or_not() {
        let tar = tarred(&[("a/x.txt", b"one", 3), ("b.txt", b"", 0)]);
        assert_eq!(names(&tar).unwrap(), ["a/x.txt=one", "b.txt="]);
        assert_eq!(names(&gzipped(&tar)).unwrap(), ["a/x.txt=one", "b.txt="]);
    }

    #[test]
    fn what_is_wrong_with_an_archive_is_told() {
        let refused = |bytes: &[u8], part: &str| {
            let message = names(bytes).unwrap_err();
            assert!(
                message.starts_with("a.tar.gz") && message.contains(part),
                "{message}"
            );
        };
        let tar = tarred(&[("x.txt", b"text", 4)]);
        let packed = gzipped(&tar);
        refused(&packed[..packed.len() / 2], "ends early");
        refused(&tar[..300], "ends early");
        let mut changed = packed.clone();
        changed[packed.len() / 2] ^= 0xff;
        assert!(names(&changed).is_err());
        let mut changed = tar.clone();
        changed[3] ^= 1;
        refused(&changed, "checksum");
        refused(&[b'x'; 1024], "no tar archive");
        refused(&tar[..1024], "ends early");
        for name in ["../x.txt", "/etc/x.txt", "a/../../x.txt"] {
            refused(&tarred(&[(name, b"", 0)]), "which leaves it");
        }
        refused(&tarred(&[("x.txt", b"text", 8_000_000_000)]), "");
        refused(&tarred(&[("x.txt", b"\xff\xfe", 2)]), "not UTF-8");
    }

    /// Sizes and names of POSIX records win over those of the header.
    #[test]
    fn posix_records_are_read() {
        let mut builder = tar::Builder::new(Vec::new());
        let name = format!("{}/x.txt", "long/".repeat(50));
        let mut header = tar::Header::new_ustar();
        header.set_size(0);
        header.set_cksum();
        let records = [("path", name.as_bytes()), ("size", b"4")];
        builder.append_pax_extensions(records).unwrap();
        let mut bytes = builder.into_inner().unwrap();
        bytes.truncate(bytes.len() - 1024);
        bytes.extend(header.as_bytes());
        bytes.extend(b"text");
        bytes.resize(bytes.len() + 508 + 1024, 0);
        assert_eq!(names(&bytes).unwrap(), [format!("{name}=text")]);
    }

    #[test]
    fn a_header_without_end_takes_no_memory() {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(1 << 40);
        header.set_cksum();
        let mut left = 4u64 << 30;
        let endless = std::iter::repeat_with(move || {
            left = left.saturating_sub(1);
            assert!(left > 3 << 30, "it reads on");
            b'x'
        });
        struct Bytes<I>(I);
        impl<I: Iterator<Item = u8>> Read for Bytes<I> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let mut count = 0;
                for (place, byte) in buffer.iter_mut().zip(&mut self.0) {
                    *place = byte;
                    count += 1;
                }
                Ok(count)
            }
        }
        let bytes = header.as_bytes().chain(Bytes(endless));
        let read = read_archive(Path::new("a.tar"), bytes, &|_| true, &mut |_| Ok(()));
        let message = read.unwrap_err().to_string();
        assert!(message.contains("longer than any name"), "{message}");
    }
}
