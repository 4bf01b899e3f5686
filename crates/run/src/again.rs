//! Lines that may come again: a party whose record is behind its files computes once more what it has written already.
//! Mostly that is the same, and stays; from the first line that differs, all are replaced.

use crate::error::Result;
use crate::lines::{Lines, line};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// A file of lines by rising iteration.
pub(crate) struct Again {
    pub(crate) lines: Lines,
    /// The iteration of each line, where it begins, and what it says.
    known: Vec<(u64, u64, Vec<u8>)>,
}

impl Again {
    /// Opens a file, which need not be there; `t` is the iteration of a line.
    pub(crate) fn open<T: DeserializeOwned>(path: PathBuf, t: fn(&T) -> u64) -> Result<Self> {
        let (lines, values) = Lines::reopen::<T>(path)?;
        let places = lines.raw()?.into_iter().zip(&values);
        let known = places.map(|((start, raw), value)| (t(value), start, raw));
        Ok(Again {
            known: known.collect(),
            lines,
        })
    }

    /// Up to which iteration it goes.
    pub(crate) fn last(&self) -> Option<u64> {
        self.known.last().map(|(t, ..)| *t)
    }

    /// The line of an iteration: it is there for good, and nothing behind it that does not follow from it.
    pub(crate) fn keep(&mut self, t: u64, value: &impl Serialize) -> Result<()> {
        let raw = line(value)?;
        let at = self.known.partition_point(|(known, ..)| *known < t);
        if let Some((known, start, there)) = self.known.get(at) {
            if *known == t && *there == raw {
                return Ok(());
            }
            self.lines.cut(*start)?;
            self.known.truncate(at);
        }
        self.known.push((t, self.lines.length(), raw));
        self.lines.keep(value)
    }

    /// Removes all lines.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.known.clear();
        self.lines.clear()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

    use super::*;

    #[test]
    fn what_comes_again_stays_and_what_differs_is_replaced_with_all_behind_it() {
        let name = format!("selvedge-again-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let open = || Again::open::<(u64, u64)>(path.clone(), |(t, _)| *t).unwrap();
        let mut first = open();
        for t in [0, 4, 8, 12] {
            first.keep(t, &(t, 1)).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        let mut again = open();
        assert_eq!(again.last(), Some(12));
        again.keep(4, &(4, 1)).unwrap();
        again.keep(8, &(8, 1)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole, "nothing is cut");
        again.keep(8, &(8, 2)).unwrap();
        again.keep(12, &(12, 3)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "[0,1]\n[4,1]\n[8,2]\n[12,3]\n");
        again.keep(6, &(6, 0)).unwrap();
        assert_eq!(open().last(), Some(6), "an iteration that was not there");
        std::fs::remove_file(&path).unwrap();
    }
}
