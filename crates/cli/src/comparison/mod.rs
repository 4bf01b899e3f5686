//! Runs that are to be compared: variants of one experiment, each with the same seeds, in one folder.
//!
//! ```text
//! FOLDER/comparison.json          the experiment, the variants, the seeds
//! FOLDER/VARIANT/seed-42/         a run directory
//! FOLDER/tuning/                  a comparison of learning rates, where each variant gets its best
//! FOLDER/table.txt, table.csv     what each needs to reach each target
//! FOLDER/report.html
//! ```
//!
//! The same command goes on with a folder that was left halfway; finished runs are kept as they are.

mod board;
pub(crate) mod rates;
pub(crate) mod table;
pub(crate) mod targets;
mod work;

pub(crate) use work::{Options, run_all};

use crate::files::{read_text, write_whole};
use anyhow::{Context, Result, bail};
use selvedge_core::experiment::Experiment;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const FILE: &str = "comparison.json";

/// `comparison.json`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// What its experiment is called.
    pub(crate) name: String,
    /// `compare`, `sweep` or `tuning`.
    pub(crate) kind: String,
    /// What all variants have in common.
    pub(crate) experiment: serde_json::Value,
    pub(crate) variants: Vec<Variant>,
    pub(crate) seeds: Vec<u64>,
    /// How each variant came to its learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rates: Option<rates::Tuning>,
}

/// One way to change the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Variant {
    /// What tables and charts call it.
    pub(crate) label: String,
    /// Where its runs are, below the comparison's folder.
    pub(crate) folder: String,
    /// What is changed, as `--set` does.
    pub(crate) set: Vec<String>,
}

impl Variant {
    pub(crate) fn new(label: String, set: Vec<String>) -> Self {
        let plain = |c: char| match c.is_ascii_alphanumeric() || "=.,_-".contains(c) {
            true => c,
            false => '_',
        };
        let folder: String = label.chars().map(plain).take(150).collect();
        // Neither `.` nor `..` nor nothing is a name of one's own.
        let folder = match folder.trim_matches('.').is_empty() {
            true => format!("_{folder}"),
            false => folder,
        };
        Variant { label, folder, set }
    }
}

/// A run of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) label: String,
    pub(crate) experiment: Experiment,
    pub(crate) path: PathBuf,
}

impl Comparison {
    /// Every run, seed by seed, so that those on the same data come one after the other.
    pub(crate) fn cells(&self, folder: &Path) -> Result<Vec<Cell>> {
        let base = Experiment::from_json(&self.experiment)
            .with_context(|| format!("{} cannot be", folder.join(FILE).display()))?;
        let mut cells = Vec::new();
        for seed in &self.seeds {
            for variant in &self.variants {
                let mut experiment = base
                    .with(&variant.set)
                    .with_context(|| format!("variant {}", variant.label))?;
                experiment.seed = *seed;
                cells.push(Cell {
                    label: format!("{} seed {seed}", variant.label),
                    experiment,
                    path: folder.join(&variant.folder).join(format!("seed-{seed}")),
                });
            }
        }
        Ok(cells)
    }

    /// The comparison in a folder, if there is one.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let note = serde_json::from_str(&read_text(&path)?)
            .with_context(|| format!("{} is damaged", path.display()))?;
        Ok(Some(note))
    }

    /// Writes it to its folder, or joins it to the one that is there: variants and seeds may come in addition, but the
    /// experiment must be the same.
    pub(crate) fn write(&mut self, folder: &Path) -> Result<()> {
        if let Some(there) = Self::read(folder)? {
            self.join(there, folder)?;
        } else if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            // What a process that was killed at once has left is not in the way.
            let begun = std::fs::read_dir(folder)?.flatten().any(|e| {
                let name = e.file_name();
                name != "tuning" && !name.to_string_lossy().ends_with(".partial")
            });
            if begun {
                bail!(
                    "{} is no comparison (it has no {FILE}), and not empty: choose another --out",
                    folder.display()
                );
            }
        }
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        write_whole(&folder.join(FILE), text.as_bytes())
    }

    fn join(&mut self, there: Comparison, folder: &Path) -> Result<()> {
        if there.experiment != self.experiment {
            let (ours, theirs) = (flat(&self.experiment), flat(&there.experiment));
            let difference = ours.iter().find(|line| !theirs.contains(line));
            let difference = difference.or_else(|| theirs.iter().find(|line| !ours.contains(line)));
            bail!(
                "{} compares variants of another experiment ({} differs): choose another --out",
                folder.display(),
                difference.map_or("something", String::as_str)
            );
        }
        for variant in there.variants {
            let same = self.variants.iter().find(|v| v.folder == variant.folder);
            if same.is_some_and(|v| *v != variant) {
                bail!(
                    "{}: its variant {} was begun with {}: choose another --out",
                    folder.display(),
                    variant.label,
                    variant.set.join(" ")
                );
            }
            if same.is_none() {
                self.variants.push(variant);
            }
        }
        self.seeds.extend(there.seeds);
        self.seeds.sort_unstable();
        self.seeds.dedup();
        self.rates = self.rates.take().or(there.rates);
        Ok(())
    }
}

/// Every value of an experiment with its key.
fn flat(value: &serde_json::Value) -> Vec<String> {
    fn walk(value: &serde_json::Value, path: &str, out: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    let path = match path {
                        "" => key.clone(),
                        _ => format!("{path}.{key}"),
                    };
                    walk(value, &path, out);
                }
            }
            _ => out.push(format!("{path} = {value}")),
        }
    }
    let mut out = Vec::new();
    walk(value, "", &mut out);
    out
}
