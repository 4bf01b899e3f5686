//! `left-out.jsonl`: whose messages a simulated run has left out, and why. (A deployment notes this with its absences.)

use crate::error::Result;
use crate::files::{LEFT_OUT, read_bytes};
use crate::lines::numbered;
use selvedge_core::checks::Reason;
use selvedge_core::protocol::{Absence, Phase};
use selvedge_core::run::Interval;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What an interval has left out. Who is in quarantine is out of every interval, and is not listed in each.
pub(crate) fn of_interval(interval: &Interval<'_>) -> Vec<Absence> {
    let progress = &interval.state.progress;
    let mut all = Vec::new();
    for (group, turnout) in interval.groups.iter().enumerate() {
        for (phase, device, reason) in &turnout.rejected {
            let t = match phase {
                Phase::Exchange => turnout.drawn,
                _ => progress.t,
            };
            all.push(Absence::of_device(*phase, t, group, *device).because(*reason));
        }
    }
    if progress.aggregated == progress.t {
        for (group, reason) in &progress.left_out {
            let absence = Absence::of_group(Phase::Global, progress.t, *group);
            all.push(absence.because(*reason));
        }
    }
    for without in interval.evaluation.iter().flat_map(|e| &e.without) {
        if let Some(reason) = without.reason {
            let absence = Absence::of_group(Phase::Evaluation, progress.t, without.group as usize);
            all.push(absence.because(reason));
        }
    }
    all.retain(|absence| absence.reason != Some(Reason::Quarantined));
    all
}

/// How much a run has left out for one reason, of groups or of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Why.
    pub reason: Reason,
    /// Whether of devices.
    pub devices: bool,
    /// Messages.
    pub messages: usize,
    /// Who sent them.
    pub parties: usize,
}

/// What a run has left out, by reason.
///
/// # Errors
/// If the file cannot be read.
pub fn counts(run: &Path) -> Result<Vec<LeftOut>> {
    let file = run.join(LEFT_OUT);
    if !file.is_file() {
        return Ok(Vec::new());
    }
    type Sender = (usize, Option<u32>);
    let mut found: BTreeMap<(bool, Reason), Vec<Sender>> = BTreeMap::new();
    for (_, line) in numbered(&read_bytes(&file)?) {
        let Ok(absence) = serde_json::from_slice::<Absence>(line) else {
            continue; // a line that is being written
        };
        if let Some(reason) = absence.reason {
            let of = (absence.device.is_some(), reason);
            found
                .entry(of)
                .or_default()
                .push((absence.group, absence.device));
        }
    }
    let count = |((devices, reason), senders): (_, Vec<Sender>)| LeftOut {
        reason,
        devices,
        messages: senders.len(),
        parties: senders.into_iter().collect::<BTreeSet<_>>().len(),
    };
    Ok(found.into_iter().map(count).collect())
}
