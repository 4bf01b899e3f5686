//! θ measured by the groups: who is asked, and what follows from their scores.

use super::super::message::Message;
use super::super::{Absence, Outbox, Party, Phase, is_enough, quorum};
use super::{Cloud, Measuring};
use crate::judging::{self, Candidate, Judging};
use crate::plausible::pooled;
use crate::state::Without;
use selvedge_nn::random::Key;

impl Cloud<'_> {
    /// Has θ measured, or announces it.
    pub(super) fn step(&mut self, step: Judging, outbox: &mut Outbox) {
        match step {
            Judging::Evaluate(candidate) => {
                let parts = self.state.theta.parts();
                let words = parts.iter().flat_map(|part| *part);
                let key = Key::new(self.state.progress.t)
                    .with(candidate as u64)
                    .with_all(words.map(|x| u64::from(x.to_bits())));
                let number = key.stream().next_u64();
                let groups = self.uploads.len();
                self.measuring = Some(Measuring {
                    candidate,
                    number,
                    scores: vec![None; groups],
                });
                if matches!(candidate, Candidate::Safe | Candidate::Good) {
                    (self.last.frames, self.last.restored) = (None, true);
                }
                for m in 0..groups {
                    self.send_model(Party::Hospital(m), number, outbox);
                    self.send_model(Party::Edge(m), number, outbox);
                }
            }
            Judging::Done(judged) => self.conclude(judged, outbox),
        }
    }

    pub(super) fn send_model(&self, to: Party, number: u64, outbox: &mut Outbox) {
        let parts = self.whole(to);
        outbox.send(to, Message::Evaluate { number, parts });
    }

    pub(super) fn judge_if_due(&mut self, outbox: &mut Outbox) {
        let Some(measuring) = &self.measuring else {
            return;
        };
        let (there, all) = (
            measuring.scores.iter().flatten().count(),
            measuring.scores.len(),
        );
        let mut scores = measuring.scores.iter().flatten();
        let any = scores.any(|scores| scores.training.samples() > 0);
        let waits = !any || !self.overdue && (0..all).any(|m| self.waits_for_scores(m));
        if !is_enough((there, all), quorum(self.quorum.groups, all), waits) {
            return;
        }
        self.overdue = false;
        let t = self.state.progress.t;
        outbox.over.push((Phase::Evaluation, t));
        let Some(Measuring {
            candidate,
            number,
            scores,
        }) = self.measuring.take()
        else {
            return;
        };
        self.measured = Some(number);
        let quarantined = self.state.progress.quarantined_groups(self.task);
        let reported = scores
            .into_iter()
            .map(|scores| scores.map(|scores| *scores));
        let found = pooled(self.task, &quarantined, reported);
        let absent = found.1.iter().map(|Without { group, reason }| Absence {
            reason: *reason,
            ..Absence::of_group(Phase::Evaluation, t, *group as usize)
        });
        outbox.absences.extend(absent);
        let step = judging::scored(self.task, &mut self.state, candidate, found);
        self.step(step, outbox);
    }
}
