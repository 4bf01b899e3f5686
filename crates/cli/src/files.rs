//! Files that are either whole or not there.

use anyhow::{Context, Result, anyhow, bail};
use selvedge_data::PseudonymKey;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes a file beside its place and moves it there, so that a crash or a full disk leaves the old one.
pub(crate) fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    write_whole_with(path, |file| file.write_all(contents))
}

/// The same, for contents that are written piece by piece.
pub(crate) fn write_whole_with(
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

/// What is not whole yet, beside its place.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// From now on Ctrl-C ends the process without leaving a part of the file or folder `out`, which may be about patients.
pub(crate) fn leave_nothing_when_interrupted(out: &Path) -> Result<()> {
    let partial = partial(out);
    ctrlc::set_handler(move || {
        let _ = fs::remove_dir_all(&partial).or_else(|_| fs::remove_file(&partial));
        std::process::exit(130);
    })
    .context("cannot catch Ctrl-C")
}

/// Refuses to write what a command reads: its inputs, and what a run consists of.
pub(crate) fn refuse_to_replace(
    option: &str,
    out: &Path,
    inputs: &[PathBuf],
    run: &Path,
) -> Result<()> {
    let Ok(there) = fs::canonicalize(out) else {
        return Ok(());
    };
    let is_there = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path == there);
    let inside = |path: &Path| fs::canonicalize(path).is_ok_and(|path| there.starts_with(path));
    let is_ours = |name: &str| is_there(&run.join(name));
    let replaced = inputs.iter().any(|input| inside(input))
        || inside(&run.join("checkpoint"))
        || RUN_FILES.iter().any(|name| is_ours(name));
    match replaced {
        true => bail!(
            "{option} {}: this is read by the same command, and would be replaced; expected another file",
            out.display()
        ),
        false => Ok(()),
    }
}

/// What a run consists of.
const RUN_FILES: [&str; 11] = [
    "manifest.json",
    "metrics.jsonl",
    "trace.jsonl",
    "segments.jsonl",
    "absences.jsonl",
    "ledger.csv",
    "initial.safetensors",
    "model.safetensors",
    "best.safetensors",
    "inputs.json",
    "validation.safetensors",
];

/// Reads a file as text.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads the key of pseudonyms, if only its owner can.
pub(crate) fn read_key(path: &Path) -> Result<PseudonymKey> {
    let text = read_text(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!(
            "{}: others can read this secret (mode {:o}): expected mode 600, as `chmod 600` sets it",
            path.display(),
            mode & 0o777
        );
    }
    PseudonymKey::parse(&text).map_err(|problem| anyhow!("{}: {problem}", path.display()))
}
