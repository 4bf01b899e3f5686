//! Invalid frames.

/// What is wrong with a frame.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// Its length is not that of a frame of this many numbers.
    #[error("the frame has {found} bytes: expected {expected}")]
    Length {
        /// Bytes found.
        found: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// The bitmap marks more or fewer numbers than are kept.
    #[error("the bitmap marks {found} numbers: expected {expected}")]
    Kept {
        /// Bits that are set.
        found: usize,
        /// Bits that must be set.
        expected: usize,
    },
    /// A bit is set where no number is.
    #[error("the last byte is {byte:#010b}: expected only its lowest {used} bits to be set")]
    Padding {
        /// The byte.
        byte: u8,
        /// How many of its bits are used.
        used: usize,
    },
    /// An index that is not above the one before it.
    #[error("index {index} follows {previous}: expected increasing indices")]
    Order {
        /// The index.
        index: u32,
        /// The one before it.
        previous: u32,
    },
    /// An index beyond the last number.
    #[error("index {index} is beyond the {numbers} numbers of the message")]
    Index {
        /// The index.
        index: u32,
        /// How many numbers there are.
        numbers: usize,
    },
    /// A value that is not finite.
    #[error("kept number {position} is {value}: expected a finite number")]
    NotFinite {
        /// Which of the kept ones.
        position: usize,
        /// What it is.
        value: f32,
    },
    /// Invalid bounds.
    #[error("the numbers range from {lo} to {hi}: expected finite bounds, the lower one first")]
    Range {
        /// The lowest number.
        lo: f32,
        /// The highest number.
        hi: f32,
    },
    /// A code beyond the last level.
    #[error("number {position} has code {code}: expected one below {levels}, the number of levels")]
    Code {
        /// Which number.
        position: usize,
        /// Its code.
        code: u32,
        /// How many levels there are.
        levels: u32,
    },
}
