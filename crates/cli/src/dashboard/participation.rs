//! Who takes part in an interval: as `trace.jsonl` tells, or drawn again, since draws depend on the seed alone; without
//! those whom a deployment noted as absent.

use super::absent::Absent;
use super::schedule::Interval;
use selvedge_core::experiment::{Algorithm, Experiment};
use selvedge_core::role::{Absence, Phase};
use selvedge_core::selection::{Draw, Selection, Uniform};
use selvedge_run::manifest::Manifest;
use selvedge_run::trace;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Devices of a group that are told one by one; of more only numbers are.
const MOST_OF_A_GROUP: usize = 600;

/// The same over all groups.
const MOST_IN_ALL: usize = 6000;

/// Groups that are told one by one.
const MOST_GROUPS: usize = 120;

/// Devices that are drawn again for a page.
const MOST_DRAWN: usize = 1_000_000;

/// Where the devices of an interval come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    Trace,
    Drawn,
    /// Only their number is known.
    Counted,
}

/// One group in an interval.
#[derive(Debug, Default, Serialize)]
struct GroupPart {
    name: String,
    devices: usize,
    selected: usize,
    /// Who was drawn; nothing where there are too many to be told.
    members: Option<Vec<u32>>,
    /// How many of them missed the exchange.
    missed: usize,
    /// Who that was, told where the members are.
    missed_exchange: BTreeSet<u32>,
    /// The same of the upload.
    missed_upload: BTreeSet<u32>,
    /// Whether it missed the global aggregation before this interval, or the one at its end.
    missed_global: bool,
}

/// Everybody in an interval.
#[derive(Debug, Serialize)]
pub(super) struct Participation {
    source: Source,
    /// Whether the algorithm makes one group of all.
    merged: bool,
    /// Whether devices do something; if not, only their patients' records are drawn, where those are already.
    devices_act: bool,
    groups: Vec<GroupPart>,
    /// Groups that are not told one by one.
    more_groups: usize,
    group_count: usize,
    devices: usize,
    selected: usize,
    missed: usize,
}

impl Participation {
    /// `run` is the run's folder.
    pub(super) fn new(
        run: &Path,
        manifest: &Manifest,
        experiment: &Experiment,
        interval: Interval,
        absent: &Absent,
    ) -> Self {
        let algorithm = experiment.train.algorithm;
        let merged = algorithm.merges_groups();
        let mut groups = empty_groups(manifest, merged);
        let source = fill(run, manifest, experiment, interval, &mut groups);
        if can_miss(algorithm) {
            note(&mut groups, interval, absent);
        }
        let devices = sum(groups.iter().map(|g| g.devices));
        let selected = sum(groups.iter().map(|g| g.selected));
        for group in &mut groups {
            group.missed = group.missed_exchange.len();
            if group.devices > MOST_OF_A_GROUP || devices > MOST_IN_ALL {
                group.tell_numbers_only();
            }
        }
        let missed = groups.iter().map(|g| g.missed).sum();
        let group_count = groups.len();
        groups.truncate(MOST_GROUPS);
        Participation {
            source,
            merged,
            devices_act: devices_act(algorithm),
            more_groups: group_count - groups.len(),
            groups,
            group_count,
            devices,
            selected,
            missed,
        }
    }
}

/// The sum, or the largest number: a manifest may have been written by anybody.
pub(super) fn sum(numbers: impl Iterator<Item = usize>) -> usize {
    numbers.fold(0, usize::saturating_add)
}

impl GroupPart {
    fn tell_numbers_only(&mut self) {
        self.members = None;
        self.missed_exchange.clear();
        self.missed_upload.clear();
    }

    fn has(&self, device: u32) -> bool {
        (device as usize) < self.devices
    }
}

/// Whether somebody can be absent: in the others nobody is, whatever is noted beside them.
fn can_miss(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Hsgd | Algorithm::CHsgd)
}

/// Whether the devices are asked for anything while training.
fn devices_act(algorithm: Algorithm) -> bool {
    !matches!(
        algorithm,
        Algorithm::Centralised | Algorithm::FedAvg | Algorithm::HospitalOnly
    )
}

/// The groups that train, before anybody is drawn.
fn empty_groups(manifest: &Manifest, merged: bool) -> Vec<GroupPart> {
    let (sizes, names) = (&manifest.sizes, &manifest.data.groups);
    let devices = match merged {
        true => vec![sum(sizes.devices.iter().copied())],
        false => sizes.devices.clone(),
    };
    let group = |(m, devices): (usize, usize)| GroupPart {
        name: match (merged, names.get(m)) {
            (true, _) => "all groups".into(),
            (false, Some(name)) => name.clone(),
            (false, None) => format!("group {m}"),
        },
        devices,
        selected: sizes.selected.get(m).copied().unwrap_or(0).min(devices),
        ..GroupPart::default()
    };
    devices.into_iter().enumerate().map(group).collect()
}

/// Puts in who was drawn.
fn fill(
    run: &Path,
    manifest: &Manifest,
    experiment: &Experiment,
    interval: Interval,
    groups: &mut [GroupPart],
) -> Source {
    // A trace that cannot be read is no worse than none.
    let lines = trace::interval(run, interval.start).unwrap_or_default();
    let fits = |line: &trace::Line| {
        let absent = line.absent_exchange.iter().chain(&line.absent_upload);
        let mut named = line.devices.iter().chain(absent);
        let group = groups.get(line.group);
        group.is_some_and(|group| named.all(|n| group.has(*n)))
    };
    if lines.len() == groups.len() && lines.iter().all(fits) {
        for line in lines {
            let group = &mut groups[line.group];
            group.selected = line.devices.len();
            group.members = Some(line.devices);
            group.missed_exchange = line.absent_exchange.into_iter().collect();
            group.missed_upload = line.absent_upload.into_iter().collect();
        }
        return Source::Trace;
    }
    let drawn = sum(manifest.sizes.selected.iter().copied());
    let uniform = experiment.train.selection == "uniform" && !manifest.own_seams;
    let known = uniform && drawn <= MOST_DRAWN;
    if !known || groups.iter().any(|g| g.devices > u32::MAX as usize) {
        return Source::Counted;
    }
    for (m, group) in groups.iter_mut().enumerate() {
        let draw = Draw::new(
            experiment.seed,
            m,
            interval.start,
            group.devices,
            group.selected,
        );
        let mut subset = Vec::new();
        Uniform.select(draw, &mut subset);
        group.members = Some(subset);
    }
    Source::Drawn
}

/// Puts in who was noted as absent.
fn note(groups: &mut [GroupPart], interval: Interval, absent: &Absent) {
    let Interval {
        start,
        end,
        aggregated,
    } = interval;
    for absence in absent.at(Phase::Exchange, start) {
        if let Some((group, device)) = of_group(groups, absence) {
            group.missed_exchange.insert(device);
        }
    }
    for absence in absent.at(Phase::Upload, end) {
        if let Some((group, device)) = of_group(groups, absence) {
            group.missed_upload.insert(device);
        }
    }
    for t in [aggregated, end].into_iter().filter(|t| *t > 0) {
        for absence in absent.at(Phase::Global, t) {
            if let Some(group) = groups.get_mut(absence.group) {
                group.missed_global = true;
            }
        }
    }
}

/// The group of an absence and its device, if there are such.
fn of_group<'a>(
    groups: &'a mut [GroupPart],
    absence: &Absence,
) -> Option<(&'a mut GroupPart, u32)> {
    let (group, device) = (groups.get_mut(absence.group)?, absence.device?);
    group.has(device).then_some((group, device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::tests::Folder;

    fn groups(devices: &[usize]) -> Vec<GroupPart> {
        let group = |devices: &usize| GroupPart {
            devices: *devices,
            ..GroupPart::default()
        };
        devices.iter().map(group).collect()
    }

    #[test]
    fn the_absent_are_told_once_in_order_and_only_those_who_are_there() {
        let folder = Folder::new("absent-order");
        let mut text = String::new();
        for device in (0..50).rev().chain([7, 50, u32::MAX]) {
            text +=
                &format!("{{\"phase\":\"exchange\",\"t\":5,\"group\":0,\"device\":{device}}}\n");
        }
        text += "{\"phase\":\"upload\",\"t\":10,\"group\":1,\"device\":1}\n";
        text += "{\"phase\":\"upload\",\"t\":5,\"group\":1,\"device\":2}\n";
        text += "{\"phase\":\"global\",\"t\":10,\"group\":1}\n";
        text += "{\"phase\":\"global\",\"t\":0,\"group\":0}\n";
        text += "{\"phase\":\"global\",\"t\":10,\"group\":9}\n";
        folder.write("absences.jsonl", &text);
        let mut absent = Absent::default();
        absent.follow(&folder.path(""), None);
        let mut groups = groups(&[50, 3]);
        let interval = Interval {
            start: 5,
            end: 10,
            aggregated: 0,
        };
        note(&mut groups, interval, &absent);
        let told = serde_json::to_value(&groups[0].missed_exchange).unwrap();
        assert_eq!(told, serde_json::json!((0..50).collect::<Vec<u32>>()));
        assert_eq!(groups[1].missed_upload, BTreeSet::from([1]));
        assert!(groups[1].missed_global && !groups[0].missed_global);
    }
}
