//! What a machine can do at most, for comparison: computing without memory, and memory without computing. Here, because
//! this crate is always optimised.

use crate::simd::{Kernel, LANES, Lanes, Level};
use std::hint::black_box;

/// Chains of multiply-adds that no memory and no latency holds back: as many as the registers hold.
struct Peak(u32);

/// Chains where 32 registers of 16 lanes are there, and where there are 16 of 8.
const fn chains(wide: bool) -> usize {
    if wide { 12 } else { 6 }
}

impl Kernel for Peak {
    /// How many multiply-adds were done on a lane, and a number that depends on them all.
    type Output = (usize, f32);
    #[inline(always)]
    fn run<L: Lanes>(self) -> (usize, f32) {
        let chains = chains(L::WIDE);
        // Different numbers in every lane of every chain, all of them used: else a compiler would leave some out.
        let mut start = [0.0; LANES];
        for (i, x) in start.iter_mut().enumerate() {
            *x = i as f32;
        }
        let mut sums = [L::load(black_box(&start)); 12];
        let sums = &mut sums[..chains];
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = sum.add(L::splat(black_box(i as f32)));
        }
        let (a, b) = (L::splat(black_box(0.999)), L::splat(black_box(0.001)));
        for _ in 0..self.0 {
            for sum in sums.iter_mut() {
                *sum = sum.mul_add(a, b);
            }
        }
        let mut total = sums[0];
        for sum in &sums[1..] {
            total = total.add(*sum);
        }
        let mut out = [0.0; LANES];
        total.store(&mut out);
        (chains, out.iter().sum())
    }
}

/// Does multiply-adds in a row, `rounds` of them in each chain; gives how many operations they are.
pub fn multiply_adds(level: Level, rounds: u32) -> u64 {
    let (chains, _) = black_box(level.run(Peak(rounds)));
    u64::from(rounds) * (chains * LANES * 2) as u64
}

/// Computes c = a + 3b.
pub fn triad(a: &[f32], b: &[f32], c: &mut [f32]) {
    for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
        *c = a + 3.0 * b;
    }
    black_box(c);
}
