//! From text to a checked experiment.

use super::keys::{KEYS, nearest};
use super::values::check_values;
use super::{
    Adaptive, Algorithm, AttackKind, AttackSettings, Compute, DataSettings, Experiment, Fall,
    Method, OptimiserSettings, Seen, Sets,
};
use crate::message_path::Compression;
use toml::de::{DeTable, DeValue};

/// What is wrong with an experiment. The message has the line or the option, the key, the value, and what would be
/// right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct ExperimentError {
    /// The key that is wrong, if it is one.
    key: Option<&'static str>,
    /// Where it stands.
    at: Option<Place>,
    message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Line(usize),
    Option(String),
}

impl ExperimentError {
    fn new(key: Option<&'static str>, message: String) -> Self {
        ExperimentError {
            key,
            at: None,
            message,
        }
    }

    /// The same for a text that nobody has written, whose lines say nothing.
    pub(super) fn without_line(mut self) -> Self {
        self.at = self.at.filter(|place| !matches!(place, Place::Line(_)));
        self
    }

    fn place(&self) -> String {
        match &self.at {
            None => String::new(),
            Some(Place::Line(line)) => format!("line {line}: "),
            Some(Place::Option(option)) => format!("--set {option}: "),
        }
    }

    fn at(mut self, place: Option<Place>) -> Self {
        self.at = self.at.or(place);
        self
    }
}

fn line_of(text: &str, at: usize) -> Place {
    Place::Line(
        text.as_bytes()[..at.min(text.len())]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1,
    )
}

/// Every key of a document, dotted, with where it stands. Tables inside lists are layers, not ours.
fn keys_of(table: &DeTable<'_>, prefix: &str, found: &mut Vec<(String, usize)>) {
    for (key, value) in table.iter() {
        let path = if prefix.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{prefix}.{}", key.get_ref())
        };
        match value.get_ref() {
            DeValue::Table(table) if KEYS.iter().all(|k| k.path != path) => {
                if !KEYS.iter().any(|k| k.path.starts_with(&format!("{path}."))) {
                    found.push((path.clone(), key.span().start));
                }
                keys_of(table, &path, found);
            }
            _ => found.push((path, key.span().start)),
        }
    }
}

fn unknown_key(path: &str) -> Option<ExperimentError> {
    if KEYS.iter().any(|k| k.path == path) {
        return None;
    }
    if KEYS.iter().any(|k| k.path.starts_with(&format!("{path}."))) {
        let problem =
            format!("`{path}` is a table, not a key: set one of its keys, like {path}.KEY=VALUE");
        return Some(ExperimentError::new(None, problem));
    }
    // A right key in the wrong table is meant more often than a wrong key in the right one.
    let last = path.rsplit('.').next().unwrap_or(path);
    let elsewhere = KEYS
        .iter()
        .map(|k| k.path)
        .find(|k| k.rsplit('.').next() == Some(last));
    let keys = KEYS.iter().map(|k| k.path);
    // A table has no dot, and its name is near to a table's.
    let tables = keys
        .clone()
        .filter_map(|k| k.split_once('.'))
        .map(|(table, _)| table);
    let suggestion = elsewhere
        .or_else(|| nearest(path, keys))
        .or_else(|| nearest(path, tables).filter(|_| !path.contains('.')));
    let hint = match suggestion {
        Some(key) => format!("did you mean `{key}`?"),
        None => "`selvedge experiments --keys` lists all keys".into(),
    };
    Some(ExperimentError::new(
        None,
        format!("unknown key {}: {hint}", shown(path)),
    ))
}

/// A key as it was written; blanks and letters that nobody sees are made visible.
fn shown(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_graphic() && letter != '"';
    match path.chars().all(is_plain) {
        true => format!("`{path}`"),
        false => format!("{path:?}"),
    }
}

/// What serde expects, in words.
fn in_words(message: &str) -> String {
    let whole = "expected a whole number, 0 or more";
    let words = [
        ("expected u64", whole),
        ("expected usize", whole),
        ("expected u32", whole),
        ("expected f64", "expected a number"),
        ("expected a boolean", "expected true or false"),
        ("expected a sequence", "expected a list, like [1, 2]"),
        ("expected a string", "expected a text, like \"name\""),
        ("expected a map", "expected a table of keys"),
    ];
    let replace = |text: String, (from, to): (&str, &str)| match text.strip_suffix(from) {
        Some(before) => format!("{before}{to}"),
        None => text,
    };
    words.into_iter().fold(message.to_owned(), replace)
}

impl Sets {
    /// Reads an experiment, applies `--set key=value` overrides, fills in the defaults that depend on the data set, and
    /// checks it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line or its override.
    pub fn parse(&self, text: &str, overrides: &[String]) -> Result<Experiment, ExperimentError> {
        self.parse_seeing(text, overrides, &|_| None)
    }

    /// The same, where `look` says what the data is like, so that the layers that are left out fit it.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_seeing(
        &self,
        text: &str,
        overrides: &[String],
        look: &dyn Fn(&DataSettings) -> Option<Seen>,
    ) -> Result<Experiment, ExperimentError> {
        self.parse_as(text, overrides, look, false)
    }

    /// The same; `is_learning` where the optimiser that was left out is the one that learns most data well, whatever
    /// else is given.
    pub(super) fn parse_as(
        &self,
        text: &str,
        overrides: &[String],
        look: &dyn Fn(&DataSettings) -> Option<Seen>,
        is_learning: bool,
    ) -> Result<Experiment, ExperimentError> {
        let syntax = |e: toml::de::Error| {
            let place = e.span().map(|span| line_of(text, span.start));
            ExperimentError::new(None, in_words(e.message())).at(place)
        };
        let document = DeTable::parse(text).map_err(syntax)?;
        let mut keys = Vec::new();
        keys_of(document.get_ref(), "", &mut keys);
        for (path, at) in &keys {
            if let Some(error) = unknown_key(path) {
                return Err(error.at(Some(line_of(text, *at))));
            }
        }
        let mut experiment: Experiment = toml::from_str(text).map_err(syntax)?;
        if !overrides.is_empty() {
            let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
            for option in overrides {
                let place = Some(Place::Option(option.clone()));
                experiment = set(&mut table, option).map_err(|e| e.at(place))?;
            }
        }
        let overridden = overrides.iter().filter_map(|o| o.split('=').next());
        let given: Vec<String> = keys
            .iter()
            .map(|(path, _)| path.clone())
            .chain(overridden.map(|key| key.trim().to_owned()))
            .collect();
        if is_learning {
            experiment.optimiser = OptimiserSettings::learning(experiment.train.algorithm);
        }
        self.resolve(&mut experiment, look, &given);
        self.check(&experiment).map_err(|error| {
            let named = |path: &str| error.key.is_some_and(|key| key == path);
            let option = overrides
                .iter()
                .rev()
                .find(|o| o.split('=').next().is_some_and(|k| named(k.trim())))
                .map(|o| Place::Option(o.clone()));
            let line = keys
                .iter()
                .find(|(path, _)| named(path))
                .map(|(_, at)| line_of(text, *at));
            error.at(option.or(line))
        })?;
        Ok(experiment)
    }

    /// Reads a resolved experiment from a manifest.
    ///
    /// # Errors
    /// If it is not one, or does not pass the checks.
    pub fn from_json(&self, value: &serde_json::Value) -> Result<Experiment, ExperimentError> {
        let mut experiment: Experiment = serde_json::from_value(value.clone())
            .map_err(|e| ExperimentError::new(None, e.to_string()))?;
        let table = value.pointer("/data/table");
        // 0.2 ignored whatever is outside of the time window, and took the categories of all rows; its runs still do.
        if table.is_some_and(|table| table.get("outside").is_none()) {
            experiment.data.table.outside = "ignore".into();
            experiment.data.table.categories = "all".into();
        }
        let all: Vec<String> = KEYS.iter().map(|key| key.path.to_owned()).collect();
        self.resolve(&mut experiment, &|_| None, &all);
        self.check(&experiment)?;
        Ok(experiment)
    }

    fn check(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        check_values(experiment, Some((self.names)()))
            .map_err(|refused| ExperimentError::new(Some(refused.key), refused.to_string()))?;
        experiment.check()
    }
}

impl Experiment {
    /// The experiment as TOML, every key written out.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// What one key alone does not show.
    fn check(&self) -> Result<(), ExperimentError> {
        self.check_intervals()?;
        self.check_adaptive()?;
        self.check_rates()?;
        self.check_optimisers()?;
        self.check_defence()?;
        Compression::new(&self.compression)
            .map_err(|(key, problem)| ExperimentError::new(Some(key), problem))?;
        let steered = self.stop.seconds.is_some() && self.time.compute == Compute::Measured;
        require("stop.seconds", !steered, || {
            "stop.seconds needs time.compute = \"set\": measured time must not affect a run".into()
        })?;
        for (key, layers) in [
            ("model.hospital", self.model.hospital()),
            ("model.device", self.model.device()),
            ("model.combined", self.model.combined()),
        ] {
            require(key, !layers.is_empty(), || {
                format!(
                    "{key} = [] has no layers: give at least one, like [{{ linear = {{ out = 16 }} }}]"
                )
            })?;
        }
        Ok(())
    }

    fn check_intervals(&self) -> Result<(), ExperimentError> {
        let t = &self.train;
        let (q, p, total) = (t.local_interval, t.global_interval, t.iterations);
        require("train.local_interval", p.is_multiple_of(q), || {
            format!(
                "train.global_interval = {p} is not a multiple of train.local_interval = {q}: use train.local_interval = {}",
                divisors(p, q)
            )
        })?;
        require("train.iterations", total.is_multiple_of(p), || {
            let (below, above) = (total / p * p, total.div_ceil(p).saturating_mul(p));
            let right = if below == 0 {
                above.to_string()
            } else {
                format!("{below} or {above}")
            };
            format!(
                "train.iterations = {total} is not a multiple of train.global_interval = {p}: use {right}"
            )
        })
    }

    fn check_defence(&self) -> Result<(), ExperimentError> {
        let name = self.train.algorithm.name();
        let can = matches!(self.train.algorithm, Algorithm::Hsgd | Algorithm::CHsgd);
        require("defence.devices", can || self.defence.is_usual(), || {
            format!("[defence] works with hsgd and c-hsgd only, not with {name}: leave it out")
        })?;
        require("attack.kind", can || self.attack.is_none(), || {
            format!("[attack] works with hsgd and c-hsgd only, not with {name}: leave it out")
        })?;
        let AttackSettings {
            kind,
            devices,
            hospitals,
            edges,
            ..
        } = &self.attack;
        let nobody = *devices == 0.0 && *hospitals == 0 && *edges == 0;
        require("attack.kind", *kind == AttackKind::None || !nobody, || {
            "attack.kind is set, but nobody is hostile: set attack.devices, attack.hospitals or attack.edges".into()
        })
    }

    fn check_rates(&self) -> Result<(), ExperimentError> {
        let t = &self.train;
        let cosine = t.schedule == Fall::Cosine;
        require("train.halve_every", !cosine || t.halve_every == 0, || {
            let halve = t.halve_every;
            format!(
                "train.halve_every = {halve}: with train.schedule = \"cosine\" nothing is halved: use 0"
            )
        })?;
        require("train.warm_up", t.warm_up < t.iterations, || {
            let (warm_up, all) = (t.warm_up, t.iterations);
            format!("train.warm_up = {warm_up} must be less than train.iterations = {all}")
        })
    }

    fn check_optimisers(&self) -> Result<(), ExperimentError> {
        let (o, algorithm) = (&self.optimiser, self.train.algorithm);
        let parties = [
            ("optimiser.hospital", o.hospital, algorithm.has_hospitals()),
            ("optimiser.edge", o.edge.into(), algorithm.has_edges()),
            ("optimiser.cloud", o.cloud.into(), algorithm.has_a_cloud()),
        ];
        for (key, method, can) in parties {
            require(key, can || method == Method::Sgd, || {
                let (key, party) = (key, key.rsplit('.').next().unwrap_or_default());
                format!(
                    "{key}: in {algorithm} no {party} remembers anything from step to step: use \"sgd\""
                )
            })?;
        }
        let decays = self.train.weight_decay > 0.0 || self.train.combined_weight_decay > 0.0;
        require(
            "optimiser.hospital",
            o.hospital != Method::AdamW || decays,
            || {
                "optimiser.hospital = \"adamw\" is \"adam\" without weight decay: set train.weight_decay (0.01 is usual), or use \"adam\"".into()
            },
        )
    }

    fn check_adaptive(&self) -> Result<(), ExperimentError> {
        let t = &self.train;
        if t.adaptive == Adaptive::Off {
            return Ok(());
        }
        let (name, key) = (t.algorithm.name(), "train.adaptive");
        let can = matches!(t.algorithm, Algorithm::Hsgd | Algorithm::CHsgd);
        require(key, can, || {
            format!("{key}: only hsgd and c-hsgd can be steered, not {name}: use \"off\"")
        })?;
        require("train.halve_every", t.halve_every == 0, || {
            let halve = t.halve_every;
            format!("train.halve_every = {halve}: {key} chooses η, so use 0")
        })?;
        let fixed = t.schedule == Fall::Halving && t.warm_up == 0;
        require("train.schedule", fixed, || {
            format!("{key} chooses η: leave out train.schedule and train.warm_up")
        })?;
        require("train.adaptive", self.optimiser.is_usual(), || {
            format!(
                "{key} compares what plain gradient descent promises with what it gains: leave out [optimiser]"
            )
        })
    }
}

/// Applies one override to a document and reads it again.
fn set(table: &mut toml::Table, option: &str) -> Result<Experiment, ExperimentError> {
    let wrong = |message: String| ExperimentError::new(None, message);
    let Some((path, value)) = option.split_once('=') else {
        return Err(wrong("use key=value, like train.iterations=500".into()));
    };
    let (path, value) = (path.trim(), value.trim());
    if let Some(error) = unknown_key(path) {
        return Err(error);
    }
    // What is no TOML value is text whose quotes the shell took.
    let value = match format!("v = {value}").parse::<toml::Table>() {
        Ok(mut parsed) => parsed.remove("v").unwrap_or(toml::Value::Boolean(false)),
        Err(_) => toml::Value::String(value.into()),
    };
    let mut inner = &mut *table;
    let mut words = path.split('.').peekable();
    while let Some(word) = words.next() {
        if words.peek().is_none() {
            inner.insert(word.into(), value);
            break;
        }
        let entry = inner
            .entry(word)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        inner = entry
            .as_table_mut()
            .ok_or_else(|| wrong(format!("`{word}` is not a table")))?;
    }
    // As text again, so that an experiment is compiled for one reader of TOML and not for two.
    let text = toml::to_string(table).map_err(|e| wrong(e.to_string()))?;
    toml::from_str(&text).map_err(|e| wrong(in_words(e.message())))
}

fn require(
    key: &'static str,
    holds: bool,
    message: impl FnOnce() -> String,
) -> Result<(), ExperimentError> {
    if holds {
        Ok(())
    } else {
        Err(ExperimentError::new(Some(key), message()))
    }
}

/// The divisors of `p` on either side of `q`, in words.
fn divisors(p: u64, q: u64) -> String {
    // Near `q` only: the divisors of a large number are far apart, and 1 is always one.
    const NEAR: u64 = 100_000;
    let divides = |d: &u64| p.is_multiple_of(*d);
    let below = (1..q.min(p))
        .rev()
        .take(NEAR as usize)
        .find(divides)
        .or(Some(1));
    let above = (q.saturating_add(1)..=p.min(q.saturating_add(NEAR)))
        .find(divides)
        .or(Some(p));
    match (below, above) {
        (Some(below), Some(above)) => format!("{below} or {above}"),
        (Some(one), None) | (None, Some(one)) => one.to_string(),
        (None, None) => "1".into(),
    }
}

#[cfg(test)]
mod tests;
