//! Messages of every kind: any that can be written, and such as cannot be true.

use super::{pick, within};
use selvedge_core::adaptive::Report;
use selvedge_core::calibration::{Calibration, Sums};
use selvedge_core::ledger::{Direction, Kind, Ledger, Link, Payload};
use selvedge_core::local_steps::Descended;
use selvedge_core::metrics::LossSum;
use selvedge_core::objective::{Softmax, Targets};
use selvedge_core::role::{About, Counted, Message, Numbers, Portion, Why};
use selvedge_core::schedule::Segment;
use selvedge_core::scores::{HeldOut, Scores};
use selvedge_nn::random::Stream;

/// How many kinds of messages there are.
pub const KINDS: u64 = 25;

/// Whole numbers: small ones, the ends of their range, any.
pub fn whole(stream: &mut Stream) -> u64 {
    match stream.below(3) {
        0 => stream.below(20),
        1 => pick(
            stream,
            &[0, 1, u64::from(u32::MAX), 1 << 63, u64::MAX - 1, u64::MAX],
        ),
        _ => stream.next_u64(),
    }
}

/// Any bits: NaN with any payload, infinities, and numbers as they are.
pub fn double(stream: &mut Stream) -> f64 {
    let special = [f64::NAN, -f64::NAN, f64::INFINITY, -0.0, 1e308, 0.0, -1.0];
    match stream.below(3) {
        0 => pick(stream, &special),
        1 => f64::from_bits(stream.next_u64()),
        _ => f64::from(stream.normal()),
    }
}

fn single(stream: &mut Stream) -> f32 {
    let special = [f32::NAN, -f32::NAN, f32::INFINITY, -f32::MAX, -0.0, 1e-45];
    match stream.below(3) {
        0 => pick(stream, &special),
        1 => f32::from_bits(stream.next_u64() as u32),
        _ => stream.normal(),
    }
}

/// How long a list is: mostly short, at times empty, rarely long.
fn length(stream: &mut Stream) -> u64 {
    match stream.below(20) {
        0..5 => 0,
        19 => within(stream, 100..400),
        _ => within(stream, 1..5),
    }
}

fn list<T>(stream: &mut Stream, mut value: impl FnMut(&mut Stream) -> T) -> Vec<T> {
    (0..length(stream)).map(|_| value(stream)).collect()
}

fn perhaps<T>(stream: &mut Stream, value: impl FnOnce(&mut Stream) -> T) -> Option<T> {
    (stream.below(2) == 0).then(|| value(stream))
}

/// As they are, or in what may be a frame.
pub fn numbers(stream: &mut Stream) -> Numbers {
    match stream.below(2) {
        0 => Numbers::Dense(list(stream, single).into()),
        _ => Numbers::Frame(list(stream, |s| s.next_u64() as u8).into()),
    }
}

fn rows(stream: &mut Stream) -> Vec<Numbers> {
    (0..stream.below(4)).map(|_| numbers(stream)).collect()
}

fn small(stream: &mut Stream) -> u32 {
    pick(stream, &[0, 1, 2, 3, u32::MAX])
}

/// P, Q and η that may be absurd.
pub fn segment(stream: &mut Stream) -> Segment {
    Segment {
        start: whole(stream),
        global_interval: whole(stream),
        local_interval: whole(stream),
        learning_rate: double(stream),
        halve_every: perhaps(stream, whole),
    }
}

fn ledger(stream: &mut Stream) -> Ledger {
    use {Direction::*, Kind::*, Link::*};
    let links = [
        DeviceEdge,
        EdgeHospital,
        HospitalCloud,
        EdgeCloud,
        DeviceHospital,
        DeviceCloud,
        HospitalHospital,
    ];
    let kinds = [Theta0, Theta1, Theta2, Zeta1, Zeta2, Raw, Report, Settings];
    let mut ledger = Ledger::default();
    for _ in 0..stream.below(30) {
        let payload = Payload {
            bytes: whole(stream),
            paper_bits: whole(stream),
        };
        ledger.charge(
            pick(stream, &links),
            pick(stream, &kinds),
            pick(stream, &[Up, Down]),
            whole(stream) as usize,
            payload,
        );
    }
    ledger
}

fn losses(stream: &mut Stream) -> LossSum {
    let mut sum = LossSum::default();
    for _ in 0..stream.below(5) {
        sum.add(double(stream));
    }
    sum
}

fn held_out(stream: &mut Stream, classes: u64) -> HeldOut {
    let mut held_out = HeldOut::new(&Softmax::new(classes as usize));
    for _ in 0..stream.below(6) {
        held_out.losses.add(double(stream));
        let probabilities: Vec<f32> = (0..classes).map(|_| stream.uniform()).collect();
        if classes > 0 {
            let label = stream.below(classes) as u32;
            held_out.tally.add(&probabilities, &[label]);
        }
    }
    held_out
}

fn scores(stream: &mut Stream) -> Scores {
    let classes = pick(stream, &[0, 1, 2, 2, 2, 3, 5]);
    Scores {
        training: losses(stream),
        validation: held_out(stream, classes),
        test: held_out(stream, classes),
    }
}

fn report(stream: &mut Stream) -> Report {
    Report {
        intervals: whole(stream),
        seen: Descended {
            first: double(stream),
            second: double(stream),
            last: double(stream),
            slope: double(stream),
        },
    }
}

fn about(stream: &mut Stream) -> About {
    let long = |s: &mut Stream| u128::from(whole(s)) << 64 | u128::from(s.next_u64());
    match stream.below(2) {
        0 => About::Rows(
            pick(
                stream,
                &[Portion::Training, Portion::Validation, Portion::Test],
            ),
            list(stream, small),
        ),
        _ => About::New {
            key: long(stream),
            patients: list(stream, long),
        },
    }
}

/// What may be a correction of probabilities.
fn correction(stream: &mut Stream) -> Calibration {
    Calibration {
        scale: double(stream),
        bias: (0..within(stream, 1..4)).map(|_| double(stream)).collect(),
        each: stream.below(4) == 0,
    }
}

fn uncorrected(classes: usize) -> Calibration {
    Calibration {
        scale: 1.0,
        bias: vec![0.0; classes],
        each: false,
    }
}

/// Any message of a kind, below [`KINDS`].
pub fn message(stream: &mut Stream, kind: u64) -> Message {
    let t = whole(stream);
    match kind {
        0 => Message::Invite {
            t,
            segment: segment(stream),
            theta2: numbers(stream),
            devices: list(stream, small),
        },
        1 => Message::Zeta2 {
            t,
            zeta2: list(stream, |s| (small(s), rows(s))),
        },
        2 => Message::Batch {
            t,
            zeta2: list(stream, |s| perhaps(s, rows)),
        },
        3 => Message::Frozen {
            t,
            theta0: perhaps(stream, numbers),
            zeta1: list(stream, |s| perhaps(s, rows)),
        },
        4 => Message::Lesson {
            t,
            theta0: numbers(stream),
            zeta1: list(stream, |s| (small(s), rows(s))),
        },
        5 => Message::Models {
            t,
            theta2: list(stream, |s| (small(s), numbers(s))),
        },
        6 => Message::HospitalModel {
            t,
            theta0: numbers(stream),
            theta1: numbers(stream),
            report: perhaps(stream, report),
        },
        7 => Message::EdgeModel {
            t,
            theta2: numbers(stream),
            counted: Counted {
                ledger: ledger(stream),
                seconds: double(stream),
            },
        },
        8 => Message::Global {
            t,
            parts: rows(stream),
            since: perhaps(stream, whole),
            segment: segment(stream),
            anew: stream.below(2) == 0,
            ended: stream.below(2) == 0,
            calibration: perhaps(stream, correction),
        },
        9 => Message::Evaluate {
            number: t,
            parts: rows(stream),
        },
        10 => Message::Embed {
            number: t,
            theta2: numbers(stream),
        },
        11 => Message::Embedded {
            number: t,
            part: pick(
                stream,
                &[Portion::Training, Portion::Validation, Portion::Test],
            ),
            rows: list(stream, small),
            zeta2: numbers(stream),
        },
        12 => Message::Evaluated {
            number: t,
            scores: Box::new(scores(stream)),
        },
        13 => Message::End,
        14 => Message::Done,
        15 => Message::Fetch,
        16 => Message::Trained {
            t,
            theta2: numbers(stream),
        },
        17 => Message::Question {
            number: t,
            t: whole(stream),
            gateway: small(stream),
            about: about(stream),
            zeta2: numbers(stream),
        },
        18 => Message::Passed { number: t },
        19 => Message::Answer {
            number: t,
            gateway: small(stream),
            unknown: list(stream, small),
            probabilities: numbers(stream),
            calibration: perhaps(stream, correction),
        },
        20 => Message::Astray {
            edge: perhaps(stream, whole),
            hospital: perhaps(stream, whole),
            global: t,
        },
        21 => Message::Return {
            from: whole(stream),
            t,
            parts: rows(stream),
            segment: segment(stream),
            ledger: ledger(stream),
        },
        22 => Message::Calibrate {
            number: t,
            corrections: list(stream, correction),
        },
        23 => {
            let corrections = list(stream, correction);
            let sums = |correction: &Calibration, stream: &mut Stream| {
                let classes = correction.bias.len();
                let said: Vec<f32> = (0..4 * classes).map(|_| stream.uniform()).collect();
                let truth = match correction.each {
                    false => (0..4)
                        .map(|_| stream.below(classes as u64) as u32)
                        .collect(),
                    true => Targets::Numbers {
                        each: classes,
                        values: (0..4 * classes).map(|_| stream.below(2) as f32).collect(),
                    },
                };
                Sums::of(correction, &said, &truth)
            };
            let all = |stream: &mut Stream| corrections.iter().map(|c| sums(c, stream)).collect();
            Message::Calibrated {
                number: t,
                sums: perhaps(stream, all),
                corrections,
            }
        }
        _ => Message::Refused {
            number: t,
            gateway: small(stream),
            why: pick(
                stream,
                &[
                    Why::Training,
                    Why::OtherModel,
                    Why::NotYours,
                    Why::OtherKey,
                    Why::Malformed,
                ],
            ),
        },
    }
}

/// The same message with other times, settings or numbers: it may be one that could be true.
pub fn changed(stream: &mut Stream, message: &Message) -> Message {
    let mut message = message.clone();
    let near = |stream: &mut Stream, value: &mut u64| match stream.below(4) {
        0 => *value = whole(stream),
        1 => *value = value.wrapping_add(1),
        2 => *value = value.wrapping_sub(1),
        _ => {}
    };
    let any = |stream: &mut Stream, settings: &mut Segment| {
        near(stream, &mut settings.start);
        near(stream, &mut settings.global_interval);
        near(stream, &mut settings.local_interval);
        if stream.below(4) == 0 {
            settings.learning_rate = double(stream);
        }
        if stream.below(4) == 0 {
            settings.halve_every = perhaps(stream, whole);
        }
    };
    let other = |stream: &mut Stream, part: &mut Numbers| {
        if let Numbers::Dense(values) = part {
            let mut all = values.to_vec();
            all.iter_mut().for_each(|value| *value = single(stream));
            *part = Numbers::Dense(all.into());
        }
    };
    match &mut message {
        Message::Invite { t, segment, .. } => {
            near(stream, t);
            any(stream, segment);
        }
        Message::Global {
            t,
            parts,
            since,
            segment,
            anew,
            ended,
            calibration,
        } => {
            near(stream, t);
            any(stream, segment);
            parts.iter_mut().for_each(|part| other(stream, part));
            *since = perhaps(stream, whole);
            *anew = stream.below(2) == 0;
            *ended = stream.below(8) == 0;
            *calibration = perhaps(stream, correction);
        }
        Message::Astray {
            edge,
            hospital,
            global,
        } => {
            near(stream, global);
            for place in [edge, hospital] {
                *place = perhaps(stream, whole);
            }
        }
        Message::Return {
            from,
            t,
            parts,
            segment,
            ..
        } => {
            near(stream, from);
            near(stream, t);
            any(stream, segment);
            parts.iter_mut().for_each(|part| other(stream, part));
        }
        Message::Zeta2 { t, .. }
        | Message::Batch { t, .. }
        | Message::Frozen { t, .. }
        | Message::Lesson { t, .. }
        | Message::Models { t, .. } => near(stream, t),
        Message::HospitalModel {
            t, theta1, report, ..
        } => {
            near(stream, t);
            other(stream, theta1);
            *report = perhaps(stream, self::report);
        }
        Message::EdgeModel { t, theta2, counted } => {
            near(stream, t);
            other(stream, theta2);
            counted.ledger = ledger(stream);
            counted.seconds = double(stream);
        }
        Message::Evaluate { number, parts } => {
            near(stream, number);
            parts.iter_mut().for_each(|part| other(stream, part));
        }
        Message::Embed { number, theta2 } => {
            near(stream, number);
            other(stream, theta2);
        }
        Message::Embedded { number, zeta2, .. } => {
            near(stream, number);
            other(stream, zeta2);
        }
        Message::Evaluated { number, scores } => {
            near(stream, number);
            scores.training = losses(stream);
            scores.test = held_out(stream, 2);
        }
        Message::Question { t, zeta2, .. } | Message::Trained { t, theta2: zeta2 } => {
            near(stream, t);
            other(stream, zeta2);
        }
        Message::Answer { probabilities, .. } => other(stream, probabilities),
        Message::Calibrate {
            number,
            corrections: asked,
        }
        | Message::Calibrated {
            number,
            corrections: asked,
            ..
        } => {
            near(stream, number);
            *asked = list(stream, correction);
        }
        Message::Passed { number } | Message::Refused { number, .. } => near(stream, number),
        Message::End | Message::Done | Message::Fetch => {}
    }
    message
}

/// One number or byte more or less, or in a frame that no codec writes: no receiver can read it.
fn of_other_length(stream: &mut Stream, part: &mut Numbers) {
    let longer = stream.below(2) == 0;
    *part = match part {
        Numbers::Dense(values) if !values.is_empty() && stream.below(3) == 0 => {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            Numbers::Frame(bytes.collect())
        }
        Numbers::Dense(values) => {
            let mut values = values.to_vec();
            if longer || values.pop().is_none() {
                values.push(1.0);
            }
            Numbers::Dense(values.into())
        }
        Numbers::Frame(bytes) => {
            let mut bytes = bytes.to_vec();
            if longer || bytes.pop().is_none() {
                bytes.push(1);
            }
            Numbers::Frame(bytes.into())
        }
    };
}

fn one_of<'a, T>(stream: &mut Stream, list: &'a mut [T]) -> Option<&'a mut T> {
    let which = stream.below(list.len().max(1) as u64) as usize;
    list.get_mut(which)
}

/// A row too many, or one that cannot be read.
fn spoil_rows(stream: &mut Stream, rows: &mut Vec<Numbers>) {
    match one_of(stream, rows) {
        Some(row) if stream.below(2) == 0 => of_other_length(stream, row),
        _ => rows.push(Numbers::Dense([0.5].into())),
    }
}

/// No run has such a segment at any of its times.
fn spoil_segment(stream: &mut Stream, segment: &mut Segment) {
    match stream.below(8) {
        0 => segment.start = u64::MAX,
        1 => segment.global_interval = 0,
        2 => segment.local_interval = 0,
        3 => segment.local_interval = u64::MAX,
        4 => (segment.global_interval, segment.local_interval) = (u64::MAX, u64::MAX),
        5 => segment.halve_every = Some(0),
        6 => segment.learning_rate = f64::NAN,
        _ => segment.local_interval += segment.global_interval,
    }
}

/// The same message with something in it that cannot be. What it leaves right must do no harm.
pub fn broken(stream: &mut Stream, message: &Message) -> Message {
    let mut message = message.clone();
    let choice = stream.below(3);
    match &mut message {
        Message::Invite {
            t,
            segment,
            theta2,
            devices,
        } => match stream.below(5) {
            0 => *t = u64::MAX - stream.below(3),
            1 => of_other_length(stream, theta2),
            2 => devices.push(u32::MAX),
            3 if !devices.is_empty() => devices.push(devices[0]),
            _ => spoil_segment(stream, segment),
        },
        Message::Zeta2 { zeta2, .. } => match one_of(stream, zeta2) {
            Some((_, rows)) if choice > 0 => spoil_rows(stream, rows),
            Some((device, _)) => *device = u32::MAX,
            None => {}
        },
        Message::Batch { zeta2, .. } => match one_of(stream, zeta2) {
            Some(Some(rows)) if choice > 0 => spoil_rows(stream, rows),
            _ => zeta2.push(None),
        },
        Message::Frozen { theta0, zeta1, .. } => match (theta0, one_of(stream, zeta1)) {
            (_, Some(Some(rows))) if choice == 0 => spoil_rows(stream, rows),
            (Some(theta0), _) if choice == 1 => of_other_length(stream, theta0),
            (theta0, _) if stream.below(2) == 0 => {
                *theta0 = match theta0 {
                    Some(_) => None,
                    None => Some(numbers(stream)),
                }
            }
            _ => zeta1.push(None),
        },
        Message::Lesson { theta0, zeta1, .. } => match one_of(stream, zeta1) {
            Some((_, rows)) if choice == 0 => spoil_rows(stream, rows),
            Some(_) if choice == 1 => zeta1.push(zeta1[0].clone()),
            _ => of_other_length(stream, theta0),
        },
        Message::Models { theta2, .. } => match one_of(stream, theta2) {
            Some((_, model)) if choice > 0 => of_other_length(stream, model),
            Some((device, _)) => *device = u32::MAX,
            None => {}
        },
        Message::HospitalModel {
            theta0,
            theta1,
            report,
            ..
        } => match (choice, report) {
            (0, Some(report)) => report.intervals = u64::MAX,
            (1, Some(report)) => report.seen.first = -1e200,
            (0, _) => of_other_length(stream, theta0),
            _ => of_other_length(stream, theta1),
        },
        Message::EdgeModel {
            theta2, counted, ..
        } => match choice {
            0 => of_other_length(stream, theta2),
            _ => {
                let wrong = [f64::NAN, f64::INFINITY, -1.0, 1e300];
                counted.seconds = pick(stream, &wrong);
            }
        },
        Message::Astray {
            edge: Some(edge), ..
        } => *edge = u64::MAX,
        Message::Astray { hospital, .. } => *hospital = Some(u64::MAX),
        Message::Global {
            t, parts, segment, ..
        }
        | Message::Return {
            t, parts, segment, ..
        } => match stream.below(4) {
            0 => *t = u64::MAX - stream.below(3),
            1 => parts.push(numbers(stream)),
            2 => one_of(stream, parts)
                .into_iter()
                .for_each(|part| of_other_length(stream, part)),
            _ => spoil_segment(stream, segment),
        },
        Message::Evaluate { parts, .. } => match one_of(stream, parts) {
            Some(part) if choice > 0 => of_other_length(stream, part),
            _ => parts.push(numbers(stream)),
        },
        Message::Embed { theta2, .. } => of_other_length(stream, theta2),
        Message::Embedded {
            number,
            rows,
            zeta2,
            ..
        } => match choice {
            0 => *number = number.wrapping_add(1),
            1 if !rows.is_empty() => {
                let last = rows.len() - 1;
                rows[last] = u32::MAX;
            }
            _ => of_other_length(stream, zeta2),
        },
        Message::Evaluated { number, scores } => match stream.below(4) {
            0 => *number = number.wrapping_add(1),
            1 => scores.training.add(0.5),
            2 => scores.test.losses.add(0.5),
            _ => scores.validation = HeldOut::new(&Softmax::new(3)),
        },
        Message::Calibrate { corrections, .. } => match (choice, one_of(stream, corrections)) {
            (0, Some(correction)) => correction.scale = -1.0,
            (1, Some(correction)) => correction.bias.push(0.0),
            _ => *corrections = vec![uncorrected(2); 9],
        },
        Message::Calibrated {
            number,
            corrections,
            sums,
        } => match (stream.below(4), sums) {
            (0, _) => *number = number.wrapping_add(1),
            (1, Some(sums)) => sums.push(Sums::none(&uncorrected(2))),
            (2, Some(sums)) => *sums = vec![Sums::none(&uncorrected(3)); sums.len()],
            _ => corrections.push(uncorrected(2)),
        },
        Message::Trained { theta2, .. } => of_other_length(stream, theta2),
        Message::Question { about, zeta2, .. } => match (choice, about) {
            (0, About::Rows(_, rows)) => rows.push(u32::MAX),
            (0, About::New { patients, .. }) => patients.clear(),
            _ => of_other_length(stream, zeta2),
        },
        Message::Answer { unknown, .. } => unknown.push(u32::MAX),
        Message::Passed { number } => *number = number.wrapping_add(1),
        Message::Refused { gateway, .. } => *gateway = u32::MAX,
        Message::End | Message::Done | Message::Fetch => {}
    }
    message
}
