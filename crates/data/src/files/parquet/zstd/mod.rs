//! Zstandard, unpacking only.
//!
//! A frame is unpacked straight into the result, which is its own window: an offset must lie inside of it, and what a
//! header claims takes no memory. A frame's own checksum is read past, since pages have theirs; dictionaries from
//! elsewhere are not used in Parquet.

mod backward;
mod fse;
mod huffman;
mod literals;
mod sequences;

use super::bits::bits;
use sequences::Tables;

const FRAME: u64 = 0xfd2f_b528;
const SKIPPED_FRAME: u64 = 0x184d_2a50;

/// What a block may unpack to.
const MOST_BLOCK: usize = 128 << 10;

/// Appends what is packed, which must be `size` bytes.
pub(super) fn unpack(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let end = out.len().checked_add(size)?;
    let mut rest = packed;
    while !rest.is_empty() {
        let magic = take_number(&mut rest, 4)?;
        if magic & !15 == SKIPPED_FRAME {
            let length = take_number(&mut rest, 4)?;
            take(&mut rest, usize::try_from(length).ok()?)?;
        } else if magic == FRAME {
            frame(&mut rest, end, out)?;
        } else {
            return None;
        }
    }
    (out.len() == end).then_some(())
}

/// Takes so many bytes from the front.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (first, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(first)
}

/// Takes a number of so many bytes, at most eight, the lowest first.
fn take_number(rest: &mut &[u8], count: usize) -> Option<u64> {
    bits(take(rest, count)?, 0, count as u32 * 8)
}

/// What blocks of a frame leave to the next ones.
struct Frame {
    /// Where the frame begins in the result.
    start: usize,
    huffman: Option<huffman::Table>,
    tables: Tables,
    /// The last three offsets, the latest first.
    offsets: [usize; 3],
}

fn frame(rest: &mut &[u8], end: usize, out: &mut Vec<u8>) -> Option<()> {
    let flags = take_number(rest, 1)?;
    let single = flags >> 5 & 1 == 1;
    if flags >> 3 & 1 == 1 {
        return None;
    }
    take(rest, usize::from(!single))?;
    let dictionary = take_number(rest, [0, 1, 2, 4][(flags & 3) as usize])?;
    take(rest, [usize::from(single), 2, 4, 8][(flags >> 6) as usize])?;
    if dictionary != 0 {
        return None;
    }
    let mut frame = Frame {
        start: out.len(),
        huffman: None,
        tables: Tables::default(),
        offsets: [1, 4, 8],
    };
    loop {
        let header = take_number(rest, 3)?;
        let size = (header >> 3) as usize;
        let room = MOST_BLOCK.min(end - out.len());
        match header >> 1 & 3 {
            0 if size <= room => out.extend_from_slice(take(rest, size)?),
            1 if size <= room => {
                let byte = take_number(rest, 1)? as u8;
                out.resize(out.len() + size, byte);
            }
            2 if size <= MOST_BLOCK => frame.block(take(rest, size)?, out.len() + room, out)?,
            _ => return None,
        }
        if header & 1 == 1 {
            break;
        }
    }
    take(rest, if flags >> 2 & 1 == 1 { 4 } else { 0 })?;
    Some(())
}

impl Frame {
    /// Unpacks a block; the result must not grow beyond `end`.
    fn block(&mut self, block: &[u8], end: usize, out: &mut Vec<u8>) -> Option<()> {
        let mut packed = block;
        let mut room = Vec::new();
        let literals = literals::read(&mut packed, &mut self.huffman, &mut room)?;
        let count = match take_number(&mut packed, 1)? as usize {
            few @ 0..128 => few,
            255 => take_number(&mut packed, 2)? as usize + 0x7f00,
            upper => (upper - 128) << 8 | take_number(&mut packed, 1)? as usize,
        };
        let rest = match count {
            0 if packed.is_empty() => literals,
            0 => return None,
            _ => {
                let tables = self.tables.read(&mut packed)?;
                let place = sequences::Place {
                    start: self.start,
                    end,
                };
                sequences::run(
                    packed,
                    count,
                    tables,
                    literals,
                    &mut self.offsets,
                    place,
                    out,
                )?
            }
        };
        if rest.len() > end - out.len() {
            return None;
        }
        out.extend_from_slice(rest);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        unpack(packed, size, &mut out)?;
        Some(out.split_off(6))
    }

    fn framed(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
        blocks.iter().for_each(|block| bytes.extend(*block));
        bytes
    }

    #[test]
    fn blocks_that_are_plain_or_repeat_a_byte() {
        assert_eq!(unpacked(&[], 0), Some(vec![]));
        let packed = framed(&[&[3 << 3, 0, 0], b"abc", &[5 << 3 | 2 | 1, 0, 0, b'x']]);
        assert_eq!(unpacked(&packed, 8).unwrap(), b"abcxxxxx");
        // A frame to be skipped, and a second one.
        let skipped = [0x5f, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        let twice = [&packed[..], &skipped, &packed].concat();
        assert_eq!(unpacked(&twice, 16).unwrap(), b"abcxxxxxabcxxxxx");
        assert_eq!(unpacked(&packed, 7), None);
        assert_eq!(unpacked(&packed, 9), None);
        for end in 1..packed.len() {
            assert_eq!(unpacked(&packed[..end], 8), None, "{end}");
        }
    }

    #[test]
    fn a_block_that_repeats_from_before_its_frame_is_refused() {
        // One literal "a", then one sequence whose states in the predefined tables are 2, 14 and 0: one literal, an
        // offset of two more bits, and a match of three bytes.
        let block = |offset_bits: u32| {
            let stream = 1 << 19 | (2 << 11 | 14 << 6) << 2 | offset_bits;
            let stream = &stream.to_le_bytes()[..3];
            framed(&[&[7 << 3 | 4 | 1, 0, 0, 1 << 3, b'a', 1, 0], stream])
        };
        assert_eq!(unpacked(&block(0), 4).unwrap(), b"aaaa");
        assert_eq!(unpacked(&block(0), 3), None);
        assert_eq!(unpacked(&block(1), 4), None);
    }
}
