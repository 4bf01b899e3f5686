//! Elementwise layers.

use super::{Backward, Layer};
use crate::kernel::lanes;
use crate::math;
use crate::simd::{Kernel, Lanes, Level};

/// A function of single numbers.
pub(super) trait Function: Copy + std::fmt::Debug + Send + Sync {
    /// Whether the slope follows from x, not from y = f(x).
    const SLOPE_OF_INPUT: bool = false;
    fn value<L: Lanes>(self, x: L) -> L;
    /// The gradient of x, from that of y: `at` is y, or x if the slope follows from it.
    fn gradient<L: Lanes>(self, at: L, d: L) -> L;
}

/// max(0, x). The slope at 0 is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relu;

impl Function for Relu {
    #[inline(always)]
    fn value<L: Lanes>(self, x: L) -> L {
        L::splat(0.0).max(x)
    }
    #[inline(always)]
    fn gradient<L: Lanes>(self, y: L, d: L) -> L {
        y.gate(d)
    }
}

/// tanh x
#[derive(Clone, Copy, Debug)]
pub(super) struct Tanh;

impl Function for Tanh {
    #[inline(always)]
    fn value<L: Lanes>(self, x: L) -> L {
        math::tanh(x)
    }
    /// d·(1 − y²)
    #[inline(always)]
    fn gradient<L: Lanes>(self, y: L, d: L) -> L {
        let slope = L::splat(0.0).sub(y).mul_add(y, L::splat(1.0));
        d.mul(slope)
    }
}

/// 1 / (1 + e⁻ˣ)
#[derive(Clone, Copy, Debug)]
pub(super) struct Sigmoid;

impl Function for Sigmoid {
    #[inline(always)]
    fn value<L: Lanes>(self, x: L) -> L {
        math::sigmoid(x)
    }
    #[inline(always)]
    fn gradient<L: Lanes>(self, y: L, d: L) -> L {
        d.mul(math::sigmoid_slope(y))
    }
}

/// x · Φ(x)
#[derive(Clone, Copy, Debug)]
pub(super) struct Gelu;

impl Function for Gelu {
    const SLOPE_OF_INPUT: bool = true;
    #[inline(always)]
    fn value<L: Lanes>(self, x: L) -> L {
        x.mul(math::normal_share(x))
    }
    /// d·(Φ(x) + x·φ(x))
    #[inline(always)]
    fn gradient<L: Lanes>(self, x: L, d: L) -> L {
        let slope = x.mul_add(math::normal_density(x), math::normal_share(x));
        d.mul(slope)
    }
}

/// ln(1 + eˣ)
#[derive(Clone, Copy, Debug)]
pub(super) struct Softplus;

impl Function for Softplus {
    /// From y it would be 1 − e⁻ʸ, which loses digits where y is small.
    const SLOPE_OF_INPUT: bool = true;
    #[inline(always)]
    fn value<L: Lanes>(self, x: L) -> L {
        math::softplus(x)
    }
    #[inline(always)]
    fn gradient<L: Lanes>(self, x: L, d: L) -> L {
        d.mul(math::sigmoid(x))
    }
}

/// A function of each of so many numbers.
#[derive(Debug)]
pub(super) struct Elementwise<F>(pub F, pub usize);

struct Forward<'a, F>(F, &'a [f32], &'a mut [f32]);

impl<F: Function> Kernel for Forward<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.2, [_old, x = self.1] => self.0.value(x));
    }
}

struct InputGradient<'a, F>(F, &'a [f32], &'a [f32], &'a mut [f32]);

impl<F: Function> Kernel for InputGradient<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.3, [_old, at = self.1, d = self.2] => self.0.gradient(at, d));
    }
}

impl<F: Function> Layer for Elementwise<F> {
    fn output(&self) -> usize {
        self.1
    }

    fn forward(&self, level: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        level.run(Forward(self.0, input, tape));
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        if let Some(d_input) = pass.d_input {
            let at = if F::SLOPE_OF_INPUT {
                pass.input
            } else {
                pass.tape
            };
            level.run(InputGradient(self.0, at, pass.d_output, d_input));
        }
    }
}
