//! The largest of each window, channel by channel, channels last.

use super::{Backward, Layer};
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

// No arithmetic here can round, so the loops over channels are left to the compiler; inside kernels, so that it may
// use what the CPU has.

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
                    let pixel = &input[pool.pixel(i, dy, dx)..][..pool.channels];
                    for (out, &value) in out.iter_mut().zip(pixel) {
                        // A NaN that is there goes through instead of vanishing.
                        *out = if *out >= value || *out != *out {
                            *out
                        } else {
                            value
                        };
                    }
                }
            }
        }
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

    /// The gradient goes to the first of the largest.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let InputGradient {
            pool,
            input,
            output,
            d_output,
            d_input,
        } = self;
        let n = pool.channels;
        d_input.fill(0.0);
        for i in 0..output.len() / n {
            let (largest, d_output) = (&output[i * n..][..n], &d_output[i * n..][..n]);
            for c in 0..n {
                // Once given away, nothing is left for the others.
                let mut left = d_output[c];
                for dy in 0..pool.rows {
                    for dx in 0..pool.columns {
                        let at = pool.pixel(i, dy, dx) + c;
                        let is_largest = input[at] == largest[c];
                        d_input[at] = if is_largest { left } else { 0.0 };
                        left = if is_largest { 0.0 } else { left };
                    }
                }
            }
        }
    }
}

impl Layer for MaxPool {
    fn output(&self) -> usize {
        (self.height / self.rows) * self.across() * self.channels
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
