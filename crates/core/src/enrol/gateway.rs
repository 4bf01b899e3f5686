//! A gateway: says who is known, and sums up the columns of those who take part so that only a group's total can be
//! seen.

use super::duty::{Context, Duty, Follows, Trouble, Words};
use super::holdings::{self, Holdings};
use super::message::{Body, Share, is_hex};
use super::ring;
use super::roll::{FEWEST, digest_of_all, digest_of_part, is_roll};
use super::{Enrolled, OwnPart, OwnShard};
use crate::protocol::Party;

pub(super) struct Gateway<H> {
    own: H,
    state: Option<State>,
}

struct State {
    enrolled: Enrolled,
    parts: [OwnPart; 3],
    from: [u32; 2],
}

impl<H: Holdings> Gateway<H> {
    pub(super) fn new(own: H) -> Self {
        Gateway { own, state: None }
    }

    /// The share must be this gateway's, and one of a group that is large enough to hide in.
    fn check(&self, at: &Context, from: Party, share: &Share) -> Result<(), Trouble> {
        let own = at.gateway();
        if share.ranges.len() != at.gateways {
            return Err(Trouble::Told(format!(
                "the edge has {} gateways, {} has gateway_count = {}: expected the same number in their node.toml",
                share.ranges.len(),
                at.party,
                at.gateways
            )));
        }
        let follow = share.ranges.windows(2).all(|pair| pair[0][1] == pair[1][0]);
        let rising = share.ranges.iter().all(|[first, end]| first < end);
        let begins = share.ranges.first().is_some_and(|range| range[0] == 0);
        let [first, end] = share.ranges[own];
        let devices = share.ranges.last().map_or(0, |range| range[1] as usize);
        let lists = share.own.iter().map(|(p, y)| (p, y));
        let [validation, test] = [1, 2].map(|i| share.own[i].0.len() as u64);
        let fits = |from: u32, own: u64, all: usize| u64::from(from) + own <= all as u64;
        let sound = |(patients, words): (&Vec<String>, &Vec<u32>)| {
            is_roll(patients) && at.terms.known(words, patients.len()).is_some()
        };
        let sound = follow
            && rising
            && begins
            && lists.clone().all(sound)
            && share.own[0].0.len() == (end.saturating_sub(first)) as usize
            && share.counts.training == devices
            && fits(share.from[0], validation, share.counts.validation)
            && fits(share.from[1], test, share.counts.test)
            && share.digests.len() == 3 * at.gateways
            && share.salts.iter().all(|salt| is_hex(salt, 32));
        if !sound {
            return Err(Trouble::nonsense(from, "an invalid share of the roster"));
        }
        if devices < FEWEST {
            return Err(Trouble::too_few(at.group(), devices));
        }
        let digests = share.digests[3 * own..].iter();
        let same = digests.zip(&share.own).zip(&share.salts).all(
            |((digest, (patients, labels)), salt)| {
                *digest == digest_of_part(salt, patients, labels)
            },
        );
        if !same {
            return Err(Trouble::Told(format!(
                "the share of {} does not match the roster's digest",
                at.party
            )));
        }
        let known = |(patients, _): (&Vec<String>, &Vec<u32>)| self.own.knows(patients);
        match lists.clone().all(known) {
            true => Ok(()),
            false => Err(Trouble::Told(format!(
                "the edge's roster has patients unknown to {}",
                at.party
            ))),
        }
    }
}

impl<H: Holdings> Duty for Gateway<H> {
    fn begin(&mut self, at: &Context) -> Words {
        self.state = None;
        vec![(
            Party::Edge(at.group()),
            Body::Roll(holdings::roll(&self.own)),
        )]
    }

    fn heard(&mut self, at: &Context, from: Party, body: Body) -> Follows {
        match (body, &self.state) {
            // One share for each enrolment: two sums that are hidden alike would show how they differ.
            (Body::Share(share), None) => {
                self.check(at, from, &share)?;
                let [training, validation, test] = share.own.each_ref().map(|(patients, words)| {
                    let known = at.terms.known(words, patients.len());
                    let known = known.ok_or_else(|| Trouble::nonsense(from, "invalid labels"));
                    holdings::take(&self.own, patients, known?)
                });
                let (training, mut sums) = training?;
                ring::hide(
                    &mut sums,
                    |text| self.own.secret("sum", text),
                    &format!("{} {}", at.number(), digest_of_all(&share.digests)),
                    (at.gateway(), at.gateways),
                );
                let parts = [training, validation?.0, test?.0];
                let digest = digest_of_all(&share.digests);
                let mut enrolled = Enrolled::new(at.party, digest.clone());
                enrolled.pseudonyms = self.own.key();
                enrolled.counts = vec![share.counts];
                enrolled.gateways = share.ranges;
                self.state = Some(State {
                    enrolled,
                    parts,
                    from: share.from,
                });
                Ok((vec![(from, Body::Sums { sums, digest })], None))
            }
            (Body::Common(common), Some(state)) => {
                let mut enrolled = state.enrolled.clone();
                let bases = enrolled.adopt(at, from, &common)?;
                let mut parts = state.parts.clone();
                let from = state.from;
                (parts[1].base, parts[2].base) = (bases[0] + from[0], bases[1] + from[1]);
                let last = enrolled.gateways.last().copied().unwrap_or_default();
                enrolled.shard = Some(OwnShard {
                    from,
                    devices: last[1],
                    shape: holdings::shape(&self.own),
                    parts,
                });
                Ok((Vec::new(), Some(enrolled)))
            }
            _ => Err(Trouble::nonsense(from, "a message out of turn")),
        }
    }

    fn waits(&self, at: &Context) -> Vec<Party> {
        vec![Party::Edge(at.group())]
    }
}
