//! What an edge sends, and sends again: by gateway, to those who have not answered.

use super::super::message::{Message, OfDevice};
use super::super::{Outbox, Party};
use super::{Drawn, Edge, Stage};
use crate::message_path::{Leg, Numbers};
use std::ops::Range;

impl Edge<'_> {
    /// Some positions of the subset, by gateway.
    pub(super) fn by_gateway(
        &self,
        drawn: &Drawn,
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<(Party, Vec<usize>)> {
        let subset = drawn.group.subset.iter().enumerate();
        let wanted: Vec<(usize, u32)> = subset
            .map(|(position, device)| (position, *device))
            .filter(|(position, _)| wanted(*position))
            .collect();
        let of_gateway = |(g, devices): (usize, &Range<u32>)| {
            let mine = wanted.iter().filter(|(_, n)| devices.contains(n));
            let positions: Vec<usize> = mine.map(|(position, _)| *position).collect();
            (Party::Gateway(self.group, g), positions)
        };
        let all = self.gateways.iter().enumerate().map(of_gateway);
        all.filter(|(_, positions)| !positions.is_empty()).collect()
    }

    /// Sends what it waits for an answer to.
    pub(super) fn again(&self, outbox: &mut Outbox) {
        match &self.stage {
            Stage::Inviting(drawn) => {
                let missing = self.by_gateway(drawn, |p| drawn.awaits_zeta2(p));
                self.send_invitations(drawn, &missing, outbox);
            }
            Stage::Asking(drawn) => {
                let message = Message::Batch {
                    t: self.held.t,
                    zeta2: drawn.zeta2.clone(),
                };
                outbox.send(Party::Hospital(self.group), message);
            }
            Stage::Teaching(drawn, theta0) => {
                let waits = |p: usize| drawn.zeta1[p].is_some() && drawn.models[p].is_none();
                let missing = self.by_gateway(drawn, waits);
                // Who has forgotten the invitation needs it first.
                self.send_invitations(drawn, &missing, outbox);
                self.send_lessons(drawn, theta0, missing, outbox);
            }
            Stage::Uploaded(message) => outbox.send(Party::Cloud, message.clone()),
            Stage::Ended if !self.held.ended => {}
            Stage::Ended => {
                let untold = self.told.iter().enumerate().filter(|(_, told)| !**told);
                for (g, _) in untold {
                    outbox.send(Party::Gateway(self.group, g), Message::End);
                }
            }
        }
    }

    fn send_invitations(&self, drawn: &Drawn, to: &[(Party, Vec<usize>)], outbox: &mut Outbox) {
        let theta2 = self
            .route(Leg::DeviceModel)
            .pack(&self.held.theta2, &[], &mut []);
        for (gateway, positions) in to {
            let devices = positions.iter().map(|p| drawn.group.subset[*p]);
            let message = Message::Invite {
                t: self.held.t,
                segment: self.held.segment,
                theta2: theta2.clone(),
                devices: devices.collect(),
            };
            outbox.send(*gateway, message);
        }
    }

    pub(super) fn send_lessons(
        &self,
        drawn: &Drawn,
        theta0: &Numbers,
        to: Vec<(Party, Vec<usize>)>,
        outbox: &mut Outbox,
    ) {
        for (gateway, positions) in to {
            let lesson = |p: usize| -> Option<OfDevice> {
                Some((drawn.group.subset[p], drawn.zeta1[p].clone()?))
            };
            let message = Message::Lesson {
                t: self.held.t,
                theta0: theta0.clone(),
                zeta1: positions.into_iter().filter_map(lesson).collect(),
            };
            outbox.send(gateway, message);
        }
    }

    /// Has a gateway embed what is measured, if anything is.
    pub(super) fn ask_to_embed(&self, gateway: usize, outbox: &mut Outbox) {
        if let Some((number, theta2)) = &self.measured {
            let message = Message::Embed {
                number: *number,
                theta2: theta2.clone(),
            };
            outbox.send(Party::Gateway(self.group, gateway), message);
        }
    }
}
