//! What the values of a column are, and the cells that they make.

use super::Problem;
use crate::files::cell::Cell;

/// The longest decimal: 38 digits.
const MOST_DECIMAL_BYTES: usize = 16;
const MOST_SCALE: i64 = 38;

/// The format's numbers of physical types.
const TYPES: [&str; 8] = [
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
];

/// The day from which times are counted, as INT96 numbers days.
const JULIAN_1970: i64 = 2_440_588;

/// What a schema says about a column's values.
#[derive(Clone, Debug, Default)]
pub(super) struct Described {
    /// The number of the physical type.
    pub(super) physical: i64,
    /// Bytes of a value of fixed length.
    pub(super) length: Option<i64>,
    /// Whether whole numbers have no sign.
    pub(super) unsigned: bool,
    /// The digits after the point, of a decimal.
    pub(super) scale: Option<i64>,
}

/// The values of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Yes or no.
    Boolean,
    /// Whole numbers of four bytes.
    Integer32(Meaning),
    /// Whole numbers of eight bytes.
    Integer64(Meaning),
    /// Nanoseconds of a day and the day.
    Time96,
    /// Numbers of four bytes.
    Float,
    /// Numbers of eight bytes.
    Double,
    /// Text.
    Text,
    /// Decimals of so many bytes, or of any number, the highest byte first.
    Decimal { bytes: Option<usize>, scale: u32 },
}

/// What a whole number stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// Itself.
    Signed,
    /// A number without a sign.
    Unsigned,
    /// A decimal without its point.
    Decimal(u32),
}

impl Kind {
    /// The kind of values that a schema describes.
    pub(super) fn of(described: &Described) -> Result<Self, Problem> {
        let scale = match described.scale {
            Some(scale @ 0..=MOST_SCALE) => Some(scale as u32),
            None => None,
            Some(other) => {
                return Err(format!(
                    "decimals with {other} digits after the point: expected 0 to {MOST_SCALE}"
                ));
            }
        };
        let meaning = match scale {
            Some(scale) => Meaning::Decimal(scale),
            None if described.unsigned => Meaning::Unsigned,
            None => Meaning::Signed,
        };
        match (described.physical, scale) {
            (0, _) => Ok(Kind::Boolean),
            (1, _) => Ok(Kind::Integer32(meaning)),
            (2, _) => Ok(Kind::Integer64(meaning)),
            (3, _) => Ok(Kind::Time96),
            (4, _) => Ok(Kind::Float),
            (5, _) => Ok(Kind::Double),
            (6, None) => Ok(Kind::Text),
            (6, Some(scale)) => Ok(Kind::Decimal { bytes: None, scale }),
            (7, Some(scale)) => match described.length.map(usize::try_from) {
                Some(Ok(bytes @ 1..=MOST_DECIMAL_BYTES)) => Ok(Kind::Decimal {
                    bytes: Some(bytes),
                    scale,
                }),
                other => Err(format!(
                    "decimals of {} bytes: expected 1 to {MOST_DECIMAL_BYTES}",
                    other.and_then(Result::ok).unwrap_or(0)
                )),
            },
            (other, _) => {
                let name = usize::try_from(other)
                    .ok()
                    .and_then(|other| TYPES.get(other));
                Err(format!(
                    "values of the type {}: expected booleans, numbers, times, decimals or text",
                    name.unwrap_or(&"that has no name")
                ))
            }
        }
    }

    /// Bytes of a value, where all have as many.
    #[inline]
    pub(super) fn width(self) -> Option<usize> {
        match self {
            Kind::Boolean | Kind::Text => None,
            Kind::Integer32(_) | Kind::Float => Some(4),
            Kind::Integer64(_) | Kind::Double => Some(8),
            Kind::Time96 => Some(12),
            Kind::Decimal { bytes, .. } => bytes,
        }
    }

    /// The cell of a whole number.
    #[inline]
    pub(super) fn of_integer(self, number: i64) -> Cell<'static> {
        match self {
            Kind::Integer32(Meaning::Unsigned) => Cell::Integer(i64::from(number as u32)),
            Kind::Integer64(Meaning::Unsigned) if number < 0 => Cell::Number(number as u64 as f64),
            Kind::Integer32(Meaning::Decimal(scale)) | Kind::Integer64(Meaning::Decimal(scale)) => {
                decimal(i128::from(number), scale)
            }
            _ => Cell::Integer(number),
        }
    }

    /// The cell of a value's bytes.
    #[inline]
    pub(super) fn of_bytes(self, bytes: &[u8]) -> Result<Cell<'_>, Problem> {
        let cut = || format!("a value has {} bytes: expected another number", bytes.len());
        match self {
            Kind::Integer32(_) => {
                let number = i32::from_le_bytes(bytes.try_into().map_err(|_| cut())?);
                Ok(self.of_integer(i64::from(number)))
            }
            Kind::Integer64(_) => {
                let number = i64::from_le_bytes(bytes.try_into().map_err(|_| cut())?);
                Ok(self.of_integer(number))
            }
            Kind::Float => {
                let number = f32::from_le_bytes(bytes.try_into().map_err(|_| cut())?);
                Ok(Cell::Number(f64::from(number)))
            }
            Kind::Double => {
                let number = f64::from_le_bytes(bytes.try_into().map_err(|_| cut())?);
                Ok(Cell::Number(number))
            }
            Kind::Text => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Cell::Text(text)),
                Err(_) => Err(format!(
                    "the value {:?} is no text: expected UTF-8",
                    String::from_utf8_lossy(&bytes[..bytes.len().min(60)])
                )),
            },
            Kind::Time96 => time(bytes).ok_or_else(cut),
            Kind::Decimal {
                bytes: fixed,
                scale,
            } => match fixed.is_none_or(|fixed| fixed == bytes.len()) {
                true => big_endian(bytes)
                    .map(|number| decimal(number, scale))
                    .ok_or_else(cut),
                false => Err(cut()),
            },
            Kind::Boolean => Err(cut()),
        }
    }
}

/// Seconds since 1970.
fn time(bytes: &[u8]) -> Option<Cell<'static>> {
    let (nanoseconds, day) = bytes.split_first_chunk::<8>()?;
    let day = i64::from(i32::from_le_bytes(day.try_into().ok()?)) - JULIAN_1970;
    let second = i64::from_le_bytes(*nanoseconds) as f64 / 1e9;
    Some(Cell::Number((day * 86_400) as f64 + second))
}

fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let mut whole = [if first < 0x80 { 0 } else { 0xff }; MOST_DECIMAL_BYTES];
    let start = MOST_DECIMAL_BYTES.checked_sub(bytes.len())?;
    whole[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(whole))
}

/// A decimal without digits after its point is a whole number, if it is not too large for one.
fn decimal(number: i128, scale: u32) -> Cell<'static> {
    if scale == 0
        && let Ok(number) = i64::try_from(number)
    {
        return Cell::Integer(number);
    }
    // Where both are exact, so is the one rounding of the quotient; elsewhere the digits are read as digits.
    if number.unsigned_abs() < 1 << 53 && scale <= 22 {
        return Cell::Number(number as f64 / 10f64.powi(scale as i32));
    }
    Cell::Number(format!("{number}e-{scale}").parse().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_kind() {
        let fixed = |bytes| Kind::Decimal {
            bytes: Some(bytes),
            scale: 2,
        };
        assert_eq!(fixed(2).of_bytes(&[0xff, 0x38]), Ok(Cell::Number(-2.0)));
        assert_eq!(
            fixed(3).of_bytes(&[0, 0xff, 0x38]),
            Ok(Cell::Number(653.36))
        );
        assert!(fixed(3).of_bytes(&[0xff, 0x38]).is_err());
        let free = Kind::Decimal {
            bytes: None,
            scale: 0,
        };
        assert_eq!(free.of_bytes(&[0x80]), Ok(Cell::Integer(-128)));
        assert_eq!(
            free.of_bytes(&[0x7f; 16]),
            Ok(Cell::Number(i128::from_be_bytes([0x7f; 16]) as f64))
        );
        assert!(free.of_bytes(&[]).is_err());
        assert!(free.of_bytes(&[0; 17]).is_err());
        let unsigned = Kind::Integer64(Meaning::Unsigned);
        assert_eq!(
            unsigned.of_integer(-1),
            Cell::Number(18_446_744_073_709_551_615.0)
        );
        assert_eq!(
            Kind::Integer32(Meaning::Unsigned).of_integer(-1),
            Cell::Integer(u32::MAX.into())
        );
        assert_eq!(
            Kind::Integer32(Meaning::Decimal(3)).of_integer(1234),
            Cell::Number(1.234)
        );
        let large = Kind::Integer64(Meaning::Decimal(3)).of_integer(i64::MAX);
        assert_eq!(large, Cell::Number(9_223_372_036_854_775.807));
        let mut instant = 1_500_000_000i64.to_le_bytes().to_vec();
        instant.extend((JULIAN_1970 as i32 + 1).to_le_bytes());
        assert_eq!(Kind::Time96.of_bytes(&instant), Ok(Cell::Number(86_401.5)));
        assert!(Kind::Time96.of_bytes(&instant[..11]).is_err());
        assert_eq!(Kind::Text.of_bytes("é".as_bytes()), Ok(Cell::Text("é")));
        assert!(Kind::Text.of_bytes(&[0xe9]).is_err());
    }

    #[test]
    fn types_without_cells_say_so() {
        let of = |physical, length, scale| {
            Kind::of(&Described {
                physical,
                length,
                unsigned: false,
                scale,
            })
        };
        assert!(
            of(7, Some(16), None)
                .unwrap_err()
                .contains("FIXED_LEN_BYTE_ARRAY: expected")
        );
        assert!(of(8, None, None).unwrap_err().contains("no name: expected"));
        assert!(
            of(7, Some(17), Some(2))
                .unwrap_err()
                .contains("17 bytes: expected")
        );
        assert!(of(7, Some(0), Some(2)).is_err());
        assert!(of(1, None, Some(-1)).unwrap_err().contains("-1 digits"));
        assert!(of(-1, None, None).is_err());
    }
}
