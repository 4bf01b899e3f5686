//! How the numbers of a message are packed: as they are, the largest of them, or rounded with a shared dither.
//!
//! ```text
//! None     n numbers                                  4n bytes
//! TopK     which k of them, then their values         min(⌈n/8⌉, 4k) + 4k
//! Dither   lowest and highest, then n codes           8 + ⌈n·⌈log2 levels⌉/8⌉
//! ```
//!
//! A frame has no header: both ends know the codec and how many numbers there are. So its length follows from these
//! alone, and everything else about it can be checked: [`Codec::decode`] rejects what [`Codec::encode`] cannot have
//! written. All numbers are little endian, and the same input gives the same bytes on every machine.
//!
//! Numbers that are not finite (a run that diverges) go through [`Codec::None`] as they are. The lossy codecs send ±∞
//! as the largest finite number of that sign and NaN as 0, so that their output is always finite.
//!
//! ```
//! use selvedge_core::codec::Codec;
//! use selvedge_nn::random::Key;
//!
//! let (codec, key) = (Codec::parse("top-k:65536")?, Key::new(7));
//! let values = [0.5, -3.0, 0.25, 2.0];
//! let mut frame = Vec::new();
//! codec.encode(key, &values, &mut frame);
//! assert_eq!(frame.len(), codec.frame_len(4));
//!
//! let mut received = [0.0; 4];
//! codec.decode(key, &frame, &mut received)?;
//! assert_eq!(received, [0.0, -3.0, 0.0, 2.0]);
//!
//! frame[0] = 0b1111;
//! let error = codec.decode(key, &frame, &mut received).unwrap_err();
//! assert_eq!(error.to_string(), "the bitmap marks 4 numbers: expected 2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dither;
mod error;
mod feedback;
mod log2;
mod top_k;

pub use error::FrameError;
pub use feedback::with_feedback;

use selvedge_nn::random::Key;
use std::ops::RangeInclusive;

/// Bytes of a number.
const WORD: usize = 4;

/// What `levels` may be.
pub(crate) const LEVELS: RangeInclusive<u32> = 2..=65536;

/// How numbers are packed for a message. Levels outside 2 to 65536 count as the nearest of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// As they are, to the bit.
    None,
    /// The k numbers of largest magnitude, to the bit, k being so that they take about log2(levels) bits of each
    /// number's 32; the others become 0. Of equal magnitudes the first is kept.
    TopK {
        /// 2 to the power of the bits for each number.
        levels: u32,
    },
    /// Each number rounded to one of `levels` even steps from the lowest to the highest, after a random shift of up to
    /// half a step that the receiver takes back: the error is uniform in half a step and 0 on average, whatever the
    /// number.
    Dither {
        /// How many values a code has.
        levels: u32,
    },
}

impl Codec {
    /// A codec from its [name](Self::name): `none`, `top-k:128` or `dither:16`.
    ///
    /// # Errors
    /// If it is not the name of a codec, with the value and what would be right.
    ///
    /// ```
    /// use selvedge_core::codec::Codec;
    /// assert_eq!(Codec::parse("dither:16"), Ok(Codec::Dither { levels: 16 }));
    /// assert_eq!(
    ///     Codec::parse("dither:1").unwrap_err(),
    ///     "`dither:1` has 1 levels: choose 2 to 65536, as in `dither:16`"
    /// );
    /// ```
    pub fn parse(text: &str) -> Result<Codec, String> {
        if text == "none" {
            return Ok(Codec::None);
        }
        let unknown = || {
            format!(
                "`{text}` is not a codec: choose, for example, `none`, `top-k:128` or `dither:16`"
            )
        };
        let (name, number) = text.split_once(':').ok_or_else(unknown)?;
        let (codec, example): (fn(u32) -> Codec, _) = match name {
            "top-k" => (|levels| Codec::TopK { levels }, "top-k:128"),
            "dither" => (|levels| Codec::Dither { levels }, "dither:16"),
            _ => return Err(unknown()),
        };
        let is_number = !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit());
        match number.parse() {
            Ok(levels) if LEVELS.contains(&levels) && !number.starts_with(['0', '+']) => {
                Ok(codec(levels))
            }
            _ if is_number => Err(format!(
                "`{text}` has {number} levels: choose {} to {}, as in `{example}`",
                LEVELS.start(),
                LEVELS.end()
            )),
            _ => Err(format!(
                "`{text}` needs a whole number of levels after the colon, as in `{example}`"
            )),
        }
    }

    /// As files write it; [`parse`](Self::parse) reads it again.
    ///
    /// ```
    /// use selvedge_core::codec::Codec;
    /// assert_eq!(Codec::TopK { levels: 128 }.name(), "top-k:128");
    /// ```
    pub fn name(&self) -> String {
        match self {
            Codec::None => "none".into(),
            Codec::TopK { levels } => format!("top-k:{levels}"),
            Codec::Dither { levels } => format!("dither:{levels}"),
        }
    }

    /// Bytes of the frame of `n` numbers; zero for zero.
    ///
    /// ```
    /// use selvedge_core::codec::Codec;
    /// assert_eq!(Codec::None.frame_len(1000), 4000);
    /// // 218 numbers of four bytes, and a bitmap of 1000 bits.
    /// assert_eq!(Codec::TopK { levels: 128 }.frame_len(1000), 4 * 218 + 125);
    /// // Two bounds, and 1000 codes of four bits.
    /// assert_eq!(Codec::Dither { levels: 16 }.frame_len(1000), 8 + 500);
    /// ```
    pub fn frame_len(&self, n: usize) -> usize {
        match (self, n) {
            (_, 0) => 0,
            (Codec::None, _) => WORD * n,
            (Codec::TopK { levels }, _) => top_k::frame_len(within(*levels), n),
            (Codec::Dither { levels }, _) => dither::frame_len(within(*levels), n),
        }
    }

    /// What the paper counts for `n` numbers, in bits: log2(levels) for each, rounded over the whole message; 32 for
    /// each if they go as they are.
    ///
    /// ```
    /// use selvedge_core::codec::Codec;
    /// assert_eq!(Codec::TopK { levels: 128 }.paper_bits(1000), 7000);
    /// assert_eq!(Codec::Dither { levels: 3 }.paper_bits(1000), 1585);
    /// ```
    pub fn paper_bits(&self, n: usize) -> u64 {
        match self {
            Codec::None => 32 * n as u64,
            Codec::TopK { levels } | Codec::Dither { levels } => {
                log2::rounded_bits(within(*levels), n)
            }
        }
    }

    /// Appends the frame of `values`, of which there are fewer than 2³². The `key` names the random numbers of this one
    /// message, which sender and receiver both draw; only the dither uses it.
    pub fn encode(&self, key: Key, values: &[f32], frame: &mut Vec<u8>) {
        match self {
            Codec::None => frame.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            Codec::TopK { levels } => top_k::encode(within(*levels), values, frame),
            Codec::Dither { levels } => dither::encode(within(*levels), key, values, frame),
        }
    }

    /// Reads a frame of `out.len()` numbers.
    ///
    /// # Errors
    /// If this codec writes no such frame for any values. What `out` then holds is not to be used.
    pub fn decode(&self, key: Key, frame: &[u8], out: &mut [f32]) -> Result<(), FrameError> {
        let expected = self.frame_len(out.len());
        if frame.len() != expected {
            let found = frame.len();
            return Err(FrameError::Length { found, expected });
        }
        if out.is_empty() {
            return Ok(());
        }
        match self {
            Codec::None => {
                let words = frame.as_chunks::<WORD>().0;
                for (out, word) in out.iter_mut().zip(words) {
                    *out = f32::from_le_bytes(*word);
                }
                Ok(())
            }
            Codec::TopK { levels } => top_k::decode(within(*levels), frame, out),
            Codec::Dither { levels } => dither::decode(within(*levels), key, frame, out),
        }
    }

    /// Replaces `values` by what a receiver gets, and returns the length of the frame. `frame` is a work buffer: if it
    /// is reused, nothing is allocated.
    ///
    /// ```
    /// use selvedge_core::codec::Codec;
    /// use selvedge_nn::random::Key;
    /// let (mut values, mut frame) = ([1.0, -4.0, 2.0, 0.5], Vec::new());
    /// let sent = Codec::TopK { levels: 256 }.round_trip(Key::new(1), &mut values, &mut frame);
    /// assert_eq!((sent, values), (5, [0.0, -4.0, 0.0, 0.0]));
    /// ```
    pub fn round_trip(&self, key: Key, values: &mut [f32], frame: &mut Vec<u8>) -> usize {
        if *self == Codec::None {
            return self.frame_len(values.len());
        }
        frame.clear();
        self.encode(key, values, frame);
        self.decode(key, frame, values)
            .expect("what was just encoded can be decoded");
        frame.len()
    }
}

fn within(levels: u32) -> u32 {
    levels.clamp(*LEVELS.start(), *LEVELS.end())
}

/// The finite number that stands for a number: the largest for an infinity, 0 for what is no number.
fn finite(value: f32) -> f32 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(f32::MIN, f32::MAX)
    }
}

/// What the last byte of `bits` bits in a row has beyond them must be 0.
fn check_padding(bytes: &[u8], bits: usize) -> Result<(), FrameError> {
    let used = bits % 8;
    match bytes.last() {
        Some(last) if used > 0 && last >> used != 0 => {
            Err(FrameError::Padding { byte: *last, used })
        }
        _ => Ok(()),
    }
}
