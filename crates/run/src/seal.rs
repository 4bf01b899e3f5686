//! The seal of a file that was written for users: what it is, and a digest of all the rest of it. A file whose seal is
//! right is as a command wrote it, so that a later one may replace it; nobody's words are in it.
//!
//! ```text
//! as written by selvedge (a page): 5f1d2c33cbb9a6b0c0c5a1e2e9a1f6c4
//! ```

use sha2::{Digest, Sha256};
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Digits of the digest.
const DIGITS: usize = 32;

/// Bytes that are read at once.
const PART: usize = 1 << 16;

/// What stands before the digest.
fn mark(what: &str) -> String {
    format!("as written by selvedge ({what}): ")
}

/// A seal without its digest, which whoever writes a file puts somewhere into it.
pub(crate) fn blank(what: &str) -> String {
    mark(what) + &"0".repeat(DIGITS)
}

/// Puts the digest into the last seal of a file.
pub(crate) fn set(file: &mut (impl Read + Write + Seek), what: &str) -> io::Result<()> {
    let Some(at) = find(file, &blank(what))? else {
        let problem = format!("{what} was written without a seal");
        return Err(io::Error::other(problem));
    };
    let at = at + mark(what).len() as u64;
    let digest = digest(file, at)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(digest.as_bytes())
}

/// Whether the last seal of a file is right.
pub(crate) fn is_right(file: &mut (impl Read + Seek), what: &str) -> io::Result<bool> {
    let mark = mark(what);
    let Some(at) = find(file, &mark)? else {
        return Ok(false);
    };
    let (at, mut stated) = (at + mark.len() as u64, Vec::new());
    file.seek(SeekFrom::Start(at))?;
    file.by_ref().take(DIGITS as u64).read_to_end(&mut stated)?;
    Ok(stated.len() == DIGITS && stated == digest(file, at)?.as_bytes())
}

/// Where a text is found last.
fn find(file: &mut (impl Read + Seek), text: &str) -> io::Result<Option<u64>> {
    let (text, mut found) = (text.as_bytes(), None);
    // What was read, with the end of what was read before: a text may lie across.
    let (mut begin, mut bytes) = (0, Vec::new());
    file.seek(SeekFrom::Start(0))?;
    while file.by_ref().take(PART as u64).read_to_end(&mut bytes)? > 0 {
        let last = bytes.windows(text.len()).rposition(|there| there == text);
        found = last.map(|at| begin + at as u64).or(found);
        let done = bytes.len().saturating_sub(text.len() - 1);
        bytes.drain(..done);
        begin += done as u64;
    }
    Ok(found)
}

/// The digest of a file, but for its own digits at `at`.
fn digest(file: &mut (impl Read + Seek), at: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut digest = Sha256::new();
    add(&mut digest, file.by_ref().take(at))?;
    file.seek(SeekFrom::Start(at + DIGITS as u64))?;
    add(&mut digest, file)?;
    let bytes = digest.finalize();
    let digits = bytes.iter().take(DIGITS / 2);
    Ok(digits.map(|byte| format!("{byte:02x}")).collect())
}

fn add(digest: &mut Sha256, mut from: impl Read) -> io::Result<()> {
    let mut part = vec![0; PART];
    loop {
        match from.read(&mut part)? {
            0 => return Ok(()),
            n => digest.update(&part[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn sealed(before: &str, behind: &str) -> Cursor<Vec<u8>> {
        let text = format!("{before}{}{behind}", blank("a page"));
        let mut file = Cursor::new(text.into_bytes());
        set(&mut file, "a page").unwrap();
        file
    }

    #[test]
    fn a_seal_is_right_wherever_it_stands() {
        let mark = mark("a page").len();
        for before in [0, 1, 50, PART - mark, PART - 7, PART, 2 * PART + 3] {
            for behind in [0, 1, PART] {
                let mut file = sealed(&"x".repeat(before), &"y".repeat(behind));
                assert!(is_right(&mut file, "a page").unwrap(), "{before} {behind}");
                assert!(!is_right(&mut file, "a chart").unwrap());
            }
        }
    }

    #[test]
    fn whatever_is_changed_breaks_it() {
        let whole = sealed("before ", " behind").into_inner();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(!is_right(&mut Cursor::new(changed), "a page").unwrap());
        }
        for (from, to) in [(1, whole.len()), (0, whole.len() - 1), (0, 0)] {
            let part = whole[from..to].to_vec();
            assert!(!is_right(&mut Cursor::new(part), "a page").unwrap());
        }
        let longer = [&whole[..], b"!"].concat();
        assert!(!is_right(&mut Cursor::new(longer), "a page").unwrap());
    }

    #[test]
    fn the_last_of_several_counts() {
        let mut file = sealed(&format!("{} quoted ", blank("a page")), "");
        assert!(is_right(&mut file, "a page").unwrap());
    }
}
