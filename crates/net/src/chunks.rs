//! Large messages in pieces: a server takes no more than a megabyte at once.
//!
//! ```text
//! piece   "C"  message (8 bytes)  index (4)  count (4)  bytes
//! ```
//!
//! Small messages are sent as they are. Pieces of one message arrive one after the other, since servers keep a sender's
//! order; a receiver that has missed one waits for the whole message to be sent again.

use bytes::Bytes;

/// Bytes of one piece, without its header.
pub const PIECE: usize = 512 * 1024;

const HEAD: usize = 17;
const MARK: u8 = b'C';

/// The pieces in which a message is sent.
pub fn split(message: Vec<u8>) -> Vec<Bytes> {
    if message.len() <= PIECE {
        return vec![message.into()];
    }
    let name = name(&message).to_le_bytes();
    let count = message.len().div_ceil(PIECE) as u32;
    let piece = |(index, bytes): (u32, &[u8])| {
        let mut piece = Vec::with_capacity(HEAD + bytes.len());
        piece.push(MARK);
        piece.extend_from_slice(&name);
        piece.extend_from_slice(&index.to_le_bytes());
        piece.extend_from_slice(&count.to_le_bytes());
        piece.extend_from_slice(bytes);
        piece.into()
    };
    (0..count).zip(message.chunks(PIECE)).map(piece).collect()
}

/// A name for a message's content: who has all pieces knows that they belong together.
pub(crate) fn name(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    let key = selvedge_nn::random::Key::new(bytes.len() as u64);
    key.with_all(bytes.chunks(8).map(word)).stream().next_u64()
}

/// Puts the pieces of one sender together.
#[derive(Debug, Default)]
pub struct Joiner {
    name: u64,
    count: u32,
    bytes: Vec<u8>,
    /// The piece that comes next.
    next: u32,
}

/// Why something that arrived cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It is not a piece, or an invalid one.
    Malformed,
    /// It is too large.
    Oversized,
    /// The pieces do not add up to the message they announce.
    Torn,
}

impl Joiner {
    /// Takes a piece; returns a message once it is complete. No message is longer than `most` bytes.
    ///
    /// # Errors
    /// If it cannot be used; later ones may still be.
    pub fn take(&mut self, arrived: &Bytes, most: usize) -> Result<Option<Bytes>, Unusable> {
        if arrived.first() != Some(&MARK) {
            return match arrived.len() <= most {
                // A copy: the original keeps alive whatever else was read from the connection with it.
                true => Ok(Some(Bytes::copy_from_slice(arrived))),
                false => Err(Unusable::Oversized),
            };
        }
        let (Some(head), Some(bytes)) = (arrived.get(..HEAD), arrived.get(HEAD..)) else {
            return Err(Unusable::Malformed);
        };
        let four =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let name = (u64::from(four(5)) << 32) | u64::from(four(1));
        let (index, count) = (four(9), four(13));
        let last = index + 1 == count;
        if count < 2 || index >= count || bytes.is_empty() || (bytes.len() != PIECE && !last) {
            return Err(Unusable::Malformed);
        }
        if (count as usize - 1).saturating_mul(PIECE) >= most {
            return Err(Unusable::Oversized);
        }
        if index == 0 {
            *self = Joiner {
                name,
                count,
                bytes: Vec::new(),
                next: 0,
            };
        }
        if (name, count, index) != (self.name, self.count, self.next) {
            *self = Joiner::default();
            return Err(Unusable::Torn);
        }
        self.bytes.extend_from_slice(bytes);
        self.next += 1;
        if !last {
            return Ok(None);
        }
        let whole = std::mem::take(self).bytes;
        match self::name(&whole) == name && whole.len() <= most {
            true => Ok(Some(whole.into())),
            false => Err(Unusable::Torn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * 7 % 251) as u8).collect()
    }

    #[test]
    fn pieces_make_the_message_again() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 5 * PIECE + 3] {
            let (mut joiner, pieces) = (Joiner::default(), split(message(length)));
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE + HEAD));
            let mut whole = None;
            for piece in &pieces {
                assert_eq!(whole, None);
                whole = joiner.take(piece, 10 * PIECE).expect("a piece");
            }
            assert_eq!(whole.expect("all of it"), message(length));
        }
    }

    #[test]
    fn what_is_missing_doubled_or_too_large_is_refused() {
        let pieces = split(message(3 * PIECE));
        let mut joiner = Joiner::default();
        assert_eq!(joiner.take(&pieces[1], 10 * PIECE), Err(Unusable::Torn));
        assert_eq!(joiner.take(&pieces[0], 10 * PIECE), Ok(None));
        assert_eq!(joiner.take(&pieces[2], 10 * PIECE), Err(Unusable::Torn));
        assert_eq!(joiner.take(&pieces[0], 2 * PIECE), Err(Unusable::Oversized));
        // It begins anew with the first.
        assert_eq!(joiner.take(&pieces[0], 10 * PIECE), Ok(None));
        assert_eq!(joiner.take(&pieces[0], 10 * PIECE), Ok(None));
        assert_eq!(joiner.take(&pieces[1], 10 * PIECE), Ok(None));
        let mut wrong = pieces[2].to_vec();
        wrong[HEAD] ^= 1;
        assert_eq!(joiner.take(&wrong.into(), 10 * PIECE), Err(Unusable::Torn));
        for short in 1..HEAD {
            let head = pieces[0].slice(..short);
            assert_eq!(joiner.take(&head, PIECE), Err(Unusable::Malformed));
        }
    }
}
