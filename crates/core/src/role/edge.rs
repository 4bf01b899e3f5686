//! An edge: drives its group from exchange to exchange.

use super::message::{Message, Numbers};
use super::{Absence, Event, Outbox, Party, Phase};
use crate::aggregate::local_mean;
use crate::cloud::{pack_upload, unpack_download};
use crate::codec::Codec;
use crate::compression::message_key;
use crate::group::{Group, UP};
use crate::ledger::Kind;
use crate::schedule::Segment;
use crate::task::Task;
use selvedge_nn::vector;

/// An edge and what it holds of its group.
pub struct Edge<'a> {
    task: &'a Task<'a>,
    group: usize,
    /// The iteration that comes next.
    t: u64,
    segment: Segment,
    /// `θ2[m]`
    theta2: Vec<f32>,
    /// θ2 of the last global aggregation, and when that was.
    global: (u64, Vec<f32>),
    /// What compression has lost of uploads.
    residual: Vec<f32>,
    stage: Stage,
}

/// What it waits for.
enum Stage {
    /// ζ2 of the drawn devices.
    Inviting(Drawn),
    /// θ0 and ζ1, from the hospital.
    Asking(Drawn),
    /// The devices' models.
    Teaching(Drawn, Vec<Option<Message>>),
    /// The cloud.
    Uploaded(Message),
    /// Nothing more.
    Ended,
}

/// The devices of an interval.
struct Drawn {
    subset: Vec<u32>,
    zeta2: Vec<Option<Vec<Numbers>>>,
    models: Vec<Option<Vec<f32>>>,
}

impl Drawn {
    fn position(&self, device: u32) -> Option<usize> {
        self.subset.binary_search(&device).ok()
    }
}

impl<'a> Edge<'a> {
    /// The edge of a group before the first iteration.
    pub fn new(task: &'a Task<'a>, group: usize) -> Self {
        let theta2 = task.architecture.initial(task.experiment.seed).theta2;
        let residual = match task.compression.global_upload {
            Codec::None => Vec::new(),
            _ => vec![0.0; theta2.len()],
        };
        Edge {
            task,
            group,
            t: 0,
            segment: task.segment(),
            global: (0, theta2.clone()),
            theta2,
            residual,
            stage: Stage::Ended,
        }
    }

    /// Begins the first interval.
    pub fn start(&mut self, outbox: &mut Outbox) {
        self.invite(outbox);
    }

    /// What happens, and what it does about it.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        match event {
            Event::Received(Party::Device(m, n), message) if m == self.group => match message {
                Message::Zeta2 { t, zeta2 } if t == self.t => self.zeta2(n, zeta2, outbox),
                Message::Model { t, theta2 } if t == self.t => self.model(n, &theta2, outbox),
                _ => {}
            },
            Event::Received(Party::Hospital(m), Message::Frozen { t, theta0, zeta1 })
                if m == self.group && t == self.t =>
            {
                self.frozen(theta0.as_ref(), zeta1, outbox);
            }
            Event::Received(Party::Cloud, message @ Message::Global { .. }) => {
                self.global(&message, outbox);
            }
            Event::Deadline(Phase::Exchange, t) if t == self.t => self.exchanged(outbox),
            Event::Deadline(Phase::Upload, t) if t == self.t => self.aggregate(outbox),
            Event::Retry => self.again(outbox),
            _ => {}
        }
    }

    fn devices(&self, drawn: &Drawn) -> impl Iterator<Item = Party> + use<> {
        let group = self.group;
        let subset = drawn.subset.clone().into_iter();
        subset.map(move |n| Party::Device(group, n))
    }

    /// Draws A_m and invites it.
    fn invite(&mut self, outbox: &mut Outbox) {
        let mut group = Group::default();
        group.draw(self.task, self.group, self.t);
        let subset = group.subset;
        let nothing = vec![None; subset.len()];
        self.stage = Stage::Inviting(Drawn {
            zeta2: nothing,
            models: vec![None; subset.len()],
            subset,
        });
        outbox.phases.push((Phase::Exchange, self.t));
        self.again(outbox);
    }

    fn invitation(&self) -> Message {
        let key = self.key(Kind::Theta2, self.t);
        let codec = self.task.compression.device_download;
        Message::Invite {
            t: self.t,
            segment: self.segment,
            theta2: Numbers::pack(codec, key, &self.theta2),
        }
    }

    /// Sends what it waits for an answer to.
    fn again(&self, outbox: &mut Outbox) {
        match &self.stage {
            Stage::Inviting(drawn) => {
                let missing = self.devices(drawn).zip(&drawn.zeta2);
                for (device, _) in missing.filter(|(_, zeta2)| zeta2.is_none()) {
                    outbox.send(device, self.invitation());
                }
            }
            Stage::Asking(drawn) => {
                let message = Message::Batch {
                    t: self.t,
                    zeta2: drawn.zeta2.clone(),
                };
                outbox.send(Party::Hospital(self.group), message);
            }
            Stage::Teaching(drawn, lessons) => {
                let missing = self.devices(drawn).zip(lessons).zip(&drawn.models);
                for ((device, lesson), _) in missing.filter(|(_, model)| model.is_none()) {
                    if let Some(lesson) = lesson {
                        // Who has forgotten the invitation needs it first.
                        outbox.send(device, self.invitation());
                        outbox.send(device, lesson.clone());
                    }
                }
            }
            Stage::Uploaded(message) => outbox.send(Party::Cloud, message.clone()),
            Stage::Ended => {}
        }
    }

    fn zeta2(&mut self, device: u32, rows: Vec<Numbers>, outbox: &mut Outbox) {
        let Stage::Inviting(drawn) = &mut self.stage else {
            return;
        };
        let Some(position) = drawn.position(device) else {
            return;
        };
        drawn.zeta2[position].get_or_insert(rows);
        if drawn.zeta2.iter().all(Option::is_some) {
            self.exchanged(outbox);
        }
    }

    /// Whoever has sent ζ2 takes part.
    fn exchanged(&mut self, outbox: &mut Outbox) {
        let drawn = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Inviting(drawn) => drawn,
            // A deadline that comes when all have answered is none.
            other => return self.stage = other,
        };
        for (device, zeta2) in drawn.subset.iter().zip(&drawn.zeta2) {
            if zeta2.is_none() {
                outbox.absences.push(Absence {
                    phase: Phase::Exchange,
                    t: self.t,
                    group: self.group,
                    device: Some(*device),
                });
            }
        }
        self.stage = Stage::Asking(drawn);
        self.again(outbox);
    }

    /// Passes on what the hospital sends to those who are there.
    fn frozen(
        &mut self,
        theta0: Option<&Numbers>,
        zeta1: Vec<Option<Vec<Numbers>>>,
        outbox: &mut Outbox,
    ) {
        let Stage::Asking(drawn) = &self.stage else {
            return;
        };
        let fits = zeta1.len() == drawn.subset.len()
            && zeta1
                .iter()
                .zip(&drawn.zeta2)
                .all(|(a, b)| a.is_some() == b.is_some())
            && theta0.is_some() == drawn.zeta2.iter().any(Option::is_some);
        if !fits {
            return;
        }
        let t = self.t;
        let lesson = |zeta1: Vec<Numbers>| {
            let theta0 = theta0.cloned()?;
            Some(Message::Lesson { t, theta0, zeta1 })
        };
        let lessons: Vec<_> = zeta1
            .into_iter()
            .map(|rows| rows.and_then(lesson))
            .collect();
        let Stage::Asking(drawn) = std::mem::replace(&mut self.stage, Stage::Ended) else {
            return;
        };
        let nobody = lessons.iter().all(Option::is_none);
        for (device, lesson) in self.devices(&drawn).zip(&lessons) {
            if let Some(lesson) = lesson {
                outbox.send(device, lesson.clone());
            }
        }
        self.stage = Stage::Teaching(drawn, lessons);
        outbox.phases.push((Phase::Upload, t));
        if nobody {
            self.aggregate(outbox);
        }
    }

    fn model(&mut self, device: u32, theta2: &Numbers, outbox: &mut Outbox) {
        let (seed, group) = (self.task.experiment.seed, self.group);
        let end = self.t + self.segment.local_interval;
        let key = message_key(seed, group, Kind::Theta2, end);
        let key = key.with(UP).with(u64::from(device));
        let codec = self.task.compression.device_upload;
        let Stage::Teaching(drawn, lessons) = &mut self.stage else {
            return;
        };
        let position = drawn.position(device);
        let Some(position) = position.filter(|p| lessons[*p].is_some()) else {
            return;
        };
        if drawn.models[position].is_none() {
            drawn.models[position] = theta2.unpack(codec, key, self.theta2.len());
        }
        let missing = |(lesson, model): (&Option<Message>, &Option<Vec<f32>>)| {
            lesson.is_some() && model.is_none()
        };
        if !lessons.iter().zip(&drawn.models).any(missing) {
            self.aggregate(outbox);
        }
    }

    /// `θ2[m]` becomes the mean of the models that have arrived.
    fn aggregate(&mut self, outbox: &mut Outbox) {
        let (drawn, lessons) = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Teaching(drawn, lessons) => (drawn, lessons),
            other => return self.stage = other,
        };
        self.t += self.segment.local_interval;
        let taught = drawn.subset.iter().zip(&drawn.models).zip(&lessons);
        for ((device, model), lesson) in taught {
            if lesson.is_some() && model.is_none() {
                outbox.absences.push(Absence {
                    phase: Phase::Upload,
                    t: self.t,
                    group: self.group,
                    device: Some(*device),
                });
            }
        }
        let arrived: Vec<bool> = drawn.models.iter().map(Option::is_some).collect();
        let n2 = self.theta2.len();
        let empty = vec![0.0; n2];
        let rows = drawn.models.iter().map(|m| m.as_ref().unwrap_or(&empty));
        let models: Vec<f32> = rows.flatten().copied().collect();
        let level = self.task.architecture.level();
        match self.task.compression.changes_device_models() {
            false => local_mean(level, &models, &arrived, &mut self.theta2),
            true if arrived.contains(&true) => {
                let mut mean = empty;
                local_mean(level, &models, &arrived, &mut mean);
                vector::add(level, &mean, &mut self.theta2);
            }
            true => {}
        }
        match self.segment.aggregates_globally_at(self.t) {
            true => self.upload(outbox),
            false => self.invite(outbox),
        }
    }

    fn upload(&mut self, outbox: &mut Outbox) {
        let key = self.key(Kind::Theta2, self.t);
        let codecs = &self.task.compression;
        let known = &self.global.1;
        let theta2 = pack_upload(codecs, key, known, &self.theta2, &mut self.residual);
        self.stage = Stage::Uploaded(Message::EdgeModel { t: self.t, theta2 });
        self.again(outbox);
    }

    /// Adopts the newest θ2, wherever it is itself.
    fn global(&mut self, message: &Message, outbox: &mut Outbox) {
        let Message::Global {
            t,
            parts,
            since,
            segment,
            anew,
            ended,
        } = message
        else {
            return;
        };
        let waits = matches!(self.stage, Stage::Uploaded(_));
        if matches!(self.stage, Stage::Ended) || *t < self.t || (*t == self.t && !waits) {
            return;
        }
        let key = message_key(self.task.experiment.seed, usize::MAX, Kind::Theta2, *t);
        let codec = self.task.compression.global_download;
        let [part] = &parts[..] else { return };
        let (at, known) = (self.global.0, &self.global.1);
        let Some(theta2) = unpack_download(codec, key, part, (*since, at), known) else {
            return;
        };
        if *t > self.t || *anew {
            // What it has sent was not used, or is not wanted any more.
            self.residual.fill(0.0);
        }
        (self.t, self.segment) = (*t, *segment);
        self.global = (*t, theta2.clone());
        self.theta2 = theta2;
        match ended {
            true => self.stage = Stage::Ended,
            false => self.invite(outbox),
        }
    }

    fn key(&self, kind: Kind, t: u64) -> selvedge_nn::random::Key {
        message_key(self.task.experiment.seed, self.group, kind, t)
    }
}
