//! The largest of each window, channel by channel, channels last.

use super::{Backward, Layer};
use crate::simd::Level;

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
    /// The first numbers of each window's pixels, in order.
    fn window(&self, y: usize, x: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows).flat_map(move |dy| {
            (0..self.columns).map(move |dx| {
                ((y * self.rows + dy) * self.width + x * self.columns + dx) * self.channels
            })
        })
    }

    fn windows(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.height / self.rows)
            .flat_map(|y| (0..self.width / self.columns).map(move |x| (y, x)))
    }
}

impl Layer for MaxPool {
    fn output(&self) -> usize {
        (self.height / self.rows) * (self.width / self.columns) * self.channels
    }

    fn flops(&self) -> u64 {
        (self.output() * self.rows * self.columns) as u64
    }

    fn forward(&self, _: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        for ((y, x), out) in self.windows().zip(tape.chunks_exact_mut(self.channels)) {
            out.fill(f32::NEG_INFINITY);
            for at in self.window(y, x) {
                for (out, &value) in out.iter_mut().zip(&input[at..at + self.channels]) {
                    // Negated so that a NaN goes through instead of vanishing.
                    #[allow(clippy::neg_cmp_op_on_partial_ord)]
                    if !(value <= *out) {
                        *out = value;
                    }
                }
            }
        }
    }

    /// The gradient goes to the first of the largest.
    fn backward(&self, _: Level, pass: Backward<'_>) {
        let Some(d_input) = pass.d_input else { return };
        d_input.fill(0.0);
        for (i, (y, x)) in self.windows().enumerate() {
            for c in 0..self.channels {
                let largest = pass.tape[i * self.channels + c];
                if let Some(at) = self.window(y, x).find(|at| pass.input[at + c] == largest) {
                    d_input[at + c] = pass.d_output[i * self.channels + c];
                }
            }
        }
    }
}
