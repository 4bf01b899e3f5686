//! What a message leaves out goes with the next one.

use super::{Codec, finite};
use selvedge_nn::random::Key;

/// Sends `values` and the residual of the messages before: `sent` becomes what the receiver gets, `residual` what it still
/// lacks. Gives the length of the frame; `frame` is room to work in.
///
/// So the sum of all that was sent is the sum of all that was meant, but for one residual. The residual stays finite even
/// if the values do not.
///
/// # Panics
/// If the slices differ in length.
///
/// ```
/// use selvedge_core::codec::{Codec, with_feedback};
/// use selvedge_nn::random::Key;
///
/// let codec = Codec::TopK { levels: 2 };
/// let (mut residual, mut sent, mut frame) = ([0.0; 2], [0.0; 2], Vec::new());
/// with_feedback(codec, Key::new(1), &[3.0, 2.0], &mut residual, &mut sent, &mut frame);
/// assert_eq!((sent, residual), ([3.0, 0.0], [0.0, 2.0]));
/// with_feedback(codec, Key::new(2), &[3.0, 2.0], &mut residual, &mut sent, &mut frame);
/// assert_eq!((sent, residual), ([0.0, 4.0], [3.0, 0.0]));
/// ```
pub fn with_feedback(
    codec: Codec,
    key: Key,
    values: &[f32],
    residual: &mut [f32],
    sent: &mut [f32],
    frame: &mut Vec<u8>,
) -> usize {
    assert_eq!(values.len(), residual.len(), "a residual for each value");
    assert_eq!(values.len(), sent.len(), "a place for each value");
    for ((value, residual), sent) in values.iter().zip(&mut *residual).zip(&mut *sent) {
        *sent = value + *residual;
        *residual = finite(*sent);
    }
    if codec == Codec::None {
        residual.fill(0.0);
    }
    let length = codec.round_trip(key, sent, frame);
    if codec != Codec::None {
        for (residual, sent) in residual.iter_mut().zip(&*sent) {
            *residual = finite(*residual - sent);
        }
    }
    length
}
