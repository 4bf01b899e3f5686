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
    /// `f4` or `f8`.
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
    parse(&text).ok_or_else(|| {
        wrong(&format!(
            "the header {:?} cannot be read",
            text.trim().chars().take(120).collect::<String>()
        ))
    })
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
pub(crate) fn parse(text: &str) -> Option<Header> {
    let value_of = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}':"))?;
        Some(rest.trim_start())
    };
    let descr = value_of("descr")?.strip_prefix('\'')?.split_once('\'')?.0;
    if !value_of("fortran_order")?.starts_with("False") {
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
    let bytes: usize = letters.as_str().parse().ok()?;
    let kind = match (letter, bytes) {
        ('u', 1 | 2 | 4 | 8) => Kind::Integer {
            bytes,
            signed: false,
        },
        ('i', 1 | 2 | 4 | 8) => Kind::Integer {
            bytes,
            signed: true,
        },
        ('f', 4 | 8) => Kind::Float { bytes },
        ('b', 1) => Kind::Boolean,
        ('U', 0..=4096) => Kind::Text { characters: bytes },
        _ => return None,
    };
    if !['<', '>', '|', '='].contains(&order) {
        return None;
    }
    Some(Header {
        kind,
        big_endian: order == '>',
        shape: shape?,
    })
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
    while unpacking.left() > 0 {
        let count = (buffer.len() as u64).min(unpacking.left()) as usize;
        let chunk = &mut buffer[..count];
        unpacking.fill(chunk)?;
        for value in chunk.chunks_exact_mut(bytes) {
            if header.big_endian {
                value.reverse();
            }
            each(index, number(header.kind, value))?;
            index += 1;
        }
    }
    unpacking.finish()
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
        Kind::Float { bytes: 4 } => f64::from(f32::from_bits(unsigned as u32)),
        Kind::Float { .. } => f64::from_bits(unsigned),
    }
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
        let header =
            parse("{'descr': '|u1', 'fortran_order': False, 'shape': (5, 28, 28), }   \n").unwrap();
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
                .values(),
            Some(1)
        );
        assert_eq!(
            parse("{'descr': '<U9', 'fortran_order': False, 'shape': (6,), }")
                .unwrap()
                .kind,
            Kind::Text { characters: 9 }
        );
        for wrong in [
            "",
            "{'descr': '|O', 'fortran_order': False, 'shape': (5,), }",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (5, 5), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-5,), }",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (5,), }",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let huge =
            parse("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 16), }")
                .unwrap();
        assert_eq!(huge.values(), None);
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
