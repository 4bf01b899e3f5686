//! Arrays of NumPy's `.npy` inside an `.npz`.
//!
//! A header is a Python literal with a type, an order and a shape. What it claims is compared with the bytes that the
//! archive really has before any memory is taken.

use super::unzip::{Archive, Problem, Unpacking};
use std::io::{Read, Seek};

/// The longest header that is still taken for one.
const LONGEST_HEADER: usize = 1 << 16;

/// Bytes that are turned into numbers at a time.
const CHUNK: usize = 1 << 16;

/// The type of an array's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole numbers, with a sign or without.
    Integer { bytes: usize, signed: bool },
    /// `f2`, `f4` or `f8`.
    Float { bytes: usize },
    /// `b1`
    Boolean,
    /// `U`: so many characters of four bytes.
    Text { characters: usize },
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::Integer { bytes, .. } | Kind::Float { bytes } => bytes,
            Kind::Boolean => 1,
            Kind::Text { characters } => 4 * characters,
        }
    }
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The type.
    pub(crate) kind: Kind,
    /// Whether the most significant byte comes first.
    big_endian: bool,
    /// Whether the first index changes fastest.
    fortran: bool,
    /// The dimensions.
    pub(crate) shape: Vec<usize>,
}

impl Header {
    /// How many values the array has.
    pub(crate) fn values(&self) -> Option<usize> {
        self.shape
            .iter()
            .try_fold(1usize, |product, size| product.checked_mul(*size))
    }
}

/// Begins to read the array of that name, and checks that all of its bytes are there.
pub(crate) fn open<'a, R: Read + Seek>(
    archive: &'a mut Archive<R>,
    name: &str,
) -> Result<(Header, Unpacking<'a, R>), Problem> {
    let file = format!("{name}.npy");
    let Some(entry) = archive.find(&file) else {
        let found: Vec<&str> = archive
            .entries
            .iter()
            .map(|e| e.name.trim_end_matches(".npy"))
            .take(12)
            .collect();
        return Err(format!(
            "there is no array {name:?}: it has {}",
            found.join(", ")
        ));
    };
    let mut unpacking = archive.unpack(&entry)?;
    let header = header(&mut unpacking, name)?;
    let bytes = header
        .values()
        .and_then(|values| values.checked_mul(header.kind.bytes()));
    if bytes.map(|bytes| bytes as u64) != Some(unpacking.left()) {
        return Err(format!(
            "array {name:?} claims the shape {:?} of {} bytes each, but has {} bytes: the file is damaged",
            header.shape,
            header.kind.bytes(),
            unpacking.left()
        ));
    }
    Ok((header, unpacking))
}

fn header<R: Read>(unpacking: &mut Unpacking<'_, R>, name: &str) -> Result<Header, Problem> {
    let wrong = |what: &str| format!("array {name:?}: {what}: expected NumPy's .npy format");
    let mut start = [0; 8];
    unpacking.fill(&mut start)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(wrong("it does not begin with NumPy's magic bytes"));
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            unpacking.fill(&mut length)?;
            usize::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            unpacking.fill(&mut length)?;
            u32::from_le_bytes(length) as usize
        }
        version => return Err(wrong(&format!("version {version}"))),
    };
    if length > LONGEST_HEADER {
        return Err(wrong("its header is too long"));
    }
    let mut text = vec![0; length];
    unpacking.fill(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let header = parse(&text).ok_or_else(|| {
        wrong(&format!(
            "the header {:?} cannot be read",
            text.trim().chars().take(120).collect::<String>()
        ))
    })?;
    header.map_err(|descr| {
        format!(
            "array {name:?} has the type {descr}: expected numbers or text (int8 to int64, float16 to float64, bool or str); convert it, like array.astype(\"float32\")"
        )
    })
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`; a type that is not understood is given back.
pub(crate) fn parse(text: &str) -> Option<Result<Header, String>> {
    let value_of = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}':"))?;
        Some(rest.trim_start())
    };
    let descr = value_of("descr")?;
    let Some(descr) = descr.strip_prefix('\'') else {
        return Some(Err(descr.split("]").next()?.to_owned() + "]"));
    };
    let descr = descr.split_once('\'')?.0;
    let order = value_of("fortran_order")?;
    let fortran = order.starts_with("True");
    if !fortran && !order.starts_with("False") {
        return None;
    }
    let shape = value_of("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let sizes = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let shape: Option<Vec<usize>> = sizes.map(|size| size.parse().ok()).collect();
    let mut letters = descr.chars();
    let order = letters.next()?;
    let letter = letters.next()?;
    let Ok(bytes) = letters.as_str().parse::<usize>() else {
        return Some(Err(format!("'{descr}'")));
    };
    let kind = match (letter, bytes) {
        ('u', 1 | 2 | 4 | 8) => Kind::Integer {
            bytes,
            signed: false,
        },
        ('i', 1 | 2 | 4 | 8) => Kind::Integer {
            bytes,
            signed: true,
        },
        ('f', 2 | 4 | 8) => Kind::Float { bytes },
        ('b', 1) => Kind::Boolean,
        ('U', 0..=4096) => Kind::Text { characters: bytes },
        _ => return Some(Err(format!("'{descr}'"))),
    };
    if !['<', '>', '|', '='].contains(&order) {
        return None;
    }
    Some(Ok(Header {
        kind,
        big_endian: order == '>',
        fortran,
        shape: shape?,
    }))
}

/// Hands every number of an array to `each`, as f64, which all of them fit but the largest integers.
pub(crate) fn numbers<R: Read>(
    header: &Header,
    mut unpacking: Unpacking<'_, R>,
    name: &str,
    mut each: impl FnMut(usize, f64) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let bytes = header.kind.bytes();
    if let Kind::Text { .. } = header.kind {
        return Err(format!("array {name:?} is text: expected numbers"));
    }
    let mut buffer = vec![0; (CHUNK / bytes * bytes).min(unpacking.left() as usize)];
    let mut index = 0;
    // Where the first index changes fastest, the next value in our order is anywhere.
    let mut turned = Vec::new();
    let is_turned = header.fortran && header.shape.len() > 1;
    while unpacking.left() > 0 {
        let count = (buffer.len() as u64).min(unpacking.left()) as usize;
        let chunk = &mut buffer[..count];
        unpacking.fill(chunk)?;
        if is_turned {
            turned.extend_from_slice(chunk);
            continue;
        }
        for value in chunk.chunks_exact_mut(bytes) {
            each(index, header.number(value))?;
            index += 1;
        }
    }
    unpacking.finish()?;
    for index in 0..turned.len() / bytes {
        let place = header.turned(index);
        each(index, header.number(&mut turned[place * bytes..][..bytes]))?;
    }
    Ok(())
}

impl Header {
    /// The number of a value's bytes, which may be turned around.
    fn number(&self, bytes: &mut [u8]) -> f64 {
        if self.big_endian {
            bytes.reverse();
        }
        number(self.kind, bytes)
    }

    /// The place of the value of this number, which counts with the last index changing fastest, where the first does.
    fn turned(&self, number: usize) -> usize {
        let (mut rest, mut place, mut stride) = (number, 0, self.values().unwrap_or(0));
        for size in self.shape.iter().rev() {
            stride /= (*size).max(1);
            place += rest % size * stride;
            rest /= size;
        }
        place
    }
}

fn number(kind: Kind, bytes: &[u8]) -> f64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(word);
    match kind {
        Kind::Integer { signed: false, .. } | Kind::Boolean | Kind::Text { .. } => unsigned as f64,
        Kind::Integer {
            bytes,
            signed: true,
        } => {
            let shift = 64 - 8 * bytes as u32;
            (((unsigned << shift) as i64) >> shift) as f64
        }
        Kind::Float { bytes: 2 } => half(unsigned as u16),
        Kind::Float { bytes: 4 } => f64::from(f32::from_bits(unsigned as u32)),
        Kind::Float { .. } => f64::from_bits(unsigned),
    }
}

/// A number of sixteen bits: a sign, five of the exponent, ten of the fraction.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let size = match bits >> 10 & 0x1f {
        0 => fraction / 16384.0,
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction) * f64::from(1u32 << exponent) / 32768.0,
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// All values of an array of text.
pub(crate) fn texts<R: Read>(
    header: &Header,
    mut unpacking: Unpacking<'_, R>,
    name: &str,
) -> Result<Vec<String>, Problem> {
    let Kind::Text { characters } = header.kind else {
        return Err(format!("array {name:?} has numbers: expected text"));
    };
    let mut all = Vec::new();
    let mut buffer = vec![0; 4 * characters];
    while unpacking.left() > 0 && characters > 0 {
        unpacking.fill(&mut buffer)?;
        let text = buffer.as_chunks::<4>().0.iter().map(|bytes| {
            let code = if header.big_endian {
                u32::from_be_bytes(*bytes)
            } else {
                u32::from_le_bytes(*bytes)
            };
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        all.push(text.collect::<String>().trim_end_matches('\0').into());
    }
    unpacking.finish()?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them() {
        let header = parse("{'descr': '|u1', 'fortran_order': False, 'shape': (5, 28, 28), }   \n")
            .unwrap()
            .unwrap();
        assert_eq!(
            header.kind,
            Kind::Integer {
                bytes: 1,
                signed: false
            }
        );
        assert_eq!(
            (header.shape.clone(), header.values()),
            (vec![5, 28, 28], Some(3920))
        );
        assert_eq!(
            parse("{'descr': '<f8', 'fortran_order': False, 'shape': (), }")
                .unwrap()
                .unwrap()
                .values(),
            Some(1)
        );
        assert_eq!(
            parse("{'descr': '<U9', 'fortran_order': False, 'shape': (6,), }")
                .unwrap()
                .unwrap()
                .kind,
            Kind::Text { characters: 9 }
        );
        for wrong in [
            "",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-5,), }",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (5,), }",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        for (descr, said) in [
            ("'|O'", "'|O'"),
            ("'<c8'", "'<c8'"),
            ("'<M8[ns]'", "'<M8[ns]'"),
            ("[('a', '<f4')]", "[('a', '<f4')]"),
        ] {
            let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (5,), }}");
            assert_eq!(parse(&text), Some(Err(said.to_owned())));
        }
        let huge =
            parse("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 16), }")
                .unwrap()
                .unwrap();
        assert_eq!(huge.values(), None);
    }

    #[test]
    fn the_order_of_fortran_is_turned() {
        let header = parse("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, 2), }");
        let header = header.unwrap().unwrap();
        // Value by value as a[i, j, k] lies: i + 2 j + 6 k.
        let places: Vec<usize> = (0..12).map(|n| header.turned(n)).collect();
        assert_eq!(places, [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]);
    }

    #[test]
    fn numbers_of_sixteen_bits() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 1.0 / 16384.0),
            (0x0001, 1.0 / 16777216.0),
            (0x3555, 0.333251953125),
            (0xfc00, f64::NEG_INFINITY),
            (0x8000, 0.0),
        ] {
            assert_eq!(half(bits), value, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn numbers_of_all_kinds() {
        let signed = |bytes| Kind::Integer {
            bytes,
            signed: true,
        };
        assert_eq!(number(signed(1), &[0xff]), -1.0);
        assert_eq!(number(signed(2), &[0xfe, 0xff]), -2.0);
        assert_eq!(number(signed(8), &(-7i64).to_le_bytes()), -7.0);
        assert_eq!(
            number(
                Kind::Integer {
                    bytes: 1,
                    signed: false
                },
                &[0xff]
            ),
            255.0
        );
        assert_eq!(number(Kind::Float { bytes: 4 }, &1.5f32.to_le_bytes()), 1.5);
        assert_eq!(
            number(Kind::Float { bytes: 8 }, &(-2.5f64).to_le_bytes()),
            -2.5
        );
    }
}
