//! Files that are either whole or not there.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

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
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
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

/// Reads a file as text.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
