//! A run in a few numbers, cheap enough for hundreds of runs: its manifest, the end of its metrics, and the sizes and
//! times of its files.

use super::curves::results;
use super::find::Found;
use super::locks::Locks;
use crate::report::ending;
use selvedge_core::experiment::Experiment;
use selvedge_core::schedule::Segment;
use selvedge_core::state::Evaluation;
use selvedge_run::files::{ABSENCES, LEDGER, MANIFEST, METRICS, SEGMENTS, TRACE, lock_of};
use selvedge_run::manifest::Manifest;
use selvedge_run::metrics;
use serde_json::{Value, json};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Every file of a run that can change what the page shows, and that can be downloaded.
pub(super) const FILES: [&str; 6] = [MANIFEST, METRICS, SEGMENTS, LEDGER, TRACE, ABSENCES];

/// A run that was written to so lately is running, as far as its files tell.
const FRESH: Duration = Duration::from_secs(10);

/// What tells whether a run has changed since it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    /// Number, length and time of each of [`FILES`].
    files: [Option<(u64, u64, i64, i64)>; FILES.len()],
    /// Whether a process holds the run's lock.
    locked: bool,
    /// Whether something was written lately.
    fresh: bool,
}

impl Stamp {
    pub(super) fn of(run: &Path, locks: &Locks) -> Self {
        let stat = |name: &str| {
            let metadata = fs::symlink_metadata(run.join(name)).ok()?;
            Some((
                metadata.ino(),
                metadata.len(),
                metadata.mtime(),
                metadata.mtime_nsec(),
            ))
        };
        let files = FILES.map(stat);
        let lock = fs::metadata(lock_of(run));
        let mut stamp = Stamp {
            files,
            locked: lock.is_ok_and(|lock| locks.has(&lock)),
            fresh: false,
        };
        let age = SystemTime::now().duration_since(stamp.written());
        // What seems to be written in the future was written just now, on another clock.
        stamp.fresh = age.map_or(true, |age| age < FRESH);
        stamp
    }

    /// When one of the files was last written.
    fn written(&self) -> SystemTime {
        let newest = self
            .files
            .iter()
            .flatten()
            .map(|(.., s, ns)| (*s, *ns))
            .max();
        let (seconds, nanoseconds) = newest.unwrap_or_default();
        UNIX_EPOCH
            + Duration::new(
                seconds.max(0) as u64,
                nanoseconds.clamp(0, 999_999_999) as u32,
            )
    }

    /// Short, and another one when anything has changed.
    fn text(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// What can be said of a run in a line of a table.
pub(super) fn summary(found: &Found, id: &str, stamp: &Stamp) -> Value {
    let written = stamp
        .written()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut all = json!({
        "id": id,
        "label": found.label,
        "path": found.path.display().to_string(),
        "deployed": found.deployment.is_some(),
        "stamp": stamp.text(),
        "written": written.as_millis() as u64,
    });
    match read(found) {
        Ok((manifest, experiment)) => describe(&mut all, found, stamp, &manifest, &experiment),
        Err(why) => {
            all["state"] = "damaged".into();
            all["problem"] = why.into();
        }
    }
    all
}

/// The manifest and the experiment of a run, or why they cannot be read.
pub(super) fn read(found: &Found) -> Result<(Manifest, Experiment), String> {
    let read = || {
        let manifest = Manifest::read(&found.path)?;
        let experiment = manifest.experiment(&found.path)?;
        Ok((manifest, experiment))
    };
    read().map_err(|error: selvedge_run::Error| crate::told_once(&error))
}

fn describe(
    all: &mut Value,
    found: &Found,
    stamp: &Stamp,
    manifest: &Manifest,
    experiment: &Experiment,
) {
    let train = &experiment.train;
    let last = last_evaluation(&found.path);
    let (state, ended) = state(manifest, stamp, found.deployment.is_some());
    let t = manifest
        .timing
        .iterations
        .max(last.as_ref().map_or(0, |e| e.t));
    let first = Segment::first(train);
    all["state"] = state.into();
    all["ended"] = ended.into();
    all["name"] = manifest.name.clone().into();
    all["version"] = manifest.selvedge.clone().into();
    if manifest.selvedge != env!("CARGO_PKG_VERSION") {
        all["note"] = format!(
            "Written by selvedge {}; this is {}.",
            manifest.selvedge,
            env!("CARGO_PKG_VERSION")
        )
        .into();
    }
    all["algorithm"] = train.algorithm.to_string().into();
    all["set"] = experiment.data.set.clone().into();
    all["seed"] = experiment.seed.into();
    all["t"] = t.into();
    all["iterations"] = train.iterations.into();
    all["real_seconds"] = manifest.timing.seconds.into();
    all["last"] = match &last {
        Some(evaluation) => results(evaluation),
        None => {
            json!({ "t": 0, "p": first.global_interval, "q": first.local_interval, "eta": first.learning_rate })
        }
    };
}

/// What a run is doing, in a word, and how it ended.
fn state(manifest: &Manifest, stamp: &Stamp, deployed: bool) -> (&'static str, String) {
    if stamp.locked || (manifest.ending.is_none() && stamp.fresh) {
        return ("running", String::new());
    }
    let told = ending(manifest.ending.as_ref());
    let state = match manifest.ending.as_ref().map(|e| e.kind.as_str()) {
        Some("finished") => "finished",
        Some("reached") => "reached",
        Some("interrupted") => "interrupted",
        Some("diverged") => "diverged",
        Some(_) => "finished",
        // Parties of a deployment may be waiting for each other.
        None if deployed => "quiet",
        None => "stopped",
    };
    (state, told)
}

/// The last evaluation that is whole.
fn last_evaluation(run: &Path) -> Option<Evaluation> {
    // What cannot be read here is told where the run itself is shown.
    metrics::newest(run).ok()?.into_iter().flatten().next()
}
