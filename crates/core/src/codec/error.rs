//! Frames that no sender wrote.

/// What is wrong with a frame.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// Another length than that of a frame of so many numbers.
    #[error("the frame has {found} bytes, but {expected} are expected")]
    Length {
        /// Bytes there are.
        found: usize,
        /// Bytes there must be.
        expected: usize,
    },
    /// The bitmap marks more or fewer numbers than are kept.
    #[error("the bitmap marks {found} numbers, but {expected} are kept")]
    Kept {
        /// Bits that are set.
        found: usize,
        /// Bits that must be set.
        expected: usize,
    },
    /// A bit is set where no number is.
    #[error("the last byte is {byte:#010b}, but only its lowest {used} bits are used")]
    Padding {
        /// The byte.
        byte: u8,
        /// How many of its bits stand for something.
        used: usize,
    },
    /// An index that is not above the one before it.
    #[error("index {index} follows {previous}, but indices must rise")]
    Order {
        /// The index.
        index: u32,
        /// The one before it.
        previous: u32,
    },
    /// An index of no number.
    #[error("index {index} is beyond the {numbers} numbers of the message")]
    Index {
        /// The index.
        index: u32,
        /// How many numbers there are.
        numbers: usize,
    },
    /// A value that no sender sends.
    #[error("kept number {position} is {value}, but must be finite")]
    NotFinite {
        /// Which of the kept ones.
        position: usize,
        /// What it is.
        value: f32,
    },
    /// Bounds between which nothing is.
    #[error(
        "the numbers range from {lo} to {hi}, but must from a finite number to one not below it"
    )]
    Range {
        /// The lowest number.
        lo: f32,
        /// The highest number.
        hi: f32,
    },
    /// A code that stands for no level.
    #[error("number {position} has code {code}, but there are {levels} levels, from 0")]
    Code {
        /// Which number.
        position: usize,
        /// Its code.
        code: u32,
        /// How many levels there are.
        levels: u32,
    },
}
