//! `ledger.csv`: what was sent, by link, kind and direction.

use crate::error::{Error, Result};
use crate::files::{LEDGER, read_text, write_whole};
use crate::lines::damaged;
use selvedge_core::ledger::Ledger;
use std::path::Path;

const HEADER: &str = "link,kind,direction,messages,bytes";

/// A line of `ledger.csv`. Names are kept as they are written, so that those of later versions can be shown too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// Between whom.
    pub link: String,
    /// What was sent.
    pub kind: String,
    /// Up or down.
    pub direction: String,
    /// How often.
    pub messages: u64,
    /// Payload, in all.
    pub bytes: u64,
}

/// Writes the ledger of a run.
pub(crate) fn write(run: &Path, ledger: &Ledger) -> Result<()> {
    let mut text = format!("{HEADER}\n");
    for e in ledger.entries() {
        let (link, kind, direction) = (e.link.name(), e.kind.name(), e.direction.name());
        text += &format!("{link},{kind},{direction},{},{}\n", e.messages, e.bytes);
    }
    write_whole(&run.join(LEDGER), text.as_bytes())
}

/// The lines of a run's ledger; none while there is no file.
///
/// # Errors
/// If the file cannot be read, or is damaged.
pub fn read(run: &Path) -> Result<Vec<LedgerLine>> {
    let path = &run.join(LEDGER);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_text(path)?;
    let damaged = |line: usize, why: String| Error::new(format!("{}: {why}", damaged(path, line)));
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some(HEADER) {
        return Err(damaged(1, format!("expected `{HEADER}`")));
    }
    lines
        .map(|(i, line)| {
            let parse = || -> Option<LedgerLine> {
                let words: Vec<&str> = line.split(',').collect();
                let [link, kind, direction, messages, bytes] = words[..] else {
                    return None;
                };
                Some(LedgerLine {
                    link: link.into(),
                    kind: kind.into(),
                    direction: direction.into(),
                    messages: messages.parse().ok()?,
                    bytes: bytes.parse().ok()?,
                })
            };
            parse().ok_or_else(|| damaged(i + 1, format!("expected {HEADER}, found {line:?}")))
        })
        .collect()
}
