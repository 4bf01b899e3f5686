//! Tables II and III, and Table II with other settings.

use super::{PerSeed, Reproduced, Section, Settings, against_hsgd, mean_text, of_paper};
use crate::comparison::rates;
use crate::comparison::table::operations;
use crate::comparison::targets::{Target, reached_by_all};
use anyhow::Result;
use selvedge_core::metrics::Metric;
use selvedge_core::state::Evaluation;
use selvedge_data::SETS;
use selvedge_run::format::{bytes, count, score};

fn texts(costs: &[PerSeed], unit: fn(f64) -> String) -> impl Iterator<Item = String> {
    costs.iter().map(move |c| mean_text(c, unit))
}

/// The learning rates that were tried, if each algorithm has its own.
pub(super) fn learning_rates(one: &Reproduced) -> Option<Section> {
    let tuning = one.comparison.rates.as_ref()?;
    let what = match one.settings {
        Settings::TwoLayers => "Learning rates with two layers",
        _ => "Learning rates",
    };
    let mut section = one.section("rates", what, "");
    section.rows = rates::rows(tuning);
    section.notes = rates::ends(tuning);
    Some(section)
}

/// Bytes of one group until each target of Table II, and what is reached at the end.
fn reached(one: &Reproduced, part: &str, what: &str) -> Section {
    let mut section = one.section(part, what, "bytes per group until");
    for row in &one.paper.table2 {
        let target = Target::new(&row.metric, row.target);
        let counted = one.costs_of_all(&target, |_, e| e.bytes_paper);
        let exact = one.costs_of_all(&target, |_, e| e.bytes_exact);
        section.row(target.name(), []);
        let papers = of_paper(one.compared(), &row.bytes, bytes);
        section.row("  the paper", papers);
        section.row("  here, by the paper's count", texts(&counted, bytes));
        section.row("  here, every byte", texts(&exact, bytes));
        let text = format!("bytes until {}", target.name());
        let claims = against_hsgd((&text, "bytes"), &counted, &row.bytes, bytes);
        section.claims.extend(claims);
    }
    for name in ["loss", "auc"] {
        let Some(metric) = Metric::find(name) else {
            continue;
        };
        let last = |e: Option<&Evaluation>| e.and_then(|e| metric.of(e));
        let of = |s: &selvedge_run::runs::Series| -> PerSeed {
            s.runs.iter().map(|run| last(run.last())).collect()
        };
        let costs: Vec<PerSeed> = one.series.iter().map(of).collect();
        let shown = texts(&costs, |x| score(Some(x)));
        section.row(format!("{} at the end", metric.words), shown);
    }
    let train = &one.comparison.experiment["train"];
    let samples = train["loss_samples"].as_u64().filter(|n| *n > 0);
    section.notes.extend(samples.map(|n| {
        let n = count(n);
        format!("The training loss is that of {n} samples, the same at every evaluation.")
    }));
    section
}

/// With the best learning rate of each.
pub(super) fn table2(one: &Reproduced) -> Section {
    reached(one, "table2", "Table II")
}

/// With what the paper prints of its settings.
pub(super) fn printed(one: &Reproduced) -> Result<Section> {
    let mut section = reached(one, "printed", "Table II with the printed settings");
    let experiment = SETS.from_json(&one.comparison.experiment)?;
    let train = &experiment.train;
    section.notes.push(format!(
        "Every algorithm has η {} (halved every {} iterations: the paper does not print how often it halves), α {}, and {} iterations; there are no validation samples.",
        train.learning_rate,
        count(train.halve_every),
        train.participation,
        count(train.iterations)
    ));
    Ok(section)
}

/// With a combined model of two layers.
pub(super) fn two_layers(one: &Reproduced) -> Result<Section> {
    let mut section = reached(
        one,
        "layers",
        "Table II with a combined model of two layers",
    );
    let experiment = SETS.from_json(&one.comparison.experiment)?;
    let layers = serde_json::to_string(&experiment.model.combined)?;
    section
        .notes
        .push(format!("The combined model is {layers}."));
    Ok(section)
}

/// Memory and FLOPs of a device until the highest AUC that every algorithm reaches.
pub(super) fn table3(one: &Reproduced) -> Section {
    let paper = &one.paper.table3;
    let target = reached_by_all(&one.series, "auc", 0.01);
    let target = target.unwrap_or(Target::new("auc", paper.auc));
    let cost = one.series.first().map(|s| s.first().manifest.sizes.cost);
    let cost = cost.unwrap_or_default();
    let mut section = one.section("table3", "Table III", "one device");
    section.until = Some(format!(
        "until test AUC {} (the paper: {})",
        target.value, paper.auc
    ));
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
        let printed = of_paper(one.compared(), papers, unit);
        section.row(format!("{what}, the paper"), printed);
        section.row(format!("{what}, {all}"), texts(&costs, unit));
        let once = one.compared().iter().map(|_| unit(each as f64));
        section.row(format!("{what}, per iteration"), once);
        let claims = against_hsgd((what, "FLOPs and memory"), &costs, papers, unit);
        section.claims.extend(claims);
    }
    section
}
