//! Messages as bytes: every message comes back to the bit, in one form only, and nothing else is a message. A failure
//! prints the seed that replays it.

mod common;

use common::messages::{KINDS, message};
use common::*;
use selvedge_core::adaptive::Report;
use selvedge_core::calibration::{Calibration, Sums};
use selvedge_core::ledger::{Direction, Kind, Ledger, Link, Payload};
use selvedge_core::local_steps::Descended;
use selvedge_core::objective::Softmax;
use selvedge_core::role::wire::{MOST_CLASSES, VERSION, WireError, decode, encode};
use selvedge_core::role::{About, Counted, Message, Numbers, Portion, Why};
use selvedge_core::schedule::Segment;
use selvedge_core::scores::Scores;
use std::time::{Duration, Instant};

const RUN: u64 = 0x0123_4567_89ab_cdef;

/// Bytes before a message.
const HEAD: usize = 11;

#[test]
fn every_message_comes_back_to_the_bit() {
    for_seeds(0..3000, |seed| {
        let mut stream = stream(seed);
        let message = message(&mut stream, seed % KINDS);
        let bytes = encode(RUN, &message);
        let back = decode(RUN, &bytes).expect("what was encoded");
        assert_eq!(encode(RUN, &back), bytes);
        // What is no number is unlike itself, but says the same.
        assert_eq!(format!("{back:?}"), format!("{message:?}"));
    });
}

#[test]
fn large_messages_come_back_too() {
    let numbers: Vec<f32> = (0..300_000).map(|i| i as f32).collect();
    let rows = vec![Numbers::Dense(numbers[..7].into()); 20_000];
    let all = [
        Message::EdgeModel {
            t: 1,
            theta2: Numbers::Dense(numbers.into()),
            counted: Counted::default(),
        },
        Message::Batch {
            t: 2,
            zeta2: vec![None, Some(rows), None],
        },
        Message::Evaluated {
            number: 3,
            scores: Box::new(Scores::new(&Softmax::new(MOST_CLASSES))),
        },
    ];
    for message in all {
        assert!(decode(RUN, &encode(RUN, &message)) == Ok(message));
    }
}

#[test]
fn every_part_of_the_beginning_is_an_error() {
    for_seeds(0..300, |seed| {
        let message = message(&mut stream(seed), seed % KINDS);
        let bytes = encode(RUN, &message);
        // Of long ones some parts.
        let step = bytes.len().div_ceil(2000).max(1);
        for length in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            let found = decode(RUN, &bytes[..length]);
            let right = match length {
                0..2 => found == Err(WireError::Foreign),
                _ => matches!(found, Err(WireError::Short(_))),
            };
            assert!(right, "{length} of {}: {found:?}", bytes.len());
        }
    });
}

#[test]
fn what_a_changed_byte_says_is_written_so_or_refused() {
    let mut decoded = 0;
    for_seeds(0..300, |seed| {
        let mut stream = stream(seed);
        let message = message(&mut stream, seed % KINDS);
        let mut bytes = encode(RUN, &message);
        let step = bytes.len().div_ceil(500).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let (old, flip) = (bytes[at], 1 + stream.below(255) as u8);
            for new in [old ^ flip, old.wrapping_add(1), old.wrapping_sub(1), 0, 255] {
                bytes[at] = new;
                if let Ok(message) = decode(RUN, &bytes) {
                    assert!(encode(RUN, &message) == bytes, "byte {at} as {new}");
                    decoded += 1;
                }
            }
            bytes[at] = old;
        }
    });
    assert!(replayed().is_some() || decoded > 10_000, "{decoded}");
}

#[test]
fn what_is_not_of_this_version_and_run_says_so() {
    for_seeds(0..KINDS, |seed| {
        let bytes = encode(RUN, &message(&mut stream(seed), seed));
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            decode(RUN, &bytes)
        };
        let also = |more: &[u8]| decode(RUN, &[&bytes, more].concat());
        assert_eq!(with(0, b's'), Err(WireError::Foreign));
        assert_eq!(with(1, 0), Err(WireError::Foreign));
        for version in [0, VERSION + 1, 255] {
            assert_eq!(with(2, version), Err(WireError::Version(version)));
        }
        assert_eq!(decode(RUN + 1, &bytes), Err(WireError::OtherRun(RUN)));
        assert_eq!(
            decode(RUN, &encode(9, &Message::End)),
            Err(WireError::OtherRun(9))
        );
        assert_eq!(also(&[0]), Err(WireError::Long(1)));
        assert_eq!(also(&bytes), Err(WireError::Long(bytes.len())));
        for number in [0, KINDS as u8 + 1, 255] {
            let what = "a message's number";
            let value = u64::from(number);
            assert_eq!(with(HEAD, number), Err(WireError::Value { what, value }));
        }
    });
}

/// A frame of this run with these bytes behind its head.
fn frame(message: &[u8]) -> Vec<u8> {
    let head = encode(RUN, &Message::End);
    [&head[..HEAD], message].concat()
}

#[test]
fn lengths_that_are_not_there_are_refused_at_once() {
    let t = [0; 8];
    let long = u32::MAX.to_le_bytes();
    let most = (u32::MAX >> 2).to_le_bytes();
    let frames = [
        frame(&[&[2][..], &t, &long].concat()),
        frame(&[&[2][..], &t, &[1, 0, 0, 0], &t[..4], &long].concat()),
        frame(&[&[3][..], &t, &long, &[0; 100]].concat()),
        frame(&[&[3][..], &t, &[1, 0, 0, 0], &[1], &long, &[0; 100]].concat()),
        frame(&[&[6][..], &t, &most].concat()),
        frame(&[&[7][..], &t, &[0], &long].concat()),
        frame(&[&[7][..], &t, &[0], &most].concat()),
        frame(&[&[7][..], &t, &[1], &long, &[0; 100]].concat()),
        frame(&[&[9][..], &t, &long].concat()),
        frame(&[&[12][..], &t, &[0], &long].concat()),
    ];
    let start = Instant::now();
    for (number, frame) in frames.iter().cycle().take(10_000).enumerate() {
        let found = decode(RUN, frame);
        assert!(
            matches!(found, Err(WireError::Short(_))),
            "{number}: {found:?}"
        );
    }
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// Scores with these places and counts in the second tally.
fn scores(classes: u32, there: &[(u32, u64)]) -> Vec<u8> {
    let mut out = vec![13];
    out.extend([0; 8]);
    out.extend([0; 32]);
    out.extend([0; 32]);
    out.extend(classes.to_le_bytes());
    out.extend([0; 4]);
    out.extend([0; 32]);
    out.extend(classes.to_le_bytes());
    out.extend((there.len() as u32).to_le_bytes());
    for (place, count) in there {
        out.extend(place.to_le_bytes());
        out.extend(count.to_le_bytes());
    }
    frame(&out)
}

#[test]
fn a_tally_is_written_in_one_way() {
    let last = 2 * 2 * 4096 + 3;
    assert!(decode(RUN, &scores(2, &[])).is_ok());
    assert!(decode(RUN, &scores(2, &[(0, 1), (7, u64::MAX), (last, 2)])).is_ok());
    assert!(decode(RUN, &scores(MOST_CLASSES as u32, &[])).is_ok());
    let wrong: [&[(u32, u64)]; 5] = [
        &[(7, 1), (7, 1)],
        &[(7, 1), (6, 1)],
        &[(0, 1), (7, 0)],
        &[(last + 1, 1)],
        &[(u32::MAX, 1)],
    ];
    for there in wrong {
        let found = decode(RUN, &scores(2, there));
        assert!(
            matches!(found, Err(WireError::Value { .. })),
            "{there:?}: {found:?}"
        );
    }
    let found = decode(RUN, &scores(MOST_CLASSES as u32 + 1, &[]));
    assert!(matches!(found, Err(WireError::Value { .. })));
}

#[test]
fn a_ledgers_lines_are_in_order() {
    let mut ledger = Ledger::default();
    for kind in [Kind::Theta0, Kind::Zeta1] {
        let payload = Payload::dense(3);
        ledger.charge(Link::EdgeCloud, kind, Direction::Up, 1, payload);
    }
    let theta2 = Numbers::Dense([].into());
    let seconds = 0.0;
    let counted = Counted { ledger, seconds };
    let bytes = encode(
        RUN,
        &Message::EdgeModel {
            t: 0,
            theta2,
            counted,
        },
    );
    let line = 3 + 3 * 8;
    let first = bytes.len() - 8 - 2 * line;
    let [one, two] = [first, first + line].map(|at| &bytes[at..at + line]);
    for lines in [[two, one], [one, one]] {
        let other = [&bytes[..first], &lines.concat(), &bytes[bytes.len() - 8..]].concat();
        assert!(matches!(decode(RUN, &other), Err(WireError::Value { .. })));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One small message of each kind, and its bytes behind the head. If this fails, the format has changed: then
/// [`VERSION`] must change too, since parties of two versions could not talk.
#[test]
fn the_format_is_as_it_was() {
    let dense = |values: &[f32]| Numbers::Dense(values.into());
    let correction = || Calibration {
        scale: 0.5,
        bias: vec![2.0],
        each: false,
    };
    let coded = |bytes: &[u8]| Numbers::Frame(bytes.into());
    let segment = Segment {
        start: 4,
        global_interval: 6,
        local_interval: 2,
        learning_rate: 0.5,
        halve_every: Some(9),
    };
    let mut ledger = Ledger::default();
    ledger.charge(
        Link::DeviceEdge,
        Kind::Zeta2,
        Direction::Up,
        3,
        Payload::dense(5),
    );
    let mut scores = Scores::new(&Softmax::new(2));
    scores.training.add(0.5);
    scores.training.add(f64::INFINITY);
    scores.test.losses.add(-1.0);
    scores.test.tally.add(&[0.25, 0.75], &[1]);
    let all = [
        (
            Message::Invite {
                t: 10,
                segment,
                theta2: dense(&[1.0, -2.0]),
                devices: vec![3, 5],
            },
            "010a00000000000000040000000000000006000000000000000200000000000000000000000000e03f01090000000000\
             000000020000000000803f000000c0020000000300000005000000",
        ),
        (
            Message::Zeta2 {
                t: 10,
                zeta2: vec![(3, vec![dense(&[0.5]), coded(&[1, 2])]), (5, vec![])],
            },
            "020a0000000000000002000000030000000200000000010000000000003f010200000001020500000000000000",
        ),
        (
            Message::Batch {
                t: 10,
                zeta2: vec![None, Some(vec![dense(&[0.5])])],
            },
            "030a000000000000000200000000010100000000010000000000003f",
        ),
        (
            Message::Frozen {
                t: 10,
                theta0: Some(coded(&[7])),
                zeta1: vec![Some(vec![]), None],
            },
            "040a000000000000000101010000000702000000010000000000",
        ),
        (
            Message::Lesson {
                t: 10,
                theta0: dense(&[f32::INFINITY]),
                zeta1: vec![(3, vec![dense(&[])])],
            },
            "050a0000000000000000010000000000807f0100000003000000010000000000000000",
        ),
        (
            Message::Models {
                t: 12,
                theta2: vec![(3, dense(&[1.5])), (5, coded(&[]))],
            },
            "060c00000000000000020000000300000000010000000000c03f050000000100000000",
        ),
        (
            Message::HospitalModel {
                t: 12,
                theta0: dense(&[1.0]),
                theta1: coded(&[255]),
                report: Some(Report {
                    intervals: 3,
                    seen: Descended {
                        first: 1.0,
                        second: 0.5,
                        last: 0.25,
                        slope: -2.0,
                    },
                }),
            },
            "070c0000000000000000010000000000803f0101000000ff010300000000000000000000000000f03f000000000000e0\
             3f000000000000d03f00000000000000c0",
        ),
        (
            Message::EdgeModel {
                t: 12,
                theta2: dense(&[]),
                counted: Counted {
                    ledger,
                    seconds: 1.5,
                },
            },
            "080c0000000000000000000000000100000000040003000000000000001400000000000000a000000000000000000000\
             000000f83f",
        ),
        (
            Message::Global {
                t: 12,
                parts: vec![dense(&[1.0]), coded(&[1])],
                since: Some(6),
                segment: Segment {
                    halve_every: None,
                    ..segment
                },
                anew: true,
                ended: false,
                calibration: None,
            },
            "090c000000000000000200000000010000000000803f0101000000010106000000000000000400000000000000060000\
             00000000000200000000000000000000000000e03f00010000",
        ),
        (
            Message::Evaluate {
                number: u64::MAX,
                parts: vec![dense(&[1.0])],
            },
            "0affffffffffffffff0100000000010000000000803f",
        ),
        (
            Message::Embed {
                number: 77,
                theta2: dense(&[1.0]),
            },
            "0b4d0000000000000000010000000000803f",
        ),
        (
            Message::Embedded {
                number: 77,
                part: Portion::Validation,
                rows: vec![1, 2],
                zeta2: dense(&[0.5, 1.0]),
            },
            "0c4d000000000000000102000000010000000200000000020000000000003f0000803f",
        ),
        (
            Message::Evaluated {
                number: 77,
                scores: Box::new(scores),
            },
            "0d4d00000000000000000000000080000000000000000000000200000000000000010000000000000000000000000000\
             000000000000000000000000000000000000000000000000000200000000000000000000000000ffffffffffffffffff\
             ff010000000000000000000000000000000200000003000000001400000100000000000000002c000001000000000000\
             00034000000100000000000000",
        ),
        (
            Message::Astray {
                edge: Some(5),
                hospital: None,
                global: 3,
            },
            "16010500000000000000000300000000000000",
        ),
        (
            Message::Return {
                from: 9,
                t: 4,
                parts: vec![Numbers::Dense([1.0].into())],
                segment: Segment {
                    start: 0,
                    global_interval: 4,
                    local_interval: 2,
                    learning_rate: 0.5,
                    halve_every: None,
                },
                ledger: Ledger::default(),
            },
            "17090000000000000004000000000000000100000000010000000000803f0000000000000000040000000000000002000000\
             00000000000000000000e03f0000000000",
        ),
        (Message::End, "0e"),
        (Message::Done, "0f"),
        (Message::Fetch, "10"),
        (
            Message::Trained {
                t: 3,
                theta2: Numbers::Dense([1.0].into()),
            },
            "11030000000000000000010000000000803f",
        ),
        (
            Message::Question {
                number: 5,
                t: 3,
                gateway: 2,
                about: About::Rows(Portion::Test, vec![7]),
                zeta2: Numbers::Dense([1.0].into()),
            },
            "120500000000000000030000000000000002000000000201000000070000000001000000\
             0000803f",
        ),
        (Message::Passed { number: 5 }, "130500000000000000"),
        (
            Message::Answer {
                number: 5,
                gateway: 2,
                unknown: vec![1],
                probabilities: Numbers::Dense([1.0].into()),
                calibration: Some(correction()),
            },
            "14050000000000000002000000010000000100000000010000000000803f01000000000000e03f0100000000000000\
             00000040",
        ),
        (
            Message::Calibrate {
                number: 77,
                corrections: vec![correction()],
            },
            "184d0000000000000001000000000000000000e03f010000000000000000000040",
        ),
        (
            Message::Calibrated {
                number: 77,
                corrections: vec![correction()],
                sums: Some(vec![Sums::none(&correction())]),
            },
            "194d0000000000000001000000000000000000e03f010000000000000000000040010100000001000000000000000000\
             000006000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
             000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
             000000000000",
        ),
        (
            Message::Refused {
                number: 5,
                gateway: 2,
                why: Why::NotYours,
            },
            "1505000000000000000200000002",
        ),
    ];
    assert_eq!(all.len() as u64, KINDS);
    assert_eq!(VERSION, 3, "these bytes are of version 3");
    for (message, stored) in all {
        let bytes = encode(RUN, &message);
        assert_eq!(hex(&bytes[..HEAD]), "535603efcdab8967452301");
        assert_eq!(hex(&bytes[HEAD..]), stored, "{message:?}");
        assert_eq!(decode(RUN, &bytes), Ok(message));
    }
}
