//! The index of all groups: what every party knows of all, and nothing about any patient.

use crate::outcome::Kind;
use crate::statistics::Statistics;
use serde::{Deserialize, Serialize};

/// The layout that this version writes and reads.
pub const VERSION: u32 = 2;

/// The most devices of all groups: more are a mistake.
const MOST_DEVICES: usize = 1 << 28;

/// `shards.json`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Index {
    /// The version of the layout.
    pub version: u32,
    /// The data set.
    pub set: String,
    /// The groups, in order.
    pub groups: Vec<IndexGroup>,
    /// Training rows of each class, in all groups together.
    pub labels: Vec<u64>,
    /// Training rows of the device that owns the most.
    pub largest: usize,
    /// Rows of validation, over all groups.
    pub validation: usize,
    /// Rows of the test, likewise.
    pub test: usize,
    /// The fingerprint of `stats.json`.
    pub statistics: String,
    /// The fingerprint of the whole set as training sees it.
    pub dataset: String,
    /// An identifier of the pseudonym key.
    pub pseudonyms: String,
}

/// A group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexGroup {
    /// Its name.
    pub name: String,
    /// How many devices it has.
    pub devices: usize,
    /// Training rows of all of them.
    pub rows: usize,
    /// Its rows of validation and of the test; unknown where an earlier version wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<[usize; 2]>,
}

impl Index {
    /// How many held-out rows each group has; nothing where that is not known of all.
    pub fn held_out(&self) -> Vec<[usize; 2]> {
        let of_groups = self.groups.iter().map(|group| group.held_out);
        of_groups.collect::<Option<_>>().unwrap_or_default()
    }

    /// Checks that the counts are consistent with each other and with the statistics.
    ///
    /// # Errors
    /// What does not fit, and what would.
    pub fn check(&self, statistics: &Statistics) -> Result<(), String> {
        for (number, group) in self.groups.iter().enumerate() {
            let IndexGroup { devices, rows, .. } = group;
            let most = devices.saturating_mul(self.largest);
            if rows < devices || *rows > most || u32::try_from(*rows).is_err() {
                return Err(format!(
                    "group {number} has {rows} rows of {devices} devices: expected {devices} to {most} rows, at most {} on a device, and below 2^32",
                    self.largest
                ));
            }
        }
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.map(u128::from).sum::<u128>();
        let devices = sum(&mut self.groups.iter().map(|g| g.devices as u64));
        if devices > MOST_DEVICES as u128 {
            return Err(format!(
                "{devices} devices: expected at most {MOST_DEVICES}"
            ));
        }
        let rows = sum(&mut self.groups.iter().map(|g| g.rows as u64));
        let measured = statistics.rows;
        if rows != measured as u128 {
            return Err(format!(
                "the groups have {rows} rows: expected {measured}, as in stats.json"
            ));
        }
        let held_out = self.held_out();
        for (part, (name, all)) in [("validation", self.validation), ("test", self.test)]
            .into_iter()
            .enumerate()
        {
            let rows = sum(&mut held_out.iter().map(|counts| counts[part] as u64));
            if !held_out.is_empty() && rows != all as u128 {
                return Err(format!(
                    "the groups have {rows} {name} rows: expected {all}, as of all groups together"
                ));
            }
        }
        let wanted = statistics.outcome.counts(&statistics.classes);
        let labels = sum(&mut self.labels.iter().copied());
        // Of labels some may be unknown, and each counts for itself.
        let counted = match statistics.outcome.kind() {
            Kind::Labels => {
                let pairs = self.labels.chunks(2);
                let most = pairs.map(|pair| pair.iter().map(|n| u128::from(*n)).sum());
                most.max().unwrap_or(0) <= rows
            }
            _ => labels == rows,
        };
        if self.labels.len() != wanted || !counted {
            return Err(format!(
                "labels = {:?} count {labels} rows of {} classes: expected {rows} rows of {wanted}",
                self.labels,
                self.labels.len()
            ));
        }
        // The others of its group have at least one each.
        let room = self.groups.iter().map(|g| g.rows + 1 - g.devices);
        let room = room.max().unwrap_or(0);
        match rows == 0 || self.largest <= room {
            true => Ok(()),
            false => Err(format!(
                "largest = {}: expected at most {room}, since no group has room for more",
                self.largest
            )),
        }
    }
}
