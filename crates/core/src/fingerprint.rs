//! Fingerprints of data and settings: SHA-256, as 64 hexadecimal digits.
//!
//! Up to 0.2 they were a mix of 128 bits that finds accidents but not forgeries. Files with such a fingerprint, of 32
//! digits, are still accepted: [`was_mixed`] tells them.

use crate::enrol;
use sha2::{Digest, Sha256};

/// A fingerprint in the making.
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// Of something of this kind: the same bytes under another name have another fingerprint.
    pub fn of(kind: &str) -> Self {
        Fingerprint(Sha256::new()).text(kind)
    }

    /// Adds bytes and how many they are, so that no two lists of texts look the same.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds whole numbers and how many they are.
    #[must_use]
    pub fn words(mut self, words: impl IntoIterator<Item = u64>) -> Self {
        let mut count = 0u64;
        for word in words {
            self.0.update(word.to_le_bytes());
            count += 1;
        }
        self.0.update(count.to_le_bytes());
        self
    }

    /// Adds the bits of numbers and how many they are.
    #[must_use]
    pub fn numbers(mut self, numbers: &[f32]) -> Self {
        let mut buffer = [0; 4096];
        for part in numbers.chunks(buffer.len() / 4) {
            for (bytes, number) in buffer.chunks_exact_mut(4).zip(part) {
                bytes.copy_from_slice(&number.to_le_bytes());
            }
            self.0.update(&buffer[..4 * part.len()]);
        }
        self.0.update((numbers.len() as u64).to_le_bytes());
        self
    }

    /// As hexadecimal digits.
    pub fn hex(self) -> String {
        enrol::hex(&self.0.finalize())
    }
}

/// Whether a stated fingerprint is of the kind that 0.2 and earlier made.
pub fn was_mixed(stated: &str) -> bool {
    stated.len() == 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_sha_256_of_lengths_and_bytes() {
        // hashlib.sha256(pack("<Q", 1) + b"a" + pack("<ff", 1.5, -2) + pack("<Q", 2)).hexdigest()
        let made = Fingerprint::of("a").numbers(&[1.5, -2.0]).hex();
        assert_eq!(
            made,
            "45d647505d6dad37e4b0d2b54300bc806b675ac8a7debd6469e02c857694d194"
        );
        // … sha256(pack("<Q", 1) + b"a" + pack("<QQ", 7, 8) + pack("<Q", 2) + pack("<Q", 2) + b"xy")
        let made = Fingerprint::of("a").words([7, 8]).text("xy").hex();
        assert_eq!(
            made,
            "d94b5547cacee9bbc4a160e041f8d462c7423f8911491c8261c6327014fbdb60"
        );
    }

    #[test]
    fn lists_that_run_together_the_same_way_differ() {
        let of = |texts: &[&str]| {
            texts
                .iter()
                .fold(Fingerprint::of("t"), |f, t| f.text(t))
                .hex()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }
}
