//! The result of enrolment for a party.

use super::duty::{Context, Trouble};
use super::fingerprint;
use super::index::{Index, VERSION};
use super::message::Common;
use super::roll::Counts;
use crate::outcome::Targets;
use crate::protocol::Party;
use crate::statistics::Statistics;
use selvedge_nn::Shape;

/// What a party has after enrolment, ready to be written down.
#[derive(Clone, Debug)]
pub struct Enrolled {
    /// Who it is.
    pub party: Party,
    /// What everybody gets.
    pub index: Option<(Index, Statistics)>,
    /// Its own rows; the cloud has none.
    pub shard: Option<OwnShard>,
    /// The digest of its group's patients in order, with their labels; the cloud has none.
    pub digest: String,
    /// The digest of what all have agreed on.
    pub terms: String,
    /// The counts of its group; the cloud has those of all groups.
    pub counts: Vec<Counts>,
    /// The devices of each gateway of its group: the first, and one past the last.
    pub gateways: Vec<[u32; 2]>,
    /// Which of the group's validation and test rows each gateway has, likewise; only for an edge.
    pub held_out: Vec<[[u32; 2]; 2]>,
    /// An identifier of the pseudonym key, for parties that have it.
    pub pseudonyms: String,
    /// For people: which answers no training patient has, of its group; the cloud has those of all groups. Gateways do not
    /// know.
    pub notes: Vec<String>,
}

/// What one party has of its group: one row for each device.
#[derive(Clone, Debug)]
pub struct OwnShard {
    /// Devices of the whole group.
    pub devices: u32,
    /// Where a gateway's held-out rows begin among the group's.
    pub from: [u32; 2],
    /// The shape of a row.
    pub shape: Shape,
    /// Training, validation, test.
    pub parts: [OwnPart; 3],
}

/// Some of its rows.
#[derive(Clone, Debug, Default)]
pub struct OwnPart {
    /// Pseudonyms.
    pub patients: Vec<String>,
    /// As they were measured.
    pub x: Vec<f32>,
    /// What is known of them.
    pub y: Targets,
    /// The position of the first among the rows of all groups; not used for training rows.
    pub base: u32,
}

impl Enrolled {
    pub(super) fn new(party: Party, digest: String) -> Self {
        Enrolled {
            party,
            index: None,
            shard: None,
            digest,
            terms: String::new(),
            counts: Vec::new(),
            gateways: Vec::new(),
            held_out: Vec::new(),
            pseudonyms: String::new(),
            notes: Vec::new(),
        }
    }

    /// Takes what the cloud has found, if it fits what this party knows. Gives the places of its held-out rows.
    pub(super) fn adopt(
        &mut self,
        at: &Context,
        from: Party,
        common: &Common,
    ) -> Result<[u32; 2], Trouble> {
        let nonsense = |_| Trouble::nonsense(from, "an invalid index");
        let statistics = Statistics::from_json(common.statistics.clone()).map_err(nonsense)?;
        let index = &common.index;
        index.check(&statistics).map_err(nonsense)?;
        let groups = at.terms.groups();
        let sound = [index.groups.len(), common.digests.len(), common.bases.len()]
            .iter()
            .all(|n| *n == groups)
            && index.version == VERSION
            && index.largest == 1
            && at.terms.fits(&statistics.outcome)
            && statistics.classes == at.terms.names
            && statistics.fingerprint() == index.statistics
            && fingerprint(&statistics, &common.digests) == index.dataset
            && index.groups.iter().all(|group| group.name.len() <= 100);
        if !sound {
            return Err(Trouble::nonsense(from, "an invalid index"));
        }
        self.index = Some((index.clone(), statistics));
        self.terms = at.terms.about.clone();
        if self.party == Party::Cloud {
            return Ok([0, 0]);
        }
        let (m, counts) = (at.group(), self.counts.first().copied().unwrap_or_default());
        let fits = |base: u32, own: usize, all: usize| {
            (base as usize)
                .checked_add(own)
                .is_some_and(|end| end <= all)
        };
        let bases = common.bases[m];
        let same = common.digests[m] == self.digest
            && index.groups[m].devices == counts.training
            && fits(bases[0], counts.validation, index.validation)
            && fits(bases[1], counts.test, index.test);
        match same {
            true => Ok(bases),
            false => Err(Trouble::Told(format!(
                "{} and the cloud have different rosters of group {m}",
                self.party
            ))),
        }
    }
}
