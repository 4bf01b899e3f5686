//! Whole numbers as differences from one to the next, packed in blocks (`DELTA_BINARY_PACKED`).
//!
//! Numbers are unpacked one by one: a block that claims billions of equal differences takes no memory.

use super::bits::{bits, varint, zigzag};

/// Where the reading of such numbers stands. The bytes are handed in each time, so that it can lie beside them.
#[derive(Clone, Debug)]
pub(super) struct Delta {
    at: usize,
    /// Numbers that are still to come.
    left: u64,
    /// The next number, or the one before it where `difference` says so.
    value: i64,
    difference: bool,
    /// Parts of a block, each with a width of its own, and the numbers of one.
    parts: usize,
    part_numbers: u64,
    /// The part of the block that comes next, and where the block's widths lie.
    part: usize,
    widths_at: usize,
    smallest: i64,
    /// The part that is being read: numbers left, bits of each, the next one's first bit.
    part_left: u64,
    width: u32,
    bit: usize,
}

impl Delta {
    /// Reads the header at `at`.
    pub(super) fn new(bytes: &[u8], mut at: usize) -> Option<Self> {
        let block = varint(bytes, &mut at)?;
        let parts = varint(bytes, &mut at)?;
        let left = varint(bytes, &mut at)?;
        let value = zigzag(varint(bytes, &mut at)?);
        let part_numbers = block.checked_div(parts)?;
        if part_numbers == 0 || part_numbers % 8 != 0 || part_numbers.checked_mul(parts)? != block {
            return None;
        }
        let parts = usize::try_from(parts).ok()?;
        Some(Delta {
            at,
            left,
            value,
            difference: false,
            parts,
            part_numbers,
            part: parts,
            widths_at: 0,
            smallest: 0,
            part_left: 0,
            width: 0,
            bit: 0,
        })
    }

    /// The next number.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        if !self.difference {
            self.difference = true;
            return Some(self.value);
        }
        if self.part_left == 0 {
            self.begin_part(bytes)?;
        }
        self.part_left -= 1;
        let more = bits(bytes, self.bit, self.width)? as i64;
        self.bit += self.width as usize;
        self.value = self.value.wrapping_add(self.smallest).wrapping_add(more);
        Some(self.value)
    }

    fn begin_part(&mut self, bytes: &[u8]) -> Option<()> {
        if self.part == self.parts {
            self.smallest = zigzag(varint(bytes, &mut self.at)?);
            self.widths_at = self.at;
            self.part = 0;
            self.at = inside(bytes, self.at.checked_add(self.parts)?)?;
        }
        self.width = u32::from(*bytes.get(self.widths_at + self.part)?);
        if self.width > 64 {
            return None;
        }
        self.part += 1;
        self.part_left = self.part_numbers;
        self.bit = self.at * 8;
        let size = (self.part_numbers / 8).checked_mul(u64::from(self.width))?;
        self.at = inside(bytes, self.at.checked_add(usize::try_from(size).ok()?)?)?;
        Some(())
    }

    /// Where the bytes of the numbers end, at whose beginning this still stands.
    pub(super) fn end(&self, bytes: &[u8]) -> Option<usize> {
        let mut ahead = self.clone();
        let mut left = self.left.saturating_sub(1);
        while left > 0 {
            ahead.begin_part(bytes)?;
            left = left.saturating_sub(self.part_numbers);
        }
        Some(ahead.at)
    }
}

fn inside(bytes: &[u8], at: usize) -> Option<usize> {
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Option<Vec<i64>> {
        let mut delta = Delta::new(bytes, 0)?;
        let count = usize::try_from(delta.left).ok()?.min(1000);
        (0..count).map(|_| delta.next(bytes)).collect()
    }

    #[test]
    fn numbers_from_differences() {
        // 128 numbers in a block of 4 parts, 1 number: 7.
        assert_eq!(all(&[0x80, 1, 4, 1, 14]), Some(vec![7]));
        assert_eq!(all(&[0x80, 1, 4, 0, 0]), Some(vec![]));
        // 7, 5, 3, 1, 2, 3, 4, 5: the smallest difference is -2, the others are 0 or 3 more.
        let mut bytes = vec![0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0];
        bytes.extend([0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
        assert_eq!(all(&bytes), Some(vec![7, 5, 3, 1, 2, 3, 4, 5]));
        let delta = Delta::new(&bytes, 0).unwrap();
        assert_eq!(delta.end(&bytes), Some(bytes.len()));
        // One byte less, and the part is not whole.
        assert_eq!(all(&bytes[..bytes.len() - 1]), None);
        // Billions of numbers that grow by one take a few bytes, and wrap around.
        let mut bytes = vec![0x80, 0x80, 0x80, 0x80, 0x10, 1, 0xff, 0xff, 0xff, 0xff, 0xf];
        bytes.extend([
            0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 0,
        ]);
        let numbers = all(&bytes).unwrap();
        assert_eq!(numbers[..3], [i64::MAX, i64::MIN, i64::MIN + 1]);
        assert_eq!(
            Delta::new(&bytes, 0).unwrap().end(&bytes),
            Some(bytes.len())
        );
    }

    #[test]
    fn headers_that_are_wrong() {
        for bytes in [
            &[][..],
            &[0x80, 1, 4, 1],
            &[0, 4, 1, 0],
            &[0x80, 1, 0, 1, 0],
            &[0x80, 1, 3, 1, 0],
            &[0x80, 1, 32, 1, 0],
            // Two numbers, but no block, no widths, a width of 65 bits, or no bits.
            &[0x80, 1, 4, 2, 0],
            &[0x80, 1, 4, 2, 0, 0, 1],
            &[0x80, 1, 4, 2, 0, 0, 65, 0, 0, 0],
            &[0x80, 1, 4, 2, 0, 0, 1, 0, 0, 0],
        ] {
            assert_eq!(all(bytes), None, "{bytes:?}");
        }
        let mut endless = vec![0x80, 1, 4];
        endless.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0]);
        assert_eq!(Delta::new(&endless, 0).unwrap().end(&endless), None);
    }
}
