//! Tables II and III.

use super::paper::NAMES;
use super::{PerSeed, Reproduced, Section, against_hsgd, mean_text, printed};
use crate::comparison::table::operations;
use crate::comparison::targets::{Target, reached_by_all};
use selvedge_run::format::bytes;

fn texts(costs: &[PerSeed], unit: fn(f64) -> String) -> impl Iterator<Item = String> {
    costs.iter().map(move |c| mean_text(c, unit))
}

/// Bytes of one group until each target, as the paper counts them.
pub(super) fn table2(one: &Reproduced) -> Section {
    let mut section = Section::new("table2", one.title("Table II"));
    section.row("bytes per group until", NAMES.map(String::from));
    for row in &one.paper.table2 {
        let target = Target::new(&row.metric, row.target);
        let counted = one.costs_of_all(&target, |_, e| e.bytes_paper);
        let exact = one.costs_of_all(&target, |_, e| e.bytes_exact);
        section.row(target.name(), []);
        section.row("  the paper", row.bytes.map(|b| printed(b, bytes)));
        section.row("  here, by the paper's count", texts(&counted, bytes));
        section.row("  here, every byte", texts(&exact, bytes));
        let what = format!("bytes until {}", target.name());
        let claims = against_hsgd(&what, &counted, &row.bytes, bytes);
        section.claims.extend(claims);
    }
    section
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
    let mut section = Section::new("table3", title);
    section.row("one device", NAMES.map(String::from));
    for (what, each, papers, unit, all) in [
        (
            "memory",
            cost.memory,
            &paper.memory,
            bytes as fn(f64) -> String,
            "summed over iterations",
        ),
        (
            "FLOPs",
            cost.flops,
            &paper.flops,
            operations,
            "until the target",
        ),
    ] {
        let costs = one.costs_of_all(&target, |_, e| each as f64 * e.t as f64);
        section.row(format!("{what}, the paper"), papers.map(unit));
        section.row(format!("{what}, {all}"), texts(&costs, unit));
        let once = NAMES.map(|_| unit(each as f64));
        section.row(format!("{what}, per iteration"), once);
        let claims = against_hsgd(what, &costs, papers, unit);
        section.claims.extend(claims);
    }
    section
}
