//! One virtual SIMD width of 16 lanes, the same to the bit on every CPU.
//!
//! ```text
//! AVX-512   one register of 16
//! AVX2+FMA  two registers of 8
//! plain     an array of 16
//! ```
//!
//! A lane never talks to its neighbour: every operation here is one IEEE operation per lane, so the three give the same
//! bits. Arithmetic is written once, generic over [`Lanes`], as a [`Kernel`]; [`Level::run`] picks the instructions.
//!
//! Calling an instruction that a CPU may lack is `unsafe`, here and in the sub-modules. It is sound because a [`Level`]
//! that needs an instruction set can only be had from [`Level::detect`] or [`Level::available`], which ask the CPU
//! first. The only other `unsafe` code of this crate is that of the tiles in `kernel.rs` and `layer/pool.rs`, which
//! assert their bounds once instead of at every number.

// Index loops over const sizes: they unroll into registers, where iterator adapters are calls.
#![allow(clippy::needless_range_loop)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod plain;

/// The bits of √½: so many above it, a number's exponent changes where it crosses √2.
const ROOT_OF_HALF: u32 = 0x3f35_04f3;

/// The number of lanes.
pub const LANES: usize = 16;

/// A few `f32`, operated on lane by lane: what tiles need.
pub trait Vector: Copy {
    /// How many.
    const WIDTH: usize;

    /// The same number in every lane.
    fn splat(x: f32) -> Self;
    /// `WIDTH` numbers from memory.
    ///
    /// # Safety
    /// They are there.
    unsafe fn read(from: *const f32) -> Self;
    /// `WIDTH` numbers to memory.
    ///
    /// # Safety
    /// They may be written.
    unsafe fn write(self, to: *mut f32);
    /// Up to `WIDTH` numbers from memory, zeros after them.
    fn load_some(x: &[f32]) -> Self;
    /// The first `out.len()` lanes to memory.
    fn store_some(self, out: &mut [f32]);
    /// `self + b`
    fn add(self, b: Self) -> Self;
    /// `self * b`
    fn mul(self, b: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `self - b`
    fn sub(self, b: Self) -> Self;
    /// `if self > b { self } else { b }`: `b` where either is NaN.
    fn max(self, b: Self) -> Self;
    /// `if self > 0 { value } else { 0 }`
    fn gate(self, value: Self) -> Self;
}

/// Sixteen `f32`, operated on lane by lane.
pub trait Lanes: Vector {
    /// Eight lanes, for rows that are no wider: half a register costs half the time.
    type Half: Vector;
    /// Whether 32 registers of 16 lanes are there: kernels then work on larger tiles.
    const WIDE: bool;

    /// Runs a kernel from within another, as a function of its own: it is compiled once, however many call it.
    fn apart<K: Kernel>(kernel: K) -> K::Output;
    /// Sixteen numbers from memory.
    fn load(x: &[f32; LANES]) -> Self;
    /// Sixteen numbers to memory.
    fn store(self, out: &mut [f32; LANES]);
    /// `self / b`
    fn div(self, b: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// `if self < b { self } else { b }`: `b` where either is NaN.
    fn min(self, b: Self) -> Self;
    /// 2ⁿ, where n is what adding 1.5·2²³ left in the lowest bits of `self` (see [`crate::math`]).
    fn pow2_of_low_bits(self) -> Self;

    /// (n, m) with `self` = 2ⁿ·m and √½ ≤ m < √2, for positive normal numbers. What it gives for others says nothing.
    fn exponent_and_rest(self) -> (Self, Self);

    /// The sum of all lanes: halves are added until one number is left.
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut numbers = [0.0; LANES];
        self.store(&mut numbers);
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                numbers[i] += numbers[i + width];
            }
        }
        numbers[0]
    }

    /// Lane `c` of result `r` is lane `r` of `rows[c]`.
    #[inline(always)]
    fn transpose(rows: [Self; LANES]) -> [Self; LANES] {
        let mut numbers = [[0.0; LANES]; LANES];
        let mut turned = numbers;
        for r in 0..LANES {
            rows[r].store(&mut numbers[r]);
        }
        let mut result = rows;
        for r in 0..LANES {
            for c in 0..LANES {
                turned[r][c] = numbers[c][r];
            }
            result[r] = Self::load(&turned[r]);
        }
        result
    }
}

/// Arithmetic written once for every width of register.
pub trait Kernel {
    /// What it computes.
    type Output;
    /// The arithmetic. Must be `#[inline(always)]`, as must everything generic over `L` that it calls, and no closure
    /// may touch an `L`: only what is inlined is compiled for the instruction set of the caller.
    fn run<L: Lanes>(self) -> Self::Output;
}

/// The instruction set that kernels use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Level(Set);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Level {
    /// The plain code that runs everywhere.
    pub const PLAIN: Level = Level(Set::Plain);

    /// Every level that this CPU has, fastest first. The last one is [`Level::PLAIN`].
    pub fn available() -> Vec<Level> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                levels.push(Level(Set::Avx512));
            }
            if avx2 {
                levels.push(Level(Set::Avx2));
            }
        }
        levels.push(Level::PLAIN);
        levels
    }

    /// The fastest level that this CPU has.
    pub fn detect() -> Level {
        Level::available().first().copied().unwrap_or(Level::PLAIN)
    }

    /// `avx512`, `avx2` or `plain`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            Set::Plain => "plain",
        }
    }

    /// Runs a kernel with this level's instructions.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: this level exists only where `available` found the CPU to have it.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::run(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::run(kernel) },
            Set::Plain => plain::run(kernel),
        }
    }
}

impl std::fmt::Debug for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    /// Every operation on sixteen triples, as bits.
    struct Everything<'a>(&'a [[f32; LANES]; 3]);

    impl Kernel for Everything<'_> {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run<L: Lanes>(self) -> Vec<u32> {
            let [a, b, c] = self.0;
            let (a, b, c) = (L::load(a), L::load(b), L::load(c));
            let magic = L::splat(12_582_912.0 + 3.0);
            let results = [
                a.add(b),
                a.sub(b),
                a.mul(b),
                a.div(b),
                a.mul_add(b, c),
                a.max(b),
                a.min(b),
                a.gate(b),
                a.sqrt(),
                magic.pow2_of_low_bits(),
                L::load_some(&self.0[0][..5]),
            ];
            let mut bits = Vec::new();
            for r in results {
                let mut out = [0.0; LANES];
                r.store(&mut out);
                bits.extend(out.map(f32::to_bits));
                let mut some = [7.0; 3];
                r.store_some(&mut some);
                bits.extend(some.map(f32::to_bits));
            }
            bits
        }
    }

    #[test]
    fn every_level_gives_the_bits_of_plain_code() {
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e-40,
            f32::MAX,
            f32::MIN_POSITIVE,
        ];
        for seed in 0..500 {
            let mut stream = Key::new(seed).stream();
            let mut number = || match stream.below(4) {
                0 => special[stream.below(special.len() as u64) as usize],
                _ => stream.normal() * 2f32.powi(stream.below(40) as i32 - 20),
            };
            let triples = std::array::from_fn(|_| std::array::from_fn(|_| number()));
            let plain = Level::PLAIN.run(Everything(&triples));
            for level in Level::available() {
                let bits = level.run(Everything(&triples));
                for (i, (x, y)) in bits.iter().zip(&plain).enumerate() {
                    let nan = f32::from_bits(*x).is_nan() && f32::from_bits(*y).is_nan();
                    assert!(
                        nan || x == y,
                        "seed {seed}, {level:?}, result {i}: {x:x} {y:x}"
                    );
                }
            }
        }
    }

    #[test]
    fn comparisons_keep_the_second_where_one_is_nan() {
        for level in Level::available() {
            struct Nans;
            impl Kernel for Nans {
                type Output = [[f32; LANES]; 3];
                #[inline(always)]
                fn run<L: Lanes>(self) -> [[f32; LANES]; 3] {
                    let (nan, one) = (L::splat(f32::NAN), L::splat(1.0));
                    [nan.max(one), one.min(nan), nan.gate(one)].map(|r| {
                        let mut out = [0.0; LANES];
                        r.store(&mut out);
                        out
                    })
                }
            }
            let [max, min, gate] = level.run(Nans);
            assert_eq!(max, [1.0; LANES]);
            assert!(min.iter().all(|x| x.is_nan()));
            assert_eq!(gate, [0.0; LANES]);
        }
    }
}
