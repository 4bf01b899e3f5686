//! From an argument to an experiment and its data.

use crate::args::{DataDirectory, ExperimentArgs};
use anyhow::{Context, Result, bail};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{DataSettings, Experiment};
use selvedge_data::{Loaded, SETS, look_at_shards};
use selvedge_run::Named;
use selvedge_run::files::{is_run, read_text};
use selvedge_run::manifest::Manifest;
use selvedge_run::outputs;
use std::path::{Path, PathBuf};

/// If the arguments name a run, its data must still be what it was.
pub(crate) fn check_run(args: &ExperimentArgs, dataset: &Dataset) -> Result<()> {
    let Some(path) = args.experiment.as_ref().filter(|path| is_run(path)) else {
        return Ok(());
    };
    let manifest = Manifest::read(path)?;
    // With other settings it is meant to be other data.
    if args.set.is_empty() && !dataset.has_fingerprint(&manifest.data.fingerprint) {
        bail!(
            "the data is not what {} was trained on (fingerprint {} now, {} then): point --data-dir at the same files",
            path.display(),
            dataset.fingerprint(),
            manifest.data.fingerprint
        );
    }
    Ok(())
}

/// The experiment that the arguments name: a file, a run directory, or one that comes with selvedge.
pub(crate) fn experiment(args: &ExperimentArgs) -> Result<Named> {
    let data_dir = args.data.data_dir.as_deref();
    Ok(Named::find(
        args.experiment.as_deref(),
        &args.set,
        data_dir,
    )?)
}

/// The files and folders that are read for an experiment, which nothing may be written to.
pub(crate) fn files_of(args: &ExperimentArgs, experiment: &Experiment) -> Vec<PathBuf> {
    let mut files = outputs::of_data(experiment, args.data.data_dir.as_deref());
    files.extend(args.experiment.clone().filter(|path| path.is_file()));
    files
}

/// About how many evaluations a run of a comparison has, where nobody says: targets are reached at one of them.
const EVALUATIONS: u64 = 150;

/// The experiment for a comparison: evaluated more often, and after the same iterations whatever a variant's P.
pub(crate) fn for_comparison(experiment: Experiment) -> Result<Experiment> {
    if !experiment.has_usual_evaluations() {
        return Ok(experiment);
    }
    let every = experiment.evaluations_apart(EVALUATIONS);
    Ok(SETS.with(&experiment, &[format!("train.evaluate_every={every}")])?)
}

/// So many seeds, from the first on.
pub(crate) fn seeds(first: u64, count: u64) -> Result<Vec<u64>> {
    let last = first.checked_add(count - 1);
    let last = last.context("--seeds: the last seed is too large")?;
    Ok((first..=last).collect())
}

/// An experiment that parties are deployed with; layers that are left out fit the shards in a folder, if there is one.
pub(crate) fn experiment_file(path: &Path, shards: Option<&Path>) -> Result<Experiment> {
    let look = |data: &DataSettings| shards.and_then(|folder| look_at_shards(data, folder));
    SETS.parse_seeing(&read_text(path)?, &[], &look)
        .with_context(|| format!("{} is invalid", path.display()))
}

/// Whether an experiment's file has something to say of a table of keys, or of a key there.
pub(crate) fn says(path: &Path, table: &str, key: Option<&str>) -> Result<bool> {
    let text: toml::Table = read_text(path)?.parse()?;
    let table = text.get(table);
    Ok(match key {
        Some(key) => table.is_some_and(|table| table.get(key).is_some()),
        None => table.is_some(),
    })
}

/// Threads to train with: all of the machine's unless it is said how many.
pub(crate) fn threads(count: Option<u64>) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count.unwrap_or(0) as usize)
        .build()
        .context("cannot start threads")
}

/// The experiment's data, split. What the user should know about it is said.
pub(crate) fn dataset(experiment: &Experiment, directory: &DataDirectory) -> Result<Dataset> {
    data(experiment, directory).map(|loaded| loaded.dataset)
}

/// The same with what it was scaled by.
pub(crate) fn data(experiment: &Experiment, directory: &DataDirectory) -> Result<Loaded> {
    check_directory_of(experiment, directory)?;
    let directory = directory.data_dir.as_deref();
    let loaded = selvedge_data::load_with_notes(&experiment.data, experiment.seed, directory)?;
    for note in &loaded.notes {
        crate::note(note);
    }
    Ok(loaded)
}

/// A data folder that is named must be there, unless the data is generated.
pub(crate) fn check_directory_of(experiment: &Experiment, directory: &DataDirectory) -> Result<()> {
    match experiment.data.set.starts_with("synthetic") {
        true => Ok(()),
        false => check_directory(directory.data_dir.as_deref()),
    }
}

fn check_directory(directory: Option<&Path>) -> Result<()> {
    match directory {
        Some(path) if !path.is_dir() => {
            let from_environment =
                std::env::var_os("SELVEDGE_DATA").is_some_and(|v| v == path.as_os_str());
            let source = if from_environment {
                "SELVEDGE_DATA="
            } else {
                "--data-dir "
            };
            bail!("{source}{}: there is no such folder", path.display())
        }
        _ => Ok(()),
    }
}
