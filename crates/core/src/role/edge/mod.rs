//! An edge: drives its group from exchange to exchange.
//!
//! Its record is what an interval ends with: θ2, and so the decision whose models are in it.

mod astray;
mod doing;
mod gone;
mod joint;
mod sending;

use super::message::{Counted, Message, OfDevice, Portion};
use super::wire::{self, Appended, Reader, Rejected, Wire, WireError, fields};
use super::{Absence, Event, Outbox, Party, Phase, Quorum, is_possible};
use crate::aggregate::Gathering;
use crate::checks::{Reach, squared_length};
use crate::conduct::Conduct;
use crate::group::{Turnout, aggregate_locally};
use crate::hsgd::{charge_interval, compute};
use crate::ledger::Kind;
use crate::local_steps::Steps;
use crate::message_path::{Leg, Numbers, Route};
use crate::schedule::Segment;
use crate::task::Task;
use gone::{Due, Missed};
use std::ops::Range;

/// An edge and what it holds of its group.
pub struct Edge<'a> {
    task: &'a Task<'a>,
    group: usize,
    /// The devices of each gateway, in order.
    gateways: Vec<Range<u32>>,
    /// Which held-out rows each gateway has, if not the first all of them.
    held_out: Option<Vec<[Range<u32>; 2]>>,
    quorum: Quorum,
    held: Held,
    stage: Stage,
    /// Which gateways know that the run is over.
    told: Vec<bool>,
    missed: Missed,
    /// Devices that are to be heard again, whatever its record holds against them.
    pub(super) pardoned: Vec<u32>,
    /// The model that is being measured, and its θ2.
    measured: Option<(u64, Numbers)>,
}

/// What it holds between two intervals.
struct Held {
    /// The iteration that comes next.
    t: u64,
    segment: Segment,
    /// `θ2[m]`
    theta2: Vec<f32>,
    /// When the last global aggregation was, and its θ2, where models go as differences to it.
    global_t: u64,
    global: Vec<f32>,
    /// What compression has lost of uploads.
    residual: Vec<f32>,
    /// Its copy of the hospital's θ0, where it keeps one.
    copy: Appended<Vec<f32>>,
    /// What the optimiser remembers.
    memory: Vec<f32>,
    counted: Counted,
    /// Whose models are not in θ2, though they were taught.
    absent: Vec<u32>,
    ended: bool,
    /// What is held against its devices, for θ2.
    conduct: Conduct,
    /// Whose models came and were left out, and why.
    rejected: Rejected,
    reach: Reach,
}

fields!(Held {
    t,
    segment,
    theta2,
    global_t,
    global,
    residual,
    memory,
    counted,
    absent,
    ended,
    conduct,
    rejected,
    reach,
    copy
});

/// What it waits for.
enum Stage {
    /// ζ2 of the drawn devices.
    Inviting(Drawn),
    /// θ0 and ζ1, from the hospital.
    Asking(Drawn),
    /// The devices' models.
    Teaching(Drawn, Numbers),
    /// The cloud.
    Uploaded(Message),
    /// Nothing more.
    Ended,
}

/// The devices of an interval.
struct Drawn {
    group: Turnout,
    zeta2: Vec<Option<Vec<Numbers>>>,
    /// By position, for those who are taught.
    zeta1: Vec<Option<Vec<Numbers>>>,
    models: Vec<Option<Vec<f32>>>,
    /// The deadline is over, but too few are there.
    overdue: bool,
}

impl Drawn {
    /// Whether it was invited and has not answered. (While it is invited, who is not in quarantine is to be there.)
    fn awaits_zeta2(&self, position: usize) -> bool {
        self.group.exchanged[position] && self.zeta2[position].is_none()
    }

    fn position(&self, device: u32) -> Option<usize> {
        self.group.subset.binary_search(&device).ok()
    }

    /// Whether these are a device's rows of this width, one for each of its samples, as they would be sent.
    fn are_rows(&self, position: usize, rows: &[Numbers], (route, width): (Route, usize)) -> bool {
        let places = self.group.starts[position] as usize..self.group.starts[position + 1] as usize;
        let own = &self.group.rows[places];
        let reads = |(row, number): (&Numbers, &u32)| route.of(*number).can_read(row, width);
        own.len() == rows.len() && rows.iter().zip(own).all(reads)
    }
}

impl<'a> Edge<'a> {
    /// The edge of a group before the first iteration; its gateways carry these devices.
    pub fn new(
        task: &'a Task<'a>,
        group: usize,
        gateways: Vec<Range<u32>>,
        quorum: Quorum,
    ) -> Self {
        let theta2 = task.architecture.initial(task.experiment.seed).theta2;
        let leg = Leg::Upload(Kind::Theta2);
        let path = &task.compression;
        let residual = path.nothing_lost(leg, theta2.len());
        Edge {
            task,
            group,
            told: vec![false; gateways.len()],
            missed: Missed::by(gateways.len()),
            pardoned: Vec::new(),
            measured: None,
            gateways,
            held_out: None,
            quorum,
            held: Held {
                t: 0,
                segment: task.segment(),
                global_t: 0,
                global: match task.groups_keep_theta() {
                    true => theta2.clone(),
                    false => Vec::new(),
                },
                memory: vec![0.0; task.optimisers.edge.remembers(theta2.len())],
                theta2,
                residual,
                copy: Appended(path.no_theta0_yet(task.architecture.combined.params())),
                counted: Counted::default(),
                absent: Vec::new(),
                ended: false,
                conduct: Conduct::default(),
                rejected: Rejected::default(),
                reach: Reach::default(),
            },
            stage: Stage::Ended,
        }
    }

    /// The same, where each gateway has some of the held-out rows: validation, then test.
    #[must_use]
    pub fn with_held_out(mut self, ranges: Vec<[Range<u32>; 2]>) -> Self {
        assert_eq!(ranges.len(), self.gateways.len(), "one for each gateway");
        self.held_out = Some(ranges);
        self
    }

    /// Who it is.
    pub fn party(&self) -> Party {
        Party::Edge(self.group)
    }

    /// Begins the first interval.
    pub fn start(&mut self, outbox: &mut Outbox) {
        self.invite(outbox);
    }

    /// Resumes from a record.
    ///
    /// # Errors
    /// If it is not a record of this edge.
    pub fn restore(&mut self, record: &[u8], outbox: &mut Outbox) -> Result<(), WireError> {
        let held: Held = wire::read_record(record)?;
        let lengths =
            |h: &Held| [&h.theta2, &h.global, &h.residual, &h.memory, &h.copy.0].map(Vec::len);
        let iterations = self.task.experiment.train.iterations;
        let in_time = match held.ended {
            true => held.segment.is_sound(held.t, iterations),
            false => {
                let (global, t) = (held.global_t, held.t);
                held.segment.leads_from(global, t, iterations)
            }
        };
        let devices = self.task.dataset.groups[self.group].devices();
        let mut absent = held.absent.iter();
        if lengths(&held) != lengths(&self.held)
            || !in_time
            || !held.counted.is_sound()
            || !absent.all(|device| (*device as usize) < devices)
        {
            return Err(WireError::Short("a record of this run and its networks"));
        }
        self.held = held;
        for device in &self.pardoned {
            self.held.conduct.pardon(*device);
        }
        self.note_absences(outbox);
        match self.held.ended {
            true => self.end(outbox),
            false => self.go_on(outbox),
        }
        Ok(())
    }

    /// Whether the run is over, and all gateways know.
    pub fn is_over(&self) -> bool {
        self.held.ended && self.told.iter().all(|told| *told)
    }

    /// Whether the run is over.
    pub fn has_ended(&self) -> bool {
        self.held.ended
    }

    /// Handles an event.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        let at = self.held.t;
        match event {
            Event::Received(Party::Gateway(m, g), message) if m == self.group => match message {
                Message::Zeta2 { t, zeta2 } => {
                    self.heard(Due::Exchange, g);
                    if t == at {
                        self.zeta2(g, zeta2, outbox);
                    }
                }
                Message::Models { t, theta2 } => {
                    self.heard(Due::Upload, g);
                    if t == at {
                        self.models(g, &theta2, outbox);
                    }
                }
                Message::Embedded {
                    part,
                    ref rows,
                    ref zeta2,
                    ..
                } => {
                    let width = self.task.architecture.device.output().len();
                    // Which model it is of is the hospital's to know: an old message may have made this edge forget.
                    if self.holds(g, part, rows) && zeta2.as_dense(rows.len() * width).is_some() {
                        outbox.send(Party::Hospital(self.group), message);
                    }
                }
                Message::Fetch => self.fetch(g, outbox),
                Message::Question {
                    number,
                    t,
                    about,
                    zeta2,
                    ..
                } => self.question(g, (number, t), (about, zeta2), outbox),
                Message::Done if self.held.ended => {
                    if let Some(told) = self.told.get_mut(g) {
                        *told = true;
                    }
                }
                _ => {}
            },
            Event::Received(Party::Hospital(m), Message::Frozen { t, theta0, zeta1 })
                if m == self.group && t == at =>
            {
                self.frozen(theta0, zeta1, outbox);
            }
            Event::Received(
                Party::Hospital(m),
                message @ (Message::Answer { gateway, .. } | Message::Refused { gateway, .. }),
            ) if m == self.group => self.answered(gateway, message, outbox),
            Event::Received(
                Party::Hospital(m),
                Message::Astray {
                    edge,
                    hospital: Some(hospital),
                    ..
                },
            ) if m == self.group => self.apart(edge, hospital, outbox),
            Event::Received(Party::Cloud, message @ Message::Global { .. }) => {
                self.global(&message, outbox);
            }
            Event::Received(Party::Cloud, message @ Message::Return { .. }) => {
                if let Some((from, global, ledger)) = message.returned() {
                    self.returns(from, &global, &ledger, outbox);
                }
            }
            Event::Received(Party::Cloud, Message::Evaluate { number, parts }) => {
                if let [theta2] = &parts[..]
                    && theta2.as_dense(self.held.theta2.len()).is_some()
                {
                    self.measured = Some((number, theta2.clone()));
                    (0..self.gateways.len()).for_each(|g| self.ask_to_embed(g, outbox));
                }
            }
            Event::Deadline(Phase::Exchange, t) if t == at => self.exchange_is_due(outbox),
            Event::Deadline(Phase::Upload, t) if t == at => self.upload_is_due(outbox),
            Event::Silenced(Phase::Exchange, Party::Gateway(_, g)) => {
                self.silenced(Due::Exchange, g);
            }
            Event::Silenced(Phase::Upload, Party::Gateway(_, g)) => self.silenced(Due::Upload, g),
            Event::Retry => {
                self.again(outbox);
                self.tell_where(outbox);
            }
            Event::Appeared(Party::Gateway(_, g)) if self.held.ended => {
                // It may have forgotten.
                self.told
                    .iter_mut()
                    .skip(g)
                    .take(1)
                    .for_each(|told| *told = false);
                self.again(outbox);
            }
            Event::Appeared(party) => {
                if let Party::Gateway(_, g) = party {
                    self.heard(Due::Exchange, g);
                    self.heard(Due::Upload, g);
                    self.ask_to_embed(g, outbox);
                }
                if self.doing().missing.contains(&party) {
                    self.again(outbox);
                }
                if party == Party::Cloud {
                    self.tell_where(outbox);
                }
            }
            _ => {}
        }
    }

    /// Whether these rows of a part are a gateway's own.
    fn holds(&self, gateway: usize, part: Portion, rows: &[u32]) -> bool {
        let offsets = &self.task.dataset.groups[self.group].offsets;
        let Some(devices) = self.gateways.get(gateway) else {
            return false;
        };
        let own = offsets.at(devices.start as usize)..offsets.at(devices.end as usize);
        match part {
            Portion::Training => rows.iter().all(|row| own.contains(row)),
            Portion::Validation => self.holds_held_out(gateway, 0, rows),
            Portion::Test => self.holds_held_out(gateway, 1, rows),
        }
    }

    fn holds_held_out(&self, gateway: usize, part: usize, rows: &[u32]) -> bool {
        match &self.held_out {
            None => gateway == 0,
            Some(ranges) => rows.iter().all(|row| ranges[gateway][part].contains(row)),
        }
    }

    /// Draws A_m and invites it.
    fn invite(&mut self, outbox: &mut Outbox) {
        let mut group = Turnout::default();
        group.draw(self.task, self.group, self.held.t);
        group.leave_out_quarantined(self.task, [&self.held.conduct; 2]);
        // The hospital notes who is away, and cannot know this reason.
        let of = |device| Absence::of_device(Phase::Exchange, self.held.t, self.group, device);
        let left_out = group.rejected.iter();
        let left_out = left_out.map(|(_, device, reason)| of(*device).because(*reason));
        outbox.absences.extend(left_out);
        let nothing = vec![None; group.subset.len()];
        self.stage = Stage::Inviting(Drawn {
            zeta2: nothing.clone(),
            zeta1: nothing,
            models: vec![None; group.subset.len()],
            group,
            overdue: false,
        });
        self.again(outbox);
        self.ask_if_due(outbox);
    }

    fn carries(&self, gateway: usize, device: u32) -> bool {
        let devices = self.gateways.get(gateway);
        devices.is_some_and(|devices| devices.contains(&device))
    }

    fn zeta2(&mut self, gateway: usize, sent: Vec<OfDevice>, outbox: &mut Outbox) {
        let own: Vec<bool> = sent
            .iter()
            .map(|(n, _)| self.carries(gateway, *n))
            .collect();
        let width = self.task.architecture.device.output().len();
        let how = (self.route(Leg::Zeta2), width);
        let Stage::Inviting(drawn) = &mut self.stage else {
            return;
        };
        let nobody_yet = drawn.zeta2.iter().all(Option::is_none);
        for ((device, rows), own) in sent.into_iter().zip(own) {
            // The hospital could do nothing with others, and would not say so.
            if let Some(position) = drawn.position(device).filter(|_| own)
                && drawn.awaits_zeta2(position)
                && drawn.are_rows(position, &rows, how)
            {
                drawn.zeta2[position] = Some(rows);
            }
        }
        let anybody = drawn.zeta2.iter().any(Option::is_some);
        self.ask_if_due(outbox);
        if nobody_yet && anybody && matches!(self.stage, Stage::Inviting(_)) {
            outbox.phases.push((Phase::Exchange, self.held.t));
        }
    }

    fn exchange_is_due(&mut self, outbox: &mut Outbox) {
        if let Stage::Inviting(drawn) = &mut self.stage {
            drawn.overdue = true;
            self.miss(Due::Exchange);
            self.ask_if_due(outbox);
        }
    }

    fn ask_if_due(&mut self, outbox: &mut Outbox) {
        if let Stage::Inviting(drawn) = &self.stage
            && self.is_enough(Due::Exchange, drawn, drawn.zeta2.len())
        {
            self.ask(outbox);
        }
    }

    /// Whoever has sent ζ2 is to take part.
    fn ask(&mut self, outbox: &mut Outbox) {
        outbox.over.push((Phase::Exchange, self.held.t));
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Inviting(drawn) => {
                let (t, m) = (self.held.t, self.group);
                for (phase, device, reason) in &drawn.group.rejected {
                    let absence = Absence::of_device(*phase, t, m, *device);
                    outbox.absences.push(absence.because(*reason));
                }
                self.stage = Stage::Asking(drawn);
            }
            other => self.stage = other,
        }
        self.again(outbox);
    }

    /// Passes on what the hospital sends, to those who take part: the hospital has decided who that is.
    fn frozen(
        &mut self,
        theta0: Option<Numbers>,
        zeta1: Vec<Option<Vec<Numbers>>>,
        outbox: &mut Outbox,
    ) {
        let architecture = &self.task.architecture;
        let how = (self.route(Leg::Zeta1), architecture.hospital.output().len());
        let (route0, n0) = (self.route(Leg::Theta0), architecture.combined.params());
        let reads0 = |theta0: &Numbers| route0.read(theta0, n0, Some(&self.held.copy.0)).is_some();
        let anybody = zeta1.iter().any(Option::is_some);
        match &self.stage {
            Stage::Asking(drawn)
                if zeta1.len() == drawn.group.subset.len()
                    && theta0.is_some() == anybody
                    && theta0.as_ref().is_none_or(reads0)
                    && zeta1.iter().enumerate().all(|(position, rows)| {
                        let right = |rows: &Vec<_>| drawn.are_rows(position, rows, how);
                        rows.as_ref().is_none_or(right)
                    }) => {}
            _ => return,
        }
        let Stage::Asking(mut drawn) = std::mem::replace(&mut self.stage, Stage::Ended) else {
            return;
        };
        drawn.group.exchanged = zeta1.iter().map(Option::is_some).collect();
        (drawn.zeta1, drawn.overdue) = (zeta1, false);
        let Some(theta0) = theta0 else {
            self.stage = Stage::Teaching(drawn, Numbers::dense(&[]));
            return self.aggregate(outbox);
        };
        let theta0 = match self.task.compression.edges_keep_theta0() {
            true => {
                let read = route0.read(&theta0, n0, Some(&self.held.copy.0));
                self.held.copy.0 = read.expect("it was read above");
                Numbers::dense(&self.held.copy.0)
            }
            false => theta0,
        };
        let all = self.by_gateway(&drawn, |p| drawn.zeta1[p].is_some());
        self.send_lessons(&drawn, &theta0, all, outbox);
        self.stage = Stage::Teaching(drawn, theta0);
    }

    fn models(&mut self, gateway: usize, sent: &[(u32, Numbers)], outbox: &mut Outbox) {
        let end = self.held.t + self.held.segment.local_interval;
        let route = self.task.route(Leg::DeviceStep, self.group, end);
        let own: Vec<bool> = sent
            .iter()
            .map(|(n, _)| self.carries(gateway, *n))
            .collect();
        let width = self.held.theta2.len();
        let Stage::Teaching(drawn, _) = &mut self.stage else {
            return;
        };
        let nobody_yet = drawn.models.iter().all(Option::is_none);
        for ((device, model), own) in sent.iter().zip(own) {
            let position = drawn.position(*device).filter(|_| own);
            let Some(position) = position.filter(|p| drawn.zeta1[*p].is_some()) else {
                continue;
            };
            if drawn.models[position].is_none() {
                drawn.models[position] = route.of(*device).read(model, width, None);
            }
        }
        let anybody = drawn.models.iter().any(Option::is_some);
        self.aggregate_if_due(outbox);
        if nobody_yet && anybody && matches!(self.stage, Stage::Teaching(..)) {
            outbox.phases.push((Phase::Upload, self.held.t));
        }
    }

    fn upload_is_due(&mut self, outbox: &mut Outbox) {
        if let Stage::Teaching(drawn, _) = &mut self.stage {
            drawn.overdue = true;
            self.miss(Due::Upload);
            self.aggregate_if_due(outbox);
        }
    }

    fn aggregate_if_due(&mut self, outbox: &mut Outbox) {
        if let Stage::Teaching(drawn, _) = &self.stage
            && self.is_enough(Due::Upload, drawn, drawn.models.len())
        {
            self.aggregate(outbox);
        }
    }

    /// `θ2[m]` becomes the mean of the models that have arrived.
    fn aggregate(&mut self, outbox: &mut Outbox) {
        let mut drawn = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Teaching(drawn, _) => drawn,
            other => return self.stage = other,
        };
        let (task, held) = (self.task, &mut self.held);
        outbox.over.push((Phase::Upload, held.t));
        let steps = Steps {
            segment: held.segment,
            first: held.t,
        };
        held.t += held.segment.local_interval;
        let arrived: Vec<bool> = drawn.models.iter().map(Option::is_some).collect();
        let positions = 0..arrived.len();
        let missing = positions.filter(|p| drawn.zeta1[*p].is_some() && !arrived[*p]);
        held.absent = missing.map(|p| drawn.group.subset[p]).collect();
        let empty = vec![0.0; held.theta2.len()];
        let rows = drawn.models.iter().map(|m| m.as_ref().unwrap_or(&empty));
        let models: Vec<f32> = rows.flatten().copied().collect();
        let mut gathering = Gathering::new(empty.len());
        gathering.add(task.gatherer(), &models, &arrived);
        let theta2 = (&mut held.theta2[..], &mut held.memory[..]);
        aggregate_locally((task, steps), &mut gathering, theta2, &mut held.conduct);
        drawn.group.uploaded = arrived;
        drawn.group.rejected.clear();
        drawn.group.judge_models(&gathering, &mut held.conduct);
        let rejected = drawn.group.rejected.iter();
        held.rejected = Rejected(rejected.map(|(_, device, why)| (*device, *why)).collect());
        let computed = compute(task, held.segment.local_interval, None);
        let Counted { ledger, seconds } = &mut held.counted;
        charge_interval(task, (self.group, &drawn.group, computed), ledger, |more| {
            *seconds += more;
        });
        outbox.record = Some(wire::record(held));
        self.note_absences(outbox);
        self.go_on(outbox);
    }

    fn note_absences(&self, outbox: &mut Outbox) {
        let of = |device| Absence::of_device(Phase::Upload, self.held.t, self.group, device);
        let absent = self.held.absent.iter().map(|device| of(*device));
        let rejected = self.held.rejected.0.iter();
        let rejected = rejected.map(|(device, reason)| of(*device).because(*reason));
        outbox.absences.extend(absent.chain(rejected));
    }

    /// What comes behind a local aggregation.
    fn go_on(&mut self, outbox: &mut Outbox) {
        match self.held.t > self.held.global_t
            && self.held.segment.aggregates_globally_at(self.held.t)
        {
            true => self.upload(outbox),
            false => self.invite(outbox),
        }
    }

    fn upload(&mut self, outbox: &mut Outbox) {
        let route = self.route(Leg::Upload(Kind::Theta2));
        let held = &mut self.held;
        if self.task.experiment.defence.download > 0.0 {
            let step = squared_length(&held.theta2, Some(&held.global));
            held.reach.stepped(step);
        }
        let theta2 = route.pack(&held.theta2, &held.global, &mut held.residual);
        self.stage = Stage::Uploaded(Message::EdgeModel {
            t: held.t,
            theta2,
            counted: held.counted.clone(),
        });
        self.again(outbox);
    }

    /// Adopts the newest θ2, wherever it is itself.
    fn global(&mut self, message: &Message, outbox: &mut Outbox) {
        let Message::Global {
            t,
            since,
            segment,
            anew,
            ended,
            ..
        } = message
        else {
            return;
        };
        if self.held.ended {
            return outbox.send(Party::Cloud, Message::Done);
        }
        let waits = matches!(self.stage, Stage::Uploaded(_));
        if !ended && (*t < self.held.t || (*t == self.held.t && !waits)) {
            return;
        }
        // Who was in an aggregation had come as far; and who has not counted what it sent for it must not count on.
        let has_lost = *t > self.held.t && !*anew;
        let is_to_another = since.is_some_and(|since| since != self.held.global_t);
        if let Some(problem) = self.is_too_far(message) {
            outbox.stop = Some(problem);
            return;
        }
        match self.can_adopt(message) {
            true if *ended || !has_lost => self.adopt(message, outbox),
            false if !is_to_another || !is_possible(self.task, (*t, segment), *ended) => {}
            _ => self.cannot_follow(*t, outbox),
        }
    }

    /// θ2 of a message, if it can be read.
    fn read_global(&self, message: &Message) -> Option<Vec<f32>> {
        let Message::Global {
            t, parts, since, ..
        } = message
        else {
            return None;
        };
        let [part] = &parts[..] else {
            return None;
        };
        let route = (self.task).route(Leg::Download(Kind::Theta2), self.group, *t);
        let held = &self.held;
        let known = (*since == Some(held.global_t)).then_some(&held.global[..]);
        route.read(part, held.theta2.len(), known)
    }

    /// Why the cloud cannot have come to this θ2 in an honest way.
    fn is_too_far(&self, message: &Message) -> Option<String> {
        let limit = self.task.experiment.defence.download;
        let Message::Global { t, .. } = message else {
            return None;
        };
        let theta2 = self.read_global(message).filter(|_| limit > 0.0)?;
        let held = &self.held;
        let far = squared_length(&theta2, Some(&held.global));
        let aggregations = held.segment.aggregations_until(held.global_t, *t);
        held.reach.refuses(far, limit, (*t, aggregations))
    }

    /// Whether it can be announced, and read.
    fn can_adopt(&self, message: &Message) -> bool {
        let possible = match message {
            Message::Global {
                t, segment, ended, ..
            } => is_possible(self.task, (*t, segment), *ended),
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
                ..
            },
            Some(theta2),
        ) = (message, self.read_global(message))
        else {
            return;
        };
        let held = &mut self.held;
        if *t > held.t || *anew {
            // What it has sent was not used, or is not wanted any more.
            held.residual.fill(0.0);
            held.copy.0.fill(0.0);
            held.memory.fill(0.0);
        }
        (held.t, held.segment, held.global_t) = (*t, *segment, *t);
        if self.task.groups_keep_theta() {
            held.global = theta2.clone();
        }
        held.theta2 = theta2;
        (held.counted.seconds, held.ended) = (0.0, *ended);
        held.absent.clear();
        held.rejected = Rejected::default();
        // Whatever was measured is known now.
        self.measured = None;
        match ended {
            true => {
                outbox.record = Some(wire::record(held));
                self.end(outbox);
            }
            false => self.invite(outbox),
        }
    }

    /// Tells the cloud that it knows, and its gateways.
    fn end(&mut self, outbox: &mut Outbox) {
        self.stage = Stage::Ended;
        outbox.send(Party::Cloud, Message::Done);
        self.again(outbox);
    }

    fn route(&self, leg: Leg) -> Route {
        self.task.route(leg, self.group, self.held.t)
    }
}
