//! Figures 4 to 6: metrics against time and against bytes.

use super::claims::{Verdict, compare};
use super::paper::COMPARED;
use super::{Claim, PerSeed, Reproduced, Section, mean_text};
use crate::comparison::targets::{Target, reached_by_all};
use crate::report::chart_file;
use selvedge_core::state::Evaluation;
use selvedge_run::format::{bytes, seconds};
use selvedge_run::runs::{Axis, Series};

/// What the text says of Figure 5, against JFL, TDCD, C-HSGD and C-TDCD.
const FIGURE5_CLAIMS: [&str; 4] = [
    "F1 0.6 not reached",
    "45 % saved at F1 0.6",
    "77 % saved at F1 0.6",
    "F1 0.6 not reached",
];

/// The paper's target if every algorithm reaches it, else the highest that all reach, in steps of 0.01.
fn target_of_all(one: &Reproduced, metric: &'static str, papers: f64) -> Target {
    let all = reached_by_all(&one.series, metric, 0.01);
    match all {
        Some(found) if found.value < papers => found,
        _ => Target::new(metric, papers),
    }
}

/// What every algorithm needs until a target, as a row.
fn needs(
    section: &mut Section,
    one: &Reproduced,
    (what, target): (&str, &Target),
    cost: impl Fn(usize, &Evaluation) -> f64,
    unit: fn(f64) -> String,
) -> Vec<PerSeed> {
    let costs = one.costs_of_all(target, cost);
    let cells = costs.iter().map(|c| mean_text(c, unit));
    section.row(format!("{what} until {}", target.name()), cells);
    costs
}

/// HSGD needs less than each of the others.
fn claim_less(
    section: &mut Section,
    (what, about, target): (&str, &str, &Target),
    costs: &[PerSeed],
    paper: impl Fn(usize) -> String,
) {
    for (other, cost) in COMPARED.iter().zip(costs).skip(1) {
        let text = format!("{what} until {}: hsgd < {}", target.name(), other.name);
        let found = compare(&costs[0], cost);
        let claim = Claim::new(text, paper(other.column - 1), &found, true);
        section.claims.push(claim.between(about, other));
    }
}

fn lower_curve(_: usize) -> String {
    "lower curve".into()
}

fn file(one: &Reproduced, figure: &str) -> String {
    format!("{figure}-{}-{}.svg", one.experiment, one.interval)
}

/// AUC against simulated time.
pub(super) fn figure4(one: &Reproduced) -> Section {
    let mut section = one.section("fig4", "Figure 4, AUC against time", "");
    let papers = one.paper.figure4.as_ref();
    let target = target_of_all(one, "auc", papers.map_or(1.0, |papers| papers.auc));
    let time = ("time", &target);
    let costs = needs(&mut section, one, time, |_, e| e.seconds, seconds);
    claim_less(
        &mut section,
        ("time", "time", &target),
        &costs,
        |i| match papers {
            Some(papers) => format!("{} % saved at {}", papers.saved[i], papers.auc),
            None => lower_curve(i),
        },
    );
    let start = |i: usize| {
        let first = one
            .series
            .get(i)
            .and_then(|s| s.first().evaluations.first());
        first.map_or("–".into(), |e| seconds(e.seconds))
    };
    section.row("training starts at", (0..one.series.len()).map(start));
    ahead_early(&mut section, one, &target);
    let chart = chart_file(&one.series, "auc", Axis::Seconds, None);
    section.figure(file(one, "fig4"), chart);
    section
}

/// The compressed algorithms are ahead at low targets, in the paper below an AUC of 0.85 (C-HSGD) and 0.8 (C-TDCD).
fn ahead_early(section: &mut Section, one: &Reproduced, highest: &Target) {
    for (i, other) in one.compared().iter().enumerate() {
        let below: f64 = match other.column {
            3 => 0.85,
            4 => 0.8,
            _ => continue,
        };
        let lower = (100.0 * highest.value - 5.0).round() / 100.0;
        let target = Target::new("auc", below.min(lower));
        let of = |i| one.costs(i, &target, |e| e.seconds);
        let text = format!("time until {}: {} < hsgd", target.name(), other.name);
        let found = compare(&of(i), &of(0));
        let claim = Claim::new(text, format!("ahead below {below}"), &found, true);
        let claim = claim.between("compressed ahead early", other);
        // It is the other way round than all other ratios.
        let ratio = None;
        section.claims.push(Claim { ratio, ..claim });
    }
}

/// The F1 that the text compares bytes at.
const FIGURE5: f64 = 0.6;

/// F1 against bytes.
pub(super) fn figure5(one: &Reproduced) -> Section {
    let mut section = one.section("fig5", "Figure 5, F1 against bytes", "");
    let papers = Target::new("f1", FIGURE5);
    let reaches = one.costs(0, &papers, |e| e.bytes_paper);
    let target = match reaches.iter().all(Option::is_some) {
        true => papers,
        false => target_of_all(one, "f1", FIGURE5),
    };
    let what = "bytes, by the paper's count,";
    let counted = |_, e: &Evaluation| e.bytes_paper;
    let costs = needs(&mut section, one, (what, &target), counted, bytes);
    let about = (what, "bytes", &target);
    claim_less(&mut section, about, &costs, |i| FIGURE5_CLAIMS[i].into());
    let every = ("every byte", &target);
    needs(&mut section, one, every, |_, e| e.bytes_exact, bytes);
    let chart = against_counted_bytes(&one.series, "f1");
    section.figure(file(one, "fig5"), chart);
    section
}

/// A chart against bytes as the paper counts them.
pub(super) fn against_counted_bytes(series: &[Series], metric: &str) -> String {
    let title = "bytes by the paper's count, mean per group";
    let series = with(series, |_, e| e.bytes_exact = e.bytes_paper);
    chart_file(&series, metric, Axis::Bytes, Some(title))
}

/// AUC against time with computation ten times shorter and ten times longer.
pub(super) fn figure6(one: &Reproduced) -> Section {
    let title = "Figure 6, computation ten times shorter and longer";
    let mut section = one.section("fig6", title, "");
    let target = target_of_all(one, "auc", one.paper.table3.auc);
    let compute: Vec<f64> = one
        .series
        .iter()
        .map(|s| &s.first().experiment.time)
        .map(|time| time.compute_seconds() * time.compute_scale)
        .collect();
    let with_scale = |scale: f64| {
        let compute = compute.clone();
        move |i: usize, e: &Evaluation| e.seconds + (scale - 1.0) * compute[i] * e.t as f64
    };
    for (scale, name) in [(0.1, "0.1"), (10.0, "10")] {
        let what = format!("time, computation × {name},");
        let taken = with_scale(scale);
        let costs = needs(&mut section, one, (&what, &target), &taken, seconds);
        claim_less(&mut section, (&what, "time", &target), &costs, lower_curve);
        let series = with(&one.series, |i, e| e.seconds = taken(i, e));
        let title = format!("simulated time, computation × {name}");
        let chart = chart_file(&series, "auc", Axis::Seconds, Some(&title));
        let file = file(one, &format!("fig6-{name}"));
        section.figure(file, chart);
    }
    let widens = (1..one.series.len()).map(|i| widens(one, &target, i, &with_scale));
    section.claims.extend(widens);
    section
}

/// The gap between HSGD and another widens with the time of computation.
fn widens<F: Fn(usize, &Evaluation) -> f64>(
    one: &Reproduced,
    target: &Target,
    i: usize,
    with_scale: &impl Fn(f64) -> F,
) -> Claim {
    let gaps = |scale: f64| -> PerSeed {
        let seconds = with_scale(scale);
        let of = |i: usize| one.costs(i, target, |e| seconds(i, e));
        let pairs = of(0).into_iter().zip(of(i));
        pairs.map(|(ours, theirs)| Some(theirs? - ours?)).collect()
    };
    let (short, long) = (gaps(0.1), gaps(10.0));
    let pairs: Vec<(f64, f64)> = short
        .iter()
        .zip(&long)
        .filter_map(|(a, b)| Some(((*a)?, (*b)?)))
        .collect();
    let count = |is: fn(f64) -> bool| {
        let changes = pairs
            .iter()
            .map(|(a, b)| (b - a) / a.abs().max(b.abs()).max(1e-9));
        changes.filter(|change| is(*change)).count()
    };
    // Gaps that differ in their last digits are the same: both need the same iterations.
    let (wider, narrower) = (count(|x| x > 1e-9), count(|x| x < -1e-9));
    let all = short.len();
    let verdict = match (pairs.len(), wider) {
        (0, _) => Verdict::Unreached,
        (n, wider) if n == all && wider == n && n >= 5 => Verdict::Holds,
        (n, _) if n == all && narrower == n && n >= 5 => Verdict::Reversed,
        _ => Verdict::Open,
    };
    let other = &COMPARED[i];
    Claim {
        text: format!("the gap to {} widens with computation", other.name),
        between: Some(("the gap widens".into(), other.name.into())),
        paper: "it widens".into(),
        verdict,
        ratio: None,
        found: format!("in {wider} of {all} seeds"),
    }
}

/// The same series with other numbers in their evaluations.
fn with(series: &[Series], change: impl Fn(usize, &mut Evaluation)) -> Vec<Series> {
    let mut changed = series.to_vec();
    for (i, one) in changed.iter_mut().enumerate() {
        for evaluation in one.runs.iter_mut().flat_map(|run| &mut run.evaluations) {
            change(i, evaluation);
        }
    }
    changed
}
