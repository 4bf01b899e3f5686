//! What the codecs promise: lengths, bits, errors, and that no bytes break them.

#[path = "../common/mod.rs"]
mod common;
mod feedback;
mod frames;
mod values;

use common::stream;
use selvedge_core::codec::{Codec, FrameError};
use selvedge_nn::random::Key;

const LENGTHS: [usize; 11] = [0, 1, 2, 7, 8, 9, 31, 32, 33, 100, 1000];
const LEVELS: [u32; 8] = [2, 3, 16, 33, 100, 128, 256, 65536];

fn codecs() -> Vec<Codec> {
    let lossy = |levels| [Codec::TopK { levels }, Codec::Dither { levels }];
    let lossy = LEVELS.into_iter().flat_map(lossy);
    [Codec::None].into_iter().chain(lossy).collect()
}

/// Finite vectors of every kind there is.
fn finite_vectors(seed: u64, n: usize) -> Vec<Vec<f32>> {
    let mut stream = stream(seed);
    let mut vector = |draw: &mut dyn FnMut(f32) -> f32| -> Vec<f32> {
        (0..n).map(|_| draw(stream.normal())).collect()
    };
    vec![
        vector(&mut |x| x),
        // Many equal magnitudes.
        vector(&mut |x| x.round()),
        vector(&mut |x| x * 1e-40),
        vector(&mut |x| (x * 2e38).clamp(f32::MIN, f32::MAX)),
        vector(&mut |x| if x > 0.0 { f32::MAX } else { f32::MIN }),
        vector(&mut |x| if x > 0.0 { 0.0 } else { -0.0 }),
        vector(&mut |x| if x > 2.0 { x } else { 0.0 }),
        vec![stream.normal(); n],
        vec![f32::MIN; n],
        vec![0.0; n],
    ]
}

/// The same, and such in which some numbers are not finite.
fn vectors(seed: u64, n: usize) -> Vec<Vec<f32>> {
    let mut vectors = finite_vectors(seed, n);
    let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let mut mixed = vectors[0].clone();
    for (i, x) in mixed.iter_mut().enumerate().step_by(3) {
        *x = strange[i / 3 % 3];
    }
    vectors.push(mixed);
    vectors.extend(strange.map(|x| vec![x; n]));
    vectors
}

/// What the lossy codecs make of numbers before anything else.
fn finite(x: f32) -> f32 {
    if x.is_nan() {
        0.0
    } else {
        x.clamp(f32::MIN, f32::MAX)
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn encoded(codec: Codec, key: Key, values: &[f32]) -> Vec<u8> {
    let mut frame = Vec::new();
    codec.encode(key, values, &mut frame);
    frame
}

fn decoded(codec: Codec, key: Key, frame: &[u8], n: usize) -> Result<Vec<f32>, FrameError> {
    let mut out = vec![f32::NAN; n];
    codec.decode(key, frame, &mut out).map(|()| out)
}

/// k, by the definition.
fn kept(levels: u32, n: usize) -> usize {
    ((n as f64 * libm::log2(f64::from(levels)) / 32.0) as usize).max(1)
}

/// D, by the definition.
fn step(levels: u32, values: &[f32]) -> f64 {
    let values = values.iter().map(|x| f64::from(finite(*x)));
    let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| {
        (lo.min(x), hi.max(x))
    });
    (hi - lo) / f64::from(levels - 1)
}
