//! What an iteration sends: where compression can save, and how much it does.

use super::{Reproduced, Section};
use selvedge_core::ledger::Kind;
use selvedge_core::state::Evaluation;
use selvedge_run::format::bytes as in_bytes;
use selvedge_run::runs::{Run, Series};

/// Bytes of an iteration, and how much of them codecs can reach.
pub(super) fn bytes(one: &Reproduced) -> Section {
    let mut section = one.section("bytes", "Bytes of an iteration", "per group");
    for (what, count) in [
        ("by the paper's count", counted as fn(&Evaluation) -> f64),
        ("every byte", exact),
    ] {
        let each: Vec<f64> = one.series.iter().map(|s| per_iteration(s, count)).collect();
        section.row(what, each.iter().map(|b| in_bytes(*b)));
        let hsgd = each.first().copied().unwrap_or(f64::NAN);
        let shares = each.iter().map(|b| format!("{:.2}", b / hsgd));
        section.row("  hsgd = 1", shares);
    }
    let of_compressible = one.series.iter().map(compressible);
    section.row("θ0, ζ1 and ζ2 of every byte", of_compressible);
    section.notes.extend(one.series.first().map(share_counted));
    section
}

fn counted(e: &Evaluation) -> f64 {
    e.bytes_paper
}

fn exact(e: &Evaluation) -> f64 {
    e.bytes_exact
}

/// Without what is sent before the first iteration.
fn per_iteration(series: &Series, count: fn(&Evaluation) -> f64) -> f64 {
    let of = |run: &Run| {
        let (first, last) = (run.evaluations.first()?, run.last()?);
        let iterations = last.t.checked_sub(first.t).filter(|t| *t > 0)?;
        Some((count(last) - count(first)) / iterations as f64)
    };
    series.runs.iter().find_map(of).unwrap_or(f64::NAN)
}

/// The share of θ0, ζ1 and ζ2 between hospital, edge and devices in what training sends.
fn compressible(series: &Series) -> String {
    let run = series.first();
    let (mut some, mut all) = (0, 0);
    for line in run.ledger.iter().filter(|l| l.kind != Kind::Raw.name()) {
        let kinds = [Kind::Theta0, Kind::Zeta1, Kind::Zeta2];
        let is_coded = kinds.iter().any(|kind| kind.name() == line.kind);
        if is_coded && !line.link.ends_with("cloud") {
            some += line.bytes;
        }
        all += line.bytes;
    }
    match all {
        0 => "–".into(),
        _ => format!("{:.0} %", 100.0 * some as f64 / all as f64),
    }
}

/// The same of HSGD by the paper's count, from the sizes of its models.
fn share_counted(hsgd: &Series) -> String {
    let run = hsgd.first();
    let (sizes, train) = (&run.manifest.sizes, &run.experiment.train);
    let widths = &sizes.widths;
    let devices = sizes.selected.iter().sum::<usize>() as f64 / sizes.selected.len().max(1) as f64;
    let coded = widths.n0 as f64 + devices * (widths.d1 + widths.d2) as f64;
    let exchange = coded + devices * widths.n2 as f64;
    let intervals = train.global_interval as f64 / train.local_interval as f64;
    let all = exchange * intervals + widths.n1 as f64;
    format!(
        "By the paper's count θ0, ζ1 and ζ2 are {:.0} % of what HSGD sends.",
        100.0 * coded * intervals / all
    )
}
