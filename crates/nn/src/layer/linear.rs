//! `y = W x + b`. Weights lie input by input, so that lanes run along the outputs.

use super::{Backward, Layer};
use crate::Tensor;
use crate::kernel::{self, Rows, Start, Target};
use crate::simd::{Kernel, Lanes, Level};

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
        let n = self.output.len();
        kernel::multiply::<L>(
            self.input,
            Rows::dense(1, self.input.len()),
            self.weight,
            n,
            self.start,
            self.output,
        );
    }
}

struct WeightGradient<'a> {
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
        kernel::correlate::<L>(self.input, Rows::dense(1, k), self.d_output, n, weight);
        kernel::add_rows::<L>(self.d_output, bias);
    }
}

impl Layer for Linear {
    fn output(&self) -> usize {
        self.out
    }

    fn tensors(&self) -> Vec<Tensor> {
        vec![
            Tensor::permuted("weight", vec![self.out, self.inputs], vec![1, self.out]),
            Tensor::vector("bias", self.out),
        ]
    }

    fn prepared(&self) -> usize {
        self.inputs * self.out
    }

    fn flops(&self) -> u64 {
        2 * (self.inputs * self.out) as u64
    }

    fn initial_bound(&self) -> f32 {
        1.0 / (self.inputs as f32).sqrt()
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]) {
        let (weight, bias) = params.split_at(self.inputs * self.out);
        level.run(Product {
            start: Start::Row(bias),
            weight,
            input,
            output: tape,
        });
    }

    fn prepare(&self, level: Level, params: &[f32], prepared: &mut [f32], input_gradient: bool) {
        if input_gradient {
            kernel::transpose(
                level,
                &params[..self.inputs * self.out],
                self.inputs,
                self.out,
                prepared,
            );
        }
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        if let Some(target) = pass.target {
            level.run(WeightGradient {
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
