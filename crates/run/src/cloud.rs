//! The run directory of a deployment's cloud: the same files as in any run, but without checkpoints, whose place the
//! deployment's records take (a copy of the last one is here too), and without what only the parties know.
//!
//! Lines are written once their content is decided and recorded. After a crash the last ones arrive again, or more of
//! them if the record is an earlier one; models are written as the run goes on.

use crate::again::Again;
use crate::digests;
use crate::directory::Files;
use crate::error::{Context, Result, bail};
use crate::files::{BEST, CALIBRATION, EVALUATION, METRICS, MODEL, SEGMENTS, is_run, write_json};
use crate::manifest::{DataInfo, Manifest};
use selvedge_core::adaptive::Change;
use selvedge_core::calibration::Calibrations;
use selvedge_core::run::Ending;
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_data::{Inputs, SideInputs, Statistics};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the ledger and the models are written at most, but for the end.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// What a run leaves when it has ended.
const RESULTS: [&str; 4] = [MODEL, BEST, EVALUATION, CALIBRATION];

/// The run directory of a cloud.
pub struct CloudDirectory<'a> {
    task: &'a Task<'a>,
    files: Files,
    metrics: Again,
    segments: Option<Again>,
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
        let steered = !task.experiment.train.adaptive.is_off();
        let open_segments = || Again::open::<Change>(folder.join(SEGMENTS), |change| change.t);
        Ok(CloudDirectory {
            task,
            metrics: Again::open::<Evaluation>(folder.join(METRICS), |e| e.t)?,
            segments: steered.then(open_segments).transpose()?,
            written: None,
            started: Instant::now(),
            seconds_before: manifest.timing.seconds,
            files: Files {
                path: folder.into(),
                manifest,
            },
        })
    }

    /// Up to which iteration the files go, if anything was evaluated.
    pub fn last_evaluated(&self) -> Option<u64> {
        self.metrics.last()
    }

    /// Starts over: nothing can have been decided before the first record, so what is here belongs to another run or to
    /// discarded records.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn begin_anew(&mut self) -> Result<()> {
        self.goes_on();
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
        self.metrics.clear()?;
        self.segments.as_mut().map_or(Ok(()), Again::clear)
    }

    /// It has no ending, or none any more.
    fn goes_on(&mut self) {
        self.files.manifest.ending = None;
        digests::go_on(&mut self.files.manifest.files);
    }

    /// θ was aggregated, evaluated and judged, with this result. At the end it is also known how probabilities are
    /// corrected.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn aggregated(
        &mut self,
        state: &State,
        evaluations: &[Evaluation],
        (ending, calibrations): (Option<&Ending>, Option<&Calibrations>),
    ) -> Result<()> {
        for evaluation in evaluations {
            self.metrics.keep(evaluation.t, evaluation)?;
        }
        let change = state.progress.controller.as_ref();
        let change = change.and_then(|controller| controller.change.as_ref());
        if let (Some(segments), Some(change)) = (&mut self.segments, change) {
            segments.keep(change.t, change)?;
        }
        if ending.is_none() && self.files.manifest.ending.is_some() {
            // The record that it went on from is of before.
            self.goes_on();
        }
        let (files, architecture) = (&mut self.files, &self.task.architecture);
        let ends = ending.filter(|_| files.manifest.ending.is_none());
        let due = self.written.is_none_or(|at| at.elapsed() >= WRITE_EVERY);
        if due || ending.is_some() {
            self.written = Some(Instant::now());
            files.write_ledger(state)?;
            // Should all else be lost, this is left. A model that is none would take the place of one that is.
            if ends.is_some() || (ending.is_none() && state.theta.is_finite()) {
                files.write_models(architecture, state)?;
            }
            let seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
            files.write_manifest(state, seconds)?;
        }
        if let Some(ending) = ends {
            let seconds = files.manifest.timing.seconds;
            let is_validated = files.manifest.data.validation_samples > 0;
            if let Some(found) = calibrations.filter(|_| is_validated) {
                write_json(&files.path.join(CALIBRATION), found)?;
            }
            files.manifest.files = digests::of_end(&files.path)?;
            files.manifest.end(ending, state.progress.t, seconds);
            files.manifest.write(&files.path)?;
        }
        Ok(())
    }
}
