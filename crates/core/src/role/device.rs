//! A device: answers its edge. It remembers nothing that it could not be told again.

use super::message::{Message, Numbers};
use super::{Event, Outbox, Party};
use crate::compression::message_key;
use crate::exchange::{Embeddings, Frozen};
use crate::group::UP;
use crate::ledger::Kind;
use crate::local_steps::{DeviceWorkspace, Owned, Steps, device_steps};
use crate::schedule::Segment;
use crate::task::Task;
use std::ops::Range;

/// A device and its samples.
pub struct Device<'a> {
    task: &'a Task<'a>,
    group: usize,
    number: u32,
    /// Its rows, as the group counts them.
    rows: Range<usize>,
    x2: Vec<f32>,
    y: Vec<u32>,
    frozen: Frozen,
    workspace: DeviceWorkspace,
    invited: Option<Invited>,
}

/// The interval it takes part in.
struct Invited {
    t: u64,
    segment: Segment,
    /// θ2 as it was received.
    theta2: Vec<f32>,
    /// What it answered to the lesson, once it has.
    model: Option<Message>,
}

impl<'a> Device<'a> {
    /// A device with its own rows of x2 and y.
    pub fn new(
        task: &'a Task<'a>,
        (group, number): (usize, u32),
        rows: Range<usize>,
        x2: Vec<f32>,
        y: Vec<u32>,
    ) -> Self {
        Device {
            task,
            group,
            number,
            rows,
            x2,
            y,
            frozen: Frozen::new(&task.architecture),
            workspace: DeviceWorkspace::new(&task.architecture),
            invited: None,
        }
    }

    /// What happens, and what it says to that. A device does not wait for anything.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        let edge = Party::Edge(self.group);
        let answer = match event {
            Event::Received(from, message) if from == edge => match message {
                Message::Invite { t, segment, theta2 } => self.invited(t, segment, &theta2),
                Message::Lesson { t, theta0, zeta1 } => self.lesson(t, &theta0, &zeta1),
                _ => None,
            },
            _ => None,
        };
        if let Some(message) = answer {
            outbox.send(edge, message);
        }
    }

    /// ζ2 of its samples, for the newest interval it has heard of.
    fn invited(&mut self, t: u64, segment: Segment, theta2: &Numbers) -> Option<Message> {
        let known = self.invited.as_ref();
        if known.is_some_and(|invited| invited.t > t) {
            return None;
        }
        let (device, codecs) = (&self.task.architecture.device, &self.task.compression);
        let theta2 = theta2.unpack(
            codecs.device_download,
            self.key(Kind::Theta2, t),
            device.params(),
        )?;
        if known.is_none_or(|invited| invited.t < t) {
            self.invited = Some(Invited {
                t,
                segment,
                theta2: theta2.clone(),
                model: None,
            });
        }
        let mut side = Embeddings::new(false);
        let all: Vec<u32> = (0..self.y.len() as u32).collect();
        side.embed(device, &theta2, &self.x2, &all);
        let width = device.output().len();
        let key = self.key(Kind::Zeta2, t);
        let rows = side.zeta.chunks_exact(width).zip(self.rows.clone());
        let pack = |(row, number): (&[f32], usize)| {
            Numbers::pack(codecs.zeta2, key.with(number as u64), row)
        };
        Some(Message::Zeta2 {
            t,
            zeta2: rows.map(pack).collect(),
        })
    }

    /// Its model after Q steps on what it was sent.
    fn lesson(&mut self, t: u64, theta0: &Numbers, zeta1: &[Numbers]) -> Option<Message> {
        let (task, number) = (self.task, self.number);
        let architecture = &task.architecture;
        let codecs = &task.compression;
        let (key0, key1) = (self.key(Kind::Theta0, t), self.key(Kind::Zeta1, t));
        let theta0 = theta0.unpack(codecs.theta0, key0, architecture.combined.params())?;
        let d1 = architecture.hospital.output().len();
        if zeta1.len() != self.rows.len() {
            return None;
        }
        let mut rows = Vec::new();
        for (row, place) in zeta1.iter().zip(self.rows.clone()) {
            rows.extend(row.unpack(codecs.zeta1, key1.with(place as u64), d1)?);
        }
        let invited = self.invited.as_mut().filter(|invited| invited.t == t)?;
        if invited.model.is_some() {
            return invited.model.clone();
        }
        let theirs = &invited.theta2;
        self.frozen.freeze(architecture, &theta0, theirs);
        let owned = Owned {
            x2: &self.x2,
            y: &self.y,
            zeta1: &rows,
            tapes: &[],
        };
        let steps = Steps {
            segment: invited.segment,
            first: t,
        };
        let mut own = vec![0.0; theirs.len()];
        device_steps(
            architecture,
            &task.descent,
            steps,
            owned,
            &self.frozen,
            (theirs, &mut own),
            &mut self.workspace,
        );
        let theta2 = match codecs.changes_device_models() {
            false => Numbers::Dense(own),
            true => {
                for (own, theirs) in own.iter_mut().zip(theirs) {
                    *own -= theirs;
                }
                let end = t + invited.segment.local_interval;
                let key = message_key(task.experiment.seed, self.group, Kind::Theta2, end);
                let key = key.with(UP).with(u64::from(number));
                match own.iter().all(|x| x.is_finite()) {
                    true => Numbers::pack(codecs.device_upload, key, &own),
                    false => Numbers::Dense(own),
                }
            }
        };
        invited.model = Some(Message::Model { t, theta2 });
        invited.model.clone()
    }

    fn key(&self, kind: Kind, t: u64) -> selvedge_nn::random::Key {
        message_key(self.task.experiment.seed, self.group, kind, t)
    }
}
