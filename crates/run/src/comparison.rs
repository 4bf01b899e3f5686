//! Runs that are to be compared: variants of one experiment, each with the same seeds, in one folder.
//!
//! ```text
//! FOLDER/comparison.json          the experiment, the variants, the seeds
//! FOLDER/VARIANT/seed-42/         a run directory
//! FOLDER/tuning/                  a comparison of learning rates, where each variant gets its best
//! FOLDER/table.txt, table.csv     what each needs to reach each target
//! FOLDER/report.html
//! FOLDER/lock                     held by the process that is working here
//! ```
//!
//! The same command resumes an interrupted comparison; finished runs are kept as they are.

use crate::error::{Context, Result, bail};
use crate::files::{self, COMPARISON, make_folder, of_seed, read_json, write_json};
use crate::runs::labels::flat;
use selvedge_core::experiment::Experiment;
use selvedge_data::{SETS, kind_of, unfinished};
use selvedge_nn::random::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::{DirEntry, File};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// Where learning rates are tried, in the comparison's folder.
const TUNING: &str = "tuning";

/// The beginning of a `--set` that changes the learning rate.
pub const RATE: &str = "train.learning_rate=";

/// Names of folders have at most so many letters, before what tells them apart.
const LONGEST_FOLDER: usize = 150;

/// `comparison.json`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of its experiment.
    pub name: String,
    /// `compare`, `sweep` or `tuning`.
    pub kind: String,
    /// What all variants have in common.
    pub experiment: Value,
    /// What is compared.
    pub variants: Vec<Variant>,
    /// The seeds that each variant is trained with.
    pub seeds: Vec<u64>,
    /// How each variant came to its learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Tuning>,
}

/// One way to change the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// What tables and charts call it.
    pub label: String,
    /// Where its runs are, below the comparison's folder.
    pub folder: String,
    /// The changes, as for `--set`.
    pub set: Vec<String>,
}

/// The learning rates that were tried, and the choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The seed they were tried with.
    pub seed: u64,
    /// The rates that all variants tried.
    pub grid: Vec<f64>,
    /// The results of each variant.
    pub variants: Vec<Tried>,
}

/// The results of a variant with each rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The variant's label.
    pub label: String,
    /// The rates that it tried; earlier versions leave them out, having tried those of the grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<f64>,
    /// The best validation AUC with each rate or, where the outcome has none, the lowest validation loss, negative; or the
    /// lowest training loss, negative, where there are no validation samples; nothing where training diverged.
    pub scores: Vec<Option<f64>>,
    /// The iteration at which each comes near the best of all; nothing where it does not.
    #[serde(default)]
    pub near: Vec<Option<u64>>,
    /// The rate that was chosen.
    pub chosen: f64,
}

impl Tried {
    /// The rates that it tried.
    pub fn rates<'a>(&'a self, tuning: &'a Tuning) -> &'a [f64] {
        match self.rates[..] {
            [] => &tuning.grid,
            _ => &self.rates,
        }
    }
}

impl Tuning {
    /// Together with what was tried before, of the same grid.
    fn join(mut self, before: Tuning) -> Tuning {
        let is_new = |tried: &Tried| !self.variants.iter().any(|t| t.label == tried.label);
        let more: Vec<Tried> = before.variants.into_iter().filter(is_new).collect();
        self.variants.extend(more);
        self
    }
}

impl Variant {
    /// A variant, with a folder named after it.
    pub fn new(label: String, set: Vec<String>) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || "=.,_-".contains(c);
        let letter = |c: char| if plain(c) { c } else { '_' };
        let mut folder: String = label.chars().map(letter).take(LONGEST_FOLDER).collect();
        // A label that a folder cannot be called by, like that of a list, must not share one with its like.
        if label.chars().count() > LONGEST_FOLDER || label.chars().any(|c| !plain(c) && c != ' ') {
            let key = Key::new(0).with_all(label.bytes().map(u64::from));
            folder += &format!("-{}", &key.hex()[..8]);
        }
        // Neither `.` nor `..` nor nothing is a name of one's own.
        let folder = match folder.trim_matches('.').is_empty() {
            true => format!("_{folder}"),
            false => folder,
        };
        Variant { label, folder, set }
    }

    /// Whether what was begun as `theirs` is this one, which chooses its learning rate first if it `tunes`.
    fn is_begun_as(&self, theirs: &Variant, tunes: bool) -> bool {
        let is_rate = |change: &String| change.starts_with(RATE);
        match theirs.set.split_last() {
            Some((last, rest)) if tunes => is_rate(last) && rest == self.set,
            _ => self == theirs,
        }
    }
}

/// A run of a comparison.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What it is called.
    pub label: String,
    /// What it trains.
    pub experiment: Experiment,
    /// Where it is.
    pub path: PathBuf,
}

impl Comparison {
    /// Every run, seed by seed, so that those on the same data come one after the other.
    ///
    /// # Errors
    /// If a variant is invalid, or two are the same.
    pub fn cells(&self, folder: &Path) -> Result<Vec<Cell>> {
        let base = SETS
            .from_json(&self.experiment)
            .with_context(|| format!("{} is invalid", folder.join(COMPARISON).display()))?;
        let experiments = self.experiments(&base)?;
        let mut cells = Vec::new();
        for seed in &self.seeds {
            for (variant, experiment) in self.variants.iter().zip(&experiments) {
                cells.push(Cell {
                    label: format!("{} seed {seed}", variant.label),
                    experiment: Experiment {
                        seed: *seed,
                        ..experiment.clone()
                    },
                    path: of_seed(&folder.join(&variant.folder), *seed),
                });
            }
        }
        Ok(cells)
    }

    /// The experiment of every variant. Two that are the same would train the same runs, at the same time and maybe in
    /// the same folder.
    fn experiments(&self, base: &Experiment) -> Result<Vec<Experiment>> {
        let (mut folders, mut texts) = (HashMap::new(), HashMap::new());
        let (mut experiments, mut first) = (Vec::new(), None);
        for Variant { label, folder, set } in &self.variants {
            let experiment = SETS.with(base, set);
            let experiment = experiment.with_context(|| format!("variant {label}"))?;
            let asked = asked(&experiment);
            let (first, theirs) = first.get_or_insert_with(|| (label, asked.clone()));
            if let Some((key, theirs, ours)) = different(&*theirs, &asked) {
                bail!(
                    "variants {first} and {label} ask about different outcomes ({key} is {theirs} and {ours}), of which metrics cannot be compared: compare each outcome on its own"
                );
            }
            let same_folder = folders.insert(folder, label);
            let twin = texts.insert(experiment.to_toml(), label).or(same_folder);
            match twin {
                Some(twin) if twin == label => bail!("variant {label} is given twice"),
                Some(twin) => {
                    bail!("variants {twin} and {label} are the same: leave one of them out")
                }
                None => experiments.push(experiment),
            }
        }
        Ok(experiments)
    }

    /// The comparison in a folder, if there is one.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(COMPARISON);
        path.exists().then(|| read_json(&path)).transpose()
    }

    /// The comparison in a folder, if there is one; a folder with anything else in it is not taken.
    fn there(folder: &Path) -> Result<Option<Self>> {
        if let Some(there) = Self::read(folder)? {
            return Ok(Some(there));
        }
        // What a process that was killed at once has left is not in the way.
        let is_in_the_way = |entry: &DirEntry| {
            let (name, path) = (entry.file_name(), entry.path());
            let is_ours = (name == LOCK && std::fs::read(&path).is_ok_and(|text| text.is_empty()))
                || (name == TUNING && path.is_dir() && Self::there(&path).is_ok())
                || unfinished::is_name(&name);
            !is_ours
        };
        let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        if entries.any(|entry| is_in_the_way(&entry)) {
            bail!(
                "{} is not a comparison (it has no {COMPARISON}) and is not empty: choose another --out",
                folder.display()
            );
        }
        Ok(None)
    }

    /// Whether it continues the comparison that was begun there: with more algorithms it does, with other keys it does
    /// not.
    pub fn continues(&self, there: &Comparison) -> bool {
        let of_ours =
            |theirs: &Variant| self.variants.iter().any(|v| theirs.set.starts_with(&v.set));
        self.kind == "compare" || there.variants.iter().any(of_ours)
    }

    /// Whether it can be written to a folder, or joined to what is there, after each variant has chosen from `grid`, if
    /// there is one. Call this before anything is trained.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(&self, folder: &Path, grid: Option<&[f64]>) -> Result<()> {
        match Self::there(folder)? {
            Some(there) => self.check_joins(&there, folder, grid),
            None => Ok(()),
        }
    }

    fn check_joins(&self, there: &Comparison, folder: &Path, grid: Option<&[f64]>) -> Result<()> {
        let place = folder.display();
        // A key that one of them does not write, having its default, makes no difference.
        let identity = |value| Some(SETS.from_json(value).ok()?.identity());
        let (then, now) = (identity(&there.experiment), identity(&self.experiment));
        if then.is_none() || then != now {
            let difference = difference(&there.experiment, &self.experiment);
            bail!(
                "{place} compares variants of a different experiment ({difference}): choose another --out"
            );
        }
        if let (Some(grid), Some(tried)) = (grid, &there.rates)
            && tried.grid != grid
        {
            let rates: Vec<String> = tried.grid.iter().map(f64::to_string).collect();
            bail!(
                "{place} was begun with --learning-rates {}, and all variants must choose from the same rates: use these, or choose another --out",
                rates.join(",")
            );
        }
        let tunes = grid.is_some() || self.rates.is_some();
        if !there.variants.is_empty() && tunes != there.rates.is_some() && self.kind != "tuning" {
            let (then, now) = match tunes {
                true => ("without", "with"),
                false => ("with", "without"),
            };
            bail!(
                "{place} was begun {then} --learning-rates: comparing {now} them would not be fair; choose another --out"
            );
        }
        for theirs in &there.variants {
            let ours = self.variants.iter().find(|v| v.folder == theirs.folder);
            if ours.is_some_and(|v| !v.is_begun_as(theirs, grid.is_some())) {
                bail!(
                    "{place}: its variant {} was begun with other settings ({}): choose another --out",
                    theirs.label,
                    theirs.set.join(" ")
                );
            }
        }
        Ok(())
    }

    /// Locks its folder against other processes for as long as the returned file is held.
    ///
    /// # Errors
    /// If one is working there.
    pub fn lock(folder: &Path) -> Result<File> {
        make_folder(folder)?;
        files::lock(&folder.join(LOCK), || {
            format!(
                "another process is working in {}: wait for it or stop it",
                folder.display()
            )
        })
    }

    /// Writes it to its folder, or merges it with the one that is there: variants and seeds may be added, but the
    /// experiment must be the same.
    ///
    /// # Errors
    /// If it is not, or the folder cannot be written to.
    pub fn write(&mut self, folder: &Path) -> Result<()> {
        if let Some(there) = Self::there(folder)? {
            self.check_joins(&there, folder, None)?;
            self.join(there);
        }
        // Together they must be possible too.
        self.cells(folder)?;
        make_folder(folder)?;
        write_json(&folder.join(COMPARISON), self)
    }

    fn join(&mut self, there: Comparison) {
        for variant in there.variants {
            if !self.variants.contains(&variant) {
                self.variants.push(variant);
            }
        }
        self.seeds.extend(there.seeds);
        self.seeds.sort_unstable();
        self.seeds.dedup();
        self.rates = match (self.rates.take(), there.rates) {
            (Some(ours), Some(theirs)) => Some(ours.join(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }
}

/// What an experiment asks, by key: metrics of several classes have no unit, whatever they are classes of.
fn asked(experiment: &Experiment) -> [(&'static str, String); 3] {
    let (data, table) = (&experiment.data, &experiment.data.table);
    let kind = kind_of(data).unwrap_or_default();
    let (outcome, label) = match (kind.is_class(), data.outcome.is_empty()) {
        (true, _) => (kind.name(), String::new()),
        (false, true) => (kind.name(), table.label.columns().join(", ")),
        (false, false) => (data.outcome.as_str(), table.label.columns().join(", ")),
    };
    [
        ("data.outcome", outcome.to_owned()),
        ("data.table.label", label),
        ("data.table.event", table.event.clone()),
    ]
}

/// The first key in which two differ, with both values.
fn different<'a>(
    there: &'a [(&'static str, String)],
    here: &'a [(&'static str, String)],
) -> Option<(&'static str, &'a str, &'a str)> {
    let mut pairs = there.iter().zip(here);
    let ((key, theirs), (_, ours)) = pairs.find(|(theirs, ours)| theirs != ours)?;
    Some((key, theirs, ours))
}

/// The first key in which two experiments differ, with both values.
fn difference(there: &Value, here: &Value) -> String {
    let (there, here) = (flat(there), flat(here));
    let keys = here.keys().chain(there.keys());
    let value = |of: &BTreeMap<String, Value>, key| {
        of.get(key).map_or("not set".to_owned(), Value::to_string)
    };
    let mut differing = keys.filter(|key| there.get(*key) != here.get(*key));
    let key = differing.next().map_or("", String::as_str);
    format!(
        "{key} is {} there and {} here",
        value(&there, key),
        value(&here, key)
    )
}
