//! The runs that are there, looked at again whenever somebody asks, and what is known of them.

use super::absent::Absent;
use super::curves::Curves;
use super::find::{self, Found};
use super::locks::Locks;
use super::schedule::Changes;
use super::summary::{Stamp, summary};
use selvedge_run::files::{METRICS, SEGMENTS};
use selvedge_run::follow::{Extent, Follower};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// However many ask, folders are not searched more often.
const EVERY: Duration = Duration::from_millis(300);

/// How long one request reads metrics. What is left is read by the next one, so that no request takes long.
const TIME: Duration = Duration::from_millis(120);

/// Runs, in folders.
pub(super) struct Shelf {
    roots: Vec<PathBuf>,
    /// Another one each time a dashboard starts: what a page knows of an earlier one is of no use.
    instance: String,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    looked: Option<Instant>,
    /// Counts what has changed.
    version: u64,
    /// The version in which a run came or went, or the notes changed.
    members: u64,
    runs: BTreeMap<String, Shelved>,
    notes: Vec<String>,
}

struct Shelved {
    run: Arc<Run>,
    stamp: Stamp,
    summary: Value,
    /// The version in which it last changed.
    changed: u64,
}

/// A run that is there.
pub(super) struct Run {
    pub(super) found: Found,
    known: Mutex<Known>,
}

/// What was read of a run so far.
#[derive(Default)]
pub(super) struct Known {
    metrics: Follower,
    pub(super) curves: Curves,
    segments: Follower,
    pub(super) changes: Changes,
    pub(super) absent: Absent,
}

impl Shelf {
    pub(super) fn new(roots: Vec<PathBuf>) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Shelf {
            roots,
            instance: format!("{:x}", now.unwrap_or_default().as_nanos()),
            seen: Mutex::default(),
        }
    }

    /// The runs, looked at again if that was not done a moment ago.
    fn look(&self) -> MutexGuard<'_, Seen> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.looked.is_none_or(|at| at.elapsed() >= EVERY) {
            seen.look(&self.roots);
            seen.looked = Some(Instant::now());
        }
        seen
    }

    /// What has changed since a version that an earlier answer named: the runs that did, and, if any came or went,
    /// which ones there are.
    pub(super) fn list(&self, since: Option<&str>) -> Value {
        let seen = self.look();
        let since = since.and_then(|text| {
            text.strip_prefix(&self.instance)?
                .strip_prefix('.')?
                .parse::<u64>()
                .ok()
        });
        let is_new = |version: u64| since.is_none_or(|since| version > since);
        let changed = seen.runs.values().filter(|run| is_new(run.changed));
        let mut list = json!({
            "version": format!("{}.{}", self.instance, seen.version),
            "runs": changed.map(|run| &run.summary).collect::<Vec<_>>(),
        });
        if is_new(seen.members) {
            list["ids"] = seen.runs.keys().cloned().collect::<Vec<_>>().into();
            list["notes"] = seen.notes.clone().into();
            list["roots"] = self
                .roots
                .iter()
                .map(|root| root.display().to_string())
                .collect::<Vec<_>>()
                .into();
            list["selvedge"] = env!("CARGO_PKG_VERSION").into();
        }
        list
    }

    /// One run, with its summary.
    pub(super) fn run(&self, id: &str) -> Option<(Arc<Run>, Value)> {
        let seen = self.look();
        let shelved = seen.runs.get(id)?;
        Some((Arc::clone(&shelved.run), shelved.summary.clone()))
    }
}

impl Seen {
    fn look(&mut self, roots: &[PathBuf]) {
        let (found, notes) = find::runs(roots);
        let (locks, next) = (Locks::read(), self.version + 1);
        let mut before = std::mem::take(&mut self.runs);
        for found in found {
            let (id, stamp) = (found.id(), Stamp::of(&found.path, &locks));
            let shelved = match before.remove(&id) {
                Some(known) if known.run.found == found && known.stamp == stamp => known,
                known => {
                    self.version = next;
                    if known.is_none() {
                        self.members = next;
                    }
                    let run = match known {
                        Some(known) if known.run.found == found => known.run,
                        _ => Arc::new(Run {
                            found: found.clone(),
                            known: Mutex::default(),
                        }),
                    };
                    Shelved {
                        run,
                        stamp,
                        summary: summary(&found, &id, &stamp),
                        changed: next,
                    }
                }
            };
            self.runs.insert(id, shelved);
        }
        if !before.is_empty() || self.notes != notes {
            (self.version, self.members, self.notes) = (next, next, notes);
        }
    }
}

impl Run {
    /// What is known of it, with what is new in its metrics and segments; and how much of the metrics was read.
    ///
    /// # Errors
    /// In words, if a file cannot be read.
    pub(super) fn follow(&self) -> (MutexGuard<'_, Known>, Result<Extent, String>) {
        let mut guard = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known {
            metrics,
            curves,
            segments,
            changes,
            ..
        } = &mut *guard;
        let path = self.found.path.join(SEGMENTS);
        if let Err(e) = segments.follow(&path, TIME, changes) {
            changes.problem = Some(format!("cannot read {}: {e}", path.display()));
        }
        let path = self.found.path.join(METRICS);
        let extent = metrics.follow(&path, TIME, curves);
        let extent = extent.map_err(|e| format!("cannot read {}: {e}", path.display()));
        (guard, extent)
    }
}
