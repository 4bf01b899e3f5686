//! The logarithm of a window's power spectrum: ln(ε + |X|²) with the discrete Fourier transform X of each row. No
//! weights: rows times constant tables.
//!
//! A row's products with the tables are a matrix product like a linear layer's, whose sums run in index order; a fast
//! transform would save operations only for windows longer than those in use, and has another order for every length.

use super::{Backward, Layer};
use crate::kernel::{self, Rows, Start, lanes};
use crate::math;
use crate::simd::{Kernel, LANES, Lanes, Level};
use crate::spectrum::{FLOOR, bins, tables};

/// `rows` windows of `size` numbers.
#[derive(Debug)]
pub(super) struct Spectrum {
    rows: usize,
    size: usize,
    /// `[size][real parts, imaginary parts]`
    table: Vec<f32>,
    /// The same turned: `[real parts, imaginary parts][size]`
    turned: Vec<f32>,
}

impl Spectrum {
    pub(super) fn new(rows: usize, size: usize) -> Self {
        let [cosines, sines] = tables(size);
        let (of_cosines, of_sines) = (cosines.chunks(bins(size)), sines.chunks(bins(size)));
        let table: Vec<f32> = of_cosines
            .zip(of_sines)
            .flat_map(|(cosines, sines)| cosines.iter().chain(sines).copied())
            .collect();
        let mut turned = vec![0.0; table.len()];
        kernel::transpose(Level::PLAIN, &table, size, 2 * bins(size), &mut turned);
        Spectrum {
            rows,
            size,
            table,
            turned,
        }
    }

    /// Real and imaginary parts of one row.
    fn width(&self) -> usize {
        2 * bins(self.size)
    }

    /// Those of all rows.
    fn parts(&self) -> usize {
        self.rows * self.width()
    }
}

/// ε + |X|²
#[inline(always)]
fn power<L: Lanes>(real: L, imaginary: L) -> L {
    let floor = L::splat(FLOOR);
    real.mul_add(real, imaginary.mul_add(imaginary, floor))
}

struct Forward<'a> {
    of: &'a Spectrum,
    input: &'a [f32],
    parts: &'a mut [f32],
    output: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (of, width) = (self.of, self.of.width());
        let rows = Rows::dense(of.rows, of.size);
        kernel::multiply::<L>(self.input, rows, &of.table, width, Start::Zero, self.parts);
        let rows = self.parts.chunks_exact(width);
        for (parts, output) in rows.zip(self.output.chunks_exact_mut(width / 2)) {
            let (real, imaginary) = parts.split_at(width / 2);
            lanes!(L, output, [_old, real = real, imaginary = imaginary] => {
                math::log(power(real, imaginary))
            });
        }
    }
}

struct InputGradient<'a> {
    of: &'a Spectrum,
    parts: &'a [f32],
    d_output: &'a [f32],
    d_parts: &'a mut [f32],
    d_input: &'a mut [f32],
}

impl Kernel for InputGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (of, width) = (self.of, self.of.width());
        let rows = self.parts.chunks_exact(width);
        let of_rows = self.d_output.chunks_exact(width / 2);
        for ((d_parts, parts), d) in self.d_parts.chunks_exact_mut(width).zip(rows).zip(of_rows) {
            let (real, imaginary) = parts.split_at(width / 2);
            let (d_real, d_imaginary) = d_parts.split_at_mut(width / 2);
            // Both are 2d/(ε + |X|²) times their part.
            lanes!(L, d_real, [_old, real = real, imaginary = imaginary, d = d] => {
                d.add(d).div(power(real, imaginary))
            });
            lanes!(L, d_imaginary, [_old, imaginary = imaginary, d = d_real] => d.mul(imaginary));
            lanes!(L, d_real, [d, real = real] => d.mul(real));
        }
        let rows = Rows::dense(of.rows, width);
        kernel::multiply::<L>(
            self.d_parts,
            rows,
            &of.turned,
            of.size,
            Start::Zero,
            self.d_input,
        );
    }
}

impl Layer for Spectrum {
    fn output(&self) -> usize {
        self.rows * bins(self.size)
    }

    /// Real and imaginary parts, then the output, on a cache line too.
    fn tape(&self) -> usize {
        self.parts().next_multiple_of(LANES) + self.output()
    }

    fn scratch(&self) -> usize {
        self.parts()
    }

    fn forward_flops(&self) -> u64 {
        2 * (self.size * self.parts()) as u64
    }

    fn weight_gradient_flops(&self) -> u64 {
        0
    }

    fn forward(&self, level: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        let (parts, output) = tape.split_at_mut(self.parts().next_multiple_of(LANES));
        level.run(Forward {
            of: self,
            input,
            parts: &mut parts[..self.parts()],
            output,
        });
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        let Some(d_input) = pass.d_input else { return };
        level.run(InputGradient {
            of: self,
            parts: &pass.tape[..self.parts()],
            d_output: pass.d_output,
            d_parts: pass.scratch,
            d_input,
        });
    }
}
