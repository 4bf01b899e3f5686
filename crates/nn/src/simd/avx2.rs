//! Eight lanes in one AVX2 register, sixteen in two.
//!
//! Soundness: every intrinsic here needs AVX2 or FMA and touches only its arguments, an array, a slice under a mask of
//! its length, or memory that the caller of `read` and `write` vouches for. [`Half`] and [`Pair`] are known to the
//! modules of AVX2 and AVX-512 only, which hand them to a kernel in their `run` only, and `run` is called only where
//! the CPU was found to have the instructions.

use super::{Kernel, LANES, Lanes, ROOT_OF_HALF, Vector};
use std::arch::x86_64::*;

/// Runs a kernel compiled for AVX2 with FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Pair>()
}

/// Eight lanes.
#[derive(Clone, Copy)]
pub(super) struct Half(__m256);

/// All bits in the first `len` lanes, none in the others.
#[inline(always)]
fn mask(len: usize) -> __m256i {
    static BITS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let window = &BITS[8 - len..][..8];
    // SAFETY: the window has eight numbers; for the instruction see the module's first paragraph.
    unsafe { _mm256_loadu_si256(window.as_ptr().cast()) }
}

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
        // The mask keeps the load inside the slice: masked-out lanes are not read.
        Half(unsafe { _mm256_maskload_ps(x.as_ptr(), mask(x.len())) })
    }

    #[inline(always)]
    fn store_some(self, out: &mut [f32]) {
        // The mask keeps the store inside the slice: masked-out lanes are not written.
        unsafe { _mm256_maskstore_ps(out.as_mut_ptr(), mask(out.len()), self.0) }
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

impl Half {
    #[inline(always)]
    fn exponent_and_rest(self) -> (Self, Self) {
        // SAFETY: see the module's first paragraph.
        unsafe {
            let bits = _mm256_castps_si256(self.0);
            let above = _mm256_sub_epi32(bits, _mm256_set1_epi32(ROOT_OF_HALF as i32));
            let exponent = _mm256_srai_epi32::<23>(above);
            let rest = _mm256_sub_epi32(bits, _mm256_slli_epi32::<23>(exponent));
            (
                Half(_mm256_cvtepi32_ps(exponent)),
                Half(_mm256_castsi256_ps(rest)),
            )
        }
    }
}

/// Sixteen lanes.
#[derive(Clone, Copy)]
struct Pair(Half, Half);

// SAFETY of all blocks below: what the halves ask for is what is asked of the pair.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Pair {
    const WIDTH: usize = LANES;

    #[inline(always)]
    unsafe fn read(from: *const f32) -> Self {
        unsafe { Pair(Half::read(from), Half::read(from.add(8))) }
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32) {
        unsafe {
            self.0.write(to);
            self.1.write(to.add(8));
        }
    }

    #[inline(always)]
    fn load_some(x: &[f32]) -> Self {
        let (low, high) = x.split_at(x.len().min(8));
        Pair(Half::load_some(low), Half::load_some(high))
    }

    #[inline(always)]
    fn store_some(self, out: &mut [f32]) {
        let (low, high) = out.split_at_mut(out.len().min(8));
        self.0.store_some(low);
        self.1.store_some(high);
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Pair(Half::splat(x), Half::splat(x))
    }

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Pair(self.0.add(b.0), self.1.add(b.1))
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Pair(self.0.mul(b.0), self.1.mul(b.1))
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Pair(self.0.mul_add(b.0, c.0), self.1.mul_add(b.1, c.1))
    }

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Pair(self.0.sub(b.0), self.1.sub(b.1))
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Pair(self.0.max(b.0), self.1.max(b.1))
    }

    #[inline(always)]
    fn gate(self, value: Self) -> Self {
        Pair(self.0.gate(value.0), self.1.gate(value.1))
    }
}

/// Turns a block of eight rows of eight.
#[inline(always)]
fn turn(rows: [__m256; 8]) -> [__m256; 8] {
    let mut a = rows;
    let mut b = rows;
    // SAFETY: see the module's first paragraph.
    unsafe {
        // Pairs of rows interleave, then pairs of pairs: each quarter then holds a turned 4 × 4 block.
        for i in 0..4 {
            a[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
            a[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
        }
        for i in 0..2 {
            for half in 0..2 {
                let (low, high) = (a[4 * i + half], a[4 * i + 2 + half]);
                b[4 * i + 2 * half] = _mm256_shuffle_ps::<0x44>(low, high);
                b[4 * i + 2 * half + 1] = _mm256_shuffle_ps::<0xee>(low, high);
            }
        }
        for i in 0..4 {
            a[i] = _mm256_permute2f128_ps::<0x20>(b[i], b[4 + i]);
            a[4 + i] = _mm256_permute2f128_ps::<0x31>(b[i], b[4 + i]);
        }
    }
    a
}

// SAFETY of all blocks below: see the module's first paragraph.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Pair {
    type Half = Half;
    const WIDE: bool = false;

    #[inline(always)]
    fn apart<K: Kernel>(kernel: K) -> K::Output {
        unsafe { run(kernel) }
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        unsafe { Self::read(x.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        unsafe { self.write(out.as_mut_ptr()) }
    }

    #[inline(always)]
    fn div(self, b: Self) -> Self {
        unsafe {
            Pair(
                Half(_mm256_div_ps(self.0.0, b.0.0)),
                Half(_mm256_div_ps(self.1.0, b.1.0)),
            )
        }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        unsafe {
            Pair(
                Half(_mm256_sqrt_ps(self.0.0)),
                Half(_mm256_sqrt_ps(self.1.0)),
            )
        }
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        unsafe {
            Pair(
                Half(_mm256_min_ps(self.0.0, b.0.0)),
                Half(_mm256_min_ps(self.1.0, b.1.0)),
            )
        }
    }

    #[inline(always)]
    fn pow2_of_low_bits(self) -> Self {
        unsafe {
            let one = _mm256_set1_epi32(0x3f80_0000);
            let low = _mm256_slli_epi32::<23>(_mm256_castps_si256(self.0.0));
            let high = _mm256_slli_epi32::<23>(_mm256_castps_si256(self.1.0));
            Pair(
                Half(_mm256_castsi256_ps(_mm256_add_epi32(low, one))),
                Half(_mm256_castsi256_ps(_mm256_add_epi32(high, one))),
            )
        }
    }

    #[inline(always)]
    fn exponent_and_rest(self) -> (Self, Self) {
        let (low, low_rest) = self.0.exponent_and_rest();
        let (high, high_rest) = self.1.exponent_and_rest();
        (Pair(low, high), Pair(low_rest, high_rest))
    }

    #[inline(always)]
    fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        let mut result = rows;
        for upper in [0, 8] {
            let (mut low, mut high) = ([rows[0].0.0; 8], [rows[0].0.0; 8]);
            for r in 0..8 {
                low[r] = rows[upper + r].0.0;
                high[r] = rows[upper + r].1.0;
            }
            let (low, high) = (turn(low), turn(high));
            for r in 0..8 {
                if upper == 0 {
                    result[r].0 = Half(low[r]);
                    result[8 + r].0 = Half(high[r]);
                } else {
                    result[r].1 = Half(low[r]);
                    result[8 + r].1 = Half(high[r]);
                }
            }
        }
        result
    }
}
