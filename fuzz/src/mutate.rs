//! Changes to an input: small ones to its bytes and numbers, large ones to its parts, several at a time.

#![allow(clippy::ptr_arg)] // changes that keep the length have the type of those that do not

use selvedge_data::fuzz::{Target, tokens};
use selvedge_nn::random::{Key, Stream};

/// Numbers at which fields begin to overflow, change their sign or mean something else.
const INTEGERS: [u64; 20] = [
    0,
    1,
    2,
    0x10,
    0x20,
    0x40,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x200,
    0x1000,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    u64::MAX,
];

/// What changes are made with.
pub(crate) struct Mutator<'a> {
    random: Stream,
    /// Words of the format.
    tokens: &'a [Vec<u8>],
    /// Inputs are cut to this length.
    longest: usize,
}

type Change = fn(&mut Mutator<'_>, &mut Vec<u8>, &[u8]);

/// Those that change little come more than once.
const CHANGES: [Change; 20] = [
    flip_bit,
    flip_bit,
    set_byte,
    set_byte,
    step_byte,
    write_integer,
    write_integer,
    edit_number,
    edit_number,
    edit_number,
    insert_token,
    insert_token,
    write_token,
    insert_bytes,
    delete_range,
    duplicate_range,
    copy_range,
    insert_from_other,
    splice,
    truncate,
];

impl Mutator<'_> {
    /// For a target: the same changes for the same seed.
    pub(crate) fn new(target: &Target, seed: u64) -> Self {
        let name = target.name.bytes().map(u64::from);
        Mutator {
            random: Key::new(seed).with_all(name).stream(),
            tokens: tokens(target.tokens),
            longest: target.longest,
        }
    }

    /// Makes up to eight changes; some take parts of another input.
    pub(crate) fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..1 << self.below(4) {
            let change = CHANGES[self.below(CHANGES.len())];
            change(self, input, other);
        }
        input.truncate(self.longest);
    }

    /// A number below `bound`, or 0 where there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound.max(1) as u64) as usize
    }

    /// A stretch of `length` bytes; short ones are more frequent.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let longest = [4, 16, 128, length][self.below(4)];
        let start = self.below(length);
        let count = 1 + self.below(longest);
        start..(start + count).min(length)
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

fn overwrite(input: &mut [u8], at: usize, bytes: &[u8]) {
    for (byte, new) in input[at..].iter_mut().zip(bytes) {
        *byte = *new;
    }
}

fn flip_bit(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let (at, bit) = (m.below(input.len()), m.below(8));
    input
        .iter_mut()
        .skip(at)
        .take(1)
        .for_each(|b| *b ^= 1 << bit);
}

fn set_byte(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let (at, byte) = (m.below(input.len()), m.byte());
    input.iter_mut().skip(at).take(1).for_each(|b| *b = byte);
}

/// A little more or less.
fn step_byte(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let (at, step) = (m.below(input.len()), m.below(33) as u8);
    let step = step.wrapping_sub(16);
    let bytes = input.iter_mut().skip(at).take(1);
    bytes.for_each(|b| *b = b.wrapping_add(step));
}

/// A number of 1, 2, 4 or 8 bytes, either end first.
fn write_integer(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let value = INTEGERS[m.below(INTEGERS.len())].wrapping_add([0, 1, u64::MAX][m.below(3)]);
    let width = 1 << m.below(4);
    let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
    let bytes = match m.below(2) {
        0 => &little[..width],
        _ => &big[8 - width..],
    };
    let at = m.below(input.len());
    overwrite(input, at, bytes);
}

/// Changes a number that is written out: to an extreme one, or in one digit, or by one digit.
fn edit_number(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let is_digit = |at: &usize| input[*at].is_ascii_digit();
    let from = m.below(input.len());
    let Some(start) = (from..input.len()).find(is_digit) else {
        return;
    };
    let end = (start..input.len())
        .find(|at| !is_digit(at))
        .unwrap_or(input.len());
    let digit = b'0' + m.below(10) as u8;
    let at = start + m.below(end - start);
    let extremes = tokens("numbers");
    let extreme = &extremes[m.below(extremes.len())];
    match m.below(6) {
        0 | 1 => drop(input.splice(start..end, extreme.iter().copied())),
        // Where lengths are fixed, what follows has to give way.
        2 => overwrite(input, start, extreme),
        3 => input[at] = digit,
        4 => input.insert(at, digit),
        _ => drop(input.remove(at)),
    }
}

fn insert_token(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    if m.tokens.is_empty() {
        return;
    }
    let (token, at) = (&m.tokens[m.below(m.tokens.len())], m.below(input.len() + 1));
    insert(input, at, token);
}

fn write_token(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    if m.tokens.is_empty() {
        return;
    }
    let (token, at) = (&m.tokens[m.below(m.tokens.len())], m.below(input.len()));
    overwrite(input, at, token);
}

/// Bytes that are all the same, or all random.
fn insert_bytes(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let (at, count) = (m.below(input.len() + 1), 1 + m.below(32));
    let (same, byte) = (m.below(2) == 0, m.byte());
    let bytes: Vec<u8> = (0..count)
        .map(|_| if same { byte } else { m.byte() })
        .collect();
    insert(input, at, &bytes);
}

fn delete_range(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let range = m.range(input.len());
    input.drain(range);
}

/// Once more, right behind or anywhere.
fn duplicate_range(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let range = m.range(input.len());
    let copy = input[range.clone()].to_vec();
    let at = match m.below(2) {
        0 => range.end,
        _ => m.below(input.len() + 1),
    };
    insert(input, at, &copy);
}

fn copy_range(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let range = m.range(input.len());
    let copy = input[range].to_vec();
    let at = m.below(input.len());
    overwrite(input, at, &copy);
}

fn insert_from_other(m: &mut Mutator<'_>, input: &mut Vec<u8>, other: &[u8]) {
    let (range, at) = (m.range(other.len()), m.below(input.len() + 1));
    insert(input, at, &other[range]);
}

/// The beginning of one and the end of the other.
fn splice(m: &mut Mutator<'_>, input: &mut Vec<u8>, other: &[u8]) {
    let (at, from) = (m.below(input.len() + 1), m.below(other.len() + 1));
    input.truncate(at);
    input.extend_from_slice(&other[from..]);
}

fn truncate(m: &mut Mutator<'_>, input: &mut Vec<u8>, _: &[u8]) {
    let length = m.below(input.len() + 1);
    input.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_changes_and_none_is_too_long() {
        let inputs = |seed| {
            let mut mutator = Mutator {
                random: Key::new(seed).stream(),
                tokens: &[b"token".to_vec()],
                longest: 40,
            };
            let mut input = b"a = 123, b = 4.5e6".to_vec();
            let mut all = Vec::new();
            for _ in 0..5_000 {
                mutator.change(&mut input, b"another one");
                assert!(input.len() <= 40);
                all.push(input.clone());
            }
            all
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    fn every_change_takes_an_empty_input() {
        let mut mutator = Mutator {
            random: Key::new(1).stream(),
            tokens: &[],
            longest: 40,
        };
        for change in CHANGES {
            for _ in 0..100 {
                let mut input = Vec::new();
                change(&mut mutator, &mut input, &[]);
            }
        }
    }
}
