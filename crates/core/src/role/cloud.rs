//! The cloud: averages the groups that are there, and announces θ.

use super::message::{Message, Numbers};
use super::{Absence, Event, Outbox, Party, Phase};
use crate::adaptive::{self, Report};
use crate::cloud::{Announced, gather, unpack_upload};
use crate::compression::message_key;
use crate::ledger::Kind;
use crate::model::Model;
use crate::state::State;
use crate::task::Task;

/// The cloud and its state.
pub struct Cloud<'a> {
    task: &'a Task<'a>,
    state: State,
    /// What each group has uploaded for the next aggregation.
    uploads: Vec<Upload>,
    /// The next aggregation.
    next: u64,
    /// The last one: who was in it, and what was announced.
    last: Option<Last>,
}

#[derive(Clone, Default)]
struct Upload {
    hospital: Option<([Vec<f32>; 2], Option<Report>)>,
    edge: Option<Vec<f32>>,
}

struct Last {
    t: u64,
    present: Vec<bool>,
    announced: Announced,
    /// The aggregation that differences are to.
    since: u64,
}

impl<'a> Cloud<'a> {
    /// The cloud before the first iteration.
    pub fn new(task: &'a Task<'a>) -> Self {
        let mut state = State::initial(task);
        adaptive::begin(task, &mut state);
        let groups = task.dataset.groups.len();
        let mut cloud = Cloud {
            task,
            state,
            uploads: vec![Upload::default(); groups],
            next: 0,
            last: None,
        };
        cloud.plan();
        cloud
    }

    /// The model of the last aggregation, and everything else that there is to know of the run.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether the last aggregation was at t = T.
    pub fn ended(&self) -> bool {
        self.state.progress.t >= self.task.experiment.train.iterations
    }

    /// Begins to wait for the first aggregation.
    pub fn start(&mut self, outbox: &mut Outbox) {
        outbox.phases.push((Phase::Global, self.next));
    }

    fn plan(&mut self) {
        let progress = &self.state.progress;
        self.next = progress.t + progress.segment.global_interval;
    }

    /// What happens, and what it does about it.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        match event {
            Event::Received(party, message) => self.received(party, &message, outbox),
            Event::Deadline(Phase::Global, t) if t == self.next && !self.ended() => {
                if self.complete().contains(&true) {
                    self.aggregate(outbox);
                }
            }
            Event::Retry => self.announce_to_all(outbox),
            Event::Deadline(..) => {}
        }
    }

    fn received(&mut self, party: Party, message: &Message, outbox: &mut Outbox) {
        let (m, t) = match (party, message) {
            (Party::Hospital(m), Message::HospitalModel { t, .. }) => (m, *t),
            (Party::Edge(m), Message::EdgeModel { t, .. }) => (m, *t),
            _ => return,
        };
        if m >= self.uploads.len() {
            return;
        }
        if t < self.next || self.ended() {
            self.announce(party, m, outbox);
            return;
        }
        if t != self.next || !self.keep(m, message) {
            return;
        }
        if self.complete().iter().all(|there| *there) {
            self.aggregate(outbox);
        }
    }

    /// Keeps half an upload, if it can be read.
    fn keep(&mut self, m: usize, message: &Message) -> bool {
        let codec = self.task.compression.global_upload;
        let (seed, t) = (self.task.experiment.seed, self.next);
        let theta = &self.state.theta;
        let read = |numbers: &Numbers, kind, known: &[f32]| {
            unpack_upload(codec, message_key(seed, m, kind, t), numbers, known)
        };
        match message {
            Message::HospitalModel {
                theta0,
                theta1,
                report,
                ..
            } => {
                let theta0 = read(theta0, Kind::Theta0, &theta.theta0);
                let theta1 = read(theta1, Kind::Theta1, &theta.theta1);
                let (Some(theta0), Some(theta1)) = (theta0, theta1) else {
                    return false;
                };
                let half = ([theta0, theta1], *report);
                self.uploads[m].hospital.get_or_insert(half);
            }
            Message::EdgeModel { theta2, .. } => {
                let Some(theta2) = read(theta2, Kind::Theta2, &theta.theta2) else {
                    return false;
                };
                self.uploads[m].edge.get_or_insert(theta2);
            }
            _ => return false,
        }
        true
    }

    /// Which groups have uploaded both halves.
    fn complete(&self) -> Vec<bool> {
        let both = |u: &Upload| u.hospital.is_some() && u.edge.is_some();
        self.uploads.iter().map(both).collect()
    }

    fn aggregate(&mut self, outbox: &mut Outbox) {
        let present = self.complete();
        let there: Vec<usize> = (0..present.len()).filter(|m| present[*m]).collect();
        let since = self.state.progress.aggregated;
        self.state.progress.t = self.next;
        for (m, upload) in self.uploads.iter_mut().enumerate() {
            let (hospital, edge) = (upload.hospital.take(), upload.edge.take());
            let (Some(([theta0, theta1], report)), Some(theta2)) = (hospital, edge) else {
                outbox.absences.push(Absence {
                    phase: Phase::Global,
                    t: self.next,
                    group: m,
                    device: None,
                });
                continue;
            };
            self.state.groups[m] = Model {
                theta0,
                theta1,
                theta2,
            };
            let controller = self.state.progress.controller.as_mut();
            if let (Some(controller), Some(report)) = (controller, report) {
                controller.reports[m] = report;
            }
        }
        let announced = gather(self.task, &mut self.state, &there);
        self.last = Some(Last {
            t: self.next,
            present,
            announced,
            since,
        });
        self.plan();
        self.announce_to_all(outbox);
        if !self.ended() {
            outbox.phases.push((Phase::Global, self.next));
        }
    }

    fn announce_to_all(&self, outbox: &mut Outbox) {
        for m in 0..self.uploads.len() {
            self.announce(Party::Hospital(m), m, outbox);
            self.announce(Party::Edge(m), m, outbox);
        }
    }

    /// Tells a party of the last aggregation: as differences, if it was in the one before.
    fn announce(&self, party: Party, m: usize, outbox: &mut Outbox) {
        let Some(last) = &self.last else { return };
        let theta = &self.state.theta;
        let whole = [&theta.theta0, &theta.theta1, &theta.theta2];
        let parts = match party {
            Party::Hospital(_) => 0..2,
            _ => 2..3,
        };
        // Who was in this aggregation has the θ that it began with.
        let coded = match &last.announced {
            Announced::Differences(frames) if last.present[m] => Some(frames),
            _ => None,
        };
        let part = |i: usize| match coded {
            Some(frames) => frames[i].clone(),
            None => Numbers::Dense(whole[i].clone()),
        };
        let message = Message::Global {
            t: last.t,
            parts: parts.map(part).collect(),
            since: coded.map(|_| last.since),
            segment: self.state.progress.segment,
            anew: !last.present[m] || matches!(last.announced, Announced::Restored),
            ended: self.ended(),
        };
        outbox.send(party, message);
    }
}
