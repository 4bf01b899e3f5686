//! A run that is given more: more iterations, or another target, budget or patience. Nothing else may change in a run.
//!
//! What follows is the same, bit for bit, as if the run had been that long from the start, but for one thing: it was
//! evaluated where it ended, and that evaluation stays, also as a candidate for the best model.

use crate::error::{Context, Result, bail};
use crate::files::{BEST, EVALUATION, MODEL, VALIDATION};
use crate::format::{count, shell};
use crate::manifest::{EndingInfo, Manifest};
use crate::metrics;
use selvedge_core::experiment::{Experiment, Fall};
use selvedge_core::run;
use selvedge_core::state::Progress;
use selvedge_core::task::Task;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// One time that a run was given more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Extension {
    /// Where it was then.
    pub t: u64,
    /// How it had ended, if it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<EndingInfo>,
    /// The keys that changed: before and after.
    pub changes: BTreeMap<String, [Value; 2]>,
    /// The fingerprint of the checkpoint that it went on from.
    checkpoint: String,
}

/// What a run has at its end, and not while it goes on.
const RESULTS: [&str; 4] = [MODEL, BEST, VALIDATION, EVALUATION];

/// The first thing in which two experiments differ: as the run began with it, and as it is now.
pub fn difference(begun: &Experiment, now: &Experiment) -> Option<(String, String)> {
    if begun == now {
        return None;
    }
    let (begun, now) = (begun.to_toml(), now.to_toml());
    let mut lines = begun.lines().zip(now.lines());
    let differ = lines
        .find(|(a, b)| a != b)
        .map(|(a, b)| (a.into(), b.into()));
    differ.or_else(|| Some(("less".into(), "more".into())))
}

/// Refuses an experiment that a run cannot go on with, having begun with another one.
///
/// # Errors
/// The key that must stay as it is.
pub fn check(begun: &Experiment, now: &Experiment, path: &Path) -> Result<()> {
    let mut allowed = begun.clone();
    allowed.train.iterations = now.train.iterations;
    allowed.stop = now.stop.clone();
    if let Some((began, now)) = difference(&allowed, now) {
        bail!(
            "{0} was started with `{began}`, not `{now}`: of a run that is resumed, only train.iterations and the keys of [stop] can be changed; resume it with --resume {1}, or start a new run with --out",
            path.display(),
            shell(path)
        );
    }
    let train = &begun.train;
    if train.iterations == now.train.iterations {
        return Ok(());
    }
    let why = match (train.schedule, train.adaptive.is_off()) {
        (Fall::Cosine, _) => "the cosine of train.schedule ends at train.iterations",
        (_, false) => "train.adaptive fits its last interval into train.iterations",
        _ => return Ok(()),
    };
    bail!(
        "train.iterations = {}, but {} was started with {}: {why}, so a longer run is another one; start it with --out",
        now.train.iterations,
        path.display(),
        train.iterations
    )
}

impl Manifest {
    /// Notes that the run goes on with another experiment.
    pub(crate) fn extend(
        &mut self,
        path: &Path,
        now: &Experiment,
        (t, checkpoint): (u64, &str),
    ) -> Result<()> {
        check(&self.experiment(path)?, now, path)?;
        if now.train.iterations <= t {
            bail!(
                "{} has come to iteration {}: train.iterations = {} must be more",
                path.display(),
                count(t),
                now.train.iterations
            );
        }
        let after = serde_json::to_value(now)?;
        self.extended.push(Extension {
            t,
            ending: self.ending.take(),
            changes: changes(&self.experiment, &after),
            checkpoint: checkpoint.into(),
        });
        (self.experiment, self.best) = (after, None);
        Ok(())
    }

    /// Whether a checkpoint is of the time before the run was given more.
    pub(crate) fn has_outgrown(&self, checkpoint: &str) -> bool {
        let now = self.fingerprint();
        let mut before = self.extended.iter().map(|e| &e.checkpoint);
        checkpoint != now && before.any(|known| known == checkpoint)
    }
}

/// The keys that may change and have.
fn changes(before: &Value, after: &Value) -> BTreeMap<String, [Value; 2]> {
    let stops = |experiment: &Value| {
        let keys = experiment["stop"].as_object().into_iter().flatten();
        keys.map(|(key, _)| format!("stop.{key}"))
            .collect::<Vec<_>>()
    };
    let paths = ["train.iterations".to_owned()].into_iter();
    let paths = paths.chain(stops(before)).chain(stops(after));
    let both = paths.map(|path| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let of = |experiment: &Value| experiment.pointer(&pointer).cloned().unwrap_or_default();
        (path, [of(before), of(after)])
    });
    both.filter(|(_, [a, b])| a != b).collect()
}

/// The state in which a run ended becomes one in which it goes on; an error if it has come to its end in any case.
pub(crate) fn go_on(
    (path, manifest): (&Path, &Manifest),
    task: &Task<'_>,
    progress: &mut Progress,
) -> Result<()> {
    let evaluations = metrics::read(path)?;
    let mut known = evaluations.iter().rev().filter(|e| e.t <= progress.t);
    if let Some(last) = known.next().filter(|e| e.t == progress.t) {
        if let Some(ending) = run::reached(task, progress, last) {
            let ended = EndingInfo::new(&ending, progress.t, &manifest.data);
            bail!(
                "{} has come to its end in any case: {}",
                path.display(),
                ended.reached().unwrap_or_default()
            );
        }
        // It may have been evaluated for the reason alone that it ended.
        let every = task.experiment.train.evaluate_every.unwrap_or(1);
        if let Some(before) = known.next().filter(|e| progress.t - e.t < every) {
            progress.evaluated = Some(before.t);
        }
    }
    progress.reached = None;
    Ok(())
}

/// Removes what is not the run's any more.
pub(crate) fn remove_results(path: &Path) -> Result<()> {
    for name in RESULTS {
        match fs::remove_file(path.join(name)) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                let what = || format!("cannot remove {name} of {}", path.display());
                return Err(e).with_context(what);
            }
            _ => {}
        }
    }
    Ok(())
}
