//! Codes of Huffman for the bytes of a block.

use super::backward::Backward;
use super::fse;

/// The longest code.
const LONGEST: u32 = 11;

/// The byte and the length of the code that each next few bits begin with.
pub(super) struct Table {
    log: u32,
    entries: Vec<(u8, u8)>,
}

impl Table {
    /// Reads a table; with the bytes that this took.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (header, rest) = bytes.split_first()?;
        let header = usize::from(*header);
        let (weights, used) = match header.checked_sub(127) {
            None | Some(0) => (packed_weights(rest.get(..header)?)?, header),
            Some(count) => {
                let used = count.div_ceil(2);
                let pairs = rest
                    .get(..used)?
                    .iter()
                    .flat_map(|pair| [pair >> 4, pair & 15]);
                (pairs.take(count).collect(), used)
            }
        };
        Some((Table::new(weights)?, 1 + used))
    }

    /// A byte of weight w has a code w - 1 bits shorter than the longest; the last byte's weight is what is left.
    fn new(mut weights: Vec<u8>) -> Option<Self> {
        let share =
            |weight: u8| (u32::from(weight) <= LONGEST).then_some((1usize << (weight & 15)) >> 1);
        let sum = weights
            .iter()
            .try_fold(0, |sum, weight| Some(sum + share(*weight)?))?;
        let log = sum.checked_ilog2()? + 1;
        let left = (1usize << log) - sum;
        if log > LONGEST || !left.is_power_of_two() {
            return None;
        }
        weights.push(left.ilog2() as u8 + 1);
        let mut entries = Vec::with_capacity(1 << log);
        for weight in 1..=log as u8 {
            let code = log as u8 + 1 - weight;
            for (byte, _) in weights
                .iter()
                .enumerate()
                .filter(|(_, other)| **other == weight)
            {
                let byte = u8::try_from(byte).ok()?;
                entries.resize(entries.len() + share(weight)?, (byte, code));
            }
        }
        (entries.len() == 1 << log).then_some(Table { log, entries })
    }

    /// Unpacks `count` bytes, for which every bit must be used.
    pub(super) fn unpack(&self, packed: &[u8], count: usize, out: &mut Vec<u8>) -> Option<()> {
        let mut source = Backward::new(packed)?;
        for _ in 0..count {
            let (byte, code) = *self.entries.get(source.peek(self.log) as usize)?;
            source.pass(u32::from(code))?;
            out.push(byte);
        }
        source.is_empty().then_some(())
    }
}

/// Two states take turns until the bits are used up.
fn packed_weights(bytes: &[u8]) -> Option<Vec<u8>> {
    let (table, used) = fse::Table::read(bytes, 255, 6)?;
    let mut source = Backward::new(bytes.get(used..)?)?;
    let mut state = table.begin(&mut source)?;
    let mut other = table.begin(&mut source)?;
    let mut weights = Vec::new();
    loop {
        weights.push(table.symbol(&state)?);
        let more = table.advance(&mut state, &mut source);
        std::mem::swap(&mut state, &mut other);
        if more.is_none() {
            weights.push(table.symbol(&state)?);
            return (weights.len() < 256).then_some(weights);
        }
        if weights.len() > 255 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_from_weights() {
        // Weights 1 and 2 for the bytes 0 and 1, which leaves 1 for byte 2: the codes are 00, 1 and 01.
        let (table, used) = Table::read(&[127 + 2, 0x12, 9]).unwrap();
        assert_eq!(used, 2);
        let mut out = Vec::new();
        // The mark, then 1, 00, 01, 1, 01.
        table.unpack(&[0b1000_1101, 1], 5, &mut out).unwrap();
        assert_eq!(out, [1, 0, 2, 1, 2]);
        assert_eq!(table.unpack(&[0b1000_1101, 1], 6, &mut out), None);
        assert_eq!(table.unpack(&[0b1000_1101, 1], 4, &mut out), None);
    }

    #[test]
    fn tables_that_are_wrong() {
        for bytes in [
            &[][..],
            &[0],
            &[127],
            &[128],
            &[128, 0],
            &[129, 0],
            &[128, 0xc0],
            &[130, 0x33, 0x10],
            &[200, 1],
        ] {
            assert!(Table::read(bytes).is_none(), "{bytes:?}");
        }
        assert!(Table::read(&[20; 21]).is_none());
    }
}
