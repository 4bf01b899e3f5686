//! Keyed randomness: a stream of numbers is named, never handed around.
//!
//! A [`Key`] is built from the seed and the words that say what the numbers are for. The same words give the same
//! numbers on every machine, in any order of asking, so any party can recompute what another one drew and a run resumes
//! anywhere.
//!
//! ```
//! use selvedge_nn::random::Key;
//! let key = Key::new(42).with(7);
//! assert_eq!(key.stream().next_u64(), key.stream().next_u64());
//! assert_ne!(key.stream().next_u64(), key.with(0).stream().next_u64());
//! ```

use crate::math;

/// Names one stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u64; 2]);

/// The finaliser of SplitMix64: every input bit reaches every output bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Key {
    /// The root of all keys of one seed.
    pub fn new(seed: u64) -> Self {
        Key([
            mix(seed ^ GOLDEN),
            mix(seed.wrapping_add(GOLDEN).rotate_left(32)),
        ])
    }

    /// The key one word further: words in another order give another key.
    #[must_use]
    pub fn with(self, word: u64) -> Self {
        let Key([a, b]) = self;
        let a = mix(a.wrapping_add(GOLDEN) ^ word.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let b = mix(b.rotate_left(23).wrapping_add(word) ^ a);
        Key([a, b])
    }

    /// The key after all `words`, one by one.
    #[must_use]
    pub fn with_all(self, words: impl IntoIterator<Item = u64>) -> Self {
        words.into_iter().fold(self, Key::with)
    }

    /// The numbers this key names, from the first.
    pub fn stream(self) -> Stream {
        let Key([a, b]) = self;
        Stream([mix(a), mix(b), mix(a ^ GOLDEN), mix(b ^ GOLDEN) | 1])
    }

    /// The key as 32 hexadecimal digits: a fingerprint of the words.
    pub fn hex(self) -> String {
        format!("{:016x}{:016x}", self.0[0], self.0[1])
    }
}

/// Random numbers from one [`Key`]: the xoshiro256++ generator.
#[derive(Clone, Debug)]
pub struct Stream([u64; 4]);

impl Stream {
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound`, exactly (the uneven tail is drawn again).
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "below(0) has no answer");
        let tail = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= tail {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform in [0, 1), a multiple of 2⁻²⁴.
    pub fn uniform(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and variance 1 (the polar method, on our own logarithm).
    pub fn normal(&mut self) -> f32 {
        loop {
            let u = 2.0 * self.uniform_f64() - 1.0;
            let v = 2.0 * self.uniform_f64() - 1.0;
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return (u * (-2.0 * math::ln(s) / s).sqrt()) as f32;
            }
        }
    }

    /// Shuffles a slice (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_another_order_are_another_key() {
        let key = Key::new(1);
        assert_ne!(key.with(1).with(2), key.with(2).with(1));
        assert_ne!(Key::new(1), Key::new(2));
        assert_ne!(key.with(0), key);
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = Key::new(3).stream();
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        // Six standard deviations of a binomial with n = 70,000 and p = 1/7.
        assert!(
            counts.iter().all(|c| c.abs_diff(10_000) < 556),
            "{counts:?}"
        );
    }

    #[test]
    fn normal_has_the_right_moments() {
        let mut stream = Key::new(4).stream();
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| f64::from(stream.normal())).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        let kurtosis = draws.iter().map(|x| x.powi(4)).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.012, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        assert!((kurtosis - 3.0).abs() < 0.15, "{kurtosis}");
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Key::new(5).stream().shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
