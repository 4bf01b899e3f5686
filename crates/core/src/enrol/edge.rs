//! An edge: finds out who takes part, passes labels on, and adds up what its gateways have hidden.

use super::duty::{Context, Duty, Follows, Trouble, Words};
use super::message::{Body, Roll, Share, Totals, is_hex};
use super::ring::ColumnSums;
use super::roll::{Counts, FEWEST, Labels, Roster, compare, digest_of_all, digests};
use super::{Enrolled, OwnPart, OwnShard};
use crate::outcome::Targets;
use crate::protocol::Party;
use selvedge_nn::Shape;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Edge {
    rolls: BTreeMap<Party, Roll>,
    roster: Option<(Roster, Counts)>,
    /// Once labels are there.
    enrolled: Option<Enrolled>,
    /// What is known of training patients.
    known: Targets,
    sums: BTreeMap<usize, Vec<ColumnSums>>,
    over: bool,
}

impl Duty for Edge {
    fn begin(&mut self, _: &Context) -> Words {
        *self = Edge::default();
        Vec::new()
    }

    fn heard(&mut self, at: &Context, from: Party, body: Body) -> Follows {
        let said = match (from, body) {
            (Party::Hospital(_) | Party::Gateway(..), Body::Roll(roll)) => {
                if !roll.is_sound() || self.rolls.contains_key(&from) {
                    return Err(Trouble::nonsense(from, "an invalid roll"));
                }
                self.rolls.insert(from, roll);
                match self.rolls.len() == at.gateways + 1 {
                    true => self.match_rolls(at)?,
                    false => Vec::new(),
                }
            }
            (
                Party::Hospital(_),
                Body::Labels {
                    labels,
                    salts,
                    digest,
                },
            ) if self.enrolled.is_none() => {
                let Some((roster, counts)) = &self.roster else {
                    return Err(Trouble::nonsense(from, "labels before the roster"));
                };
                let salted = salts.len() == 3 * roster.gateways.len()
                    && salts.iter().all(|salt| is_hex(salt, 32));
                let known = labels.training(roster, &at.terms);
                let Some(known) = known.filter(|_| salted) else {
                    return Err(Trouble::nonsense(from, "invalid labels"));
                };
                let parts = digests(roster, &labels, &salts);
                if digest_of_all(&parts) != digest {
                    return Err(Trouble::Told(
                        "hospital and edge have different digests of the roster".into(),
                    ));
                }
                let mut enrolled = Enrolled::new(at.party, digest);
                enrolled.counts = vec![*counts];
                enrolled.gateways = roster.ranges();
                enrolled.held_out = (0..at.gateways).map(|g| roster.held_out(g)).collect();
                self.known = known;
                self.enrolled = Some(enrolled);
                self.shares(at, labels, (&parts, &salts))
            }
            (Party::Gateway(_, g), Body::Sums { sums, digest }) => {
                let Some(enrolled) = &self.enrolled else {
                    return Err(Trouble::nonsense(from, "sums before the labels were known"));
                };
                let columns = self.rolls.get(&from).map_or(0, |r| r.columns.names.len());
                if sums.len() != columns || self.sums.contains_key(&g) {
                    return Err(Trouble::nonsense(from, "invalid sums"));
                }
                if digest != enrolled.digest {
                    return Err(Trouble::Told(format!(
                        "{from} and the edge have different digests of the roster"
                    )));
                }
                self.sums.insert(g, sums);
                if self.sums.len() < at.gateways {
                    return Ok((Vec::new(), None));
                }
                let totals = self.totals(at)?;
                if let Some(enrolled) = &mut self.enrolled {
                    enrolled.notes = at.terms.lacks(&at.own_group(), totals.known(), None);
                }
                vec![(Party::Cloud, Body::Totals(totals))]
            }
            (Party::Cloud, Body::Common(common))
                if self.sums.len() == at.gateways && !self.over =>
            {
                let Some(mut enrolled) = self.enrolled.clone() else {
                    return Err(Trouble::nonsense(from, "a message out of turn"));
                };
                enrolled.adopt(at, from, &common)?;
                let devices = enrolled.gateways.last().map_or(0, |range| range[1]);
                enrolled.shard = Some(OwnShard {
                    devices,
                    from: [0; 2],
                    shape: Shape::Flat(1),
                    parts: [(); 3].map(|()| OwnPart::default()),
                });
                self.over = true;
                let to = (0..at.gateways).map(|g| Party::Gateway(at.group(), g));
                let said = to.map(|to| (to, Body::Common(common.clone()))).collect();
                return Ok((said, Some(enrolled)));
            }
            _ => return Err(Trouble::nonsense(from, "a message out of turn")),
        };
        Ok((said, None))
    }

    fn waits(&self, at: &Context) -> Vec<Party> {
        let hospital = Party::Hospital(at.group());
        let gateways = || (0..at.gateways).map(|g| Party::Gateway(at.group(), g));
        if self.roster.is_none() {
            let all = std::iter::once(hospital).chain(gateways());
            return all.filter(|p| !self.rolls.contains_key(p)).collect();
        }
        if self.enrolled.is_none() {
            return vec![hospital];
        }
        if self.sums.len() < at.gateways {
            let there = |p: &Party| matches!(p, Party::Gateway(_, g) if self.sums.contains_key(g));
            return gateways().filter(|p| !there(p)).collect();
        }
        vec![Party::Cloud]
    }
}

impl Edge {
    /// When all have said whom they know.
    fn match_rolls(&mut self, at: &Context) -> Result<Words, Trouble> {
        let hospital = Party::Hospital(at.group());
        let gateway = |g: usize| Party::Gateway(at.group(), g);
        let nobody = || Trouble::nonsense(hospital, "no roll");
        let of_hospital = self.rolls.get(&hospital).ok_or_else(nobody)?;
        let mut rolls = Vec::new();
        for g in 0..at.gateways {
            rolls.push(self.rolls.get(&gateway(g)).ok_or_else(nobody)?);
        }
        for (g, roll) in rolls.iter().enumerate() {
            if roll.key != of_hospital.key {
                return Err(Trouble::Told(format!(
                    "{hospital} and {} have different pseudonym keys: expected the same in their node.toml",
                    gateway(g)
                )));
            }
            if let Some(difference) = rolls[0].columns.difference(&roll.columns) {
                return Err(Trouble::Told(format!(
                    "{} and {} have different columns: {difference}",
                    gateway(0),
                    gateway(g)
                )));
            }
        }
        let lists: Vec<Vec<String>> = rolls.iter().map(|r| r.pseudonyms.clone()).collect();
        let (shared, mut counts) = compare(&of_hospital.pseudonyms, &lists);
        counts.doubled_at_hospital = of_hospital.doubled;
        counts.doubled_at_devices = rolls
            .iter()
            .fold(0, |sum: usize, roll| sum.saturating_add(roll.doubled));
        if let Some(g) = shared.iter().position(Vec::is_empty) {
            return Err(Trouble::Told(format!(
                "{} has no patient who takes part ({} ids here; {} at {hospital}): expected the same ids on both sides, or one gateway fewer (gateway_count)",
                gateway(g),
                lists[g].len(),
                of_hospital.pseudonyms.len()
            )));
        }
        let terms = &at.terms;
        let roster = Roster::draw(shared, &mut counts, (&terms.data, terms.seed), at.group());
        if roster.training() < FEWEST {
            return Err(Trouble::too_few(at.group(), roster.training()));
        }
        self.roster = Some((roster.clone(), counts));
        Ok(vec![(hospital, Body::Roster { roster, counts })])
    }

    /// What each gateway is told.
    fn shares(
        &self,
        at: &Context,
        labels: Labels,
        (digests, salts): (&[String], &[String]),
    ) -> Words {
        let Some((roster, counts)) = &self.roster else {
            return Vec::new();
        };
        let ranges = roster.ranges();
        let each = roster.gateways.iter().zip(labels.gateways).enumerate();
        each.map(|(g, (patients, labels))| {
            let mut own = patients.iter().cloned().zip(labels);
            let share = Share {
                ranges: ranges.clone(),
                own: [(); 3].map(|()| own.next().unwrap_or_default()),
                from: [1, 2].map(|part| roster.before(g, part)),
                digests: digests.to_vec(),
                salts: [0, 1, 2].map(|part| salts[3 * g + part].clone()),
                counts: *counts,
            };
            (Party::Gateway(at.group(), g), Body::Share(share))
        })
        .collect()
    }

    /// The sums of all gateways: what they have hidden them by is gone.
    fn totals(&self, at: &Context) -> Result<Totals, Trouble> {
        let first = Party::Gateway(at.group(), 0);
        let (Some(roll), Some(enrolled)) = (self.rolls.get(&first), &self.enrolled) else {
            return Err(Trouble::nonsense(first, "no roll"));
        };
        let mut sums = vec![ColumnSums::default(); roll.columns.names.len()];
        for more in self.sums.values() {
            sums.iter_mut()
                .zip(more)
                .for_each(|(sum, more)| sum.add(more));
        }
        sums.iter_mut().for_each(ColumnSums::hide_few);
        let totals = Totals {
            columns: roll.columns.clone(),
            sums,
            labels: at.terms.count(&self.known),
            learnt: at.terms.learn(&self.known),
            key: roll.key.clone(),
            digest: enrolled.digest.clone(),
            counts: enrolled.counts.first().copied().unwrap_or_default(),
        };
        match totals.is_sound(&at.terms) {
            true => Ok(totals),
            false => Err(Trouble::Told(format!(
                "the sums of the gateways of group {} do not add up: expected the same pseudonym key at all of them",
                at.group()
            ))),
        }
    }
}
