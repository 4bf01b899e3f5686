//! One shard per party, with only its rows and its columns.
//!
//! ```text
//! shards/
//! ├── shards.json            all groups: counts, fingerprints; nothing about any patient
//! ├── stats.json             what every party scales by
//! ├── group-0/hospital.npz   what the hospital of group 0 holds
//! ├── group-0/devices.npz    what its devices hold, or those of one gateway
//! ├── group-0/edge.npz       how many rows each device has: all that an edge needs
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
//! | `offsets` | where each device's rows begin; an edge has nothing else |
//! | `test_rows` | held-out rows only: their place among those of all groups |
//! | `devices` | a gateway's shard only: the first of the group's devices whose rows it has, and one past the last |
//! | `held_out` | a gateway's shard only: 1 if it has held-out rows, from the group's first on, else 0; or, where parties have enrolled, the positions at which its validation and test rows begin among the group's |
//!
//! Numbers are not scaled: each party does that itself, by `stats.json`. The result is the same as from the whole set,
//! bit for bit. A party needs `shards.json`, `stats.json` and its own shard, and reads nothing else ([`read_party`]);
//! the cloud needs no shard. A group's devices may be carried by several gateways: [`distribute`] takes a gateway's own
//! rows out of the group's file; offsets stay those of the whole group.

mod enrolled;
mod gateway;
mod index;
mod party;
mod read;
pub(crate) mod shard;
mod write;

pub(crate) use enrolled::{check_folder, write_own};
use index::{Index, IndexGroup};
pub use party::{
    HeldOut, PartyLoaded, PartyPatients, PartyShard, distribute, look_at_shards, read_party,
    read_party_and_patients,
};
pub(crate) use read::read;
pub use write::{Cut, cut};

use crate::sets::{DataSet, Source};
use selvedge_core::experiment::Usual;

pub(crate) static SET: DataSet = DataSet {
    usual: |data| Usual {
        combined: Vec::new(),
        ..Usual::plain(data)
    },
    ..DataSet::new("shards", Source::Shards)
};

/// The file that says what the shards are of.
const INDEX: &str = "shards.json";

/// The file that everybody scales by.
const STATISTICS: &str = "stats.json";

/// The three kinds of shards; the cloud has none.
const HOSPITAL: &str = "hospital.npz";
const DEVICES: &str = "devices.npz";
const EDGE: &str = "edge.npz";

fn folder(group: usize) -> String {
    format!("group-{group}")
}

/// The parts of a shard and the prefixes of their arrays: training, validation, test.
const PREFIXES: [&str; 3] = ["", "validation_", "test_"];

#[cfg(test)]
mod tests;
