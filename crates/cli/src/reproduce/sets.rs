//! Which data sets there are to reproduce with.

use super::paper::{PAPER_SETS, PaperSet};
use crate::args::DataDirectory;
use crate::load;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::{Experiment, one_of};
use selvedge_data::SETS;
use selvedge_run::presets;

/// The sets to use: those named, which must be there, or all that are, whether of the paper or standing for one of it.
pub(crate) fn sets_at_hand(
    named: &[String],
    data: &DataDirectory,
) -> Result<Vec<(&'static PaperSet, &'static str)>> {
    let all = || {
        PAPER_SETS
            .iter()
            .flat_map(|set| set.experiments.iter().map(move |name| (set, name.as_str())))
    };
    if !named.is_empty() {
        let known: Vec<&str> = all().map(|(_, name)| name).collect();
        let mut found: Vec<(&PaperSet, &str)> = Vec::new();
        for name in named {
            let set = all().find(|(_, known)| known == name);
            let set = set.ok_or_else(|| anyhow!("--data {name}: {}", one_of(name, &known)))?;
            if !found.iter().any(|(_, name)| *name == set.1) {
                found.push(set);
            }
        }
        return Ok(found);
    }
    let is_there = |name: &str| -> bool {
        let loaded = preset(name, &[]).and_then(|experiment| load_silently(&experiment, data));
        let directory = data.data_dir.as_deref();
        match loaded {
            // A file that is there and cannot be read is another thing than one that is not there.
            Err(error) if directory.is_some_and(|d| d.join(name).exists()) => {
                crate::say(&format!("note: {name}: {error:#}"));
                false
            }
            Ok(samples) if samples < ENOUGH => {
                crate::say(&format!(
                    "note: {name} is left out: {samples} training samples are too few"
                ));
                false
            }
            loaded => loaded.is_ok(),
        }
    };
    let mut found = Vec::new();
    for set in PAPER_SETS.iter() {
        let there: Vec<_> = set
            .experiments
            .iter()
            .filter(|name| is_there(name))
            .collect();
        if there.is_empty() {
            crate::say(&format!(
                "note: {} is left out: the data folder has none of {}",
                set.name,
                set.experiments.join(", ")
            ));
        }
        found.extend(there.into_iter().map(|name| (set, name.as_str())));
    }
    if found.is_empty() {
        bail!(
            "no data set is available: `selvedge data fetch` lists where they come from, --data-dir names their folder"
        );
    }
    Ok(found)
}

/// Fewer training samples are a demonstration of a set, like that of MIMIC-III, and not the set.
pub(super) const ENOUGH: usize = 1000;

/// The training samples of an experiment, if they can be loaded; what there is to say of them is said when they are
/// used.
pub(super) fn load_silently(experiment: &Experiment, data: &DataDirectory) -> Result<usize> {
    load::check_directory_of(experiment, data)?;
    let directory = data.data_dir.as_deref();
    let loaded = selvedge_data::load_with_notes(&experiment.data, experiment.seed, directory)?;
    Ok(loaded.dataset.training_samples())
}

pub(super) fn preset(name: &str, set: &[String]) -> Result<Experiment> {
    let preset = presets::find(name).with_context(|| format!("no experiment `{name}`"))?;
    SETS.parse(preset.text, set)
        .map_err(|e| anyhow!("{name}: {e}"))
}
