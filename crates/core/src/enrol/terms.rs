//! What all parties must agree on before they enrol, compared by a digest.

use super::hex;
use crate::experiment::DataSettings;
use crate::outcome::Kind;
use sha2::{Digest, Sha256};

/// What all parties have in common.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The `[data]` table, without places of files.
    pub data: DataSettings,
    /// The seed by which held-out patients are drawn.
    pub seed: u64,
    /// What is asked about each patient.
    pub kind: Kind,
    /// The names of the classes or labels, or that of the quantity or of the event.
    pub names: Vec<String>,
    /// A digest of table and seed, by which parties check that they agree.
    pub about: String,
}

impl Terms {
    /// Takes the `[data]` table and the seed of an experiment, and what they ask about, by which names. Whether parties can
    /// enrol by them is for the reader of tables to check.
    pub fn new(data: &DataSettings, seed: u64, kind: Kind, names: Vec<String>) -> Self {
        // Where a party's own files are is its own business.
        let mut shared = data.clone();
        shared.path = String::new();
        shared.table.files = Vec::new();
        let text = shared.identity();
        let mut digest = Sha256::new();
        digest.update(b"terms\0");
        digest.update(seed.to_le_bytes());
        digest.update(text.as_bytes());
        Terms {
            data: shared,
            seed,
            kind,
            names,
            about: hex(&digest.finalize()),
        }
    }

    pub(super) fn groups(&self) -> usize {
        self.data.groups
    }
}
