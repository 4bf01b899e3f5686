//! A hospital and an edge that are not at the same iteration: one of them has lost its record. Both go back to the last
//! aggregation, whose θ the cloud has.

use super::super::message::Message;
use super::super::{Outbox, Party, forgotten};
use super::Hospital;

impl Hospital<'_> {
    fn astray(&self, edge: Option<u64>, hospital: u64) -> Message {
        Message::Astray {
            edge,
            hospital: Some(hospital),
            global: self.held.global_t,
        }
    }

    /// Says where it is, should nobody go on since another has lost a record.
    pub(super) fn tell_where(&self, outbox: &mut Outbox) {
        if self.held.ended {
            return;
        }
        let own = self.astray(None, self.held.t);
        if self.uploaded.is_none() {
            outbox.send(Party::Edge(self.group), own.clone());
        }
        outbox.send(Party::Cloud, own);
    }

    /// The edge is at an interval that this hospital can neither begin nor answer again.
    pub(super) fn other_interval(&self, edge: u64, outbox: &mut Outbox) {
        let held = &self.held;
        let end = held.global_t.saturating_add(held.segment.global_interval);
        // Elsewhere an aggregation is between the two, and who has not heard of it will.
        if !held.ended && (held.global_t..end).contains(&edge) && edge != held.t {
            outbox.send(Party::Edge(self.group), self.astray(Some(edge), held.t));
        }
    }

    /// The edge has been further than this hospital, which was there: so it has lost its record.
    pub(super) fn apart(&self, edge: u64, hospital: u64, outbox: &mut Outbox) {
        let held = &self.held;
        let waits = !held.ended && self.uploaded.is_none();
        let is_near = edge - edge.min(held.global_t) <= held.segment.global_interval;
        if waits && hospital == held.t && edge > held.t && is_near {
            outbox.send(Party::Cloud, self.astray(Some(edge), held.t));
        }
    }

    /// What was announced does not follow from what this hospital holds: it has lost its record.
    pub(super) fn cannot_follow(&self, t: u64, outbox: &mut Outbox) {
        outbox.send(Party::Cloud, self.astray(Some(t), t));
    }

    /// Goes back to the last aggregation, as the cloud has it.
    pub(super) fn returns(&mut self, from: u64, global: &Message, outbox: &mut Outbox) {
        let Message::Global { t, .. } = global else {
            return;
        };
        let (t, before) = (*t, self.held.t);
        // A segment that began later would not be sound there.
        if before > from || !self.can_adopt(global) {
            return;
        }
        outbox.notices.push(format!(
            "goes back from t = {before} to the aggregation at t = {t}{}",
            self.forgets()
        ));
        outbox.back = Some(t);
        (self.answered, self.early, self.uploaded) = (None, None, None);
        self.adopt(global, outbox);
    }

    /// What cannot be had again, in words.
    fn forgets(&self) -> &'static str {
        let held = &self.held;
        let kept = [
            &held.copy,
            &held.lost0,
            &held.lost1,
            &held.memory0,
            &held.memory1,
        ];
        forgotten(&kept.map(Vec::as_slice), &held.conduct)
    }
}
