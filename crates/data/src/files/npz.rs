//! A data set as NumPy's `.npz`: what training sees, for replaying a run in another language.
//!
//! | array | type | shape |
//! | --- | --- | --- |
//! | `g{m}_x1`, `g{m}_x2` | f32 | rows of group m × the hospital's or the device's shape |
//! | `g{m}_y` | i64 | rows of group m: classes |
//! | | f32 | rows × numbers that are known of each, where the outcome is no class |
//! | `g{m}_offsets` | i64 | devices + 1; only where a device of the set has several rows |
//! | `test_x1`, `test_x2`, `test_y` | | likewise |
//! | `validation_x1`, … | | likewise, where there are validation rows |

use crate::files::zip::ZipWriter;
use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::outcome::Targets;
use selvedge_nn::Shape;
use std::io::{self, Seek, Write};

/// Values that are turned into bytes at a time.
const CHUNK: usize = 1 << 14;

/// NumPy's own headers end at a multiple of this, so that arrays can be mapped.
const ALIGNMENT: usize = 64;

/// Writes `dataset` to `out`, uncompressed and without a copy in memory. Large sets are faster with a buffered writer.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_npz(dataset: &Dataset, out: impl Write + Seek) -> io::Result<()> {
    let mut npz = NpzWriter::new(out)?;
    let several = dataset
        .groups
        .iter()
        .any(|group| group.devices() != group.samples.len());
    let sides = [dataset.hospital, dataset.device];
    for (m, group) in dataset.groups.iter().enumerate() {
        samples(&mut npz, &format!("g{m}"), sides, &group.samples)?;
        if several {
            npz.integers(&format!("g{m}_offsets"), group.offsets.listed())?;
        }
    }
    samples(&mut npz, "test", sides, &dataset.test)?;
    if !dataset.validation.is_empty() {
        samples(&mut npz, "validation", sides, &dataset.validation)?;
    }
    npz.finish()
}

fn samples<W: Write + Seek>(
    npz: &mut NpzWriter<W>,
    prefix: &str,
    sides: [Shape; 2],
    samples: &Samples,
) -> io::Result<()> {
    npz.floats(&format!("{prefix}_x1"), sides[0], &samples.x1)?;
    npz.floats(&format!("{prefix}_x2"), sides[1], &samples.x2)?;
    let name = format!("{prefix}_y");
    match &samples.y {
        Targets::Classes(classes) => npz.integers(&name, classes),
        Targets::Numbers { each, values } => npz.floats(&name, Shape::Flat(*each), values),
    }
}

/// An `.npz` being written, array after array.
pub(crate) struct NpzWriter<W> {
    zip: ZipWriter<W>,
}

impl<W: Write + Seek> NpzWriter<W> {
    /// Begins one.
    pub(crate) fn new(out: W) -> io::Result<Self> {
        Ok(NpzWriter {
            zip: ZipWriter::new(out)?,
        })
    }

    /// Ends it.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.zip.finish()
    }

    /// Rows of that shape.
    pub(crate) fn floats(&mut self, name: &str, shape: Shape, values: &[f32]) -> io::Result<()> {
        let mut dims = vec![values.len() / shape.len().max(1)];
        dims.extend(shape.dims());
        self.array(name, "<f4", &dims, values, f32::to_le_bytes)
    }

    /// Counts and labels.
    pub(crate) fn integers(&mut self, name: &str, values: &[u32]) -> io::Result<()> {
        self.array(name, "<i8", &[values.len()], values, |value| {
            i64::from(value).to_le_bytes()
        })
    }

    /// Texts of `N` ASCII letters.
    pub(crate) fn texts<const N: usize>(
        &mut self,
        name: &str,
        values: &[[u8; N]],
    ) -> io::Result<()> {
        let letters = values.as_flattened();
        let (descr, dims) = (format!("<U{N}"), [values.len()]);
        self.array(name, &descr, &dims, letters, |letter| {
            u32::from(letter).to_le_bytes()
        })
    }

    /// Texts of any length.
    pub(crate) fn strings(&mut self, name: &str, values: &[String]) -> io::Result<()> {
        let longest = values.iter().map(|text| text.chars().count()).max();
        let longest = longest.unwrap_or(0).max(1);
        let mut letters = Vec::with_capacity(longest * values.len());
        for (text, number) in values.iter().zip(1..) {
            letters.extend(text.chars().map(u32::from));
            letters.resize(longest * number, 0);
        }
        let (descr, dims) = (format!("<U{longest}"), [values.len()]);
        self.array(name, &descr, &dims, &letters, u32::to_le_bytes)
    }

    fn array<T: Copy, const BYTES: usize>(
        &mut self,
        name: &str,
        descr: &str,
        dims: &[usize],
        values: &[T],
        to_bytes: impl Fn(T) -> [u8; BYTES],
    ) -> io::Result<()> {
        let header = npy_header(descr, dims);
        let size = header.len() as u64 + values.len() as u64 * BYTES as u64;
        self.zip.file(&format!("{name}.npy"), size, |out| {
            out.write_all(&header)?;
            let mut bytes = Vec::with_capacity(CHUNK * BYTES);
            for chunk in values.chunks(CHUNK) {
                bytes.clear();
                chunk
                    .iter()
                    .for_each(|&value| bytes.extend(to_bytes(value)));
                out.write_all(&bytes)?;
            }
            Ok(())
        })
    }
}

/// The header of a `.npy` file, version 1.0: a Python literal, padded with spaces.
pub(crate) fn npy_header(descr: &str, dims: &[usize]) -> Vec<u8> {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    // A Python tuple of one has a comma too.
    let comma = if dims.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", dims.join(", "));
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let before = 10; // magic, version and length
    let total = (before + dict.len() + 1).next_multiple_of(ALIGNMENT);
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(((total - before) as u16).to_le_bytes());
    header.extend(dict.bytes());
    header.resize(total - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_aligned_and_say_the_shape() {
        for (dims, shape) in [
            (&[7][..], "(7,)"),
            (&[0, 16], "(0, 16)"),
            (&[3, 1, 28, 28], "(3, 1, 28, 28)"),
        ] {
            let header = npy_header("<f4", dims);
            assert_eq!(header.len() % ALIGNMENT, 0);
            assert_eq!(
                usize::from(header[8]) + 256 * usize::from(header[9]) + 10,
                header.len()
            );
            let text = String::from_utf8_lossy(&header[10..]).into_owned();
            let expected =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
            assert_eq!(text.trim_end(), expected);
            assert!(text.ends_with('\n'));
        }
    }
}
