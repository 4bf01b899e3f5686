//! Names for patients outside the place that knows who they are.

use hmac::{Hmac, KeyInit, Mac};
use selvedge_core::enrol::hex;
use sha2::Sha256;
use std::fmt;

/// The secret that makes pseudonyms: whoever has it and an id can compute the pseudonym, and nobody else can.
///
/// ```
/// use selvedge_data::PseudonymKey;
///
/// let key = PseudonymKey::new([7; 32]);
/// assert_eq!(key.pseudonym("patient 12"), key.pseudonym("patient 12"));
/// assert_ne!(key.pseudonym("patient 12"), PseudonymKey::new([8; 32]).pseudonym("patient 12"));
/// assert_eq!(PseudonymKey::parse(&key.to_text())?.pseudonym("x"), key.pseudonym("x"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
pub struct PseudonymKey([u8; 32]);

/// Says nothing of the secret.
impl fmt::Debug for PseudonymKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PseudonymKey")
    }
}

impl PseudonymKey {
    /// The key of these random bytes.
    pub fn new(secret: [u8; 32]) -> Self {
        PseudonymKey(secret)
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// If it is not 64 hexadecimal digits; the message does not repeat them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let digits = text.trim().as_bytes();
        let mut secret = [0; 32];
        let wrong = || "not a key: expected 64 hexadecimal digits".to_owned();
        if digits.len() != 64 {
            return Err(wrong());
        }
        for (byte, pair) in secret.iter_mut().zip(digits.chunks(2)) {
            let pair = str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(PseudonymKey(secret))
    }

    /// The key as 64 hexadecimal digits: a secret.
    pub fn to_text(&self) -> String {
        hex(&self.0)
    }

    /// The pseudonym of the patient with that id: the first half of an HMAC-SHA-256.
    pub fn pseudonym(&self, id: &str) -> String {
        self.mac("patient", id)
    }

    /// An identifier of the key, which reveals nothing about it.
    pub fn name(&self) -> String {
        self.mac("key", "")
    }

    /// A secret that whoever has the key can compute: a whole HMAC-SHA-256.
    pub(crate) fn secret(&self, purpose: &str, text: &str) -> [u8; 32] {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            unreachable!("a key of 32 bytes");
        };
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().into()
    }

    fn mac(&self, purpose: &str, text: &str) -> String {
        hex(&self.secret(purpose, text)[..16])
    }
}

/// The number that a pseudonym or the name of a key is, written as hexadecimal digits.
pub(crate) fn number(text: &str) -> Option<u128> {
    let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudonyms_are_those_of_another_implementation() {
        // python3 -c 'import hmac; print(hmac.new(bytes(range(32)), b"patient\0X1.Z001", "sha256").hexdigest()[:32])'
        let key = PseudonymKey::new(std::array::from_fn(|i| i as u8));
        assert_eq!(key.pseudonym("X1.Z001"), "9b4d8ce3f257c8b5d80517ee3d6e571b");
        assert_eq!(format!("{key:?}"), "PseudonymKey");
    }

    #[test]
    fn a_pseudonym_is_a_number_and_nothing_else_is() {
        let text = PseudonymKey::new([3; 32]).pseudonym("x");
        assert_eq!(number(&text).map(|n| format!("{n:032x}")), Some(text));
        for wrong in ["", "+f", &"g".repeat(32), &"0".repeat(31), &"é".repeat(16)] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn texts_that_are_no_keys_are_refused() {
        for wrong in ["", "00", &"0".repeat(63), &"g".repeat(64), &"é".repeat(32)] {
            assert!(PseudonymKey::parse(wrong).is_err(), "{wrong}");
        }
    }
}
