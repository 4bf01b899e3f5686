//! Follows a file of lines that grows, is cut when a run is resumed, or is replaced.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A longer line is damaged.
const LONGEST_LINE: usize = 4 << 20;

/// Read at a time.
const PIECE: u64 = 1 << 20;

/// Bytes before the place read to that are compared, to see whether it is still the same file.
const MEMORY: usize = 64;

/// The receiver of the lines.
pub trait Reader {
    /// The file was replaced or cut: forget everything.
    fn begin_anew(&mut self);
    /// A complete line without its line ending; numbers begin with 1.
    fn line(&mut self, number: u64, line: &[u8]);
    /// A line that is too long to be one.
    fn too_long(&mut self, number: u64);
}

/// How far a file was read.
#[derive(Default)]
pub struct Follower {
    /// The file's number on its disk.
    file: Option<(u64, u64)>,
    /// Everything before this was passed on.
    offset: u64,
    lines: u64,
    memory: Vec<u8>,
    /// Within a line that is too long.
    skipping: bool,
}

/// How much of a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes that were read, of those that there are.
    pub read: u64,
    /// Bytes that there are.
    pub length: u64,
    /// Whether time was up before everything was read.
    pub has_more: bool,
}

impl Follower {
    /// Passes new lines to `reader`, for about `time` at most. The last line is passed on once it is complete.
    ///
    /// # Errors
    /// If the file cannot be read; a missing file counts as empty.
    pub fn follow(
        &mut self,
        path: &Path,
        time: Duration,
        reader: &mut impl Reader,
    ) -> io::Result<Extent> {
        let until = Instant::now() + time;
        let Some(mut file) = open(path)? else {
            self.forget(reader);
            return Ok(Extent {
                read: 0,
                length: 0,
                has_more: false,
            });
        };
        let metadata = file.metadata()?;
        let (number, length) = ((metadata.dev(), metadata.ino()), metadata.len());
        if self.file != Some(number) || !self.remembers(&mut file)? {
            self.forget(reader);
        }
        self.file = Some(number);
        file.seek(SeekFrom::Start(self.offset))?;
        let mut held: Vec<u8> = Vec::new();
        let mut has_more = false;
        // No further than the length: what is appended meanwhile is told next time.
        let mut left = length.saturating_sub(self.offset);
        while left > 0 {
            let read = file.by_ref().take(PIECE.min(left)).read_to_end(&mut held)?;
            if read == 0 {
                break;
            }
            left -= read as u64;
            let taken = self.tell(&held, reader);
            held.drain(..taken);
            if held.len() > LONGEST_LINE {
                self.skip(&mut held, reader);
            }
            if left > 0 && Instant::now() >= until {
                has_more = true;
                break;
            }
        }
        Ok(Extent {
            read: self.offset,
            length,
            has_more,
        })
    }

    /// Tells the whole lines; gives how many bytes they are.
    fn tell(&mut self, held: &[u8], reader: &mut impl Reader) -> usize {
        let mut taken = 0;
        while let Some(end) = held[taken..].iter().position(|b| *b == b'\n') {
            let line = &held[taken..taken + end];
            match std::mem::take(&mut self.skipping) {
                true => {}
                false => {
                    self.lines += 1;
                    reader.line(self.lines, line);
                }
            }
            taken += end + 1;
        }
        self.passed(&held[..taken]);
        taken
    }

    fn skip(&mut self, held: &mut Vec<u8>, reader: &mut impl Reader) {
        if !std::mem::replace(&mut self.skipping, true) {
            self.lines += 1;
            reader.too_long(self.lines);
        }
        self.passed(held);
        held.clear();
    }

    fn passed(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.memory
            .extend_from_slice(&bytes[bytes.len().saturating_sub(MEMORY)..]);
        let surplus = self.memory.len().saturating_sub(MEMORY);
        self.memory.drain(..surplus);
    }

    /// Whether what was read is still there.
    fn remembers(&self, file: &mut File) -> io::Result<bool> {
        let start = self.offset - self.memory.len() as u64;
        file.seek(SeekFrom::Start(start))?;
        let mut there = Vec::new();
        file.take(self.memory.len() as u64)
            .read_to_end(&mut there)?;
        Ok(there == self.memory)
    }

    fn forget(&mut self, reader: &mut impl Reader) {
        if self.offset > 0 || self.lines > 0 {
            reader.begin_anew();
        }
        *self = Follower::default();
    }
}

/// A file, if there is one. Pipes, devices and links are not what a run writes.
///
/// # Errors
/// If it cannot be opened, or is something else.
pub fn open(path: &Path) -> io::Result<Option<File>> {
    match fs::symlink_metadata(path) {
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(e),
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is not a regular file")),
        Ok(_) => match File::open(path) {
            // Removed a moment ago.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        },
    }
}

/// The last `most` bytes of a file, which must be there.
pub(crate) fn tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    fs::symlink_metadata(path)?;
    let Some(mut file) = open(path)? else {
        return Ok(Vec::new());
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;
    use std::io::Write;

    #[derive(Default)]
    struct Told(Vec<String>);

    impl Reader for Told {
        fn begin_anew(&mut self) {
            self.0.push("anew".into());
        }

        fn line(&mut self, number: u64, line: &[u8]) {
            self.0
                .push(format!("{number} {}", String::from_utf8_lossy(line)));
        }

        fn too_long(&mut self, number: u64) {
            self.0.push(format!("{number} too long"));
        }
    }

    struct Watch {
        folder: Folder,
        follower: Follower,
    }

    impl Watch {
        fn new(name: &str) -> Self {
            Watch {
                folder: Folder::new(name),
                follower: Follower::default(),
            }
        }

        fn path(&self) -> std::path::PathBuf {
            self.folder.path("lines")
        }

        fn append(&self, text: &[u8]) {
            let file = fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(self.path());
            file.unwrap().write_all(text).unwrap();
        }

        fn told(&mut self) -> Vec<String> {
            let mut told = Told::default();
            let path = self.path();
            let extent = self
                .follower
                .follow(&path, Duration::from_secs(60), &mut told)
                .unwrap();
            assert!(!extent.has_more);
            told.0
        }
    }

    #[test]
    fn only_what_is_new_is_told_and_only_whole_lines() {
        let mut watch = Watch::new("follow-new");
        assert!(watch.told().is_empty(), "no file yet");
        watch.append(b"a\nb\nhal");
        assert_eq!(watch.told(), ["1 a", "2 b"]);
        assert!(watch.told().is_empty());
        watch.append(b"f\n\nd\n");
        assert_eq!(watch.told(), ["3 half", "4 ", "5 d"]);
        assert!(watch.told().is_empty());
    }

    #[test]
    fn a_file_that_was_cut_is_read_again() {
        let mut watch = Watch::new("follow-cut");
        watch.append(b"a\nb\nc\n");
        watch.told();
        let cut = || {
            fs::OpenOptions::new()
                .write(true)
                .open(watch.folder.path("lines"))
                .unwrap()
                .set_len(2)
                .unwrap()
        };
        cut();
        assert_eq!(watch.told(), ["anew", "1 a"]);
        // Cut, and longer again than it was before anybody looked.
        watch.append(b"x\ny\n");
        watch.told();
        fs::write(watch.path(), "a\nz\nlonger than before\n").unwrap();
        assert_eq!(watch.told(), ["anew", "1 a", "2 z", "3 longer than before"]);
    }

    #[test]
    fn another_file_in_its_place_is_read_anew_and_none_is_empty() {
        let mut watch = Watch::new("follow-other");
        watch.append(b"same\n");
        watch.told();
        fs::write(watch.folder.path("other"), "same\nmore\n").unwrap();
        fs::rename(watch.folder.path("other"), watch.path()).unwrap();
        assert_eq!(watch.told(), ["anew", "1 same", "2 more"]);
        fs::remove_file(watch.path()).unwrap();
        assert_eq!(watch.told(), ["anew"]);
        assert!(watch.told().is_empty());
        fs::create_dir(watch.path()).unwrap();
        let read = watch
            .follower
            .follow(&watch.path(), Duration::ZERO, &mut Told::default());
        assert!(read.unwrap_err().to_string().contains("not a regular file"));
    }

    #[test]
    fn a_line_without_end_is_told_and_passed_over() {
        let mut watch = Watch::new("follow-long");
        watch.append(b"a\n");
        watch.append(&vec![b'x'; 2 * LONGEST_LINE + 5]);
        watch.append(b"\nb\n");
        assert_eq!(watch.told(), ["1 a", "2 too long", "3 b"]);
    }

    #[test]
    fn without_time_a_piece_is_read_and_the_rest_later() {
        let mut watch = Watch::new("follow-time");
        let line = format!("{}\n", "z".repeat(999));
        watch.append(line.repeat(5000).as_bytes());
        let (mut told, mut times, path) = (Told::default(), 0, watch.path());
        loop {
            times += 1;
            let extent = watch
                .follower
                .follow(&path, Duration::ZERO, &mut told)
                .unwrap();
            if !extent.has_more {
                assert_eq!(extent.read, 5_000_000);
                break;
            }
        }
        assert_eq!((told.0.len(), times), (5000, 5), "a megabyte each");
        assert!(
            told.0
                .iter()
                .enumerate()
                .all(|(i, text)| text.starts_with(&format!("{} z", i + 1)))
        );
    }
}
