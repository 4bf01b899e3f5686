//! Inputs in files: the one being executed, those that failed, and those that must never fail again.

use selvedge_data::fuzz::Target;
use selvedge_nn::random::Key;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The fuzzer's own folder.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The input being executed, in a file: a stack that overflows or a process that is killed cannot save it any more.
pub(crate) struct Current {
    file: File,
    record: Vec<u8>,
}

impl Current {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Current {
            file: File::create(path)?,
            record: Vec::new(),
        })
    }

    /// Writes down what comes next: executions so far, the length of the input, the input.
    pub(crate) fn is(&mut self, executions: u64, input: &[u8]) -> io::Result<()> {
        self.record.clear();
        self.record.extend(executions.to_le_bytes());
        self.record.extend((input.len() as u64).to_le_bytes());
        self.record.extend_from_slice(input);
        self.file.write_all_at(&self.record, 0)
    }

    /// What a process that is gone had written down.
    pub(crate) fn left_behind(path: &Path) -> Option<(u64, Vec<u8>)> {
        let record = fs::read(path).ok()?;
        let (executions, rest) = record.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let input = rest.get(..u64::from_le_bytes(*length) as usize)?;
        Some((u64::from_le_bytes(*executions), input.to_vec()))
    }
}

/// Saves an input that failed, and says how to run it again.
pub(crate) fn save(target: &str, what: &str, input: &[u8]) -> io::Result<()> {
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u64::from(*byte))
    };
    let hash = Key::new(input.len() as u64)
        .with_all(input.chunks(8).map(word))
        .hex();
    let folder = Path::new(HERE).join("failures");
    fs::create_dir_all(&folder)?;
    let name = format!("{target}-{}", &hash[..16]);
    fs::write(folder.join(&name), input)?;
    eprintln!("{target}: {what}\n    tools/fuzz {target} --replay fuzz/failures/{name}");
    Ok(())
}

/// Inputs that are valid or once failed, in the order of their names.
pub(crate) fn stored_inputs(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let folder = Path::new(HERE)
        .join("../crates/data/tests/fuzz")
        .join(target.name);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let files: io::Result<Vec<PathBuf>> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect();
    let mut files = files?;
    files.sort();
    files.iter().map(fs::read).collect()
}
