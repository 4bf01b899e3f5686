//! Runs of one repeated number, mixed with numbers packed bit by bit: levels, indices into dictionaries and booleans.

use super::bits::{bits, varint};
use std::ops::Range;

/// Where the reading of such numbers stands. The bytes are handed in each time, so that it can lie beside them.
#[derive(Clone, Debug)]
pub(super) struct Hybrid {
    at: usize,
    end: usize,
    width: u32,
    /// Numbers that the run still has.
    left: u64,
    run: Run,
}

#[derive(Clone, Debug)]
enum Run {
    Repeated(u32),
    /// The bit at which the next number begins.
    Packed(usize),
}

impl Hybrid {
    /// Begins to read numbers of `width` bits, at most 32, that lie in that range of the bytes.
    pub(super) fn new(range: Range<usize>, width: u32) -> Self {
        Hybrid {
            at: range.start,
            end: range.end,
            width,
            left: 0,
            run: Run::Repeated(0),
        }
    }

    /// The next number.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<u32> {
        while self.left == 0 {
            self.begin_run(bytes.get(..self.end)?)?;
        }
        self.left -= 1;
        match &mut self.run {
            Run::Repeated(number) => Some(*number),
            Run::Packed(bit) => {
                let number = bits(bytes.get(..self.end)?, *bit, self.width)?;
                *bit += self.width as usize;
                Some(number as u32)
            }
        }
    }

    fn begin_run(&mut self, bytes: &[u8]) -> Option<()> {
        let header = varint(bytes, &mut self.at)?;
        let count = header >> 1;
        if header & 1 == 1 {
            self.left = count.checked_mul(8)?;
            self.run = Run::Packed(self.at * 8);
            // The last run may be cut where its last number ends.
            let size = usize::try_from(count.checked_mul(u64::from(self.width))?).ok()?;
            self.at = self.at.saturating_add(size).min(self.end);
        } else {
            self.left = count;
            let size = self.width.div_ceil(8);
            let number = bits(bytes, self.at * 8, size * 8)?;
            if number >> self.width != 0 {
                return None;
            }
            self.run = Run::Repeated(number as u32);
            self.at += size as usize;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], width: u32, most: usize) -> Vec<u32> {
        let mut hybrid = Hybrid::new(0..bytes.len(), width);
        let mut numbers = Vec::new();
        while numbers.len() < most
            && let Some(number) = hybrid.next(bytes)
        {
            numbers.push(number);
        }
        numbers
    }

    #[test]
    fn runs_of_both_kinds() {
        // Five times 6, then eight numbers of three bits, then an empty run, then twice 1.
        let bytes = [10, 6, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010, 0, 0, 4, 1];
        let numbers = all(&bytes, 3, 100);
        assert_eq!(numbers, [6, 6, 6, 6, 6, 0, 1, 2, 3, 4, 5, 6, 7, 1, 1]);
        assert_eq!(all(&[2, 0x34, 0x12], 13, 9), [0x1234]);
        assert_eq!(all(&[2, 0xff, 0xff, 0xff, 0xff], 32, 9), [u32::MAX]);
        // No bits at all: every number is 0, and a run costs nothing.
        assert_eq!(all(&[0xfe, 0xff, 0xff, 0xff, 0x0f], 0, 1000), [0; 1000]);
        assert_eq!(all(&[0xff, 0xff, 0xff, 0xff, 0x0f], 0, 1000), [0; 1000]);
    }

    #[test]
    fn runs_that_are_cut_or_wrong() {
        assert_eq!(all(&[3, 0b1000_1000], 3, 100), [0, 1]);
        assert!(all(&[10], 3, 100).is_empty());
        assert!(all(&[10, 9], 3, 100).is_empty());
        assert!(all(&[0; 50], 3, 100).is_empty());
        assert!(all(&[0xff; 20], 32, 100).is_empty());
        let mut largest = [0xff; 12];
        largest[9] = 1;
        assert!(all(&largest, 1, 100).is_empty());
        let mut outside = Hybrid::new(5..9, 1);
        assert_eq!(outside.next(&[0; 3]), None);
    }
}
