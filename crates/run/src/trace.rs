//! `trace.jsonl`: who took part, a line for each interval and group, by rising t. One interval is found without reading
//! all of them.

use crate::files::TRACE;
use crate::follow::open;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A longer line is none.
const LONGEST_LINE: u64 = 32 << 20;

/// What is shorter is read from its start.
const SHORT: u64 = 64 << 10;

/// Who took part in one group.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Where the interval begins.
    pub t: u64,
    /// The group.
    pub group: usize,
    /// Who was drawn.
    pub devices: Vec<u32>,
    /// The rows of each, where devices may have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Vec<Vec<usize>>>,
    /// Who missed the exchange.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent_exchange: Vec<u32>,
    /// Who missed the upload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent_upload: Vec<u32>,
}

/// The lines of the interval that begins at `t`; none if the file does not have them, or is damaged there.
///
/// # Errors
/// If the file cannot be read.
pub fn interval(run: &Path, t: u64) -> io::Result<Vec<Line>> {
    let Some(mut file) = open(&run.join(TRACE))? else {
        return Ok(Vec::new());
    };
    let start = first_not_before(&mut file, t)?;
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(file);
    let mut found = Vec::new();
    while let Some(bytes) = next_line(&mut reader)? {
        match serde_json::from_slice::<Line>(&bytes) {
            Ok(line) if line.t == t => found.push(line),
            Ok(line) if line.t < t => {}
            _ => break,
        }
    }
    Ok(found)
}

/// The last interval that the file has whole or in part.
///
/// # Errors
/// If the file cannot be read.
pub fn last(run: &Path) -> io::Result<Option<u64>> {
    let Some(mut file) = open(&run.join(TRACE))? else {
        return Ok(None);
    };
    // No interval begins there, so everything is before it.
    let start = first_not_before(&mut file, u64::MAX)?;
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(file);
    let mut last = None;
    while let Some(bytes) = next_line(&mut reader)? {
        last = t_of(&bytes).or(last);
    }
    Ok(last)
}

/// Where a line begins that has no line of `t` or later before it, near the first of those.
fn first_not_before(file: &mut File, t: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, file.metadata()?.len());
    while high - low > SHORT {
        let middle = low + (high - low) / 2;
        file.seek(SeekFrom::Start(middle))?;
        let mut reader = BufReader::new(&mut *file);
        let skipped = reader.by_ref().take(LONGEST_LINE).skip_until(b'\n')? as u64;
        let mut beginning = [0; 32];
        let read = reader.read(&mut beginning)?;
        match t_of(&beginning[..read]) {
            Some(found) if found < t && middle + skipped < high => low = middle + skipped,
            _ => high = middle,
        }
    }
    Ok(low)
}

fn next_line(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    Ok(bytes.ends_with(b"\n").then_some(bytes))
}

/// The t with which a line begins.
fn t_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"t\":")?;
    let end = digits.iter().position(|b| !b.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;

    #[test]
    fn every_interval_is_found_in_files_of_any_length() {
        let folder = Folder::new("trace");
        for intervals in [1, 2, 7, 3000] {
            let mut text = String::new();
            for i in 0..intervals {
                for group in 0..3 {
                    let devices: Vec<u64> = (0..(i % 40)).map(|n| n * 7 + group).collect();
                    text += &format!(
                        "{{\"t\":{},\"group\":{group},\"devices\":{devices:?}}}\n",
                        5 * i
                    );
                }
            }
            let path = folder.path("");
            folder.write("trace.jsonl", &(text + "{\"t\":99999,\"gr"));
            assert_eq!(last(&path).unwrap(), Some(5 * (intervals - 1)));
            for i in (0..intervals)
                .step_by(1 + intervals as usize / 97)
                .chain([intervals - 1])
            {
                let lines = interval(&path, 5 * i).unwrap();
                assert_eq!(lines.len(), 3, "t = {} of {intervals} intervals", 5 * i);
                assert!(
                    lines
                        .iter()
                        .enumerate()
                        .all(|(m, l)| l.group == m && l.t == 5 * i)
                );
                assert_eq!(lines[1].devices.len() as u64, i % 40);
            }
            assert!(interval(&path, 3).unwrap().is_empty());
            assert!(interval(&path, 5 * intervals).unwrap().is_empty());
        }
        assert_eq!(last(&folder.path("none")).unwrap(), None);
        assert!(interval(&folder.path("none"), 0).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_file_gives_less_and_no_error() {
        let folder = Folder::new("trace-damaged");
        let path = folder.path("");
        folder.write("trace.jsonl", &"\u{0}garbage\n".repeat(20_000));
        assert!(interval(&path, 5).unwrap().is_empty());
        assert_eq!(last(&path).unwrap(), None);
    }
}
