//! Messages between parties.

use super::told;
use selvedge_core::codec::Codec;
use selvedge_nn::random::Key;

/// Three bytes choose the codec and its levels, two how many numbers there are; the rest is the frame. The same bytes
/// are then numbers to send.
pub(super) fn frame(bytes: &[u8]) {
    let Some((&[codec, levels @ .., low, high], frame)) = bytes.split_first_chunk::<5>() else {
        return;
    };
    let levels = u32::from(u16::from_le_bytes(levels)) + 1;
    let codec = match codec % 3 {
        0 => Codec::None,
        1 => Codec::TopK { levels },
        _ => Codec::Dither { levels },
    };
    let key = Key::new(u64::from(levels));
    let mut out = vec![0.0; u16::from_le_bytes([low, high]).into()];
    if told(codec.decode(key, frame, &mut out)).is_some() {
        comes_back(codec, key, &out);
    }
    let words = frame.as_chunks().0.iter();
    let numbers: Vec<f32> = words.map(|word| f32::from_le_bytes(*word)).collect();
    comes_back(codec, key, &numbers);
}

/// What is encoded has the length that it should, can be decoded, and, as the codec promises, is finite or the same.
fn comes_back(codec: Codec, key: Key, numbers: &[f32]) {
    let mut frame = Vec::new();
    codec.encode(key, numbers, &mut frame);
    assert_eq!(frame.len(), codec.frame_len(numbers.len()));
    let mut out = vec![f32::NAN; numbers.len()];
    assert_eq!(codec.decode(key, &frame, &mut out), Ok(()));
    for (number, out) in numbers.iter().zip(&out) {
        let same = number.to_bits() == out.to_bits();
        match codec {
            Codec::None => assert!(same),
            Codec::TopK { .. } => assert!(same || *out == 0.0 || !number.is_finite()),
            Codec::Dither { .. } => assert!(out.is_finite()),
        }
    }
}
