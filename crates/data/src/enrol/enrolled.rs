//! What a party is left with: its data folder, and a summary of what was decided.

use super::message::Common;
use super::{Context, Counts, Terms, Trouble, fingerprint};
use crate::shards::{Index, OwnShard, VERSION, check_folder, write_own};
use crate::{DataError, PartyShard, PseudonymKey, Statistics, read_party};
use selvedge_core::role::Party;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file that says what was decided.
const ENROLMENT: &str = "enrolment.json";

/// What a party has after enrolment, ready to be written.
#[derive(Clone, Debug)]
pub struct Enrolled {
    pub(super) party: Party,
    pub(super) index: Option<(Index, Statistics)>,
    pub(super) shard: Option<OwnShard>,
    pub(super) digest: String,
    /// Of the experiment.
    pub(super) terms: String,
    pub(super) counts: Vec<Counts>,
    pub(super) gateways: Vec<[u32; 2]>,
    pub(super) held_out: Vec<[[u32; 2]; 2]>,
    /// A name for the key of the pseudonyms, of those who have it.
    pub(super) pseudonyms: String,
}

/// `enrolment.json`: what was decided. Nothing in it is about anybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of selvedge.
    pub version: String,
    /// When it was written.
    pub time: String,
    /// Whose it is.
    pub party: String,
    /// The fingerprint of the whole set: the same for all.
    pub dataset: String,
    /// The fingerprint of `stats.json`.
    pub statistics: String,
    /// The digest of the experiment's `[data]` and seed, by which all of it was decided.
    pub terms: String,
    /// The digest of the group's patients in order, with their labels: the same for all of a group. The cloud has none.
    pub roster: String,
    /// The devices of each gateway of the group: the first, and one past the last.
    pub gateways: Vec<[u32; 2]>,
    /// Which of the group's rows of validation and of the test each gateway has, likewise; an edge's alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<[[u32; 2]; 2]>,
    /// Of the party's group; the cloud has those of all groups.
    pub counts: Vec<Counts>,
    /// A name for the key of the pseudonyms; of a hospital and of gateways alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pseudonyms: String,
}

impl Summary {
    /// Reads it from a party's data folder; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, DataError> {
        let file = folder.join(ENROLMENT);
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(DataError::Io { file, source }),
            Ok(text) => text,
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| DataError::Line {
                line: error.line(),
                problem: format!("{error}: expected what `selvedge enrol` wrote"),
                file,
            })
    }
}

/// Refuses a data folder that cannot be written to, before anything else is done.
///
/// # Errors
/// If it holds something; with `again`, if that is not a party's shard.
pub fn check_data_folder(folder: &Path, again: bool) -> Result<(), DataError> {
    check_folder(folder, again)
}

impl Summary {
    /// Whether patients were named by this key; nothing is said where it is not known.
    pub fn is_named_by(&self, key: &PseudonymKey) -> bool {
        self.pseudonyms.is_empty() || self.pseudonyms == key.name()
    }

    /// Whether it was decided by these terms: what parties hold is of no use to another experiment.
    pub fn is_by(&self, terms: &Terms) -> bool {
        self.terms == terms.about
    }
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
        }
    }

    /// Takes what the cloud has found, if it fits what this party knows. Gives the places of its held-out rows.
    pub(super) fn adopt(
        &mut self,
        at: &Context<'_>,
        from: Party,
        common: &Common,
    ) -> Result<[u32; 2], Trouble> {
        let nonsense = |_| Trouble::nonsense(from, "an index");
        let statistics = Statistics::from_json(common.statistics.clone()).map_err(nonsense)?;
        let index = &common.index;
        index.check(&statistics).map_err(nonsense)?;
        let groups = at.terms.groups();
        let sound = [index.groups.len(), common.digests.len(), common.bases.len()]
            .iter()
            .all(|n| *n == groups)
            && index.version == VERSION
            && index.largest == 1
            && statistics.classes == at.terms.classes()
            && statistics.fingerprint() == index.statistics
            && fingerprint(&statistics, &common.digests) == index.dataset
            && index.groups.iter().all(|group| group.name.len() <= 100);
        if !sound {
            return Err(Trouble::nonsense(from, "an index"));
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

    /// What was decided.
    pub fn summary(&self, time: &str) -> Summary {
        let index = self.index.as_ref().map(|(index, _)| index);
        Summary {
            version: env!("CARGO_PKG_VERSION").into(),
            time: time.into(),
            party: self.party.to_string(),
            dataset: index.map_or_else(String::new, |index| index.dataset.clone()),
            statistics: index.map_or_else(String::new, |index| index.statistics.clone()),
            terms: self.terms.clone(),
            roster: self.digest.clone(),
            gateways: self.gateways.clone(),
            held_out: self.held_out.clone(),
            counts: self.counts.clone(),
            pseudonyms: self.pseudonyms.clone(),
        }
    }

    /// Writes the party's data folder and reads it again, as a node will. With `again` one that is there is replaced.
    ///
    /// # Errors
    /// If it cannot be written, or holds something.
    pub fn write(&self, folder: &Path, again: bool, time: &str) -> Result<Summary, DataError> {
        let summary = self.summary(time);
        let Some((index, statistics)) = &self.index else {
            return Ok(summary);
        };
        let about = serde_json::to_value(&summary).unwrap_or_default();
        let own = self.shard.as_ref();
        write_own(folder, again, (index, statistics), own, (ENROLMENT, &about))?;
        let party = own.map_or(PartyShard::Coordinator, |own| own.party.clone());
        read_party(folder, party)?;
        Ok(summary)
    }
}
