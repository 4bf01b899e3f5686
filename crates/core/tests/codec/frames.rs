//! Names, lengths and bytes, and bytes that no sender writes.

use crate::common::{for_seeds, stream};
use crate::{LENGTHS, LEVELS, bits, codecs, decoded, encoded, finite_vectors, kept, vectors};
use selvedge_core::codec::{Codec, FrameError};
use selvedge_nn::random::Key;

#[test]
fn names_are_read_again_and_others_refused() {
    for codec in codecs() {
        assert_eq!(Codec::parse(&codec.name()), Ok(codec));
    }
    let wrong = [
        "",
        "None",
        " none",
        "none:2",
        "top-k",
        "top-k:",
        "top-k:1",
        "top-k:0",
        "top-k:65537",
        "top-k:+8",
        "top-k:08",
        "top-k:-8",
        "top-k:8.0",
        "top-k:8 ",
        "topk:8",
        "dither:",
        "dither",
        "dither:99999999999999999999",
        "dither:16:2",
        ":",
        ":16",
    ];
    for text in wrong {
        let error = Codec::parse(text).expect_err(text);
        assert!(error.contains(&format!("`{text}`")), "{error}");
        assert!(
            error.contains("top-k:128") || error.contains("dither:16"),
            "{error}"
        );
    }
}

#[test]
fn frames_are_as_long_as_they_say_and_come_back() {
    for_seeds(0..20, |seed| {
        for n in LENGTHS {
            for values in vectors(seed, n) {
                for codec in codecs() {
                    let key = Key::new(seed).with(n as u64);
                    let frame = encoded(codec, key, &values);
                    assert_eq!(frame.len(), codec.frame_len(n), "{codec:?} of {n}");
                    let out = decoded(codec, key, &frame, n).unwrap();
                    assert!(codec == Codec::None || out.iter().all(|x| x.is_finite()));

                    let (mut scratch, mut in_place) = (vec![1, 2, 3], values.clone());
                    let length = codec.round_trip(key, &mut in_place, &mut scratch);
                    assert_eq!((length, bits(&in_place)), (frame.len(), bits(&out)));

                    let mut behind = vec![9; 3];
                    codec.encode(key, &values, &mut behind);
                    assert_eq!((&behind[..3], &behind[3..]), (&[9; 3][..], &frame[..]));
                }
            }
        }
    });
}

#[test]
fn lengths_are_the_formulas() {
    for n in LENGTHS.into_iter().filter(|n| *n > 0) {
        assert_eq!(Codec::None.frame_len(n), 4 * n);
        assert_eq!(Codec::None.paper_bits(n), 32 * n as u64);
        for levels in LEVELS {
            let (top_k, dither) = (Codec::TopK { levels }, Codec::Dither { levels });
            let k = kept(levels, n);
            assert_eq!(top_k.frame_len(n), (4 * k + n.div_ceil(8)).min(8 * k));
            let code = libm::log2(f64::from(levels)).ceil() as usize;
            assert_eq!(dither.frame_len(n), 8 + (n * code).div_ceil(8));
            let paper = (n as f64 * libm::log2(f64::from(levels))).round() as u64;
            assert_eq!([top_k, dither].map(|c| c.paper_bits(n)), [paper; 2]);
        }
    }
    assert!(
        codecs()
            .iter()
            .all(|c| c.frame_len(0) == 0 && c.paper_bits(0) == 0)
    );
    // Levels that cannot be named count as the nearest that can.
    for (levels, nearest) in [(0, 2), (1, 2), (65537, 65536), (u32::MAX, 65536)] {
        let (a, b) = (Codec::Dither { levels }, Codec::Dither { levels: nearest });
        assert_eq!(a.frame_len(100), b.frame_len(100));
        assert_eq!(
            encoded(a, Key::new(1), &[1.0, 2.0]),
            encoded(b, Key::new(1), &[1.0, 2.0])
        );
    }
}

#[test]
fn no_flipped_bit_and_no_cut_does_harm() {
    for_seeds(0..3, |seed| {
        for n in [1, 2, 7, 8, 9, 33, 100] {
            for codec in codecs() {
                let key = Key::new(seed);
                let frame = encoded(codec, key, &finite_vectors(seed, n)[0]);
                for bit in 0..8 * frame.len() {
                    let mut flipped = frame.clone();
                    flipped[bit / 8] ^= 1 << (bit % 8);
                    if let Ok(out) = decoded(codec, key, &flipped, n) {
                        let lossy = codec != Codec::None;
                        assert!(
                            !lossy || out.iter().all(|x| x.is_finite()),
                            "{codec:?} {bit}"
                        );
                    }
                }
                let longer = [&frame[..], &[0]].concat();
                for wrong in (0..frame.len())
                    .map(|end| &frame[..end])
                    .chain([&longer[..]])
                {
                    let (found, expected) = (wrong.len(), frame.len());
                    let error = FrameError::Length { found, expected };
                    assert_eq!(decoded(codec, key, wrong, n), Err(error));
                }
            }
        }
    });
    let key = Key::new(1);
    for codec in codecs() {
        assert_eq!(decoded(codec, key, &[], 0), Ok(vec![]));
        assert!(decoded(codec, key, &[0], 0).is_err());
    }
}

#[test]
fn structures_that_no_sender_writes_are_refused() {
    let top_k = |levels| Codec::TopK { levels };
    let refused = |codec: Codec, n: usize, frame: &[&[u8]]| {
        decoded(codec, Key::new(1), &frame.concat(), n).unwrap_err()
    };
    let (one, not) = (1f32.to_le_bytes(), f32::NAN.to_le_bytes());
    // Five numbers, of which two are kept, in a bitmap.
    let n = 5;
    let kept = |found| FrameError::Kept { found, expected: 2 };
    assert_eq!(refused(top_k(65536), n, &[&[0b00001], &one, &one]), kept(1));
    assert_eq!(refused(top_k(65536), n, &[&[0b10101], &one, &one]), kept(3));
    let padding = FrameError::Padding {
        byte: 0b100001,
        used: 5,
    };
    assert_eq!(
        refused(top_k(65536), n, &[&[0b100001], &one, &one]),
        padding
    );
    let error = refused(top_k(65536), n, &[&[0b10001], &one, &not]);
    assert_eq!(
        error.to_string(),
        "kept number 1 is NaN: expected a finite number"
    );

    // 66 numbers, of which two are kept, as indices.
    let index = |i: u32| i.to_le_bytes();
    let indices = |a, b| refused(top_k(2), 66, &[&index(a), &index(b), &one, &one]);
    assert_eq!(
        indices(3, 3),
        FrameError::Order {
            index: 3,
            previous: 3
        }
    );
    assert_eq!(
        indices(4, 3),
        FrameError::Order {
            index: 3,
            previous: 4
        }
    );
    assert_eq!(
        indices(4, 66),
        FrameError::Index {
            index: 66,
            numbers: 66
        }
    );
    assert_eq!(
        indices(u32::MAX, 1),
        FrameError::Index {
            index: u32::MAX,
            numbers: 66
        }
    );
    let right = [index(4), index(65), one, one].concat();
    let out = decoded(top_k(2), Key::new(1), &right, 66).unwrap();
    assert_eq!((out[4], out[65], out.iter().sum::<f32>()), (1.0, 1.0, 2.0));

    // Three numbers in three levels, two bits each.
    let dither = Codec::Dither { levels: 3 };
    for (lo, hi) in [
        (1.0, 0.5),
        (f32::NAN, 1.0),
        (0.0, f32::NAN),
        (0.0, f32::INFINITY),
    ] {
        let error = refused(dither, 3, &[&lo.to_le_bytes(), &hi.to_le_bytes(), &[0]]);
        assert!(matches!(error, FrameError::Range { .. }), "{error}");
    }
    let zero = 0f32.to_le_bytes();
    let code = FrameError::Code {
        position: 2,
        code: 3,
        levels: 3,
    };
    assert_eq!(refused(dither, 3, &[&zero, &one, &[0b110110]]), code);
    let padding = FrameError::Padding {
        byte: 0b1000000,
        used: 6,
    };
    assert_eq!(refused(dither, 3, &[&zero, &one, &[0b1000000]]), padding);
}

#[test]
fn room_is_used_again() {
    let mut stream = stream(9);
    let values: Vec<f32> = (0..5000).map(|_| stream.normal()).collect();
    for codec in codecs() {
        let (mut frame, mut sent) = (Vec::new(), values.clone());
        codec.round_trip(Key::new(0), &mut sent, &mut frame);
        let (room, place) = (frame.capacity(), frame.as_ptr());
        for t in 1..10 {
            sent.copy_from_slice(&values);
            codec.round_trip(Key::new(t), &mut sent, &mut frame);
        }
        assert_eq!((frame.capacity(), frame.as_ptr()), (room, place));
    }
}

/// Frames by hand: these bytes may never change.
#[test]
fn bytes_of_top_k() {
    let frame = encoded(
        Codec::TopK { levels: 65536 },
        Key::new(1),
        &[0.5, -3.0, 0.25, 2.0],
    );
    assert_eq!(frame, [0b1010, 0, 0, 0x40, 0xc0, 0, 0, 0, 0x40]);
    // The first of equal ones, and a bit in the second byte.
    let values = [0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 4.0, 1.0];
    let frame = encoded(Codec::TopK { levels: 512 }, Key::new(1), &values);
    assert_eq!(frame, [0b10, 0b1, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x40]);
    // Of 33 numbers one is kept, and an index is shorter than a bitmap.
    let mut values = [0.25; 33];
    values[20] = 1.5;
    let frame = encoded(Codec::TopK { levels: 2 }, Key::new(1), &values);
    assert_eq!(frame, [20, 0, 0, 0, 0, 0, 0xc0, 0x3f]);
}

/// Numbers on the steps have their own codes whatever the dither; others were computed by a program of its own, in
/// another language.
#[test]
fn bytes_of_the_dither() {
    let on_steps = [0.0, 1.0, 2.0, 3.0, 1.0];
    for key in 0..100 {
        let frame = encoded(Codec::Dither { levels: 4 }, Key::new(key), &on_steps);
        assert_eq!(frame, [0, 0, 0, 0, 0, 0, 0x40, 0x40, 0b11_10_01_00, 0b01]);
    }
    let constant = encoded(Codec::Dither { levels: 16 }, Key::new(1), &[2.0; 3]);
    assert_eq!(constant, [0, 0, 0, 0x40, 0, 0, 0, 0x40, 0, 0]);

    let values = [0.1, -0.7, 0.33, 1.25, -0.05, 0.8, 0.45, -1.0, 0.6, 0.9];
    let bounds = [0, 0, 0x80, 0xbf, 0, 0, 0xa0, 0x3f];
    let check = |levels, seed, codes: &[u8], expected: [u32; 10]| {
        let (codec, key) = (Codec::Dither { levels }, Key::new(seed));
        let frame = encoded(codec, key, &values);
        assert_eq!(frame, [&bounds[..], codes].concat());
        assert_eq!(bits(&decoded(codec, key, &frame, 10).unwrap()), expected);
    };
    check(
        5,
        42,
        &[0xca, 0x98, 0x09, 0x1b],
        [
            0x3e1ffce0, 0xbf05c4f8, 0x3f146fb8, 0x3fbbb97c, 0xbe37e4a0, 0x3f724668, 0x3ec52390,
            0xbf5246a8, 0x3ee15470, 0x3f3e61d8,
        ],
    );
    check(
        100,
        7,
        &[0x30, 0x87, 0x6e, 0xac, 0x7a, 0x02, 0x01, 0xc7, 0x29],
        [
            0x3dc1c9e9, 0xbf312a8f, 0x3ea78540, 0x3fa01930, 0xbd67e946, 0x3f4a1f7d, 0x3ee9b59d,
            0xbf7e915a, 0x3f1c64e6, 0x3f64912c,
        ],
    );
}
