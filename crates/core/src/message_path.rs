//! The message path: what happens to the numbers of each kind of message between its sender and its receiver.
//!
//! | leg | from → to | sent | error feedback |
//! | --- | --- | --- | --- |
//! | [`DeviceModel`](Leg::DeviceModel) | edge → device, θ2 | whole | no: what was lost is lost to one step |
//! | [`Zeta2`](Leg::Zeta2), [`Zeta1`](Leg::Zeta1) | device → hospital, hospital → device | whole, sample by sample | no: the subset changes |
//! | [`Theta0`](Leg::Theta0) | hospital → edge | whole; with `theta0_feedback` a step from the edge's copy | by the step |
//! | [`Theta0ToDevices`](Leg::Theta0ToDevices) | edge → devices | as it came; with `theta0_feedback` the edge's copy | – |
//! | [`DeviceStep`](Leg::DeviceStep) | device → edge, θ2 | a step from what the device was sent, if either way is coded | no: devices keep nothing |
//! | [`Upload`](Leg::Upload), [`Download`](Leg::Download) | group → cloud → group, θ | a step from the last θ, if coded | yes |
//!
//! A `Route` is the way of one message. The loop sends in place (`Route::send`): numbers become what the receiver reads
//! of them. The roles send [`Numbers`] (`Route::pack`, `Route::read`) by the same code; so simulated and deployed runs
//! agree on whatever is done here.
//!
//! θ0 is no step, but a whole model, and devices keep nothing between two draws. So what was lost of one θ0 must not be
//! added to the next: whole weights would pile up, and devices would get them several times too large. Of all messages
//! with k numbers, the k largest are the closest to θ0; only a receiver who remembers can do better. With
//! `theta0_feedback` the edge does: the hospital sends the step from the edge's copy, what is lost of it is part of the
//! next step, and the copy converges to θ0 (EF21).
//!
//! A step that is not finite is sent as it is: codecs would make it finite, and nobody
//! would see that the run has diverged.

use crate::codec::{Codec, LEVELS, with_feedback};
use crate::experiment::CompressionSettings;
use crate::keys::{Purpose, key};
use crate::ledger::{Kind, Payload};
use crate::task::Task;
use rayon::prelude::*;
use selvedge_nn::random::Key;
use std::sync::Arc;

/// Rows that one task sends.
const ROWS_PER_TASK: usize = 64;

/// What tells a model's way up from its way down.
const UP: u64 = 1;
const DOWN: u64 = 2;

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// θ2, edge → device.
    DeviceModel,
    /// ζ2 of a sample, device → edge → hospital.
    Zeta2,
    /// θ0, hospital → edge.
    Theta0,
    /// θ0, edge → devices.
    Theta0ToDevices,
    /// ζ1 of a sample, hospital → edge → device.
    Zeta1,
    /// θ2, device → edge.
    DeviceStep,
    /// A part of θ, hospital or edge → cloud.
    Upload(Kind),
    /// A part of θ, cloud → hospital or edge.
    Download(Kind),
}

/// In which form numbers are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As they are.
    Whole,
    /// As the difference to what both ends hold, which is what the receiver wants.
    Step,
    /// As the difference to what both ends hold, which the receiver adds to it.
    StepFrom,
}

/// The codecs of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Of θ0, hospital → edge → devices.
    pub theta0: Codec,
    /// Whether θ0 goes to the edge as a step from the edge's copy, which devices get whole.
    pub theta0_feedback: bool,
    /// Of ζ1, hospital → edge → device, sample by sample.
    pub zeta1: Codec,
    /// Of ζ2, device → edge → hospital, sample by sample.
    pub zeta2: Codec,
    /// Of a device's step from θ2 as it was sent.
    pub device_upload: Codec,
    /// Of θ2, edge → device.
    pub device_download: Codec,
    /// Of a group's step from the last θ, to the cloud.
    pub global_upload: Codec,
    /// Of the cloud's step from the last θ.
    pub global_download: Codec,
    /// Whether what was lost of a model on its way to the cloud or back is added to the next one.
    pub error_feedback: bool,
}

impl Compression {
    /// Everything is sent as it is.
    pub const NONE: Compression = Compression {
        theta0: Codec::None,
        theta0_feedback: false,
        zeta1: Codec::None,
        zeta2: Codec::None,
        device_upload: Codec::None,
        device_download: Codec::None,
        global_upload: Codec::None,
        global_download: Codec::None,
        error_feedback: false,
    };

    /// The codecs that an experiment names.
    ///
    /// # Errors
    /// The key with an invalid codec, and what would be right.
    pub fn new(settings: &CompressionSettings) -> Result<Self, (&'static str, String)> {
        let levels = settings.levels;
        let codec = |key: &'static str, text: &str| {
            let text = match text {
                "top-k" | "dither" => format!("{text}:{levels}"),
                _ => text.to_owned(),
            };
            Codec::parse(&text).map_err(|problem| (key, format!("{key}: {problem}")))
        };
        if !LEVELS.contains(&levels) {
            let (least, most) = (LEVELS.start(), LEVELS.end());
            let problem = format!("compression.levels = {levels}: choose {least} to {most}");
            return Err(("compression.levels", problem));
        }
        codec("compression.codec", &settings.codec)?;
        let or_common =
            |key, text: &Option<String>| codec(key, text.as_deref().unwrap_or(&settings.codec));
        Ok(Compression {
            theta0: or_common("compression.theta0", &settings.theta0)?,
            theta0_feedback: settings.theta0_feedback,
            zeta1: or_common("compression.zeta1", &settings.zeta1)?,
            zeta2: or_common("compression.zeta2", &settings.zeta2)?,
            device_upload: codec("compression.device_upload", &settings.device_upload)?,
            device_download: codec("compression.device_download", &settings.device_download)?,
            global_upload: codec("compression.global_upload", &settings.global_upload)?,
            global_download: codec("compression.global_download", &settings.global_download)?,
            error_feedback: settings.error_feedback,
        })
    }

    /// The codec of a leg.
    fn codec(&self, leg: Leg) -> Codec {
        match leg {
            Leg::DeviceModel => self.device_download,
            Leg::Zeta2 => self.zeta2,
            Leg::Theta0ToDevices if self.edges_keep_theta0() => Codec::None,
            Leg::Theta0 | Leg::Theta0ToDevices => self.theta0,
            Leg::Zeta1 => self.zeta1,
            Leg::DeviceStep => self.device_upload,
            Leg::Upload(_) => self.global_upload,
            Leg::Download(_) => self.global_download,
        }
    }

    /// In which form a leg's numbers go. Where θ2 is coded either way devices send steps, so that what was lost on the
    /// way down is not lost to the edge's model.
    fn form(&self, leg: Leg) -> Form {
        let coded = |leg| self.codec(leg) != Codec::None;
        match leg {
            Leg::DeviceStep if coded(leg) || coded(Leg::DeviceModel) => Form::Step,
            Leg::Theta0 if self.edges_keep_theta0() => Form::StepFrom,
            Leg::Upload(_) | Leg::Download(_) if coded(leg) => Form::StepFrom,
            _ => Form::Whole,
        }
    }

    /// Whether devices send steps, and not models.
    pub(crate) fn devices_send_steps(&self) -> bool {
        self.form(Leg::DeviceStep) == Form::Step
    }

    /// Whether models go to the cloud or from it as steps, so that groups must keep what they are steps from.
    pub(crate) fn groups_keep_theta(&self) -> bool {
        self.global_upload != Codec::None || self.global_download != Codec::None
    }

    /// Whether edges keep a copy of θ0, from which the next one is sent as a step.
    pub(crate) fn edges_keep_theta0(&self) -> bool {
        self.theta0_feedback && self.theta0 != Codec::None
    }

    /// An edge's copy of θ0 before anything was sent: it has none of it yet.
    pub(crate) fn no_theta0_yet(&self, n0: usize) -> Vec<f32> {
        match self.edges_keep_theta0() {
            true => vec![0.0; n0],
            false => Vec::new(),
        }
    }

    /// What a leg's sender keeps of what was lost of so many numbers: nothing yet.
    pub(crate) fn nothing_lost(&self, leg: Leg, numbers: usize) -> Vec<f32> {
        match self.codec(leg) {
            Codec::None => Vec::new(),
            _ => vec![0.0; numbers],
        }
    }

    /// What a message of so many numbers weighs.
    pub(crate) fn payload(&self, leg: Leg, numbers: usize) -> Payload {
        Payload::coded(self.codec(leg), numbers)
    }
}

impl Task<'_> {
    /// The way of the message that belongs to iteration `t` of a group; the cloud's downloads are the same for all
    /// groups.
    pub(crate) fn route(&self, leg: Leg, group: usize, t: u64) -> Route {
        let of = |group: usize, kind: Kind| {
            let key = key(self.experiment.seed, Purpose::Dither);
            key.with(group as u64).with(kind as u64).with(t)
        };
        Route {
            codec: self.compression.codec(leg),
            form: self.compression.form(leg),
            feedback: self.compression.error_feedback,
            key: match leg {
                Leg::DeviceModel => of(group, Kind::Theta2),
                Leg::Zeta2 => of(group, Kind::Zeta2),
                Leg::Theta0 | Leg::Theta0ToDevices => of(group, Kind::Theta0),
                Leg::Zeta1 => of(group, Kind::Zeta1),
                Leg::DeviceStep => of(group, Kind::Theta2).with(UP),
                Leg::Upload(kind) => of(group, kind).with(UP),
                Leg::Download(kind) => of(usize::MAX, kind).with(DOWN),
            },
        }
    }
}

/// The way of one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    codec: Codec,
    form: Form,
    feedback: bool,
    /// The random numbers that both ends share.
    key: Key,
}

impl Route {
    /// The way of one of several: of a device's model, or of a sample's embedding.
    pub(crate) fn of(self, number: u32) -> Self {
        Route {
            key: self.key.with(u64::from(number)),
            ..self
        }
    }

    /// Whether the receiver reads exactly the numbers that were sent.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.codec == Codec::None && self.form == Form::Whole
    }

    /// Sends numbers: they become what the receiver has of them. `known` is what both ends hold, where steps are sent;
    /// `lost` is what the sender keeps of what was lost, where it keeps anything. True if they went as a frame, which
    /// is in `frame` then.
    pub(crate) fn send(
        &self,
        values: &mut [f32],
        known: &[f32],
        lost: &mut [f32],
        frame: &mut Vec<u8>,
    ) -> bool {
        if self.form == Form::Step {
            subtract(values, known);
        }
        let finite = || values.iter().all(|x| x.is_finite());
        if self.codec == Codec::None || (self.form != Form::Whole && !finite()) {
            return false;
        }
        if self.form == Form::StepFrom {
            subtract(values, known);
        }
        match self.feedback && !lost.is_empty() {
            true => with_feedback(self.codec, self.key, values, lost, frame),
            false => self.codec.round_trip(self.key, values, frame),
        };
        if self.form == Form::StepFrom {
            for (value, known) in values.iter_mut().zip(known) {
                *value += known;
            }
        }
        true
    }

    /// Sends rows, each as a message of its own with its number.
    pub(crate) fn send_rows(&self, numbers: &[u32], rows: &mut [f32], frame: &mut Vec<u8>) {
        let width = rows.len() / numbers.len().max(1);
        if self.changes_nothing() || width == 0 {
            return;
        }
        let some = |numbers: &[u32], rows: &mut [f32], frame: &mut Vec<u8>| {
            for (number, row) in numbers.iter().zip(rows.chunks_exact_mut(width)) {
                self.of(*number).send(row, &[], &mut [], frame);
            }
        };
        if numbers.len() <= ROWS_PER_TASK {
            some(numbers, rows, frame);
        } else {
            let rows = rows.par_chunks_mut(ROWS_PER_TASK * width);
            let tasks = rows.zip(numbers.par_chunks(ROWS_PER_TASK));
            tasks.for_each_init(Vec::new, |frame, (rows, numbers)| {
                some(numbers, rows, frame);
            });
        }
    }

    /// The message itself.
    pub(crate) fn pack(&self, values: &[f32], known: &[f32], lost: &mut [f32]) -> Numbers {
        if self.changes_nothing() {
            return Numbers::dense(values);
        }
        self.pack_in_place(&mut values.to_vec(), known, lost)
    }

    /// The same; the numbers become what the receiver has of them.
    pub(crate) fn pack_in_place(
        &self,
        values: &mut [f32],
        known: &[f32],
        lost: &mut [f32],
    ) -> Numbers {
        let mut frame = Vec::new();
        match self.send(values, known, lost, &mut frame) {
            true => Numbers::Frame(frame.into()),
            false => Numbers::dense(values),
        }
    }

    /// What the receiver has of a message of `count` numbers, if it is one. `known` is what both ends hold; who does
    /// not hold it can read whole models only.
    pub(crate) fn read(
        &self,
        sent: &Numbers,
        count: usize,
        known: Option<&[f32]>,
    ) -> Option<Vec<f32>> {
        match sent {
            Numbers::Dense(values) => (values.len() == count).then(|| values.to_vec()),
            // Nobody packs without a codec.
            Numbers::Frame(_) if self.codec == Codec::None => None,
            Numbers::Frame(frame) => {
                let mut values = vec![0.0; count];
                self.codec.decode(self.key, frame, &mut values).ok()?;
                if self.form == Form::StepFrom {
                    for (value, known) in values.iter_mut().zip(known?) {
                        *value += known;
                    }
                }
                Some(values)
            }
        }
    }

    /// Whether `count` numbers can be read of a message that is whole.
    pub(crate) fn can_read(&self, sent: &Numbers, count: usize) -> bool {
        match sent {
            Numbers::Dense(values) => values.len() == count,
            Numbers::Frame(_) => self.read(sent, count, None).is_some(),
        }
    }
}

fn subtract(values: &mut [f32], known: &[f32]) {
    for (value, known) in values.iter_mut().zip(known) {
        *value -= known;
    }
}

/// Numbers on the wire: as they are, or in a codec's frame. Copies share them.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// As they are.
    Dense(Arc<[f32]>),
    /// In a frame of the codec that the experiment names for such messages.
    Frame(Arc<[u8]>),
}

impl Numbers {
    /// As they are.
    pub(crate) fn dense(values: &[f32]) -> Self {
        Numbers::Dense(values.into())
    }

    /// How many numbers there are, if they are as they are.
    pub(crate) fn count(&self) -> usize {
        match self {
            Numbers::Dense(values) => values.len(),
            Numbers::Frame(_) => 0,
        }
    }

    /// The numbers as they are, if they are so and there are `count` of them.
    pub(crate) fn as_dense(&self, count: usize) -> Option<&[f32]> {
        match self {
            Numbers::Dense(values) if values.len() == count => Some(values),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(codec: Codec, form: Form) -> Route {
        Route {
            codec,
            form,
            feedback: true,
            key: Key::new(4),
        }
    }

    #[test]
    fn a_row_is_sent_alike_alone_and_among_more_than_one_task_takes() {
        let (count, width) = (3 * ROWS_PER_TASK + 5, 7);
        let route = route(Codec::Dither { levels: 16 }, Form::Whole);
        let meant: Vec<f32> = (0..count * width).map(|i| libm::sinf(i as f32)).collect();
        let (mut together, mut frame) = (meant.clone(), Vec::new());
        let numbers: Vec<u32> = (0..count as u32).collect();
        route.send_rows(&numbers, &mut together, &mut frame);
        let mut alone = meant;
        for (number, row) in numbers.iter().zip(alone.chunks_exact_mut(width)) {
            let codec = Codec::Dither { levels: 16 };
            codec.round_trip(route.key.with(u64::from(*number)), row, &mut frame);
        }
        assert_eq!(together, alone);
    }

    #[test]
    fn what_is_packed_is_read_as_it_is_sent_in_place() {
        let meant: Vec<f32> = (0..50).map(|i| libm::cosf(i as f32 * 0.7)).collect();
        let known: Vec<f32> = (0..50).map(|i| libm::sinf(i as f32 * 0.3)).collect();
        for codec in ["none", "top-k:128", "dither:16"] {
            for form in [Form::Whole, Form::Step, Form::StepFrom] {
                for spoilt in [false, true] {
                    let route = route(Codec::parse(codec).unwrap(), form);
                    let mut values = meant.clone();
                    if spoilt {
                        values[7] = f32::NAN;
                    }
                    let [mut lost_a, mut lost_b] = [vec![0.25; 50], vec![0.25; 50]];
                    let packed = route.pack(&values, &known, &mut lost_a);
                    let read = route.read(&packed, 50, Some(&known)).unwrap();
                    route.send(&mut values, &known, &mut lost_b, &mut Vec::new());
                    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&read), bits(&values), "{codec} {form:?} {spoilt}");
                    assert_eq!(bits(&lost_a), bits(&lost_b), "{codec} {form:?} {spoilt}");
                    let hides = spoilt && form == Form::Whole && codec != "none";
                    assert_eq!(values[7].is_nan(), spoilt && !hides, "{codec} {form:?}");
                }
            }
        }
    }

    /// A receiver who keeps nothing gets the largest numbers and never the others; an edge that keeps a copy gets the
    /// others later. For the dither, what is left of the step shrinks with the step.
    #[test]
    fn the_edges_copy_converges_to_a_constant_theta0() {
        for (case, n) in [(1, 325), (2, 9_414), (3, 7), (4, 1)] {
            let mut stream = Key::new(case).stream();
            let theta0: Vec<f32> = (0..n).map(|_| stream.normal()).collect();
            let far = |read: &[f32]| {
                let squares = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>();
                let off = &mut theta0.iter().zip(read).map(|(a, b)| f64::from(a - b));
                let all = &mut theta0.iter().map(|x| f64::from(*x));
                (squares(off) / squares(all)).sqrt()
            };
            for codec in ["top-k:128", "dither:16"] {
                let settings = |feedback| CompressionSettings {
                    theta0: Some(codec.into()),
                    theta0_feedback: feedback,
                    ..CompressionSettings::default()
                };
                let route = |feedback, t| {
                    let path = Compression::new(&settings(feedback)).unwrap();
                    Route {
                        codec: path.codec(Leg::Theta0),
                        form: path.form(Leg::Theta0),
                        feedback: path.error_feedback,
                        key: Key::new(9).with(t),
                    }
                };
                let mut copy = vec![0.0; n];
                let mut before = f64::INFINITY;
                for t in 0..12 {
                    let [mut plain, mut sent] = [theta0.clone(), theta0.clone()];
                    route(false, t).send(&mut plain, &[], &mut [], &mut Vec::new());
                    route(true, t).send(&mut sent, &copy, &mut [], &mut Vec::new());
                    copy = sent;
                    let (now, at_once) = (far(&copy), far(&plain));
                    let what = format!("{codec}, {n} numbers, message {t}: {now} and {at_once}");
                    match t {
                        0 => assert_eq!(copy, plain, "{what}"),
                        _ => assert!(now < before || now < 1e-6, "{what}"),
                    }
                    assert!(t < 1 || now < at_once || at_once < 1e-6, "{what}");
                    before = now;
                }
                assert!(before < 1e-6, "{codec}, {n} numbers: {before}");
            }
        }
    }

    #[test]
    fn a_step_cannot_be_read_without_what_it_is_from() {
        let route = route(Codec::Dither { levels: 16 }, Form::StepFrom);
        let packed = route.pack(&[1.0, 2.0], &[0.5, 0.5], &mut []);
        assert!(matches!(packed, Numbers::Frame(_)));
        assert_eq!(route.read(&packed, 2, None), None);
        assert_eq!(
            route.read(&packed, 3, Some(&[0.5; 3])),
            None,
            "another length"
        );
        assert!(route.read(&packed, 2, Some(&[0.5; 2])).is_some());
        let whole = Numbers::dense(&[1.0, 2.0]);
        assert_eq!(route.read(&whole, 2, None), Some(vec![1.0, 2.0]));
    }
}
