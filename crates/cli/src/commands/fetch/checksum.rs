//! What a file's bytes add up to.

use md5::Md5;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// How bytes are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Notices damage, but not malice.
    Md5,
    /// Notices both.
    Sha256,
}

impl Kind {
    /// Hexadecimal digits of a checksum.
    pub(super) fn digits(self) -> usize {
        match self {
            Kind::Md5 => 32,
            Kind::Sha256 => 64,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Md5 => "MD5",
            Kind::Sha256 => "SHA-256",
        })
    }
}

/// A checksum in hexadecimal digits.
#[derive(Clone, Debug)]
pub(super) struct Checksum {
    pub(super) kind: Kind,
    pub(super) digits: String,
}

impl Checksum {
    /// The checksum of a file.
    pub(super) fn of(kind: Kind, path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let digits = match kind {
            Kind::Md5 => digest::<Md5>(file)?,
            Kind::Sha256 => digest::<Sha256>(file)?,
        };
        Ok(Checksum { kind, digits })
    }
}

impl PartialEq for Checksum {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.digits.eq_ignore_ascii_case(&other.digits)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.digits)
    }
}

fn digest<D: Digest>(mut bytes: impl Read) -> io::Result<String> {
    let mut sum = D::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match bytes.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => sum.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let digits = sum.finalize();
    Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_of_nothing_and_of_abc_are_the_published_ones() {
        let md5 = |bytes: &[u8]| digest::<Md5>(bytes).unwrap();
        assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(
            digest::<Sha256>(&b"abc"[..]).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn upper_case_digits_are_the_same_checksum() {
        let of = |digits: &str| Checksum {
            kind: Kind::Md5,
            digits: digits.into(),
        };
        assert_eq!(of("0aff"), of("0AFF"));
        assert_ne!(of("0aff"), of("0afe"));
    }
}
