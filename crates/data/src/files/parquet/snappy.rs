//! Snappy, as a whole page is packed with it.

use super::bits::varint;
use super::codec::repeat;

/// Appends what is packed, which must be `size` bytes. Memory grows with what is unpacked.
pub(super) fn unpack(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut at = 0;
    if varint(packed, &mut at)? != size as u64 {
        return None;
    }
    let mut rest = packed.get(at..)?;
    let end = out.len().checked_add(size)?;
    while let Some((tag, after)) = rest.split_first() {
        let upper = usize::from(tag >> 2);
        let (length, offset);
        (length, offset, rest) = match tag & 3 {
            0 if upper < 60 => (upper + 1, 0, after),
            0 => {
                let (length, after) = number(after, upper - 59)?;
                (length.checked_add(1)?, 0, after)
            }
            1 => {
                let (low, after) = number(after, 1)?;
                (4 + upper % 8, ((upper / 8) << 8) | low, after)
            }
            kind => {
                let (offset, after) = number(after, if kind == 2 { 2 } else { 4 })?;
                (upper + 1, offset, after)
            }
        };
        if length > end - out.len() {
            return None;
        }
        if tag & 3 == 0 {
            let (plain, after) = rest.split_at_checked(length)?;
            out.extend_from_slice(plain);
            rest = after;
        } else {
            repeat(out, offset, length)?;
        }
    }
    (out.len() == end).then_some(())
}

/// A number of so many bytes, at most four, the lowest first, and what follows it.
fn number(bytes: &[u8], count: usize) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_at_checked(count)?;
    let number = first
        .iter()
        .rev()
        .fold(0u32, |n, byte| n << 8 | u32::from(*byte));
    Some((usize::try_from(number).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        unpack(packed, size, &mut out).map(|()| out)
    }

    #[test]
    fn every_kind_of_piece() {
        assert_eq!(unpacked(&[0], 0), Some(vec![]));
        // "abcd", then four bytes from four back, then six from one back, then three from two back.
        let packed = [17, 3 << 2, b'a', b'b', b'c', b'd', 1, 4, 5 << 2 | 2, 1, 0];
        let packed = [&packed[..], &[2 << 2 | 3, 2, 0, 0, 0]].concat();
        assert_eq!(unpacked(&packed, 17).unwrap(), b"abcdabcdddddddddd");
        // Plain bytes whose length takes one and two bytes.
        for (tag, length) in [(60u8, 100usize), (61, 1000)] {
            let plain = vec![b'x'; length];
            let mut packed = vec![(length % 128) as u8 | if length > 127 { 128 } else { 0 }];
            packed.extend((length > 127).then_some((length / 128) as u8));
            packed.push(tag << 2);
            packed.extend(&((length - 1) as u32).to_le_bytes()[..usize::from(tag - 59)]);
            packed.extend(&plain);
            assert_eq!(unpacked(&packed, length), Some(plain), "{length}");
        }
    }

    #[test]
    fn pieces_that_are_wrong() {
        for (packed, size) in [
            (&[][..], 0),
            (&[1], 1),
            (&[2, 0, b'a'], 2),
            (&[1, 4, b'a', b'b'], 1),
            (&[1, 0], 1),
            (&[1, 0, b'a'], 2),
            // From before the beginning, and from nowhere.
            (&[5, 0, b'a', 1, 2], 5),
            (&[5, 0, b'a', 1, 0], 5),
            (&[5, 0, b'a', 3, 1], 5),
            // A length of four bytes that claims all there is.
            (&[200, 1, 63 << 2, 0xff, 0xff, 0xff, 0xff, b'a'], 200),
        ] {
            assert_eq!(unpacked(packed, size), None, "{packed:?}");
        }
    }
}
