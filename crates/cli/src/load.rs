//! From an argument to an experiment and its data.

use crate::args::{DataDirectory, ExperimentArgs};
use crate::presets::{self, PRESETS};
use crate::run_directory::Manifest;
use anyhow::{Result, anyhow, bail};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Experiment, nearest};
use selvedge_data::Loaded;
use std::path::Path;

/// An experiment and what to call it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) experiment: Experiment,
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
        return parse(name, &text, &args.set, &path.display().to_string());
    }
    let word = path.to_string_lossy();
    // A folder that is no run does not hide an experiment of the same name.
    let preset = presets::find(&word);
    if path.is_dir() && (preset.is_none() || path.join("manifest.json").is_file()) {
        let manifest = Manifest::read(path)?;
        let experiment = Experiment::parse(&manifest.experiment(path)?.to_toml(), &args.set)?;
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

fn parse(name: String, text: &str, set: &[String], source: &str) -> Result<Named> {
    let experiment = Experiment::parse(text, set).map_err(|e| anyhow!("{source}: {e}"))?;
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
