//! The runs of a comparison, side by side: each on a thread of its own, since one run's intervals are too short to be
//! shared out without loss. Runs on the same data share it.

use super::board::Board;
use crate::Outcome;
use crate::args::DataDirectory;
use crate::interrupt::is_interrupted;
use crate::load;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::Experiment;
use selvedge_core::run::Ending;
use selvedge_data::Loaded;
use selvedge_nn::simd::Level;
use selvedge_run::comparison::{Cell, Comparison};
use selvedge_run::files::{METRICS, is_run};
use selvedge_run::manifest::Manifest;
use selvedge_run::{Training, metrics};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How to run, whatever is run.
pub(crate) struct Options {
    pub(crate) data: DataDirectory,
    /// Threads in all.
    pub(crate) threads: usize,
    pub(crate) level: Level,
    /// What goes on with it, should it be stopped.
    pub(crate) resume_command: String,
}

/// What the threads share.
struct Shared<'a> {
    comparison: &'a Comparison,
    options: &'a Options,
    board: Board,
    queue: Mutex<VecDeque<Cell>>,
    datasets: Mutex<HashMap<String, Weak<Loaded>>>,
    /// Runs that have ended, with the fingerprint of their data, by what was loaded for them.
    known: HashMap<String, (PathBuf, String)>,
    /// The first thing that went wrong.
    error: Mutex<Option<anyhow::Error>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does every run that is not done yet. A run that diverges is noted and is no error of the comparison.
pub(crate) fn run_all(
    comparison: &Comparison,
    folder: &Path,
    options: &Options,
) -> Result<Outcome> {
    let cells = comparison.cells(folder)?;
    let total = cells.iter().map(|c| c.experiment.train.iterations).sum();
    let board = Board::new(&comparison.name, cells.len(), total);
    let (mut queue, mut known) = (VecDeque::new(), HashMap::new());
    for cell in cells {
        match ended(&cell)? {
            Some(manifest) => {
                board.was_there(cell.experiment.train.iterations);
                let data = (cell.path, manifest.data.fingerprint);
                known.insert(data_key(&cell.experiment)?, data);
            }
            None => queue.push_back(cell),
        }
    }
    let side_by_side = options.threads.min(queue.len()).max(1);
    let each = options.threads / side_by_side;
    let shared = Shared {
        comparison,
        options,
        board,
        queue: Mutex::new(queue),
        datasets: Mutex::default(),
        known,
        error: Mutex::new(None),
    };
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..side_by_side {
            let threads = rayon::ThreadPoolBuilder::new().num_threads(each).build();
            let threads = threads.context("cannot start threads")?;
            let shared = &shared;
            scope.spawn(move || threads.install(|| shared.work()));
        }
        Ok(())
    })?;
    shared.board.close();
    if let Some(error) = lock(&shared.error).take() {
        return Err(error);
    }
    Ok(match is_interrupted() {
        true => Outcome::Interrupted,
        false => Outcome::Done,
    })
}

/// The manifest of a cell's run that has come to its end. A run of another experiment is in the way.
fn ended(cell: &Cell) -> Result<Option<Manifest>> {
    if !is_run(&cell.path) {
        return Ok(None);
    }
    let manifest = Manifest::read(&cell.path)?;
    if manifest.experiment(&cell.path)? != cell.experiment {
        return Err(anyhow!(
            "{} is a run of another experiment, not of this comparison: move it away, or choose another --out",
            cell.path.display()
        ));
    }
    let Some(ending) = &manifest.ending else {
        return Ok(None);
    };
    match ending.kind.as_str() {
        "interrupted" => return Ok(None),
        // Its last evaluation is of the last good state.
        "diverged" => {}
        _ => check_metrics(&cell.path, ending.t)?,
    }
    Ok(Some(manifest))
}

/// A run that ended was evaluated there: one whose metrics end before would count as never having reached a target.
fn check_metrics(run: &Path, t: u64) -> Result<()> {
    let path = run.join(METRICS);
    let newest = metrics::newest(run);
    let newest = newest.with_context(|| format!("cannot read {}", path.display()))?;
    let last = newest.first().and_then(Option::as_ref);
    if last.is_none_or(|e| e.t != t) {
        bail!(
            "{} is damaged: its last line should be iteration {t}, where the run ended; to train it again, remove {}",
            path.display(),
            run.display()
        );
    }
    Ok(())
}

/// What the data of an experiment depends on.
fn data_key(experiment: &Experiment) -> Result<String> {
    Ok(serde_json::to_string(&(&experiment.data, experiment.seed))?)
}

impl Shared<'_> {
    /// One thread's work: run after run, until none is left or something is wrong.
    fn work(&self) {
        // Held until the next run needs another one, so that runs on the same data share it.
        let mut data: Option<Arc<Loaded>> = None;
        while !is_interrupted() && lock(&self.error).is_none() {
            let Some(cell) = lock(&self.queue).pop_front() else {
                return;
            };
            let loaded = self.data(&cell.experiment);
            let result = loaded.and_then(|loaded| self.train(&cell, data.insert(loaded)));
            if let Err(error) = result {
                let error = error.context(format!("{} ({})", cell.label, cell.path.display()));
                lock(&self.error).get_or_insert(error);
            }
        }
    }

    fn train(&self, cell: &Cell, data: &Loaded) -> Result<()> {
        let iterations = cell.experiment.train.iterations;
        let mut display = self.board.run(&cell.label, iterations);
        let training = Training {
            name: &self.comparison.name,
            directory: Some(&cell.path),
            resume: true,
            resume_command: Some(self.options.resume_command.clone()),
            level: self.options.level,
            ..Training::new(&cell.experiment, data)
        };
        let finished = training.watched_by(&mut display)?;
        if let Ending::Diverged { t, learning_rate } = finished.ending {
            self.board.say(&format!(
                "note: {} diverged at iteration {t}, with learning rate {learning_rate}",
                cell.label
            ));
        }
        display.finish();
        Ok(())
    }

    /// The data of an experiment; loaded once while anybody uses it.
    fn data(&self, experiment: &Experiment) -> Result<Arc<Loaded>> {
        let key = data_key(experiment)?;
        // Others wait: they may want the same.
        let mut datasets = lock(&self.datasets);
        if let Some(data) = datasets.get(&key).and_then(Weak::upgrade) {
            return Ok(data);
        }
        let data = Arc::new(load::data(experiment, &self.options.data)?);
        if let Some((run, then)) = self.known.get(&key)
            && !data.dataset.has_fingerprint(then)
        {
            let now = data.dataset.fingerprint();
            bail!(
                "the data is not what {} was trained on (fingerprint {now} now, {then} then): point --data-dir at the same files, or choose another --out",
                run.display()
            );
        }
        datasets.insert(key, Arc::downgrade(&data));
        Ok(data)
    }
}
