//! The sequences of a block: some literals, then bytes repeated from before.

use super::super::codec::repeat;
use super::backward::Backward;
use super::fse::{State, Table};
use super::{take, take_number};

/// What differs between the three codes of a sequence.
struct Code {
    last: usize,
    most_log: u32,
    predefined: &'static [i16],
    predefined_log: u32,
}

const LITERALS: Code = Code {
    last: 35,
    most_log: 9,
    predefined: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
    predefined_log: 6,
};

const OFFSETS: Code = Code {
    last: 31,
    most_log: 8,
    predefined: &[
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ],
    predefined_log: 5,
};

const MATCHES: Code = Code {
    last: 52,
    most_log: 9,
    predefined: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
    predefined_log: 6,
};

/// The extra bits of the codes of literal lengths from 16 and of match lengths from 32. Below them a code is a length;
/// above, each length is the one before it and all that its bits can add.
const LITERAL_BITS: [u32; 20] = [
    1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
];
const MATCH_BITS: [u32; 21] = [
    1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
];

/// The tables of the last block, which the next one may use again.
#[derive(Default)]
pub(super) struct Tables {
    literals: Option<Table>,
    offsets: Option<Table>,
    matches: Option<Table>,
}

impl Tables {
    /// Takes the tables from the front of a block's sequences.
    pub(super) fn read(&mut self, packed: &mut &[u8]) -> Option<&Self> {
        let modes = take_number(packed, 1)?;
        if modes & 3 != 0 {
            return None;
        }
        update(&mut self.literals, &LITERALS, modes >> 6, packed)?;
        update(&mut self.offsets, &OFFSETS, modes >> 4 & 3, packed)?;
        update(&mut self.matches, &MATCHES, modes >> 2 & 3, packed)?;
        Some(self)
    }
}

fn update(table: &mut Option<Table>, code: &Code, mode: u64, packed: &mut &[u8]) -> Option<()> {
    match mode {
        0 => *table = Some(Table::new(code.predefined, code.predefined_log)?),
        1 => {
            let symbol = take_number(packed, 1)? as u8;
            if usize::from(symbol) > code.last {
                return None;
            }
            *table = Some(Table::of_one(symbol));
        }
        2 => {
            let (new, used) = Table::read(packed, code.last, code.most_log)?;
            take(packed, used)?;
            *table = Some(new);
        }
        _ => table.as_ref().map(drop)?,
    }
    Some(())
}

/// What each code of a length begins at, and its extra bits.
struct Lengths {
    literals: [(usize, u32); 36],
    matches: [(usize, u32); 53],
}

const LENGTHS: Lengths = Lengths {
    literals: lengths(0, &LITERAL_BITS),
    matches: lengths(3, &MATCH_BITS),
};

const fn lengths<const N: usize>(first: usize, extra: &[u32]) -> [(usize, u32); N] {
    let mut table = [(0, 0); N];
    let plain = N - extra.len();
    let (mut code, mut next) = (0, first);
    while code < N {
        let bits = if code < plain { 0 } else { extra[code - plain] };
        table[code] = (next, bits);
        next += 1 << bits;
        code += 1;
    }
    table
}

/// Where the frame begins in the result, and where the block must end.
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Runs all sequences, and gives the literals that are left.
pub(super) fn run<'a>(
    packed: &[u8],
    count: usize,
    tables: &Tables,
    mut literals: &'a [u8],
    offsets: &mut [usize; 3],
    place: Place,
    out: &mut Vec<u8>,
) -> Option<&'a [u8]> {
    let mut source = Backward::new(packed)?;
    let (literal_table, offset_table) = (tables.literals.as_ref()?, tables.offsets.as_ref()?);
    let match_table = tables.matches.as_ref()?;
    let mut literal_state = literal_table.begin(&mut source)?;
    let mut offset_state = offset_table.begin(&mut source)?;
    let mut match_state = match_table.begin(&mut source)?;
    for left in (0..count).rev() {
        let code = u32::from(offset_table.symbol(&offset_state)?);
        let value = (1 << code) + source.take(code)? as usize;
        let matched = length(match_table, &match_state, &LENGTHS.matches, &mut source)?;
        let literal = length(
            literal_table,
            &literal_state,
            &LENGTHS.literals,
            &mut source,
        )?;
        if left > 0 {
            literal_table.advance(&mut literal_state, &mut source)?;
            match_table.advance(&mut match_state, &mut source)?;
            offset_table.advance(&mut offset_state, &mut source)?;
        }
        let plain = take(&mut literals, literal)?;
        if literal + matched > place.end - out.len() {
            return None;
        }
        out.extend_from_slice(plain);
        let offset = offset(value, literal, offsets)?;
        if offset > out.len() - place.start {
            return None;
        }
        repeat(out, offset, matched)?;
    }
    source.is_empty().then_some(literals)
}

#[inline]
fn length(
    table: &Table,
    state: &State,
    lengths: &[(usize, u32)],
    source: &mut Backward<'_>,
) -> Option<usize> {
    let (base, bits) = *lengths.get(usize::from(table.symbol(state)?))?;
    Some(base + source.take(bits)? as usize)
}

/// Values up to 3 stand for one of the last offsets; after no literals, for the next one of them, and 3 for one less
/// than the latest.
fn offset(value: usize, literal: usize, last: &mut [usize; 3]) -> Option<usize> {
    let which = if literal == 0 { value } else { value - 1 };
    let offset = match (value, which) {
        (4.., _) => value - 3,
        (_, 3) => last[0].checked_sub(1)?,
        _ => last[which],
    };
    match which {
        _ if value > 3 || which > 1 => *last = [offset, last[0], last[1]],
        1 => *last = [offset, last[0], last[2]],
        _ => {}
    }
    (offset > 0).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_format() {
        let literals = LENGTHS.literals;
        assert_eq!(
            (literals[15], literals[16], literals[25]),
            ((15, 0), (16, 1), (64, 6))
        );
        assert_eq!((literals[24], literals[35]), ((48, 4), (65536, 16)));
        let matches = LENGTHS.matches;
        assert_eq!(
            (matches[0], matches[31], matches[32]),
            ((3, 0), (34, 0), (35, 1))
        );
        assert_eq!(
            (matches[42], matches[43], matches[52]),
            ((99, 5), (131, 7), (65539, 16))
        );
    }

    #[test]
    fn offsets_are_remembered() {
        let mut last = [1, 4, 8];
        assert_eq!((offset(1, 5, &mut last), last), (Some(1), [1, 4, 8]));
        assert_eq!((offset(2, 5, &mut last), last), (Some(4), [4, 1, 8]));
        assert_eq!((offset(3, 5, &mut last), last), (Some(8), [8, 4, 1]));
        assert_eq!((offset(13, 5, &mut last), last), (Some(10), [10, 8, 4]));
        assert_eq!((offset(1, 0, &mut last), last), (Some(8), [8, 10, 4]));
        assert_eq!((offset(2, 0, &mut last), last), (Some(4), [4, 8, 10]));
        assert_eq!((offset(3, 0, &mut last), last), (Some(3), [3, 4, 8]));
        last[0] = 1;
        assert_eq!(offset(3, 0, &mut last), None);
    }
}
