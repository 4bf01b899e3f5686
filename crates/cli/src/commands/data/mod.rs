//! `selvedge data …`: look at a set, measure it, cut it into shards, write it for others.

mod draw;
mod inspect;
mod known;
mod shards;

pub(super) use inspect::inspect;
pub(super) use shards::split;

use crate::args::ExperimentArgs;
use crate::{Outcome, load};
use anyhow::Result;
use selvedge_data::Statistics;
use selvedge_run::outputs::{Kind, Output};
use serde_json::Value;
use std::io::{BufWriter, Write};
use std::path::Path;

/// `selvedge data export`
pub(super) fn export(args: &ExperimentArgs, out: &Path) -> Result<Outcome> {
    let named = load::experiment(args)?;
    let output = output(out, Kind::Export);
    output.check(&load::files_of(args, &named.experiment))?;
    let dataset = load::dataset(&named.experiment, &args.data)?;
    load::check_run(args, &dataset)?;
    output.write_with(|file| {
        let mut writer = BufWriter::new(file);
        selvedge_data::write_npz(&dataset, &mut writer)?;
        writer.flush()
    })?;
    crate::say(&format!(
        "{} groups and the test samples written to {}",
        dataset.groups.len(),
        out.display()
    ));
    Ok(Outcome::Done)
}

/// `selvedge data stats`
pub(super) fn stats(args: &ExperimentArgs, out: Option<&Path>) -> Result<Outcome> {
    let named = load::experiment(args)?;
    let output = out.map(|path| output(path, Kind::Known("statistics", &is_statistics)));
    if let Some(output) = &output {
        output.check(&load::files_of(args, &named.experiment))?;
    }
    let statistics = load::data(&named.experiment, &args.data)?.statistics;
    let json = statistics.to_json();
    let Some(output) = output else {
        super::print_json(&json)?;
        return Ok(Outcome::Done);
    };
    output.write(text(&json)?)?;
    crate::say(&format!(
        "statistics of {} training rows written to {}, fingerprint {}",
        statistics.rows,
        output.path.display(),
        statistics.fingerprint()
    ));
    Ok(Outcome::Done)
}

fn text(json: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(json)? + "\n")
}

/// They have a fingerprint, and nothing else: so they are the very file that shards have.
fn is_statistics(written: &str) -> bool {
    let value = serde_json::from_str(written).ok();
    let statistics = value.and_then(|value| Statistics::from_json(value).ok());
    let again = statistics.and_then(|statistics| text(&statistics.to_json()).ok());
    again.is_some_and(|again| again == written)
}

fn output<'a>(path: &'a Path, kind: Kind<'a>) -> Output<'a> {
    let option = "--out";
    Output { option, path, kind }
}
