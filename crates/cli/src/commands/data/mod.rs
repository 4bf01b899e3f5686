//! `selvedge data …`: look at a set, measure it, cut it into shards, write it for others.

mod draw;
mod inspect;
mod shards;

pub(super) use inspect::inspect;
pub(super) use shards::split;

use crate::args::ExperimentArgs;
use crate::{Outcome, files, load};
use anyhow::Result;
use selvedge_core::experiment::Experiment;
use selvedge_run::files::{write_json, write_whole_with};
use selvedge_run::outputs::{Kind, Output};
use std::io::{BufWriter, Write};
use std::path::Path;

/// `selvedge data export`
pub(super) fn export(args: &ExperimentArgs, out: &Path) -> Result<Outcome> {
    let named = load::experiment(args)?;
    check(args, &named.experiment, (out, Kind::Export))?;
    let dataset = load::dataset(&named.experiment, &args.data)?;
    load::check_run(args, &dataset)?;
    files::leave_nothing_when_interrupted(out)?;
    write_whole_with(out, |file| {
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
    if let Some(out) = out {
        check(args, &named.experiment, (out, Kind::Statistics))?;
    }
    let statistics = load::data(&named.experiment, &args.data)?.statistics;
    let json = statistics.to_json();
    let Some(out) = out else {
        super::print_json(&json)?;
        return Ok(Outcome::Done);
    };
    write_json(out, &json)?;
    crate::say(&format!(
        "statistics of {} training rows written to {}, fingerprint {}",
        statistics.rows,
        out.display(),
        statistics.fingerprint()
    ));
    Ok(Outcome::Done)
}

fn check(
    args: &ExperimentArgs,
    experiment: &Experiment,
    (path, kind): (&Path, Kind),
) -> Result<()> {
    let option = "--out";
    let output = Output { option, path, kind };
    Ok(output.check(&load::files_of(args, experiment))?)
}
