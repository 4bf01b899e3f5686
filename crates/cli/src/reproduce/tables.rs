//! Tables II and III.

use super::paper::NAMES;
use super::{Reproduced, Section, against_hsgd, mean_text};
use crate::comparison::table::operations;
use crate::comparison::targets::{Target, reached_by_all};
use selvedge_core::state::Evaluation;
use selvedge_run::format::bytes;

fn head(first: &str) -> Vec<String> {
    let names = NAMES.iter().map(|name| (*name).to_owned());
    std::iter::once(first.to_owned()).chain(names).collect()
}

/// Bytes of one group until each target, as the paper counts them.
pub(super) fn table2(one: &Reproduced) -> Section {
    let mut rows = vec![head("bytes of a group until")];
    let mut claims = Vec::new();
    for row in one.paper.table2 {
        let target = Target::new(row.metric, row.target);
        let costs = |cost: fn(&Evaluation) -> f64| -> Vec<_> {
            let each = (0..NAMES.len()).map(|i| one.costs(i, &target, cost));
            each.collect()
        };
        let counted = costs(|e| e.bytes_paper);
        let exact = costs(|e| e.bytes_exact);
        rows.push(head(&target.name())[..1].to_vec());
        let line = |name: &str, cells: Vec<String>| {
            let name = std::iter::once(format!("  {name}"));
            name.chain(cells).collect::<Vec<_>>()
        };
        let printed = row.bytes.map(|b| b.map_or("–".into(), bytes));
        rows.push(line("the paper", printed.to_vec()));
        let cells = |costs: &[Vec<Option<f64>>]| -> Vec<String> {
            costs.iter().map(|c| mean_text(c, bytes)).collect()
        };
        rows.push(line("here, as the paper counts", cells(&counted)));
        rows.push(line("here, every byte", cells(&exact)));
        let what = format!("bytes until {}", target.name());
        claims.extend(against_hsgd(&what, &counted, &row.bytes, &bytes));
    }
    Section {
        part: "table2",
        title: one.title("Table II"),
        rows,
        notes: Vec::new(),
        claims,
        figures: Vec::new(),
    }
}

/// Memory and FLOPs of a device until the highest AUC that every algorithm reaches.
pub(super) fn table3(one: &Reproduced) -> Section {
    let paper = &one.paper.table3;
    let target = reached_by_all(&one.series, "auc", 0.01);
    let target = target.unwrap_or(Target::new("auc", paper.auc));
    let cost = one.series.first().map(|s| s.first().manifest.sizes.cost);
    let cost = cost.unwrap_or_default();
    let title = format!(
        "{} · until test AUC {} (the paper: {})",
        one.title("Table III"),
        target.value,
        paper.auc
    );
    let per_iteration = |each: u64| -> Vec<Vec<Option<f64>>> {
        let of = |i| one.costs(i, &target, |e| each as f64 * e.t as f64);
        (0..NAMES.len()).map(of).collect()
    };
    let (memory, flops) = (per_iteration(cost.memory), per_iteration(cost.flops));
    let mut rows = vec![head("one device")];
    let mut line = |name: &str, cells: Vec<String>| {
        let name = std::iter::once(name.to_owned());
        rows.push(name.chain(cells).collect());
    };
    let texts = |costs: &[Vec<Option<f64>>], unit: fn(f64) -> String| -> Vec<String> {
        costs.iter().map(|c| mean_text(c, unit)).collect()
    };
    line("memory, the paper", paper.memory.map(bytes).to_vec());
    line("memory, added up over iterations", texts(&memory, bytes));
    let once = vec![bytes(cost.memory as f64); NAMES.len()];
    line("memory, in an iteration", once);
    line("FLOPs, the paper", paper.flops.map(operations).to_vec());
    line("FLOPs, until the target", texts(&flops, operations));
    let once = vec![operations(cost.flops as f64); NAMES.len()];
    line("FLOPs, in an iteration", once);
    let printed = |values: [f64; 5]| values.map(Some);
    let mut claims = against_hsgd("memory", &memory, &printed(paper.memory), &bytes);
    claims.extend(against_hsgd(
        "FLOPs",
        &flops,
        &printed(paper.flops),
        &operations,
    ));
    Section {
        part: "table3",
        title,
        rows,
        notes: Vec::new(),
        claims,
        figures: Vec::new(),
    }
}
