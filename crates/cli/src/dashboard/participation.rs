//! Who takes part in an interval: as `trace.jsonl` tells, or drawn again, since draws depend on the seed alone; without
//! those whom a deployment noted as absent.

use super::follow::{Follower, Reader};
use super::schedule::Interval;
use super::trace;
use crate::run_directory::Manifest;
use selvedge_core::experiment::Experiment;
use selvedge_core::role::{Absence, Phase};
use selvedge_core::selection::{Draw, Selection, Uniform};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Devices of a group that are told one by one; of more only numbers are.
const MOST_OF_A_GROUP: usize = 600;

/// The same over all groups.
const MOST_IN_ALL: usize = 6000;

/// Groups that are told one by one.
const MOST_GROUPS: usize = 120;

/// Devices that are drawn again for a page.
const MOST_DRAWN: usize = 1_000_000;

/// Absences that are kept of one run.
const MOST_ABSENCES: usize = 1_000_000;

/// How long files of absences are read for one request.
const TIME: Duration = Duration::from_millis(200);

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
    missed_exchange: Vec<u32>,
    missed_upload: Vec<u32>,
    /// Whether it missed the global aggregation before this interval, or the one at its end.
    missed_global: bool,
}

/// Everybody in an interval.
#[derive(Debug, Serialize)]
pub(super) struct Participation {
    source: Source,
    /// Whether the algorithm makes one group of all.
    merged: bool,
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
        let merged = experiment.train.algorithm.merges_groups();
        let mut groups = empty_groups(manifest, merged);
        let source = fill(run, manifest, experiment, interval, &mut groups);
        for absence in &absent.all {
            note(&mut groups, interval, absence);
        }
        let devices = groups
            .iter()
            .map(|g| g.devices)
            .fold(0, usize::saturating_add);
        let selected = groups
            .iter()
            .map(|g| g.selected)
            .fold(0, usize::saturating_add);
        let missed = groups.iter().map(|g| g.missed_exchange.len()).sum();
        let too_many = |group: &GroupPart| group.devices > MOST_OF_A_GROUP || devices > MOST_IN_ALL;
        for group in groups.iter_mut().filter(|group| too_many(group)) {
            group.members = None;
        }
        let group_count = groups.len();
        groups.truncate(MOST_GROUPS);
        Participation {
            source,
            merged,
            more_groups: group_count - groups.len(),
            groups,
            group_count,
            devices,
            selected,
            missed,
        }
    }
}

/// The groups that train, before anybody is drawn.
fn empty_groups(manifest: &Manifest, merged: bool) -> Vec<GroupPart> {
    let (sizes, names) = (&manifest.sizes, &manifest.data.groups);
    let devices = match merged {
        true => vec![sizes.devices.iter().copied().fold(0, usize::saturating_add)],
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
    let lines = trace::interval(&run.join("trace.jsonl"), interval.start).unwrap_or_default();
    let fits = |line: &trace::Line| {
        let below = |n: &u32| (*n as usize) < groups[line.group].devices;
        line.group < groups.len() && line.devices.iter().all(below)
    };
    if lines.len() == groups.len() && lines.iter().all(fits) {
        for line in lines {
            let group = &mut groups[line.group];
            group.selected = line.devices.len();
            group.members = Some(line.devices);
            group.missed_exchange = line.absent_exchange;
            group.missed_upload = line.absent_upload;
        }
        return Source::Trace;
    }
    let drawn: usize = manifest
        .sizes
        .selected
        .iter()
        .fold(0, |all, n| all.saturating_add(*n));
    let known = experiment.train.selection == "uniform" && drawn <= MOST_DRAWN;
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

fn note(groups: &mut [GroupPart], interval: Interval, absence: &Absence) {
    let Absence {
        phase,
        t,
        group,
        device,
    } = *absence;
    let Some(group) = groups.get_mut(group) else {
        return;
    };
    let add = |list: &mut Vec<u32>| {
        if let Some(device) = device.filter(|device| !list.contains(device)) {
            list.push(device);
        }
    };
    match phase {
        Phase::Exchange if t == interval.start => add(&mut group.missed_exchange),
        Phase::Upload if t == interval.end => add(&mut group.missed_upload),
        Phase::Global if t > 0 && (t == interval.aggregated || t == interval.end) => {
            group.missed_global = true;
        }
        _ => {}
    }
}

/// Everybody who was noted as absent in a run.
#[derive(Default)]
pub(super) struct Absent {
    files: BTreeMap<PathBuf, Follower>,
    all: HashSet<Absence>,
}

/// Adds the lines of one file to all.
struct Adder<'a>(&'a mut HashSet<Absence>);

impl Reader for Adder<'_> {
    fn begin_anew(&mut self) {
        // What was noted stays true: a file that was cut is told again to the same lines.
    }

    fn line(&mut self, _: u64, line: &[u8]) {
        if let Ok(absence) = serde_json::from_slice(line)
            && self.0.len() < MOST_ABSENCES
        {
            self.0.insert(absence);
        }
    }

    fn too_long(&mut self, _: u64) {}
}

impl Absent {
    /// Reads what is new, at the run and at the parties of its deployment.
    pub(super) fn follow(&mut self, run: &Path, deployment: Option<&Path>) {
        let mut paths = vec![run.join("absences.jsonl")];
        for folder in deployment.into_iter().flat_map(folders) {
            paths.extend(folders(&folder).map(|party| party.join("absences.jsonl")));
        }
        for path in paths {
            let follower = self.files.entry(path.clone()).or_default();
            // Whoever cannot be read is as if there were nothing to tell.
            let _ = follower.follow(&path, TIME, &mut Adder(&mut self.all));
        }
    }
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
}
