//! `absences.jsonl`: who was absent, as deployments record it and simulations replay it.

use crate::error::{Context, Result, bail};
use crate::files::{ABSENCES, read_bytes, write_whole};
use crate::lines::{line, numbered};
use selvedge_core::absence::Listed;
use selvedge_core::dataset::{Dataset, Group};
use selvedge_core::experiment::Experiment;
use selvedge_core::role::{Absence, Phase};
use std::path::{Path, PathBuf};

/// The absence of a line.
///
/// # Errors
/// A message, if the line is damaged.
pub fn parse(line: &[u8]) -> std::result::Result<Absence, String> {
    serde_json::from_slice(line).map_err(|e| e.to_string())
}

/// Reads the absences that deployments have recorded: files, or folders with `absences.jsonl` anywhere below.
///
/// # Errors
/// If there is none, or one is damaged.
pub fn read(paths: &[PathBuf]) -> Result<Listed> {
    let mut listed = Listed::default();
    for path in paths {
        let mut files = Vec::new();
        match path.is_dir() {
            true => find(path, &mut files)?,
            false => files.push(path.clone()),
        }
        if files.is_empty() {
            bail!("{}: it has no {ABSENCES}", path.display());
        }
        for file in files {
            add(&file, &mut listed)?;
        }
    }
    Ok(listed)
}

/// Refuses absences that cannot belong to this experiment.
///
/// # Errors
/// If there is one.
pub fn check(listed: &Listed, experiment: &Experiment, dataset: &Dataset) -> Result<()> {
    for Absence {
        t, group, device, ..
    } in listed.all()
    {
        let there = dataset.groups.get(group).map(Group::devices);
        let fits = there.is_some_and(|all| device.is_none_or(|n| (n as usize) < all));
        if !fits || t > experiment.train.iterations {
            let who = device.map_or(String::new(), |n| format!("device {n} of "));
            bail!(
                "--replay: {who}group {group} was absent at t = {t}, but this experiment has {} groups and {} iterations: replay the experiment that was deployed",
                dataset.groups.len(),
                experiment.train.iterations
            );
        }
    }
    Ok(())
}

/// The absences of a run, which its directory keeps: one that is resumed needs them too.
pub(crate) fn of_run(run: &Path, resumed: bool, given: &Listed) -> Result<Listed> {
    let file = run.join(ABSENCES);
    if resumed && file.is_file() {
        let mut listed = Listed::default();
        add(&file, &mut listed)?;
        return Ok(listed);
    }
    if given.is_empty() {
        return Ok(given.clone());
    }
    let mut text = Vec::new();
    for absence in given.all() {
        text.extend(line(&absence)?);
    }
    write_whole(&file, &text)?;
    Ok(given.clone())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            find(&path, files)?;
        } else if path.file_name().is_some_and(|name| name == ABSENCES) {
            files.push(path);
        }
    }
    Ok(())
}

fn add(file: &Path, listed: &mut Listed) -> Result<()> {
    for (number, line) in numbered(&read_bytes(file)?) {
        let absence = parse(line).with_context(|| {
            format!(
                "{}, line {number}: expected an absence as a deployment records it, like {{\"phase\":\"exchange\",\"t\":10,\"group\":0,\"device\":3}}",
                file.display()
            )
        })?;
        match (absence.phase, absence.device) {
            (Phase::Exchange | Phase::Upload, Some(_))
            | (Phase::Global | Phase::Evaluation, None) => listed.add(absence),
            _ => bail!(
                "{}, line {number}: expected a device for an exchange or an upload, and none for an aggregation or an evaluation",
                file.display()
            ),
        }
    }
    Ok(())
}
