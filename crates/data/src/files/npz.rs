//! A data set as NumPy's `.npz`: what training sees, for replaying a run in another language.
//!
//! | array | type | shape |
//! | --- | --- | --- |
//! | `g{m}_x1`, `g{m}_x2` | f32 | rows of group m × the hospital's or the device's shape |
//! | `g{m}_y` | i64 | rows of group m |
//! | `g{m}_offsets` | i64 | devices + 1; only where a device of the set has several rows |
//! | `test_x1`, `test_x2`, `test_y` | | likewise |
//! | `validation_x1`, … | | likewise, where there are validation rows |

use crate::files::zip::ZipWriter;
use selvedge_core::dataset::{Dataset, Samples};
use selvedge_nn::Shape;
use std::io::{self, Seek, Write};

/// Values that are turned into bytes at a time.
const CHUNK: usize = 1 << 14;

/// NumPy's own headers end at a multiple of this, so that arrays can be mapped.
const ALIGNMENT: usize = 64;

/// Writes `dataset` to `out`, uncompressed and without a copy in memory. Large sets are faster with a
/// buffered writer.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_npz(dataset: &Dataset, out: impl Write + Seek) -> io::Result<()> {
    let mut npz = Npz {
        zip: ZipWriter::new(out)?,
        sides: [dataset.hospital, dataset.device],
    };
    let several = dataset
        .groups
        .iter()
        .any(|group| group.devices() != group.samples.len());
    for (m, group) in dataset.groups.iter().enumerate() {
        npz.samples(&format!("g{m}"), &group.samples)?;
        if several {
            npz.integers(&format!("g{m}_offsets"), &group.offsets)?;
        }
    }
    npz.samples("test", &dataset.test)?;
    if !dataset.validation.is_empty() {
        npz.samples("validation", &dataset.validation)?;
    }
    npz.zip.finish()
}

struct Npz<W> {
    zip: ZipWriter<W>,
    sides: [Shape; 2],
}

impl<W: Write + Seek> Npz<W> {
    fn samples(&mut self, prefix: &str, samples: &Samples) -> io::Result<()> {
        for (side, (name, values)) in [("x1", &samples.x1), ("x2", &samples.x2)]
            .iter()
            .enumerate()
        {
            let mut dims = vec![samples.len()];
            dims.extend(self.sides[side].dims());
            self.array(
                &format!("{prefix}_{name}"),
                "<f4",
                &dims,
                values,
                f32::to_le_bytes,
            )?;
        }
        self.integers(&format!("{prefix}_y"), &samples.y)
    }

    fn integers(&mut self, name: &str, values: &[u32]) -> io::Result<()> {
        self.array(name, "<i8", &[values.len()], values, |value| {
            i64::from(value).to_le_bytes()
        })
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
fn npy_header(descr: &str, dims: &[usize]) -> Vec<u8> {
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
