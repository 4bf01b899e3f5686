//! Bits that were written forward and are read from their end.

use super::super::bits::bits;

/// Reads bits, the last one written first.
pub(super) struct Backward<'a> {
    bytes: &'a [u8],
    /// Bits that have not been read.
    left: usize,
}

impl<'a> Backward<'a> {
    /// Begins below the highest bit that is set in the last byte: it marks the end.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let mark = bytes.last()?.checked_ilog2()? as usize;
        Some(Backward {
            bytes,
            left: (bytes.len() - 1) * 8 + mark,
        })
    }

    /// The next bits, at most 56, with zeros for those that are missing.
    #[inline]
    pub(super) fn peek(&self, width: u32) -> u64 {
        match self.left.checked_sub(width as usize) {
            Some(first) => bits(self.bytes, first, width).unwrap_or(0),
            None => {
                let there = self.left as u32;
                bits(self.bytes, 0, there).unwrap_or(0) << (width - there)
            }
        }
    }

    /// Goes on past so many bits, which must be there.
    #[inline]
    pub(super) fn pass(&mut self, width: u32) -> Option<()> {
        self.left = self.left.checked_sub(width as usize)?;
        Some(())
    }

    /// Reads so many bits, at most 56, which must be there.
    #[inline]
    pub(super) fn take(&mut self, width: u32) -> Option<u64> {
        self.pass(width)?;
        bits(self.bytes, self.left, width)
    }

    /// Whether every bit has been read.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bits_come_first() {
        assert!(Backward::new(&[]).is_none());
        assert!(Backward::new(&[1, 0]).is_none());
        assert!(Backward::new(&[1]).unwrap().is_empty());
        let mut bits = Backward::new(&[0b1010_0110, 0b0000_1011]).unwrap();
        assert_eq!(
            (bits.peek(2), bits.take(3), bits.take(4)),
            (1, Some(3), Some(0b1010))
        );
        assert_eq!((bits.peek(4), bits.peek(6)), (0b0110, 0b01_1000));
        assert_eq!((bits.take(5), bits.take(4)), (None, Some(0b0110)));
        let mut bits = Backward::new(&[0b1010_0110, 1]).unwrap();
        assert_eq!(
            (bits.take(8), bits.is_empty(), bits.take(0)),
            (Some(0b1010_0110), true, Some(0))
        );
    }
}
