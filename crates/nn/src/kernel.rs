//! The two sums that every layer is made of, in tiles that fit the registers.
//!
//! [`multiply`]: `out[r] += Σᵢ x[r][i] · w[i]` — forward passes, and input gradients with `w` transposed.
//! [`correlate`]: `g[i] += Σᵣ x[r][i] · d[r]` — weight gradients.
//!
//! Lanes run along a row of `w`, `out`, `d` and `g`; each sum runs in index order (`i`, then segments;
//! rows `r`, then outer rows) starting from what is already there. So the tile's size, like the width
//! of a register, never changes a bit.

// Index loops over const sizes: they unroll into registers, where iterator adapters are calls.
#![allow(clippy::needless_range_loop)]

use crate::simd::{LANES, Lanes};

/// Where the rows of `x` lie. A convolution's row is a patch of `segments` stretches, one per line of
/// the kernel window; elsewhere there is one segment.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// How many rows.
    pub rows: usize,
    /// From one row to the next.
    pub stride: usize,
    /// How many stretches a row has.
    pub segments: usize,
    /// From one stretch to the next.
    pub segment_stride: usize,
    /// Numbers in a stretch.
    pub k: usize,
}

impl Rows {
    /// Rows of `k` numbers, one after the other.
    pub(crate) fn dense(rows: usize, k: usize) -> Self {
        Rows {
            rows,
            stride: k,
            segments: 1,
            segment_stride: 0,
            k,
        }
    }
}

/// `out[r] += Σᵢ x[r][i] · w[i]`, with `w` of `segments · k` rows of `n` and `out` of `rows` rows of `n`.
#[inline(always)]
pub(crate) fn multiply<L: Lanes>(x: &[f32], shape: Rows, w: &[f32], n: usize, out: &mut [f32]) {
    let mut row = 0;
    while row + 4 <= shape.rows {
        multiply_rows::<L, 4>(&x[row * shape.stride..], shape, w, n, &mut out[row * n..]);
        row += 4;
    }
    while row < shape.rows {
        multiply_rows::<L, 1>(&x[row * shape.stride..], shape, w, n, &mut out[row * n..]);
        row += 1;
    }
}

/// All columns of `R` rows.
#[inline(always)]
fn multiply_rows<L: Lanes, const R: usize>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    out: &mut [f32],
) {
    let mut column = 0;
    if L::WIDE {
        // One row alone needs eight sums in flight to hide the latency of a multiply-add.
        if R == 1 {
            while column + 8 * LANES <= n {
                multiply_tile::<L, R, 8>(x, shape, &w[column..], n, &mut out[column..]);
                column += 8 * LANES;
            }
        }
        while column + 4 * LANES <= n {
            multiply_tile::<L, R, 4>(x, shape, &w[column..], n, &mut out[column..]);
            column += 4 * LANES;
        }
    } else if R == 1 {
        while column + 4 * LANES <= n {
            multiply_tile::<L, R, 4>(x, shape, &w[column..], n, &mut out[column..]);
            column += 4 * LANES;
        }
    }
    while column + LANES <= n {
        multiply_tile::<L, R, 1>(x, shape, &w[column..], n, &mut out[column..]);
        column += LANES;
    }
    if column < n {
        multiply_edge::<L, R>(x, shape, &w[column..], n, &mut out[column..]);
    }
}

/// The first `C` vectors of `R` rows.
#[inline(always)]
fn multiply_tile<L: Lanes, const R: usize, const C: usize>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    out: &mut [f32],
) {
    let mut sums = [[L::splat(0.0); C]; R];
    for r in 0..R {
        let row = out[r * n..][..C * LANES].as_chunks().0;
        for c in 0..C {
            sums[r][c] = L::load(&row[c]);
        }
    }
    for segment in 0..shape.segments {
        let mut rows: [&[f32]; R] = [&[]; R];
        for r in 0..R {
            rows[r] = &x[r * shape.stride + segment * shape.segment_stride..][..shape.k];
        }
        let w = &w[segment * shape.k * n..];
        for i in 0..shape.k {
            let row = w[i * n..][..C * LANES].as_chunks().0;
            let mut weights = [L::splat(0.0); C];
            for c in 0..C {
                weights[c] = L::load(&row[c]);
            }
            for r in 0..R {
                let factor = L::splat(rows[r][i]);
                for c in 0..C {
                    sums[r][c] = weights[c].mul_add(factor, sums[r][c]);
                }
            }
        }
    }
    for r in 0..R {
        let row = out[r * n..][..C * LANES].as_chunks_mut().0;
        for c in 0..C {
            sums[r][c].store(&mut row[c]);
        }
    }
}

/// The last columns, fewer than a vector, of `R` rows.
#[inline(always)]
fn multiply_edge<L: Lanes, const R: usize>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    out: &mut [f32],
) {
    let width = n % LANES;
    let mut sums = [L::splat(0.0); R];
    for r in 0..R {
        sums[r] = L::load_some(&out[r * n..][..width]);
    }
    for segment in 0..shape.segments {
        let w = &w[segment * shape.k * n..];
        for i in 0..shape.k {
            let weights = L::load_some(&w[i * n..][..width]);
            for (r, sum) in sums.iter_mut().enumerate() {
                let factor = x[r * shape.stride + segment * shape.segment_stride + i];
                *sum = weights.mul_add(L::splat(factor), *sum);
            }
        }
    }
    for r in 0..R {
        sums[r].store_some(&mut out[r * n..][..width]);
    }
}

/// `g[i] += Σᵣ x[r][i] · d[r]`, with `d` of `rows` rows of `n` and `g` of `segments · k` rows of `n`.
#[inline(always)]
pub(crate) fn correlate<L: Lanes>(x: &[f32], shape: Rows, d: &[f32], n: usize, g: &mut [f32]) {
    if shape.rows == 0 {
        return;
    }
    for segment in 0..shape.segments {
        let x = &x[segment * shape.segment_stride..];
        let g = &mut g[segment * shape.k * n..][..shape.k * n];
        let mut i = 0;
        while i + 4 <= shape.k {
            correlate_rows::<L, 4>(&x[i..], shape, d, n, &mut g[i * n..]);
            i += 4;
        }
        while i < shape.k {
            correlate_rows::<L, 1>(&x[i..], shape, d, n, &mut g[i * n..]);
            i += 1;
        }
    }
}

/// All columns of `R` rows of `g`.
#[inline(always)]
fn correlate_rows<L: Lanes, const R: usize>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    g: &mut [f32],
) {
    let mut column = 0;
    if L::WIDE {
        while column + 4 * LANES <= n {
            correlate_tile::<L, R, 4>(x, shape, &d[column..], n, &mut g[column..]);
            column += 4 * LANES;
        }
    }
    while column + LANES <= n {
        correlate_tile::<L, R, 1>(x, shape, &d[column..], n, &mut g[column..]);
        column += LANES;
    }
    if column < n {
        correlate_edge::<L, R>(x, shape, &d[column..], n, &mut g[column..]);
    }
}

/// The first `C` vectors of `R` rows of `g`.
#[inline(always)]
fn correlate_tile<L: Lanes, const R: usize, const C: usize>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    g: &mut [f32],
) {
    let mut sums = [[L::splat(0.0); C]; R];
    for r in 0..R {
        let row = g[r * n..][..C * LANES].as_chunks().0;
        for c in 0..C {
            sums[r][c] = L::load(&row[c]);
        }
    }
    for row in 0..shape.rows {
        let chunks = d[row * n..][..C * LANES].as_chunks().0;
        let mut deltas = [L::splat(0.0); C];
        for c in 0..C {
            deltas[c] = L::load(&chunks[c]);
        }
        let factors = &x[row * shape.stride..][..R];
        for r in 0..R {
            let factor = L::splat(factors[r]);
            for c in 0..C {
                sums[r][c] = deltas[c].mul_add(factor, sums[r][c]);
            }
        }
    }
    for r in 0..R {
        let row = g[r * n..][..C * LANES].as_chunks_mut().0;
        for c in 0..C {
            sums[r][c].store(&mut row[c]);
        }
    }
}

/// The last columns, fewer than a vector, of `R` rows of `g`.
#[inline(always)]
fn correlate_edge<L: Lanes, const R: usize>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    g: &mut [f32],
) {
    let width = n % LANES;
    let mut sums = [L::splat(0.0); R];
    for r in 0..R {
        sums[r] = L::load_some(&g[r * n..][..width]);
    }
    for row in 0..shape.rows {
        let deltas = L::load_some(&d[row * n..][..width]);
        for (r, sum) in sums.iter_mut().enumerate() {
            *sum = deltas.mul_add(L::splat(x[row * shape.stride + r]), *sum);
        }
    }
    for r in 0..R {
        sums[r].store_some(&mut g[r * n..][..width]);
    }
}

/// `sums += Σᵣ d[r]`: bias gradients, rows of `sums.len()` numbers in order.
#[inline(always)]
pub(crate) fn add_rows<L: Lanes>(d: &[f32], sums: &mut [f32]) {
    for row in d.chunks_exact(sums.len()) {
        lanes!(L, sums, [sum, x = row] => sum.add(x));
    }
}

/// `lanes!(L, out, [o, a = x, b = y] => expression)`: `out = expression`, sixteen at a time and then the tail, where
/// `o`, `a` and `b` are the lanes of `out`, `x` and `y`.
///
/// A macro, because a closure is a function of its own: it is compiled without its caller's instruction set,
/// and every operation in it becomes a call.
macro_rules! lanes {
    ($L:ident, $out:expr, [$o:ident $(, $a:ident = $x:expr)*] => $value:expr) => {{
        let out: &mut [f32] = $out;
        let n = out.len();
        $(let $a: &[f32] = &$x[..n];)*
        let mut at = 0;
        while at + $crate::simd::LANES <= n {
            let chunk = &mut out[at..].as_chunks_mut().0[0];
            #[allow(unused_variables)]
            let $o = $L::load(chunk);
            $(let $a = $L::load(&$a[at..].as_chunks().0[0]);)*
            ($value).store(chunk);
            at += $crate::simd::LANES;
        }
        if at < n {
            let chunk = &mut out[at..];
            #[allow(unused_variables)]
            let $o = $L::load_some(chunk);
            $(let $a = $L::load_some(&$a[at..]);)*
            ($value).store_some(chunk);
        }
    }};
}
pub(crate) use lanes;

/// `out[c][r] = x[r][c]`, for `x` of `rows` by `columns`.
pub(crate) fn transpose(x: &[f32], rows: usize, columns: usize, out: &mut [f32]) {
    const TILE: usize = 16;
    for c0 in (0..columns).step_by(TILE) {
        for r0 in (0..rows).step_by(TILE) {
            for c in c0..(c0 + TILE).min(columns) {
                for r in r0..(r0 + TILE).min(rows) {
                    out[c * rows + r] = x[r * columns + c];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        random::Key,
        simd::{Kernel, Level},
    };

    struct Both<'a> {
        x: &'a [f32],
        shape: Rows,
        w: &'a [f32],
        n: usize,
        out: &'a mut [f32],
        g: &'a mut [f32],
    }

    impl Kernel for Both<'_> {
        type Output = ();
        #[inline(always)]
        fn run<L: Lanes>(self) {
            multiply::<L>(self.x, self.shape, self.w, self.n, self.out);
            correlate::<L>(self.x, self.shape, self.out, self.n, self.g);
        }
    }

    #[test]
    fn tiles_give_the_bits_of_the_plain_loop() {
        for seed in 0..200 {
            let mut stream = Key::new(seed).stream();
            let mut draw = |bound| stream.below(bound) as usize + 1;
            let (rows, k, n, segments) = (draw(9), draw(9), draw(160), draw(3));
            let shape = Rows {
                rows,
                k,
                segments,
                stride: draw(12),
                segment_stride: draw(20),
            };
            let mut numbers = |count| (0..count).map(|_| stream.normal()).collect::<Vec<_>>();
            let x = numbers(rows * shape.stride + segments * shape.segment_stride + k);
            let w = numbers(segments * k * n);
            let (out, g) = (numbers(rows * n), numbers(segments * k * n));

            let (mut out_loop, mut g_loop) = (out.clone(), g.clone());
            let at =
                |r: usize, s: usize, i: usize| x[r * shape.stride + s * shape.segment_stride + i];
            for r in 0..rows {
                for s in 0..segments {
                    for i in 0..k {
                        for c in 0..n {
                            let sum = &mut out_loop[r * n + c];
                            *sum = w[(s * k + i) * n + c].mul_add(at(r, s, i), *sum);
                        }
                    }
                }
            }
            for s in 0..segments {
                for i in 0..k {
                    for r in 0..rows {
                        for c in 0..n {
                            let sum = &mut g_loop[(s * k + i) * n + c];
                            *sum = out_loop[r * n + c].mul_add(at(r, s, i), *sum);
                        }
                    }
                }
            }
            for level in Level::available() {
                let (mut out, mut g) = (out.clone(), g.clone());
                level.run(Both {
                    x: &x,
                    shape,
                    w: &w,
                    n,
                    out: &mut out,
                    g: &mut g,
                });
                assert_eq!(out, out_loop, "multiply, seed {seed}, {level:?}");
                assert_eq!(g, g_loop, "correlate, seed {seed}, {level:?}");
            }
        }
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let x: Vec<f32> = (0..37 * 21).map(|i| i as f32).collect();
        let (mut once, mut twice) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        transpose(&x, 37, 21, &mut once);
        transpose(&once, 21, 37, &mut twice);
        assert_eq!(x, twice);
        assert_eq!(once[1], x[21]);
    }
}
