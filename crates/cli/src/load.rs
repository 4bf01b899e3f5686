//! From an argument to an experiment and its data.

use crate::args::{DataDirectory, ExperimentArgs};
use crate::presets::{self, PRESETS};
use crate::run_directory::Manifest;
use anyhow::{Result, anyhow, bail};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Experiment, nearest};
use selvedge_data::Loaded;
use selvedge_data::SETS;
use std::path::Path;

/// An experiment and what to call it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) experiment: Experiment,
}

/// If the arguments name a run, its data must still be what it was.
pub(crate) fn check_run(args: &ExperimentArgs, dataset: &Dataset) -> Result<()> {
    let Some(path) = args
        .experiment
        .as_ref()
        .filter(|p| p.join("manifest.json").is_file())
    else {
        return Ok(());
    };
    let manifest = Manifest::read(path)?;
    // With other settings it is meant to be other data.
    if args.set.is_empty() && manifest.data.fingerprint != dataset.fingerprint() {
        bail!(
            "the data is not what {} was trained on (fingerprint {}, then {}): point --data-dir at the same files",
            path.display(),
            dataset.fingerprint(),
            manifest.data.fingerprint
        );
    }
    Ok(())
}

/// The experiment that the arguments name: a file, a run directory, or one that comes with selvedge.
pub(crate) fn experiment(args: &ExperimentArgs) -> Result<Named> {
    let Some(path) = &args.experiment else {
        let preset = &PRESETS[0];
        return parse(preset.name.into(), preset.text, &args.set, preset.name);
    };
    if path.is_file() {
        let text = crate::files::read_text(path)?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut named = parse(name, &text, &args.set, &path.display().to_string())?;
        find_beside(&mut named.experiment, path, args.data.data_dir.as_deref());
        return Ok(named);
    }
    let word = path.to_string_lossy();
    // A folder that is no run does not hide an experiment of the same name.
    let preset = presets::find(&word);
    if path.is_dir() && (preset.is_none() || path.join("manifest.json").is_file()) {
        let manifest = Manifest::read(path)?;
        let experiment = SETS.parse(&manifest.experiment(path)?.to_toml(), &args.set)?;
        return Ok(Named {
            name: manifest.name,
            experiment,
        });
    }
    if let Some(preset) = preset {
        return parse(preset.name.into(), preset.text, &args.set, preset.name);
    }
    let names: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
    let hint = match nearest(&word, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!(
            "there is no such file, and the experiments that come with selvedge are {}",
            names.join(", ")
        ),
    };
    bail!("no experiment `{word}`: {hint}")
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

/// Files of one's own that are neither in the data folder nor here may lie beside the experiment.
fn find_beside(experiment: &mut Experiment, file: &Path, data_dir: Option<&Path>) {
    let data = &mut experiment.data;
    if !["table", "shards"].contains(&data.set.as_str()) {
        return;
    }
    let is_shards = data.set == "shards";
    let is_there = |path: &Path| match is_shards {
        true => path.join("shards.json").exists(),
        false => path.exists(),
    };
    for path in std::iter::once(&mut data.path).chain(&mut data.table.files) {
        let known = data_dir.is_some_and(|dir| is_there(&dir.join(&*path)));
        let beside = file.with_file_name("").join(&*path);
        if !path.is_empty() && !known && !is_there(Path::new(&*path)) && is_there(&beside) {
            *path = beside.to_string_lossy().into_owned();
        }
    }
}

fn parse(name: String, text: &str, set: &[String], source: &str) -> Result<Named> {
    let experiment = SETS
        .parse(text, set)
        .map_err(|e| anyhow!("{source}: {e}"))?;
    Ok(Named { name, experiment })
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
        crate::say(&format!("note: {note}"));
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
