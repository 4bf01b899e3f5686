//! What an edge is doing, for people.

use super::super::{Doing, Party};
use super::{Drawn, Edge, Stage};
use std::ops::Range;

impl Edge<'_> {
    pub(in crate::role) fn stage(&self) -> (&'static str, u64) {
        let name = match self.stage {
            Stage::Inviting(_) => "exchange",
            Stage::Asking(_) => "hospital",
            Stage::Teaching(..) => "upload",
            Stage::Uploaded(_) => "global",
            Stage::Ended => "over",
        };
        (name, self.held.t)
    }

    /// What it is doing.
    pub fn doing(&self) -> Doing {
        let missing_gateways = |missing: &dyn Fn(usize) -> bool, drawn: &Drawn| {
            let waits = |devices: &Range<u32>| {
                let subset = drawn.group.subset.iter().enumerate();
                subset
                    .clone()
                    .any(|(position, device)| devices.contains(device) && missing(position))
            };
            let gateways = self.gateways.iter().enumerate();
            let waits = gateways.filter(|(_, devices)| waits(devices));
            waits.map(|(g, _)| Party::Gateway(self.group, g)).collect()
        };
        let there = |of: usize, all: usize, what: &str| format!("{of} of {all} devices {what}");
        let (what, missing, below_quorum) = match &self.stage {
            Stage::Inviting(drawn) => {
                let got = drawn.zeta2.iter().flatten().count();
                (
                    there(got, drawn.zeta2.len(), "have sent ζ2"),
                    missing_gateways(&|p| drawn.awaits_zeta2(p), drawn),
                    drawn.overdue,
                )
            }
            Stage::Asking(_) => (
                "waits for θ0 and ζ1".into(),
                vec![Party::Hospital(self.group)],
                false,
            ),
            Stage::Teaching(drawn, _) => {
                let got = drawn.models.iter().flatten().count();
                let all = drawn.zeta1.iter().flatten().count();
                let waits = |p: usize| drawn.zeta1[p].is_some() && drawn.models[p].is_none();
                (
                    there(got, all, "have sent their models"),
                    missing_gateways(&waits, drawn),
                    drawn.overdue,
                )
            }
            Stage::Uploaded(_) => (
                "has uploaded, waits for the cloud".into(),
                vec![Party::Cloud],
                false,
            ),
            Stage::Ended if !self.held.ended => ("begins".into(), Vec::new(), false),
            Stage::Ended => {
                let told = self.told.iter().enumerate();
                let untold = told.filter(|(_, told)| !**told);
                let untold = untold.map(|(g, _)| Party::Gateway(self.group, g));
                ("the run is over".into(), untold.collect(), false)
            }
        };
        Doing {
            t: self.held.t,
            what,
            missing,
            below_quorum,
            gone: self.gone(),
        }
    }
}
