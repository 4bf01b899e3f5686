//! An edge whose group has lost a record: it asks the cloud, and goes back to the last aggregation.

use super::super::message::Message;
use super::super::{Outbox, Party, forgotten};
use super::{Edge, Stage};
use crate::ledger::Ledger;

impl Edge<'_> {
    fn astray(&self, edge: u64, hospital: Option<u64>) -> Message {
        Message::Astray {
            edge: Some(edge),
            hospital,
            global: self.held.global_t,
        }
    }

    /// Tells the cloud where it is, should nobody go on since another has lost a record.
    pub(super) fn tell_where(&self, outbox: &mut Outbox) {
        if !self.held.ended {
            outbox.send(Party::Cloud, self.astray(self.held.t, None));
        }
    }

    /// The hospital says where it is, and perhaps that this edge is at another iteration. An old message says so too: the
    /// cloud is asked if the edge waits for the hospital indeed, and the hospital if it has been where the edge is.
    pub(super) fn apart(&self, edge: Option<u64>, hospital: u64, outbox: &mut Outbox) {
        let own = self.held.t;
        let answer = self.astray(own, Some(hospital));
        match self.stage {
            Stage::Asking(_) if edge == Some(own) && hospital != own => {
                outbox.send(Party::Cloud, answer);
            }
            Stage::Uploaded(_) if edge.is_none() && hospital < own => {
                outbox.send(Party::Hospital(self.group), answer);
            }
            _ => {}
        }
    }

    /// What was announced does not follow from what this edge holds: it has lost its record.
    pub(super) fn cannot_follow(&self, t: u64, outbox: &mut Outbox) {
        outbox.send(Party::Cloud, self.astray(t, Some(t)));
    }

    /// Goes back to the last aggregation, as the cloud has it, and to what the group had sent by then.
    pub(super) fn returns(
        &mut self,
        from: u64,
        global: &Message,
        ledger: &Ledger,
        outbox: &mut Outbox,
    ) {
        let Message::Global { t, .. } = global else {
            return;
        };
        let (t, before) = (*t, self.held.t);
        if before > from || !self.can_adopt(global) {
            return;
        }
        let held = &self.held;
        let kept = [&held.residual, &held.copy.0, &held.memory];
        outbox.notices.push(format!(
            "goes back from t = {before} to the aggregation at t = {t}{}",
            forgotten(&kept.map(Vec::as_slice), &held.conduct)
        ));
        outbox.back = Some(t);
        self.held.counted.ledger = ledger.clone();
        self.adopt(global, outbox);
    }
}
