//! A gateway: says who is known, and sums up the columns of those who take part so that only a group's total can be seen.

use super::message::{Body, Part, is_hex};
use super::ring;
use super::roll::{FEWEST, digest_of_all, digest_of_part, is_roll};
use super::{Context, Enrolled, OwnSide, Trouble, Words};
use crate::shards::{OwnPart, OwnShard, PartyShard};
use selvedge_core::role::Party;

pub(super) struct Gateway {
    own: OwnSide,
    state: Option<State>,
}

struct State {
    enrolled: Enrolled,
    parts: [OwnPart; 3],
    from: [u32; 2],
}

impl Gateway {
    pub(super) fn new(own: OwnSide) -> Self {
        Gateway { own, state: None }
    }

    pub(super) fn begin(&mut self, at: &Context<'_>) -> Words {
        self.state = None;
        vec![(Party::Edge(at.group()), Body::Roll(self.own.roll()))]
    }

    pub(super) fn heard(
        &mut self,
        at: &Context<'_>,
        from: Party,
        body: Body,
    ) -> Result<(Words, Option<Enrolled>), Trouble> {
        match (body, &self.state) {
            // One part for each enrolment: two sums that are hidden alike would show how they differ.
            (Body::Part(part), None) => {
                self.check(at, from, &part)?;
                let [training, validation, test] =
                    part.own.each_ref().map(|(p, y)| self.own.take(p, y));
                let (training, mut sums) = training?;
                ring::hide(
                    &mut sums,
                    &self.own.key,
                    &format!("{} {}", at.number, digest_of_all(&part.digests)),
                    (at.gateway(), at.gateways),
                );
                let parts = [training, validation?.0, test?.0];
                let digest = digest_of_all(&part.digests);
                let mut enrolled = Enrolled::new(at.party, digest.clone());
                enrolled.pseudonyms = self.own.key.name();
                enrolled.counts = vec![part.counts];
                enrolled.gateways = part.ranges;
                self.state = Some(State {
                    enrolled,
                    parts,
                    from: part.from,
                });
                Ok((vec![(from, Body::Sums { sums, digest })], None))
            }
            (Body::Common(common), Some(state)) => {
                let mut enrolled = state.enrolled.clone();
                let bases = enrolled.adopt(at, from, &common)?;
                let mut parts = state.parts.clone();
                let from = state.from;
                (parts[1].base, parts[2].base) = (bases[0] + from[0], bases[1] + from[1]);
                let [first, end] = enrolled.gateways[at.gateway()];
                let last = enrolled.gateways.last().copied().unwrap_or_default();
                enrolled.shard = Some(OwnShard {
                    party: PartyShard::Gateway {
                        group: at.group(),
                        devices: first..end,
                        held_out: true,
                    },
                    from,
                    devices: last[1],
                    shape: self.own.shape(),
                    parts,
                });
                Ok((Vec::new(), Some(enrolled)))
            }
            _ => Err(Trouble::nonsense(from, "something out of turn")),
        }
    }

    /// The part must be this gateway's, and one of a group that is large enough to hide in.
    fn check(&self, at: &Context<'_>, from: Party, part: &Part) -> Result<(), Trouble> {
        let own = at.gateway();
        if part.ranges.len() != at.gateways {
            return Err(Trouble::Told(format!(
                "the edge has {} gateways, {} has gateway_count = {}: expected the same number in their node.toml",
                part.ranges.len(),
                at.party,
                at.gateways
            )));
        }
        let follow = part.ranges.windows(2).all(|pair| pair[0][1] == pair[1][0]);
        let rising = part.ranges.iter().all(|[first, end]| first < end);
        let begins = part.ranges.first().is_some_and(|range| range[0] == 0);
        let [first, end] = part.ranges[own];
        let devices = part.ranges.last().map_or(0, |range| range[1] as usize);
        let classes = at.terms.classes().len();
        let lists = part.own.iter().map(|(p, y)| (p, y));
        let [validation, test] = [1, 2].map(|i| part.own[i].0.len() as u64);
        let fits = |from: u32, own: u64, all: usize| u64::from(from) + own <= all as u64;
        let sound = |(patients, labels): (&Vec<String>, &Vec<u32>)| {
            is_roll(patients)
                && patients.len() == labels.len()
                && labels.iter().all(|label| (*label as usize) < classes)
        };
        let sound = follow
            && rising
            && begins
            && lists.clone().all(sound)
            && part.own[0].0.len() == (end.saturating_sub(first)) as usize
            && part.counts.training == devices
            && fits(part.from[0], validation, part.counts.validation)
            && fits(part.from[1], test, part.counts.test)
            && part.digests.len() == 3 * at.gateways
            && part.salts.iter().all(|salt| is_hex(salt, 32));
        if !sound {
            return Err(Trouble::nonsense(from, "a part"));
        }
        if devices < FEWEST {
            return Err(Trouble::too_few(at.group(), devices));
        }
        let digests = part.digests[3 * own..].iter();
        let same =
            digests
                .zip(&part.own)
                .zip(&part.salts)
                .all(|((digest, (patients, labels)), salt)| {
                    *digest == digest_of_part(salt, patients, labels)
                });
        if !same {
            return Err(Trouble::Told(format!(
                "the part of {} is not in the roster's digest",
                at.party
            )));
        }
        let known = |(patients, _): (&Vec<String>, &Vec<u32>)| self.own.knows(patients);
        match lists.clone().all(known) {
            true => Ok(()),
            false => Err(Trouble::Told(format!(
                "the edge's roster has patients whom {} does not know",
                at.party
            ))),
        }
    }

    pub(super) fn waits(&self, at: &Context<'_>) -> Vec<Party> {
        vec![Party::Edge(at.group())]
    }
}
