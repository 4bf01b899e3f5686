//! `selvedge experiments`

use super::{print, print_json};
use crate::Outcome;
use crate::args::ExperimentsArgs;
use anyhow::{Context, Result};
use selvedge_core::experiment::{KEYS, KeyInfo, nearest};
use selvedge_data::SETS;
use selvedge_run::presets::{self, PRESETS};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) fn run(args: &ExperimentsArgs) -> Result<Outcome> {
    if let Some(name) = &args.show {
        let preset = presets::find(name).with_context(|| {
            let hint = nearest(name, PRESETS.iter().map(|p| p.name));
            let hint = hint.map_or("`selvedge experiments` lists them".into(), |n| {
                format!("did you mean `{n}`?")
            });
            format!("no experiment `{name}`: {hint}")
        })?;
        print(preset.text)?;
    } else if args.keys {
        keys(args.json)?;
    } else {
        list(args.json)?;
    }
    Ok(Outcome::Done)
}

fn list(json: bool) -> Result<()> {
    if json {
        let list = PRESETS
            .iter()
            .map(|p| json!({ "name": p.name, "about": p.about() }));
        return print_json(&Value::Array(list.collect()));
    }
    let width = PRESETS.iter().map(|p| p.name.len()).max().unwrap_or(0);
    let lines = PRESETS
        .iter()
        .map(|p| format!("{:<width$}  {}\n", p.name, p.about()));
    print(&lines.collect::<String>())
}

/// What an experiment that says nothing is resolved to, key by key.
pub(crate) fn default_values() -> Result<BTreeMap<&'static str, Value>> {
    let settings = SETS.parse("", &[])?.settings().into_iter();
    let value = |(key, value): (KeyInfo, _)| Ok((key.path, serde_json::to_value(value)?));
    settings.map(value).collect()
}

/// Every key with its type, default, values and meaning.
fn keys(json: bool) -> Result<()> {
    let defaults = default_values()?;
    let default = |path: &str| &defaults[path];
    if json {
        let list = KEYS.iter().map(|k| {
            let values = SETS.values(k);
            json!({
                "key": k.path,
                "type": values.kind(),
                "default": default(k.path),
                "values": values.to_string(),
                "meaning": SETS.meaning(k),
            })
        });
        return print_json(&Value::Array(list.collect()));
    }
    let text = |path: &str| match default(path) {
        Value::Null => "–".to_owned(),
        value => value.to_string(),
    };
    let lines = KEYS.iter().map(|k| {
        let default = text(k.path);
        // Layers are long: they come last on a line of their own.
        let (short, long) = if default.len() <= 12 {
            (default, String::new())
        } else {
            (String::new(), format!("\n    {default}"))
        };
        let values = SETS.values(k).to_string();
        let values = match values.is_empty() {
            true => values,
            false => format!(" [{values}]"),
        };
        format!(
            "{:<26}{short:<14}{}{values}{long}\n",
            k.path,
            SETS.meaning(k)
        )
    });
    print(&format!(
        "{:<26}{:<14}meaning\n{}",
        "key",
        "default",
        lines.collect::<String>()
    ))
}
