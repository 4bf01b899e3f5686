//! Exponentials and logarithms of our own, so that no platform's library decides a bit.
//!
//! The exponential is the usual reduction: eˣ = 2ⁿ·eʳ with n = round(x / ln 2) and |r| ≤ ln 2 / 2, and a polynomial for
//! eʳ − 1. Rounding to n adds and subtracts 1.5·2²³, which leaves n itself in the lowest bits of the sum; that is where
//! [`Lanes::pow2_of_low_bits`] reads it.

use crate::simd::Lanes;

/// 1.5·2²³: adding it rounds to an integer and leaves that integer in the lowest bits.
const ROUND: f32 = 12_582_912.0;
/// eʳ − 1 and the carrier of 2ⁿ, for x = n·ln 2 + r.
#[inline(always)]
fn reduce<L: Lanes>(x: L) -> (L, L) {
    let carrier = x.mul_add(L::splat(std::f32::consts::LOG2_E), L::splat(ROUND));
    let n = carrier.sub(L::splat(ROUND));
    // ln 2 as one number is 2e-9 too large: n times that is nothing beside the polynomial's 1e-7.
    let r = n.mul_add(L::splat(-std::f32::consts::LN_2), x);
    // eʳ − 1 = r + r²·(a₀ + a₁r + a₂r² + a₃r³), the coefficients for the least largest error relative to eʳ. In pairs
    // of terms, which do not wait for each other.
    let square = r.mul(r);
    let low = L::splat(0.166_671_16).mul_add(r, L::splat(0.499_992_3));
    let high = L::splat(0.008_312_501).mul_add(r, L::splat(0.041_890_33));
    let p = high.mul_add(square, low);
    (p.mul_add(square, r), carrier)
}

/// eˣ; x is held to ±87, where the result is still a normal number. NaN stays NaN.
#[inline(always)]
pub fn exp<L: Lanes>(x: L) -> L {
    let x = L::splat(-87.0).max(L::splat(87.0).min(x));
    let (e, carrier) = reduce(x);
    let scale = carrier.pow2_of_low_bits();
    scale.mul_add(e, scale)
}

/// 1 / (1 + e⁻ˣ)
#[inline(always)]
pub fn sigmoid<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    one.div(one.add(exp(L::splat(0.0).sub(x))))
}

/// tanh x = E / (E + 2) with E = e²ˣ − 1, which loses nothing near zero.
#[inline(always)]
pub fn tanh<L: Lanes>(x: L) -> L {
    // Beyond ±10 the result rounds to ±1.
    let x = L::splat(-10.0).max(L::splat(10.0).min(x));
    let (e, carrier) = reduce(x.add(x));
    let scale = carrier.pow2_of_low_bits();
    let minus_one = scale.mul_add(e, scale.sub(L::splat(1.0)));
    minus_one.div(minus_one.add(L::splat(2.0)))
}

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e^−|x|), which neither overflows nor loses anything below zero.
#[inline(always)]
pub fn softplus<L: Lanes>(x: L) -> L {
    let zero = L::splat(0.0);
    let u = exp(zero.sub(x.max(zero.sub(x))));
    // ln(1 + u) = 2·artanh(s) with s = u/(2 + u), at most 1/3: a short series in s².
    let s = u.div(u.add(L::splat(2.0)));
    let s2 = s.mul(s);
    let low = L::splat(0.200_108_5).mul_add(s2, L::splat(0.333_332_06));
    let high = L::splat(0.140_122_31).mul_add(s2, L::splat(0.139_995_7));
    let series = high.mul_add(s2.mul(s2), low).mul(s2);
    let twice = s.add(s);
    zero.max(x).add(twice.mul_add(series, twice))
}

/// ln x of positive normal numbers: n·ln 2 + ln m for x = 2ⁿ·m. NaN where x is infinite or NaN.
#[inline(always)]
pub fn log<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let (n, m) = x.exponent_and_rest();
    // ln m = 2·artanh(s) with s = (m − 1)/(m + 1), |s| ≤ 0.172.
    let s = m.sub(one).div(m.add(one));
    let s2 = s.mul(s);
    let series = L::splat(0.149_358_64).mul_add(s2, L::splat(0.199_887_7));
    let series = series.mul_add(s2, L::splat(0.333_333_88)).mul(s2);
    let twice = s.add(s);
    let of_rest = twice.mul_add(series, twice);
    // Nothing that is finite, and NaN of everything else, whose bits have no exponent.
    let finite = x.sub(x);
    n.mul_add(L::splat(std::f32::consts::LN_2), of_rest)
        .add(finite)
}

/// Φ(x), the share of a standard normal distribution below x: (1 + erf(x/√2)) / 2. Within 1e-7, and below zero never
/// negative.
#[inline(always)]
pub fn normal_share<L: Lanes>(x: L) -> L {
    // Φ(−a) = e^(−a·q(a)) / 2 with a smooth q. Beyond 6, where Φ is 1e-9, q stays: the tail goes on to zero.
    let a = x.max(L::splat(0.0).sub(x));
    let near = L::splat(6.0).min(a);
    let mut q = L::splat(-2.451_443_2e-7);
    for coefficient in [
        5.166_1e-6,
        -4.419_449e-5,
        1.756_070_1e-4,
        2.285_129_3e-5,
        -4.833_155e-3,
        3.635_834_5e-2,
        3.183_052e-1,
        7.978_849e-1,
    ] {
        q = q.mul_add(near, L::splat(coefficient));
    }
    let tail = L::splat(0.5).mul(exp(L::splat(0.0).sub(a.mul(q))));
    // 1 − tail above zero, tail elsewhere, without a branch.
    x.gate(L::splat(1.0).sub(tail.add(tail))).add(tail)
}

/// The density of a standard normal distribution at x, the slope of [`normal_share`].
#[inline(always)]
pub fn normal_density<L: Lanes>(x: L) -> L {
    L::splat(0.398_942_3).mul(exp(x.mul(x).mul(L::splat(-0.5))))
}

/// The slope of the sigmoid where its value is `y`: y·(1 − y)
#[inline(always)]
pub fn sigmoid_slope<L: Lanes>(y: L) -> L {
    y.mul(L::splat(1.0).sub(y))
}

/// The slope of tanh where its value is `y`: 1 − y²
#[inline(always)]
pub fn tanh_slope<L: Lanes>(y: L) -> L {
    L::splat(1.0).sub(y.mul(y))
}

/// The natural logarithm, within a few units in the last place. Infinite at 0 and at infinity, NaN below 0.
pub fn ln(x: f64) -> f64 {
    if !x.is_finite() || x <= 0.0 {
        return if x == 0.0 {
            f64::NEG_INFINITY
        } else if x > 0.0 {
            x
        } else {
            f64::NAN
        };
    }
    // Subnormal numbers are lifted into the normal range first.
    let (x, lifted) = if x < f64::MIN_POSITIVE {
        (x * (1u64 << 54) as f64, 54)
    } else {
        (x, 0)
    };
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) as i64 - 1023 - lifted) as f64;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 1.0f64.to_bits());
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1.0;
    }
    // ln m = 2·artanh(s) with s = (m − 1)/(m + 1), |s| ≤ 0.172: the series ends below 1 ulp at s²¹.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let s2 = s * s;
    let mut series = 0.0;
    for k in (0..=10).rev() {
        series = series * s2 + 1.0 / f64::from(2 * k + 1);
    }
    exponent * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Kernel, LANES, Level};

    struct Apply(fn(f32) -> f32, [f32; LANES]);
    #[derive(Clone, Copy)]
    enum Function {
        Exp,
        Sigmoid,
        Tanh,
        Softplus,
        NormalShare,
        NormalDensity,
        Log,
    }

    const ALL: [Function; 6] = [
        Function::Exp,
        Function::Sigmoid,
        Function::Tanh,
        Function::Softplus,
        Function::NormalShare,
        Function::NormalDensity,
    ];
    struct Evaluate(Function, [f32; LANES]);

    impl Kernel for Evaluate {
        type Output = [f32; LANES];
        #[inline(always)]
        fn run<L: Lanes>(self) -> [f32; LANES] {
            let x = L::load(&self.1);
            let y = match self.0 {
                Function::Exp => exp(x),
                Function::Sigmoid => sigmoid(x),
                Function::Tanh => tanh(x),
                Function::Softplus => softplus(x),
                Function::NormalShare => normal_share(x),
                Function::NormalDensity => normal_density(x),
                Function::Log => log(x),
            };
            let mut out = [0.0; LANES];
            y.store(&mut out);
            out
        }
    }

    impl Apply {
        fn all(self) -> [f32; LANES] {
            self.1.map(self.0)
        }
    }

    /// Points every 1/1024 in ±40 and every 1/65536 in ±1, sixteen at a time.
    fn points() -> impl Iterator<Item = [f32; LANES]> {
        let coarse = (-40 * 64..40 * 64).map(|i| (i as f32 / 64.0, 1.0 / 1024.0));
        let fine = (-4096..4096).map(|i| (i as f32 / 4096.0, 1.0 / 65536.0));
        coarse
            .chain(fine)
            .map(|(x, step)| std::array::from_fn(|j| x + j as f32 * step))
    }

    #[test]
    fn within_3e_7_of_the_true_value() {
        for x in points() {
            for (function, truth) in [
                (
                    Function::Sigmoid,
                    (|x: f32| (1.0 / (1.0 + libm::exp(-f64::from(x)))) as f32) as fn(f32) -> f32,
                ),
                (Function::Tanh, |x: f32| libm::tanh(f64::from(x)) as f32),
                (Function::NormalShare, |x: f32| {
                    (libm::erfc(-f64::from(x) * std::f64::consts::FRAC_1_SQRT_2) / 2.0) as f32
                }),
                (Function::NormalDensity, |x: f32| {
                    let x = f64::from(x);
                    (libm::exp(-x * x / 2.0) * std::f64::consts::FRAC_1_SQRT_2
                        / std::f64::consts::PI.sqrt()) as f32
                }),
            ] {
                let ours = Level::detect().run(Evaluate(function, x));
                let truth = Apply(truth, x).all();
                for i in 0..LANES {
                    assert!(
                        (ours[i] - truth[i]).abs() <= 3e-7,
                        "{} {} {}",
                        x[i],
                        ours[i],
                        truth[i]
                    );
                }
            }
            // Far below zero too, these lose no digits.
            for (function, truth) in [
                (Function::Exp, libm::exp as fn(f64) -> f64),
                (Function::Softplus, |x| {
                    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
                }),
            ] {
                let ours = Level::detect().run(Evaluate(function, x));
                for i in 0..LANES {
                    let truth = truth(f64::from(x[i]));
                    let relative = (f64::from(ours[i]) - truth).abs() / truth;
                    assert!(relative < 3e-7, "{} {} {truth}", x[i], ours[i]);
                }
            }
        }
    }

    #[test]
    fn tanh_keeps_its_relative_precision_near_zero() {
        for i in 1..=16 {
            let x = [10f32.powi(-i); LANES];
            let ours = Level::detect().run(Evaluate(Function::Tanh, x))[0];
            assert!(
                (ours / libm::tanhf(x[0]) - 1.0).abs() < 4e-7,
                "{} {ours}",
                x[0]
            );
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        for x in points().step_by(7) {
            for function in ALL {
                let plain = Level::PLAIN.run(Evaluate(function, x)).map(f32::to_bits);
                for level in Level::available() {
                    assert_eq!(
                        level.run(Evaluate(function, x)).map(f32::to_bits),
                        plain,
                        "{x:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn extremes_stay_finite_and_nan_stays_nan() {
        for level in Level::available() {
            for (x, sigmoid, tanh) in [(1e30, 1.0, 1.0), (f32::NEG_INFINITY, 0.0, -1.0)] {
                assert!(
                    (level.run(Evaluate(Function::Sigmoid, [x; LANES]))[0] - sigmoid).abs() < 1e-30
                );
                assert_eq!(level.run(Evaluate(Function::Tanh, [x; LANES]))[0], tanh);
                let at = |function| level.run(Evaluate(function, [x; LANES]))[0];
                assert_eq!(at(Function::NormalShare).max(1e-30), sigmoid.max(1e-30));
                assert_eq!(at(Function::Softplus).max(1e-30), x.max(1e-30));
            }
            assert!(level.run(Evaluate(Function::Exp, [-1e9; LANES]))[0] > 0.0);
            for function in ALL {
                assert!(level.run(Evaluate(function, [f32::NAN; LANES]))[0].is_nan());
            }
        }
    }

    /// Where it is near zero too, it loses no digits.
    #[test]
    fn log_is_within_3e_7_of_the_true_value_at_every_level() {
        // Every exponent, with steps that are no powers of two; and close to 1 on both sides.
        let all = (0..253 * 16).map(|i| f32::from_bits((1 << 23) + i * 0x7_ffed));
        let near = (0..256).map(|i| 1.0 + (i as f32 - 128.0) * 1e-4);
        let points: Vec<f32> = all.chain(near).collect();
        for x in points.as_chunks().0 {
            let plain = Level::PLAIN.run(Evaluate(Function::Log, *x));
            for level in Level::available() {
                let ours = level.run(Evaluate(Function::Log, *x));
                assert_eq!(ours.map(f32::to_bits), plain.map(f32::to_bits), "{x:?}");
            }
            for (x, ours) in x.iter().zip(plain) {
                let truth = libm::log(f64::from(*x));
                let error = (f64::from(ours) - truth).abs();
                assert!(error <= 3e-7 * truth.abs(), "{x} {ours} {truth}");
            }
        }
        for x in [f32::INFINITY, f32::NAN, f32::NEG_INFINITY] {
            for level in Level::available() {
                let ours = level.run(Evaluate(Function::Log, [x; LANES]));
                assert!(ours.iter().all(|y| y.is_nan()), "{x} {ours:?}");
            }
        }
    }

    #[test]
    fn ln_agrees_with_the_platform() {
        for i in 1..200_000 {
            let x = f64::from(i) * 1.37e-3;
            assert!(
                (ln(x) - libm::log(x)).abs() <= 4e-16 * libm::log(x).abs().max(1.0),
                "{x}"
            );
        }
        for x in [1e-310, 1e-300, f64::MAX, 1.0, 2.0] {
            assert!(
                (ln(x) - libm::log(x)).abs() <= 1e-15 * libm::log(x).abs(),
                "{x}"
            );
        }
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
        assert_eq!(ln(f64::INFINITY), f64::INFINITY);
        assert!(ln(-1.0).is_nan() && ln(f64::NAN).is_nan());
    }
}
