//! What all parties must agree on before they enrol, compared by a digest.

use super::hex;
use crate::experiment::DataSettings;
use sha2::{Digest, Sha256};

/// What all parties have in common.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The `[data]` table, without places of files.
    pub data: DataSettings,
    /// The seed by which held-out patients are drawn.
    pub seed: u64,
    /// A digest of both, by which parties check that they agree.
    pub about: String,
}

impl Terms {
    /// Takes the `[data]` table and the seed of an experiment. Whether parties can enrol by them is for the reader of
    /// tables to check.
    pub fn new(data: &DataSettings, seed: u64) -> Self {
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
            about: hex(&digest.finalize()),
        }
    }

    pub(super) fn classes(&self) -> &[String] {
        &self.data.table.labels
    }

    pub(super) fn groups(&self) -> usize {
        self.data.groups
    }
}
