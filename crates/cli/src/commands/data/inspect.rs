//! `selvedge data inspect`: who got what, in numbers and small pictures.

use super::draw;
use crate::args::ExperimentArgs;
use crate::commands::print_either;
use crate::{Outcome, load};
use anyhow::Result;
use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::selection::subset_size;
use selvedge_data::{Loaded, SideStatistics};
use selvedge_run::format::{self, bar, count, counted, shade};
use serde_json::{Value, json};

/// Groups that a table shows; of more, the first and the last.
const SHOWN: usize = 24;

/// Columns that lists show.
const COLUMNS: usize = 12;

/// Samples that are drawn.
const SAMPLES: usize = 3;

/// Classes that have a column each.
const CLASSES: usize = 16;

fn labels(samples: &Samples, classes: usize) -> Vec<u64> {
    let mut counts = vec![0; classes];
    for y in samples.y.classes() {
        counts[*y as usize] += 1;
    }
    counts
}

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
    let columns = |side: &SideStatistics| json!({ "names": side.names, "missing": side.missing });
    json!({
        "set": dataset.name,
        "fingerprint": dataset.fingerprint(),
        "statistics": statistics.fingerprint(),
        "hospital": dataset.hospital,
        "device": dataset.device,
        "columns": { "hospital": columns(&statistics.hospital), "device": columns(&statistics.device) },
        "classes": dataset.classes,
        "groups": groups.collect::<Vec<_>>(),
        "validation": { "samples": dataset.validation.len(), "labels": labels(&dataset.validation, classes) },
        "test": { "samples": dataset.test.len(), "labels": labels(&dataset.test, classes) },
        "notes": loaded.notes,
    })
}

fn text(loaded: &Loaded, participation: f64) -> String {
    let dataset = &loaded.dataset;
    let mut out = format!(
        "{}: {}, {}, {}, {} {}\neach sample: hospital {} | device {}\nfingerprint of the data        {}\nfingerprint of its statistics  {}\n\n",
        dataset.name,
        counted(dataset.groups.len() as u64, "group"),
        counted(dataset.devices() as u64, "device"),
        counted(dataset.training_samples() as u64, "training sample"),
        dataset.classes.len(),
        match dataset.classes.len() {
            1 => "class",
            _ => "classes",
        },
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

/// Who got how many of what.
fn groups(dataset: &Dataset, participation: f64) -> String {
    let classes = dataset.classes.len();
    let shown = classes.min(CLASSES);
    let mut header = vec![String::new()];
    header.extend(["devices", "selected", "samples"].map(String::from));
    header.extend(
        dataset.classes[..shown]
            .iter()
            .map(|c| format!("label {c}")),
    );
    let row = |name: &str, devices: Option<usize>, samples: &Samples| {
        let counts = labels(samples, classes);
        let mut cells = vec![name.to_owned()];
        cells.push(devices.map_or(String::new(), |d| count(d as u64)));
        let selected = |d| count(subset_size(participation, d) as u64);
        cells.push(devices.map_or(String::new(), selected));
        cells.push(count(samples.len() as u64));
        cells.extend(counts[..shown].iter().map(|n| count(*n)));
        cells.push(bar(&counts, 24));
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
    let key = dataset.classes[..shown].iter().enumerate();
    let key: Vec<String> = key
        .map(|(c, name)| format!("{} {name}", shade(c)))
        .collect();
    let more = match classes - shown {
        0 => String::new(),
        more => format!("   and {more} more"),
    };
    format!("{}\n  {}{more}\n", format::table(&rows), key.join("   "))
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

/// The first samples of different classes, as training sees them.
fn samples(dataset: &Dataset, sides: &[&SideStatistics; 2]) -> String {
    let mut out = String::new();
    let all = dataset.groups.iter().flat_map(|group| {
        let rows = 0..group.samples.len();
        rows.map(move |row| (group, row))
    });
    let mut drawn: Vec<u32> = Vec::new();
    for (group, row) in all {
        let label = group.samples.y.classes()[row];
        if drawn.contains(&label) {
            continue;
        }
        drawn.push(label);
        out += &format!(
            "\na sample of {}, label {}\n",
            group.name, dataset.classes[label as usize]
        );
        for (name, shape, values, side) in [
            ("hospital", dataset.hospital, &group.samples.x1, sides[0]),
            ("device", dataset.device, &group.samples.x2, sides[1]),
        ] {
            let values = &values[row * shape.len()..][..shape.len()];
            for (n, line) in draw::sample(shape, &side.names, values).iter().enumerate() {
                out += &format!("  {:<9} {line}\n", if n == 0 { name } else { "" });
            }
        }
        if drawn.len() == SAMPLES.min(dataset.classes.len()) {
            break;
        }
    }
    out
}
