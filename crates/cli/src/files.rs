//! Secrets that are read.

use anyhow::{Context, Result, anyhow, bail};
use selvedge_data::PseudonymKey;
use selvedge_run::files::read_text;
use selvedge_run::format::shell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Refuses a secret that others than its owner can read.
pub(crate) fn only_own(path: &Path) -> Result<()> {
    if let Some(mode) = exposed(path)? {
        bail!(
            "{}: this secret is readable by others (mode {mode:o}): expected mode 600, as set by `chmod 600 {}`",
            path.display(),
            shell(path)
        );
    }
    Ok(())
}

/// The mode of a file that others than its owner can read.
pub(crate) fn exposed(path: &Path) -> Result<Option<u32>> {
    let there = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mode = there.permissions().mode() & 0o777;
    Ok((mode & 0o077 != 0).then_some(mode))
}

/// Reads the key of pseudonyms, if only its owner can.
pub(crate) fn read_key(path: &Path) -> Result<PseudonymKey> {
    only_own(path)?;
    PseudonymKey::parse(&read_text(path)?)
        .map_err(|problem| anyhow!("{}: {problem}", path.display()))
}
