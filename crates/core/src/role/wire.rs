//! Messages and records as bytes.
//!
//! ```text
//! frame    "SV"  version  run (8 bytes)  message
//! message  its number, then its fields in order
//! ```
//!
//! Numbers are little endian, lists have their length before them. Bytes that [`encode`] cannot have written are an
//! error, never a panic, and take memory according to their real length, not to the lengths they claim. A message has
//! exactly one encoding: what decodes is encoded to the same bytes again. Version and run are part of the frame.

use super::message::{Counted, Message, Portion};
use crate::adaptive::Report;
use crate::calibration::{Calibration, Calibrations, Found};
use crate::checks::{Reach, Reason};
use crate::conduct::Conduct;
use crate::ledger::{Direction, Entry, Kind, Ledger, Link};
use crate::local_steps::Descended;
use crate::message_path::Numbers;
use crate::metrics::{Layout, LossSum, Tally};
use crate::model::Model;
use crate::outcome::{self, MOST_INTERVALS};
use crate::protocol::{Packet, Unread};
use crate::schedule::Segment;
use crate::scores::{HeldOut, Scores};
use crate::state::{Evaluation, Without};
use std::sync::Arc;

/// The format of messages: the protocol that parties speak.
pub const VERSION: u8 = 3;

/// The format of records. Records of format 1 do not state it.
pub const RECORD_VERSION: u8 = 4;

const MAGIC: [u8; 2] = *b"SV";

/// The most classes of scores, which take 64 kB each to read: deployments cannot have more.
pub const MOST_CLASSES: usize = 256;

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// They do not begin like a frame.
    #[error("not a selvedge frame: expected it to begin with \"SV\"")]
    Foreign,
    /// They are of another version.
    #[error("a message of protocol {0}, but this is protocol {VERSION}: upgrade {older}",
        older = if *.0 > VERSION { "this party" } else { "its sender" })]
    Version(u8),
    /// A record of another format.
    #[error("a record of format {0}, but this selvedge reads format {RECORD_VERSION}: {remedy}",
        remedy = if *.0 > RECORD_VERSION { "upgrade it" } else { "continue with the version that wrote it" })]
    RecordVersion(u8),
    /// They belong to another run.
    #[error("a frame of run {0:016x}: expected this run's")]
    OtherRun(u64),
    /// They end too early.
    #[error("it ends where {0} is expected")]
    Short(&'static str),
    /// An invalid value.
    #[error("{what} has the invalid value {value}")]
    Value {
        /// What has the value.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// There are bytes after its end.
    #[error("it has {0} bytes too many")]
    Long(usize),
}

impl From<WireError> for Unread {
    fn from(error: WireError) -> Self {
        Unread {
            why: match error {
                WireError::Version(_) => "version",
                WireError::OtherRun(_) => "other run",
                _ => "malformed",
            },
            problem: error.to_string(),
        }
    }
}

/// A message as it is sent in a run by who waits for what comes of it, or does not.
pub(super) fn packet(run: u64, message: &Message, is_awaited: bool) -> Packet {
    Packet {
        bytes: encode(run, message),
        kind: message.kind(),
        is_of_evaluation: message.is_of_evaluation(),
        is_awaited,
    }
}

/// A message as a frame of a run.
pub fn encode(run: u64, message: &Message) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    run.put(&mut out);
    message.put(&mut out);
    out
}

/// The message of a frame.
///
/// # Errors
/// If it is not one of this run and version.
pub fn decode(run: u64, bytes: &[u8]) -> Result<Message, WireError> {
    let mut reader = Reader {
        bytes,
        format: RECORD_VERSION,
    };
    if reader.take(2, "a frame").ok() != Some(&MAGIC[..]) {
        return Err(WireError::Foreign);
    }
    let version = u8::get(&mut reader)?;
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    let theirs = u64::get(&mut reader)?;
    if theirs != run {
        return Err(WireError::OtherRun(theirs));
    }
    whole(reader)
}

/// What a record says.
pub(crate) fn read_record<T: Wire>(bytes: &[u8]) -> Result<T, WireError> {
    let mut reader = Reader {
        bytes,
        format: RECORD_VERSION,
    };
    reader.format = u8::get(&mut reader)?;
    match reader.format {
        2..=RECORD_VERSION => whole(reader),
        other => Err(WireError::RecordVersion(other)),
    }
}

/// A record.
pub(crate) fn record(value: &impl Wire) -> Vec<u8> {
    let mut out = vec![RECORD_VERSION];
    value.put(&mut out);
    out
}

fn whole<T: Wire>(mut reader: Reader<'_>) -> Result<T, WireError> {
    let value = T::get(&mut reader)?;
    match reader.bytes.len() {
        0 => Ok(value),
        more => Err(WireError::Long(more)),
    }
}

/// What is left to read.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// The format of the record that it is of.
    pub(crate) format: u8,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or(WireError::Short(what))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn length(&mut self) -> Result<usize, WireError> {
        u32::get(self).map(|length| length as usize)
    }
}

/// A value that has a form in bytes.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError>;
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                let bytes = reader.take(size_of::<$kind>(), "a number")?;
                let mut all = [0; size_of::<$kind>()];
                all.copy_from_slice(bytes);
                Ok(<$kind>::from_le_bytes(all))
            }
        }
    )*};
}

number!(u8, u32, u64, u128, i128, f64);

/// A value of which every field is written, in order.
macro_rules! fields {
    ($kind:ident { $($field:ident),* $(; since $format:literal: $new:ident)? }) => {
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
                $(self.$new.put(out);)?
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                $(let $field = Wire::get(reader)?;)*
                $(let $new = match reader.format < $format {
                    true => Default::default(),
                    false => Wire::get(reader)?,
                };)?
                Ok($kind { $($field,)* $($new)? })
            }
        }
    };
}
pub(crate) use fields;

fields!(Segment {
    start,
    global_interval,
    local_interval,
    learning_rate,
    halve_every
});
fields!(Descended {
    first,
    second,
    last,
    slope
});
fields!(Report { intervals, seen });
fields!(Counted { ledger, seconds });
fields!(Entry {
    link,
    kind,
    direction,
    messages,
    bytes,
    paper_bits
});
fields!(Model {
    theta0,
    theta1,
    theta2
});
/// What is held against parties; records before format 4 have none of it.
impl Wire for Conduct {
    fn put(&self, out: &mut Vec<u8>) {
        self.parts().put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        if reader.format < 4 {
            return Ok(Conduct::default());
        }
        let parts = Wire::get(reader)?;
        Conduct::from_parts(parts).ok_or(cannot_be("what is held against parties", 0u64))
    }
}

/// How far θ may go; records before format 4 have none.
impl Wire for Reach {
    fn put(&self, out: &mut Vec<u8>) {
        self.longest.put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let longest = if reader.format < 4 {
            0.0
        } else {
            f64::get(reader)?
        };
        match longest.is_finite() && longest >= 0.0 {
            true => Ok(Reach { longest }),
            false => Err(cannot_be("the length of a step", 0u64)),
        }
    }
}

listed!(
    Reason,
    "a reason",
    [
        Reason::NotFinite,
        Reason::TooLong,
        Reason::Reversed,
        Reason::Implausible,
        Reason::Quarantined
    ]
);

/// Devices that were left out, and why; records before format 4 have none of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rejected(pub(crate) Vec<(u32, Reason)>);

impl Wire for Rejected {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        match reader.format < 4 {
            true => Ok(Rejected::default()),
            false => Wire::get(reader).map(Rejected),
        }
    }
}

/// Sketches of steps; records before format 4 have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sketches(pub(crate) Vec<u8>);

impl Wire for Sketches {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u32).put(out);
        out.extend_from_slice(&self.0);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        if reader.format < 4 {
            return Ok(Sketches::default());
        }
        let length = reader.length()?;
        Ok(Sketches(reader.take(length, "sketches")?.to_vec()))
    }
}

fields!(Evaluation {
    t,
    p,
    q,
    eta,
    loss_train,
    loss_test,
    test,
    bytes_paper,
    bytes_exact,
    seconds,
    validation;
    since 4: without
});
fields!(Without { group, reason });

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        match u8::get(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(cannot_be("a flag", value)),
        }
    }
}

pub(super) fn cannot_be(what: &'static str, value: impl Into<u64>) -> WireError {
    WireError::Value {
        what,
        value: value.into(),
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        bool::get(reader)?.then(|| T::get(reader)).transpose()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let length = reader.length()?;
        // Every value has at least one byte.
        if length > reader.bytes.len() {
            return Err(WireError::Short("a list's values"));
        }
        let mut values = Vec::new();
        for _ in 0..length {
            values.push(T::get(reader)?);
        }
        Ok(values)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok((A::get(reader)?, B::get(reader)?))
    }
}

fn put_floats(values: &[f32], out: &mut Vec<u8>) {
    (values.len() as u32).put(out);
    out.reserve(4 * values.len());
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn get_floats<C: FromIterator<f32>>(reader: &mut Reader<'_>) -> Result<C, WireError> {
    let length = reader.length()?;
    let bytes = reader.take(length.saturating_mul(4), "a list of numbers")?;
    let number = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    Ok(bytes.chunks_exact(4).map(number).collect())
}

/// Numbers in a record.
impl Wire for Vec<f32> {
    fn put(&self, out: &mut Vec<u8>) {
        put_floats(self, out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        get_floats(reader)
    }
}

/// A value at the end of a record that earlier versions did not have: nothing is written if it is empty, and nothing is
/// there where the record ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Appended<T>(pub(crate) T);

impl<T: Wire + Default + PartialEq> Wire for Appended<T> {
    fn put(&self, out: &mut Vec<u8>) {
        if self.0 != T::default() {
            self.0.put(out);
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        match reader.bytes.is_empty() {
            true => Ok(Appended::default()),
            false => Ok(Appended(Wire::get(reader)?)),
        }
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let length = reader.length()?;
        let bytes = reader.take(length, "a text")?;
        let text =
            str::from_utf8(bytes).map_err(|e| cannot_be("a letter", e.valid_up_to() as u64))?;
        Ok(text.to_owned())
    }
}

impl Wire for Numbers {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Numbers::Dense(values) => {
                out.push(0);
                put_floats(values, out);
            }
            Numbers::Frame(bytes) => {
                out.push(1);
                (bytes.len() as u32).put(out);
                out.extend_from_slice(bytes);
            }
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        match u8::get(reader)? {
            0 => get_floats::<Arc<[f32]>>(reader).map(Numbers::Dense),
            1 => {
                let length = reader.length()?;
                Ok(Numbers::Frame(reader.take(length, "a frame")?.into()))
            }
            value => Err(cannot_be("an encoding of numbers", value)),
        }
    }
}

/// An enum whose values are known by their place in a list.
macro_rules! listed {
    ($kind:ty, $name:literal, [$($value:expr),*]) => {
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                let all = [$($value),*];
                let place = all.iter().position(|value| value == self);
                out.push(place.unwrap_or(0) as u8);
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                let place = u8::get(reader)?;
                let all = [$($value),*];
                let found = all.into_iter().nth(place as usize);
                found.ok_or(cannot_be($name, place))
            }
        }
    };
}

pub(super) use listed;

listed!(
    Portion,
    "a part",
    [Portion::Training, Portion::Validation, Portion::Test]
);
listed!(Direction, "a direction", [Direction::Up, Direction::Down]);
listed!(
    Link,
    "a link",
    [
        Link::DeviceEdge,
        Link::EdgeHospital,
        Link::HospitalCloud,
        Link::EdgeCloud,
        Link::DeviceHospital,
        Link::DeviceCloud,
        Link::HospitalHospital
    ]
);
listed!(
    Kind,
    "a kind",
    [
        Kind::Theta0,
        Kind::Theta1,
        Kind::Theta2,
        Kind::Zeta1,
        Kind::Zeta2,
        Kind::Raw,
        Kind::Report,
        Kind::Settings
    ]
);

impl Wire for Ledger {
    fn put(&self, out: &mut Vec<u8>) {
        (self.entries().len() as u32).put(out);
        self.entries().iter().for_each(|entry| entry.put(out));
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let entries = Vec::<Entry>::get(reader)?;
        Ledger::from_entries(entries).ok_or(cannot_be("the order of a ledger", 0u64))
    }
}

impl Wire for LossSum {
    fn put(&self, out: &mut Vec<u8>) {
        let (units, samples, infinite) = self.parts();
        units.put(out);
        (samples, infinite).put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let units = i128::get(reader)?;
        let (samples, infinite) = Wire::get(reader)?;
        Ok(LossSum::from_parts((units, samples, infinite)))
    }
}

/// The kind of outcome is in the first byte of four, so that classes are written as they always were.
impl Wire for Layout {
    fn put(&self, out: &mut Vec<u8>) {
        ((self.kind as u32) << 24 | self.outputs as u32).put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let both = u32::get(reader)?;
        let (kind, outputs) = ((both >> 24) as usize, (both & 0xff_ffff) as usize);
        let Some(kind) = outcome::Kind::ALL.get(kind).copied() else {
            return Err(cannot_be("a kind of outcome", kind as u64));
        };
        let most = match kind {
            outcome::Kind::Class | outcome::Kind::Labels => MOST_CLASSES,
            outcome::Kind::Quantity => 1,
            outcome::Kind::Survival => MOST_INTERVALS,
        };
        match outputs <= most {
            true => Ok(Layout { kind, outputs }),
            false => Err(cannot_be("a number of classes", outputs as u64)),
        }
    }
}

/// Counts are mostly zeros: what is written are the others, with their places.
impl Wire for Tally {
    fn put(&self, out: &mut Vec<u8>) {
        self.layout().put(out);
        let there = self.counts().map(|(place, count)| (place as u32, count));
        there.collect::<Vec<(u32, u64)>>().put(out);
        self.sums().iter().for_each(|sum| sum.put(out));
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let layout = Layout::get(reader)?;
        let there = Vec::<(u32, u64)>::get(reader)?;
        // Each tally is written in one way only.
        let unsorted = there.windows(2).find(|pair| pair[0].0 >= pair[1].0);
        if let Some(pair) = unsorted {
            return Err(cannot_be("the position of a count", pair[1].0));
        }
        let mut tally = Tally::new(layout);
        for (place, count) in there {
            let found = tally.count_mut(place as usize);
            let found = found.ok_or(cannot_be("the position of a count", place))?;
            *found = match count {
                0 => return Err(cannot_be("a stored count", count)),
                _ => count,
            };
        }
        for sum in tally.sums_mut() {
            *sum = Wire::get(reader)?;
        }
        Ok(tally)
    }
}

/// Whether each probability is corrected for itself is the first bit of the number of biases, so that corrections of
/// classes are written as they always were.
impl Wire for Calibration {
    fn put(&self, out: &mut Vec<u8>) {
        self.scale.put(out);
        (self.bias.len() as u32 | u32::from(self.each) << 31).put(out);
        self.bias.iter().for_each(|bias| bias.put(out));
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let scale = Wire::get(reader)?;
        let both = u32::get(reader)?;
        let bias = (0..both & !(1 << 31)).map(|_| Wire::get(reader));
        Ok(Calibration {
            scale,
            bias: bias.collect::<Result<_, _>>()?,
            each: both >> 31 == 1,
        })
    }
}

fields!(Found {
    calibration,
    samples
});
fields!(Calibrations { model, best });
fields!(HeldOut { losses, tally });
fields!(Scores {
    training,
    validation,
    test
});

/// Messages by number: each is written as its number and its fields in order.
macro_rules! messages {
    ($($number:literal $name:ident { $($field:ident),* }),* $(,)?) => {
        impl Wire for Message {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Message::$name { $($field),* } => {
                        out.push($number);
                        $($field.put(out);)*
                    })*
                }
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                match u8::get(reader)? {
                    $($number => Ok(Message::$name { $($field: Wire::get(reader)?),* }),)*
                    value => Err(cannot_be("a message's number", value)),
                }
            }
        }
    };
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        T::get(reader).map(Box::new)
    }
}

messages! {
    1 Invite { t, segment, theta2, devices },
    2 Zeta2 { t, zeta2 },
    3 Batch { t, zeta2 },
    4 Frozen { t, theta0, zeta1 },
    5 Lesson { t, theta0, zeta1 },
    6 Models { t, theta2 },
    7 HospitalModel { t, theta0, theta1, report },
    8 EdgeModel { t, theta2, counted },
    9 Global { t, parts, since, segment, anew, ended, calibration },
    10 Evaluate { number, parts },
    11 Embed { number, theta2 },
    12 Embedded { number, part, rows, zeta2 },
    13 Evaluated { number, scores },
    14 End {},
    15 Done {},
    16 Fetch {},
    17 Trained { t, theta2 },
    18 Question { number, t, gateway, about, zeta2 },
    19 Passed { number },
    20 Answer { number, gateway, unknown, probabilities, calibration },
    21 Refused { number, gateway, why },
    22 Astray { edge, hospital, global },
    23 Return { from, t, parts, segment, ledger },
    24 Calibrate { number, corrections },
    25 Calibrated { number, corrections, sums },
}
