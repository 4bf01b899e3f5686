//! The label of a series: what distinguishes it from the others.

use super::{Run, Series};
use crate::error::Result;
use selvedge_core::experiment::{Experiment, KEYS};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A longer text is cut: labels stand in legends.
const LONGEST_VALUE: usize = 32;

/// With more keys than this, only as many are named as are needed.
const MOST_KEYS: usize = 3;

/// A series that has no label yet.
pub(super) struct Unlabelled {
    /// What a comparison calls it.
    pub(super) variant: Option<String>,
    /// Its experiment but for the seed.
    pub(super) keys: BTreeMap<String, String>,
    pub(super) runs: Vec<Run>,
}

/// Every key of an experiment but the seed, dotted, with its value as text.
pub(super) fn keys(experiment: &Experiment) -> Result<BTreeMap<String, String>> {
    let mut found = flat(&serde_json::to_value(experiment)?);
    found.remove("seed");
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let found = found.into_iter();
    Ok(found.map(|(key, value)| (key, text(value))).collect())
}

/// Every value of an experiment by its key, dotted.
pub(crate) fn flat(experiment: &Value) -> BTreeMap<String, Value> {
    fn walk(value: &Value, path: String, found: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(table) if !KEYS.iter().any(|key| key.path == path) => {
                for (key, value) in table {
                    let dot = if path.is_empty() { "" } else { "." };
                    walk(value, format!("{path}{dot}{key}"), found);
                }
            }
            value => _ = found.insert(path, value.clone()),
        }
    }
    let mut found = BTreeMap::new();
    walk(experiment, String::new(), &mut found);
    found
}

/// Gives every series a label of its own.
pub(super) fn label(groups: Vec<Unlabelled>) -> Vec<Series> {
    let variants: Option<Vec<String>> = groups.iter().map(|g| g.variant.clone()).collect();
    let labels = match variants {
        Some(variants) if are_distinct(&variants) => variants,
        _ => distinct(&groups, labels_by_difference(&groups)),
    };
    let series = |(group, label): (Unlabelled, String)| Series {
        label,
        runs: group.runs,
    };
    groups.into_iter().zip(labels).map(series).collect()
}

fn are_distinct(labels: &[String]) -> bool {
    labels.iter().collect::<BTreeSet<_>>().len() == labels.len()
}

/// The keys whose values are not the same in all series, in the order of an experiment.
pub(super) fn differing(all: &[&BTreeMap<String, String>]) -> Vec<String> {
    let position = |key: &String| KEYS.iter().position(|k| k.path == key);
    let names: BTreeSet<&String> = all.iter().flat_map(|keys| keys.keys()).collect();
    let differs = |key: &&&String| {
        let key: &String = key;
        all.iter().any(|keys| keys.get(key) != all[0].get(key))
    };
    let mut names: Vec<String> = names.iter().filter(differs).map(|k| (*k).clone()).collect();
    names.sort_by_key(|name| (position(name).is_none(), position(name)));
    names
}

/// Those that count: codecs of an algorithm that compresses nothing do not.
fn that_count(keys: &BTreeMap<String, String>, run: &Run) -> BTreeMap<String, String> {
    let compresses = run.experiment.train.algorithm.compresses();
    let counts = |key: &str| compresses || !key.starts_with("compression.");
    let counting = keys.iter().filter(|(key, _)| counts(key));
    counting.map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn labels_by_difference(groups: &[Unlabelled]) -> Vec<String> {
    let all: Vec<&BTreeMap<String, String>> = groups.iter().map(|g| &g.keys).collect();
    let mut keys = differing(&all);
    let count = groups.iter().map(|g| that_count(&g.keys, &g.runs[0]));
    let count: Vec<BTreeMap<String, String>> = count.collect();
    let all: Vec<&BTreeMap<String, String>> = count.iter().collect();
    if keys.is_empty() {
        return groups
            .iter()
            .map(|g| g.runs[0].manifest.name.clone())
            .collect();
    }
    // It follows from P and T unless it is set, and then it seldom is what one wants to see.
    let without: Vec<String> = keys
        .iter()
        .filter(|k| *k != "train.evaluate_every")
        .cloned()
        .collect();
    if are_distinct(&texts(&all, &without)) {
        keys = without;
    }
    if keys.len() > MOST_KEYS {
        let enough = (1..keys.len()).find(|n| are_distinct(&texts(&all, &keys[..*n])));
        keys.truncate(enough.unwrap_or(keys.len()));
    }
    texts(&all, &keys)
}

fn texts(all: &[&BTreeMap<String, String>], keys: &[String]) -> Vec<String> {
    let text = |values: &&BTreeMap<String, String>| {
        let counts = |key: &&String| values.contains_key(*key) || !key.starts_with("compression.");
        let parts = keys.iter().filter(counts);
        let parts = parts.map(|key| part(key, values.get(key)));
        parts.collect::<Vec<_>>().join(", ")
    };
    all.iter().map(text).collect()
}

/// `key=value`, the key without its table where that is enough; an algorithm needs no key.
fn part(key: &str, value: Option<&String>) -> String {
    let value = value.map_or("–", String::as_str);
    let mut shown: String = value.chars().take(LONGEST_VALUE).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    match key {
        "train.algorithm" => shown,
        _ => format!("{}={shown}", short(key)),
    }
}

/// A key without its table, if no other table has a key of that name.
pub(super) fn short(key: &str) -> &str {
    let name = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let last = key.rsplit('.').next().unwrap_or(key);
    let same = KEYS.iter().filter(|k| name(k.path) == last).count();
    if same <= 1 { last } else { key }
}

/// Labels that are the same get the comparison's word or, failing that, the folder behind them.
fn distinct(groups: &[Unlabelled], labels: Vec<String>) -> Vec<String> {
    let is_double = |label: &String| labels.iter().filter(|l| *l == label).count() > 1;
    let named = |(group, label): (&Unlabelled, &String)| match (&group.variant, is_double(label)) {
        (_, false) => label.clone(),
        (Some(variant), true) => format!("{variant}: {label}"),
        (None, true) => format!("{label} ({})", group.runs[0].path.display()),
    };
    groups.iter().zip(&labels).map(named).collect()
}

/// The keys in which series differ, each with its value in every series.
pub fn differences(series: &[Series]) -> Vec<(String, Vec<String>)> {
    // An experiment that was read is written again without fail.
    let all: Vec<BTreeMap<String, String>> = series
        .iter()
        .filter_map(|s| keys(&s.first().experiment).ok())
        .collect();
    let names = differing(&all.iter().collect::<Vec<_>>());
    let count = all.iter().zip(series);
    let count = count.map(|(keys, s)| that_count(keys, s.first()));
    let count: Vec<BTreeMap<String, String>> = count.collect();
    let values = |key: &String| {
        let value =
            |keys: &BTreeMap<String, String>| keys.get(key).map_or("–".into(), Clone::clone);
        count.iter().map(value).collect()
    };
    names
        .into_iter()
        .map(|key| (key.clone(), values(&key)))
        .collect()
}
