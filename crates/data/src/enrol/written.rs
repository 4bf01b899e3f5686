//! The result of enrolment for a party: its data folder, and a summary of what was decided.

use crate::shards::{check_folder, write_own};
use crate::{DataError, PartyShard, PseudonymKey, read_party};
use selvedge_core::enrol::{Counts, Enrolled, Terms};
use selvedge_core::protocol::Party;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file that says what was decided.
const ENROLMENT: &str = "enrolment.json";

/// `enrolment.json`: what was decided. It contains nothing about any patient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of selvedge.
    pub version: String,
    /// When it was written.
    pub time: String,
    /// The party.
    pub party: String,
    /// The fingerprint of the whole set: the same for all.
    pub dataset: String,
    /// The fingerprint of `stats.json`.
    pub statistics: String,
    /// The digest of the terms: the experiment's `[data]` and seed.
    pub terms: String,
    /// The digest of the group's patients in order, with their labels: the same for all of a group. The cloud has none.
    pub roster: String,
    /// The devices of each gateway of the group: the first, and one past the last.
    pub gateways: Vec<[u32; 2]>,
    /// Which of the group's validation and test rows each gateway has, likewise; only for an edge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<[[u32; 2]; 2]>,
    /// Counts of the party's group; the cloud has those of all groups.
    pub counts: Vec<Counts>,
    /// An identifier of the pseudonym key; only for a hospital and gateways.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pseudonyms: String,
    /// Which answers no training patient has, of the party's group; the cloud has those of all groups. Gateways do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
        serde_json::from_str(&text).map(Some).map_err(|error| {
            let problem = format!("{error}: expected a file written by `selvedge enrol`");
            DataError::line(file, error.line(), problem)
        })
    }
}

/// Refuses a data folder that cannot be written to, before anything else is done.
///
/// # Errors
/// If it is not empty; with `again`, if it holds something other than what was enrolled.
pub fn check_data_folder(folder: &Path, again: bool) -> Result<(), DataError> {
    check_folder(folder, again, ENROLMENT).map(drop)
}

impl Summary {
    /// Whether patients were named by this key; nothing is said where it is not known.
    pub fn is_named_by(&self, key: &PseudonymKey) -> bool {
        self.pseudonyms.is_empty() || self.pseudonyms == key.name()
    }

    /// Whether it was decided by these terms: the data of another experiment cannot be used.
    pub fn is_by(&self, terms: &Terms) -> bool {
        self.terms == terms.about
    }
}

/// What was decided.
fn summary(enrolled: &Enrolled, time: &str) -> Summary {
    let index = enrolled.index.as_ref().map(|(index, _)| index);
    Summary {
        version: env!("CARGO_PKG_VERSION").into(),
        time: time.into(),
        party: enrolled.party.to_string(),
        dataset: index.map_or_else(String::new, |index| index.dataset.clone()),
        statistics: index.map_or_else(String::new, |index| index.statistics.clone()),
        terms: enrolled.terms.clone(),
        roster: enrolled.digest.clone(),
        gateways: enrolled.gateways.clone(),
        held_out: enrolled.held_out.clone(),
        counts: enrolled.counts.clone(),
        pseudonyms: enrolled.pseudonyms.clone(),
        notes: enrolled.notes.clone(),
    }
}

/// Which shard a party has after enrolment.
pub(super) fn shard(enrolled: &Enrolled) -> PartyShard {
    match enrolled.party {
        Party::Cloud => PartyShard::Coordinator,
        Party::Hospital(m) => PartyShard::Hospital(m),
        Party::Edge(m) => PartyShard::Edge(m),
        Party::Gateway(group, g) => {
            let [first, end] = enrolled.gateways.get(g).copied().unwrap_or_default();
            PartyShard::Gateway {
                group,
                devices: first..end,
                held_out: true,
            }
        }
    }
}

/// Writes the data folder of a party that has enrolled and reads it again, as a node will. With `again` an existing one
/// is replaced.
///
/// # Errors
/// If it cannot be written, or is not empty.
pub fn write(
    enrolled: &Enrolled,
    folder: &Path,
    again: bool,
    time: &str,
) -> Result<Summary, DataError> {
    let summary = summary(enrolled, time);
    let Some((index, statistics)) = &enrolled.index else {
        return Ok(summary);
    };
    let about = serde_json::to_value(&summary).unwrap_or_default();
    let party = shard(enrolled);
    let own = enrolled.shard.as_ref().map(|own| (&party, own));
    write_own(folder, again, (index, statistics), own, (ENROLMENT, &about))?;
    read_party(folder, party)?;
    Ok(summary)
}
