//! `selvedge data inspect` and `selvedge data export`

use super::{print, print_json};
use crate::args::ExperimentArgs;
use crate::format::{bar, count};
use crate::{Outcome, files, load};
use anyhow::Result;
use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::selection::subset_size;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::Path;

fn labels(samples: &Samples, classes: usize) -> Vec<u64> {
    let mut counts = vec![0; classes];
    for y in &samples.y {
        counts[*y as usize] += 1;
    }
    counts
}

pub(crate) fn inspect(args: &ExperimentArgs, as_json: bool) -> Result<Outcome> {
    let named = load::experiment(args)?;
    let dataset = load::dataset(&named.experiment, &args.data)?;
    let participation = named.experiment.train.participation;
    if as_json {
        let classes = dataset.classes.len();
        let groups = dataset.groups.iter().map(|g| {
            json!({
                "name": g.name,
                "devices": g.devices(),
                "samples": g.samples.len(),
                "selected": subset_size(participation, g.devices()),
                "labels": labels(&g.samples, classes),
            })
        });
        print_json(&json!({
            "set": dataset.name,
            "fingerprint": dataset.fingerprint(),
            "hospital": dataset.hospital,
            "device": dataset.device,
            "classes": dataset.classes,
            "groups": groups.collect::<Vec<_>>(),
            "validation": { "samples": dataset.validation.len(), "labels": labels(&dataset.validation, classes) },
            "test": { "samples": dataset.test.len(), "labels": labels(&dataset.test, classes) },
        }))?;
    } else {
        print(&text(&dataset, participation))?;
    }
    Ok(Outcome::Done)
}

/// Groups that a table shows; of more, the first and the last.
const SHOWN: usize = 24;

fn text(dataset: &Dataset, participation: f64) -> String {
    let classes = dataset.classes.len();
    let mut out = format!(
        "{}: {} groups, {} devices, {} training samples, {} classes\nhospital {} | device {} of each sample\nfingerprint {}\n\n",
        dataset.name,
        dataset.groups.len(),
        count(dataset.devices() as u64),
        count(dataset.training_samples() as u64),
        classes,
        dataset.hospital,
        dataset.device,
        dataset.fingerprint()
    );
    out += &format!(
        "{:<14}{:>9}{:>9}{:>9}  ",
        "", "devices", "selected", "samples"
    );
    out.extend(
        dataset
            .classes
            .iter()
            .map(|c| format!("{:>8}", format!("label {c}"))),
    );
    out.push('\n');
    let row = |name: &str, devices: Option<usize>, samples: &Samples| {
        let counts = labels(samples, classes);
        let devices_text = devices.map_or(String::new(), |d| count(d as u64));
        let selected = devices.map_or(String::new(), |d| {
            count(subset_size(participation, d) as u64)
        });
        let mut line = format!(
            "{name:<14}{devices_text:>9}{selected:>9}{:>9}  ",
            count(samples.len() as u64)
        );
        line.extend(counts.iter().map(|n| format!("{:>8}", count(*n))));
        format!("{line}  {}\n", bar(&counts, 24))
    };
    let all = dataset.groups.len();
    for (m, group) in dataset.groups.iter().enumerate() {
        if all > SHOWN && (SHOWN - 4..all - 4).contains(&m) {
            if m == SHOWN - 4 {
                out += &format!("… {} more groups\n", count((all - SHOWN) as u64));
            }
            continue;
        }
        out += &row(&group.name, Some(group.devices()), &group.samples);
    }
    for (name, samples) in [("validation", &dataset.validation), ("test", &dataset.test)] {
        if !samples.is_empty() {
            out += &row(name, None, samples);
        }
    }
    out
}

pub(crate) fn export(args: &ExperimentArgs, out: &Path) -> Result<Outcome> {
    let named = load::experiment(args)?;
    let dataset = load::dataset(&named.experiment, &args.data)?;
    files::write_whole_with(out, |file| {
        let mut writer = BufWriter::new(file);
        selvedge_data::write_npz(&dataset, &mut writer)?;
        writer.flush()
    })?;
    crate::say(&format!(
        "{} groups and the test samples are in {}",
        dataset.groups.len(),
        out.display()
    ));
    Ok(Outcome::Done)
}
