//! The shard of one gateway: rows of a range of a group's devices, taken out of the whole group's file or read from one
//! that has nothing else.

use super::PREFIXES;
use super::index::{Common, IndexGroup, wrong_file};
use super::shard::{OFFSETS, Shard, ShardPart, check_offsets, integers};
use crate::DataError;
use crate::files::npz::NpzWriter;
use crate::files::unzip::{Archive, Problem};
use selvedge_nn::Shape;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek};
use std::ops::Range;
use std::path::Path;

/// The arrays that only a gateway's file has.
const DEVICES: &str = "devices";
const HELD_OUT: &str = "held_out";

/// What a gateway carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// Devices of its group.
    pub(super) devices: Range<u32>,
    /// Whether it has held-out rows too.
    pub(super) held_out: bool,
    /// Where those begin among the group's: validation, test.
    pub(super) from: [u32; 2],
}

impl Carried {
    /// What a file says of itself; nothing if it is not a gateway's.
    pub(super) fn of<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Option<Self>, Problem> {
        if archive.find(&format!("{DEVICES}.npy")).is_none() {
            return Ok(None);
        }
        let devices = integers(archive, DEVICES, u64::from(u32::MAX))?;
        let devices = match devices[..] {
            [first, end] if first < end => first..end,
            _ => {
                return Err(format!(
                    "array {DEVICES:?} has {} numbers: expected two in increasing order, the first device and one past the last",
                    devices.len()
                ));
            }
        };
        let held_out = integers(archive, HELD_OUT, u64::from(u32::MAX))?;
        let (held_out, from) = match held_out[..] {
            [flag @ 0..=1] => (flag == 1, [0; 2]),
            [validation, test] => (true, [validation, test]),
            _ => {
                return Err(format!(
                    "array {HELD_OUT:?} is {held_out:?}: expected 0, 1, or the positions at which its validation and test rows begin"
                ));
            }
        };
        Ok(Some(Carried {
            devices,
            held_out,
            from,
        }))
    }

    /// There must be such devices in the group.
    fn check(&self, group: usize, described: &IndexGroup) -> Result<(), Problem> {
        let (Range { start, end }, there) = (&self.devices, described.devices);
        match start < end && *end as usize <= there {
            true => Ok(()),
            false => Err(format!(
                "group {group} has {there} devices, counted from 0, but a gateway with devices {start} to {end} (exclusive) is requested: expected one or more, all below {there}"
            )),
        }
    }
}

/// The devices as a message names them.
fn named(devices: &Range<u32>) -> String {
    match devices.len() {
        1 => format!("device {}", devices.start),
        _ => format!("devices {} to {}", devices.start, devices.end - 1),
    }
}

/// The rows, between offsets that were checked.
fn rows(offsets: &[u32], devices: &Range<u32>) -> Range<usize> {
    offsets[devices.start as usize] as usize..offsets[devices.end as usize] as usize
}

/// Reads what a gateway of a group carries from `file`, as it was measured.
pub(super) fn read(
    common: &Common,
    group: usize,
    asked: Carried,
    file: &Path,
) -> Result<Shard, DataError> {
    let described = &common.index.groups[group];
    asked
        .check(group, described)
        .map_err(|problem| common.wrong_index(problem))?;
    let shape = common.shapes[1];
    Shard::open(file, shape, common.asked())?
        .take(asked, shape.len(), described)
        .map_err(|problem| wrong_file(file, problem))
}

impl Shard {
    /// Leaves only what is asked for, of devices that the group has.
    fn take(
        mut self,
        asked: Carried,
        width: usize,
        described: &IndexGroup,
    ) -> Result<Self, Problem> {
        let there = self.parts[0].y.len();
        let Some(carried) = &self.carried else {
            check_offsets(&self.offsets, there, described)?;
            let rows = rows(&self.offsets, &asked.devices);
            let all = &self.parts[0];
            self.parts[0] = ShardPart {
                patients: all.patients[rows.clone()].to_vec(),
                x: all.x[rows.start * width..rows.end * width].to_vec(),
                y: all.y.of(&rows.map(|row| row as u32).collect::<Vec<_>>()),
                rows: Vec::new(),
            };
            return Ok(self.carrying(asked));
        };
        if carried.devices != asked.devices {
            return Err(format!(
                "it belongs to a gateway with {}: expected one with {}",
                named(&carried.devices),
                named(&asked.devices)
            ));
        }
        if asked.held_out && !carried.held_out {
            return Err(format!(
                "it belongs to a gateway with {} and no held-out rows: expected these too, since a group's first gateway holds them",
                named(&carried.devices)
            ));
        }
        check_offsets(&self.offsets, described.rows, described)?;
        let expected = rows(&self.offsets, &asked.devices).len();
        match there == expected {
            true => Ok(self.carrying(asked)),
            false => Err(format!(
                "{there} rows of {}: expected {expected}, as in array {OFFSETS:?}",
                named(&asked.devices)
            )),
        }
    }

    /// The same, known to be what is asked for but for held-out rows.
    fn carrying(mut self, asked: Carried) -> Self {
        if !asked.held_out {
            let y = self.parts[0].y.none();
            self.parts[1..].fill_with(|| ShardPart {
                y: y.clone(),
                ..ShardPart::default()
            });
        }
        let from = self.carried.map_or([0; 2], |carried| carried.from);
        self.carried = Some(Carried { from, ..asked });
        self
    }

    /// Refuses a gateway's file where one of all devices is due.
    pub(super) fn check_whole(&self, described: &IndexGroup) -> Result<(), Problem> {
        match &self.carried {
            None => check_offsets(&self.offsets, self.parts[0].y.len(), described),
            Some(carried) => Err(format!(
                "it belongs to a gateway with {}: expected the file of the whole group",
                named(&carried.devices)
            )),
        }
    }

    /// Writes it, as it was read.
    pub(super) fn write(&self, path: &Path, shape: Shape) -> io::Result<()> {
        let mut npz = NpzWriter::new(BufWriter::new(File::create(path)?))?;
        for (part, prefix) in self.parts.iter().zip(PREFIXES) {
            part.write(&mut npz, prefix, shape)?;
        }
        npz.integers(OFFSETS, &self.offsets)?;
        if let Some(Carried {
            devices,
            held_out,
            from,
        }) = &self.carried
        {
            npz.integers(DEVICES, &[devices.start, devices.end])?;
            match from {
                [0, 0] => npz.integers(HELD_OUT, &[u32::from(*held_out)])?,
                from => npz.integers(HELD_OUT, from)?,
            }
        }
        npz.finish()
    }
}
