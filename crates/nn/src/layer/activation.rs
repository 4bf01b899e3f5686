//! Elementwise layers.

use super::{Backward, Layer};
use crate::kernel::lanes;
use crate::math;
use crate::simd::{Kernel, Lanes, Level};

/// max(0, x). The slope at 0 is 0.
#[derive(Debug)]
pub(super) struct Relu(pub usize);

/// tanh x
#[derive(Debug)]
pub(super) struct Tanh(pub usize);

struct ReluForward<'a>(&'a [f32], &'a mut [f32]);

impl Kernel for ReluForward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.1, [_old, x = self.0] => L::splat(0.0).max(x));
    }
}

struct ReluBackward<'a>(&'a [f32], &'a [f32], &'a mut [f32]);

impl Kernel for ReluBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.2, [_old, y = self.0, d = self.1] => y.gate(d));
    }
}

impl Layer for Relu {
    fn output(&self) -> usize {
        self.0
    }

    fn forward(&self, level: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        level.run(ReluForward(input, tape));
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        if let Some(d_input) = pass.d_input {
            level.run(ReluBackward(pass.tape, pass.d_output, d_input));
        }
    }
}

struct TanhForward<'a>(&'a [f32], &'a mut [f32]);

impl Kernel for TanhForward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.1, [_old, x = self.0] => math::tanh(x));
    }
}

struct TanhBackward<'a>(&'a [f32], &'a [f32], &'a mut [f32]);

impl Kernel for TanhBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.2, [_old, y = self.0, d = self.1] => {
            // d·(1 − y²)
            let slope = L::splat(0.0).sub(y).mul_add(y, L::splat(1.0));
            d.mul(slope)
        });
    }
}

impl Layer for Tanh {
    fn output(&self) -> usize {
        self.0
    }

    fn forward(&self, level: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        level.run(TanhForward(input, tape));
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        if let Some(d_input) = pass.d_input {
            level.run(TanhBackward(pass.tape, pass.d_output, d_input));
        }
    }
}
