//! What is left out comes later.

use crate::common::{for_seeds, stream};
use crate::{codecs, vectors};
use selvedge_core::codec::{Codec, with_feedback};
use selvedge_nn::random::Key;

#[test]
fn feedback_leaves_one_residual_behind() {
    for_seeds(0..10, |seed| {
        for codec in codecs() {
            const N: usize = 200;
            let mut stream = stream(seed);
            let (mut residual, mut sent) = (vec![0.0; N], vec![0.0; N]);
            let (mut meant_sum, mut sent_sum) = (vec![0.0f64; N], vec![0.0f64; N]);
            let (mut frame, mut largest) = (Vec::new(), 0f64);
            for t in 0..300 {
                let values: Vec<f32> = (0..N).map(|_| stream.normal() + 0.1).collect();
                let key = Key::new(seed).with(t);
                sent.copy_from_slice(&values);
                let length = with_feedback(codec, key, &mut sent, &mut residual, &mut frame);
                assert_eq!(length, codec.frame_len(N));
                for i in 0..N {
                    meant_sum[i] += f64::from(values[i]);
                    sent_sum[i] += f64::from(sent[i]);
                    largest = largest.max(f64::from(sent[i].abs()));
                    let missing = meant_sum[i] - sent_sum[i];
                    // Two roundings of f32 in each interval.
                    let bound = (t + 1) as f64 * 2.0 * largest.max(4.0) / (1 << 24) as f64;
                    let error = (missing - f64::from(residual[i])).abs();
                    assert!(error <= bound, "{codec:?} {t}: {missing} {}", residual[i]);
                }
            }
            assert!(codec != Codec::None || residual.iter().all(|r| *r == 0.0));
        }
    });
}

#[test]
fn feedback_stays_finite_when_a_run_diverges() {
    for codec in codecs() {
        let (mut residual, mut frame) = (vec![0.0; 9], Vec::new());
        for t in 0..4 {
            for mut values in vectors(t, 9) {
                with_feedback(codec, Key::new(t), &mut values, &mut residual, &mut frame);
                assert!(
                    residual.iter().all(|r| r.is_finite()),
                    "{codec:?} {residual:?}"
                );
            }
        }
    }
}
