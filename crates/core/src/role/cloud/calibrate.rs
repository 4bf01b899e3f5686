//! How probabilities of the trained models are to be corrected: a search in which hospitals say what a correction does
//! to their validation samples, as sums.
//!
//! ```text
//! judged, and it is the end ──► for θ, then for the best model: Calibrate ──► Calibrated ──► … ──► announced
//!                                       to who has not measured it: Evaluate ──► Evaluated ──► Calibrate
//! ```
//!
//! The sums of all groups add up to those of all samples, so the result is that of a simulation to the bit. A group that
//! misses its deadline, as in any evaluation, is left out from then on, and the search begins again without it.

use super::super::message::Message;
use super::super::wire::{Reader, Wire, WireError, cannot_be, fields};
use super::super::{Outbox, Party, Phase, is_enough, quorum};
use super::{Cloud, parts_for};
use crate::calibration::{Calibration, Calibrations, Found, Search, Sums};
use crate::judging::Judged;
use crate::metrics::Layout;
use crate::model::Model;
use crate::run::Ending;
use selvedge_nn::random::Key;

/// A word of the numbers of models that are measured only to be calibrated.
const CALIBRATED: u64 = u64::from_be_bytes(*b"calibrat");

/// The search for one model.
pub(super) struct Calibrating {
    /// What is announced afterwards.
    judged: Judged,
    number: u64,
    stage: Stage,
    /// Of each group, whether it has yet to measure the model, and what it says of the corrections that are asked about.
    measures: Vec<bool>,
    sums: Vec<Option<Vec<Sums>>>,
}

/// How far it has come: what a record keeps of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stage {
    /// What was found of the last model, once it is the best one's turn.
    of_last: Option<Found>,
    search: Search,
    /// Which groups take part.
    takes_part: Vec<bool>,
}

fields!(Stage {
    of_last,
    search,
    takes_part
});

/// What a record says of an end.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ended {
    /// It is not announced yet.
    Calibrating(Stage),
    /// It is.
    Found(Calibrations),
}

impl Wire for Ended {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Ended::Calibrating(stage) => {
                out.push(0);
                stage.put(out);
            }
            Ended::Found(calibrations) => {
                out.push(1);
                calibrations.put(out);
            }
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        match u8::get(reader)? {
            0 => Wire::get(reader).map(Ended::Calibrating),
            1 => Wire::get(reader).map(Ended::Found),
            value => Err(cannot_be("an end", value)),
        }
    }
}

impl Calibrating {
    /// How the run ends, as far as it was judged.
    pub(super) fn ending(&self) -> &Option<Ending> {
        &self.judged.ending
    }

    /// The groups that it waits for.
    pub(super) fn missing(&self) -> impl Iterator<Item = usize> {
        let groups = self.stage.takes_part.iter().zip(&self.sums).enumerate();
        let missing = groups.filter(|(_, (takes_part, sums))| **takes_part && sums.is_none());
        missing.map(|(m, _)| m)
    }
}

impl Cloud<'_> {
    /// Begins with the last model.
    pub(super) fn begin_to_calibrate(&mut self, judged: Judged, outbox: &mut Outbox) {
        let stage = self.first_stage(None);
        self.calibrate(judged, stage, outbox);
    }

    /// Whose scores were left out is not asked either.
    fn first_stage(&self, of_last: Option<Found>) -> Stage {
        let mut takes_part = vec![true; self.uploads.len()];
        for m in self.state.progress.quarantined_groups(self.task) {
            takes_part[m] = false;
        }
        let left_out = self.last.evaluation.iter().flat_map(|last| &last.without);
        for without in left_out.filter(|without| without.reason.is_some()) {
            if let Some(takes_part) = takes_part.get_mut(without.group as usize) {
                *takes_part = false;
            }
        }
        if !takes_part.contains(&true) {
            takes_part.fill(true);
        }
        Stage {
            of_last,
            search: Search::new(self.layout()),
            takes_part,
        }
    }

    /// Calibrates a model, from some stage on.
    pub(super) fn calibrate(&mut self, judged: Judged, stage: Stage, outbox: &mut Outbox) {
        let groups = self.uploads.len();
        // A model that has diverged was measured, and is not the one that is left.
        let diverged = matches!(judged.ending, Some(Ending::Diverged { .. }));
        let is_measured = !diverged && stage.of_last.is_none();
        let measured = self.measured.filter(|_| is_measured);
        self.calibrating = Some(Calibrating {
            judged,
            number: measured.unwrap_or_else(|| self.number_of(self.model_at(&stage))),
            stage,
            measures: vec![false; groups],
            sums: vec![None; groups],
        });
        self.ask_all(outbox);
    }

    /// The model whose turn it is.
    fn model_at(&self, stage: &Stage) -> &Model {
        let best = self.state.best.as_ref();
        let best = best.filter(|_| stage.of_last.is_some());
        best.unwrap_or(&self.state.theta)
    }

    fn layout(&self) -> Layout {
        self.task.objective.layout()
    }

    /// Whether there is anything to calibrate: not where answers are no probabilities.
    pub(super) fn calibrates(&self) -> bool {
        Calibration::none(self.layout()).is_some()
    }

    /// The number of a model that is measured only to be calibrated.
    fn number_of(&self, model: &Model) -> u64 {
        let parts = model.parts();
        let words = parts.iter().flat_map(|part| *part);
        let key = Key::new(self.state.progress.t).with(CALIBRATED);
        key.with_all(words.map(|x| u64::from(x.to_bits())))
            .stream()
            .next_u64()
    }

    fn ask_all(&self, outbox: &mut Outbox) {
        for m in 0..self.uploads.len() {
            self.ask_of_corrections(Party::Hospital(m), m, outbox);
        }
    }

    /// Asks a hospital, if it is waited for; while it has yet to measure the model, tells it and its edge which one.
    pub(super) fn ask_of_corrections(&self, party: Party, m: usize, outbox: &mut Outbox) {
        let Some(calibrating) = &self.calibrating else {
            return;
        };
        if calibrating.missing().all(|missing| missing != m) {
            return;
        }
        let number = calibrating.number;
        match (party, calibrating.stage.search.question()) {
            _ if calibrating.measures[m] => {
                let parts = parts_for(party, self.model_at(&calibrating.stage));
                outbox.send(party, Message::Evaluate { number, parts });
            }
            (Party::Hospital(_), Some(corrections)) => {
                let corrections = corrections.to_vec();
                let message = Message::Calibrate {
                    number,
                    corrections,
                };
                outbox.send(party, message);
            }
            _ => {}
        }
    }

    /// A hospital has measured a model.
    pub(super) fn has_model(&mut self, m: usize, number: u64, outbox: &mut Outbox) {
        let calibrating = self.calibrating.as_mut();
        if let Some(calibrating) = calibrating.filter(|c| c.number == number && c.measures[m]) {
            calibrating.measures[m] = false;
            self.ask_of_corrections(Party::Hospital(m), m, outbox);
        }
    }

    /// A hospital says what a correction does, or that it does not know the model.
    pub(super) fn calibrated(
        &mut self,
        m: usize,
        (number, corrections): (u64, &[Calibration]),
        sums: Option<Vec<Sums>>,
        outbox: &mut Outbox,
    ) {
        let t = self.state.progress.t;
        let Some(calibrating) = &mut self.calibrating else {
            return;
        };
        let is_asked = calibrating.number == number
            && calibrating.stage.search.question() == Some(corrections)
            && calibrating.missing().any(|missing| missing == m);
        if !is_asked {
            return;
        }
        let Some(sums) = sums else {
            if !calibrating.measures[m] {
                calibrating.measures[m] = true;
                for party in [Party::Hospital(m), Party::Edge(m)] {
                    self.ask_of_corrections(party, m, outbox);
                }
            }
            return;
        };
        let patients = self
            .task
            .given
            .held_out_counts(m)
            .map(|[validation, _]| validation as u64);
        let fits = |(sums, correction): (&Sums, &Calibration)| {
            let all = patients.is_none_or(|patients| patients == sums.samples(correction));
            sums.are_of(correction) && (all || sums.samples(correction) == 0)
        };
        if sums.len() != corrections.len() || !sums.iter().zip(corrections).all(fits) {
            return;
        }
        if calibrating.sums.iter().all(Option::is_none) {
            outbox.phases.push((Phase::Evaluation, t));
        }
        calibrating.sums[m] = Some(sums);
        self.search_if_due(outbox);
    }

    /// Goes on with the search once all that take part have answered, or enough at the deadline.
    pub(super) fn search_if_due(&mut self, outbox: &mut Outbox) {
        let Some(calibrating) = &self.calibrating else {
            return;
        };
        let groups = self.uploads.len();
        let all = calibrating
            .stage
            .takes_part
            .iter()
            .filter(|part| **part)
            .count();
        let there = calibrating.sums.iter().flatten().count();
        let waits = there == 0 || !self.overdue && (0..groups).any(|m| self.waits_for_sums(m));
        if !is_enough((there, all), quorum(self.quorum.groups, groups), waits) {
            return;
        }
        self.overdue = false;
        outbox.over.push((Phase::Evaluation, self.state.progress.t));
        let layout = self.layout();
        let Some(calibrating) = &mut self.calibrating else {
            return;
        };
        let Stage {
            search, takes_part, ..
        } = &mut calibrating.stage;
        let question = search.question().unwrap_or_default();
        let begun = question != Calibration::none(layout).as_slice();
        let mut all: Vec<Sums> = question.iter().map(Sums::none).collect();
        let none = question.first().cloned();
        let each = takes_part.iter_mut().zip(&mut calibrating.sums);
        let mut left = 0;
        for (takes_part, sums) in each.filter(|(takes_part, _)| **takes_part) {
            match sums.take() {
                Some(sums) => {
                    let each = all.iter_mut().zip(&sums);
                    each.for_each(|(all, sums)| all.merge(sums));
                }
                None => (*takes_part, left) = (false, left + 1),
            }
        }
        match left > 0 && begun {
            true => *search = Search::new(layout),
            false => search.answered(&all),
        }
        match search.question() {
            Some(_) => {
                self.ask_all(outbox);
                outbox.record = Some(self.record());
            }
            None => {
                let of = |(sums, none): (&Sums, &Calibration)| sums.samples(none);
                let samples = all.first().zip(none.as_ref()).map_or(0, of);
                self.found(samples, outbox);
            }
        }
    }

    /// A search is over.
    fn found(&mut self, samples: u64, outbox: &mut Outbox) {
        let Some(Calibrating { judged, stage, .. }) = self.calibrating.take() else {
            return;
        };
        let found = Found {
            calibration: stage.search.found(),
            samples,
        };
        let (progress, best) = (&self.state.progress, &self.state.best);
        let is_best = progress.best.is_some_and(|best| best.t == progress.t);
        match (stage.of_last, best) {
            (None, Some(_)) if !is_best && samples > 0 => {
                let stage = self.first_stage(Some(found));
                self.calibrate(judged, stage, outbox);
                outbox.record = Some(self.record());
                return;
            }
            (None, best) => {
                self.calibrations = Some(Calibrations {
                    best: best.as_ref().map(|_| found.clone()),
                    model: found,
                });
            }
            (Some(model), _) => {
                let best = Some(found);
                self.calibrations = Some(Calibrations { model, best });
            }
        }
        self.decide(judged, outbox);
    }

    /// How probabilities of the last model are corrected, once that is known.
    pub(super) fn calibration_of_last(&self) -> Option<Calibration> {
        self.calibrations.as_ref()?.model.calibration.clone()
    }

    /// What a record keeps of an end.
    pub(super) fn kept_of_end(&self) -> Option<Ended> {
        let calibrating = self.calibrating.as_ref();
        let stage = calibrating.map(|calibrating| Ended::Calibrating(calibrating.stage.clone()));
        stage.or_else(|| self.calibrations.clone().map(Ended::Found))
    }

    /// Whether a run can have ended so.
    pub(super) fn can_be_end(&self, ended: Option<&Ended>) -> bool {
        let layout = self.layout();
        let is_sound = |found: Option<&Found>| {
            let calibration = found.and_then(|found| found.calibration.as_ref());
            calibration.is_none_or(|calibration| calibration.is_for(layout))
        };
        match ended {
            None => true,
            Some(Ended::Found(all)) => is_sound(Some(&all.model)) && is_sound(all.best.as_ref()),
            Some(Ended::Calibrating(stage)) => {
                is_sound(stage.of_last.as_ref())
                    && stage.search.goes_on_for(layout)
                    && stage.takes_part.len() == self.uploads.len()
                    && stage.takes_part.contains(&true)
            }
        }
    }
}
