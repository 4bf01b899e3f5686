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
use selvedge_run::outputs::{Kind, Output};
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
    let output = out.map(|path| output(path, Kind::Statistics));
    if let Some(output) = &output {
        output.check(&load::files_of(args, &named.experiment))?;
    }
    let statistics = load::data(&named.experiment, &args.data)?.statistics;
    let mut json = statistics.to_json();
    let Some(output) = output else {
        super::print_json(&json)?;
        return Ok(Outcome::Done);
    };
    json["seal"] = output.kind.blank().into();
    output.write(serde_json::to_string_pretty(&json)? + "\n")?;
    crate::say(&format!(
        "statistics of {} training rows written to {}, fingerprint {}",
        statistics.rows,
        output.path.display(),
        statistics.fingerprint()
    ));
    Ok(Outcome::Done)
}

fn output<'a>(path: &'a Path, kind: Kind<'a>) -> Output<'a> {
    let option = "--out";
    Output { option, path, kind }
}
