//! What random numbers are drawn for. No two purposes share a stream, and none is drawn from in turn.

use selvedge_nn::random::Key;

/// What a random number is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The initial model; then the part.
    Initialise = 1,
    /// The subset of devices; then the group and t.
    Select = 2,
    /// The training samples whose loss is reported; nothing else.
    LossSample = 3,
    /// What a codec adds to a message; then the group, the kind, t and, where there are several, the device.
    Dither = 4,
    /// Who is hostile, and what they send, in simulation; then which of these.
    Attack = 5,
    /// The signs of sketches.
    Sketch = 6,
}

/// The key of a purpose. Data sets have their own keys, in their own crate.
pub fn key(seed: u64, purpose: Purpose) -> Key {
    Key::new(seed).with(purpose as u64)
}
