//! How much memory and disk something takes.

use std::fs;
use std::path::Path;

/// Bytes of memory that are a process's own, or its share of; nothing if it is gone.
pub fn memory(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(1024 * kilobytes)
}

/// Bytes of all files below a folder.
pub fn disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(there) if there.is_dir() => disk(&entry.path()),
        // It may have been removed meanwhile.
        there => there.map_or(0, |there| 512 * there.blocks()),
    });
    sizes.sum()
}
