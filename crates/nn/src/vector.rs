//! Sums and steps over whole parameter slices.

use crate::kernel::{descended, lanes};
use crate::simd::{Kernel, LANES, Lanes, Level};

struct Add<'a>(&'a [f32], &'a mut [f32]);

impl Kernel for Add<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        lanes!(L, self.1, [sum, x = self.0] => sum.add(x));
    }
}

/// `sum += x`
pub fn add(level: Level, x: &[f32], sum: &mut [f32]) {
    level.run(Add(x, sum));
}

struct AddScaled<'a>(f32, &'a [f32], &'a mut [f32]);

impl Kernel for AddScaled<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let factor = L::splat(self.0);
        lanes!(L, self.2, [sum, x = self.1] => factor.mul_add(x, sum));
    }
}

/// `sum += factor · x`, rounded once.
pub fn add_scaled(level: Level, factor: f32, x: &[f32], sum: &mut [f32]) {
    level.run(AddScaled(factor, x, sum));
}

struct AreFinite<'a>(&'a [f32]);

impl Kernel for AreFinite<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<L: Lanes>(self) -> bool {
        let (zero, mut sum) = (L::splat(0.0), L::splat(0.0));
        for x in self.0.chunks(LANES) {
            // 0 · x is 0, but for what is not finite, and NaN stays NaN.
            sum = L::load_some(x).mul_add(zero, sum);
        }
        sum.sum() == 0.0
    }
}

/// Whether all numbers are finite.
pub fn are_finite(level: Level, x: &[f32]) -> bool {
    level.run(AreFinite(x))
}

struct Divide<'a>(&'a mut [f32], f32);

impl Kernel for Divide<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let divisor = L::splat(self.1);
        lanes!(L, self.0, [x] => x.div(divisor));
    }
}

/// `x /= divisor`
pub fn divide(level: Level, x: &mut [f32], divisor: f32) {
    level.run(Divide(x, divisor));
}

struct Descend<'a> {
    params: &'a mut [f32],
    gradient: &'a [f32],
    step: f32,
    keep: f32,
}

impl Kernel for Descend<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (step, keep) = (self.step, self.keep);
        lanes!(L, self.params, [p, g = self.gradient] => descended(p, g, step, keep));
    }
}

/// One step of gradient descent with weight decay: `params = (1 − decay) · params − step · gradient`.
///
/// ```
/// use selvedge_nn::{simd::Level, vector::descend};
/// let mut params = [1.0, 2.0];
/// descend(Level::detect(), &mut params, &[4.0, -4.0], 0.25, 0.0);
/// assert_eq!(params, [0.0, 3.0]);
/// ```
pub fn descend(level: Level, params: &mut [f32], gradient: &[f32], step: f32, decay: f32) {
    level.run(Descend {
        params,
        gradient,
        step,
        keep: 1.0 - decay,
    });
}

/// Sixteen places of some slices at a time: the body gives each of them its new numbers.
macro_rules! update {
    ($L:ident, $n:expr, [$($o:ident = $out:expr),+], $g:ident = $x:expr => $body:block) => {
        for at in (0..$n).step_by(LANES) {
            let places = at..$n.min(at + LANES);
            let $g = $L::load_some(&$x[places.clone()]);
            $(let mut $o = $L::load_some(&$out[places.clone()]);)+
            $body
            $($o.store_some(&mut $out[places.clone()]);)+
        }
    };
}

/// What a gradient becomes before an optimiser sees it: `scale · gradient + decay · params`.
#[derive(Clone, Copy, Debug)]
pub struct Slope<'a> {
    /// A sum over samples.
    pub gradient: &'a [f32],
    /// 1 / how many.
    pub scale: f32,
    /// λ of a regulariser.
    pub decay: f32,
}

impl Slope<'_> {
    #[inline(always)]
    fn of<L: Lanes>(&self, params: L, gradient: L) -> L {
        L::splat(self.scale).mul_add(gradient, params.mul(L::splat(self.decay)))
    }
}

struct Pushed<'a> {
    params: &'a mut [f32],
    velocity: &'a mut [f32],
    slope: Slope<'a>,
    rate: f32,
    momentum: f32,
}

impl Kernel for Pushed<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (rate, momentum) = (L::splat(-self.rate), L::splat(self.momentum));
        let n = self.params.len();
        update!(L, n, [p = self.params, v = self.velocity], g = self.slope.gradient => {
            v = momentum.mul_add(v, self.slope.of(p, g));
            p = rate.mul_add(v, p);
        });
    }
}

/// One step with momentum: `velocity = momentum · velocity + slope`, `params −= rate · velocity`.
///
/// ```
/// use selvedge_nn::{simd::Level, vector::{Slope, push}};
/// let (mut params, mut velocity) = ([1.0], [2.0]);
/// let slope = Slope { gradient: &[3.0], scale: 0.5, decay: 1.0 };
/// push(Level::detect(), (&mut params, &mut velocity), slope, 0.25, 0.5);
/// assert_eq!((params, velocity), ([0.125], [3.5]));
/// ```
pub fn push(
    level: Level,
    (params, velocity): (&mut [f32], &mut [f32]),
    slope: Slope<'_>,
    rate: f32,
    momentum: f32,
) {
    level.run(Pushed {
        params,
        velocity,
        slope,
        rate,
        momentum,
    });
}

/// The numbers of one step of Adam.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// β1 and β2: the shares of the moving averages that a step keeps.
    pub keeps: [f32; 2],
    /// 1 − β1 and 1 − β2.
    pub takes: [f32; 2],
    /// What the moving averages would be of gradients of 1: the corrections of their bias to zero.
    pub ones: [f32; 2],
    /// ε
    pub epsilon: f32,
    /// The learning rate.
    pub rate: f32,
    /// The share of the parameters that a step leaves: below 1 with decoupled weight decay.
    pub keep: f32,
}

struct Adapted<'a> {
    params: &'a mut [f32],
    mean: &'a mut [f32],
    square: &'a mut [f32],
    slope: Slope<'a>,
    step: Adam,
}

impl Kernel for Adapted<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Adam {
            keeps,
            takes,
            ones,
            epsilon,
            rate,
            keep,
        } = self.step;
        let keeps = [L::splat(keeps[0]), L::splat(keeps[1])];
        let takes = [L::splat(takes[0]), L::splat(takes[1])];
        let (step, root) = (L::splat(-(rate / ones[0])), L::splat(1.0 / ones[1].sqrt()));
        let (epsilon, keep) = (L::splat(epsilon), L::splat(keep));
        let n = self.params.len();
        update!(L, n, [p = self.params, m = self.mean, v = self.square], g = self.slope.gradient => {
            let slope = self.slope.of(p, g);
            let taken = takes[1].mul(slope);
            m = keeps[0].mul_add(m, takes[0].mul(slope));
            v = keeps[1].mul_add(v, taken.mul(slope));
            let size = v.sqrt().mul_add(root, epsilon);
            p = step.mul_add(m.div(size), p.mul(keep));
        });
    }
}

/// One step of Adam: the moving averages of the slope and of its square, each divided by what it would be of ones, then
/// `params = keep · params − rate · mean / (√square + ε)`.
pub fn adapt(
    level: Level,
    params: &mut [f32],
    [mean, square]: [&mut [f32]; 2],
    slope: Slope<'_>,
    step: Adam,
) {
    level.run(Adapted {
        params,
        mean,
        square,
        slope,
        step,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    fn numbers(seed: u64, n: usize) -> Vec<f32> {
        let mut stream = Key::new(seed).stream();
        (0..n).map(|_| stream.normal()).collect()
    }

    #[test]
    fn what_is_not_finite_is_seen_anywhere() {
        for level in Level::available() {
            for n in [0, 1, 15, 16, 17, 40] {
                let mut all: Vec<f32> = numbers(3, n).into_iter().map(|x| x * 1e38).collect();
                all.iter_mut()
                    .for_each(|x| *x = x.clamp(-f32::MAX, f32::MAX));
                assert!(are_finite(level, &all), "{n}");
                for at in 0..n {
                    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                        let whole = std::mem::replace(&mut all[at], broken);
                        assert!(!are_finite(level, &all), "{at} of {n}");
                        all[at] = whole;
                    }
                }
            }
        }
    }

    /// Some steps of an optimiser with the same gradients: parameters and memories after them.
    fn after(level: Level, n: usize, adam: bool) -> [Vec<f32>; 3] {
        let (mut params, mut mean, mut square) = (numbers(1, n), vec![0.0; n], vec![0.0; n]);
        let mut ones = [0.0_f32; 2];
        let (keeps, takes) = ([0.9, 0.99], [0.1, 0.01]);
        for step in 0..5 {
            let gradient = numbers(7 + step, n);
            let slope = Slope {
                gradient: &gradient,
                scale: 0.25,
                decay: 0.125,
            };
            if !adam {
                push(level, (&mut params, &mut mean), slope, 0.5, 0.75);
                continue;
            }
            for i in 0..2 {
                ones[i] = keeps[i] * ones[i] + takes[i];
            }
            let numbers = Adam {
                keeps,
                takes,
                ones,
                epsilon: 1e-3,
                rate: 0.05,
                keep: 0.99,
            };
            adapt(level, &mut params, [&mut mean, &mut square], slope, numbers);
        }
        [params, mean, square]
    }

    #[test]
    fn steps_have_the_same_bits_with_every_instruction_set() {
        let bits =
            |of: [Vec<f32>; 3]| of.map(|x| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        for n in [0, 1, 15, 16, 17, 50] {
            for adam in [false, true] {
                let plain = bits(after(Level::PLAIN, n, adam));
                for level in Level::available() {
                    assert_eq!(bits(after(level, n, adam)), plain, "{level:?}, {n}");
                }
            }
        }
    }

    #[test]
    fn steps_are_those_of_the_definitions_in_double_precision() {
        let (n, wide) = (33, |x: &[f32]| {
            x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>()
        });
        for adam in [false, true] {
            let [got, ..] = after(Level::detect(), n, adam);
            let (mut params, mut mean, mut square) =
                (wide(&numbers(1, n)), vec![0.0; n], vec![0.0; n]);
            for step in 0..5 {
                for (i, g) in wide(&numbers(7 + step, n)).into_iter().enumerate() {
                    let slope = 0.25 * g + 0.125 * params[i];
                    if !adam {
                        mean[i] = 0.75 * mean[i] + slope;
                        params[i] -= 0.5 * mean[i];
                        continue;
                    }
                    mean[i] = 0.9 * mean[i] + 0.1 * slope;
                    square[i] = 0.99 * square[i] + 0.01 * slope * slope;
                    // The biases as they are usually stated.
                    let of = |beta: f64| 1.0 - beta.powi(step as i32 + 1);
                    let size = (square[i] / of(0.99)).sqrt() + 1e-3;
                    params[i] = 0.99 * params[i] - 0.05 * (mean[i] / of(0.9)) / size;
                }
            }
            for (got, want) in got.iter().zip(&params) {
                assert!((f64::from(*got) - want).abs() < 2e-6, "{got} {want}");
            }
        }
    }
}
