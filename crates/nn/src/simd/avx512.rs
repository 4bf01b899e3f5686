//! Sixteen lanes in one AVX-512 register.
//!
//! Soundness: every intrinsic here needs AVX-512F and touches only its arguments, an array, a slice under a mask of its
//! length, or memory that the caller of `read` and `write` vouches for. [`Register`] is private to this module and only
//! [`run`] hands it to a kernel, and `run` is called only where the CPU was found to have the instructions.

use super::avx2::Half;
use super::{Kernel, LANES, Lanes, ROOT_OF_HALF, Vector};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
struct Register(__m512);

/// Runs a kernel compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Register>()
}

// SAFETY of all blocks below: see the module's first paragraph.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Register {
    const WIDTH: usize = LANES;

    #[inline(always)]
    unsafe fn read(from: *const f32) -> Self {
        Register(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Register(unsafe { _mm512_set1_ps(x) })
    }

    #[inline(always)]
    fn load_some(x: &[f32]) -> Self {
        assert!(x.len() <= LANES);
        let mask = ((1u32 << x.len()) - 1) as u16;
        // The mask keeps the load inside the slice: masked-out lanes are not read.
        Register(unsafe { _mm512_maskz_loadu_ps(mask, x.as_ptr()) })
    }

    #[inline(always)]
    fn store_some(self, out: &mut [f32]) {
        assert!(out.len() <= LANES);
        let mask = ((1u32 << out.len()) - 1) as u16;
        // The mask keeps the store inside the slice: masked-out lanes are not written.
        unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), mask, self.0) }
    }

    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Register(unsafe { _mm512_add_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Register(unsafe { _mm512_mul_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Register(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Register(unsafe { _mm512_sub_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Register(unsafe { _mm512_max_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn gate(self, value: Self) -> Self {
        Register(unsafe {
            let positive = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, _mm512_setzero_ps());
            _mm512_maskz_mov_ps(positive, value.0)
        })
    }
}

// SAFETY of all blocks below: see the module's first paragraph.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Register {
    type Half = Half;
    const WIDE: bool = true;

    #[inline(always)]
    fn apart<K: Kernel>(kernel: K) -> K::Output {
        unsafe { run(kernel) }
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        Register(unsafe { _mm512_loadu_ps(x.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn div(self, b: Self) -> Self {
        Register(unsafe { _mm512_div_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Register(unsafe { _mm512_sqrt_ps(self.0) })
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        Register(unsafe { _mm512_min_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn pow2_of_low_bits(self) -> Self {
        Register(unsafe {
            let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(self.0));
            let one = _mm512_set1_epi32(0x3f80_0000);
            _mm512_castsi512_ps(_mm512_add_epi32(exponent, one))
        })
    }

    #[inline(always)]
    fn exponent_and_rest(self) -> (Self, Self) {
        unsafe {
            let bits = _mm512_castps_si512(self.0);
            let above = _mm512_sub_epi32(bits, _mm512_set1_epi32(ROOT_OF_HALF as i32));
            let exponent = _mm512_srai_epi32::<23>(above);
            let rest = _mm512_sub_epi32(bits, _mm512_slli_epi32::<23>(exponent));
            (
                Register(_mm512_cvtepi32_ps(exponent)),
                Register(_mm512_castsi512_ps(rest)),
            )
        }
    }

    #[inline(always)]
    fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        let mut a = [rows[0].0; LANES];
        let mut b = a;
        let mut result = rows;
        unsafe {
            // Pairs of rows interleave, then pairs of pairs: each quarter then holds a turned 4 × 4 block.
            for i in 0..8 {
                a[2 * i] = _mm512_unpacklo_ps(rows[2 * i].0, rows[2 * i + 1].0);
                a[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i].0, rows[2 * i + 1].0);
            }
            for i in 0..4 {
                for half in 0..2 {
                    let low = _mm512_castps_pd(a[4 * i + half]);
                    let high = _mm512_castps_pd(a[4 * i + 2 + half]);
                    b[4 * i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
                    b[4 * i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
                }
            }
            // Then the quarters themselves are turned, as a 4 × 4 matrix.
            for i in 0..4 {
                let even = _mm512_shuffle_f32x4::<0x88>(b[i], b[4 + i]);
                let odd = _mm512_shuffle_f32x4::<0xdd>(b[i], b[4 + i]);
                let even_high = _mm512_shuffle_f32x4::<0x88>(b[8 + i], b[12 + i]);
                let odd_high = _mm512_shuffle_f32x4::<0xdd>(b[8 + i], b[12 + i]);
                result[i].0 = _mm512_shuffle_f32x4::<0x88>(even, even_high);
                result[8 + i].0 = _mm512_shuffle_f32x4::<0xdd>(even, even_high);
                result[4 + i].0 = _mm512_shuffle_f32x4::<0x88>(odd, odd_high);
                result[12 + i].0 = _mm512_shuffle_f32x4::<0xdd>(odd, odd_high);
            }
        }
        result
    }
}
