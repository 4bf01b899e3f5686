//! The two sums that every layer is made of, in tiles that fit the registers.
//!
//! [`multiply`]: `out[r] += Σᵢ x[r][i] · w[i]` — forward passes, and input gradients with `w` transposed.
//! [`correlate`]: `g[i] += Σᵣ x[r][i] · d[r]` — weight gradients, or the step that they make.
//!
//! Lanes run along a row of `w`, `out`, `d` and `g`; each sum runs in index order (`i`, then segments;
//! rows `r`, then outer rows) starting from what is already there. So the tile's size, like the width
//! of a register, never changes a bit.
//!
//! The tiles read and write without bounds checks, which cost a third of the speed in loops this short. It is sound
//! because each tile first asserts that the last number it will touch is inside its slices; all others lie before.

// Index loops over const sizes: they unroll into registers, where iterator adapters are calls.
#![allow(clippy::needless_range_loop)]

use crate::simd::{Kernel, LANES, Lanes, Level};

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
    /// How many sets of rows: lines of a convolution's output. [`correlate`] takes all, [`multiply`] the first.
    pub lines: usize,
    /// From one set to the next.
    pub line_stride: usize,
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
            lines: 1,
            line_stride: 0,
        }
    }

    /// Numbers from the start of the first of `rows` rows to the end of the last.
    fn span(&self, rows: usize) -> usize {
        (rows - 1) * self.stride + (self.segments - 1) * self.segment_stride + self.k
    }
}

/// Sixteen numbers of `x` from `at`; with `PARTIAL`, the first `width` of them and zeros.
///
/// # Safety
/// `at + LANES`, or with `PARTIAL` `at + width`, is at most `x.len()`.
#[inline(always)]
unsafe fn load<L: Lanes, const PARTIAL: bool>(x: &[f32], at: usize, width: usize) -> L {
    // SAFETY: inside the slice, by this function's own contract.
    unsafe {
        if PARTIAL {
            L::load_some(x.get_unchecked(at..at + width))
        } else {
            L::load(&*x.as_ptr().add(at).cast())
        }
    }
}

/// Writes what [`load`] reads.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn store<L: Lanes, const PARTIAL: bool>(value: L, x: &mut [f32], at: usize, width: usize) {
    // SAFETY: inside the slice, by this function's own contract.
    unsafe {
        if PARTIAL {
            value.store_some(x.get_unchecked_mut(at..at + width));
        } else {
            value.store(&mut *x.as_mut_ptr().add(at).cast());
        }
    }
}

/// `out[r] += Σᵢ x[r][i] · w[i]`, with `w` of `segments · k` rows of `n` and `out` of `rows` rows of `n`.
#[inline(always)]
pub(crate) fn multiply<L: Lanes>(x: &[f32], shape: Rows, w: &[f32], n: usize, out: &mut [f32]) {
    if shape.k == 0 || shape.segments == 0 {
        return;
    }
    let mut row = 0;
    // Few columns leave registers for more rows, which share the loads of the weights.
    if L::WIDE && n <= 2 * LANES {
        while row + 8 <= shape.rows {
            multiply_rows::<L, 8>(&x[row * shape.stride..], shape, w, n, &mut out[row * n..]);
            row += 8;
        }
    }
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
    // One row alone needs eight sums in flight to hide the latency of a multiply-add.
    while L::WIDE && R == 1 && column + 8 * LANES <= n {
        multiply_tile::<L, R, 8, false>(x, shape, w, n, column, out);
        column += 8 * LANES;
    }
    while (L::WIDE && R <= 4 || R == 1) && column + 4 * LANES <= n {
        multiply_tile::<L, R, 4, false>(x, shape, w, n, column, out);
        column += 4 * LANES;
    }
    while (L::WIDE || R == 1) && column + 2 * LANES <= n {
        multiply_tile::<L, R, 2, false>(x, shape, w, n, column, out);
        column += 2 * LANES;
    }
    while column + LANES <= n {
        multiply_tile::<L, R, 1, false>(x, shape, w, n, column, out);
        column += LANES;
    }
    if column < n {
        multiply_tile::<L, R, 1, true>(x, shape, w, n, column, out);
    }
}

/// `C` vectors of `R` rows from `column`; with `PARTIAL`, the columns that are left.
#[inline(always)]
fn multiply_tile<L: Lanes, const R: usize, const C: usize, const PARTIAL: bool>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    column: usize,
    out: &mut [f32],
) {
    let width = if PARTIAL { n - column } else { C * LANES };
    assert!(x.len() >= shape.span(R));
    assert!(w.len() >= (shape.segments * shape.k - 1) * n + column + width);
    assert!(out.len() >= (R - 1) * n + column + width);
    // SAFETY: the three assertions are about the last number of each slice that is touched.
    unsafe {
        let mut sums = [[L::splat(0.0); C]; R];
        for r in 0..R {
            for c in 0..C {
                sums[r][c] = load::<L, PARTIAL>(out, r * n + column + c * LANES, width);
            }
        }
        for segment in 0..shape.segments {
            let x_at = segment * shape.segment_stride;
            let mut w_at = segment * shape.k * n + column;
            for i in x_at..x_at + shape.k {
                let mut weights = [L::splat(0.0); C];
                for c in 0..C {
                    weights[c] = load::<L, PARTIAL>(w, w_at + c * LANES, width);
                }
                for r in 0..R {
                    let factor = L::splat(*x.get_unchecked(r * shape.stride + i));
                    for c in 0..C {
                        sums[r][c] = weights[c].mul_add(factor, sums[r][c]);
                    }
                }
                w_at += n;
            }
        }
        for r in 0..R {
            for c in 0..C {
                store::<L, PARTIAL>(sums[r][c], out, r * n + column + c * LANES, width);
            }
        }
    }
}

/// `out = Σ_g Σᵢ d[g][i] · w[g][i]`, the inner sums each from zero and then added in order, for `GATES` gates
/// whose `w` has `n` rows of `n`: the gradient that a recurrent layer hands to the step before.
///
/// The sums of all gates run side by side: one alone would wait for each of its own additions.
#[inline(always)]
pub(crate) fn multiply_gates<L: Lanes, const GATES: usize>(
    d: &[f32],
    w: &[f32],
    n: usize,
    out: &mut [f32],
) {
    let mut column = 0;
    while L::WIDE && column + 2 * LANES <= n {
        gates_tile::<L, GATES, 2, false>(d, w, n, column, out);
        column += 2 * LANES;
    }
    while column + LANES <= n {
        gates_tile::<L, GATES, 1, false>(d, w, n, column, out);
        column += LANES;
    }
    if column < n {
        gates_tile::<L, GATES, 1, true>(d, w, n, column, out);
    }
}

#[inline(always)]
fn gates_tile<L: Lanes, const GATES: usize, const C: usize, const PARTIAL: bool>(
    d: &[f32],
    w: &[f32],
    n: usize,
    column: usize,
    out: &mut [f32],
) {
    let width = if PARTIAL { n - column } else { C * LANES };
    assert!(d.len() >= GATES * n && w.len() >= GATES * n * n && out.len() >= column + width);
    // SAFETY: the assertion is about the last number of each slice that is touched.
    unsafe {
        let mut sums = [[L::splat(0.0); C]; GATES];
        for i in 0..n {
            for g in 0..GATES {
                let factor = L::splat(*d.get_unchecked(g * n + i));
                for c in 0..C {
                    let weights =
                        load::<L, PARTIAL>(w, (g * n + i) * n + column + c * LANES, width);
                    sums[g][c] = weights.mul_add(factor, sums[g][c]);
                }
            }
        }
        for c in 0..C {
            let mut total = sums[0][c];
            for g in 1..GATES {
                total = total.add(sums[g][c]);
            }
            store::<L, PARTIAL>(total, out, column + c * LANES, width);
        }
    }
}

/// What becomes of a weight gradient.
pub(crate) enum Target<'a> {
    /// Added to what is there.
    Add(&'a mut [f32]),
    /// Never stored: the weights take their step, `w = keep · w − step · gradient`.
    Descend {
        weights: &'a mut [f32],
        step: f32,
        keep: f32,
    },
}

impl<'a> Target<'a> {
    /// Cuts it in two.
    pub(crate) fn split_at(self, at: usize) -> (Target<'a>, Target<'a>) {
        match self {
            Target::Add(gradient) => {
                let (a, b) = gradient.split_at_mut(at);
                (Target::Add(a), Target::Add(b))
            }
            Target::Descend {
                weights,
                step,
                keep,
            } => {
                let (a, b) = weights.split_at_mut(at);
                (
                    Target::Descend {
                        weights: a,
                        step,
                        keep,
                    },
                    Target::Descend {
                        weights: b,
                        step,
                        keep,
                    },
                )
            }
        }
    }
}

/// `g[i] += Σᵣ x[r][i] · d[r]`, with `d` of `rows` rows of `n` and the target of `segments · k` rows of `n`.
#[inline(always)]
pub(crate) fn correlate<L: Lanes>(x: &[f32], shape: Rows, d: &[f32], n: usize, target: Target<'_>) {
    match target {
        Target::Add(g) => correlate_into::<L, false>(x, shape, d, n, g, 0.0, 0.0),
        Target::Descend {
            weights,
            step,
            keep,
        } => {
            correlate_into::<L, true>(x, shape, d, n, weights, step, keep);
        }
    }
}

#[inline(always)]
fn correlate_into<L: Lanes, const DESCEND: bool>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    g: &mut [f32],
    step: f32,
    keep: f32,
) {
    if shape.rows == 0 && !DESCEND {
        return;
    }
    for segment in 0..shape.segments {
        let x = &x[segment * shape.segment_stride..];
        let g = &mut g[segment * shape.k * n..][..shape.k * n];
        let mut i = 0;
        while L::WIDE && n <= 2 * LANES && i + 8 <= shape.k {
            correlate_rows::<L, 8, DESCEND>(&x[i..], shape, d, n, &mut g[i * n..], step, keep);
            i += 8;
        }
        while i + 4 <= shape.k {
            correlate_rows::<L, 4, DESCEND>(&x[i..], shape, d, n, &mut g[i * n..], step, keep);
            i += 4;
        }
        if i + 3 <= shape.k {
            correlate_rows::<L, 3, DESCEND>(&x[i..], shape, d, n, &mut g[i * n..], step, keep);
            i += 3;
        }
        while i < shape.k {
            correlate_rows::<L, 1, DESCEND>(&x[i..], shape, d, n, &mut g[i * n..], step, keep);
            i += 1;
        }
    }
}

/// All columns of `R` rows of `g`.
#[inline(always)]
fn correlate_rows<L: Lanes, const R: usize, const DESCEND: bool>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    g: &mut [f32],
    step: f32,
    keep: f32,
) {
    let mut column = 0;
    while L::WIDE && R <= 4 && column + 4 * LANES <= n {
        correlate_tile::<L, R, 4, false, DESCEND>(x, shape, d, n, column, g, step, keep);
        column += 4 * LANES;
    }
    while L::WIDE && column + 2 * LANES <= n {
        correlate_tile::<L, R, 2, false, DESCEND>(x, shape, d, n, column, g, step, keep);
        column += 2 * LANES;
    }
    while column + LANES <= n {
        correlate_tile::<L, R, 1, false, DESCEND>(x, shape, d, n, column, g, step, keep);
        column += LANES;
    }
    if column < n {
        correlate_tile::<L, R, 1, true, DESCEND>(x, shape, d, n, column, g, step, keep);
    }
}

/// `C` vectors of `R` rows of `g` from `column`; with `PARTIAL`, the columns that are left.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn correlate_tile<
    L: Lanes,
    const R: usize,
    const C: usize,
    const PARTIAL: bool,
    const DESCEND: bool,
>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    column: usize,
    g: &mut [f32],
    step: f32,
    keep: f32,
) {
    let width = if PARTIAL { n - column } else { C * LANES };
    let rows = shape.lines * shape.rows;
    if rows > 0 {
        let last = (shape.lines - 1) * shape.line_stride + (shape.rows - 1) * shape.stride;
        assert!(x.len() >= last + R);
        assert!(d.len() >= (rows - 1) * n + column + width);
    }
    assert!(g.len() >= (R - 1) * n + column + width);
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        let mut sums = [[L::splat(0.0); C]; R];
        if !DESCEND {
            for r in 0..R {
                for c in 0..C {
                    sums[r][c] = load::<L, PARTIAL>(g, r * n + column + c * LANES, width);
                }
            }
        }
        let mut d_at = column;
        for line in 0..shape.lines {
            let mut x_at = line * shape.line_stride;
            for _ in 0..shape.rows {
                let mut deltas = [L::splat(0.0); C];
                for c in 0..C {
                    deltas[c] = load::<L, PARTIAL>(d, d_at + c * LANES, width);
                }
                for r in 0..R {
                    let factor = L::splat(*x.get_unchecked(x_at + r));
                    for c in 0..C {
                        sums[r][c] = deltas[c].mul_add(factor, sums[r][c]);
                    }
                }
                d_at += n;
                x_at += shape.stride;
            }
        }
        for r in 0..R {
            for c in 0..C {
                let at = r * n + column + c * LANES;
                let mut value = sums[r][c];
                if DESCEND {
                    let weights = load::<L, PARTIAL>(g, at, width);
                    value = descended(weights, value, step, keep);
                }
                store::<L, PARTIAL>(value, g, at, width);
            }
        }
    }
}

/// `keep · weights − step · gradient`
#[inline(always)]
pub(crate) fn descended<L: Lanes>(weights: L, gradient: L, step: f32, keep: f32) -> L {
    L::splat(-step).mul_add(gradient, weights.mul(L::splat(keep)))
}

/// `sums += Σᵣ d[r]`: bias gradients, rows of numbers in order.
#[inline(always)]
pub(crate) fn add_rows<L: Lanes>(d: &[f32], target: Target<'_>) {
    match target {
        Target::Add(sums) => {
            for row in d.chunks_exact(sums.len()) {
                lanes!(L, sums, [sum, x = row] => sum.add(x));
            }
        }
        Target::Descend {
            weights,
            step,
            keep,
        } => {
            let n = weights.len();
            let mut at = 0;
            while at < n {
                let width = LANES.min(n - at);
                let mut sum = L::splat(0.0);
                for row in d.chunks_exact(n) {
                    sum = sum.add(L::load_some(&row[at..at + width]));
                }
                let weights = &mut weights[at..at + width];
                descended(L::load_some(weights), sum, step, keep).store_some(weights);
                at += width;
            }
        }
    }
}

/// `out[c][r] = x[r][c]`, for `x` of `rows` by `columns`.
pub(crate) fn transpose(level: Level, x: &[f32], rows: usize, columns: usize, out: &mut [f32]) {
    if rows == 1 || columns == 1 {
        out.copy_from_slice(x);
        return;
    }
    level.run(Transpose {
        x,
        rows,
        columns,
        out,
    });
}

struct Transpose<'a> {
    x: &'a [f32],
    rows: usize,
    columns: usize,
    out: &'a mut [f32],
}

impl Kernel for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Transpose {
            x,
            rows,
            columns,
            out,
        } = self;
        let (full_rows, full_columns) = (rows / LANES * LANES, columns / LANES * LANES);
        for c0 in (0..full_columns).step_by(LANES) {
            for r0 in (0..full_rows).step_by(LANES) {
                let mut tile = [L::splat(0.0); LANES];
                for r in 0..LANES {
                    tile[r] = L::load(&x[(r0 + r) * columns + c0..].as_chunks().0[0]);
                }
                let tile = L::transpose(tile);
                for c in 0..LANES {
                    tile[c].store(&mut out[(c0 + c) * rows + r0..].as_chunks_mut().0[0]);
                }
            }
        }
        for c in 0..columns {
            let first = if c < full_columns { full_rows } else { 0 };
            for r in first..rows {
                out[c * rows + r] = x[r * columns + c];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

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
            correlate::<L>(self.x, self.shape, self.out, self.n, Target::Add(self.g));
        }
    }

    #[test]
    fn tiles_give_the_bits_of_the_plain_loop() {
        for seed in 0..200 {
            let mut stream = Key::new(seed).stream();
            let mut draw = |bound| stream.below(bound) as usize + 1;
            let (rows, k, n, segments) = (draw(9), draw(9), draw(160), draw(3));
            let (stride, segment_stride) = (draw(12), draw(20));
            let shape = Rows {
                rows,
                k,
                segments,
                stride,
                segment_stride,
                lines: 1,
                line_stride: 0,
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
        for level in Level::available() {
            transpose(level, &x, 37, 21, &mut once);
            transpose(level, &once, 21, 37, &mut twice);
            assert_eq!(x, twice);
            for (r, row) in x.chunks(21).enumerate() {
                assert!((0..21).all(|c| once[c * 37 + r] == row[c]));
            }
        }
    }
}
