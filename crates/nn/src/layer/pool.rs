//! The largest of each window, channel by channel, channels last.

use super::{Backward, Layer};
use crate::kernel::lanes;
use crate::simd::{Kernel, Lanes, Level};

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

    /// Where the pixel (dy, dx) of window `i` begins.
    #[inline(always)]
    fn pixel(&self, i: usize, dy: usize, dx: usize) -> usize {
        let (y, x) = (i / self.across(), i % self.across());
        ((y * self.rows + dy) * self.width + x * self.columns + dx) * self.channels
    }
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
        let Forward {
            pool,
            input,
            output,
        } = self;
        for (i, out) in output.chunks_exact_mut(pool.channels).enumerate() {
            out.copy_from_slice(&input[pool.pixel(i, 0, 0)..][..pool.channels]);
            for dy in 0..pool.rows {
                for dx in 0..pool.columns {
                    lanes!(L, out, [largest, x = &input[pool.pixel(i, dy, dx)..]] => largest.max(x));
                }
            }
        }
    }
}

struct InputGradient<'a> {
    pool: &'a MaxPool,
    input: &'a [f32],
    output: &'a [f32],
    d_left: &'a mut [f32],
    d_input: &'a mut [f32],
}

impl Kernel for InputGradient<'_> {
    type Output = ();

    /// The gradient goes to the first of the largest.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let InputGradient {
            pool,
            input,
            output,
            d_left,
            d_input,
        } = self;
        let n = pool.channels;
        d_input.fill(0.0);
        for i in 0..output.len() / n {
            let largest = &output[i * n..][..n];
            // What is still to be given away; behind the first of the largest, nothing.
            let left = &mut d_left[i * n..][..n];
            for dy in 0..pool.rows {
                for dx in 0..pool.columns {
                    let at = pool.pixel(i, dy, dx);
                    let x = &input[at..][..n];
                    let given = &mut d_input[at..][..n];
                    lanes!(L, given, [_old, x = x, y = largest, d = left] => d.sub(y.sub(x).gate(d)));
                    lanes!(L, left, [d, x = x, y = largest] => y.sub(x).gate(d));
                }
            }
        }
    }
}

impl Layer for MaxPool {
    fn output(&self) -> usize {
        (self.height / self.rows) * self.across() * self.channels
    }

    fn scratch(&self) -> usize {
        self.output()
    }

    fn flops(&self) -> u64 {
        (self.output() * self.rows * self.columns) as u64
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
        let d_left = pass.scratch;
        d_left.copy_from_slice(pass.d_output);
        let (input, output) = (pass.input, pass.tape);
        level.run(InputGradient {
            pool: self,
            input,
            output,
            d_left,
            d_input,
        });
    }
}
