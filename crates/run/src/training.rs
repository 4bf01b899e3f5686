//! Training one run: in memory, or into a directory from which it can be resumed.

use crate::absences;
use crate::directory::RunDirectory;
use crate::error::{Context, Error, Result, bail};
use crate::format::{bytes, shell};
use crate::manifest::Manifest;
use crate::{metrics, trained};
use selvedge_core::absence::Listed;
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::{Compute, Experiment};
use selvedge_core::model::{Architecture, Model};
use selvedge_core::objective::Objective;
use selvedge_core::run::{self, Ending, Interval};
use selvedge_core::scores::{Predictions, predict};
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_data::{Loaded, unfinished};
use selvedge_nn::simd::Level;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Real time between two checkpoints.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// Seconds since the first call, for `time.compute = "measured"`.
fn stopwatch() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Watches the progress of a run, and may stop it. A function of an [`Interval`] is one.
pub trait Watcher: Send {
    /// A run begins, or resumes, at `t`.
    fn begins(&mut self, _t: u64) {}

    /// An interval has ended, and its results are written. With `Break` the run is saved and ends here; it can be
    /// resumed.
    fn interval(&mut self, interval: &Interval<'_>) -> ControlFlow<()>;

    /// No interval follows.
    fn ends(&mut self) {}
}

impl<F: FnMut(&Interval<'_>) -> ControlFlow<()> + Send> Watcher for F {
    fn interval(&mut self, interval: &Interval<'_>) -> ControlFlow<()> {
        self(interval)
    }
}

/// One run to start, or to resume.
///
/// The numbers depend on the experiment, its data, [`seams`](Self::seams) and [`absences`](Self::absences) alone.
pub struct Training<'a> {
    /// What is trained.
    pub experiment: &'a Experiment,
    /// The data to train on.
    pub data: &'a Loaded,
    /// Its name.
    pub name: &'a str,
    /// The run directory, if there is to be one.
    pub directory: Option<&'a Path>,
    /// Resumes the run in the directory, if there is one, to the same bits as if it had never been stopped.
    pub resume: bool,
    /// The command that resumes it, for the message that says why it stopped.
    pub resume_command: Option<String>,
    /// Whether to record who took part in each interval.
    pub trace: bool,
    /// The CPU instruction set to compute with.
    pub level: Level,
    /// Who is absent. A resumed run knows this already.
    pub absences: Listed,
    /// Changes the task before it is trained: how devices are drawn ([`Task::selection`]), how models are aggregated
    /// ([`Task::aggregation`]), how gradients become steps ([`Task::optimisers`]), what is learnt
    /// ([`Task::objective`]). A resumed run needs the same seams, since the experiment does not contain them.
    pub seams: Option<&'a (dyn Fn(&mut Task<'_>) + Sync)>,
}

impl<'a> Training<'a> {
    /// An experiment on its data: in memory, with nobody absent, with this machine's fastest instruction set.
    pub fn new(experiment: &'a Experiment, data: &'a Loaded) -> Self {
        Training {
            experiment,
            data,
            name: &data.dataset.name,
            directory: None,
            resume: false,
            resume_command: None,
            trace: false,
            level: Level::detect(),
            absences: Listed::default(),
            seams: None,
        }
    }

    /// Trains to the end.
    ///
    /// # Errors
    /// If the experiment does not fit its data, or the directory cannot be created, read or written.
    pub fn run(self) -> Result<Finished> {
        self.watched_by(&mut |_: &Interval<'_>| ControlFlow::Continue(()))
    }

    /// Trains to the end, or until `watcher` stops it, on the threads of the pool that it is called from, else on all.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn watched_by(self, watcher: &mut dyn Watcher) -> Result<Finished> {
        // The loop itself runs on one of the threads: handing each phase over to them would cost more than some phases.
        match rayon::current_thread_index() {
            Some(_) => self.train(watcher),
            None => rayon::scope(|_| self.train(watcher)),
        }
    }

    fn train(mut self, watcher: &mut dyn Watcher) -> Result<Finished> {
        let mut task = Task::new(self.experiment, &self.data.dataset)?;
        task.architecture = task.architecture.with_level(self.level);
        if self.experiment.time.compute == Compute::Measured {
            task.stopwatch = Some(stopwatch);
        }
        if let Some(change) = self.seams {
            change(&mut task);
            task.check_seams()?;
        }
        let (mut directory, mut state) = self.begin(&task)?;
        let mut manifest = match &directory {
            Some(directory) => directory.files.manifest.clone(),
            None => Manifest::new(self.name, &task)?,
        };
        task.absences = Box::new(match self.directory {
            Some(path) => absences::of_run(path, self.resume, &self.absences)?,
            None => std::mem::take(&mut self.absences),
        });
        // A deployment's absences are its decisions: nobody is judged again.
        task.judges = !task.absences.are_decided();
        let (before, started) = (manifest.timing.seconds, Instant::now());
        let spent = || before + started.elapsed().as_secs_f64();
        let (mut saved, mut evaluations) = (started, Vec::new());
        watcher.begins(state.progress.t);
        let ending = run::train(&task, &mut state, |interval| {
            match &mut directory {
                Some(directory) => directory.record(&task, &interval)?,
                None => evaluations.extend(interval.evaluation.cloned()),
            }
            let flow = watcher.interval(&interval);
            if let Some(directory) = directory.as_mut().filter(|_| flow.is_continue())
                && saved.elapsed() >= SAVE_EVERY
            {
                directory.save(interval.state, spent())?;
                saved = Instant::now();
            }
            Ok::<_, Error>(flow)
        });
        watcher.ends();
        let ending = ending.with_context(|| self.advice())?;
        if let (Some(directory), Some(path)) = (&mut directory, self.directory) {
            // Of a run that diverged the checkpoint stays at the last good state.
            if !matches!(ending, Ending::Diverged { .. }) {
                let saved = directory.save(&state, spent());
                saved.with_context(|| self.advice())?;
            }
            let finished = directory.finish(&task, &state, &ending, spent());
            finished.with_context(|| self.advice())?;
            evaluations = metrics::read(path)?;
        }
        manifest.end(&ending, state.progress.t, spent());
        Ok(Finished {
            path: self.directory.map(Into::into),
            manifest: directory.map_or(manifest, |directory| directory.files.manifest),
            architecture: task.architecture,
            objective: task.objective,
            ending,
            state,
            evaluations,
        })
    }

    /// The state to train from, and where it is kept.
    fn begin(&self, task: &Task<'_>) -> Result<(Option<RunDirectory>, State)> {
        if let Some(path) = self.directory.filter(|_| self.resume) {
            if has_begun(path) {
                let (directory, state) = RunDirectory::resume(path, task, self.seams.is_some())?;
                trained::restore_inputs(&directory.files, &self.data.inputs())?;
                return Ok((Some(directory), state));
            }
            // An empty directory of a process that was killed at once is not in the way.
            let _ = std::fs::remove_dir(path);
        }
        check_memory(task)?;
        let state = State::initial(task);
        let what = (task, &self.data.inputs());
        let how = (self.trace, self.seams.is_some());
        let create = |path| RunDirectory::create(path, self.name, what, &state, how);
        Ok((self.directory.map(create).transpose()?, state))
    }

    /// What is said of a run that an error has stopped.
    fn advice(&self) -> String {
        let command = match (&self.resume_command, self.directory) {
            (Some(command), _) => command.clone(),
            (None, Some(path)) if self.seams.is_some() => {
                return format!(
                    "training stopped; fix that, then resume {} from the program that began it, with the same seams",
                    path.display()
                );
            }
            (None, Some(path)) => format!("selvedge train --resume {}", shell(path)),
            (None, None) => return "training stopped".into(),
        };
        format!("training stopped; fix that, then resume with `{command}`")
    }
}

/// A run that has ended.
pub struct Finished {
    /// Its directory, if it has one.
    pub path: Option<PathBuf>,
    /// Its manifest.
    pub manifest: Manifest,
    /// How it ended.
    pub ending: Ending,
    /// Its final state: models, ledger, clock.
    pub state: State,
    /// All evaluations, by increasing t.
    pub evaluations: Vec<Evaluation>,
    /// The networks of its models.
    pub architecture: Architecture,
    /// What they were trained to learn.
    pub objective: Box<dyn Objective>,
}

impl Finished {
    /// The last evaluation.
    pub fn last(&self) -> Option<&Evaluation> {
        self.evaluations.last()
    }

    /// The evaluation that the validation samples have chosen, where there are any.
    pub fn chosen(&self) -> Option<&Evaluation> {
        let best = self.state.progress.best?;
        self.evaluations.iter().find(|e| e.t == best.t)
    }

    /// The evaluation that counts: the chosen one, else the last.
    pub fn result(&self) -> Option<&Evaluation> {
        self.chosen().or(self.last())
    }

    /// The model that counts: the best on the validation samples, else the last.
    pub fn model(&self) -> &Model {
        self.state.best.as_ref().unwrap_or(&self.state.theta)
    }

    /// That model's predictions for samples.
    pub fn predict(&self, samples: &Samples) -> Predictions {
        let networks = (&self.architecture, &*self.objective);
        predict(networks, self.model(), samples, None)
    }
}

/// Whether a directory has anything in it, apart from what a process killed at its start leaves.
pub fn has_begun(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(entries) => {
            let left = |entry: std::fs::DirEntry| unfinished::is_name(&entry.file_name());
            !entries.flatten().all(left)
        }
        Err(_) => path.exists(),
    }
}

/// Refuses a model that this machine has no memory for, where it says how much it has.
fn check_memory(task: &Task<'_>) -> Result<()> {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else {
        return Ok(());
    };
    let available = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u128>().ok())
        .map(|kilobytes| kilobytes * 1024);
    let needed = 4 * task.numbers();
    match available {
        Some(available) if needed > available => bail!(
            "this run needs about {} for its models, but only {} of memory is free: choose smaller layers, fewer groups or a lower participation",
            bytes(needed as f64),
            bytes(available as f64)
        ),
        _ => Ok(()),
    }
}
