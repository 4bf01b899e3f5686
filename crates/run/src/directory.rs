//! A run directory that is being written: resumable at any moment.
//!
//! ```text
//! manifest.json         experiment, versions, sizes, how it ended     replaced whole
//! metrics.jsonl         a line per evaluation                         appended, cut on resume
//! trace.jsonl           who took part, with --trace                   appended, cut on resume
//! segments.jsonl        P, Q, η and why, where train.adaptive         appended, cut on resume
//! left-out.jsonl        whose messages were left out, if any were     appended, cut on resume
//! ledger.csv            bytes by link, kind and direction             replaced whole
//! checkpoint/           the state at the end of an interval           replaced whole
//! initial.safetensors, model.safetensors, best.safetensors            replaced whole
//! inputs.json           what the model's inputs are, how they are scaled          replaced whole
//! validation.safetensors   the models' outputs for the validation patients        replaced whole
//! ```
//!
//! The directory appears under its name only once it can be resumed.

use crate::checkpoint::{self, Header};
use crate::error::{Context, Result, bail};
use crate::files::{self, BEST, CHECKPOINT, INITIAL, LEFT_OUT, METRICS, MODEL, SEGMENTS, TRACE};
use crate::lines::Lines;
use crate::manifest::{Manifest, Timing};
use crate::{digests, extending, ledger, left_out, trace, trained, weights};
use selvedge_core::conduct::DeviceConduct;
use selvedge_core::model::{Architecture, Model};
use selvedge_core::run::{Ending, Interval};
use selvedge_core::state::State;
use selvedge_core::task::Task;
use selvedge_data::Inputs;
use selvedge_data::unfinished::{self, Unfinished};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A run directory that is being written.
pub(crate) struct RunDirectory {
    pub(crate) files: Files,
    metrics: Lines,
    segments: Option<Lines>,
    trace: Option<Lines>,
    /// Made when something is left out.
    left_out: Option<Lines>,
    /// Held so that no second process trains here.
    _lock: File,
}

/// What every run directory has, whoever writes it.
pub(crate) struct Files {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
}

impl Files {
    /// What is there before the first step; the manifest last, since it makes a folder a run directory.
    pub(crate) fn begin(
        folder: &Path,
        manifest: &mut Manifest,
        inputs: &Inputs,
        (architecture, initial): (&Architecture, &Model),
    ) -> Result<()> {
        weights::save(&folder.join(INITIAL), architecture, initial)?;
        trained::write_inputs(folder, inputs)?;
        manifest.files = digests::of_beginning(folder)?;
        manifest.write(folder)
    }

    /// What was sent so far.
    pub(crate) fn write_ledger(&self, state: &State) -> Result<()> {
        ledger::write(&self.path, &state.progress.ledger)
    }

    /// The last model and the best one.
    pub(crate) fn write_models(
        &mut self,
        architecture: &Architecture,
        state: &State,
    ) -> Result<()> {
        self.manifest.best = state.progress.best.map(|best| best.t);
        let models = [(MODEL, Some(&state.theta)), (BEST, state.best.as_ref())];
        for (name, model) in models {
            if let Some(model) = model {
                weights::save(&self.path.join(name), architecture, model)?;
            }
        }
        Ok(())
    }

    /// How far it has come, in how much real time.
    pub(crate) fn write_manifest(&mut self, state: &State, seconds: f64) -> Result<()> {
        self.manifest.timing = Timing {
            iterations: state.progress.t,
            seconds,
        };
        self.manifest.write(&self.path)
    }
}

fn checkpoint_path(run: &Path) -> PathBuf {
    run.join(CHECKPOINT).join("state.safetensors")
}

fn lock(run: &Path) -> Result<File> {
    files::lock(&files::lock_of(run), || {
        format!(
            "another process is training in {}: wait for it or stop it",
            run.display()
        )
    })
}

impl RunDirectory {
    /// Makes the directory of a new run, with a checkpoint at t = 0.
    pub(crate) fn create(
        path: &Path,
        name: &str,
        (task, inputs): (&Task<'_>, &Inputs),
        state: &State,
        (trace, own_seams): (bool, bool),
    ) -> Result<Self> {
        files::check_free(path)?;
        let mut manifest = Manifest::new(name, task)?;
        manifest.own_seams = own_seams;
        let header = Header {
            fingerprint: manifest.fingerprint(),
            progress: state.progress.clone(),
            devices: Vec::new(),
            metrics_length: 0,
            trace_length: trace.then_some(0),
            segments_length: state.progress.controller.as_ref().map(|_| 0),
            left_out_length: None,
            real_seconds: 0.0,
        };
        path.file_name().context("--out names no directory")?;
        let cannot = || format!("cannot create {}", path.display());
        // With the permissions that the user gives all folders.
        let new = Unfinished::folder(path, 0o777).with_context(cannot)?;
        let partial = new.path();
        fs::create_dir(partial.join(CHECKPOINT)).with_context(cannot)?;
        let networks = (&task.architecture, &state.theta);
        Files::begin(partial, &mut manifest, inputs, networks)?;
        checkpoint::save(&checkpoint_path(partial), &header, state)?;
        new.put().or_else(|error| {
            // Another process may have been faster.
            files::check_free(path)?;
            Err(error).with_context(cannot)
        })?;
        let lock = lock(path)?;
        Self::open(path, manifest, &header, lock)
    }

    /// Opens what grows, at the lengths that a checkpoint knows.
    fn open(path: &Path, manifest: Manifest, header: &Header, lock: File) -> Result<Self> {
        let lines = |name: &str, length| Lines::cut_to(path.join(name), length);
        let some = |name: &str, length: Option<u64>| length.map(|l| lines(name, l)).transpose();
        Ok(RunDirectory {
            metrics: lines(METRICS, header.metrics_length)?,
            segments: some(SEGMENTS, header.segments_length)?,
            files: Files {
                path: path.into(),
                manifest,
            },
            trace: some(TRACE, header.trace_length)?,
            left_out: match header.left_out_length {
                None => {
                    let _ = fs::remove_file(path.join(LEFT_OUT));
                    None
                }
                known => some(LEFT_OUT, known)?,
            },
            _lock: lock,
        })
    }

    /// Opens a run to go on with it, cutting off what the checkpoint does not know.
    pub(crate) fn resume(path: &Path, task: &Task<'_>, own_seams: bool) -> Result<(Self, State)> {
        if !path.join(CHECKPOINT).is_dir() {
            bail!(
                "{} has no {CHECKPOINT}/ to resume from: a deployment's run is resumed with `selvedge up --resume DIR`, or by starting its nodes again",
                path.display()
            );
        }
        let lock = lock(path)?;
        // Checkpoints are written all the time, and by who holds the lock.
        unfinished::remove_left(&path.join(CHECKPOINT));
        let mut manifest = Manifest::read(path)?;
        if manifest.own_seams != own_seams {
            let (began, now) = match own_seams {
                true => ("without custom seams", "without them"),
                false => (
                    "by a program with custom seams",
                    "with that program, or it would become a different run",
                ),
            };
            bail!("{} was begun {began}: resume it {now}", path.display());
        }
        if !task.given.has_fingerprint(&manifest.data.fingerprint) {
            bail!(
                "{}: the data has changed since the run began (fingerprint {}, then {}): point --data-dir at the same files",
                path.display(),
                task.given.fingerprint(),
                manifest.data.fingerprint
            );
        }
        digests::check_for_resuming(path, &manifest.files)?;
        let (header, mut state) = checkpoint::load(&checkpoint_path(path), task)?;
        let is_own = manifest.has_fingerprint(&header.fingerprint);
        if !is_own && !manifest.has_outgrown(&header.fingerprint) {
            bail!(
                "{}: the checkpoint and the manifest belong to different experiments",
                path.display()
            );
        }
        let t = state.progress.t;
        if manifest.experiment(path)? != *task.experiment {
            manifest.extend(path, task.experiment, (t, &header.fingerprint))?;
        }
        let goes_on = manifest.has_outgrown(&header.fingerprint);
        if goes_on {
            extending::go_on((path, &manifest), task, &mut state.progress)?;
        }
        manifest.timing = Timing {
            iterations: t,
            seconds: header.real_seconds,
        };
        manifest.cpu.instructions = task.architecture.level().name().into();
        digests::go_on(&mut manifest.files);
        let directory = Self::open(path, manifest, &header, lock)?;
        // Before anything grows: whoever reads the run meanwhile must not take that for damage.
        directory.files.manifest.write(path)?;
        if goes_on {
            extending::remove_results(path)?;
        }
        Ok((directory, state))
    }

    /// Notes what an interval brought.
    pub(crate) fn record(&mut self, task: &Task<'_>, interval: &Interval<'_>) -> Result<()> {
        let RunDirectory {
            metrics, segments, ..
        } = self;
        if let Some(evaluation) = interval.evaluation {
            metrics.add(evaluation)?;
            // So that whoever follows the file sees it now.
            metrics.flush()?;
        }
        if let (Some(segments), Some(change)) = (segments, interval.change()) {
            segments.add(change)?;
            segments.flush()?;
        }
        for absence in left_out::of_interval(interval) {
            let lines = match &mut self.left_out {
                Some(lines) => lines,
                none => none.insert(Lines::cut_to(self.files.path.join(LEFT_OUT), 0)?),
            };
            lines.add(&absence)?;
        }
        let progress = &interval.state.progress;
        let Some(lines) = self.trace.as_mut().filter(|_| progress.t > 0) else {
            return Ok(());
        };
        let several = task.experiment.data.samples_per_device > 1;
        for (m, group) in interval.groups.iter().enumerate() {
            let data = &task.dataset.groups[m];
            let missing = |there: &[bool]| {
                group
                    .subset
                    .iter()
                    .zip(there)
                    .filter(|(_, there)| !**there)
                    .map(|(n, _)| *n)
                    .collect()
            };
            lines.add(&trace::Line {
                t: group.drawn,
                group: m,
                devices: group.subset.clone(),
                samples: several.then(|| {
                    group
                        .subset
                        .iter()
                        .map(|n| data.rows(*n).collect())
                        .collect()
                }),
                absent_exchange: missing(&group.exchanged),
                absent_upload: missing(&group.uploaded),
            })?;
        }
        Ok(())
    }

    /// Saves the run as it is, so that it can be resumed from here.
    pub(crate) fn save(&mut self, state: &State, real_seconds: f64) -> Result<()> {
        self.metrics.sync()?;
        for file in self.others() {
            file.sync()?;
        }
        let header = Header {
            fingerprint: self.files.manifest.fingerprint(),
            progress: state.progress.clone(),
            devices: match state.devices.iter().all(DeviceConduct::is_empty) {
                true => Vec::new(),
                false => state.devices.clone(),
            },
            metrics_length: self.metrics.length(),
            trace_length: self.trace.as_ref().map(Lines::length),
            segments_length: self.segments.as_ref().map(Lines::length),
            left_out_length: self.left_out.as_ref().map(Lines::length),
            real_seconds,
        };
        self.files.write_ledger(state)?;
        checkpoint::save(&checkpoint_path(&self.files.path), &header, state)
    }

    /// What grows besides the metrics.
    fn others(&mut self) -> impl Iterator<Item = &mut Lines> {
        let RunDirectory {
            segments,
            trace,
            left_out,
            ..
        } = self;
        [segments, trace, left_out].into_iter().flatten()
    }

    /// Writes the result: the model, the best one, and how it ended.
    pub(crate) fn finish(
        &mut self,
        task: &Task<'_>,
        state: &State,
        ending: &Ending,
        real_seconds: f64,
    ) -> Result<()> {
        let (files, architecture) = (&mut self.files, &task.architecture);
        if !matches!(ending, Ending::Interrupted) {
            files.write_models(architecture, state)?;
            let models = [Some(&state.theta), state.best.as_ref()];
            let networks = task.networks();
            trained::write_validation(&files.path, networks, models, &task.given.validation)?;
        }
        files.write_ledger(state)?;
        self.metrics.sync()?;
        for lines in self.others() {
            lines.sync()?;
        }
        let files = &mut self.files;
        files.manifest.files = digests::of_end(&files.path)?;
        let t = state.progress.t;
        files.manifest.end(ending, t, real_seconds);
        files.manifest.write(&files.path)
    }
}
