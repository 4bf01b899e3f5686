//! A hospital: answers its edge's batch with θ0 and ζ1, steps, and uploads at global aggregations.

use super::message::{Message, Numbers};
use super::{Event, Outbox, Party};
use crate::adaptive::Report;
use crate::cloud::{pack_upload, unpack_download};
use crate::codec::{Codec, with_feedback};
use crate::compression::message_key;
use crate::dataset;
use crate::exchange::Embeddings;
use crate::experiment::Side;
use crate::group::Group;
use crate::ledger::Kind;
use crate::local_steps::{Batch, Steps, TowerWorkspace, hospital_steps};
use crate::schedule::Segment;
use crate::task::Task;

/// A hospital and what it holds of its group.
pub struct Hospital<'a> {
    task: &'a Task<'a>,
    group: usize,
    /// x1 and y of its group, by device.
    data: dataset::Group,
    /// The iteration that comes next.
    t: u64,
    segment: Segment,
    theta0: Vec<f32>,
    theta1: Vec<f32>,
    /// θ0 and θ1 of the last global aggregation, and when that was.
    global: (u64, [Vec<f32>; 2]),
    /// What compression has lost of θ0 to the devices, and of uploads.
    residual: Vec<f32>,
    uploads: [Vec<f32>; 2],
    report: Report,
    workspace: TowerWorkspace,
    /// The last interval, and what was sent for it.
    answered: Option<(u64, Message)>,
    /// What was sent to the cloud, until it answers.
    uploaded: Option<Message>,
    ended: bool,
}

impl<'a> Hospital<'a> {
    /// The hospital of a group before the first iteration, with its own columns of the data.
    pub fn new(task: &'a Task<'a>, group: usize, data: dataset::Group) -> Self {
        let model = task.architecture.initial(task.experiment.seed);
        let lossy = |codec: Codec, width: usize| match codec {
            Codec::None => Vec::new(),
            _ => vec![0.0; width],
        };
        let codecs = &task.compression;
        Hospital {
            group,
            data,
            t: 0,
            segment: task.segment(),
            residual: lossy(codecs.theta0, model.theta0.len()),
            uploads: [&model.theta0, &model.theta1]
                .map(|part| lossy(codecs.global_upload, part.len())),
            global: (0, [model.theta0.clone(), model.theta1.clone()]),
            theta0: model.theta0,
            theta1: model.theta1,
            report: Report::default(),
            workspace: TowerWorkspace::new(
                &task.architecture,
                Side::Hospital,
                task.selected[group],
            ),
            answered: None,
            uploaded: None,
            ended: false,
            task,
        }
    }

    /// What happens, and what it does about it.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        match event {
            Event::Received(Party::Edge(m), Message::Batch { t, zeta2 }) if m == self.group => {
                if let Some((_, answer)) = self.answered.as_ref().filter(|(at, _)| *at == t) {
                    outbox.send(Party::Edge(self.group), answer.clone());
                } else if t == self.t && self.uploaded.is_none() && !self.ended {
                    self.interval(&zeta2, outbox);
                }
            }
            Event::Received(Party::Cloud, message @ Message::Global { .. }) => {
                self.global(&message);
            }
            Event::Retry => {
                if let Some(message) = &self.uploaded {
                    outbox.send(Party::Cloud, message.clone());
                }
            }
            _ => {}
        }
    }

    /// One interval with the devices that are there: nothing, if what came does not fit.
    fn interval(&mut self, zeta2: &[Option<Vec<Numbers>>], outbox: &mut Outbox) {
        let mut group = Group::default();
        group.draw(self.task, self.group, self.t);
        let Some(other) = self.unpack(&group, zeta2) else {
            return;
        };
        group.exchanged = zeta2.iter().map(Option::is_some).collect();
        let answer = self.answer(&group);
        outbox.send(Party::Edge(self.group), answer.clone());
        self.answered = Some((self.t, answer));
        let batch = Batch {
            samples: &self.data.samples,
            rows: &group.rows,
            starts: &group.starts,
            present: &group.exchanged,
            other: &other,
            tapes: &[],
        };
        let steps = Steps {
            segment: self.segment,
            first: self.t,
        };
        let seen = hospital_steps(
            &self.task.architecture,
            &self.task.descent,
            steps,
            batch,
            (&mut self.theta0, &mut self.theta1),
            &mut self.workspace,
        );
        self.report.add(seen);
        self.t += self.segment.local_interval;
        if self.segment.aggregates_globally_at(self.t) {
            self.upload(outbox);
        }
    }

    /// ζ2 of all places of the batch; zeros where a device is absent, whom nobody asks for.
    fn unpack(&self, group: &Group, zeta2: &[Option<Vec<Numbers>>]) -> Option<Vec<f32>> {
        let width = self.task.architecture.device.output().len();
        let key = self.key(Kind::Zeta2, self.t);
        let codec = self.task.compression.zeta2;
        if zeta2.len() != group.subset.len() {
            return None;
        }
        let mut all = vec![0.0; group.rows.len() * width];
        for (position, rows) in zeta2.iter().enumerate() {
            let Some(rows) = rows else { continue };
            let places = group.starts[position] as usize..group.starts[position + 1] as usize;
            if rows.len() != places.len() {
                return None;
            }
            for (place, row) in places.zip(rows) {
                let key = key.with(u64::from(group.rows[place]));
                let row = row.unpack(codec, key, width)?;
                all[place * width..][..width].copy_from_slice(&row);
            }
        }
        Some(all)
    }

    /// θ0, and ζ1 of those who are there.
    fn answer(&mut self, group: &Group) -> Message {
        let codecs = &self.task.compression;
        let tower = &self.task.architecture.hospital;
        let mut side = Embeddings::new(false);
        side.embed(tower, &self.theta1, &self.data.samples.x1, &group.rows);
        let (d1, key1) = (tower.output().len(), self.key(Kind::Zeta1, self.t));
        let pack = |place: usize| {
            let key = key1.with(u64::from(group.rows[place]));
            Numbers::pack(codecs.zeta1, key, &side.zeta[place * d1..][..d1])
        };
        let of_device = |(position, there): (usize, &bool)| {
            let places = group.starts[position] as usize..group.starts[position + 1] as usize;
            there.then(|| places.map(pack).collect())
        };
        let zeta1 = group.exchanged.iter().enumerate().map(of_device).collect();
        let theta0 = group.exchanged.contains(&true).then(|| {
            let key = self.key(Kind::Theta0, self.t);
            match codecs.theta0 {
                Codec::None => Numbers::Dense(self.theta0.clone()),
                codec => {
                    if !codecs.error_feedback {
                        self.residual.fill(0.0);
                    }
                    let (mut sent, mut frame) = (vec![0.0; self.theta0.len()], Vec::new());
                    let lost = &mut self.residual;
                    with_feedback(codec, key, &self.theta0, lost, &mut sent, &mut frame);
                    Numbers::Frame(frame)
                }
            }
        });
        Message::Frozen {
            t: self.t,
            theta0,
            zeta1,
        }
    }

    fn upload(&mut self, outbox: &mut Outbox) {
        let codecs = &self.task.compression;
        let (key0, key1) = (
            self.key(Kind::Theta0, self.t),
            self.key(Kind::Theta1, self.t),
        );
        let [known0, known1] = &self.global.1;
        let [lost0, lost1] = &mut self.uploads;
        let steered = !self.task.experiment.train.adaptive.is_off();
        let message = Message::HospitalModel {
            t: self.t,
            theta0: pack_upload(codecs, key0, known0, &self.theta0, lost0),
            theta1: pack_upload(codecs, key1, known1, &self.theta1, lost1),
            report: steered.then_some(self.report),
        };
        self.report = Report::default();
        outbox.send(Party::Cloud, message.clone());
        self.uploaded = Some(message);
    }

    /// Adopts the newest θ0 and θ1, wherever it is itself.
    fn global(&mut self, message: &Message) {
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
        let waits = self.uploaded.is_some();
        if self.ended || *t < self.t || (*t == self.t && !waits) {
            return;
        }
        let [part0, part1] = &parts[..] else { return };
        let codec = self.task.compression.global_download;
        let seed = self.task.experiment.seed;
        let read = |part, kind, known: &[f32]| {
            let key = message_key(seed, usize::MAX, kind, *t);
            unpack_download(codec, key, part, (*since, self.global.0), known)
        };
        let [known0, known1] = &self.global.1;
        let both = (
            read(part0, Kind::Theta0, known0),
            read(part1, Kind::Theta1, known1),
        );
        let (Some(theta0), Some(theta1)) = both else {
            return;
        };
        if *t > self.t || *anew {
            // What it has sent was not used, or is not wanted any more.
            self.residual.fill(0.0);
            self.uploads.iter_mut().for_each(|lost| lost.fill(0.0));
        }
        (self.t, self.segment) = (*t, *segment);
        self.global = (*t, [theta0.clone(), theta1.clone()]);
        (self.theta0, self.theta1) = (theta0, theta1);
        (self.report, self.uploaded, self.ended) = (Report::default(), None, *ended);
    }

    fn key(&self, kind: Kind, t: u64) -> selvedge_nn::random::Key {
        message_key(self.task.experiment.seed, self.group, kind, t)
    }
}
