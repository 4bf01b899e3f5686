//! Groups that are not waited for: one of their parties has missed several deadlines in a row.

use super::super::{MOST_MISSED, Party, Phase};
use super::Cloud;

/// How many deadlines each group has missed in a row: its hospital and its edge those of aggregations, and its hospital
/// those of evaluations.
#[derive(Clone, Default)]
pub(super) struct Missed {
    uploads: [u32; 2],
    scores: u32,
}

impl Cloud<'_> {
    /// A party is heard of.
    pub(super) fn heard(&mut self, m: usize, side: usize) {
        if let Some(missed) = self.missed.get_mut(m) {
            missed.uploads[side] = 0;
        }
    }

    /// A party is not listened to: as if it had missed as many deadlines as it takes.
    pub(super) fn silenced(&mut self, phase: Phase, party: Party) {
        let (Party::Hospital(m) | Party::Edge(m)) = party else {
            return;
        };
        let Some(missed) = self.missed.get_mut(m) else {
            return;
        };
        match (phase, party) {
            (Phase::Global, Party::Hospital(_)) => missed.uploads[0] = MOST_MISSED,
            (Phase::Global, _) => missed.uploads[1] = MOST_MISSED,
            (Phase::Evaluation, Party::Hospital(_)) => missed.scores = MOST_MISSED,
            _ => {}
        }
    }

    /// A group has measured something.
    pub(super) fn has_measured(&mut self, m: usize) {
        if let Some(missed) = self.missed.get_mut(m) {
            missed.scores = 0;
        }
    }

    /// The deadline of an aggregation is over.
    pub(super) fn miss_uploads(&mut self) {
        for (upload, missed) in self.uploads.iter().zip(&mut self.missed) {
            let missing = [upload.hospital.is_none(), upload.edge.is_none()];
            for (missed, missing) in missed.uploads.iter_mut().zip(missing) {
                *missed = missed.saturating_add(u32::from(missing));
            }
        }
    }

    /// The deadline of an evaluation is over.
    pub(super) fn miss_scores(&mut self) {
        let missing: Vec<usize> = match (&self.measuring, &self.calibrating) {
            (Some(measuring), _) => {
                let scores = measuring.scores.iter().enumerate();
                let missing = scores.filter(|(_, scores)| scores.is_none());
                missing.map(|(m, _)| m).collect()
            }
            (None, Some(calibrating)) => calibrating.missing().collect(),
            (None, None) => return,
        };
        for m in missing {
            let missed = &mut self.missed[m].scores;
            *missed = missed.saturating_add(1);
        }
    }

    /// Whether it waits for a group's upload: not if half of it is not going to come.
    pub(super) fn waits_for_upload(&self, m: usize) -> bool {
        let (upload, missed) = (&self.uploads[m], self.missed[m].uploads);
        let halves = [upload.hospital.is_some(), upload.edge.is_some()];
        let comes = |(there, missed): (bool, u32)| there || missed < MOST_MISSED;
        halves != [true; 2] && halves.into_iter().zip(missed).all(comes)
    }

    /// Whether it waits for a group's scores.
    pub(super) fn waits_for_scores(&self, m: usize) -> bool {
        let missing = |all: &super::Measuring| all.scores[m].is_none();
        self.measuring.as_ref().is_some_and(missing) && self.missed[m].scores < MOST_MISSED
    }

    /// Whether it waits for what a correction does to a group's samples.
    pub(super) fn waits_for_sums(&self, m: usize) -> bool {
        let missing = |all: &super::Calibrating| all.missing().any(|missing| missing == m);
        self.calibrating.as_ref().is_some_and(missing) && self.missed[m].scores < MOST_MISSED
    }

    /// The parties that it does not wait for.
    pub(super) fn gone(&self) -> Vec<Party> {
        let mut gone = Vec::new();
        for (m, missed) in self.missed.iter().enumerate() {
            let [hospital, edge] = missed.uploads;
            let hospital = hospital.max(missed.scores);
            gone.extend((hospital >= MOST_MISSED).then_some(Party::Hospital(m)));
            gone.extend((edge >= MOST_MISSED).then_some(Party::Edge(m)));
        }
        gone
    }
}
