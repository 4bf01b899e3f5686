//! The tables of a report.

use super::table::{Cell, Column, Table};
use crate::comparison::table::Spread;
use crate::comparison::targets::HeldOut;
use selvedge_core::metrics::Metric;
use selvedge_core::state::Evaluation;
use selvedge_run::format::{bytes, count, seconds};
use selvedge_run::ledger::LedgerLine;
use selvedge_run::manifest::EndingInfo;
use selvedge_run::runs::{Run, Series, differences};

/// The last evaluation of each series, and the one that the validation samples chose; mean and deviation over seeds.
pub(super) fn results(series: &[Series], metrics: &[&'static Metric]) -> Table {
    let mut columns = vec![Column::text("Series"), Column::text("Evaluation")];
    let spread = |name: &str| vec![format!("{name}_mean"), format!("{name}_sd")];
    columns.push(Column::number("Seeds", vec!["seeds".into()]));
    columns.push(Column::number("Iteration", spread("t")));
    let shown = shown(HeldOut::of(series), metrics);
    for Shown { metric, on, .. } in &shown {
        let (title, name) = match on {
            HeldOut::Test | HeldOut::Training => (metric.title.to_owned(), metric.name.to_owned()),
            HeldOut::Validation => (
                format!("Validation {}", metric.heading),
                format!("{}_validation", metric.name),
            ),
        };
        columns.push(Column::number(&title, spread(&name)));
    }
    columns.push(Column::number("Bytes per group", spread("bytes_exact")));
    columns.push(Column::number(
        "by the paper's count",
        spread("bytes_paper"),
    ));
    columns.push(Column::number("Simulated time", spread("seconds")));
    // Series stand under each other that are to be compared.
    let mut rows = Vec::new();
    for name in ["last", "best on validation"] {
        for s in series {
            let chosen: Vec<&Evaluation> = match name {
                "last" => s.evaluated().filter_map(Run::last).collect(),
                _ => s.evaluated().filter_map(Run::best).collect(),
            };
            if !chosen.is_empty() {
                rows.push(result_row(&s.label, name, &chosen, &shown));
            }
        }
    }
    mark_best(&mut rows, &shown);
    Table {
        id: "results",
        title: "Results".into(),
        columns,
        rows,
        has_total: false,
        parted_by: Some(1),
    }
}

fn result_row(label: &str, name: &str, evaluations: &[&Evaluation], shown: &[Shown]) -> Vec<Cell> {
    let mut row = vec![
        Cell::text(label),
        Cell::text(name),
        Cell::number(count(evaluations.len() as u64), evaluations.len()),
    ];
    let mut spread = |of: &dyn Fn(&Evaluation) -> Option<f64>, show: &dyn Fn(f64) -> String| {
        let values: Vec<f64> = evaluations.iter().filter_map(|e| of(e)).collect();
        row.push(Cell::spread(Spread::of(&values), show));
    };
    spread(&|e| Some(e.t as f64), &|t| count(t.round() as u64));
    for Shown { metric, on, .. } in shown {
        spread(&|e| on.value(metric, e), &|x| format!("{x:.4}"));
    }
    spread(&|e| Some(e.bytes_exact), &bytes);
    spread(&|e| Some(e.bytes_paper), &bytes);
    spread(&|e| Some(e.seconds), &seconds);
    row
}

/// A metric on some samples.
struct Shown {
    metric: &'static Metric,
    on: HeldOut,
    /// Whether runs are compared by it, so that its best is marked.
    decides: bool,
}

/// Where runs are compared on the validation samples these come first, and no test figure is marked.
fn shown(on: HeldOut, metrics: &[&'static Metric]) -> Vec<Shown> {
    let validated = metrics
        .iter()
        .filter(|m| on == HeldOut::Validation && m.on_validation.is_some());
    let validated = validated.map(|metric| Shown {
        metric,
        on,
        decides: true,
    });
    let tested = metrics.iter().map(|metric| Shown {
        metric,
        on: HeldOut::Test,
        decides: on != HeldOut::Validation || !metric.tested,
    });
    validated.chain(tested).collect()
}

/// Marks the best mean of each metric among the rows of a kind, where there are several.
fn mark_best(rows: &mut [Vec<Cell>], shown: &[Shown]) {
    const BEFORE: usize = 4;
    for kind in ["last", "best on validation"] {
        let of_kind = |row: &&mut Vec<Cell>| row[1].text == kind;
        let deciding = shown.iter().enumerate().filter(|(_, shown)| shown.decides);
        for (i, Shown { metric, .. }) in deciding {
            let mut cells: Vec<&mut Cell> = rows
                .iter_mut()
                .filter(of_kind)
                .map(|row| &mut row[BEFORE + i])
                .collect();
            let number = |cell: &Cell| cell.csv[0].parse::<f64>().ok();
            let values = cells.iter().filter_map(|c| number(c));
            let best = values.reduce(|a, b| metric.better_of(a, b));
            if cells.len() > 1 {
                let is_best = |c: &Cell| number(c).is_some_and(|x| Some(x) == best);
                cells.iter_mut().for_each(|c| c.is_best = is_best(c));
            }
        }
    }
}

/// What was sent from whom to whom, of all groups: every series' bytes, exact, and their shares.
pub(super) fn bytes_sent(series: &[Series]) -> Option<Table> {
    let mut lines: Vec<&LedgerLine> = Vec::new();
    for line in series.iter().flat_map(|s| &s.runs).flat_map(|r| &r.ledger) {
        if !lines.iter().any(|l| same_place(l, line)) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return None;
    }
    let links: Vec<String> = lines.iter().map(|l| l.link.clone()).collect();
    let link = |line: &LedgerLine| links.iter().position(|l| *l == line.link);
    lines.sort_by_key(|l| (link(l), l.direction != "up", l.kind.clone()));
    let mut columns = vec![Column::text("From and to"), Column::text("What")];
    for s in series {
        let name = |what: &str| format!("{} {what}", s.label);
        columns.push(Column::number(
            &s.label,
            vec![name("bytes"), name("messages")],
        ));
    }
    let sums: Vec<Vec<(f64, f64)>> = series
        .iter()
        .map(|s| lines.iter().map(|l| sent(s, l)).collect())
        .collect();
    let totals: Vec<(f64, f64)> = sums
        .iter()
        .map(|of| (of.iter().map(|x| x.0).sum(), of.iter().map(|x| x.1).sum()))
        .collect();
    let mut rows = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let mut row = vec![Cell::text(ends(line)), Cell::text(kind(&line.kind))];
        for (of, total) in sums.iter().zip(&totals) {
            row.push(bytes_cell(of[i], total.0));
        }
        rows.push(row);
    }
    let mut total_row = vec![Cell::text("Total"), Cell::text("")];
    total_row.extend(totals.iter().map(|total| Cell {
        share: None,
        aside: String::new(),
        ..bytes_cell(*total, total.0)
    }));
    rows.push(total_row);
    Some(Table {
        id: "bytes",
        title: "Bytes by link, kind and direction".into(),
        columns,
        rows,
        has_total: true,
        parted_by: None,
    })
}

fn same_place(a: &LedgerLine, b: &LedgerLine) -> bool {
    (&a.link, &a.kind, &a.direction) == (&b.link, &b.kind, &b.direction)
}

/// Bytes and messages of a series at one place of the ledger, mean over the seeds that have a ledger.
fn sent(series: &Series, line: &LedgerLine) -> (f64, f64) {
    let ledgers = series
        .runs
        .iter()
        .map(|r| &r.ledger)
        .filter(|l| !l.is_empty());
    let (mut bytes, mut messages, mut n) = (0.0, 0.0, 0.0f64);
    for ledger in ledgers {
        n += 1.0;
        for found in ledger.iter().filter(|l| same_place(l, line)) {
            bytes += found.bytes as f64;
            messages += found.messages as f64;
        }
    }
    (bytes / n.max(1.0), messages / n.max(1.0))
}

fn bytes_cell((bytes, messages): (f64, f64), total: f64) -> Cell {
    let share = bytes / total.max(1.0);
    Cell {
        text: count(bytes.round() as u64),
        csv: vec![bytes.to_string(), messages.to_string()],
        share: Some(share),
        aside: format!("{:.1} %", 100.0 * share),
        ..Cell::default()
    }
}

/// `device → edge`
pub(crate) fn ends(line: &LedgerLine) -> String {
    match (line.link.split_once('-'), line.direction.as_str()) {
        (Some((below, above)), "up") => format!("{below} → {above}"),
        (Some((below, above)), "down") => format!("{above} → {below}"),
        _ => format!("{}, {}", line.link, line.direction),
    }
}

/// `θ0, combined model`
pub(crate) fn kind(name: &str) -> String {
    match name {
        "theta0" => "θ0, combined model".into(),
        "theta1" => "θ1, hospital tower".into(),
        "theta2" => "θ2, device tower".into(),
        "zeta1" => "ζ1, hospital embeddings".into(),
        "zeta2" => "ζ2, device embeddings".into(),
        "raw" => "raw data".into(),
        "report" => "what the hospital saw, for steering".into(),
        "settings" => "P, Q and η of a new segment".into(),
        other => other.into(),
    }
}

/// The keys in which the experiments differ.
pub(super) fn settings_that_differ(series: &[Series]) -> Option<Table> {
    let differing = differences(series);
    if differing.is_empty() {
        return None;
    }
    let mut columns = vec![Column::text("Key")];
    columns.extend(series.iter().map(|s| Column {
        csv: vec![s.label.clone()],
        ..Column::text(&s.label)
    }));
    let row = |(key, values): (String, Vec<String>)| {
        std::iter::once(key).chain(values).map(Cell::text).collect()
    };
    Some(Table {
        id: "differences",
        title: "What differs".into(),
        columns,
        rows: differing.into_iter().map(row).collect(),
        has_total: false,
        parted_by: None,
    })
}

/// Every run: how far it has come, how it ended, and what it was computed with.
pub(super) fn runs(series: &[Series]) -> Table {
    let columns = [
        "Run",
        "Series",
        "Seed",
        "Iterations",
        "Outcome",
        "Real time",
        "Version",
        "Instructions",
        "Data",
    ];
    let column = |title: &str| match title {
        "Seed" | "Iterations" | "Real time" => Column::number(title, vec![title.to_lowercase()]),
        "Outcome" => Column {
            csv: vec!["ending".into()],
            ..Column::text(title)
        },
        _ => Column::text(title),
    };
    let row = |label: &str, run: &Run| {
        let manifest = &run.manifest;
        let t = manifest
            .timing
            .iterations
            .max(run.last().map_or(0, |e| e.t));
        let real = manifest.timing.seconds;
        vec![
            Cell::text(run.path.display().to_string()),
            Cell::text(label),
            Cell::number(run.experiment.seed.to_string(), run.experiment.seed),
            Cell::number(
                format!("{} of {}", count(t), count(run.experiment.train.iterations)),
                t,
            ),
            Cell::text(ending(manifest.ending.as_ref())),
            Cell::number(
                if real > 0.0 {
                    seconds(real)
                } else {
                    "–".into()
                },
                real,
            ),
            Cell::text(&manifest.selvedge),
            Cell::text(&manifest.cpu.instructions),
            Cell::text(manifest.data.fingerprint.get(..16).unwrap_or("–")),
        ]
    };
    let rows = series
        .iter()
        .flat_map(|s| s.runs.iter().map(|run| row(&s.label, run)));
    Table {
        id: "runs",
        title: "Runs".into(),
        columns: columns.into_iter().map(column).collect(),
        rows: rows.collect(),
        has_total: false,
        parted_by: None,
    }
}

/// How a run ended, in a few words.
pub(crate) fn ending(ending: Option<&EndingInfo>) -> String {
    let Some(ending) = ending else {
        return "not ended".into();
    };
    ending.reached().unwrap_or_else(|| ending.kind.clone())
}
