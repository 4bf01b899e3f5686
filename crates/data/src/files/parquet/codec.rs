//! What pages are packed with. Whatever the codec, a page is unpacked to the size that its header says or not at all,
//! and memory grows with the bytes that really come out.

use super::Problem;
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, DEFAULT_MAX_WINDOW_SIZE, FrameDecoder};
use std::io::Read;

/// How the pages of a column are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Snappy,
    Gzip,
    Zstd,
}

impl Codec {
    /// The codec of that number in the format.
    pub(super) fn of(number: i64) -> Result<Self, Problem> {
        let name = match number {
            0 => return Ok(Codec::Plain),
            1 => return Ok(Codec::Snappy),
            2 => return Ok(Codec::Gzip),
            6 => return Ok(Codec::Zstd),
            3 => "LZO",
            4 => "Brotli",
            5 => "LZ4",
            7 => "LZ4 (raw)",
            other => &format!("codec number {other}"),
        };
        Err(format!(
            "packed with {name}: expected none, snappy, gzip or zstd"
        ))
    }

    /// Appends what is packed, which must be `size` bytes.
    pub(super) fn unpack(
        self,
        packed: &[u8],
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let (name, done) = match self {
            Codec::Plain => {
                let whole = packed.len() == size;
                out.extend_from_slice(if whole { packed } else { &[] });
                ("nothing", whole.then_some(()))
            }
            Codec::Snappy => ("snappy", unsnap(packed, size, out)),
            Codec::Gzip => ("gzip", gunzip(packed, size, out)),
            Codec::Zstd => ("zstd", unzstd(packed, size, out)),
        };
        done.ok_or_else(|| {
            format!(
                "a page is damaged: expected {size} bytes packed with {name}, as its header says"
            )
        })
    }
}

fn unsnap(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    // At best three bytes stand for 64: more cannot be in there, and takes no memory.
    let possible = size / 22 <= packed.len();
    if !possible || snap::raw::decompress_len(packed).ok()? != size {
        return None;
    }
    let start = out.len();
    out.resize(start.checked_add(size)?, 0);
    let mut decoder = snap::raw::Decoder::new();
    decoder.decompress(packed, &mut out[start..]).ok().map(drop)
}

fn gunzip(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut source = MultiGzDecoder::new(packed).take(size as u64 + 1);
    (source.read_to_end(out).ok()? == size).then_some(())
}

/// A frame's own checksum is read past, since pages have theirs; dictionaries from elsewhere are not used in Parquet.
fn unzstd(mut packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let end = out.len().checked_add(size)?;
    while !packed.is_empty() {
        let room = end - out.len();
        // A new one for each frame: one that is used again sets aside all that the next frame claims.
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(DEFAULT_MAX_WINDOW_SIZE.max(room as u64));
        let reserved = packed.get(4)? >> 3 & 1 == 1;
        match decoder.init(&mut packed) {
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => packed = packed.get(usize::try_from(length).ok()?..)?,
            Ok(()) if !reserved && decoder.content_size() <= room as u64 => {
                // It stops at the first block that is too much.
                let enough = BlockDecodingStrategy::UptoBytes(room + 1);
                let ended = decoder.decode_blocks(&mut packed, enough).ok()?;
                if !ended || decoder.can_collect() > room {
                    return None;
                }
                decoder.collect_to_writer(&mut *out).ok()?;
            }
            _ => return None,
        }
    }
    (out.len() == end).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(codec: Codec, packed: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        codec.unpack(packed, size, &mut out).ok()?;
        Some(out.split_off(6))
    }

    #[test]
    fn snappy_with_every_kind_of_piece() {
        assert_eq!(unpacked(Codec::Snappy, &[0], 0), Some(vec![]));
        // "abcd", then four bytes from four back, then six from one back, then three from two back.
        let packed = [17, 3 << 2, b'a', b'b', b'c', b'd', 1, 4, 5 << 2 | 2, 1, 0];
        let packed = [&packed[..], &[2 << 2 | 3, 2, 0, 0, 0]].concat();
        assert_eq!(
            unpacked(Codec::Snappy, &packed, 17).unwrap(),
            b"abcdabcdddddddddd"
        );
        // Plain bytes whose length takes one and two bytes.
        for (tag, length) in [(60u8, 100usize), (61, 1000)] {
            let plain = vec![b'x'; length];
            let mut packed = vec![(length % 128) as u8 | if length > 127 { 128 } else { 0 }];
            packed.extend((length > 127).then_some((length / 128) as u8));
            packed.push(tag << 2);
            packed.extend(&((length - 1) as u32).to_le_bytes()[..usize::from(tag - 59)]);
            packed.extend(&plain);
            assert_eq!(
                unpacked(Codec::Snappy, &packed, length),
                Some(plain),
                "{length}"
            );
        }
    }

    #[test]
    fn snappy_with_pieces_that_are_wrong() {
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
            assert_eq!(unpacked(Codec::Snappy, packed, size), None, "{packed:?}");
        }
    }

    fn framed(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
        blocks.iter().for_each(|block| bytes.extend(*block));
        bytes
    }

    #[test]
    fn zstd_blocks_that_are_plain_or_repeat_a_byte() {
        assert_eq!(unpacked(Codec::Zstd, &[], 0), Some(vec![]));
        let packed = framed(&[&[3 << 3, 0, 0], b"abc", &[5 << 3 | 2 | 1, 0, 0, b'x']]);
        assert_eq!(unpacked(Codec::Zstd, &packed, 8).unwrap(), b"abcxxxxx");
        // A frame to be skipped, and a second one.
        let skipped = [0x5f, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        let twice = [&packed[..], &skipped, &packed].concat();
        assert_eq!(
            unpacked(Codec::Zstd, &twice, 16).unwrap(),
            b"abcxxxxxabcxxxxx"
        );
        assert_eq!(unpacked(Codec::Zstd, &packed, 7), None);
        assert_eq!(unpacked(Codec::Zstd, &packed, 9), None);
        for end in 1..packed.len() {
            assert_eq!(unpacked(Codec::Zstd, &packed[..end], 8), None, "{end}");
        }
    }

    #[test]
    fn zstd_frames_that_claim_too_much_are_refused() {
        let read = |header: &[u8]| {
            let magic = [0x28, 0xb5, 0x2f, 0xfd];
            let block = [3 << 3 | 1, 0, 0, b'a', b'b', b'c'];
            unpacked(Codec::Zstd, &[&magic, header, &block].concat(), 3)
        };
        // A window of 128 MiB, and contents of three bytes.
        for right in [&[0, 17 << 3][..], &[0x20, 3]] {
            assert_eq!(read(right).unwrap(), b"abc", "{right:?}");
        }
        // Larger windows, contents of four bytes and of exabytes, and the flag that means nothing yet.
        for wrong in [
            &[0, 17 << 3 | 1][..],
            &[0, 0xff],
            &[0x20, 4],
            &[0xe0, 0, 0, 0, 0, 0, 0, 0, 0x10],
            &[8, 0x58],
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_zstd_block_that_repeats_from_before_its_frame_is_refused() {
        // One literal "a", then one sequence whose states in the predefined tables are 2, 14 and 0: one literal, an
        // offset of two more bits, and a match of three bytes.
        let block = |offset_bits: u32| {
            let stream = 1 << 19 | (2 << 11 | 14 << 6) << 2 | offset_bits;
            let stream = &stream.to_le_bytes()[..3];
            framed(&[&[7 << 3 | 4 | 1, 0, 0, 1 << 3, b'a', 1, 0], stream])
        };
        assert_eq!(unpacked(Codec::Zstd, &block(0), 4).unwrap(), b"aaaa");
        assert_eq!(unpacked(Codec::Zstd, &block(0), 3), None);
        assert_eq!(unpacked(Codec::Zstd, &block(1), 4), None);
    }
}
