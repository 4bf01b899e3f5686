//! Every key of an experiment.

use super::NOTE;
use crate::commands::experiments::default_values;
use anyhow::Result;
use selvedge_core::experiment::{KEYS, KeyInfo};
use selvedge_data::SETS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The tables of an experiment, in the order of their keys, and what each is about.
const TABLES: [(&str, &str); 10] = [
    ("data", "Which rows, and how they are assigned to groups."),
    (
        "data.table",
        "What the columns of your own table mean; [own-table.md](../own-table.md) shows all of them in use.",
    ),
    ("train", "The algorithm and its parameters."),
    (
        "optimiser",
        "How gradients become steps: at hospitals along the mean gradient of a batch, at edges and the cloud along the difference \
         between a model and the aggregate of others. [Optimisers](../tuning.md#optimisers) says what each tier can do.",
    ),
    (
        "model",
        "The three networks. A layer is `{ linear = { out = 16 } }`, `{ conv1d = { out, size, stride = 1, padding = 0 } }`, \
         `{ conv2d = … }` likewise, `{ maxpool = { size = 2 } }`, `\"relu\"`, `\"tanh\"`, `\"flatten\"`, `{ window = { size = 8 } }`, \
         `{ lstm = { hidden = 16 } }`, `{ gru = { hidden = 16 } }` or another of [Layers](../models.md#layers). If left out, they are chosen for the data set: the defaults here \
         are those of `synthetic`.",
    ),
    (
        "compression",
        "How `c-hsgd` and `c-tdcd` compress messages. Other algorithms send everything uncompressed.",
    ),
    (
        "defence",
        "What is done about parties that send what they should not: [Defences](../defences.md) says what each key is worth.",
    ),
    (
        "attack",
        "Hostile parties, to try out defences in a simulation. Who is hostile follows from the seed; the first hospitals of that \
         order are, and the first edges.",
    ),
    (
        "time",
        "The simulated clock. It affects `seconds` and nothing else.",
    ),
    (
        "stop",
        "Targets, budgets and patience that end a run early, at a global aggregation. They may be changed when a run is resumed.",
    ),
];

/// The page.
pub(super) fn page() -> Result<String> {
    let defaults = default_values()?;
    let mut out = format!(
        "# Keys of an experiment\n\n{NOTE}\n\nAn experiment is a TOML file; any key can also be set by `--set KEY=VALUE`. \
         A key that is left out has its default; – means that there is none, or that it follows from other keys.\n"
    );
    let alone = KEYS.iter().filter(|key| !key.path.contains('.'));
    out += &table(alone, &defaults);
    for (name, about) in TABLES {
        let _ = write!(out, "\n## {name}\n\n{about}\n");
        let own = KEYS.iter().filter(|key| parent(key) == name);
        out += &table(own, &defaults);
    }
    Ok(out)
}

/// The table that a key is in.
fn parent(key: &KeyInfo) -> &'static str {
    key.path.rsplit_once('.').map_or("", |(table, _)| table)
}

fn table<'a>(keys: impl Iterator<Item = &'a KeyInfo>, defaults: &BTreeMap<&str, Value>) -> String {
    let mut out = String::from(
        "\n| key | type | default | values | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for key in keys {
        let values = SETS.values(key);
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            key.path,
            values.kind(),
            shown(&defaults[key.path]),
            cell(&values.to_string()),
            cell(&SETS.meaning(key))
        );
    }
    out
}

/// A default as TOML would have it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".into(),
        value => format!("`{}`", cell(&value.to_string())),
    }
}

/// A bar ends a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
