//! A hospital: answers its edge's batch with θ0 and ζ1, steps, and uploads at global aggregations.
//!
//! Its record is what an interval begins with: its models, and the batch. The batch decides who takes part: whatever
//! its edge sends for that interval later, the hospital's answer stays the same. From the record it can recompute
//! everything.

mod astray;
mod calibrate;
mod joint;
mod measure;

use super::joint::Newcomers;
use super::message::Message;
use super::wire::{self, Appended, Reader, Wire, WireError, fields};
use super::{Absence, Doing, Event, HeldOutSamples, Outbox, Party, Phase, is_possible};
use crate::adaptive::Report;
use crate::calibration::Calibration;
use crate::checks::{Reach, squared_length};
use crate::conduct::Conduct;
use crate::dataset::{self};
use crate::exchange::Embeddings;
use crate::experiment::Side;
use crate::group::Turnout;
use crate::ledger::Kind;
use crate::local_steps::{Batch, Stepped, Steps, TowerWorkspace, hospital_steps};
use crate::message_path::{Leg, Numbers, Route};
use crate::schedule::Segment;
use crate::task::Task;
use joint::Asked;
use measure::Measured;

/// ζ2 by position of the subset.
type ByPosition = Vec<Option<Vec<Numbers>>>;

/// A hospital and what it holds of its group.
pub struct Hospital<'a> {
    task: &'a Task<'a>,
    group: usize,
    /// x1 and y of its group, by device.
    data: dataset::Group,
    held_out: HeldOutSamples,
    held: Held,
    workspace: TowerWorkspace,
    /// The last interval, and what was sent for it.
    answered: Option<(u64, Message)>,
    /// What was sent to the cloud, until it answers.
    uploaded: Option<Message>,
    /// A batch that has overtaken the θ it is to be stepped from.
    early: Option<(u64, ByPosition)>,
    /// The model that is measured, and the one before.
    measured: Vec<Measured>,
    /// Whom it answers for besides those who take part.
    newcomers: Option<Newcomers>,
    /// Devices that are to be heard again, whatever its record holds against them.
    pub(super) pardoned: Vec<u32>,
    /// How what the trained model says is corrected.
    calibration: Option<Calibration>,
}

/// What it holds, the batch of the interval that begins, and what it was told at the end.
type Record = ((Held, Option<ByPosition>), Appended<Option<Calibration>>);

/// What it holds between two intervals.
#[derive(Clone)]
struct Held {
    /// The iteration that comes next.
    t: u64,
    segment: Segment,
    theta0: Vec<f32>,
    theta1: Vec<f32>,
    /// When the last global aggregation was, and its θ0 and θ1, where models go as differences to them.
    global_t: u64,
    global0: Vec<f32>,
    global1: Vec<f32>,
    /// The edge's copy of θ0, where it keeps one.
    copy: Vec<f32>,
    /// What compression has lost of uploads.
    lost0: Vec<f32>,
    lost1: Vec<f32>,
    /// What the optimiser remembers of θ0 and θ1.
    memory0: Vec<f32>,
    memory1: Vec<f32>,
    report: Report,
    ended: bool,
    /// What is held against its devices, for ζ2.
    conduct: Conduct,
    reach: Reach,
}

fields!(Held {
    t,
    segment,
    theta0,
    theta1,
    global_t,
    global0,
    global1,
    copy,
    lost0,
    lost1,
    memory0,
    memory1,
    report,
    ended,
    conduct,
    reach
});

impl<'a> Hospital<'a> {
    /// The hospital of a group before the first iteration, with its own columns of the data.
    pub fn new(
        task: &'a Task<'a>,
        group: usize,
        data: dataset::Group,
        held_out: HeldOutSamples,
    ) -> Self {
        let model = task.architecture.initial(task.experiment.seed);
        let (path, optimiser) = (&task.compression, &task.optimisers.hospital);
        let (n0, n1) = (model.theta0.len(), model.theta1.len());
        let known = |part: &[f32]| match task.groups_keep_theta() {
            true => part.to_vec(),
            false => Vec::new(),
        };
        Hospital {
            group,
            data,
            held_out,
            held: Held {
                t: 0,
                segment: task.segment(),
                copy: path.no_theta0_yet(n0),
                lost0: path.nothing_lost(Leg::Upload(Kind::Theta0), n0),
                lost1: path.nothing_lost(Leg::Upload(Kind::Theta1), n1),
                memory0: vec![0.0; optimiser.remembers(n0)],
                memory1: vec![0.0; optimiser.remembers(n1)],
                global_t: 0,
                global0: known(&model.theta0),
                global1: known(&model.theta1),
                theta0: model.theta0,
                theta1: model.theta1,
                report: Report::default(),
                ended: false,
                conduct: Conduct::default(),
                reach: Reach::default(),
            },
            workspace: TowerWorkspace::new(
                &task.architecture,
                Side::Hospital,
                task.selected[group],
            ),
            answered: None,
            uploaded: None,
            early: None,
            measured: Vec::new(),
            newcomers: None,
            pardoned: Vec::new(),
            calibration: None,
            task,
        }
    }

    /// Resumes from a record: the interval is computed again, and its results are sent again.
    ///
    /// # Errors
    /// If it is not a record of this hospital.
    pub fn restore(&mut self, record: &[u8], outbox: &mut Outbox) -> Result<(), WireError> {
        let ((held, batch), Appended(calibration)): Record = wire::read_record(record)?;
        let lengths = |h: &Held| {
            [
                &h.theta0, &h.theta1, &h.global0, &h.global1, &h.copy, &h.lost0, &h.lost1,
                &h.memory0, &h.memory1,
            ]
            .map(Vec::len)
        };
        let iterations = self.task.experiment.train.iterations;
        let Held { t, segment, .. } = held;
        let in_time = match held.ended {
            true => batch.is_none() && segment.is_sound(t, iterations),
            // There is a batch, so an interval begins.
            false => {
                let leads = segment.leads_from(held.global_t, t, iterations);
                leads && batch.is_some() && t - held.global_t < segment.global_interval
            }
        };
        if lengths(&held) != lengths(&self.held)
            || !in_time
            || !self.can_be_of(calibration.as_ref())
        {
            return Err(WireError::Short("a record of this run and its networks"));
        }
        self.calibration = calibration;
        let before = std::mem::replace(&mut self.held, held);
        if let Some(batch) = batch {
            if !self.interval(&batch, outbox) {
                self.held = before;
                return Err(WireError::Short("a batch of this interval"));
            }
            outbox.record = None;
        }
        // The interval above was computed as it was before.
        for device in &self.pardoned {
            self.held.conduct.pardon(*device);
        }
        if self.held.ended {
            outbox.send(Party::Cloud, Message::Done);
        }
        Ok(())
    }

    /// Who it is.
    pub fn party(&self) -> Party {
        Party::Hospital(self.group)
    }

    /// Whether it has heard that the run is over.
    pub fn is_over(&self) -> bool {
        self.held.ended
    }

    pub(super) fn stage(&self) -> (&'static str, u64) {
        let name = match (self.held.ended, &self.uploaded) {
            (true, _) => "over",
            (false, Some(_)) => "global",
            (false, None) => "batch",
        };
        (name, self.held.t)
    }

    /// What it is doing.
    pub fn doing(&self) -> Doing {
        let (what, missing) = match (self.held.ended, &self.uploaded) {
            (true, _) => ("the run is over", None),
            (false, Some(_)) => ("has uploaded, waits for the cloud", Some(Party::Cloud)),
            (false, None) => ("waits for a batch", Some(Party::Edge(self.group))),
        };
        Doing {
            t: self.held.t,
            what: what.into(),
            missing: missing.into_iter().collect(),
            below_quorum: false,
            gone: Vec::new(),
        }
    }

    /// Handles an event.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        let edge = Party::Edge(self.group);
        match event {
            Event::Received(from, Message::Batch { t, zeta2 }) if from == edge => {
                if let Some((_, answer)) = self.answered.as_ref().filter(|(at, _)| *at == t) {
                    outbox.send(edge, answer.clone());
                } else if t == self.held.t && self.uploaded.is_none() && !self.held.ended {
                    self.interval(&zeta2, outbox);
                } else {
                    if t >= self.held.t && !self.held.ended && self.can_be(t, &zeta2) {
                        self.early = Some((t, zeta2));
                    }
                    self.other_interval(t, outbox);
                }
            }
            Event::Received(Party::Cloud, message @ Message::Global { .. }) => {
                self.global(&message, outbox);
            }
            Event::Received(
                from,
                Message::Astray {
                    edge: Some(at),
                    hospital: Some(own),
                    ..
                },
            ) if from == edge => self.apart(at, own, outbox),
            Event::Received(Party::Cloud, message @ Message::Return { .. }) => {
                if let Some((from, global, _)) = message.returned() {
                    self.returns(from, &global, outbox);
                }
            }
            Event::Received(Party::Cloud, Message::Evaluate { number, parts }) => {
                self.evaluate(number, &parts, outbox);
            }
            Event::Received(
                from,
                Message::Embedded {
                    number,
                    part,
                    rows,
                    zeta2,
                },
            ) if from == edge => self.embedded(number, part, &rows, &zeta2, outbox),
            Event::Received(
                Party::Cloud,
                Message::Calibrate {
                    number,
                    corrections,
                },
            ) => {
                self.calibrate(number, corrections, outbox);
            }
            Event::Received(
                from,
                Message::Question {
                    number,
                    t,
                    gateway,
                    about,
                    zeta2,
                },
            ) if from == edge => {
                let asked = Asked {
                    number,
                    t,
                    gateway,
                    about,
                    zeta2,
                };
                self.question(&asked, outbox);
            }
            Event::Retry | Event::Appeared(Party::Cloud) => {
                if let Some(message) = &self.uploaded {
                    outbox.send(Party::Cloud, message.clone());
                }
                self.tell_where(outbox);
            }
            _ => {}
        }
    }

    /// One interval with the devices that are there: nothing, and false, if what came does not fit.
    fn interval(&mut self, zeta2: &ByPosition, outbox: &mut Outbox) -> bool {
        let mut group = Turnout::default();
        group.draw(self.task, self.group, self.held.t);
        let Some(other) = self.unpack(&group, zeta2) else {
            return false;
        };
        let mut record = wire::record(&self.held);
        true.put(&mut record);
        zeta2.put(&mut record);
        outbox.record = Some(record);
        group.exchanged = zeta2.iter().map(Option::is_some).collect();
        self.judge(&mut group, &other, outbox);
        let answer = self.answer(&group);
        outbox.send(Party::Edge(self.group), answer.clone());
        self.answered = Some((self.held.t, answer));
        let batch = Batch {
            samples: &self.data.samples,
            y: &self.data.samples.y,
            rows: &group.rows,
            starts: &group.starts,
            present: &group.exchanged,
            other: &other,
            tapes: &[],
        };
        let held = &mut self.held;
        let steps = Steps {
            segment: held.segment,
            first: held.t,
        };
        let stepped = Stepped {
            theta0: &mut held.theta0,
            theta: &mut held.theta1,
            memory0: &mut held.memory0,
            memory: &mut held.memory1,
        };
        let seen = hospital_steps(
            &self.task.architecture,
            self.task.hospital_descent(),
            steps,
            batch,
            stepped,
            &mut self.workspace,
        );
        held.report.add(seen);
        held.t += held.segment.local_interval;
        if held.segment.aggregates_globally_at(held.t) {
            self.upload(outbox);
        }
        true
    }

    /// Who takes part: not those who are away, and not those whose ζ2 cannot be used.
    fn judge(&mut self, group: &mut Turnout, zeta2: &[f32], outbox: &mut Outbox) {
        let (t, m) = (self.held.t, self.group);
        let of = |device| Absence::of_device(Phase::Exchange, t, m, device);
        let there = group.subset.iter().zip(&group.exchanged);
        let away = there.filter(|(_, there)| !**there);
        outbox.absences.extend(away.map(|(device, _)| of(*device)));
        let conduct = &mut self.held.conduct;
        group.leave_out_quarantined(self.task, [&*conduct; 2]);
        group.judge_embeddings(self.task, zeta2, conduct);
        let rejected = group.rejected.iter();
        let rejected = rejected.map(|(_, device, reason)| of(*device).because(*reason));
        outbox.absences.extend(rejected);
    }

    /// Whether this can be the batch of an interval that begins at `t`: one that cannot must not take the place of one
    /// that can.
    fn can_be(&self, t: u64, zeta2: &ByPosition) -> bool {
        if t >= self.task.experiment.train.iterations {
            return false;
        }
        let mut group = Turnout::default();
        group.draw(self.task, self.group, t);
        self.unpack(&group, zeta2).is_some()
    }

    /// ζ2 of all places of the batch; zeros where a device is absent, whom nobody asks for.
    fn unpack(&self, group: &Turnout, zeta2: &ByPosition) -> Option<Vec<f32>> {
        let width = self.task.architecture.device.output().len();
        let route = self.task.route(Leg::Zeta2, self.group, group.drawn);
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
                let row = route.of(group.rows[place]).read(row, width, None)?;
                all[place * width..][..width].copy_from_slice(&row);
            }
        }
        Some(all)
    }

    /// θ0, and ζ1 of those who are there.
    fn answer(&mut self, group: &Turnout) -> Message {
        let tower = &self.task.architecture.hospital;
        let mut side = Embeddings::new(false);
        let x1 = &self.data.samples.x1;
        side.embed(tower, &self.held.theta1, x1, &group.rows);
        let (d1, route) = (tower.output().len(), self.route(Leg::Zeta1));
        let pack = |place: usize| {
            let row = &side.zeta[place * d1..][..d1];
            route.of(group.rows[place]).pack(row, &[], &mut [])
        };
        let of_device = |(position, there): (usize, &bool)| {
            let places = group.starts[position] as usize..group.starts[position + 1] as usize;
            there.then(|| places.map(pack).collect())
        };
        let zeta1 = group.exchanged.iter().enumerate().map(of_device).collect();
        let (route, held) = (self.route(Leg::Theta0), &mut self.held);
        let anybody = group.exchanged.contains(&true);
        let theta0 = anybody.then(|| {
            let mut sent = held.theta0.clone();
            let packed = route.pack_in_place(&mut sent, &held.copy, &mut []);
            if !held.copy.is_empty() {
                held.copy = sent;
            }
            packed
        });
        Message::Frozen {
            t: self.held.t,
            theta0,
            zeta1,
        }
    }

    fn upload(&mut self, outbox: &mut Outbox) {
        let routes = [Kind::Theta0, Kind::Theta1].map(|kind| self.route(Leg::Upload(kind)));
        let held = &mut self.held;
        let steered = !self.task.experiment.train.adaptive.is_off();
        if self.task.experiment.defence.download > 0.0 {
            let step = squared_length(&held.theta0, Some(&held.global0))
                + squared_length(&held.theta1, Some(&held.global1));
            held.reach.stepped(step);
        }
        let message = Message::HospitalModel {
            t: held.t,
            theta0: routes[0].pack(&held.theta0, &held.global0, &mut held.lost0),
            theta1: routes[1].pack(&held.theta1, &held.global1, &mut held.lost1),
            report: steered.then_some(held.report),
        };
        held.report = Report::default();
        outbox.send(Party::Cloud, message.clone());
        self.uploaded = Some(message);
    }

    /// Adopts the newest θ0 and θ1, wherever it is itself.
    fn global(&mut self, message: &Message, outbox: &mut Outbox) {
        let Message::Global {
            t,
            since,
            segment,
            ended,
            ..
        } = message
        else {
            return;
        };
        if self.held.ended {
            return outbox.send(Party::Cloud, Message::Done);
        }
        let waits = self.uploaded.is_some();
        if !ended && (*t < self.held.t || (*t == self.held.t && !waits)) {
            return;
        }
        let is_to_another = since.is_some_and(|since| since != self.held.global_t);
        if let Some(problem) = self.is_too_far(message) {
            outbox.stop = Some(problem);
        } else if self.can_adopt(message) {
            self.adopt(message, outbox);
        } else if is_to_another && is_possible(self.task, (*t, segment), *ended) {
            self.cannot_follow(*t, outbox);
        }
    }

    /// θ0 and θ1 of a message, if they can be read.
    fn read_global(&self, message: &Message) -> Option<[Vec<f32>; 2]> {
        let Message::Global {
            t, parts, since, ..
        } = message
        else {
            return None;
        };
        let [part0, part1] = &parts[..] else {
            return None;
        };
        let held = &self.held;
        let read = |part, kind, known, count| {
            let route = self.task.route(Leg::Download(kind), self.group, *t);
            let known = (*since == Some(held.global_t)).then_some(known);
            route.read(part, count, known)
        };
        let theta0 = read(part0, Kind::Theta0, &held.global0[..], held.theta0.len())?;
        let theta1 = read(part1, Kind::Theta1, &held.global1[..], held.theta1.len())?;
        Some([theta0, theta1])
    }

    /// Why the cloud cannot have come to this θ in an honest way.
    fn is_too_far(&self, message: &Message) -> Option<String> {
        let limit = self.task.experiment.defence.download;
        let Message::Global { t, .. } = message else {
            return None;
        };
        let [theta0, theta1] = self.read_global(message).filter(|_| limit > 0.0)?;
        let held = &self.held;
        let far = squared_length(&theta0, Some(&held.global0))
            + squared_length(&theta1, Some(&held.global1));
        let aggregations = held.segment.aggregations_until(held.global_t, *t);
        held.reach.refuses(far, limit, (*t, aggregations))
    }

    /// Whether it can be announced, and read.
    fn can_adopt(&self, message: &Message) -> bool {
        let possible = match message {
            Message::Global {
                t,
                segment,
                ended,
                calibration,
                ..
            } => {
                is_possible(self.task, (*t, segment), *ended)
                    && self.can_be_of(calibration.as_ref())
            }
            _ => false,
        };
        possible && self.read_global(message).is_some()
    }

    fn adopt(&mut self, message: &Message, outbox: &mut Outbox) {
        let (
            Message::Global {
                t,
                segment,
                anew,
                ended,
                calibration,
                ..
            },
            Some([theta0, theta1]),
        ) = (message, self.read_global(message))
        else {
            return;
        };
        let held = &mut self.held;
        if *t > held.t || *anew {
            // What it has sent was not used, or is not wanted any more.
            let lost = [&mut held.copy, &mut held.lost0, &mut held.lost1];
            let memory = [&mut held.memory0, &mut held.memory1];
            let all = lost.into_iter().chain(memory);
            all.for_each(|part| part.fill(0.0));
        }
        (held.t, held.segment, held.global_t) = (*t, *segment, *t);
        if self.task.groups_keep_theta() {
            (held.global0, held.global1) = (theta0.clone(), theta1.clone());
        }
        (held.theta0, held.theta1) = (theta0, theta1);
        (held.report, held.ended) = (Report::default(), *ended);
        self.uploaded = None;
        let early = self.early.take_if(|(t, _)| *t <= self.held.t);
        let early = early.filter(|(t, _)| *t == self.held.t && !*ended);
        if let Some((_, zeta2)) = early {
            self.interval(&zeta2, outbox);
        }
        if *ended {
            self.calibration.clone_from(calibration);
            let mut record = wire::record(&self.held);
            false.put(&mut record);
            Appended(self.calibration.clone()).put(&mut record);
            outbox.record = Some(record);
            outbox.send(Party::Cloud, Message::Done);
        }
    }

    fn route(&self, leg: Leg) -> Route {
        self.task.route(leg, self.group, self.held.t)
    }
}
