//! What one party of a deployment reads: what everybody is given, and its own shard.

use super::gateway::{self, Carried};
use super::index::{Common, Index, wrong_file};
use super::shard::{Shard, ShardPart, read_offsets};
use super::write::{check_empty, fill};
use super::{DEVICES, EDGE, HOSPITAL, INDEX, STATISTICS, folder};
use crate::{DataError, SideStatistics, Statistics};
use selvedge_core::dataset::{Dataset, Group, Holders, Samples};
use selvedge_core::experiment::{DataSettings, Seen};
use selvedge_core::outcome::{Outcome, Targets};
use selvedge_nn::Shape;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A party, by what it holds of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartyShard {
    /// The cloud: no rows at all.
    Coordinator,
    /// The edge of a group: how many rows each device has.
    Edge(usize),
    /// The hospital of a group: x1 and y.
    Hospital(usize),
    /// A gateway: x2 and y of some devices of a group.
    Gateway {
        /// The group.
        group: usize,
        /// Its devices, of those of the group.
        devices: Range<u32>,
        /// Whether it has held-out rows too: in a data set split into shards, a group's first gateway has them all;
        /// where parties have enrolled, each has its own.
        held_out: bool,
    },
}

impl PartyShard {
    /// The group it belongs to; the cloud belongs to none.
    pub fn group(&self) -> Option<usize> {
        match self {
            PartyShard::Coordinator => None,
            PartyShard::Edge(m) | PartyShard::Hospital(m) => Some(*m),
            PartyShard::Gateway { group, .. } => Some(*group),
        }
    }

    /// Its own file, below the folder of all shards; the cloud has none.
    pub fn file(&self) -> Option<PathBuf> {
        let below = |m: &usize, name: &str| Some(Path::new(&folder(*m)).join(name));
        match self {
            PartyShard::Coordinator => None,
            PartyShard::Edge(m) => below(m, EDGE),
            PartyShard::Hospital(m) => below(m, HOSPITAL),
            PartyShard::Gateway { group, .. } => below(group, DEVICES),
        }
    }
}

/// The held-out rows of one party.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldOut {
    /// This party's columns, scaled, row after row.
    pub x: Vec<f32>,
    /// What is known of them.
    pub y: Targets,
    /// Their positions among the rows of all groups, in increasing order.
    pub places: Vec<u32>,
    /// Where they begin among those of the group; a hospital has them all.
    pub from: u32,
}

/// The data of one party.
#[derive(Debug)]
pub struct PartyLoaded {
    /// The set as this party sees it: its own columns of its own group, scaled, and of other groups their sizes. A
    /// gateway has the rows of its own devices, the first of them at the offset of its first device; offsets are the
    /// whole group's. It has no held-out rows. For [`Task::of_party`](selvedge_core::task::Task::of_party).
    pub dataset: Dataset,
    /// Training rows of each class, in all groups together.
    pub labels: Vec<u64>,
    /// What the numbers were scaled by.
    pub statistics: Statistics,
    /// Their fingerprint as the cut states it.
    pub statistics_fingerprint: String,
    /// This party's own validation and test rows; edge and cloud have none.
    pub held_out: [HeldOut; 2],
    /// The number of validation and test rows of all groups together.
    pub held_out_of_all: [usize; 2],
    /// The fingerprint of the whole data set: the same for all parties.
    pub fingerprint: String,
}

/// Reads what `party` holds from a folder with `shards.json`, `stats.json` and its own shard. Nobody else's is opened.
///
/// The numbers are those that [`load`](crate::load) gives for the same rows of the whole set, bit for bit.
///
/// # Errors
/// If a file is missing, malformed or of another gateway, or there is no such group or device.
pub fn read_party(folder: &Path, party: PartyShard) -> Result<PartyLoaded, DataError> {
    read_party_and_patients(folder, party).map(|(loaded, _)| loaded)
}

/// What `look` sees of a table, to who has no more than the folder of a party, or of all; nothing if it cannot be read,
/// which [`read_party`] then says.
pub fn look_at_shards(settings: &DataSettings, folder: &Path) -> Option<Seen> {
    if settings.set != "table" {
        return None;
    }
    let Common {
        shapes,
        statistics,
        index,
        ..
    } = Common::read(folder).ok()?;
    Some(Seen {
        series: shapes.map(|shape| matches!(shape, Shape::Steps(..))),
        outputs: statistics.outcome.outputs(&statistics.classes),
        rows: statistics.rows + index.validation + index.test,
    })
}

/// The pseudonyms of a party's rows: training, validation, test. Edge and cloud have none.
pub type PartyPatients = [Vec<u128>; 3];

/// The same, with the pseudonyms of its rows.
///
/// # Errors
/// As [`read_party`].
pub fn read_party_and_patients(
    folder: &Path,
    party: PartyShard,
) -> Result<(PartyLoaded, PartyPatients), DataError> {
    let common = Common::read(folder)?;
    let mut groups = common.hollow_groups();
    let mut held_out = [HeldOut::default(), HeldOut::default()];
    let mut patients = PartyPatients::default();
    if let (Some(m), Some(file)) = (party.group(), party.file()) {
        let there = groups.len();
        let Some(group) = groups.get_mut(m) else {
            return Err(common.wrong_index(format!(
                "group {m} is requested, but there are {there} groups, counted from 0: expected one below {there}"
            )));
        };
        (held_out, patients) = fill_group(group, &common, (&party, m), &folder.join(file))?;
    }
    let Common {
        index,
        statistics,
        shapes,
        ..
    } = common;
    let counts = index.held_out();
    let loaded = PartyLoaded {
        dataset: Dataset {
            name: index.set,
            hospital: shapes[0],
            device: shapes[1],
            outcome: statistics.outcome.clone(),
            classes: statistics.classes.clone(),
            groups,
            validation: Samples::default(),
            test: Samples::default(),
            holders: Holders::Counted(counts),
        },
        labels: index.labels,
        statistics,
        statistics_fingerprint: index.statistics,
        held_out,
        held_out_of_all: [index.validation, index.test],
        fingerprint: index.dataset,
    };
    Ok((loaded, patients))
}

/// Puts what the party's file has into its own group, and gives its held-out rows.
fn fill_group(
    group: &mut Group,
    common: &Common,
    (party, m): (&PartyShard, usize),
    file: &Path,
) -> Result<([HeldOut; 2], PartyPatients), DataError> {
    let Common {
        index,
        statistics,
        shapes,
        ..
    } = common;
    let described = &index.groups[m];
    let (shard, scales) = match party {
        PartyShard::Hospital(_) => {
            let shard = Shard::read(file, shapes[0], common.asked(), described)?;
            (shard, &statistics.hospital)
        }
        PartyShard::Gateway {
            devices, held_out, ..
        } => {
            let asked = Carried {
                devices: devices.clone(),
                held_out: *held_out,
                from: [0; 2],
            };
            (gateway::read(common, m, asked, file)?, &statistics.device)
        }
        PartyShard::Edge(_) | PartyShard::Coordinator => {
            group.offsets = read_offsets(file, described)?.into();
            check_largest(group, index).map_err(|problem| wrong_file(file, problem))?;
            return Ok(Default::default());
        }
    };
    let patients = shard.parts.each_ref().map(ShardPart::pseudonyms);
    let [mut own, validation, test] = shard.parts;
    scales.apply(&mut own.x);
    let (x1, x2) = match party {
        PartyShard::Hospital(_) => (own.x, Vec::new()),
        _ => (Vec::new(), own.x),
    };
    group.samples = Samples { x1, x2, y: own.y };
    group.offsets = shard.offsets.into();
    let refused = |problem| wrong_file(file, problem);
    check_largest(group, index).map_err(refused)?;
    check_labels(&group.samples.y, &statistics.outcome, index).map_err(refused)?;
    let from = shard.carried.map_or([0; 2], |carried| carried.from);
    let held_out = |part: ShardPart, (name, count): (&str, usize), from: u32| {
        HeldOut::of(part, scales, name, count)
            .map(|rows| HeldOut { from, ..rows })
            .map_err(refused)
    };
    let held_out = [
        held_out(validation, ("validation", index.validation), from[0])?,
        held_out(test, ("test", index.test), from[1])?,
    ];
    Ok((held_out, patients))
}

/// No device may own more rows than the index knows of.
fn check_largest(group: &Group, index: &Index) -> Result<(), String> {
    let sizes = group
        .offsets
        .listed()
        .windows(2)
        .map(|ends| ends[1] - ends[0]);
    let most = sizes.max().unwrap_or(0) as usize;
    match most <= index.largest {
        true => Ok(()),
        false => Err(format!(
            "a device has {most} rows: expected at most {}, as in {INDEX}",
            index.largest
        )),
    }
}

/// No class may have more rows here than in all groups together.
fn check_labels(y: &Targets, outcome: &Outcome, index: &Index) -> Result<(), String> {
    let mut counts = vec![0; index.labels.len()];
    outcome.count(y, &mut counts);
    let mut pairs = counts.iter().zip(&index.labels);
    match pairs.position(|(own, all)| own > all) {
        None => Ok(()),
        Some(class) => Err(format!(
            "more rows of class {class} than the {} of all groups: expected no more than {INDEX} counts",
            index.labels[class]
        )),
    }
}

impl HeldOut {
    /// Rows of a part of which there are `count` in all groups.
    fn of(
        part: ShardPart,
        scales: &SideStatistics,
        name: &str,
        count: usize,
    ) -> Result<Self, String> {
        let ShardPart { mut x, y, rows, .. } = part;
        let rising = rows.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || rows.last().is_some_and(|last| *last as usize >= count) {
            return Err(format!(
                "array \"{name}_rows\" has positions up to {}: expected increasing numbers below {count}, the rows of all groups",
                rows.iter().max().unwrap_or(&0)
            ));
        }
        scales.apply(&mut x);
        Ok(HeldOut {
            x,
            y,
            places: rows,
            from: 0,
        })
    }
}

/// Copies for one party what it may have, and nothing else, into a folder that is new or empty: `shards.json`,
/// `stats.json` and its own shard, after checking that they can be read. A gateway's is the part of the group's file
/// with its own devices' rows, as they were measured.
///
/// # Errors
/// As [`read_party`], and if `into` is not empty or cannot be written to.
pub fn distribute(folder_of_all: &Path, party: PartyShard, into: &Path) -> Result<(), DataError> {
    check_empty(into)?;
    read_party(folder_of_all, party.clone())?;
    let mut copied = [INDEX, STATISTICS].map(PathBuf::from).to_vec();
    let own = party.file();
    let taken = match (party, &own) {
        (
            PartyShard::Gateway {
                group,
                devices,
                held_out,
            },
            Some(file),
        ) => {
            let common = Common::read(folder_of_all)?;
            let asked = Carried {
                devices,
                held_out,
                from: [0; 2],
            };
            let shard = gateway::read(&common, group, asked, &folder_of_all.join(file))?;
            Some((shard, common.shapes[1], file))
        }
        _ => {
            copied.extend(own.clone());
            None
        }
    };
    fill(into, |partial| {
        let place = |file: &Path| {
            let place = partial.join(file);
            fs::create_dir_all(place.parent().unwrap_or(partial)).map(|()| place)
        };
        for file in &copied {
            fs::copy(folder_of_all.join(file), place(file)?)?;
        }
        match taken {
            Some((shard, shape, file)) => shard.write(&place(file)?, shape),
            None => Ok(()),
        }
    })
}
