//! The names of a run's files, and files that are written completely or not at all.

use crate::error::{Context, Error, Result, bail};
use crate::format::shell;
use selvedge_data::unfinished::Unfinished;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Experiment, versions, sizes, how a run ended.
pub const MANIFEST: &str = "manifest.json";
/// A line for each evaluation.
pub const METRICS: &str = "metrics.jsonl";
/// A line for each interval and group: who took part.
pub const TRACE: &str = "trace.jsonl";
/// A line for each choice of P, Q and η, in steered runs.
pub const SEGMENTS: &str = "segments.jsonl";
/// A line for each absence that a deployment has recorded.
pub const ABSENCES: &str = "absences.jsonl";
/// Whose messages a simulated run has left out.
pub const LEFT_OUT: &str = "left-out.jsonl";
/// Messages and bytes by link, kind and direction.
pub const LEDGER: &str = "ledger.csv";
/// θ before the first step.
pub const INITIAL: &str = "initial.safetensors";
/// θ after the last one.
pub const MODEL: &str = "model.safetensors";
/// θ where it was best on the validation samples.
pub const BEST: &str = "best.safetensors";
/// What the model's inputs are, and how they are scaled.
pub const INPUTS: &str = "inputs.json";
/// The models' outputs for the validation samples.
pub const VALIDATION: &str = "validation.safetensors";
/// How the models' probabilities are corrected, in a run whose validation samples nobody has all of.
pub const CALIBRATION: &str = "calibration.json";
/// The result of `selvedge evaluate` for a run's model.
pub const EVALUATION: &str = "evaluation.json";
/// The state at the end of an interval, and the lock.
pub const CHECKPOINT: &str = "checkpoint";
/// Which seeds belong together, in the folder above their runs.
pub const SEEDS: &str = "seeds.json";
/// Which variants and seeds are compared, in the folder above their runs.
pub const COMPARISON: &str = "comparison.json";

/// What a run consists of, but for its checkpoint.
pub(crate) const OF_A_RUN: [&str; 13] = [
    MANIFEST,
    METRICS,
    TRACE,
    SEGMENTS,
    ABSENCES,
    LEFT_OUT,
    LEDGER,
    INITIAL,
    MODEL,
    BEST,
    INPUTS,
    VALIDATION,
    CALIBRATION,
];

/// Whether a folder is a run directory.
pub fn is_run(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
}

/// A file that is not seen may be there, in a folder that cannot be read.
///
/// # Errors
/// If nobody knows.
pub(crate) fn check_readable(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Err(error) if ![ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The folder of one of several seeds, in their common folder.
pub fn of_seed(folder: &Path, seed: u64) -> PathBuf {
    folder.join(format!("seed-{seed}"))
}

/// Creates a folder and its parents.
///
/// # Errors
/// If it cannot be created.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Whether a folder for something new may be made here: nothing is there, or an empty folder.
///
/// # Errors
/// If something is there.
pub fn check_free(path: &Path) -> Result<()> {
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if !path.exists() || is_empty() {
        return Ok(());
    }
    bail!(
        "{} already exists: choose another --out, or resume it with --resume {}",
        path.display(),
        shell(path)
    )
}

/// A new empty folder for something that takes time to begin. It is removed again if it stays empty.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    made_parent: Option<PathBuf>,
}

impl Claim {
    /// The first of these paths that nobody has: of several processes, each gets one of its own.
    ///
    /// # Errors
    /// If no folder can be made.
    pub fn first(paths: impl Iterator<Item = PathBuf>) -> Result<Self> {
        for path in paths {
            let parent = path
                .parent()
                .filter(|p| !p.as_os_str().is_empty() && !p.exists());
            let made_parent = parent.map(Path::to_owned);
            if let Some(parent) = &made_parent {
                make_folder(parent)?;
            }
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Claim { path, made_parent }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(e).with_context(|| format!("cannot create {}", path.display()));
                }
            }
        }
        bail!("no folder is free")
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A folder that holds something stays.
        let _ = fs::remove_dir(&self.path);
        if let Some(parent) = &self.made_parent {
            let _ = fs::remove_dir(parent);
        }
    }
}

/// Writes a file of a folder that is ours, like a run directory, whole or not at all: a crash or a full disk leaves the
/// old one. What a user names is an [`Output`](crate::outputs::Output).
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    let written = begin(path, |file| file.write_all(contents)).and_then(Unfinished::put);
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A file that is whole, but not at its place yet.
pub(crate) fn begin(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> std::io::Result<Unfinished> {
    if path.exists() && !path.is_file() {
        let problem = "it is a device, a pipe or a folder; expected a new file, or one to replace";
        return Err(std::io::Error::other(problem));
    }
    let (unfinished, mut file) = Unfinished::file(path)?;
    write(&mut file)?;
    file.sync_all()?;
    Ok(unfinished)
}

/// The lock file of the process that trains in a run directory.
pub fn lock_of(run: &Path) -> PathBuf {
    run.join(CHECKPOINT).join("lock")
}

/// Keeps other processes out, for as long as what is returned is held; `taken` says that one was faster.
pub(crate) fn lock(path: &Path, taken: impl FnOnce() -> String) -> Result<File> {
    // If it is something else, it stays what it is.
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(false).open(path);
    let file = opened.with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::new(taken())),
        Err(fs::TryLockError::Error(e)) => {
            Err(e).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Writes a value as indented JSON, atomically.
///
/// # Errors
/// As [`write_whole`].
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    write_whole(path, text.as_bytes())
}

/// Reads a file as text.
///
/// # Errors
/// If it cannot be read.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a file as bytes.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a JSON file.
///
/// # Errors
/// If it cannot be read, or is something else.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&read_text(path)?)
        .with_context(|| format!("{} is damaged", path.display()))
}
