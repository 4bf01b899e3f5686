//! What the cloud keeps: as bytes, and back.

use super::super::wire::{self, Appended, Reader, Sketches, Wire, WireError, fields};
use super::super::{Outbox, is_possible};
use super::calibrate::Ended;
use super::{Cloud, Last, Upload};
use crate::cloud::KINDS;
use crate::judging::Judged;
use crate::ledger::{Kind, Ledger};
use crate::message_path::{Leg, Numbers};
use crate::model::Model;
use crate::reversal::Reversals;
use crate::run::Ending;
use crate::state::{Evaluation, Progress, State};

impl Cloud<'_> {
    /// Resumes from a record: what was announced is announced again.
    ///
    /// # Errors
    /// If it is not a record of this run.
    pub fn restore(&mut self, record: &[u8], outbox: &mut Outbox) -> Result<(), WireError> {
        let record: Record = wire::read_record(record)?;
        let wrong = || WireError::Short("a record of these groups and networks");
        let groups = self.uploads.len();
        let progress: Progress = serde_json::from_str(&record.progress).map_err(|_| wrong())?;
        let like = &self.state;
        let same = |a: &Model, b: &Model| {
            let [a, b] = [a, b].map(|m| m.parts().map(<[f32]>::len));
            a == b
        };
        let [Some(theta), Some(good), safe, best] = record.models.taken().ok_or_else(wrong)? else {
            return Err(wrong());
        };
        let models = [Some(&theta), Some(&good), safe.as_ref(), best.as_ref()];
        if record.present.len() != groups
            || record.counted.len() != groups
            || safe.is_some() != like.safe.is_some()
            || !same(&record.lost, &like.residuals.cloud)
            || !same(&record.memory, &like.memories.cloud)
            || !models
                .iter()
                .flatten()
                .all(|model| same(model, &like.theta))
            || !self.can_be(&progress, record.diverged.is_some())
            || !self.can_be_end(record.ended.0.as_ref())
            || !self.can_be_announced(&record, &theta, progress.t)
        {
            return Err(wrong());
        }
        let reversals = Reversals::from_bytes(&record.sketches.0, groups);
        self.state.reversals = reversals.ok_or_else(wrong)?;
        self.state.progress = progress;
        let conduct = &mut self.state.progress.conduct;
        self.pardoned
            .iter()
            .for_each(|group| conduct.pardon(*group));
        self.state.groups = vec![theta.clone(); groups];
        (self.state.theta, self.state.good) = (theta, good);
        (self.state.safe, self.state.best) = (safe, best);
        self.state.residuals.cloud = record.lost;
        self.state.memories.cloud = record.memory;
        self.counted = record.counted;
        (self.measuring, self.overdue) = (None, false);
        (self.measured, self.calibrating) = (None, None);
        self.uploads = vec![Upload::default(); groups];
        self.last = Last {
            present: record.present,
            frames: record.frames,
            since: record.since,
            restored: record.restored,
            evaluation: record.evaluation,
        };
        self.ending = match record.diverged {
            Some((t, learning_rate)) => Some(Ending::Diverged { t, learning_rate }),
            None => self.usual_ending(),
        };
        self.calibrations = None;
        match record.ended.0 {
            Some(Ended::Calibrating(stage)) => {
                let judged = Judged {
                    evaluation: self.last.evaluation.clone(),
                    ending: self.ending.take(),
                };
                self.calibrate(judged, stage, outbox);
                return Ok(());
            }
            Some(Ended::Found(calibrations)) => self.calibrations = Some(calibrations),
            None => {}
        }
        self.tell(outbox);
        Ok(())
    }

    /// Whether this run can have come so far.
    fn can_be(&self, progress: &Progress, diverged: bool) -> bool {
        let like = &self.state.progress;
        let over = diverged || progress.reached.is_some();
        let over = over || progress.t == self.task.experiment.train.iterations;
        let who_steers = match (&progress.controller, &like.controller) {
            (Some(a), Some(b)) => {
                let same_mode =
                    std::mem::discriminant(&a.memory) == std::mem::discriminant(&b.memory);
                same_mode && a.reports.len() == b.reports.len()
            }
            (a, b) => a.is_none() && b.is_none(),
        };
        is_possible(self.task, (progress.t, &progress.segment), over)
            && progress.aggregated == progress.t
            && progress.evaluated.is_none_or(|t| t <= progress.t)
            && progress.clock.groups() == like.clock.groups()
            && progress.ledger.is_in_order()
            && who_steers
    }

    /// Whether groups can read what is announced of the aggregation at `t`.
    fn can_be_announced(&self, record: &Record, theta: &Model, t: u64) -> bool {
        let Some(frames) = &record.frames else {
            return true;
        };
        let parts = theta.parts().into_iter().zip(KINDS);
        let reads = |(part, (theta, kind)): (&Numbers, (&[f32], Kind))| {
            let route = self.task.route(Leg::Download(kind), 0, t);
            route.read(part, theta.len(), Some(theta)).is_some()
        };
        frames.len() == KINDS.len() && frames.iter().zip(parts).all(reads)
    }

    pub(super) fn record(&self) -> Vec<u8> {
        let State {
            progress,
            theta,
            good,
            safe,
            best,
            residuals,
            memories,
            ..
        } = &self.state;
        wire::record(&Record {
            progress: serde_json::to_string(progress).unwrap_or_default(),
            evaluation: self.last.evaluation.clone(),
            models: Kept::new([Some(theta), Some(good), safe.as_ref(), best.as_ref()]),
            lost: residuals.cloud.clone(),
            memory: memories.cloud.clone(),
            counted: self.counted.clone(),
            present: self.last.present.clone(),
            frames: self.last.frames.clone(),
            since: self.last.since,
            restored: self.last.restored,
            diverged: match self
                .calibrating
                .as_ref()
                .map_or(&self.ending, |c| c.ending())
            {
                Some(Ending::Diverged { t, learning_rate }) => Some((*t, *learning_rate)),
                _ => None,
            },
            sketches: Sketches(self.state.reversals.to_bytes()),
            ended: Appended(self.kept_of_end()),
        })
    }
}

/// What a cloud finds again.
struct Record {
    progress: String,
    /// As it is: JSON has no infinite losses.
    evaluation: Option<Evaluation>,
    models: Kept,
    lost: Model,
    /// What the optimiser remembers.
    memory: Model,
    counted: Vec<Ledger>,
    present: Vec<bool>,
    frames: Option<Vec<Numbers>>,
    since: u64,
    restored: bool,
    diverged: Option<(u64, f64)>,
    /// Of the groups' steps, where they are watched.
    sketches: Sketches,
    /// Once the run has ended: how probabilities are corrected, or how far that is known.
    ended: Appended<Option<Ended>>,
}

fields!(Record {
    progress,
    evaluation,
    models,
    lost,
    memory,
    counted,
    present,
    frames,
    since,
    restored,
    diverged,
    sketches,
    ended
});

/// θ, the last good, the safe and the best model, each kept once: mostly they are the same.
struct Kept {
    models: Vec<Model>,
    /// Which of these each is.
    places: Vec<Option<u32>>,
}

fields!(Kept { models, places });

impl Kept {
    fn new(all: [Option<&Model>; 4]) -> Self {
        // By their bits: a number that is none is not equal to itself.
        let same = |a: &Model, b: &Model| {
            let parts = a.parts().into_iter().zip(b.parts());
            let equal = |(a, b): (&[f32], &[f32])| {
                a.iter()
                    .map(|x| x.to_bits())
                    .eq(b.iter().map(|x| x.to_bits()))
            };
            parts.into_iter().all(equal)
        };
        let mut models: Vec<Model> = Vec::new();
        let mut place = |model: &Model| {
            let known = models.iter().position(|known| same(known, model));
            let place = known.unwrap_or_else(|| {
                models.push(model.clone());
                models.len() - 1
            });
            place as u32
        };
        let places = all.map(|model| model.map(&mut place)).to_vec();
        Kept { models, places }
    }

    fn taken(&self) -> Option<[Option<Model>; 4]> {
        let places: &[Option<u32>; 4] = self.places.as_slice().try_into().ok()?;
        let mut all = [const { None }; 4];
        for (model, place) in all.iter_mut().zip(places) {
            if let Some(place) = place {
                *model = Some(self.models.get(*place as usize)?.clone());
            }
        }
        Some(all)
    }
}
