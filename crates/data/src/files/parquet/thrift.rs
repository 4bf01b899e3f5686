//! Thrift's compact protocol, as far as footers and page headers need it.

use super::bits::{varint, zigzag};

/// Structures deeper than this are none of Parquet's.
const DEEPEST: u32 = 48;

/// Why a structure cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// The bytes end too early.
    Short,
    /// They say what they cannot.
    Wrong(&'static str),
}

/// The type of a field or an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Yes or no; of a field, the type is the value.
    Boolean(bool),
    /// One byte.
    Byte,
    /// A whole number of varying length.
    Integer,
    /// Eight bytes.
    Double,
    /// Bytes.
    Binary,
    /// A list or a set.
    List,
    /// A map.
    Map,
    /// Fields.
    Structure,
}

impl Type {
    fn of(code: u8) -> Result<Self, Damage> {
        Ok(match code {
            1 => Type::Boolean(true),
            2 => Type::Boolean(false),
            3 => Type::Byte,
            4..=6 => Type::Integer,
            7 => Type::Double,
            8 => Type::Binary,
            9 | 10 => Type::List,
            11 => Type::Map,
            12 => Type::Structure,
            _ => return Err(Damage::Wrong("a field is of no known type")),
        })
    }
}

const OTHER_TYPE: Damage = Damage::Wrong("a field is of another type than it should be");

/// Reads structures from the beginning of some bytes.
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Compact<'a> {
    /// Begins at the first byte.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Compact {
            bytes,
            at: 0,
            depth: 0,
        }
    }

    /// Bytes that have been read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        let byte = *self.bytes.get(self.at).ok_or(Damage::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Damage> {
        let count = usize::try_from(count).map_err(|_| Damage::Short)?;
        let rest = self.bytes.get(self.at..).ok_or(Damage::Short)?;
        let taken = rest.get(..count).ok_or(Damage::Short)?;
        self.at += count;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Damage> {
        match varint(self.bytes, &mut self.at) {
            Some(number) => Ok(number),
            None if self.at >= self.bytes.len() => Err(Damage::Short),
            None => Err(Damage::Wrong("a number is too long")),
        }
    }

    fn deeper(&mut self) -> Result<(), Damage> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(Damage::Wrong("structures are absurdly deep")),
            false => Ok(()),
        }
    }

    /// Reads a structure: `each` is given every field's number and type, and must read or skip it.
    pub(super) fn fields(
        &mut self,
        kind: Type,
        mut each: impl FnMut(&mut Self, i16, Type) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        if kind != Type::Structure {
            return Err(OTHER_TYPE);
        }
        self.deeper()?;
        let mut number = 0i16;
        loop {
            let header = self.byte()?;
            if header == 0 {
                break;
            }
            number = match header >> 4 {
                0 => i16::try_from(zigzag(self.varint()?)).ok(),
                step => number.checked_add(i16::from(step)),
            }
            .ok_or(Damage::Wrong("a field's number is too large"))?;
            each(self, number, Type::of(header & 15)?)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads a list: `each` is given every item's type, and must read or skip it.
    pub(super) fn items(
        &mut self,
        kind: Type,
        mut each: impl FnMut(&mut Self, Type) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        if kind != Type::List {
            return Err(OTHER_TYPE);
        }
        self.deeper()?;
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        if count > 0 {
            let item = Type::of(header & 15)?;
            // Each item takes a byte at least, so this ends with the bytes.
            for _ in 0..count {
                each(self, item)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads a whole number.
    pub(super) fn integer(&mut self, kind: Type) -> Result<i64, Damage> {
        match kind {
            Type::Integer => Ok(zigzag(self.varint()?)),
            Type::Byte => Ok(i64::from(self.byte()? as i8)),
            _ => Err(OTHER_TYPE),
        }
    }

    /// Reads a whole number that cannot be negative.
    pub(super) fn count(&mut self, kind: Type) -> Result<u64, Damage> {
        let number = self.integer(kind)?;
        u64::try_from(number).map_err(|_| Damage::Wrong("a count or an offset is negative"))
    }

    /// Reads bytes.
    pub(super) fn binary(&mut self, kind: Type) -> Result<&'a [u8], Damage> {
        if kind != Type::Binary {
            return Err(OTHER_TYPE);
        }
        let count = self.varint()?;
        self.take(count)
    }

    /// Reads past a field.
    pub(super) fn skip(&mut self, kind: Type) -> Result<(), Damage> {
        match kind {
            Type::Boolean(_) => Ok(()),
            Type::Byte => self.byte().map(drop),
            Type::Integer => self.varint().map(drop),
            Type::Double => self.take(8).map(drop),
            Type::Binary => self.binary(kind).map(drop),
            Type::List => self.items(kind, Self::skip_item),
            Type::Map => self.skip_map(),
            Type::Structure => self.fields(kind, |this, _, kind| this.skip(kind)),
        }
    }

    /// An item takes a byte where a field's type would be its value.
    fn skip_item(&mut self, kind: Type) -> Result<(), Damage> {
        match kind {
            Type::Boolean(_) => self.byte().map(drop),
            _ => self.skip(kind),
        }
    }

    fn skip_map(&mut self) -> Result<(), Damage> {
        self.deeper()?;
        let count = self.varint()?;
        if count > 0 {
            let kinds = self.byte()?;
            let (key, value) = (Type::of(kinds >> 4)?, Type::of(kinds & 15)?);
            for _ in 0..count {
                self.skip_item(key)?;
                self.skip_item(value)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_type_are_skipped_or_read() {
        let bytes = [
            0x11, // 1: yes
            0x13, 0xff, // 2: the byte -1
            0x15, 0x0f, // 3: -8
            0x17, 1, 2, 3, 4, 5, 6, 7, 8, // 4: eight bytes
            0x18, 2, b'a', b'b', // 5: two bytes
            0x19, 0x21, 1, 2, // 6: a list of two booleans
            0x1b, 1, 0x86, 1, b'k', 4, // 7: a map from bytes to a number
            0x1c, 0x15, 2, 0, // 8: a structure
            0x06, 0x80, 2, 40, // 128: 20
            0,
        ];
        let mut seen = Vec::new();
        let mut compact = Compact::new(&bytes);
        let read = compact.fields(Type::Structure, |compact, number, kind| {
            seen.push(match number {
                2 | 3 | 128 => compact.integer(kind)?,
                5 => compact.binary(kind)?.len() as i64,
                _ => compact.skip(kind).map(|()| i64::from(number))?,
            });
            Ok(())
        });
        assert_eq!(read, Ok(()));
        assert_eq!(seen, [1, -1, -8, 4, 2, 6, 7, 8, 20]);
        assert_eq!(compact.at(), bytes.len());
        for end in 0..bytes.len() {
            let cut = Compact::new(&bytes[..end]).skip(Type::Structure);
            assert_eq!(cut, Err(Damage::Short), "{end}");
        }
    }

    #[test]
    fn claims_without_bytes_are_short_and_depth_has_a_bound() {
        let skip = |bytes: &[u8], kind| Compact::new(bytes).skip(kind);
        let endless = [0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        assert_eq!(skip(&endless, Type::List), Err(Damage::Short));
        assert_eq!(
            skip(&[0xff, 0xff, 0x0f, 1], Type::Binary),
            Err(Damage::Short)
        );
        assert!(matches!(
            skip(&[0x1c; 1000], Type::Structure),
            Err(Damage::Wrong(_))
        ));
        assert!(matches!(
            skip(&[0x19; 1000], Type::List),
            Err(Damage::Wrong(_))
        ));
        assert!(matches!(
            skip(&[0x1d, 0], Type::Structure),
            Err(Damage::Wrong(_))
        ));
        assert!(matches!(
            Compact::new(&[1]).integer(Type::Double),
            Err(OTHER_TYPE)
        ));
        assert!(matches!(
            Compact::new(&[1]).count(Type::Integer),
            Err(Damage::Wrong(_))
        ));
    }
}
