//! Lanes as an array: the definition that the other levels are tested against.

use super::{Kernel, LANES, Lanes, ROOT_OF_HALF, Vector};

/// Runs a kernel compiled for any CPU.
#[inline(never)]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Plain<LANES>>()
}

#[derive(Clone, Copy)]
pub(super) struct Plain<const N: usize>([f32; N]);

#[inline(always)]
fn each<const N: usize>(f: impl Fn(usize) -> f32) -> Plain<N> {
    Plain(std::array::from_fn(f))
}

impl<const N: usize> Vector for Plain<N> {
    const WIDTH: usize = N;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Plain([x; N])
    }

    #[inline(always)]
    unsafe fn read(from: *const f32) -> Self {
        // SAFETY: `N` numbers are there, by the trait's contract.
        Plain(unsafe { from.cast::<[f32; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32) {
        // SAFETY: `N` numbers may be written, by the trait's contract.
        unsafe { to.cast::<[f32; N]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    fn load_some(x: &[f32]) -> Self {
        let mut lanes = [0.0; N];
        lanes[..x.len()].copy_from_slice(x);
        Plain(lanes)
    }

    #[inline(always)]
    fn store_some(self, out: &mut [f32]) {
        out.copy_from_slice(&self.0[..out.len()]);
    }

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        each(|i| self.0[i] + b.0[i])
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        each(|i| self.0[i] * b.0[i])
    }

    // Without the instruction it is a call for each lane; sixteen of them in every place would take long to compile.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn mul_add(self, b: Self, c: Self) -> Self {
        each(|i| self.0[i].mul_add(b.0[i], c.0[i]))
    }

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        each(|i| self.0[i] - b.0[i])
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
    fn gate(self, value: Self) -> Self {
        each(|i| if self.0[i] > 0.0 { value.0[i] } else { 0.0 })
    }
}

impl Lanes for Plain<LANES> {
    type Half = Plain<8>;
    const WIDE: bool = false;

    #[inline(always)]
    fn apart<K: Kernel>(kernel: K) -> K::Output {
        run(kernel)
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
    fn div(self, b: Self) -> Self {
        each(|i| self.0[i] / b.0[i])
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        each(|i| self.0[i].sqrt())
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
    fn pow2_of_low_bits(self) -> Self {
        each(|i| f32::from_bits((self.0[i].to_bits() << 23).wrapping_add(1.0f32.to_bits())))
    }

    #[inline(always)]
    fn exponent_and_rest(self) -> (Self, Self) {
        let exponent = |i: usize| self.0[i].to_bits().wrapping_sub(ROOT_OF_HALF) as i32 >> 23;
        let rest = |i: usize| self.0[i].to_bits().wrapping_sub((exponent(i) as u32) << 23);
        (
            each(|i| exponent(i) as f32),
            each(|i| f32::from_bits(rest(i))),
        )
    }
}
