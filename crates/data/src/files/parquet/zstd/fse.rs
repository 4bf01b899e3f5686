//! Tables of finite state entropy: states that stand for symbols, each the more often the likelier it is.

use super::super::bits::bits;
use super::backward::Backward;

/// A table of states.
pub(super) struct Table {
    log: u32,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    bits: u8,
    base: u16,
}

/// The state of one stream of symbols.
pub(super) struct State(usize);

impl Table {
    /// A table of one symbol that takes no bits.
    pub(super) fn of_one(symbol: u8) -> Self {
        let entry = Entry {
            symbol,
            ..Entry::default()
        };
        Table {
            log: 0,
            entries: vec![entry],
        }
    }

    /// The table of symbols that occur so often in `1 << log` states; -1 is less than once.
    pub(super) fn new(counts: &[i16], log: u32) -> Option<Self> {
        let size = 1usize << log;
        let mut entries = vec![Entry::default(); size];
        let mut free = size;
        for (symbol, _) in counts.iter().enumerate().filter(|(_, count)| **count < 0) {
            free = free.checked_sub(1)?;
            entries[free].symbol = symbol as u8;
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                // Rare symbols have the last states; were there no other ones left, this would not end.
                if free == 0 {
                    return None;
                }
                entries[at].symbol = symbol as u8;
                at = (at + step) & (size - 1);
                while at >= free && free > 0 {
                    at = (at + step) & (size - 1);
                }
            }
        }
        let mut next: Vec<usize> = counts
            .iter()
            .map(|count| usize::from(count.unsigned_abs()))
            .collect();
        if next.iter().sum::<usize>() != size {
            return None;
        }
        for entry in &mut entries {
            let number = next.get_mut(usize::from(entry.symbol))?;
            let bits = log.checked_sub(number.checked_ilog2()?)?;
            entry.bits = bits as u8;
            entry.base = u16::try_from((*number << bits).checked_sub(size)?).ok()?;
            *number += 1;
        }
        Some(Table { log, entries })
    }

    /// Reads how often symbols up to `last` occur, in at most `1 << most_log` states; with the bytes that this took.
    pub(super) fn read(bytes: &[u8], last: usize, most_log: u32) -> Option<(Self, usize)> {
        let mut at = 0;
        let peek = |at: &mut usize, width: u32| {
            let there = (bytes.len() * 8).saturating_sub(*at).min(width as usize);
            *at += width as usize;
            bits(bytes, *at - width as usize, there as u32)
        };
        let log = peek(&mut at, 4)? as u32 + 5;
        if log > most_log {
            return None;
        }
        let mut left = 1u64 << log;
        let mut counts: Vec<i16> = Vec::new();
        while left > 0 {
            let width = (left + 1).ilog2() + 1;
            let lower = (1 << (width - 1)) - 1;
            let short = (1 << width) - 2 - left;
            let mut value = peek(&mut at, width)?;
            if value & lower < short {
                at -= 1;
                value &= lower;
            } else if value > lower {
                value -= short;
            }
            let count = value as i16 - 1;
            left = left.checked_sub(u64::from(count.unsigned_abs()))?;
            counts.push(count);
            let mut zeros = if count == 0 { 3 } else { 0 };
            while zeros == 3 {
                zeros = peek(&mut at, 2)? as usize;
                counts.extend([0; 3].iter().take(zeros));
                if counts.len() > last {
                    return None;
                }
            }
            if counts.len() > last + 1 {
                return None;
            }
        }
        let used = at.div_ceil(8);
        (used <= bytes.len()).then_some(())?;
        Some((Table::new(&counts, log)?, used))
    }

    /// Reads the first state.
    pub(super) fn begin(&self, source: &mut Backward<'_>) -> Option<State> {
        Some(State(source.take(self.log)? as usize))
    }

    /// The symbol of a state.
    #[inline]
    pub(super) fn symbol(&self, state: &State) -> Option<u8> {
        Some(self.entries.get(state.0)?.symbol)
    }

    /// Goes on to the next state, or says that there are too few bits for it.
    #[inline]
    pub(super) fn advance(&self, state: &mut State, source: &mut Backward<'_>) -> Option<()> {
        let entry = self.entries.get(state.0)?;
        state.0 = usize::from(entry.base) + source.take(u32::from(entry.bits))? as usize;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_do_not_add_up_are_refused() {
        assert!(Table::new(&[16, 8, 8], 5).is_some());
        assert!(Table::new(&[16, 8, 7, -1], 5).is_some());
        assert!(Table::new(&[-1; 32], 5).is_some());
        assert!(Table::new(&[16, 8, 7], 5).is_none());
        assert!(Table::new(&[16, 8, 9], 5).is_none());
        assert!(Table::new(&[-1; 33], 5).is_none());
        assert!(Table::new(&[], 5).is_none());
        assert!(Table::read(&[], 35, 9).is_none());
        assert!(Table::read(&[0xff; 40], 35, 9).is_none());
        assert!(Table::read(&[0; 40], 31, 9).is_some());
        assert!(Table::read(&[0; 40], 30, 9).is_none());
    }
}
