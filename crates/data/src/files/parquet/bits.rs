//! Bits and numbers of varying length: the small change of every encoding here.

/// The `width` bits (at most 64) that begin at bit `first`, each byte's lowest bit first; nothing if they are not all
/// there.
#[inline]
pub(super) fn bits(bytes: &[u8], first: usize, width: u32) -> Option<u64> {
    let rest = bytes.get(first / 8..)?;
    let shift = (first % 8) as u32;
    if let Some(near) = rest.first_chunk::<8>()
        && shift + width <= 64
    {
        return Some((u64::from_le_bytes(*near) >> shift) & mask(width));
    }
    let needed = (shift + width).div_ceil(8) as usize;
    let mut window = [0; 16];
    window[..needed].copy_from_slice(rest.get(..needed)?);
    Some((u128::from_le_bytes(window) >> shift) as u64 & mask(width))
}

/// The lowest `width` bits, at most 64.
#[inline]
fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

/// A number in groups of seven bits, the lowest first, that begins at `at`.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The number with a sign that a number without one stands for: 0, -1, 1, -2, 2 and so on.
pub(super) fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The four bytes at `at` as a length, the lowest byte first.
pub(super) fn length(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_at_every_place_and_of_every_width() {
        let bytes: Vec<u8> = (0..20u8)
            .map(|n| n.wrapping_mul(97).wrapping_add(13))
            .collect();
        let one = |at: usize| u64::from(bytes[at / 8] >> (at % 8) & 1);
        for first in 0..=160 {
            for width in 0..=64 {
                let wanted = (first + width <= 160)
                    .then(|| (0..width).fold(0, |n, bit| n | one(first + bit) << bit));
                assert_eq!(bits(&bytes, first, width as u32), wanted, "{first} {width}");
            }
        }
        assert_eq!(bits(&bytes, 168, 0), None);
    }

    #[test]
    fn numbers_of_varying_length() {
        let read = |bytes: &[u8]| {
            let mut at = 0;
            varint(bytes, &mut at).map(|number| (number, at))
        };
        assert_eq!(read(&[0]), Some((0, 1)));
        assert_eq!(read(&[0x7f, 9]), Some((127, 1)));
        assert_eq!(read(&[0xac, 0x02]), Some((300, 2)));
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(read(&largest), Some((u64::MAX, 10)));
        largest[9] = 2;
        assert_eq!(read(&largest), None);
        assert_eq!(read(&[0x80; 11]), None);
        assert_eq!(read(&[0x80]), None);
        assert_eq!(read(&[]), None);
        let signed: Vec<i64> = [0, 1, 2, 3, u64::MAX, u64::MAX - 1].map(zigzag).into();
        assert_eq!(signed, [0, -1, 1, -2, i64::MIN, i64::MAX]);
        assert_eq!(length(&[1, 2, 0, 0, 0], 1), Some(2));
        assert_eq!(length(&[1, 2, 0, 0], 1), None);
        assert_eq!(length(&[1, 2, 0, 0], 9), None);
    }
}
