//! The literal bytes of a block: plain, one repeated, or in codes of Huffman.

use super::{MOST_BLOCK, huffman, take, take_number};

/// Takes the literals from the front of a block. Those that have to be unpacked lie in `room`.
pub(super) fn read<'a>(
    packed: &mut &'a [u8],
    table: &mut Option<huffman::Table>,
    room: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    let first = *packed.first()?;
    let (kind, format) = (first & 3, first >> 2 & 3);
    if kind < 2 {
        let (size, below) = [(1, 3), (2, 4), (1, 3), (3, 4)][usize::from(format)];
        let count = (take_number(packed, size)? >> below) as usize;
        if count > MOST_BLOCK {
            return None;
        }
        if kind == 0 {
            return take(packed, count);
        }
        room.resize(count, *take(packed, 1)?.first()?);
        return Some(room);
    }
    let (size, width) = [(3, 10), (3, 10), (4, 14), (5, 18)][usize::from(format)];
    let header = take_number(packed, size)? >> 4;
    let count = (header & ((1 << width) - 1)) as usize;
    let mut source = take(packed, (header >> width) as usize)?;
    if count > MOST_BLOCK {
        return None;
    }
    if kind == 2 {
        let (new, used) = huffman::Table::read(source)?;
        take(&mut source, used)?;
        *table = Some(new);
    }
    let table = table.as_ref()?;
    match format {
        0 => table.unpack(source, count, room)?,
        _ => four_streams(table, source, count, room)?,
    }
    Some(room)
}

fn four_streams(
    table: &huffman::Table,
    mut source: &[u8],
    count: usize,
    room: &mut Vec<u8>,
) -> Option<()> {
    let jumps = take(&mut source, 6)?;
    let quarter = count.div_ceil(4);
    for stream in 0..3 {
        let pair = [jumps[2 * stream], jumps[2 * stream + 1]];
        let size = usize::from(u16::from_le_bytes(pair));
        table.unpack(take(&mut source, size)?, quarter, room)?;
    }
    table.unpack(source, count.checked_sub(3 * quarter)?, room)
}
