//! One shard per party, with only its rows and its columns.
//!
//! ```text
//! shards/
//! ├── shards.json            who is there: groups, counts, fingerprints; nothing about anybody
//! ├── stats.json             what every party scales by
//! ├── group-0/hospital.npz   what the hospital of group 0 holds
//! ├── group-0/devices.npz    what its devices hold
//! └── …
//! ```
//!
//! A shard has, for training rows and, with the prefixes `validation_` and `test_`, for held-out ones:
//!
//! | array | what |
//! | --- | --- |
//! | `patients` | pseudonyms, the same in both shards of a group |
//! | `x` | this side's numbers as they were read, NaN where nothing was measured |
//! | `y` | labels, which both sides know |
//! | `offsets` | devices only: where each device's rows begin |
//! | `test_rows` | held-out rows only: their place among those of all groups |
//!
//! Numbers are not scaled: each party does that itself, by `stats.json`. What comes out is the whole set, bit for bit.

mod read;
mod write;

pub(crate) use read::{Shard, read};
pub use write::{Cut, cut};

use serde::{Deserialize, Serialize};

/// The file that says what the shards are of.
const INDEX: &str = "shards.json";

/// The file that everybody scales by.
const STATISTICS: &str = "stats.json";

/// The layout that this version writes and reads.
const VERSION: u32 = 1;

/// `shards.json`
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    version: u32,
    /// The set that was cut.
    set: String,
    groups: Vec<IndexGroup>,
    /// Rows of validation and of the test, over all groups.
    validation: usize,
    test: usize,
    /// The fingerprint of `stats.json`.
    statistics: String,
    /// The fingerprint of the whole set as training sees it.
    dataset: String,
    /// A name for the key of the pseudonyms.
    pseudonyms: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct IndexGroup {
    name: String,
    devices: usize,
    rows: usize,
}

/// The two kinds of shards.
const HOSPITAL: &str = "hospital.npz";
const DEVICES: &str = "devices.npz";

fn folder(group: usize) -> String {
    format!("group-{group}")
}

/// The parts of a shard and the prefixes of their arrays: training, validation, test.
const PREFIXES: [&str; 3] = ["", "validation_", "test_"];
