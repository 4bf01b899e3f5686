//! The run directory of a deployment's cloud: the same files as in any run, but without checkpoints, whose place the
//! deployment's records take, and without what only the parties know.
//!
//! Lines are written once their content is decided and recorded. After a crash the last ones arrive again, and those
//! already written are skipped.

use crate::digests;
use crate::directory::Files;
use crate::error::{Context, Result, bail};
use crate::files::{BEST, EVALUATION, METRICS, MODEL, SEGMENTS, is_run};
use crate::lines::Lines;
use crate::manifest::{DataInfo, Manifest};
use selvedge_core::adaptive::Change;
use selvedge_core::run::Ending;
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_data::{Inputs, SideInputs, Statistics};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the ledger is written at most, but for the end.
const LEDGER_EVERY: Duration = Duration::from_secs(2);

/// What a run leaves when it has ended.
const RESULTS: [&str; 3] = [MODEL, BEST, EVALUATION];

/// The run directory of a cloud.
pub struct CloudDirectory<'a> {
    task: &'a Task<'a>,
    files: Files,
    /// The iterations of the last lines.
    evaluated: Option<u64>,
    changed: Option<u64>,
    written: Option<Instant>,
    started: Instant,
    seconds_before: f64,
}

impl<'a> CloudDirectory<'a> {
    /// Creates one in a folder, or resumes the one that is there.
    ///
    /// # Errors
    /// If the folder cannot be written to, is damaged or belongs to another run.
    pub fn open(
        task: &'a Task<'a>,
        name: &str,
        (data, statistics): (DataInfo, &Statistics),
        folder: &Path,
    ) -> Result<Self> {
        let mut manifest = Manifest::on_data(name, task, data)?;
        if is_run(folder) {
            let there = Manifest::read(folder)?;
            if there.experiment(folder)?.identity() != task.experiment.identity()
                || there.data.fingerprint != manifest.data.fingerprint
            {
                bail!(
                    "{} is the directory of another run: choose a different `out`",
                    folder.display()
                );
            }
            manifest = there;
        } else {
            let initial = task.architecture.initial(task.experiment.seed);
            // Between which values they lie is for those who hold them to know.
            let inputs = Inputs {
                statistics: statistics.clone(),
                hospital: SideInputs::default(),
                device: SideInputs::default(),
            };
            Files::begin(
                folder,
                &mut manifest,
                &inputs,
                (&task.architecture, &initial),
            )?;
        }
        let (metrics, evaluations) = Lines::reopen::<Evaluation>(folder.join(METRICS))?;
        let (segments, changes) = match task.experiment.train.adaptive.is_off() {
            true => (None, Vec::new()),
            false => {
                let (lines, changes) = Lines::reopen::<Change>(folder.join(SEGMENTS))?;
                (Some(lines), changes)
            }
        };
        Ok(CloudDirectory {
            task,
            evaluated: evaluations.last().map(|e| e.t),
            changed: changes.last().map(|change| change.t),
            written: None,
            started: Instant::now(),
            seconds_before: manifest.timing.seconds,
            files: Files {
                path: folder.into(),
                manifest,
                metrics,
                segments,
            },
        })
    }

    /// Starts over: nothing can have been decided before the first record, so what is here belongs to another run or to
    /// discarded records.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn begin_anew(&mut self) -> Result<()> {
        (self.evaluated, self.changed) = (None, None);
        self.files.manifest.ending = None;
        digests::go_on(&mut self.files.manifest.files);
        // The new run may have no best model, and its last one comes at its end.
        for name in RESULTS {
            match fs::remove_file(self.files.path.join(name)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(e)
                        .with_context(|| format!("cannot remove {name} of an earlier run"));
                }
                _ => {}
            }
        }
        self.files.metrics.clear()?;
        self.files.segments.as_mut().map_or(Ok(()), Lines::clear)
    }

    /// θ was aggregated, evaluated and judged, with this result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn aggregated(
        &mut self,
        state: &State,
        evaluations: &[Evaluation],
        ending: Option<&Ending>,
    ) -> Result<()> {
        let files = &mut self.files;
        for evaluation in evaluations {
            if self.evaluated.is_none_or(|last| evaluation.t > last) {
                files.metrics.keep(evaluation)?;
                self.evaluated = Some(evaluation.t);
            }
        }
        let change = state.progress.controller.as_ref();
        let change = change.and_then(|controller| controller.change.as_ref());
        if let (Some(lines), Some(change)) = (&mut files.segments, change)
            && self.changed.is_none_or(|last| change.t > last)
        {
            lines.keep(change)?;
            self.changed = Some(change.t);
        }
        let due = self.written.is_none_or(|at| at.elapsed() >= LEDGER_EVERY);
        if due || ending.is_some() {
            self.written = Some(Instant::now());
            files.write_ledger(state)?;
            let seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
            files.write_manifest(state, seconds)?;
        }
        if let Some(ending) = ending.filter(|_| files.manifest.ending.is_none()) {
            files.write_models(&self.task.architecture, state)?;
            let seconds = files.manifest.timing.seconds;
            files.manifest.files = digests::of_end(&files.path)?;
            files.manifest.end(ending, state.progress.t, seconds);
            files.manifest.write(&files.path)?;
        }
        Ok(())
    }
}
