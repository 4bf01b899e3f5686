//! The numbers of largest magnitude, to the bit.
//!
//! ```text
//! bitmap    bit i of byte ⌊i/8⌋, from the lowest: whether number i is kept     ⌈n/8⌉ bytes
//!   or      the indices that are kept, rising, 32 bits each                    4k bytes, if that is less
//! values    of the kept, in the order of their indices                         4k bytes
//! ```

use super::{FrameError, WORD, check_padding, finite, log2};

/// Values of one digit of a magnitude.
const DIGIT: usize = 256;

/// How many of `n` numbers are kept, of which there is one at least.
fn kept(levels: u32, n: usize) -> usize {
    log2::whole_words(levels, n).max(1)
}

/// Bytes that say which numbers are kept, and whether they are a bitmap.
fn places(n: usize, kept: usize) -> (usize, bool) {
    let (bitmap, indices) = (n.div_ceil(8), WORD * kept);
    (bitmap.min(indices), bitmap <= indices)
}

pub(super) fn frame_len(levels: u32, n: usize) -> usize {
    let kept = kept(levels, n);
    places(n, kept).0 + WORD * kept
}

/// A number's size, as whole numbers are ordered: its bits without the sign.
fn magnitude(value: f32) -> u32 {
    finite(value).to_bits() << 1
}

/// Tells the numbers that are kept from the others, if it is asked about each in turn.
struct Choice {
    /// Whatever is larger is kept.
    smallest: u32,
    /// How many more of the smallest magnitude are kept.
    ties: usize,
}

impl Choice {
    /// The `kept` largest, digit by digit from the highest: the digit of the smallest that is kept is found by
    /// counting, then only numbers with that digit matter.
    fn new(values: &[f32], kept: usize) -> Self {
        let (mut smallest, mut known, mut ties) = (0, 0, kept);
        for shift in [24, 16, 8, 0] {
            let mut counts = [0u32; DIGIT];
            for value in values {
                let magnitude = magnitude(*value);
                let digit = (magnitude >> shift) as usize % DIGIT;
                counts[digit] += u32::from(magnitude & known == smallest);
            }
            let mut digit = DIGIT - 1;
            while (counts[digit] as usize) < ties {
                ties -= counts[digit] as usize;
                digit -= 1;
            }
            smallest |= (digit as u32) << shift;
            known |= (DIGIT as u32 - 1) << shift;
            // All that begin with these digits are kept: the digits behind them need not be looked at.
            if counts[digit] as usize == ties && smallest > 0 {
                (smallest, ties) = (smallest - 1, 0);
                break;
            }
        }
        Choice { smallest, ties }
    }

    /// Whether the next number is kept. Without branches: which numbers are large is hard to foresee.
    fn keeps(&mut self, value: f32) -> bool {
        let magnitude = magnitude(value);
        let tie = (magnitude == self.smallest) & (self.ties > 0);
        self.ties -= usize::from(tie);
        (magnitude > self.smallest) | tie
    }
}

pub(super) fn encode(levels: u32, values: &[f32], frame: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let kept = kept(levels, values.len());
    let (place_bytes, is_bitmap) = places(values.len(), kept);
    let end = frame.len() + place_bytes + WORD * kept;
    // One word more: numbers that are not kept are written too, behind the last that is, and then overwritten.
    let start = frame.len();
    frame.resize(end + WORD, 0);
    let (places, words) = frame[start..].split_at_mut(place_bytes);
    let words = words.as_chunks_mut::<WORD>().0;
    let mut choice = Choice::new(values, kept);
    let mut at = 0;
    if is_bitmap {
        for (byte, values) in places.iter_mut().zip(values.chunks(8)) {
            for (bit, value) in values.iter().enumerate() {
                let keeps = choice.keeps(*value);
                *byte |= u8::from(keeps) << bit;
                words[at] = finite(*value).to_le_bytes();
                at += usize::from(keeps);
            }
        }
    } else {
        let places = places.as_chunks_mut::<WORD>().0;
        for (index, value) in values.iter().enumerate() {
            if choice.keeps(*value) {
                places[at] = (index as u32).to_le_bytes();
                words[at] = finite(*value).to_le_bytes();
                at += 1;
            }
        }
    }
    frame.truncate(end);
}

/// Reads a frame that has the right length.
pub(super) fn decode(levels: u32, frame: &[u8], out: &mut [f32]) -> Result<(), FrameError> {
    let kept = kept(levels, out.len());
    let (place_bytes, is_bitmap) = places(out.len(), kept);
    let (places, words) = frame.split_at(place_bytes);
    let words = words.as_chunks::<WORD>().0;
    for (position, word) in words.iter().enumerate() {
        let value = f32::from_le_bytes(*word);
        if !value.is_finite() {
            return Err(FrameError::NotFinite { position, value });
        }
    }
    if is_bitmap {
        at_bits(places, words, out)
    } else {
        at_indices(places.as_chunks::<WORD>().0, words, out)
    }
}

fn at_bits(bitmap: &[u8], words: &[[u8; WORD]], out: &mut [f32]) -> Result<(), FrameError> {
    check_padding(bitmap, out.len())?;
    let expected = words.len();
    let found = bitmap.iter().map(|byte| byte.count_ones() as usize).sum();
    if found != expected {
        return Err(FrameError::Kept { found, expected });
    }
    let mut at = 0;
    for (byte, out) in bitmap.iter().zip(out.chunks_mut(8)) {
        for (bit, out) in out.iter_mut().enumerate() {
            let is_kept = u32::from(byte >> bit & 1);
            // Behind the last that is kept any word will do, since it is not taken.
            let word = u32::from_le_bytes(words[at.min(expected - 1)]);
            *out = f32::from_bits(word * is_kept);
            at += is_kept as usize;
        }
    }
    Ok(())
}

fn at_indices(
    indices: &[[u8; WORD]],
    words: &[[u8; WORD]],
    out: &mut [f32],
) -> Result<(), FrameError> {
    out.fill(0.0);
    let numbers = out.len();
    let mut last = None;
    for (index, word) in indices.iter().zip(words) {
        let index = u32::from_le_bytes(*index);
        if let Some(previous) = last.filter(|previous| *previous >= index) {
            return Err(FrameError::Order { index, previous });
        }
        let place = out.get_mut(index as usize);
        *place.ok_or(FrameError::Index { index, numbers })? = f32::from_le_bytes(*word);
        last = Some(index);
    }
    Ok(())
}
