//! The messages of enrolment, as JSON. Whatever comes from outside is checked before it is used.

use super::LONGEST_MESSAGE;
use super::Terms;
use super::index::Index;
use super::known::Learnt;
use super::ring::ColumnSums;
use super::roll::{Counts, Labels, Roster, is_roll};
use crate::outcome::Kind;
use selvedge_nn::Shape;
use serde::{Deserialize, Serialize};

/// The format of messages.
pub(super) const VERSION: u32 = 2;

/// The most columns of a side, and the most numbers of a row.
const MOST_COLUMNS: usize = 100_000;
const MOST_NUMBERS: usize = 1 << 26;

/// The longest name of a column that is taken from elsewhere.
const LONGEST_NAME: usize = 1_000;

/// The longest reason that is taken from elsewhere.
pub(super) const LONGEST_REASON: usize = 1_000;

/// Every message. It carries one body of several, in order, until that was acknowledged; and how many of the receiver's
/// were received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    pub(super) version: u32,
    /// A digest of what must be agreed on beforehand.
    pub(super) about: String,
    /// Which enrolment it is of; none before the cloud, or the edge, has said so.
    pub(super) number: Option<String>,
    /// Which start of its sender it is of: who was started again has forgotten everything.
    pub(super) life: String,
    /// How many of the receiver's the sender has heard.
    pub(super) heard: usize,
    /// The place of the body among the sender's.
    pub(super) place: usize,
    pub(super) body: Option<Body>,
    /// Whether somebody was started again, so that all must begin anew.
    pub(super) again: bool,
    /// Why the sender has given up, if it has.
    pub(super) stopped: Option<String>,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Body {
    /// Hospital and gateways to the edge: who is known here.
    Roll(Roll),
    /// The edge to its hospital: who takes part, in order.
    Roster { roster: Roster, counts: Counts },
    /// The hospital to the edge: what is known of the roster's patients, and its digest.
    Labels {
        labels: Labels,
        /// One for each part of the roster.
        salts: Vec<String>,
        digest: String,
    },
    /// The edge to a gateway: who takes part there.
    #[serde(rename = "part")]
    Share(Share),
    /// A gateway to the edge: what it has summed up, hidden, and the roster's digest.
    Sums {
        sums: Vec<ColumnSums>,
        digest: String,
    },
    /// Hospital and edge to the cloud: the sums of a side of a group.
    Totals(Totals),
    /// The cloud to hospitals and edges, and they to gateways: what all write down.
    Common(Box<Common>),
    /// It is written down; the fingerprint of the set.
    Done(String),
}

impl Envelope {
    /// Reads what somebody has sent.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > LONGEST_MESSAGE {
            return Err("it is too long".into());
        }
        let envelope: Envelope = serde_json::from_slice(bytes)
            .map_err(|error| format!("it is not an enrolment message: {error}"))?;
        let is_name = |text: &String| is_hex(text, 32);
        match is_name(&envelope.life) && envelope.number.as_ref().is_none_or(is_name) {
            true => Ok(envelope),
            false => Err("it is not an enrolment message: expected 32 hexadecimal digits".into()),
        }
    }
}

/// The columns of a side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// The shape of a row.
    pub shape: Vec<usize>,
    /// Their names.
    pub names: Vec<String>,
    /// Which are scaled.
    pub scaled: Vec<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Roll {
    /// A name for the key of the pseudonyms.
    pub(super) key: String,
    pub(super) columns: Columns,
    pub(super) pseudonyms: Vec<String>,
    /// Ids that were left out.
    pub(super) doubled: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Share {
    /// The devices of every gateway of the group.
    pub(super) ranges: Vec<[u32; 2]>,
    /// Its own to train on, of validation and of the test, and what is known of them ([`Terms::known`]).
    pub(super) own: [(Vec<String>, Vec<u32>); 3],
    /// Where its own of validation and of the test begin among the group's.
    pub(super) from: [u32; 2],
    /// The digests of the roster's parts, and what salts its own.
    pub(super) digests: Vec<String>,
    pub(super) salts: [String; 3],
    pub(super) counts: Counts,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    pub(super) columns: Columns,
    pub(super) sums: Vec<ColumnSums>,
    /// How often each answer is known of training patients.
    pub(super) labels: Vec<u64>,
    /// What else is summed up of what is known of them; nothing of classes and labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) learnt: Option<Learnt>,
    /// A name for the key of the pseudonyms.
    pub(super) key: String,
    /// The roster's.
    pub(super) digest: String,
    pub(super) counts: Counts,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Common {
    pub(super) index: Index,
    /// As `stats.json`.
    pub(super) statistics: serde_json::Value,
    /// The digest of each group's roster.
    pub(super) digests: Vec<String>,
    /// Places of each group's first row of validation and of the test among those of all.
    pub(super) bases: Vec<[u32; 2]>,
}

impl PartialEq for Common {
    fn eq(&self, other: &Self) -> bool {
        let text = |common: &Self| serde_json::to_string(common).ok();
        text(self) == text(other)
    }
}

/// Whether a text is so many hexadecimal digits.
pub(super) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Columns {
    pub(super) fn shape(&self) -> Option<Shape> {
        Shape::try_from(self.shape.clone()).ok()
    }

    /// Values of a column in one row.
    pub(super) fn steps(&self) -> u64 {
        let numbers = self.shape().map_or(0, Shape::len);
        (numbers / self.names.len().max(1)) as u64
    }

    /// Whether columns from elsewhere can be some.
    fn is_sound(&self) -> bool {
        let numbers = self.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        (1..=2).contains(&self.shape.len())
            && numbers.is_some_and(|n| (1..=MOST_NUMBERS).contains(&n))
            && self.shape().is_some()
            && self.shape.last() == Some(&self.names.len())
            && self.scaled.len() == self.names.len()
            && self.names.len() <= MOST_COLUMNS
            && self.names.iter().all(|name| name.len() <= LONGEST_NAME)
    }

    /// In what others' columns differ, for people; nothing if they do not.
    pub(super) fn difference(&self, other: &Columns) -> Option<String> {
        if self == other {
            return None;
        }
        let lacks = |a: &Columns, b: &Columns| {
            let own: std::collections::HashSet<&String> = a.names.iter().collect();
            let lost = b.names.iter().filter(|name| !own.contains(name));
            let shown: Vec<String> = lost.take(12).map(|name| format!("{name:?}")).collect();
            shown.join(", ")
        };
        let (more, fewer) = (lacks(other, self), lacks(self, other));
        Some(match (more.is_empty(), fewer.is_empty()) {
            (false, true) => format!("only the first has {more}"),
            (true, false) => format!("only the second has {fewer}"),
            (false, false) => format!("only the first has {more}, only the second {fewer}"),
            _ if self.names != other.names => {
                let first = self.names.iter().zip(&other.names).find(|(a, b)| a != b);
                let (a, b) = first.map_or(("", ""), |(a, b)| (a, b));
                format!(
                    "their order differs, {a:?} where the other has {b:?}: list the columns one by one in data.table instead of using a pattern"
                )
            }
            _ => format!(
                "rows have the shapes {:?} and {:?}",
                self.shape, other.shape
            ),
        })
    }
}

impl Roll {
    pub(super) fn is_sound(&self) -> bool {
        is_hex(&self.key, 32) && self.columns.is_sound() && is_roll(&self.pseudonyms)
    }
}

impl Totals {
    /// How often each answer is known, and what else is summed up.
    pub(super) fn known(&self) -> (&[u64], Option<&Learnt>) {
        (&self.labels, self.learnt.as_ref())
    }

    /// Whether sums from elsewhere can be some by these terms.
    pub(super) fn is_sound(&self, terms: &Terms) -> bool {
        let training = self.counts.training as u64;
        let values = self.columns.steps().saturating_mul(training);
        let sum = |counts: &[u64]| counts.iter().try_fold(0u64, |n, l| n.checked_add(*l));
        let counted = match terms.kind {
            // Of labels some may be unknown, and each counts for itself.
            Kind::Labels => {
                let mut pairs = self.labels.chunks(2);
                pairs.all(|pair| sum(pair).is_some_and(|known| known <= training))
            }
            _ => sum(&self.labels) == Some(training),
        };
        let learnt = match (&self.learnt, terms.kind) {
            (None, kind) => matches!(kind, Kind::Class | Kind::Labels),
            (Some(learnt), kind) => learnt.is_sound(kind, training, &self.labels),
        };
        u32::try_from(self.counts.training).is_ok()
            && u32::try_from(self.counts.validation).is_ok()
            && u32::try_from(self.counts.test).is_ok()
            && self.columns.is_sound()
            && self.sums.len() == self.columns.names.len()
            && self.sums.iter().all(|sums| sums.is_sound(values))
            && self.labels.len() == terms.kind.counts(&terms.names)
            && counted
            && learnt
            && is_hex(&self.key, 32)
            && is_hex(&self.digest, 64)
    }
}
