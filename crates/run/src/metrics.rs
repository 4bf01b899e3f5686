//! `metrics.jsonl`: a line for each evaluation, by rising t.

use crate::error::{Error, Result};
use crate::files::{METRICS, read_bytes};
use crate::follow::tail;
use crate::lines::{damaged, numbered};
use selvedge_core::state::Evaluation;
use std::io;
use std::path::Path;

/// Bytes at the end of the file in which the newest lines are looked for, and how many of them.
const END: u64 = 16 << 10;
const NEWEST: usize = 4;

/// The evaluation of a line that follows one of iteration `before`.
///
/// # Errors
/// A message, if the line is damaged.
pub fn parse(line: &[u8], before: Option<u64>) -> std::result::Result<Evaluation, String> {
    let evaluation: Evaluation = serde_json::from_slice(line).map_err(|e| e.to_string())?;
    match before.filter(|before| *before >= evaluation.t) {
        None => Ok(evaluation),
        Some(before) => {
            let t = evaluation.t;
            Err(format!("iteration {t} comes after iteration {before}"))
        }
    }
}

/// All evaluations of a run. The last line may be cut off: the run is being written, or was killed while it wrote.
///
/// # Errors
/// If the file cannot be read, or another line is damaged; a missing file counts as empty.
pub fn read(run: &Path) -> Result<Vec<Evaluation>> {
    let path = run.join(METRICS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut evaluations: Vec<Evaluation> = Vec::new();
    for (number, line) in numbered(&read_bytes(&path)?) {
        match parse(line, evaluations.last().map(|e| e.t)) {
            Ok(evaluation) => evaluations.push(evaluation),
            Err(_) if !line.ends_with(b"\n") => break,
            Err(why) => return Err(Error::new(format!("{}: {why}", damaged(&path, number)))),
        }
    }
    Ok(evaluations)
}

/// The newest evaluations of a run, the last one first, without reading all of them; nothing for a line that is damaged
/// or not whole.
///
/// # Errors
/// If the file cannot be read, or is not there.
pub fn newest(run: &Path) -> io::Result<Vec<Option<Evaluation>>> {
    let bytes = tail(&run.join(METRICS), END)?;
    let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let newest = lines.rsplit(|b| *b == b'\n').take(NEWEST);
    Ok(newest.map(|line| parse(line, None).ok()).collect())
}
