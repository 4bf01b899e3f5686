//! The largest of each window, channel by channel, channels last.

use super::{Backward, Layer};
use crate::kernel::{load, rest_of_columns, store};
use crate::simd::{Kernel, Lanes, Level, Vector};

/// Windows of `rows` by `columns`, side by side; what does not fill one is left out.
#[derive(Debug)]
pub(super) struct MaxPool {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub rows: usize,
    pub columns: usize,
}

impl MaxPool {
    /// Windows beside each other.
    fn across(&self) -> usize {
        self.width / self.columns
    }

    /// Where the pixel (dy, dx) of the window that begins at `first` begins.
    #[inline(always)]
    fn pixel(&self, first: usize, dy: usize, dx: usize) -> usize {
        first + (dy * self.width + dx) * self.channels
    }

    /// Where the window at (y, x) begins.
    #[inline(always)]
    fn window(&self, y: usize, x: usize) -> usize {
        (y * self.rows * self.width + x * self.columns) * self.channels
    }
}

/// Compiles a call for windows and channels of usual sizes, known there as constants, and for any.
macro_rules! with_known_sizes {
    ($any:ident, $pool:ident => $call:expr) => {
        match ($any.rows, $any.columns, $any.channels) {
            (2, 2, 8) => {
                let $pool = &MaxPool {
                    rows: 2,
                    columns: 2,
                    channels: 8,
                    ..*$any
                };
                $call
            }
            (2, 2, 16) => {
                let $pool = &MaxPool {
                    rows: 2,
                    columns: 2,
                    channels: 16,
                    ..*$any
                };
                $call
            }
            _ => {
                let $pool = $any;
                $call
            }
        }
    };
}

struct Forward<'a> {
    pool: &'a MaxPool,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let any = self.pool;
        with_known_sizes!(any, pool => Self::windows::<L>(pool, self.input, self.output));
    }
}

impl Forward<'_> {
    #[inline(always)]
    fn windows<L: Lanes>(pool: &MaxPool, input: &[f32], output: &mut [f32]) {
        let (down, across) = (pool.height / pool.rows, pool.across());
        for y in 0..down {
            for x in 0..across {
                let (from, to) = (pool.window(y, x), (y * across + x) * pool.channels);
                let mut column = 0;
                rest_of_columns!(
                    L,
                    column,
                    pool.channels,
                    largest_of(pool, from, to, input, output)
                );
            }
        }
    }
}

/// One vector of channels of the window that begins at `from`.
#[inline(always)]
fn largest_of<V: Vector, const C: usize, const PARTIAL: bool>(
    pool: &MaxPool,
    from: usize,
    to: usize,
    input: &[f32],
    output: &mut [f32],
    column: usize,
) {
    let width = if PARTIAL {
        pool.channels - column
    } else {
        V::WIDTH
    };
    let last = pool.pixel(from, pool.rows - 1, pool.columns - 1);
    assert!(input.len() >= last + column + width);
    assert!(output.len() >= to + column + width);
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        let mut largest = load::<V, PARTIAL>(input, from + column, width);
        for dy in 0..pool.rows {
            for dx in 0..pool.columns {
                let x = load::<V, PARTIAL>(input, pool.pixel(from, dy, dx) + column, width);
                largest = largest.max(x);
            }
        }
        store::<V, PARTIAL>(largest, output, to + column, width);
    }
}

struct InputGradient<'a> {
    pool: &'a MaxPool,
    input: &'a [f32],
    output: &'a [f32],
    d_output: &'a [f32],
    d_input: &'a mut [f32],
}

impl Kernel for InputGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let any = self.pool;
        let (input, output, d_output) = (self.input, self.output, self.d_output);
        with_known_sizes!(any, pool => Self::windows::<L>(pool, input, output, d_output, self.d_input));
    }
}

impl InputGradient<'_> {
    #[inline(always)]
    fn windows<L: Lanes>(
        pool: &MaxPool,
        input: &[f32],
        output: &[f32],
        d_output: &[f32],
        d_input: &mut [f32],
    ) {
        // Pixels that fill no window get nothing.
        if !pool.height.is_multiple_of(pool.rows) || !pool.width.is_multiple_of(pool.columns) {
            d_input.fill(0.0);
        }
        let (down, across) = (pool.height / pool.rows, pool.across());
        for y in 0..down {
            for x in 0..across {
                let (to, from) = (pool.window(y, x), (y * across + x) * pool.channels);
                let mut column = 0;
                rest_of_columns!(
                    L,
                    column,
                    pool.channels,
                    hand_back(pool, (from, to), input, output, d_output, d_input)
                );
            }
        }
    }
}

/// One vector of channels of the window that begins at `to`: the gradient goes to the first of the largest.
#[inline(always)]
fn hand_back<V: Vector, const C: usize, const PARTIAL: bool>(
    pool: &MaxPool,
    (from, to): (usize, usize),
    input: &[f32],
    output: &[f32],
    d_output: &[f32],
    d_input: &mut [f32],
    column: usize,
) {
    let width = if PARTIAL {
        pool.channels - column
    } else {
        V::WIDTH
    };
    let last = pool.pixel(to, pool.rows - 1, pool.columns - 1) + column + width;
    let of_window = from + column;
    assert!(input.len() >= last && d_input.len() >= last);
    assert!(output.len() >= of_window + width && d_output.len() >= of_window + width);
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        let largest = load::<V, PARTIAL>(output, of_window, width);
        // What is still to be given away: behind the first of the largest, nothing.
        let mut left = load::<V, PARTIAL>(d_output, of_window, width);
        for dy in 0..pool.rows {
            for dx in 0..pool.columns {
                let at = pool.pixel(to, dy, dx) + column;
                let x = load::<V, PARTIAL>(input, at, width);
                let kept = largest.sub(x).gate(left);
                store::<V, PARTIAL>(left.sub(kept), d_input, at, width);
                left = kept;
            }
        }
    }
}

impl Layer for MaxPool {
    fn output(&self) -> usize {
        (self.height / self.rows) * self.across() * self.channels
    }

    fn forward(&self, level: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        level.run(Forward {
            pool: self,
            input,
            output: tape,
        });
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        let Some(d_input) = pass.d_input else { return };
        let (input, output, d_output) = (pass.input, pass.tape, pass.d_output);
        level.run(InputGradient {
            pool: self,
            input,
            output,
            d_output,
            d_input,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with ties among them.
    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919) % 13) as f32 - 6.0).collect()
    }

    /// Sizes that are compiled apart give what the plain loop gives, gradient included, at every level.
    #[test]
    fn known_sizes_are_pooled_like_any() {
        for (size, channels) in [(2, 8), (2, 16), (2, 3), (2, 20), (3, 8)] {
            let pool = MaxPool {
                height: 7,
                width: 9,
                channels,
                rows: size,
                columns: size,
            };
            let input = numbers(7 * 9 * channels);
            let (down, across) = (7 / size, 9 / size);
            let mut largest = vec![f32::NEG_INFINITY; down * across * channels];
            let mut first = vec![0; largest.len()];
            for (at, x) in input.iter().enumerate() {
                let (pixel, c) = (at / channels, at % channels);
                let (y, x_at) = (pixel / 9 / size, pixel % 9 / size);
                let window = (y * across + x_at) * channels + c;
                if y < down && x_at < across && *x > largest[window] {
                    (largest[window], first[window]) = (*x, at);
                }
            }
            let d_output: Vec<f32> = (1..=largest.len()).map(|i| i as f32).collect();
            let mut wanted = vec![0.0; input.len()];
            for (window, at) in first.iter().enumerate() {
                wanted[*at] = d_output[window];
            }
            for level in Level::available() {
                let mut output = vec![0.0; largest.len()];
                pool.forward(level, &[], &input, &mut output);
                assert_eq!(output, largest, "{size} {channels} {}", level.name());
                let mut d_input = vec![9.0; input.len()];
                level.run(InputGradient {
                    pool: &pool,
                    input: &input,
                    output: &output,
                    d_output: &d_output,
                    d_input: &mut d_input,
                });
                assert_eq!(d_input, wanted, "{size} {channels} {}", level.name());
            }
        }
    }
}
