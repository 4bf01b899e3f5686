//! Error feedback: what a message leaves out is added to the next one.

use super::{Codec, finite};
use selvedge_nn::random::Key;

/// Sends `values` and the residual of the messages before: `values` become what the receiver gets, `residual` what it
/// still lacks. Returns the length of the frame; `frame` is a work buffer.
///
/// So the sum of all that was sent is the sum of all that was meant, but for one residual. The residual stays finite
/// even if the values do not.
///
/// # Panics
/// If the slices differ in length.
///
/// ```
/// use selvedge_core::codec::{Codec, with_feedback};
/// use selvedge_nn::random::Key;
///
/// let codec = Codec::TopK { levels: 2 };
/// let (mut residual, mut frame) = ([0.0; 2], Vec::new());
/// let mut send = |key, mut values: [f32; 2]| {
///     with_feedback(codec, Key::new(key), &mut values, &mut residual, &mut frame);
///     (values, residual)
/// };
/// assert_eq!(send(1, [3.0, 2.0]), ([3.0, 0.0], [0.0, 2.0]));
/// assert_eq!(send(2, [3.0, 2.0]), ([0.0, 4.0], [3.0, 0.0]));
/// ```
pub fn with_feedback(
    codec: Codec,
    key: Key,
    values: &mut [f32],
    residual: &mut [f32],
    frame: &mut Vec<u8>,
) -> usize {
    assert_eq!(values.len(), residual.len(), "a residual for each value");
    for (value, residual) in values.iter_mut().zip(&mut *residual) {
        *value += *residual;
        *residual = finite(*value);
    }
    let length = codec.round_trip(key, values, frame);
    for (residual, sent) in residual.iter_mut().zip(&*values) {
        *residual = match codec {
            Codec::None => 0.0,
            _ => finite(*residual - sent),
        };
    }
    length
}
