//! Logarithms of whole numbers, in whole numbers: floating-point ones may differ between machines in the last bit, and
//! then sender and receiver would disagree about the length of a frame.

/// Bits behind the point of a logarithm.
const FRACTION: u32 = 120;

/// Bits behind the point of a message's size.
const SIZE_FRACTION: u32 = FRACTION - 64;

/// log2 of `levels` in units of 2⁻¹²⁰: exact for powers of two, else less than 2⁻¹¹⁹ too small. What follows from it is
/// exact unless n·log2(levels) is nearer to a whole number than n·2⁻¹¹⁹, and is the same on every machine anyway.
fn log2(levels: u32) -> u128 {
    const ONE: u128 = 1 << 127;
    let whole = levels.ilog2();
    // In [1, 2), in units of 2⁻¹²⁷. Its square is in [1, 4): the next bit is whether it is 2 or more.
    let mut mantissa = u128::from(levels) << (127 - whole);
    let mut result = u128::from(whole);
    for bit in 0..FRACTION {
        if mantissa == ONE {
            return result << (FRACTION - bit);
        }
        let square = upper_half_of_square(mantissa);
        let two_or_more = square >= ONE;
        mantissa = if two_or_more { square } else { square << 1 };
        result = result << 1 | u128::from(two_or_more);
    }
    result
}

/// The upper 128 bits of x², or one less. The loss does not add up: the next square root halves it.
fn upper_half_of_square(x: u128) -> u128 {
    let (high, low) = (x >> 64, x & u128::from(u64::MAX));
    high * high + ((high * low) >> 63)
}

/// n·log2(levels) in units of 2⁻⁵⁶, rounded down.
fn size(levels: u32, n: usize) -> u128 {
    let (log2, n) = (log2(levels), n as u128);
    let (high, low) = (log2 >> 64, log2 & u128::from(u64::MAX));
    n * high + ((n * low) >> 64)
}

/// n·log2(levels), rounded to the nearest.
pub(super) fn rounded_bits(levels: u32, n: usize) -> u64 {
    ((size(levels, n) + (1 << (SIZE_FRACTION - 1))) >> SIZE_FRACTION) as u64
}

/// n·log2(levels)/32, rounded down.
pub(super) fn whole_words(levels: u32, n: usize) -> usize {
    (size(levels, n) >> (SIZE_FRACTION + 5)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole words in bits(levelsⁿ) − 1, by multiplication.
    fn by_multiplication(levels: u32, most: usize, mut check: impl FnMut(usize, usize)) {
        let mut power = vec![1u32];
        for n in 1..=most {
            let mut carry = 0;
            for digit in &mut power {
                carry += u64::from(*digit) * u64::from(levels);
                *digit = carry as u32;
                carry >>= 32;
            }
            if carry > 0 {
                power.push(carry as u32);
            }
            check(n, power.len() - 1);
        }
    }

    #[test]
    fn whole_words_are_those_of_the_power() {
        for levels in [2, 3, 5, 7, 16, 100, 127, 128, 129, 256, 1000, 65535, 65536] {
            by_multiplication(levels, 3000, |n, words| {
                assert_eq!(whole_words(levels, n), words, "{levels}^{n}");
            });
        }
    }

    #[test]
    fn logarithms_are_those_of_others() {
        for levels in 2..=65536 {
            let ours = log2(levels) as f64 / (1u128 << FRACTION) as f64;
            let theirs = libm::log2(f64::from(levels));
            assert!((ours - theirs).abs() < 1e-14, "{levels}: {ours} {theirs}");
        }
        // log2(3), OEIS A020857, to 30 places.
        let expected = 1_584962500721156181453738943947u128;
        let ours = log2(3);
        let whole = ours >> FRACTION;
        let mut fraction = ours & ((1 << FRACTION) - 1);
        let mut digits = whole;
        for _ in 0..30 {
            fraction *= 10;
            digits = digits * 10 + (fraction >> FRACTION);
            fraction &= (1 << FRACTION) - 1;
        }
        assert_eq!(digits, expected);
    }

    #[test]
    fn no_number_of_numbers_overflows() {
        assert_eq!(whole_words(65536, usize::MAX), usize::MAX / 2);
        assert_eq!(rounded_bits(3, 1), 2);
        assert_eq!(rounded_bits(3, 0), 0);
    }
}
