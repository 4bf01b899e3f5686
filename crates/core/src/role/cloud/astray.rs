//! Groups that have lost a record, and a cloud that has an earlier one than its groups: who is further goes back to the
//! last aggregation that the cloud knows, and all train again from there. What follows is computed as before.

use super::super::message::Message;
use super::super::{Outbox, Party};
use super::Cloud;

impl Cloud<'_> {
    /// A party has uploaded for an aggregation that is none yet, or has heard of an end: this cloud's record is of before.
    pub(super) fn is_behind(&self, party: Party, m: usize, t: u64, outbox: &mut Outbox) {
        let own = self.state.progress.t;
        if self.is_measuring() || t > self.task.experiment.train.iterations {
            return;
        }
        outbox.notices.push(format!(
            "{party} is at t = {t}, but the cloud's last record is of t = {own}: it goes back, and trains that again"
        ));
        self.send_back(party, m, t, outbox);
    }

    /// A party says where it and its group are. While θ is measured it may not be the one: who waits will say so again.
    pub(super) fn astray(
        &self,
        (party, m): (Party, usize),
        places: [Option<u64>; 2],
        global: u64,
        outbox: &mut Outbox,
    ) {
        let t = self.state.progress.t;
        let is_complaint = places.iter().all(Option::is_some);
        let from = places.into_iter().flatten().max().unwrap_or_default();
        if self.ending.is_some() {
            if is_complaint {
                self.announce(party, m, true, outbox);
            }
            return;
        }
        if global > t {
            return self.is_behind(party, m, from.max(global), outbox);
        }
        // Nobody can be further than the next aggregation.
        if self.is_measuring() || !is_complaint || !(t..=self.next()).contains(&from) {
            return;
        }
        outbox.notices.push(format!(
            "group {m} has lost a record: it goes back to the aggregation at t = {t}"
        ));
        self.send_back(Party::Hospital(m), m, from, outbox);
        self.send_back(Party::Edge(m), m, from, outbox);
    }

    fn send_back(&self, party: Party, m: usize, from: u64, outbox: &mut Outbox) {
        let progress = &self.state.progress;
        let message = Message::Return {
            from,
            t: progress.t,
            parts: self.whole(party),
            segment: progress.segment,
            ledger: self.counted[m].clone(),
        };
        outbox.send(party, message);
    }
}
