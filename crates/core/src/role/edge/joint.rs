//! An edge's part in joint predictions: tells gateways θ2, and passes on what they ask about their own patients.

use super::super::joint::{About, Why};
use super::super::message::Message;
use super::super::{Outbox, Party};
use super::Edge;
use crate::message_path::Numbers;

impl Edge<'_> {
    /// A gateway wants to know θ2.
    pub(super) fn fetch(&self, gateway: usize, outbox: &mut Outbox) {
        if gateway >= self.gateways.len() {
            return;
        }
        let message = match self.held.ended {
            true => Message::Trained {
                t: self.held.t,
                theta2: Numbers::dense(&self.held.theta2),
            },
            false => refused(0, gateway, Why::Training),
        };
        outbox.send(Party::Gateway(self.group, gateway), message);
    }

    /// A gateway asks. The hospital could not know whose patients these are.
    pub(super) fn question(
        &self,
        gateway: usize,
        (number, t): (u64, u64),
        (about, zeta2): (About, Numbers),
        outbox: &mut Outbox,
    ) {
        if gateway >= self.gateways.len() {
            return;
        }
        let asker = Party::Gateway(self.group, gateway);
        let width = self.task.architecture.device.output().len();
        let wrong = match &about {
            _ if !self.held.ended => Some(Why::Training),
            _ if t != self.held.t => Some(Why::OtherModel),
            about if about.embedded(&zeta2, width).is_none() => Some(Why::Malformed),
            About::Rows(part, rows) if !self.holds(gateway, *part, rows) => Some(Why::NotYours),
            _ => None,
        };
        if let Some(why) = wrong {
            return outbox.send(asker, refused(number, gateway, why));
        }
        outbox.send(asker, Message::Passed { number });
        let message = Message::Question {
            number,
            t,
            gateway: gateway as u32,
            about,
            zeta2,
        };
        outbox.send(Party::Hospital(self.group), message);
    }

    /// The hospital says something to a gateway.
    pub(super) fn answered(&self, gateway: u32, message: Message, outbox: &mut Outbox) {
        if gateway as usize >= self.gateways.len() {
            return;
        }
        if let Message::Answer { probabilities, .. } = &message {
            let classes = self.task.architecture.combined.output().len();
            outbox.answered += (probabilities.count() / classes.max(1)) as u64;
        }
        outbox.send(Party::Gateway(self.group, gateway as usize), message);
    }
}

fn refused(number: u64, gateway: usize, why: Why) -> Message {
    Message::Refused {
        number,
        gateway: gateway as u32,
        why,
    }
}
