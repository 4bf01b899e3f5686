//! `selvedge data inspect`: who got what, in numbers and small pictures.

use super::{draw, known};
use crate::args::ExperimentArgs;
use crate::commands::print_either;
use crate::{Outcome, load};
use anyhow::Result;
use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::outcome::{Kind, Outcome as Asked};
use selvedge_core::selection::subset_size;
use selvedge_data::{Loaded, SideStatistics};
use selvedge_run::format::{self, count, counted, shade};
use serde_json::{Value, json};

/// Groups that a table shows; of more, the first and the last.
const SHOWN: usize = 24;

/// Columns that lists show.
const COLUMNS: usize = 12;

/// Samples that are drawn.
const SAMPLES: usize = 3;

pub(in crate::commands) fn inspect(args: &ExperimentArgs, as_json: bool) -> Result<Outcome> {
    let named = load::experiment(args)?;
    let loaded = load::data(&named.experiment, &args.data)?;
    load::check_run(args, &loaded.dataset)?;
    let participation = named.experiment.train.participation;
    let value = as_value(&loaded, participation);
    print_either(as_json, &value, &text(&loaded, participation))
}

fn as_value(loaded: &Loaded, participation: f64) -> Value {
    let (dataset, statistics) = (&loaded.dataset, &loaded.statistics);
    // What is known is called by what it is.
    let known = match dataset.outcome.kind() {
        Kind::Class | Kind::Labels => "labels",
        kind => kind.name(),
    };
    let groups = dataset.groups.iter().map(|g| {
        json!({
            "name": g.name,
            "devices": g.devices(),
            "samples": g.samples.len(),
            "selected": subset_size(participation, g.devices()),
            known: known::json(dataset, &g.samples),
        })
    });
    let columns = |side: &SideStatistics| json!({ "names": side.names, "missing": side.missing });
    let held_out = |samples: &Samples| json!({ "samples": samples.len(), known: known::json(dataset, samples) });
    let mut value = json!({
        "set": dataset.name,
        "fingerprint": dataset.fingerprint(),
        "statistics": statistics.fingerprint(),
        "hospital": dataset.hospital,
        "device": dataset.device,
        "columns": { "hospital": columns(&statistics.hospital), "device": columns(&statistics.device) },
        "classes": dataset.classes,
        "groups": groups.collect::<Vec<_>>(),
        "validation": held_out(&dataset.validation),
        "test": held_out(&dataset.test),
        "notes": loaded.notes,
    });
    if !dataset.outcome.is_class() {
        value["outcome"] = json!(dataset.outcome);
    }
    value
}

fn text(loaded: &Loaded, participation: f64) -> String {
    let dataset = &loaded.dataset;
    let mut out = format!(
        "{}: {}, {}, {}, {}\neach sample: hospital {} | device {}\nfingerprint of the data        {}\nfingerprint of its statistics  {}\n\n",
        dataset.name,
        counted(dataset.groups.len() as u64, "group"),
        counted(dataset.devices() as u64, "device"),
        counted(dataset.training_samples() as u64, "training sample"),
        asked(dataset),
        dataset.hospital,
        dataset.device,
        dataset.fingerprint(),
        loaded.statistics.fingerprint(),
    );
    out += &groups(dataset, participation);
    let sides = [
        ("hospital", &loaded.statistics.hospital),
        ("device", &loaded.statistics.device),
    ];
    for (name, side) in sides {
        out += &columns(name, side);
    }
    out += &samples(dataset, &sides.map(|(_, side)| side));
    out
}

/// What is asked about each sample.
fn asked(dataset: &Dataset) -> String {
    let names = &dataset.classes;
    let outputs = dataset.outcome.outputs(names);
    let many = format!("{outputs} {}", dataset.outcome.kind().outputs(outputs));
    match dataset.outcome {
        Asked::Class | Asked::Labels => many,
        Asked::Quantity { .. } => format!("a quantity ({})", names.join(", ")),
        Asked::Survival { .. } => format!("survival ({}) in {many}", names.join(", ")),
    }
}

/// Who got how many of what.
fn groups(dataset: &Dataset, participation: f64) -> String {
    let mut header = vec![String::new()];
    header.extend(["devices", "selected", "samples"].map(String::from));
    header.extend(known::head(dataset));
    let row = |name: &str, devices: Option<usize>, samples: &Samples| {
        let mut cells = vec![name.to_owned()];
        cells.push(devices.map_or(String::new(), |d| count(d as u64)));
        let selected = |d| count(subset_size(participation, d) as u64);
        cells.push(devices.map_or(String::new(), selected));
        cells.push(count(samples.len() as u64));
        cells.extend(known::cells(dataset, samples));
        cells
    };
    let mut rows = vec![header];
    let all = dataset.groups.len();
    for (m, group) in dataset.groups.iter().enumerate() {
        if all > SHOWN && (SHOWN - 4..all - 4).contains(&m) {
            if m == SHOWN - 4 {
                rows.push(vec![format!("… {} more", count((all - SHOWN) as u64))]);
            }
            continue;
        }
        rows.push(row(&group.name, Some(group.devices()), &group.samples));
    }
    for (name, samples) in [("validation", &dataset.validation), ("test", &dataset.test)] {
        if !samples.is_empty() {
            rows.push(row(name, None, samples));
        }
    }
    format!(
        "{}\n  {}\n",
        format::table(&rows),
        known::key(dataset, shade)
    )
}

/// The columns of a side, and what was not measured.
fn columns(name: &str, side: &SideStatistics) -> String {
    if side.names.is_empty() {
        return String::new();
    }
    let shown: Vec<&str> = side
        .names
        .iter()
        .take(COLUMNS)
        .map(String::as_str)
        .collect();
    let more = match side.names.len().saturating_sub(COLUMNS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let mut out = format!(
        "\n{name}, {} columns: {}{more}\n",
        side.names.len(),
        shown.join(", ")
    );
    let mut missing: Vec<(&String, f64)> = side
        .names
        .iter()
        .zip(side.missing.iter().copied())
        .collect();
    missing.retain(|(_, share)| *share > 0.0);
    if missing.is_empty() {
        return out;
    }
    missing.sort_by(|a, b| b.1.total_cmp(&a.1));
    out += "  share of training values not measured:\n";
    let rows: Vec<Vec<String>> = missing
        .iter()
        .take(COLUMNS)
        .map(|(column, share)| {
            let full = (share * 20.0).round() as usize;
            let picture = format!("{}{}", "█".repeat(full), "·".repeat(20 - full));
            vec![
                column.to_string(),
                format!("{:.1} %", 100.0 * share),
                picture,
            ]
        })
        .collect();
    out += &format::table(&rows);
    if missing.len() > COLUMNS {
        out += &format!("  … {} more columns\n", missing.len() - COLUMNS);
    }
    out
}

/// The first samples of which different things are known, as training sees them.
fn samples(dataset: &Dataset, sides: &[&SideStatistics; 2]) -> String {
    let mut out = String::new();
    let all = dataset.groups.iter().flat_map(|group| {
        let rows = 0..group.samples.len();
        rows.map(move |row| (group, row))
    });
    let most = match dataset.outcome {
        Asked::Class => SAMPLES.min(dataset.classes.len()),
        _ => SAMPLES,
    };
    let mut drawn: Vec<String> = Vec::new();
    for (group, row) in all {
        let known = known::of_one(dataset, group.samples.y.at(row));
        if drawn.contains(&known) {
            continue;
        }
        out += &format!("\na sample of {}, {known}\n", group.name);
        drawn.push(known);
        for (name, shape, values, side) in [
            ("hospital", dataset.hospital, &group.samples.x1, sides[0]),
            ("device", dataset.device, &group.samples.x2, sides[1]),
        ] {
            let values = &values[row * shape.len()..][..shape.len()];
            for (n, line) in draw::sample(shape, &side.names, values).iter().enumerate() {
                out += &format!("  {:<9} {line}\n", if n == 0 { name } else { "" });
            }
        }
        if drawn.len() == most {
            break;
        }
    }
    out
}
