//! From a word to an experiment.

use crate::error::{Error, Result, bail};
use crate::files::{is_run, read_text};
use crate::manifest::Manifest;
use crate::presets::{self, PRESETS, Preset};
use selvedge_core::experiment::{DataSettings, Experiment, Seen, nearest};
use selvedge_data::Loaded;
use selvedge_data::SETS;
use std::path::Path;

/// An experiment and what to call it.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its file's or its preset's name.
    pub name: String,
    /// The experiment to train.
    pub experiment: Experiment,
}

impl Named {
    /// The experiment that a word names, with changes like `train.iterations=500`: a file, a run directory or a preset;
    /// without a word, the first preset. Tables that it names may be next to its file, unless they are in `data_dir`.
    ///
    /// # Errors
    /// If there is none, or it or a change is invalid.
    ///
    /// ```
    /// use selvedge_run::Named;
    /// let named = Named::find(Some("esr".as_ref()), &["train.iterations=500".into()], None)?;
    /// assert_eq!((named.name.as_str(), named.experiment.train.iterations), ("esr", 500));
    /// # Ok::<(), selvedge_run::Error>(())
    /// ```
    pub fn find(word: Option<&Path>, set: &[String], data_dir: Option<&Path>) -> Result<Self> {
        let Some(path) = word else {
            let preset = &PRESETS[0];
            return of_preset(preset, set, data_dir);
        };
        if path.is_file() {
            let text = read_text(path)?;
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            // The layers that are left out must fit tables that lie next to the experiment, too.
            let look = |data: &DataSettings| {
                let mut data = data.clone();
                find_beside(&mut data, path, data_dir);
                selvedge_data::look(&data, data_dir)
            };
            let mut named = parse(name, &text, set, &path.display().to_string(), &look)?;
            find_beside(&mut named.experiment.data, path, data_dir);
            return Ok(named);
        }
        let word = path.to_string_lossy();
        // A folder that is no run does not hide an experiment of the same name.
        let preset = presets::find(&word);
        if path.is_dir() && (preset.is_none() || is_run(path)) {
            let manifest = Manifest::read(path)?;
            let look = |data: &DataSettings| selvedge_data::look(data, data_dir);
            let text = manifest.experiment(path)?.to_toml();
            let experiment = SETS.parse_seeing(&text, set, &look)?;
            return Ok(Named {
                name: manifest.name,
                experiment,
            });
        }
        if let Some(preset) = preset {
            return of_preset(preset, set, data_dir);
        }
        let names: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
        let hint = match nearest(&word, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!(
                "there is no such file, and the presets are {}",
                names.join(", ")
            ),
        };
        bail!("no experiment `{word}`: {hint}")
    }

    /// Its data, read from the folder with one sub-folder per data set if it comes from files; [`Loaded::notes`] has
    /// notes for people.
    ///
    /// # Errors
    /// If a setting is invalid, or a file is missing or malformed.
    pub fn data(&self, data_dir: Option<&Path>) -> Result<Loaded> {
        let Experiment { data, seed, .. } = &self.experiment;
        Ok(selvedge_data::load_with_notes(data, *seed, data_dir)?)
    }
}

/// Tables that are neither in the data folder nor in the current one may be next to the experiment.
fn find_beside(data: &mut DataSettings, file: &Path, data_dir: Option<&Path>) {
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

fn of_preset(preset: &Preset, set: &[String], data_dir: Option<&Path>) -> Result<Named> {
    let look = |data: &DataSettings| selvedge_data::look(data, data_dir);
    parse(preset.name.into(), preset.text, set, preset.name, &look)
}

fn parse(
    name: String,
    text: &str,
    set: &[String],
    source: &str,
    look: &dyn Fn(&DataSettings) -> Option<Seen>,
) -> Result<Named> {
    let experiment = SETS
        .parse_seeing(text, set, look)
        .map_err(|e| Error::new(format!("{source}: {e}")))?;
    Ok(Named { name, experiment })
}
