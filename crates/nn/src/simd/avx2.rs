//! Sixteen lanes in two AVX2 registers.
//!
//! Soundness: every intrinsic here needs AVX2 or FMA and touches only its arguments, an
//! array, or memory that the caller of `read` and `write` vouches for. [`Pair`] is private to this module and only [`run`] hands it to a kernel,
//! and `run` is called only where the CPU was found to have the instructions.

use super::{Kernel, LANES, Lanes, Vector};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
struct Pair(__m256, __m256);

/// Runs a kernel compiled for AVX2 with FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Pair>()
}

// SAFETY of all blocks below: see the module's first paragraph.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Pair {
    const WIDTH: usize = LANES;

    #[inline(always)]
    unsafe fn read(from: *const f32) -> Self {
        unsafe { Pair(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32) {
        unsafe {
            _mm256_storeu_ps(to, self.0);
            _mm256_storeu_ps(to.add(8), self.1);
        }
    }

    #[inline(always)]
    fn load_some(x: &[f32]) -> Self {
        let mut lanes = [0.0; LANES];
        lanes[..x.len()].copy_from_slice(x);
        unsafe { Self::read(lanes.as_ptr()) }
    }

    #[inline(always)]
    fn store_some(self, out: &mut [f32]) {
        let mut lanes = [0.0; LANES];
        unsafe { self.write(lanes.as_mut_ptr()) }
        out.copy_from_slice(&lanes[..out.len()]);
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        let v = unsafe { _mm256_set1_ps(x) };
        Pair(v, v)
    }

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        unsafe { Pair(_mm256_add_ps(self.0, b.0), _mm256_add_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        unsafe { Pair(_mm256_mul_ps(self.0, b.0), _mm256_mul_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        unsafe {
            Pair(
                _mm256_fmadd_ps(self.0, b.0, c.0),
                _mm256_fmadd_ps(self.1, b.1, c.1),
            )
        }
    }

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        unsafe { Pair(_mm256_sub_ps(self.0, b.0), _mm256_sub_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        unsafe { Pair(_mm256_max_ps(self.0, b.0), _mm256_max_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn gate(self, value: Self) -> Self {
        unsafe {
            let zero = _mm256_setzero_ps();
            Pair(
                _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0, zero), value.0),
                _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.1, zero), value.1),
            )
        }
    }
}

#[derive(Clone, Copy)]
struct Half(__m256);

// SAFETY of all blocks below: see the module's first paragraph.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Half {
    const WIDTH: usize = 8;

    #[inline(always)]
    unsafe fn read(from: *const f32) -> Self {
        Half(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    fn load_some(x: &[f32]) -> Self {
        let mut lanes = [0.0; 8];
        lanes[..x.len()].copy_from_slice(x);
        unsafe { Self::read(lanes.as_ptr()) }
    }

    #[inline(always)]
    fn store_some(self, out: &mut [f32]) {
        let mut lanes = [0.0; 8];
        unsafe { self.write(lanes.as_mut_ptr()) }
        out.copy_from_slice(&lanes[..out.len()]);
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Half(unsafe { _mm256_set1_ps(x) })
    }

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Half(unsafe { _mm256_add_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Half(unsafe { _mm256_mul_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Half(unsafe { _mm256_fmadd_ps(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Half(unsafe { _mm256_sub_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Half(unsafe { _mm256_max_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn gate(self, value: Self) -> Self {
        let zero = unsafe { _mm256_setzero_ps() };
        Half(unsafe { _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0, zero), value.0) })
    }
}

// SAFETY of all blocks below: see the module's first paragraph.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Pair {
    type Half = Half;
    const WIDE: bool = false;

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        unsafe {
            Pair(
                _mm256_loadu_ps(x.as_ptr()),
                _mm256_loadu_ps(x.as_ptr().add(8)),
            )
        }
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), self.0);
            _mm256_storeu_ps(out.as_mut_ptr().add(8), self.1);
        }
    }

    #[inline(always)]
    fn div(self, b: Self) -> Self {
        unsafe { Pair(_mm256_div_ps(self.0, b.0), _mm256_div_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        unsafe { Pair(_mm256_min_ps(self.0, b.0), _mm256_min_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn pow2_of_low_bits(self) -> Self {
        unsafe {
            let one = _mm256_set1_epi32(0x3f80_0000);
            let low = _mm256_slli_epi32::<23>(_mm256_castps_si256(self.0));
            let high = _mm256_slli_epi32::<23>(_mm256_castps_si256(self.1));
            Pair(
                _mm256_castsi256_ps(_mm256_add_epi32(low, one)),
                _mm256_castsi256_ps(_mm256_add_epi32(high, one)),
            )
        }
    }
}
