//! Sums and steps over whole parameter slices.

use crate::kernel::{descended, lanes};
use crate::simd::{Kernel, Lanes, Level};

struct Add<'a>(&'a [f32], &'a mut [f32]);

impl Kernel for Add<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.1, [sum, x = self.0] => sum.add(x));
    }
}

/// `sum += x`
pub fn add(level: Level, x: &[f32], sum: &mut [f32]) {
    level.run(Add(x, sum));
}

struct AddScaled<'a>(f32, &'a [f32], &'a mut [f32]);

impl Kernel for AddScaled<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let factor = L::splat(self.0);
        lanes!(L, self.2, [sum, x = self.1] => factor.mul_add(x, sum));
    }
}

/// `sum += factor · x`, rounded once.
pub fn add_scaled(level: Level, factor: f32, x: &[f32], sum: &mut [f32]) {
    level.run(AddScaled(factor, x, sum));
}

struct Divide<'a>(&'a mut [f32], f32);

impl Kernel for Divide<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let divisor = L::splat(self.1);
        lanes!(L, self.0, [x] => x.div(divisor));
    }
}

/// `x /= divisor`
pub fn divide(level: Level, x: &mut [f32], divisor: f32) {
    level.run(Divide(x, divisor));
}

struct Descend<'a> {
    params: &'a mut [f32],
    gradient: &'a [f32],
    step: f32,
    keep: f32,
}

impl Kernel for Descend<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (step, keep) = (self.step, self.keep);
        lanes!(L, self.params, [p, g = self.gradient] => descended(p, g, step, keep));
    }
}

/// One step of gradient descent with weight decay: `params = (1 − decay) · params − step · gradient`.
///
/// ```
/// use selvedge_nn::{simd::Level, vector::descend};
/// let mut params = [1.0, 2.0];
/// descend(Level::detect(), &mut params, &[4.0, -4.0], 0.25, 0.0);
/// assert_eq!(params, [0.0, 3.0]);
/// ```
pub fn descend(level: Level, params: &mut [f32], gradient: &[f32], step: f32, decay: f32) {
    level.run(Descend {
        params,
        gradient,
        step,
        keep: 1.0 - decay,
    });
}
