//! Absences that a deployment has noted, as an input of the simulation.

use crate::files::{read_text, write_whole};
use anyhow::{Context, Result, bail};
use selvedge_core::absence::Listed;
use selvedge_core::dataset::{Dataset, Group};
use selvedge_core::experiment::Experiment;
use selvedge_core::role::{Absence, Phase};
use std::path::{Path, PathBuf};

/// What the file is called.
const NAME: &str = "absences.jsonl";

/// Reads what deployments have noted: files, or folders with `absences.jsonl` anywhere below.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Listed> {
    let mut listed = Listed::default();
    for path in paths {
        let mut files = Vec::new();
        match path.is_dir() {
            true => find(path, &mut files)?,
            false => files.push(path.clone()),
        }
        if files.is_empty() {
            bail!("{}: there is no absences.jsonl in it", path.display());
        }
        for file in files {
            add(&file, &mut listed)?;
        }
    }
    Ok(listed)
}

/// Refuses absences that cannot be of this experiment.
pub(crate) fn check(listed: &Listed, experiment: &Experiment, dataset: &Dataset) -> Result<()> {
    let devices = listed.exchanges.iter().chain(&listed.uploads);
    let devices = devices.map(|(t, group, device)| (*t, *group, Some(*device)));
    let groups = listed.groups.iter().map(|(t, group)| (*t, *group, None));
    for (t, group, device) in devices.chain(groups) {
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
    let file = run.join(NAME);
    if resumed && file.is_file() {
        let mut listed = Listed::default();
        add(&file, &mut listed)?;
        return Ok(listed);
    }
    let devices = |phase| move |(t, group, device)| (phase, t, group, Some(device));
    let mut all: Vec<(Phase, u64, usize, Option<u32>)> = Vec::new();
    all.extend(
        given
            .exchanges
            .iter()
            .copied()
            .map(devices(Phase::Exchange)),
    );
    all.extend(given.uploads.iter().copied().map(devices(Phase::Upload)));
    let groups = given.groups.iter();
    all.extend(groups.map(|(t, group)| (Phase::Global, *t, *group, None)));
    if all.is_empty() {
        return Ok(given.clone());
    }
    all.sort_unstable_by_key(|(phase, t, group, device)| (*t, *phase, *group, *device));
    let mut text = String::new();
    for (phase, t, group, device) in all {
        let absence = Absence {
            phase,
            t,
            group,
            device,
        };
        text += &serde_json::to_string(&absence)?;
        text.push('\n');
    }
    write_whole(&file, text.as_bytes())?;
    Ok(given.clone())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            find(&path, files)?;
        } else if path.file_name().is_some_and(|name| name == NAME) {
            files.push(path);
        }
    }
    Ok(())
}

fn add(file: &Path, listed: &mut Listed) -> Result<()> {
    for (i, line) in read_text(file)?.lines().enumerate() {
        let absence: Absence = serde_json::from_str(line).with_context(|| {
            format!(
                "{}, line {}: expected what a deployment notes, like {{\"phase\":\"exchange\",\"t\":10,\"group\":0,\"device\":3}}",
                file.display(),
                i + 1
            )
        })?;
        let Absence {
            phase,
            t,
            group,
            device,
        } = absence;
        match (phase, device) {
            (Phase::Exchange, Some(device)) => _ = listed.exchanges.insert((t, group, device)),
            (Phase::Upload, Some(device)) => _ = listed.uploads.insert((t, group, device)),
            (Phase::Global, None) => _ = listed.groups.insert((t, group)),
            (Phase::Evaluation, None) => {}
            _ => bail!(
                "{}, line {}: an exchange or an upload has a device, an aggregation or an evaluation none",
                file.display(),
                i + 1
            ),
        }
    }
    Ok(())
}
