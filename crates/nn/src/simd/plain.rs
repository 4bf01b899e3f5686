//! Sixteen lanes as an array: the definition that the other levels are tested against.

use super::{LANES, Lanes};

#[derive(Clone, Copy)]
pub(super) struct Plain([f32; LANES]);

#[inline(always)]
fn each(f: impl Fn(usize) -> f32) -> Plain {
    Plain(std::array::from_fn(f))
}

impl Lanes for Plain {
    const WIDE: bool = false;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Plain([x; LANES])
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        Plain(*x)
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        *out = self.0;
    }

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        each(|i| self.0[i] + b.0[i])
    }

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        each(|i| self.0[i] - b.0[i])
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        each(|i| self.0[i] * b.0[i])
    }

    #[inline(always)]
    fn div(self, b: Self) -> Self {
        each(|i| self.0[i] / b.0[i])
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        each(|i| self.0[i].mul_add(b.0[i], c.0[i]))
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        each(|i| {
            if self.0[i] > b.0[i] {
                self.0[i]
            } else {
                b.0[i]
            }
        })
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        each(|i| {
            if self.0[i] < b.0[i] {
                self.0[i]
            } else {
                b.0[i]
            }
        })
    }

    #[inline(always)]
    fn gate(self, value: Self) -> Self {
        each(|i| if self.0[i] > 0.0 { value.0[i] } else { 0.0 })
    }

    #[inline(always)]
    fn pow2_of_low_bits(self) -> Self {
        each(|i| f32::from_bits((self.0[i].to_bits() << 23).wrapping_add(1.0f32.to_bits())))
    }
}
