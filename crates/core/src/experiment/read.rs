//! From text to a checked experiment.

use super::keys::{KEYS, nearest, one_of};
use super::{Adaptive, Algorithm, Compute, Experiment, KeyInfo};
use crate::compression::Compression;
use crate::metrics::Better;
use toml::de::{DeTable, DeValue};

/// What is wrong with an experiment. The message has the line or the option, the key, the value, and what
/// would be right.
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
        format!("unknown key `{path}`: {hint}"),
    ))
}

impl Experiment {
    /// Reads an experiment, applies `--set key=value` overrides, fills in the defaults that depend on the data
    /// set, and checks it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line or its override.
    pub fn parse(text: &str, overrides: &[String]) -> Result<Self, ExperimentError> {
        let syntax = |e: toml::de::Error| {
            let place = e.span().map(|span| line_of(text, span.start));
            ExperimentError::new(None, e.message().to_owned()).at(place)
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
        experiment.resolve();
        experiment.check().map_err(|error| {
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
    pub fn from_json(value: &serde_json::Value) -> Result<Self, ExperimentError> {
        let mut experiment: Experiment = serde_json::from_value(value.clone())
            .map_err(|e| ExperimentError::new(None, e.to_string()))?;
        experiment.resolve();
        experiment.check()?;
        Ok(experiment)
    }

    /// The experiment as TOML, every key written out.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    fn check(&self) -> Result<(), ExperimentError> {
        self.check_train()?;
        Compression::new(&self.compression)
            .map_err(|(key, problem)| ExperimentError::new(Some(key), problem))?;
        self.check_time_and_stop()?;
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

    fn check_train(&self) -> Result<(), ExperimentError> {
        let t = &self.train;
        let drawn = &t.selection;
        require("train.selection", drawn == "uniform", || {
            format!(
                "train.selection = \"{drawn}\": {}",
                one_of(drawn, &["uniform"])
            )
        })?;
        for (key, value) in [
            ("train.iterations", t.iterations),
            ("train.global_interval", t.global_interval),
            ("train.local_interval", t.local_interval),
            ("train.evaluate_every", t.evaluate_every.unwrap_or(1)),
        ] {
            require(key, value >= 1, || {
                format!("{key} = {value} must be at least 1")
            })?;
        }
        let (q, p, total) = (t.local_interval, t.global_interval, t.iterations);
        require("train.local_interval", p.is_multiple_of(q), || {
            format!(
                "train.local_interval = {q} does not divide train.global_interval = {p}: use {}",
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
                "train.global_interval = {p} does not divide train.iterations = {total}: use {right} iterations"
            )
        })?;
        positive("train.learning_rate", t.learning_rate)?;
        self.check_adaptive()?;
        let alpha = t.participation;
        require("train.participation", alpha > 0.0 && alpha <= 1.0, || {
            let problem = if alpha > 1.0 {
                "is more than all devices"
            } else {
                "gives no device"
            };
            format!("train.participation = {alpha} {problem}: it must be above 0 and at most 1")
        })?;
        let decay = t.weight_decay;
        require(
            "train.weight_decay",
            decay >= 0.0 && decay.is_finite(),
            || format!("train.weight_decay = {decay} must be 0 or more"),
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
        })
    }

    fn check_time_and_stop(&self) -> Result<(), ExperimentError> {
        let t = &self.time;
        for (key, value) in [
            ("time.mobile_up", t.mobile_up),
            ("time.mobile_down", t.mobile_down),
            ("time.fixed_up", t.fixed_up),
            ("time.fixed_down", t.fixed_down),
        ] {
            positive(key, value)?;
            require(key, (1.0..=1e15).contains(&value), || {
                format!("{key} = {value:e} bit/s must be at least 1 and at most 1e15")
            })?;
        }
        for (key, value) in [
            ("time.compute_seconds", t.compute_seconds()),
            ("time.compute_scale", t.compute_scale),
        ] {
            require(key, (0.0..=1e6).contains(&value), || {
                format!("{key} = {value:e} must be at least 0 and at most 1e6")
            })?;
        }
        let s = &self.stop;
        for (metric, value) in s.targets() {
            let Some(KeyInfo { path: key, .. }) = metric.stop else {
                continue;
            };
            if metric.better == Better::Lower {
                positive(key, value)?;
                continue;
            }
            require(key, value > 0.0 && value <= 1.0, || {
                format!(
                    "{key} = {value} can never be told from the start or never be reached: use a value above 0 and at most 1"
                )
            })?;
        }
        for (key, value) in [("stop.bytes", s.bytes), ("stop.seconds", s.seconds)] {
            positive(key, value.unwrap_or(1.0))?;
        }
        let steered = s.seconds.is_some() && t.compute == Compute::Measured;
        require("stop.seconds", !steered, || {
            "stop.seconds needs time.compute = \"set\": measured time never steers a run".into()
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
    table
        .clone()
        .try_into()
        .map_err(|e: toml::de::Error| wrong(e.message().to_owned()))
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

fn positive(key: &'static str, value: f64) -> Result<(), ExperimentError> {
    require(key, value > 0.0 && value.is_finite(), || {
        format!("{key} = {value} must be above 0")
    })
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
mod tests {
    use super::*;
    use crate::metrics::Metric;

    fn error(text: &str) -> String {
        Experiment::parse(text, &[]).unwrap_err().to_string()
    }

    /// Dotted keys of a JSON object; lists and plain values are leaves.
    fn leaves(value: &serde_json::Value, prefix: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    let path = if prefix.is_empty() {
                        key.clone()
                    } else {
                        format!("{prefix}.{key}")
                    };
                    leaves(value, &path, found);
                }
            }
            _ => found.push(prefix.into()),
        }
    }

    #[test]
    fn the_table_of_keys_is_the_keys_there_are() {
        let mut experiment = Experiment::parse("", &[]).unwrap();
        let some = Some(0.5);
        experiment.train.raw_bytes = Some(1);
        experiment.train.adaptive = Adaptive::Gain;
        let compression = &mut experiment.compression;
        for codec in [
            &mut compression.theta0,
            &mut compression.zeta1,
            &mut compression.zeta2,
        ] {
            *codec = Some("none".into());
        }
        let stop = &mut experiment.stop;
        Metric::targets().for_each(|metric| stop.set_target(metric.name, 0.5));
        (stop.bytes, stop.seconds) = (some, some);
        // A table that says nothing is not written.
        experiment.data.table.id = "patient".into();
        let mut found = Vec::new();
        leaves(&serde_json::to_value(&experiment).unwrap(), "", &mut found);
        let mut listed: Vec<_> = KEYS.iter().map(|k| k.path.to_owned()).collect();
        found.sort();
        listed.sort();
        assert_eq!(found, listed);
    }

    #[test]
    fn an_experiment_survives_both_formats() {
        let text =
            "seed = 7\n[data]\nfeatures = 10\n[train]\nclass_weights = [1, 2]\n[stop]\nauc = 0.9";
        let experiment = Experiment::parse(text, &[]).unwrap();
        assert_eq!(
            Experiment::parse(&experiment.to_toml(), &[]).unwrap(),
            experiment
        );
        let json = serde_json::to_value(&experiment).unwrap();
        assert_eq!(Experiment::from_json(&json).unwrap(), experiment);
    }

    #[test]
    fn mistakes_are_named_with_line_value_and_remedy() {
        for (text, message) in [
            ("sed = 1", "line 1: unknown key `sed`: did you mean `seed`?"),
            (
                "[train]\n\nlocal_intervall = 1",
                "line 3: unknown key `train.local_intervall`: did you mean `train.local_interval`?",
            ),
            (
                "[data]\nseed = 1",
                "line 2: unknown key `data.seed`: did you mean `seed`?",
            ),
            (
                "[trian]\niterations = 1",
                "line 1: unknown key `trian`: did you mean `train`?",
            ),
            (
                "[train]\nlocal_interval = 3",
                "line 2: train.local_interval = 3 does not divide train.global_interval = 10: use 2 or 5",
            ),
            (
                "[train]\niterations = 15",
                "line 2: train.global_interval = 10 does not divide train.iterations = 15: use 10 or 20 iterations",
            ),
            (
                "[train]\nparticipation = 0.0",
                "line 2: train.participation = 0 gives no device: it must be above 0 and at most 1",
            ),
            (
                "[train]\nlearning_rate = -1",
                "line 2: train.learning_rate = -1 must be above 0",
            ),
            (
                "[model]\ndevice = []",
                "line 2: model.device = [] has no layers: give at least one, like [{ linear = { out = 16 } }]",
            ),
        ] {
            assert_eq!(error(text), message);
        }
        for (text, part) in [
            (
                "[train]\niterations = \"many\"",
                "line 2: invalid type: string \"many\", expected u64",
            ),
            (
                "[train]\niterations = -5",
                "line 2: invalid value: integer `-5`, expected u64",
            ),
            ("seed = ", "line 1"),
            (
                "[model]\ndevice = [{ lstmm = { hidden = 3 } }]",
                "line 2: unknown variant `lstmm`, expected one of `linear`",
            ),
            (
                "[model]\ndevice = [\"lstm\"]",
                "layer `lstm` needs its size: { lstm = { hidden = 16 } }",
            ),
            (
                "[data]\nfeatures = 7",
                "features = 7 cannot be cut in halves: give both sides, like [4, 3]",
            ),
        ] {
            let message = error(text);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn overrides_win_and_their_mistakes_name_them() {
        let set =
            |option: &str| Experiment::parse("[train]\niterations = 50", &[option.to_owned()]);
        assert_eq!(set("train.iterations=70").unwrap().train.iterations, 70);
        assert_eq!(set("data.set=synthetic").unwrap().data.set, "synthetic");
        assert_eq!(
            set("data.features = [3, 4]")
                .unwrap()
                .data
                .features
                .device
                .len(),
            4
        );
        let message = |option| set(option).unwrap_err().to_string();
        assert_eq!(
            message("train.iterations=15"),
            "--set train.iterations=15: train.global_interval = 10 does not divide train.iterations = 15: use 10 or 20 iterations"
        );
        assert!(
            message("train.iterations=x").starts_with("--set train.iterations=x: invalid type")
        );
        assert!(message("iterations=5").contains("did you mean `train.iterations`?"));
        assert!(message("train.iterations").contains("use key=value"));
    }
}
