//! The cloud: averages the groups that are there, has θ evaluated when that is due, and announces it.
//!
//! Once the run is over it finds out, with the hospitals, how probabilities are to be corrected ([`calibrate`]), and
//! announces that too.
//!
//! Its record is what it announces: θ, and so the decision which groups are in it, with the segment, the evaluation,
//! the ledger and all else that a run is.

mod astray;
mod calibrate;
mod gone;
mod measure;
mod record;

use super::message::{Counted, Message};
use super::{Absence, Doing, Event, Outbox, Party, Phase, Quorum, is_enough, quorum};
use crate::adaptive::{self, Report};
use crate::calibration::Calibrations;
use crate::cloud::{Announced, gather, leave_out};
use crate::judging::{self, Candidate, Judged, Judging};
use crate::ledger::{Kind, Ledger};
use crate::message_path::{Leg, Numbers};
use crate::model::Model;
use crate::run::{Ending, ended};
use crate::scores::Scores;
use crate::state::{Evaluation, Progress, State};
use crate::task::Task;
use calibrate::Calibrating;
use gone::Missed;

/// The cloud and its state.
pub struct Cloud<'a> {
    task: &'a Task<'a>,
    quorum: Quorum,
    state: State,
    /// What each group has uploaded for the next aggregation.
    uploads: Vec<Upload>,
    /// What each group has sent, when it was last counted.
    counted: Vec<Ledger>,
    /// The deadline of the phase is over, but too few are there.
    overdue: bool,
    /// Of each group.
    missed: Vec<Missed>,
    measuring: Option<Measuring>,
    /// By which number θ was measured, if it was.
    measured: Option<u64>,
    calibrating: Option<Calibrating>,
    /// How probabilities of the run's models are corrected, once it has ended.
    calibrations: Option<Calibrations>,
    last: Last,
    ending: Option<Ending>,
    /// Which hospitals and edges know that the run is over.
    told: Vec<[bool; 2]>,
    /// Groups that are to be heard again, whatever its record holds against them.
    pub(super) pardoned: Vec<u32>,
}

#[derive(Clone, Default)]
struct Upload {
    hospital: Option<([Vec<f32>; 2], Option<Report>)>,
    edge: Option<(Vec<f32>, Counted)>,
}

/// A model that the groups measure.
struct Measuring {
    candidate: Candidate,
    number: u64,
    scores: Vec<Option<Box<Scores>>>,
}

/// The last aggregation.
#[derive(Clone)]
struct Last {
    /// Who was in it.
    present: Vec<bool>,
    /// θ as differences to the one of `since`; nothing if it goes whole.
    frames: Option<Vec<Numbers>>,
    since: u64,
    /// Whether θ is a model of before.
    restored: bool,
    evaluation: Option<Evaluation>,
}

impl<'a> Cloud<'a> {
    /// The cloud before the first iteration.
    pub fn new(task: &'a Task<'a>, quorum: Quorum) -> Self {
        let mut state = State::initial(task);
        adaptive::begin(task, &mut state);
        let groups = task.dataset.groups.len();
        Cloud {
            task,
            quorum,
            state,
            uploads: vec![Upload::default(); groups],
            counted: vec![Ledger::default(); groups],
            overdue: false,
            missed: vec![Missed::default(); groups],
            measuring: None,
            measured: None,
            calibrating: None,
            calibrations: None,
            last: Last {
                present: vec![true; groups],
                frames: None,
                since: 0,
                restored: false,
                evaluation: None,
            },
            ending: None,
            told: vec![[false; 2]; groups],
            pardoned: Vec::new(),
        }
    }

    /// The model of the last aggregation, and everything else about the run.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How probabilities of the run's models are corrected, once it has ended.
    pub fn calibrations(&self) -> Option<&Calibrations> {
        self.calibrations.as_ref()
    }

    /// How the run has ended, once it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Whether the run is over, and everybody knows.
    pub fn is_over(&self) -> bool {
        self.ending.is_some() && self.told.iter().flatten().all(|told| *told)
    }

    /// Begins: the initial model is evaluated first.
    pub fn start(&mut self, outbox: &mut Outbox) {
        self.step(Judging::Evaluate(Candidate::Initial), outbox);
    }

    fn usual_ending(&self) -> Option<Ending> {
        let progress = &self.state.progress;
        let finished = progress.t >= self.task.experiment.train.iterations;
        ended(progress).or_else(|| finished.then_some(Ending::Finished))
    }

    /// The next aggregation.
    fn next(&self) -> u64 {
        let progress = &self.state.progress;
        progress.t + progress.segment.global_interval
    }

    pub(super) fn stage(&self) -> (&'static str, u64) {
        let name = match (&self.ending, self.is_measuring()) {
            (Some(_), _) => "over",
            (None, true) => "evaluation",
            (None, false) => "gathering",
        };
        (name, self.state().progress.t)
    }

    /// What it is doing.
    pub fn doing(&self) -> Doing {
        let mut missing = Vec::new();
        let what = if self.ending.is_some() {
            for (m, [hospital, edge]) in self.told.iter().enumerate() {
                missing.extend((!hospital).then_some(Party::Hospital(m)));
                missing.extend((!edge).then_some(Party::Edge(m)));
            }
            "the run is over".into()
        } else if let Some(measuring) = &self.measuring {
            let scores = measuring.scores.iter().enumerate();
            missing.extend(
                scores
                    .filter(|(_, s)| s.is_none())
                    .map(|(m, _)| Party::Hospital(m)),
            );
            let (all, left) = (measuring.scores.len(), missing.len());
            format!("{} of {all} groups have measured θ", all - left)
        } else if let Some(calibrating) = &self.calibrating {
            missing.extend(calibrating.missing().map(Party::Hospital));
            "the hospitals calibrate the models".into()
        } else {
            for (m, upload) in self.uploads.iter().enumerate() {
                missing.extend(upload.hospital.is_none().then_some(Party::Hospital(m)));
                missing.extend(upload.edge.is_none().then_some(Party::Edge(m)));
            }
            let there = self.complete().iter().filter(|there| **there).count();
            format!("{there} of {} groups have uploaded", self.uploads.len())
        };
        Doing {
            t: self.state.progress.t,
            what,
            missing,
            below_quorum: self.overdue,
            gone: self.gone(),
        }
    }

    /// Handles an event.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        match event {
            Event::Received(party, message) => self.received(party, message, outbox),
            Event::Deadline(Phase::Global, t) if t == self.next() && !self.is_measuring() => {
                self.overdue = self.ending.is_none();
                self.miss_uploads();
                self.aggregate_if_due(outbox);
            }
            Event::Deadline(Phase::Evaluation, t)
                if t == self.state.progress.t && self.is_measuring() =>
            {
                self.overdue = true;
                self.miss_scores();
                self.judge_if_due(outbox);
                self.search_if_due(outbox);
            }
            Event::Deadline(..) => {}
            Event::Appeared(party @ (Party::Hospital(m) | Party::Edge(m))) => {
                self.heard(m, usize::from(party == Party::Edge(m)));
                self.has_measured(m);
                self.repeat(party, m, outbox);
                // What one of them has forgotten of a measurement, the other has to send again.
                let other = match party {
                    Party::Hospital(_) => Party::Edge(m),
                    _ => Party::Hospital(m),
                };
                if self.is_measuring() {
                    self.repeat(other, m, outbox);
                }
            }
            Event::Appeared(_) => {}
            Event::Silenced(phase, party) => self.silenced(phase, party),
            Event::GoOn => self.aggregate_if_due(outbox),
            Event::Retry => self.again(outbox),
        }
    }

    /// Sends again what groups have not answered.
    fn again(&self, outbox: &mut Outbox) {
        for m in 0..self.uploads.len() {
            let [hospital, edge] = match (&self.measuring, &self.ending) {
                (Some(measuring), _) => [measuring.scores[m].is_none(); 2],
                (None, None) if self.calibrating.is_some() => [true; 2],
                (None, Some(_)) => self.told[m].map(|told| !told),
                (None, None) => {
                    let upload = &self.uploads[m];
                    [upload.hospital.is_none(), upload.edge.is_none()]
                }
            };
            if hospital {
                self.repeat(Party::Hospital(m), m, outbox);
            }
            if edge {
                self.repeat(Party::Edge(m), m, outbox);
            }
        }
    }

    /// Tells a party what it may have missed.
    fn repeat(&self, party: Party, m: usize, outbox: &mut Outbox) {
        if m >= self.uploads.len() {
            return;
        }
        self.announce(party, m, false, outbox);
        if let Some(measuring) = &self.measuring
            && measuring.scores[m].is_none()
        {
            self.send_model(party, measuring.number, outbox);
        }
        self.ask_of_corrections(party, m, outbox);
    }

    /// Whether it waits for what groups measure.
    fn is_measuring(&self) -> bool {
        self.measuring.is_some() || self.calibrating.is_some()
    }

    fn received(&mut self, party: Party, message: Message, outbox: &mut Outbox) {
        let (m, side) = match party {
            Party::Hospital(m) => (m, 0),
            Party::Edge(m) => (m, 1),
            _ => return,
        };
        if m >= self.uploads.len() {
            return;
        }
        match (side, message) {
            (0, message @ Message::HospitalModel { t, .. })
            | (1, message @ Message::EdgeModel { t, .. }) => {
                self.heard(m, side);
                if t < self.next() || self.ending.is_some() {
                    // While the aggregated θ is measured there is nothing to announce yet.
                    let waits = self.is_measuring() && t == self.state.progress.t;
                    if !waits {
                        self.announce(party, m, false, outbox);
                    }
                } else if t > self.next() {
                    self.is_behind(party, m, t, outbox);
                } else if self.keep(m, message) {
                    self.aggregate_if_due(outbox);
                }
            }
            (
                _,
                Message::Astray {
                    edge,
                    hospital,
                    global,
                },
            ) => self.astray((party, m), [edge, hospital], global, outbox),
            (0, Message::Evaluated { number, scores }) => {
                self.has_measured(m);
                let layout = self.task.objective.layout();
                let training = match &self.task.loss_rows {
                    Some(rows) => rows[m].len(),
                    None => self.task.dataset.groups[m].row_count(),
                };
                let fits = scores.are_of(layout, training, self.task.given.held_out_counts(m));
                self.has_model(m, number, outbox);
                let Some(measuring) = self.measuring.as_mut() else {
                    return;
                };
                if measuring.number == number && fits {
                    let first = measuring.scores.iter().all(Option::is_none);
                    measuring.scores[m].get_or_insert(scores);
                    if first {
                        outbox
                            .phases
                            .push((Phase::Evaluation, self.state.progress.t));
                    }
                    self.judge_if_due(outbox);
                }
            }
            (
                0,
                Message::Calibrated {
                    number,
                    corrections,
                    sums,
                },
            ) => {
                self.has_measured(m);
                self.calibrated(m, (number, &corrections), sums, outbox);
            }
            (side, Message::Done) if self.ending.is_some() => self.told[m][side] = true,
            (_, Message::Done) => {
                let t = self.task.experiment.train.iterations;
                self.is_behind(party, m, t, outbox);
            }
            _ => {}
        }
    }

    /// Keeps half an upload, if it can be read.
    fn keep(&mut self, m: usize, message: Message) -> bool {
        let t = self.next();
        let p = self.state.progress.segment.global_interval;
        let theta = &self.state.theta;
        let read = |numbers: &Numbers, kind, known: &[f32]| {
            let route = self.task.route(Leg::Upload(kind), m, t);
            route.read(numbers, known.len(), Some(known))
        };
        match message {
            Message::HospitalModel {
                theta0,
                theta1,
                report,
                ..
            } => {
                let theta0 = read(&theta0, Kind::Theta0, &theta.theta0);
                let theta1 = read(&theta1, Kind::Theta1, &theta.theta1);
                let (Some(theta0), Some(theta1)) = (theta0, theta1) else {
                    return false;
                };
                if report.is_some_and(|report| !report.is_sound(p)) {
                    return false;
                }
                let half = ([theta0, theta1], report);
                self.uploads[m].hospital.get_or_insert(half);
            }
            Message::EdgeModel {
                theta2, counted, ..
            } => {
                let Some(theta2) = read(&theta2, Kind::Theta2, &theta.theta2) else {
                    return false;
                };
                if !counted.is_sound() {
                    return false;
                }
                self.uploads[m].edge.get_or_insert((theta2, counted));
            }
            _ => return false,
        }
        true
    }

    /// Whether a group's uploads are of no use any more.
    fn is_quarantined(&self, m: usize) -> bool {
        let after = self.task.experiment.defence.quarantine;
        let conduct = &self.state.progress.conduct;
        conduct.is_quarantined(m as u32, after)
    }

    /// Which groups have uploaded both halves.
    fn complete(&self) -> Vec<bool> {
        let both = |u: &Upload| u.hospital.is_some() && u.edge.is_some();
        self.uploads.iter().map(both).collect()
    }

    fn aggregate_if_due(&mut self, outbox: &mut Outbox) {
        if self.is_measuring() || self.ending.is_some() {
            return;
        }
        let complete = self.complete();
        let awaited = || (0..complete.len()).filter(|m| !self.is_quarantined(*m));
        let (there, all) = (
            awaited().filter(|m| complete[*m]).count(),
            awaited().count(),
        );
        let waits = !self.overdue && awaited().any(|m| self.waits_for_upload(m));
        if is_enough((there, all), quorum(self.quorum.groups, all), waits) {
            self.aggregate(outbox);
        } else if there > 0 && !self.overdue {
            outbox.phases.push((Phase::Global, self.next()));
        }
    }

    fn aggregate(&mut self, outbox: &mut Outbox) {
        let complete = self.complete();
        let mut there: Vec<usize> = (0..complete.len()).filter(|m| complete[*m]).collect();
        let (since, next) = (self.state.progress.aggregated, self.next());
        self.measured = None;
        let progress = &mut self.state.progress;
        progress.t = next;
        let quarantined = progress.quarantined_groups(self.task);
        for (m, upload) in self.uploads.iter_mut().enumerate() {
            let (hospital, edge) = (upload.hospital.take(), upload.edge.take());
            let (Some(([theta0, theta1], report)), Some((theta2, counted))) = (hospital, edge)
            else {
                continue;
            };
            if quarantined.contains(&m) {
                there.retain(|there| *there != m);
                continue;
            }
            self.state.groups[m] = Model {
                theta0,
                theta1,
                theta2,
            };
            // An edge that has lost its record has begun to count again.
            if !counted.ledger.has_grown_from(&self.counted[m]) {
                self.counted[m] = Ledger::default();
            }
            progress.ledger.absorb(&counted.ledger, &self.counted[m]);
            progress.clock.worked(m, counted.seconds);
            self.counted[m] = counted.ledger;
            if let (Some(controller), Some(report)) = (&mut progress.controller, report) {
                controller.reports[m] = report;
            }
        }
        leave_out(self.task, &mut self.state, &mut there);
        let present: Vec<bool> = (0..complete.len()).map(|m| there.contains(&m)).collect();
        let was_absent = |m: &usize| !self.last.present[*m];
        let returned: Vec<usize> = there.iter().copied().filter(was_absent).collect();
        if let Some(controller) = &mut self.state.progress.controller {
            let reports = controller.reports.iter_mut().zip(&present);
            let away = reports.filter(|(_, present)| !**present);
            away.for_each(|(report, _)| *report = Report::default());
        }
        let announced = gather(self.task, &mut self.state, &there, &returned);
        self.last = Last {
            present,
            since,
            restored: matches!(announced, Announced::Restored),
            frames: match announced {
                Announced::Steps(frames) => Some(frames.into()),
                _ => None,
            },
            evaluation: None,
        };
        self.overdue = false;
        outbox.over.push((Phase::Global, next));
        let step = judging::aggregated(self.task, &mut self.state);
        self.step(step, outbox);
    }

    /// The parts of θ that a party needs, as they are.
    fn whole(&self, party: Party) -> Vec<Numbers> {
        parts_for(party, &self.state.theta)
    }

    /// This aggregation is judged. If it is the last, that is kept, and the models have yet to be calibrated.
    fn conclude(&mut self, judged: Judged, outbox: &mut Outbox) {
        let goes_on = judged.ending.is_none() && self.usual_ending().is_none();
        if goes_on || !self.calibrates() {
            return self.decide(judged, outbox);
        }
        self.last.evaluation.clone_from(&judged.evaluation);
        self.begin_to_calibrate(judged, outbox);
        outbox.record = Some(self.record());
    }

    /// Everything about this aggregation is known: it is kept, and announced.
    fn decide(&mut self, judged: Judged, outbox: &mut Outbox) {
        let Judged { evaluation, ending } = judged;
        self.last.evaluation = evaluation;
        if matches!(ending, Some(Ending::Diverged { .. })) {
            (self.last.frames, self.last.restored) = (None, true);
        }
        self.ending = ending.or_else(|| self.usual_ending());
        outbox.record = Some(self.record());
        self.tell(outbox);
        // Groups may have gone on already, where θ was the initial one; that is another decision.
        outbox.go_on = self.ending.is_none();
    }

    /// Says what was decided last, to everybody.
    fn tell(&self, outbox: &mut Outbox) {
        let t = self.state.progress.t;
        let left_out = &self.state.progress.left_out;
        for (m, there) in self.last.present.iter().enumerate() {
            if !there {
                let reason = left_out.iter().find(|(out, _)| *out == m);
                let absence = Absence::of_group(Phase::Global, t, m);
                outbox.absences.push(Absence {
                    reason: reason.map(|(_, reason)| *reason),
                    ..absence
                });
            }
        }
        outbox.aggregated = true;
        outbox.evaluations.extend(self.last.evaluation.clone());
        outbox.ending = self.ending.clone();
        for m in 0..self.uploads.len() {
            self.announce(Party::Hospital(m), m, false, outbox);
            self.announce(Party::Edge(m), m, false, outbox);
        }
    }

    /// Tells a party of the last aggregation: as differences, if it was in it and has not lost what they are to.
    fn announce(&self, party: Party, m: usize, lost: bool, outbox: &mut Outbox) {
        let Progress {
            t,
            aggregated,
            segment,
            ..
        } = self.state.progress;
        // Before the first aggregation there is nothing to tell, and while θ is measured it may not be the one.
        let over = self.ending.is_some();
        if self.is_measuring() || (aggregated == 0 && !over) {
            return;
        }
        // Who was in this aggregation has the θ that it began with.
        let frames = self.last.frames.as_ref();
        let frames = frames.filter(|_| self.last.present[m] && !lost);
        let coded = frames.map(|frames| match party {
            Party::Hospital(_) => frames[..2].to_vec(),
            _ => frames[2..].to_vec(),
        });
        let message = Message::Global {
            t,
            since: coded.as_ref().map(|_| self.last.since),
            parts: coded.unwrap_or_else(|| self.whole(party)),
            segment,
            anew: !self.last.present[m] || self.last.restored,
            ended: over,
            calibration: match party {
                Party::Hospital(_) => self.calibration_of_last(),
                _ => None,
            },
        };
        outbox.send(party, message);
    }
}

/// The parts of a model that a party needs, as they are.
fn parts_for(party: Party, model: &Model) -> Vec<Numbers> {
    match party {
        Party::Hospital(_) => {
            vec![Numbers::dense(&model.theta0), Numbers::dense(&model.theta1)]
        }
        _ => vec![Numbers::dense(&model.theta2)],
    }
}
