//! The two sums that every layer is made of, in tiles that fit the registers.
//!
//! [`multiply`]: `out[r] += Σᵢ x[r][i] · w[i]` — forward passes, and input gradients with `w` transposed.
//! [`correlate`]: `g[i] += Σᵣ x[r][i] · d[r]` — weight gradients, or the step that they make.
//!
//! Lanes run along a row of `w`, `out`, `d` and `g`; each sum runs in index order (`i`, then segments; rows `r`, then
//! outer rows) starting from what is already there. So the tile's size, like the width of a register, never changes a
//! bit.
//!
//! The tiles read and write without bounds checks, which cost a third of the speed in loops this short. It is sound
//! because each tile first asserts that the last number it will touch is inside its slices; all others lie before.

// Index loops over const sizes: they unroll into registers, where iterator adapters are calls.
#![allow(clippy::needless_range_loop)]

use crate::simd::{Kernel, LANES, Lanes, Level, Vector};

/// `lanes!(L, out, [o, a = x, b = y] => expression)`: `out = expression`, sixteen at a time and then the tail, where
/// `o`, `a` and `b` are the lanes of `out`, `x` and `y`.
///
/// A macro, because a closure is a function of its own: it is compiled without its caller's instruction set, and every
/// operation in it becomes a call.
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

/// Where the rows of `x` lie. A convolution's row is a patch of `segments` stretches, one per line of the kernel
/// window; elsewhere there is one segment.
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

/// One vector of `x` from `at`; with `PARTIAL`, the first `width` lanes of it and zeros.
///
/// # Safety
/// `at` plus the vector's width, or with `PARTIAL` `at + width`, is at most `x.len()`.
#[inline(always)]
pub(crate) unsafe fn load<V: Vector, const PARTIAL: bool>(x: &[f32], at: usize, width: usize) -> V {
    // SAFETY: inside the slice, by this function's own contract.
    unsafe {
        if PARTIAL {
            V::load_some(x.get_unchecked(at..at + width))
        } else {
            V::read(x.as_ptr().add(at))
        }
    }
}

/// Writes what [`load`] reads.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub(crate) unsafe fn store<V: Vector, const PARTIAL: bool>(
    value: V,
    x: &mut [f32],
    at: usize,
    width: usize,
) {
    // SAFETY: inside the slice, by this function's own contract.
    unsafe {
        if PARTIAL {
            value.store_some(x.get_unchecked_mut(at..at + width));
        } else {
            value.write(x.as_mut_ptr().add(at));
        }
    }
}

/// Calls a tile function for the columns that are left: a vector at a time, then half a vector or a part of one. A
/// macro for the reason that `lanes!` is one.
macro_rules! rest_of_columns {
    ($L:ident, $column:ident, $n:expr, $tile:ident $(::<$($parameter:tt),*>)?($($argument:expr),*)) => {
        while $column + $crate::simd::LANES <= $n {
            $tile::<$L, $($($parameter,)*)? 1, false>($($argument,)* $column);
            $column += $crate::simd::LANES;
        }
        match $n - $column {
            0 => {}
            1..8 => $tile::<$L::Half, $($($parameter,)*)? 1, true>($($argument,)* $column),
            8 => $tile::<$L::Half, $($($parameter,)*)? 1, false>($($argument,)* $column),
            _ => $tile::<$L, $($($parameter,)*)? 1, true>($($argument,)* $column),
        }
    };
}

pub(crate) use rest_of_columns;

/// What a sum starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// What is there.
    There,
    /// Zero.
    Zero,
    /// The same row for all.
    Row(&'a [f32]),
}

/// `out[r] = start + Σᵢ x[r][i] · w[i]`, with `w` of `segments · k` rows of `n` and `out` of `rows` rows of `n`.
#[inline(always)]
pub(crate) fn multiply<L: Lanes>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    start: Start<'_>,
    out: &mut [f32],
) {
    L::apart(Multiply {
        x,
        shape,
        w,
        n,
        start,
        out,
    });
}

/// The same of one row.
#[inline(always)]
pub(crate) fn multiply_row<L: Lanes>(x: &[f32], w: &[f32], start: Start<'_>, out: &mut [f32]) {
    multiply_rows_of::<L>(x, Rows::dense(1, x.len()), w, out.len(), start, out);
}

struct Multiply<'a> {
    x: &'a [f32],
    shape: Rows,
    w: &'a [f32],
    n: usize,
    start: Start<'a>,
    out: &'a mut [f32],
}

impl Kernel for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        multiply_rows_of::<L>(self.x, self.shape, self.w, self.n, self.start, self.out);
    }
}

#[inline(always)]
fn multiply_rows_of<L: Lanes>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    start: Start<'_>,
    out: &mut [f32],
) {
    // Where rows are known to lie so far apart, every address is a constant away from one pointer; the rows of a tile
    // have more pointers than there are registers. These are the convolutions of one, eight and sixteen channels.
    macro_rules! narrow {
        ($stride:expr, $n:expr) => {{
            let stride = $stride;
            return multiply_narrow::<L>(x, Rows { stride, ..shape }, w, $n, start, out);
        }};
    }
    match (shape.stride, n) {
        (1, 8) => narrow!(1, 8),
        (8, 16) => narrow!(8, 16),
        (16, 8) => narrow!(16, 8),
        (_, ..=LANES) => narrow!(shape.stride, n),
        _ => {}
    }
    let mut row = 0;
    macro_rules! rows_while {
        ($condition:expr, $rows:literal) => {
            while $condition && row + $rows - 1 < shape.rows {
                let (x, out) = (&x[row * shape.stride..], &mut out[row * n..]);
                multiply_rows::<L, $rows>(x, shape, w, n, start, out);
                row += $rows;
            }
        };
    }
    // Few columns leave registers for more rows, which share the loads of the weights.
    rows_while!(L::WIDE && n <= 2 * LANES, 8);
    rows_while!(true, 4);
    rows_while!(true, 1);
}

/// As many rows of whole vectors fit where registers are few.
const FEW_REGISTERS: usize = 6;

/// Rows of up to one vector. A sum waits for its own last addition, so a tile needs many rows: tiles of up to twelve,
/// all nearly equally high, since a low one takes as long as a high one.
#[inline(always)]
fn multiply_narrow<L: Lanes>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    start: Start<'_>,
    out: &mut [f32],
) {
    let highest = if L::WIDE || n <= LANES / 2 {
        12
    } else {
        FEW_REGISTERS
    };
    let mut tiles = shape.rows.div_ceil(highest);
    let mut row = 0;
    macro_rules! tile_of {
        ($count:expr, $($rows:literal)*) => {
            match $count {
                $($rows => {
                    let (x, out) = (&x[row * shape.stride..], &mut out[row * n..]);
                    let mut column = 0;
                    if L::WIDE || $rows <= FEW_REGISTERS {
                        rest_of_columns!(L, column, n, multiply_tile::<$rows>(x, shape, w, n, start, out));
                    } else if n == LANES / 2 {
                        multiply_tile::<L::Half, $rows, 1, false>(x, shape, w, n, start, out, 0);
                    } else {
                        multiply_tile::<L::Half, $rows, 1, true>(x, shape, w, n, start, out, 0);
                    }
                })*
                _ => unreachable!(),
            }
        };
    }
    while tiles > 0 {
        let count = (shape.rows - row).div_ceil(tiles);
        tile_of!(count, 1 2 3 4 5 6 7 8 9 10 11 12);
        row += count;
        tiles -= 1;
    }
}

/// All columns of `R` rows.
#[inline(always)]
fn multiply_rows<L: Lanes, const R: usize>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    start: Start<'_>,
    out: &mut [f32],
) {
    let mut column = 0;
    // One row alone needs eight sums in flight to hide the latency of a multiply-add.
    while L::WIDE && R == 1 && column + 8 * LANES <= n {
        multiply_tile::<L, R, 8, false>(x, shape, w, n, start, out, column);
        column += 8 * LANES;
    }
    while (L::WIDE && R <= 4 || R == 1) && column + 4 * LANES <= n {
        multiply_tile::<L, R, 4, false>(x, shape, w, n, start, out, column);
        column += 4 * LANES;
    }
    while (L::WIDE || R == 1) && column + 2 * LANES <= n {
        multiply_tile::<L, R, 2, false>(x, shape, w, n, start, out, column);
        column += 2 * LANES;
    }
    rest_of_columns!(L, column, n, multiply_tile::<R>(x, shape, w, n, start, out));
}

/// `C` vectors of `R` rows from `column`; with `PARTIAL`, the columns that are left.
#[inline(always)]
fn multiply_tile<V: Vector, const R: usize, const C: usize, const PARTIAL: bool>(
    x: &[f32],
    shape: Rows,
    w: &[f32],
    n: usize,
    start: Start<'_>,
    out: &mut [f32],
    column: usize,
) {
    let width = if PARTIAL { n - column } else { C * V::WIDTH };
    assert!(shape.k > 0 && shape.segments > 0 && x.len() >= shape.span(R));
    assert!(w.len() >= (shape.segments * shape.k - 1) * n + column + width);
    assert!(out.len() >= (R - 1) * n + column + width);
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        let mut sums = [[V::splat(0.0); C]; R];
        match start {
            Start::Zero => {}
            Start::There => {
                for r in 0..R {
                    for c in 0..C {
                        sums[r][c] = load::<V, PARTIAL>(out, r * n + column + c * V::WIDTH, width);
                    }
                }
            }
            Start::Row(row) => {
                assert!(row.len() >= column + width);
                for c in 0..C {
                    let value = load::<V, PARTIAL>(row, column + c * V::WIDTH, width);
                    for r in 0..R {
                        sums[r][c] = value;
                    }
                }
            }
        }
        for segment in 0..shape.segments {
            let x_at = segment * shape.segment_stride;
            let mut w_at = segment * shape.k * n + column;
            for i in x_at..x_at + shape.k {
                let mut weights = [V::splat(0.0); C];
                for c in 0..C {
                    weights[c] = load::<V, PARTIAL>(w, w_at + c * V::WIDTH, width);
                }
                for r in 0..R {
                    let factor = V::splat(*x.get_unchecked(r * shape.stride + i));
                    for c in 0..C {
                        sums[r][c] = weights[c].mul_add(factor, sums[r][c]);
                    }
                }
                w_at += n;
            }
        }
        for r in 0..R {
            for c in 0..C {
                store::<V, PARTIAL>(sums[r][c], out, r * n + column + c * V::WIDTH, width);
            }
        }
    }
}

/// `out = Σ_g Σᵢ d[g][i] · w[g][i]`, the inner sums each from zero and then added in order, for `GATES` gates whose `w`
/// has `n` rows of `n`: the gradient that a recurrent layer hands to the step before.
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
        gates_tile::<L, GATES, 2, false>(d, w, n, out, column);
        column += 2 * LANES;
    }
    rest_of_columns!(L, column, n, gates_tile::<GATES>(d, w, n, out));
}

#[inline(always)]
fn gates_tile<V: Vector, const GATES: usize, const C: usize, const PARTIAL: bool>(
    d: &[f32],
    w: &[f32],
    n: usize,
    out: &mut [f32],
    column: usize,
) {
    let width = if PARTIAL { n - column } else { C * V::WIDTH };
    assert!(d.len() >= GATES * n && w.len() >= GATES * n * n && column + width <= n);
    assert!(out.len() >= column + width);
    // SAFETY: the assertion is about the last number of each slice that is touched.
    unsafe {
        let mut sums = [[V::splat(0.0); C]; GATES];
        for i in 0..n {
            for g in 0..GATES {
                let factor = V::splat(*d.get_unchecked(g * n + i));
                for c in 0..C {
                    let at = (g * n + i) * n + column + c * V::WIDTH;
                    let weights = load::<V, PARTIAL>(w, at, width);
                    sums[g][c] = weights.mul_add(factor, sums[g][c]);
                }
            }
        }
        for c in 0..C {
            let mut total = sums[0][c];
            for g in 1..GATES {
                total = total.add(sums[g][c]);
            }
            store::<V, PARTIAL>(total, out, column + c * V::WIDTH, width);
        }
    }
}

/// What becomes of a weight gradient.
pub(crate) enum Target<'a> {
    /// Added to what is there.
    Add(&'a mut [f32]),
    /// Never stored: the weights take their step, `w = keep · w − step · gradient`, if `from` is given from there.
    Descend {
        from: Option<&'a [f32]>,
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
                from,
                weights,
                step,
                keep,
            } => {
                let (a, b) = weights.split_at_mut(at);
                let (from_a, from_b) = from.map(|from| from.split_at(at)).unzip();
                (
                    Target::Descend {
                        from: from_a,
                        weights: a,
                        step,
                        keep,
                    },
                    Target::Descend {
                        from: from_b,
                        weights: b,
                        step,
                        keep,
                    },
                )
            }
        }
    }
}

/// A target's numbers, with how they are written, which is known when the code is compiled.
struct Written<'a, const DESCEND: bool> {
    from: Option<&'a [f32]>,
    numbers: &'a mut [f32],
    step: f32,
    keep: f32,
}

/// `g[i] += Σᵣ x[r][i] · d[r]`, with `d` of `lines · rows` rows of `n` and the target of `segments · k` rows of `n`.
#[inline(always)]
pub(crate) fn correlate<L: Lanes>(x: &[f32], shape: Rows, d: &[f32], n: usize, target: Target<'_>) {
    L::apart(Correlate {
        x,
        shape,
        d,
        n,
        target,
    });
}

/// The same of one row.
#[inline(always)]
pub(crate) fn correlate_row<L: Lanes>(x: &[f32], d: &[f32], target: Target<'_>) {
    correlate_here::<L>(x, Rows::dense(1, x.len()), d, d.len(), target);
}

struct Correlate<'a> {
    x: &'a [f32],
    shape: Rows,
    d: &'a [f32],
    n: usize,
    target: Target<'a>,
}

impl Kernel for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        correlate_here::<L>(self.x, self.shape, self.d, self.n, self.target);
    }
}

#[inline(always)]
fn correlate_here<L: Lanes>(x: &[f32], shape: Rows, d: &[f32], n: usize, target: Target<'_>) {
    match target {
        Target::Add(numbers) => {
            let written = Written::<false> {
                from: None,
                numbers,
                step: 0.0,
                keep: 0.0,
            };
            correlate_into::<L, false>(x, shape, d, n, written);
        }
        Target::Descend {
            from,
            weights,
            step,
            keep,
        } => {
            let written = Written::<true> {
                from,
                numbers: weights,
                step,
                keep,
            };
            correlate_into::<L, true>(x, shape, d, n, written);
        }
    }
}

#[inline(always)]
fn correlate_into<L: Lanes, const DESCEND: bool>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    mut target: Written<'_, DESCEND>,
) {
    let taps = shape.segments * shape.k;
    let mut tap = 0;
    // Few columns leave registers for more taps: nine are those of a 3 × 3 window.
    while L::WIDE && n <= LANES && tap + 9 <= taps {
        correlate_taps::<L, 9, DESCEND>(x, shape, d, n, &mut target, tap);
        tap += 9;
    }
    while L::WIDE && n <= 2 * LANES && tap + 8 <= taps {
        correlate_taps::<L, 8, DESCEND>(x, shape, d, n, &mut target, tap);
        tap += 8;
    }
    while tap + 4 <= taps {
        correlate_taps::<L, 4, DESCEND>(x, shape, d, n, &mut target, tap);
        tap += 4;
    }
    while tap < taps {
        correlate_taps::<L, 1, DESCEND>(x, shape, d, n, &mut target, tap);
        tap += 1;
    }
}

/// All columns of `R` taps, that is rows of the target.
#[inline(always)]
fn correlate_taps<L: Lanes, const R: usize, const DESCEND: bool>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    target: &mut Written<'_, DESCEND>,
    tap: usize,
) {
    let mut column = 0;
    while L::WIDE && R <= 4 && column + 4 * LANES <= n {
        correlate_tile::<L, R, DESCEND, 4, false>(x, shape, d, n, target, tap, column);
        column += 4 * LANES;
    }
    while L::WIDE && column + 2 * LANES <= n {
        correlate_tile::<L, R, DESCEND, 2, false>(x, shape, d, n, target, tap, column);
        column += 2 * LANES;
    }
    rest_of_columns!(
        L,
        column,
        n,
        correlate_tile::<R, DESCEND>(x, shape, d, n, target, tap)
    );
}

/// `C` vectors of `R` taps from `column`; with `PARTIAL`, the columns that are left.
#[inline(always)]
fn correlate_tile<
    V: Vector,
    const R: usize,
    const DESCEND: bool,
    const C: usize,
    const PARTIAL: bool,
>(
    x: &[f32],
    shape: Rows,
    d: &[f32],
    n: usize,
    target: &mut Written<'_, DESCEND>,
    tap: usize,
    column: usize,
) {
    let width = if PARTIAL { n - column } else { C * V::WIDTH };
    let mut offsets = [0; R];
    for r in 0..R {
        offsets[r] = (tap + r) / shape.k * shape.segment_stride + (tap + r) % shape.k;
    }
    let rows = shape.lines * shape.rows;
    if rows > 0 {
        let last = (shape.lines - 1) * shape.line_stride + (shape.rows - 1) * shape.stride;
        for r in 0..R {
            assert!(x.len() > last + offsets[r]);
        }
        assert!(d.len() >= (rows - 1) * n + column + width);
    }
    let g = &mut target.numbers[tap * n..];
    let from = target.from.map(|from| &from[tap * n..]);
    let needed = (R - 1) * n + column + width;
    assert!(g.len() >= needed && from.is_none_or(|from| from.len() >= needed));
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        let mut sums = [[V::splat(0.0); C]; R];
        if !DESCEND {
            for r in 0..R {
                for c in 0..C {
                    sums[r][c] = load::<V, PARTIAL>(g, r * n + column + c * V::WIDTH, width);
                }
            }
        }
        let mut d_at = column;
        for line in 0..shape.lines {
            let mut x_at = line * shape.line_stride;
            for _ in 0..shape.rows {
                let mut deltas = [V::splat(0.0); C];
                for c in 0..C {
                    deltas[c] = load::<V, PARTIAL>(d, d_at + c * V::WIDTH, width);
                }
                for r in 0..R {
                    let factor = V::splat(*x.get_unchecked(x_at + offsets[r]));
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
                let at = r * n + column + c * V::WIDTH;
                let mut value = sums[r][c];
                if DESCEND {
                    let weights = load::<V, PARTIAL>(from.unwrap_or(g), at, width);
                    value = descended(weights, value, target.step, target.keep);
                }
                store::<V, PARTIAL>(value, g, at, width);
            }
        }
    }
}

/// `keep · weights − step · gradient`
#[inline(always)]
pub(crate) fn descended<V: Vector>(weights: V, gradient: V, step: f32, keep: f32) -> V {
    V::splat(-step).mul_add(gradient, weights.mul(V::splat(keep)))
}

/// `sums += Σᵣ d[r]`: bias gradients. Every fourth row has a sum of its own, so that four are in flight.
#[inline(always)]
pub(crate) fn add_rows<L: Lanes>(d: &[f32], target: Target<'_>) {
    let (numbers, from, step_and_keep) = match target {
        Target::Add(sums) => (sums, None, None),
        Target::Descend {
            from,
            weights,
            step,
            keep,
        } => (weights, from, Some((step, keep))),
    };
    let n = numbers.len();
    let (fours, rest) = d.split_at(d.len() / (4 * n) * (4 * n));
    for at in (0..n).step_by(LANES) {
        let width = LANES.min(n - at);
        let mut sums = [L::splat(0.0); 4];
        for four in fours.chunks_exact(4 * n) {
            for r in 0..4 {
                sums[r] = sums[r].add(L::load_some(&four[r * n + at..][..width]));
            }
        }
        for (r, row) in rest.chunks_exact(n).enumerate() {
            sums[r] = sums[r].add(L::load_some(&row[at..][..width]));
        }
        let sum = sums[0].add(sums[1]).add(sums[2].add(sums[3]));
        let out = &mut numbers[at..at + width];
        let there = L::load_some(from.map_or(out, |from| &from[at..at + width]));
        let value = match step_and_keep {
            Some((step, keep)) => descended(there, sum, step, keep),
            None => there.add(sum),
        };
        value.store_some(out);
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
        let (x, rows, columns, out) = (self.x, self.rows, self.columns, self.out);
        for c0 in (0..columns).step_by(LANES) {
            for r0 in (0..rows).step_by(LANES) {
                let (from, to) = (&x[r0 * columns + c0..], &mut out[c0 * rows + r0..]);
                let (down, across) = (LANES.min(rows - r0), LANES.min(columns - c0));
                if (down, across) == (LANES, LANES) {
                    turn_tile::<L, false>(from, columns, LANES, to, rows, LANES);
                } else {
                    turn_tile::<L, true>(from, columns, down, to, rows, across);
                }
            }
        }
    }
}

/// Turns `down` rows of `across` numbers; without `PARTIAL`, sixteen of sixteen.
#[inline(always)]
fn turn_tile<L: Lanes, const PARTIAL: bool>(
    x: &[f32],
    columns: usize,
    down: usize,
    out: &mut [f32],
    rows: usize,
    across: usize,
) {
    assert!((1..=LANES).contains(&down) && (1..=LANES).contains(&across));
    assert!(x.len() >= (down - 1) * columns + across);
    assert!(out.len() >= (across - 1) * rows + down);
    let mut tile = [L::splat(0.0); LANES];
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        for r in 0..LANES {
            if !PARTIAL || r < down {
                tile[r] = load::<L, PARTIAL>(x, r * columns, across);
            }
        }
        let tile = L::transpose(tile);
        for c in 0..LANES {
            if !PARTIAL || c < across {
                store::<L, PARTIAL>(tile[c], out, c * rows, down);
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
            multiply::<L>(self.x, self.shape, self.w, self.n, Start::There, self.out);
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
