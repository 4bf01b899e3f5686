//! `y = W x + b`. Weights lie input by input, so that lanes run along the outputs; where there are too few outputs for
//! that, output by output.

// Index loops over const sizes: they unroll into registers, where iterator adapters are calls.
#![allow(clippy::needless_range_loop)]

use super::{Backward, Layer};
use crate::Tensor;
use crate::kernel::{self, Start, Target};
use crate::simd::{Kernel, LANES, Lanes, Level};

#[derive(Debug)]
pub(super) struct Linear {
    pub inputs: usize,
    pub out: usize,
}

struct Product<'a> {
    start: Start<'a>,
    weight: &'a [f32],
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for Product<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        kernel::multiply_row::<L>(self.input, self.weight, self.start, self.output);
    }
}

/// The product of narrow layers: lanes run along the inputs.
struct Dots<'a> {
    weight: &'a [f32],
    bias: &'a [f32],
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for Dots<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let out = self.output.len();
        let mut row = 0;
        while row + 4 <= out {
            self.rows::<L, 4>(row);
            row += 4;
        }
        while row < out {
            self.rows::<L, 1>(row);
            row += 1;
        }
    }
}

impl Dots<'_> {
    #[inline(always)]
    fn rows<L: Lanes, const R: usize>(&mut self, first: usize) {
        let k = self.input.len();
        let (inputs, rest) = self.input.as_chunks::<LANES>();
        let mut sums = [L::splat(0.0); R];
        for (i, x) in inputs.iter().enumerate() {
            let x = L::load(x);
            for r in 0..R {
                let w = &self.weight[(first + r) * k + i * LANES..].as_chunks().0[0];
                sums[r] = L::load(w).mul_add(x, sums[r]);
            }
        }
        if !rest.is_empty() {
            let x = L::load_some(rest);
            for r in 0..R {
                let w = &self.weight[(first + r + 1) * k - rest.len()..][..rest.len()];
                sums[r] = L::load_some(w).mul_add(x, sums[r]);
            }
        }
        for r in 0..R {
            self.output[first + r] = self.bias[first + r] + sums[r].sum();
        }
    }
}

struct WeightGradient<'a> {
    narrow: bool,
    input: &'a [f32],
    d_output: &'a [f32],
    target: Target<'a>,
}

impl Kernel for WeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (n, k) = (self.d_output.len(), self.input.len());
        let (weight, bias) = self.target.split_at(k * n);
        let (rows, columns) = if self.narrow {
            (self.d_output, self.input)
        } else {
            (self.input, self.d_output)
        };
        kernel::correlate_row::<L>(rows, columns, weight);
        kernel::add_rows::<L>(self.d_output, bias);
    }
}

impl Linear {
    /// Whether the outputs do not fill the lanes: weights then lie output by output, so that the inputs do.
    fn narrow(&self) -> bool {
        self.out < LANES
    }
}

impl Layer for Linear {
    fn output(&self) -> usize {
        self.out
    }

    fn tensors(&self) -> Vec<Tensor> {
        let strides = if self.narrow() {
            vec![self.inputs, 1]
        } else {
            vec![1, self.out]
        };
        vec![
            Tensor::permuted("weight", vec![self.out, self.inputs], strides),
            Tensor::vector("bias", self.out),
        ]
    }

    fn prepared(&self) -> usize {
        self.inputs * self.out
    }

    fn forward_flops(&self) -> u64 {
        2 * (self.inputs * self.out) as u64
    }

    fn initial_bound(&self) -> f32 {
        1.0 / (self.inputs as f32).sqrt()
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]) {
        let (weight, bias) = params.split_at(self.inputs * self.out);
        if self.narrow() {
            level.run(Dots {
                weight,
                bias,
                input,
                output: tape,
            });
        } else {
            level.run(Product {
                start: Start::Row(bias),
                weight,
                input,
                output: tape,
            });
        }
    }

    fn prepare(&self, level: Level, params: &[f32], prepared: &mut [f32], input_gradient: bool) {
        let weight = &params[..self.inputs * self.out];
        if input_gradient && self.narrow() {
            prepared.copy_from_slice(weight);
        } else if input_gradient {
            kernel::transpose(level, weight, self.inputs, self.out, prepared);
        }
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        if let Some(target) = pass.target {
            level.run(WeightGradient {
                narrow: self.narrow(),
                input: pass.input,
                d_output: pass.d_output,
                target,
            });
        }
        if let Some(d_input) = pass.d_input {
            let (weight, input) = (pass.prepared, pass.d_output);
            level.run(Product {
                start: Start::Zero,
                weight,
                input,
                output: d_input,
            });
        }
    }
}
