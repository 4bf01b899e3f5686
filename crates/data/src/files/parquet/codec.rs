//! What pages are packed with. Whatever the codec, a page is unpacked to the size that its header says or not at all,
//! and memory grows with the bytes that really come out.

use super::{Problem, snappy, zstd};
use flate2::bufread::MultiGzDecoder;
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
            Codec::Snappy => ("snappy", snappy::unpack(packed, size, out)),
            Codec::Gzip => ("gzip", gunzip(packed, size, out)),
            Codec::Zstd => ("zstd", zstd::unpack(packed, size, out)),
        };
        done.ok_or_else(|| {
            format!(
                "a page is damaged: expected {size} bytes packed with {name}, as its header says"
            )
        })
    }
}

fn gunzip(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut source = MultiGzDecoder::new(packed).take(size as u64 + 1);
    (source.read_to_end(out).ok()? == size).then_some(())
}

/// Appends `length` bytes from `offset` bytes back; where they reach the end, they go on with what was just appended.
pub(super) fn repeat(out: &mut Vec<u8>, offset: usize, length: usize) -> Option<()> {
    let start = out.len().checked_sub(offset)?;
    let mut left = length;
    while left > 0 {
        let piece = left.min(out.len() - start);
        if piece == 0 {
            return None;
        }
        out.extend_from_within(start..start + piece);
        left -= piece;
    }
    Some(())
}
