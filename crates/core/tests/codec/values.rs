//! What the receiver gets.

use crate::common::{for_seeds, stream};
use crate::{LENGTHS, LEVELS, bits, decoded, encoded, finite, kept, step, vectors};
use selvedge_core::codec::Codec;
use selvedge_nn::random::Key;

#[test]
fn none_is_the_identity_to_the_bit() {
    let signalling = f32::from_bits(0x7fa0_0001);
    let values = [
        1.5,
        -0.0,
        f32::NAN,
        signalling,
        f32::NEG_INFINITY,
        f32::from_bits(1),
    ];
    let frame = encoded(Codec::None, Key::new(1), &values);
    assert_eq!(frame, values.map(f32::to_le_bytes).concat());
    let out = decoded(Codec::None, Key::new(2), &frame, 6).unwrap();
    assert_eq!(bits(&out), bits(&values));
}

#[track_caller]
fn assert_largest_are_kept(levels: u32, values: &[f32]) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    // A stable sort: of equal magnitudes the first.
    order.sort_by(|a, b| {
        finite(values[*b])
            .abs()
            .total_cmp(&finite(values[*a]).abs())
    });
    let mut expected = vec![0.0f32; values.len()];
    for i in &order[..kept(levels, values.len())] {
        expected[*i] = finite(values[*i]);
    }
    let codec = Codec::TopK { levels };
    let frame = encoded(codec, Key::new(1), values);
    let out = decoded(codec, Key::new(2), &frame, values.len()).expect("a frame of this codec");
    assert_eq!(bits(&out), bits(&expected), "{levels} {values:?}");
}

#[test]
fn the_largest_are_kept_to_the_bit() {
    for_seeds(0..20, |seed| {
        for n in LENGTHS.into_iter().filter(|n| *n > 0) {
            for values in vectors(seed, n) {
                for levels in LEVELS {
                    assert_largest_are_kept(levels, &values);
                }
            }
        }
    });
    let mut stream = stream(1);
    let many: Vec<f32> = (0..1 << 20).map(|_| stream.normal()).collect();
    assert_largest_are_kept(128, &many);
}

#[test]
fn the_dither_errs_by_half_a_step_at_most() {
    for_seeds(0..20, |seed| {
        for n in LENGTHS.into_iter().filter(|n| *n > 0) {
            for (i, values) in vectors(seed, n).into_iter().enumerate() {
                for levels in LEVELS {
                    let (codec, key) = (Codec::Dither { levels }, Key::new(seed).with(i as u64));
                    let out = decoded(codec, key, &encoded(codec, key, &values), n).unwrap();
                    let step = step(levels, &values);
                    for (x, sent) in values.iter().zip(&out) {
                        let (x, sent) = (f64::from(finite(*x)), f64::from(*sent));
                        // Half a step, the rounding of f64 in steps, and that of the result to f32.
                        let rounding = sent.abs() / (1 << 24) as f64 + f64::from(f32::from_bits(1));
                        let bound = step * (0.5 + 1e-9) + rounding;
                        assert!((sent - x).abs() <= bound, "{levels}: {x} {sent} {step}");
                        assert!(step > 0.0 || sent == x);
                    }
                }
            }
        }
    });
}

/// Over many keys the error is that of a uniform shift: mean 0 and variance D²/12, in six standard deviations.
#[test]
fn the_dither_is_unbiased() {
    const KEYS: u64 = 20_000;
    let values = [-1.0, -0.93, -0.5, 0.0, 0.01, 0.3, 0.77, 0.999, 2.0];
    for levels in [2, 3, 16, 100, 65536] {
        let (codec, step) = (Codec::Dither { levels }, step(levels, &values));
        let mut sums = [[0.0f64; 2]; 9];
        let (mut frame, mut sent) = (Vec::new(), values);
        for key in 0..KEYS {
            sent.copy_from_slice(&values);
            codec.round_trip(Key::new(5).with(key), &mut sent, &mut frame);
            for (sums, (x, sent)) in sums.iter_mut().zip(values.iter().zip(&sent)) {
                let error = f64::from(sent - x) / step;
                *sums = [sums[0] + error, sums[1] + error * error];
            }
        }
        for ([sum, squares], x) in sums.into_iter().zip(values) {
            let n = KEYS as f64;
            // Rounding the result to f32 is seen only with the finest steps.
            let rounding = 2f64.powi(-24) / step;
            let (mean, variance) = (sum / n, squares / n);
            assert!(
                mean.abs() < 6.0 / (12.0 * n).sqrt() + rounding,
                "{levels} {x}: {mean}"
            );
            // The variance of a squared uniform number is 1/180.
            let bound = 6.0 / (180.0 * n).sqrt() + rounding;
            assert!(
                (variance - 1.0 / 12.0).abs() < bound,
                "{levels} {x}: {variance}"
            );
        }
    }
}

#[test]
fn the_dither_of_another_key_is_another() {
    let codec = Codec::Dither { levels: 16 };
    let mut stream = stream(3);
    let values: Vec<f32> = (0..1000).map(|_| stream.normal()).collect();
    let frame = encoded(codec, Key::new(1), &values);
    assert_eq!(frame, encoded(codec, Key::new(1), &values));
    assert_ne!(frame, encoded(codec, Key::new(2), &values));
    let [right, wrong] = [1, 2].map(|key| decoded(codec, Key::new(key), &frame, 1000).unwrap());
    assert!(right.iter().zip(&wrong).filter(|(a, b)| a != b).count() > 990);
}

#[test]
fn numbers_that_are_not_finite_are_replaced() {
    let values = [1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let mut sent = values;
    let codec = Codec::TopK { levels: 65536 };
    codec.round_trip(Key::new(1), &mut sent, &mut Vec::new());
    assert_eq!(sent, [0.0, 0.0, f32::MAX, f32::MIN]);
    let frame = encoded(Codec::Dither { levels: 4 }, Key::new(1), &values);
    assert_eq!(
        frame[..8],
        [f32::MIN.to_le_bytes(), f32::MAX.to_le_bytes()].concat()
    );
    let mut nothing = [f32::NAN; 3];
    Codec::Dither { levels: 4 }.round_trip(Key::new(1), &mut nothing, &mut Vec::new());
    assert_eq!(nothing, [0.0; 3]);
}
