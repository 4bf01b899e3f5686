//! One file: what came of it so far is kept beside its place, the rest is asked for, and only a file that is whole and
//! right gets its name.

use super::catalogue::{PARTIAL, RemoteFile};
use super::checksum::{Checksum, Kind};
use super::http::{Answer, Client, Incoming, Stop};
use crate::progress::Bytes;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_run::format::{bytes, count};
use std::fs::{self, File, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tries in a row that bring nothing new before we give up.
const TRIES: u32 = 5;

/// How long the first of them waits; each next one waits twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// A file that is downloaded.
pub(super) struct Download<'a> {
    pub(super) client: &'a Client,
    pub(super) file: &'a RemoteFile,
    /// Where it comes from.
    pub(super) address: String,
    /// Where it goes.
    pub(super) target: PathBuf,
}

/// Where a file is as long as it is not whole.
pub(super) fn partial(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(PARTIAL);
    target.with_file_name(name)
}

impl Download<'_> {
    /// Downloads the file. Answers with its checksum.
    pub(super) fn run(&self) -> Result<Checksum> {
        let path = partial(&self.target);
        let mut part = Part::open(path.clone())?;
        // Nothing would notice if the beginning of one file and the end of another were put together.
        if self.file.checksum().is_none() {
            part.start_over()?;
        }
        let display = Bytes::new(&self.file.name);
        let mut transfer = Transfer {
            download: self,
            part,
            display,
            total: self.file.bytes,
        };
        let result = transfer.fill();
        transfer.display.close();
        let result = result.and_then(|()| self.accept(&transfer.part));
        if result.is_err() && transfer.part.length().is_ok_and(|length| length == 0) {
            // A file without bytes holds nothing to go on with.
            let _ = fs::remove_file(&path);
        }
        result
    }

    /// Gives the file its name if it is the right one, and removes it if not.
    fn accept(&self, part: &Part) -> Result<Checksum> {
        let expected = self.file.checksum();
        let kind = expected.as_ref().map_or(Kind::Sha256, |sum| sum.kind);
        let found = Checksum::of(kind, &part.path)
            .with_context(|| format!("cannot read {}", part.path.display()))?;
        let length = part.length()?;
        let wrong = match (&expected, self.file.bytes) {
            (Some(expected), _) if found != *expected => {
                format!("wrong checksum: expected {expected}, found {found}")
            }
            (None, Some(size)) if length != size => format!(
                "wrong size: expected {} bytes, found {}",
                count(size),
                count(length)
            ),
            _ => {
                part.file
                    .sync_all()
                    .and_then(|()| fs::rename(&part.path, &self.target))
                    .with_context(|| format!("cannot write {}", self.target.display()))?;
                return Ok(found);
            }
        };
        fs::remove_file(&part.path)
            .with_context(|| format!("cannot remove {}", part.path.display()))?;
        bail!(
            "{}: {wrong}. The download was removed. Run the command again to fetch the whole file; if it is wrong again, the \
             file at {} is not the one in the catalogue",
            self.target.display(),
            self.address
        )
    }
}

/// The file that is not whole yet.
struct Part {
    file: File,
    path: PathBuf,
}

impl Part {
    fn open(path: PathBuf) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        // File systems that know no locks have to do without.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            bail!(
                "{} is being written by another selvedge process: expected one at a time",
                path.display()
            );
        }
        Ok(Part { file, path })
    }

    fn failed(&self, error: std::io::Error) -> anyhow::Error {
        let path = self.path.display();
        anyhow!(
            "cannot write {path}: {error}. The partial download is kept: when there is room, run the command again to resume"
        )
    }

    fn length(&self) -> Result<u64> {
        let length = self.file.metadata().map(|metadata| metadata.len());
        length.map_err(|error| self.failed(error))
    }

    fn start_over(&mut self) -> Result<()> {
        self.file.set_len(0).map_err(|error| self.failed(error))
    }

    /// Goes to the end and says where that is.
    fn end(&mut self) -> Result<u64> {
        let end = self.file.seek(SeekFrom::End(0));
        end.map_err(|error| self.failed(error))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| self.failed(error))
    }
}

/// A download under way.
struct Transfer<'a> {
    download: &'a Download<'a>,
    part: Part,
    display: Bytes,
    /// How long the file is, as far as anybody has said so.
    total: Option<u64>,
}

impl Transfer<'_> {
    /// Asks for the rest until all is there.
    fn fill(&mut self) -> Result<()> {
        let begun_at = self.part.length()?;
        let mut furthest = begun_at;
        let mut tries = 0;
        loop {
            let problem = match self.ask() {
                Ok(()) => return Ok(()),
                Err(Stop::Final(error)) => return Err(error.context(self.download.address.clone())),
                Err(Stop::Unreachable(problem)) if furthest == begun_at => {
                    bail!(
                        "{}: {problem}{}",
                        self.download.address,
                        self.how_to_go_on()?
                    )
                }
                Err(Stop::Unreachable(problem) | Stop::Passing(problem)) => problem,
            };
            // Only what was not there before counts: a server that always breaks off at the same byte ends the tries.
            let have = self.part.length()?;
            if have > furthest {
                (furthest, tries) = (have, 0);
            }
            tries += 1;
            if tries == TRIES {
                bail!(
                    "{}: {problem}, {TRIES} times{}",
                    self.download.address,
                    self.how_to_go_on()?
                );
            }
            self.display.say(&format!(
                "{}: {problem}; trying again",
                self.download.file.name
            ));
            std::thread::sleep(PAUSE * 2_u32.pow(tries - 1));
        }
    }

    fn how_to_go_on(&self) -> Result<String> {
        Ok(match self.part.length()? {
            0 => ". Run the command again later, or fetch the file from elsewhere with --mirror"
                .into(),
            have => format!(
                ". {} are kept in {}: run the command again to resume from there",
                bytes(have as f64),
                self.part.path.display()
            ),
        })
    }

    /// Asks once for what is missing.
    fn ask(&mut self) -> Result<(), Stop> {
        let mut have = self.part.end().map_err(Stop::Final)?;
        if have > 0 && self.total.is_some_and(|total| have >= total) {
            if self.total == Some(have) {
                return Ok(());
            }
            have = self.start_over()?;
        }
        let address = &self.download.address;
        let mut answer = self.download.client.get(address, have)?;
        let other_length = |total: &Option<u64>| {
            let known = self.total.zip(*total);
            known.is_some_and(|(known, told)| known != told)
        };
        if matches!(&answer, Answer::Changed)
            || matches!(&answer, Answer::Rest(_, total) if other_length(total))
        {
            have = self.start_over()?;
            answer = self.download.client.get(address, have)?;
        }
        match answer {
            Answer::NoRest => Ok(()),
            Answer::Rest(incoming, total) => self.take(incoming, total),
            Answer::Whole(incoming, told) => {
                // A length that only a server told may change with the file; ours may not.
                self.total = self.download.file.bytes;
                self.check_length(told)?;
                self.start_over()?;
                self.take(incoming, told)
            }
            Answer::Changed => Err(Stop::Passing("the server's answer is malformed".into())),
        }
    }

    fn start_over(&mut self) -> Result<u64, Stop> {
        self.part.start_over().map_err(Stop::Final)?;
        self.part.end().map_err(Stop::Final)
    }

    fn check_length(&self, told: Option<u64>) -> Result<(), Stop> {
        match self.total.zip(told) {
            Some((size, told)) if size != told => Err(Stop::Final(anyhow!(
                "the server's file has {} bytes, expected {}: it is not the file in the catalogue",
                count(told),
                count(size)
            ))),
            _ => Ok(()),
        }
    }

    /// Takes what comes.
    fn take(&mut self, mut incoming: Incoming, told: Option<u64>) -> Result<(), Stop> {
        self.total = self.total.or(told);
        let mut have = self.part.end().map_err(Stop::Final)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            self.display.update(have, self.total);
            let count = incoming.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            have += count as u64;
            if self.total.is_some_and(|total| have > total) {
                self.start_over()?;
                return Err(Stop::Passing(
                    "the server sent more than the whole file".into(),
                ));
            }
            self.part.write(&buffer[..count]).map_err(Stop::Final)?;
        }
        match self.total {
            Some(total) if have < total => Err(Stop::Passing("the connection ended early".into())),
            _ => Ok(()),
        }
    }
}
