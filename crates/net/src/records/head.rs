//! What stands in the subject of a party's last record.

use crate::subjects;
use bytes::Bytes;

/// A record as it is kept: itself, or where its pieces are.
pub(super) struct Head {
    pub(super) run: u64,
    pub(super) epoch: u64,
    /// Which process has written it: two that start together would else take each other's for their own.
    pub(super) copy: u64,
    pub(super) content: Content,
}

#[derive(Clone)]
pub(super) enum Content {
    /// Nothing yet.
    Nothing,
    Here(Bytes),
    Pieces(Pieces),
}

/// Where the pieces of a record are. Each start of a party has its own places, so that what an earlier one purges late
/// is not what a later one has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    pub(super) epoch: u64,
    pub(super) name: u64,
    pub(super) count: u32,
}

impl Pieces {
    /// What their subjects begin with.
    pub(super) fn prefix(&self, party: &str) -> String {
        let Pieces { epoch, name, .. } = self;
        format!("{}.{epoch}.{name:016x}.", subjects::record(party))
    }
}

impl Head {
    pub(super) fn to_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        out.extend_from_slice(&self.run.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.copy.to_le_bytes());
        match &self.content {
            Content::Nothing => out.push(0),
            Content::Here(bytes) => {
                out.push(1);
                out.extend_from_slice(bytes);
            }
            Content::Pieces(Pieces { epoch, name, count }) => {
                out.push(2);
                out.extend_from_slice(&epoch.to_le_bytes());
                out.extend_from_slice(&name.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
            }
        }
        out.into()
    }

    pub(super) fn parse(bytes: &Bytes) -> Option<Self> {
        let eight = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let rest = bytes.get(25..)?;
        let content = match bytes.get(24)? {
            0 => Content::Nothing,
            1 => Content::Here(bytes.slice(25..)),
            2 if rest.len() == 20 => Content::Pieces(Pieces {
                epoch: eight(25)?,
                name: eight(33)?,
                count: u32::from_le_bytes(rest[16..].try_into().ok()?),
            }),
            _ => return None,
        };
        Some(Head {
            run: eight(0)?,
            epoch: eight(8)?,
            copy: eight(16)?,
            content,
        })
    }
}
