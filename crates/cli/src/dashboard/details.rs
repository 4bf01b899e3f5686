//! What the page of one run shows, besides its curves.

use super::participation::{Participation, sum};
use super::schedule::Schedule;
use super::shelf::Run;
use super::summary::{FILES, read};
use crate::report::{ends, kind};
use selvedge_core::outcome::Kind;
use selvedge_run::ledger::{self, LedgerLine};
use selvedge_run::trace;
use serde_json::{Value, json};
use std::fs;

/// Everything but curves.
///
/// # Errors
/// In words, if the run cannot be shown.
pub(super) fn details(run: &Run, summary: &Value) -> Result<Value, String> {
    let found = &run.found;
    let (manifest, experiment) = read(found)?;
    let (known, extent) = run.follow();
    let t = summary["t"].as_u64().unwrap_or(0).max(known.changes.last());
    let schedule = Schedule::new(&experiment, &known.changes, t);
    let mut problems: Vec<String> = extent.err().into_iter().collect();
    problems.extend(known.curves.problems());
    problems.extend(known.changes.problem.clone());
    drop(known);
    let ledger = ledger::read(&found.path).unwrap_or_else(|error| {
        problems.push(crate::told_once(&error));
        Vec::new()
    });
    let size = |name: &&str| {
        fs::symlink_metadata(found.path.join(name))
            .ok()
            .filter(fs::Metadata::is_file)
    };
    let file =
        |name: &str| size(&name).map(|metadata| json!({ "name": name, "size": metadata.len() }));
    let toml = experiment.to_toml();
    let mut files = vec![json!({ "name": "experiment.toml", "size": toml.len() })];
    files.extend(FILES.into_iter().filter_map(file));
    Ok(json!({
        "summary": summary,
        "problems": problems,
        "experiment": toml,
        "sizes": {
            "n0": manifest.sizes.widths.n0, "n1": manifest.sizes.widths.n1, "n2": manifest.sizes.widths.n2,
            "d1": manifest.sizes.widths.d1, "d2": manifest.sizes.widths.d2,
            "groups": manifest.sizes.groups,
            "devices": sum(manifest.sizes.devices.iter().copied()),
            "selected": sum(manifest.sizes.selected.iter().copied()),
        },
        "data": {
            "training": manifest.data.training_samples,
            "validation": manifest.data.validation_samples,
            "test": manifest.data.test_samples,
            "classes": manifest.data.classes.len(),
            "answers": match manifest.data.outcome {
                Kind::Class => "Classes",
                Kind::Labels => "Labels",
                Kind::Quantity => "Quantities",
                Kind::Survival => "Events",
            },
            "fingerprint": manifest.data.fingerprint,
        },
        "instructions": manifest.cpu.instructions,
        "steered": experiment.train.adaptive,
        "schedule": schedule.json(),
        "ledger": ledger.iter().map(ledger_line).collect::<Vec<_>>(),
        "files": files,
    }))
}

fn ledger_line(line: &LedgerLine) -> Value {
    json!({ "ends": ends(line), "link": line.link, "kind": kind(&line.kind), "messages": line.messages, "bytes": line.bytes })
}

/// The curves, as far as the metrics were read.
///
/// # Errors
/// In words, if they cannot be read.
pub(super) fn curves(run: &Run) -> Result<Value, String> {
    let (known, extent) = run.follow();
    let extent = extent?;
    let mut curves = known.curves.json();
    curves["read"] = extent.read.into();
    curves["length"] = extent.length.into();
    curves["has_more"] = extent.has_more.into();
    Ok(curves)
}

/// Who takes part in the interval that `t` is in; in the newest one if nobody asks for another.
///
/// # Errors
/// In words, if there is no such interval or the run cannot be shown.
pub(super) fn interval(run: &Run, summary: &Value, t: Option<u64>) -> Result<Value, String> {
    let found = &run.found;
    let (manifest, experiment) = read(found)?;
    let (mut known, _) = run.follow();
    let traced = trace::last(&found.path).ok().flatten();
    let now = summary["t"]
        .as_u64()
        .unwrap_or(0)
        .max(known.changes.last())
        .max(traced.unwrap_or(0));
    let schedule = Schedule::new(&experiment, &known.changes, now);
    let is_running = summary["state"] == "running" || summary["state"] == "quiet";
    let latest = match is_running {
        true => schedule.latest(now),
        false => schedule.latest(now.saturating_sub(1)),
    };
    let latest = latest.ok_or("the run has no intervals")?;
    let interval = match t {
        None => latest,
        Some(t) => schedule
            .interval(t)
            .filter(|interval| interval.start <= latest.start)
            .ok_or_else(|| {
                format!(
                    "t = {t}: expected an iteration from 0 to {}, where the run is now",
                    latest.end - 1
                )
            })?,
    };
    known
        .absent
        .follow(&found.path, found.deployment.as_deref());
    let participation =
        Participation::new(&found.path, &manifest, &experiment, interval, &known.absent);
    let before = interval
        .start
        .checked_sub(1)
        .and_then(|t| schedule.interval(t));
    let after = schedule
        .interval(interval.end)
        .filter(|after| after.start <= latest.start);
    Ok(json!({
        "start": interval.start,
        "end": interval.end,
        "aggregated": interval.aggregated,
        "is_latest": interval == latest,
        "is_running": is_running && interval == latest,
        "before": before.map(|interval| interval.start),
        "after": after.map(|interval| interval.start),
        "latest": latest.start,
        "who": participation,
    }))
}
