//! Training one run: its directory, its checkpoints, what is shown of it, and how Ctrl-C ends it.

use crate::deploy::replay;
use crate::files::read_text;
use crate::format::bytes;
use crate::run_directory::RunDirectory;
use crate::summary::Finished;
use anyhow::{Context, Result, bail};
use selvedge_core::absence::Listed;
use selvedge_core::experiment::{Compute, Experiment};
use selvedge_core::run::{self, Ending, Interval};
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_data::Loaded;
use selvedge_nn::simd::Level;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Real time between two checkpoints.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Signals that come together are one wish to stop (`timeout` sends two at once); a later one ends the process.
const ONE_WISH: Duration = Duration::from_secs(1);

/// From now on Ctrl-C ends intervals, not the process.
pub(crate) fn catch_interrupts() -> Result<()> {
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        let first = *first.get_or_insert_with(Instant::now);
        if INTERRUPTED.swap(true, Ordering::SeqCst) && first.elapsed() > ONE_WISH {
            std::process::exit(130);
        }
    })
    .context("cannot catch Ctrl-C")
}

/// Seconds since the first call, for `time.compute = "measured"`.
fn stopwatch() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Whether somebody has pressed Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Set once somebody has.
pub(crate) fn interrupted_flag() -> &'static AtomicBool {
    &INTERRUPTED
}

/// What shows how far a run is.
pub(crate) trait Display {
    /// A run begins, or goes on, at `t`.
    fn begin(&mut self, t: u64);
    /// An interval has ended.
    fn update(&mut self, interval: &Interval<'_>);
    /// Something to say.
    fn say(&self, text: &str);
    /// No run any more.
    fn close(&self);
}

/// One run to be done, or to be gone on with.
pub(crate) struct Job<'a> {
    pub(crate) name: &'a str,
    pub(crate) experiment: &'a Experiment,
    pub(crate) path: &'a Path,
    /// Go on with what is in `path`, if anything is.
    pub(crate) resume: bool,
    pub(crate) trace: bool,
    pub(crate) level: Level,
    /// Who is absent.
    pub(crate) absences: Listed,
    /// What goes on with it, should it be stopped.
    pub(crate) resume_command: String,
}

/// Whether there is anything in a directory but what a process that was killed at once leaves.
pub(crate) fn has_begun(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(entries) => entries
            .flatten()
            .any(|e| e.file_name() != "seeds.json.partial"),
        Err(_) => path.exists(),
    }
}

/// Trains to the end, or until Ctrl-C.
pub(crate) fn train(job: &Job<'_>, data: &Loaded, display: &mut dyn Display) -> Result<Finished> {
    let mut task = Task::new(job.experiment, &data.dataset)?;
    task.architecture = task.architecture.with_level(job.level);
    if job.experiment.time.compute == Compute::Measured {
        task.stopwatch = Some(stopwatch);
    }
    let (mut directory, mut state) = if job.resume && has_begun(job.path) {
        RunDirectory::resume(job.path, &task)?
    } else {
        if job.resume {
            // An empty directory of a process that was killed at once is not in the way.
            let _ = std::fs::remove_dir(job.path);
        }
        check_memory(&task)?;
        let state = State::initial(&task);
        let what = (&task, &data.inputs());
        let directory = RunDirectory::create(job.path, job.name, what, &state, job.trace)?;
        (directory, state)
    };
    task.absences = Box::new(replay::of_run(job.path, job.resume, &job.absences)?);
    let (before, started) = (directory.manifest.timing.seconds, Instant::now());
    let spent = || before + started.elapsed().as_secs_f64();
    let command = &job.resume_command;
    let advice = || format!("training stopped; go on with `{command}` once that is mended");
    display.begin(state.progress.t);
    let ending = follow(&task, &mut state, &mut directory, display, &spent).with_context(advice)?;
    if let Ending::Diverged { .. } = ending {
        // The checkpoint stays at the last good state.
    } else {
        directory.save(&state, spent()).with_context(advice)?;
    }
    directory
        .finish(&task, &state, &ending, spent())
        .with_context(advice)?;
    let (last, chosen) = evaluations(job.path, state.progress.best.map(|b| b.t))?;
    Ok(Finished {
        next: job.resume_command.clone(),
        path: job.path.into(),
        manifest: directory.manifest,
        ending,
        state,
        last,
        chosen,
    })
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
            "this run needs about {} for its models, but {} of memory are free: choose smaller layers, fewer groups or a lower participation",
            bytes(needed as f64),
            bytes(available as f64)
        ),
        _ => Ok(()),
    }
}

/// Trains while noting and showing what happens.
fn follow(
    task: &Task<'_>,
    state: &mut State,
    directory: &mut RunDirectory,
    display: &mut dyn Display,
    spent: &dyn Fn() -> f64,
) -> Result<Ending> {
    let mut saved = Instant::now();
    let mut told = false;
    let result = run::train(task, state, |interval| {
        directory.record(task, &interval)?;
        display.update(&interval);
        if is_interrupted() {
            if !told {
                told = true;
                display.say("Ctrl-C: saving …");
            }
            return Ok(ControlFlow::Break(()));
        }
        if saved.elapsed() >= SAVE_EVERY {
            directory.save(interval.state, spent())?;
            saved = Instant::now();
        }
        Ok::<_, anyhow::Error>(ControlFlow::Continue(()))
    });
    display.close();
    result
}

/// The last evaluation of a run, and the one at `best`.
fn evaluations(run: &Path, best: Option<u64>) -> Result<(Option<Evaluation>, Option<Evaluation>)> {
    let path = run.join("metrics.jsonl");
    let (mut last, mut chosen) = (None, None);
    for (i, line) in read_text(&path)?.lines().enumerate() {
        let evaluation: Evaluation = serde_json::from_str(line)
            .with_context(|| format!("{}, line {} is damaged", path.display(), i + 1))?;
        if best == Some(evaluation.t) {
            chosen = Some(evaluation.clone());
        }
        last = Some(evaluation);
    }
    Ok((last, chosen))
}
