//! What an iteration sends: where compression can save, and how much it does.

use super::{Reproduced, Section};
use selvedge_core::ledger::{Kind, WORD};
use selvedge_core::state::Evaluation;
use selvedge_core::theory::bill::{Bill, Counter};
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
    let (bill, train) = (bill(hsgd), &hsgd.first().experiment.train);
    let (p, q) = (train.global_interval as f64, train.local_interval as f64);
    let widths = &bill.widths;
    let coded = widths.n0 as f64 + bill.selected * (widths.d1 + widths.d2) as f64;
    let all = bill.iteration(Counter::Paper, p, q);
    format!(
        "By the paper's count θ0, ζ1 and ζ2 are {:.0} % of what HSGD sends.",
        100.0 * coded * WORD as f64 / q / all
    )
}

/// What an exchange costs beside a global aggregation: how much P has to save.
pub(super) fn exchange_by_aggregation(hsgd: &Series) -> String {
    let bill = bill(hsgd);
    let [counted, exact] =
        [Counter::Paper, Counter::Exact].map(|counter| bill.local(counter) / bill.global(counter));
    let sign = if bill.favours_equal_intervals() {
        "≥"
    } else {
        "<"
    };
    format!(
        "An exchange costs {counted:.1} times the bytes of a global aggregation by the paper's count (so B {sign} 2·n1, strategy 1's condition for P = Q), and {exact:.1} times counting every byte."
    )
}

fn bill(series: &Series) -> Bill {
    let sizes = &series.first().manifest.sizes;
    Bill {
        widths: sizes.widths,
        selected: sizes.selected.iter().sum::<usize>() as f64 / sizes.selected.len().max(1) as f64,
    }
}
