//! The names of a run's files, and files that are written completely or not at all.

use crate::error::{Context, Error, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::Write;
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
/// The result of `selvedge evaluate` for a run's model.
pub const EVALUATION: &str = "evaluation.json";
/// The state at the end of an interval, and the lock.
pub const CHECKPOINT: &str = "checkpoint";
/// Which seeds belong together, in the folder above their runs.
pub const SEEDS: &str = "seeds.json";
/// Which variants and seeds are compared, in the folder above their runs.
pub const COMPARISON: &str = "comparison.json";

/// What a run consists of, but for its checkpoint.
const OF_A_RUN: [&str; 11] = [
    MANIFEST, METRICS, TRACE, SEGMENTS, ABSENCES, LEDGER, INITIAL, MODEL, BEST, INPUTS, VALIDATION,
];

/// Whether a folder is a run directory.
pub fn is_run(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
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

/// Writes a file under a temporary name and renames it, so that a crash or a full disk leaves the old one.
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    write_whole_with(path, |file| file.write_all(contents))
}

/// The same, for contents that are written piece by piece.
///
/// # Errors
/// As [`write_whole`].
pub fn write_whole_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<()> {
    // A link stays a link; a device or a folder is not replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.exists() && !path.is_file() {
        bail!(
            "cannot write {}: it is a device, a pipe or a folder; expected a new file, or one to replace",
            path.display()
        );
    }
    let partial = partial(path);
    let result = (|| {
        let mut file = File::create(&partial)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    })();
    if result.is_err() {
        // Nothing is lost with it, and on a full disk its room is needed.
        let _ = fs::remove_file(&partial);
    }
    result.with_context(|| format!("cannot write {}", path.display()))
}

/// The lock file of the process that trains in a run directory.
pub fn lock_of(run: &Path) -> PathBuf {
    run.join(CHECKPOINT).join("lock")
}

/// Keeps other processes out, for as long as what is returned is held; `taken` says that one was faster.
pub(crate) fn lock(path: &Path, taken: impl FnOnce() -> String) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::new(taken())),
        Err(fs::TryLockError::Error(e)) => {
            Err(e).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// The temporary name of a file while it is being written.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
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

/// Refuses to write what a command reads: its inputs, and what a run consists of.
///
/// # Errors
/// If `out`, which `option` gives, is one of those.
pub fn refuse_to_replace(option: &str, out: &Path, inputs: &[PathBuf], run: &Path) -> Result<()> {
    let Ok(there) = fs::canonicalize(out) else {
        return Ok(());
    };
    let is_there = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path == there);
    let inside = |path: &Path| fs::canonicalize(path).is_ok_and(|path| there.starts_with(path));
    let is_ours = |name: &str| is_there(&run.join(name));
    let replaced = inputs.iter().any(|input| inside(input))
        || inside(&run.join(CHECKPOINT))
        || OF_A_RUN.iter().any(|name| is_ours(name));
    match replaced {
        true => bail!(
            "{option} {}: the same command reads this file and would overwrite it; expected another file",
            out.display()
        ),
        false => Ok(()),
    }
}
