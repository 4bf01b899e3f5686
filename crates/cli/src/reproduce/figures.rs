//! Figures 4 to 6: metrics against time and against bytes.

use super::claims::{Verdict, compare};
use super::paper::NAMES;
use super::{Claim, Reproduced, Section, mean_text};
use crate::comparison::targets::{Target, reached_by_all};
use crate::report::chart_file;
use selvedge_core::state::Evaluation;
use selvedge_run::format::{bytes, seconds};
use selvedge_run::runs::{Axis, Series};

/// What the text says of Figure 5, against JFL, TDCD, C-HSGD and C-TDCD.
const FIGURE5: [&str; 4] = [
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

/// What every algorithm needs until a target: a row, and HSGD against each of the others.
fn needs(
    one: &Reproduced,
    target: &Target,
    what: &str,
    cost: impl Fn(usize, &Evaluation) -> f64,
    unit: fn(f64) -> String,
    papers: Option<&[&str; 4]>,
) -> (Vec<String>, Vec<Claim>) {
    let costs: Vec<Vec<Option<f64>>> = (0..NAMES.len())
        .map(|i| one.costs(i, target, |e| cost(i, e)))
        .collect();
    let mut row = vec![format!("{what} until {}", target.name())];
    row.extend(costs.iter().map(|c| mean_text(c, unit)));
    let claims = (1..NAMES.len()).map(|i| {
        let found = compare(&costs[0], &costs[i]);
        Claim {
            text: format!("{what} until {}: hsgd < {}", target.name(), NAMES[i]),
            paper: match papers {
                Some(papers) => papers[i - 1].to_owned(),
                None => "the lower curve".into(),
            },
            verdict: found.verdict(true),
            found: found.text(),
        }
    });
    (row, claims.collect())
}

fn head() -> Vec<String> {
    let names = NAMES.iter().map(|name| (*name).to_owned());
    std::iter::once(String::new()).chain(names).collect()
}

fn file(one: &Reproduced, figure: &str) -> String {
    format!("{figure}-{}-{}.svg", one.experiment, one.interval)
}

/// AUC against simulated time.
pub(super) fn figure4(one: &Reproduced) -> Section {
    let (papers_auc, saved) = match &one.paper.figure4 {
        Some((auc, saved)) => (*auc, Some(saved)),
        None => (1.0, None),
    };
    let target = target_of_all(one, "auc", papers_auc);
    let taken = |_: usize, e: &Evaluation| e.seconds;
    let (row, mut claims) = needs(one, &target, "time", taken, seconds, saved);
    let start = |i: usize| {
        let first = one
            .series
            .get(i)
            .and_then(|s| s.first().evaluations.first());
        first.map_or("–".into(), |e| seconds(e.seconds))
    };
    let mut starts = vec!["training starts at".to_owned()];
    starts.extend((0..NAMES.len()).map(start));
    claims.extend(ahead_early(one, &target));
    Section {
        part: "fig4",
        title: one.title("Figure 4, AUC against time"),
        rows: vec![head(), row, starts],
        notes: Vec::new(),
        claims,
        figures: vec![(
            file(one, "fig4"),
            chart_file(&one.series, "auc", Axis::Seconds, None),
        )],
    }
}

/// The compressed algorithms are ahead at low targets, in the paper below an AUC of 0.85 (C-HSGD) and 0.8 (C-TDCD).
fn ahead_early(one: &Reproduced, highest: &Target) -> Vec<Claim> {
    let claim = |i: usize, below: f64| {
        let lower = (100.0 * highest.value - 5.0).round() / 100.0;
        let target = Target::new("auc", below.min(lower));
        let of = |i| one.costs(i, &target, |e| e.seconds);
        let found = compare(&of(i), &of(0));
        Claim {
            text: format!("time until {}: {} < hsgd", target.name(), NAMES[i]),
            paper: format!("ahead below {below}"),
            verdict: found.verdict(true),
            found: found.text(),
        }
    };
    vec![claim(3, 0.85), claim(4, 0.8)]
}

/// F1 against bytes.
pub(super) fn figure5(one: &Reproduced) -> Section {
    let papers = Target::new("f1", one.paper.figure5);
    let reaches = one.costs(0, &papers, |e| e.bytes_paper);
    let target = match reaches.iter().all(Option::is_some) {
        true => papers,
        false => target_of_all(one, "f1", one.paper.figure5),
    };
    let counted = |_: usize, e: &Evaluation| e.bytes_paper;
    let exact = |_: usize, e: &Evaluation| e.bytes_exact;
    let (row, claims) = needs(
        one,
        &target,
        "bytes, paper's count,",
        counted,
        bytes,
        Some(&FIGURE5),
    );
    let (all, _) = needs(one, &target, "every byte", exact, bytes, None);
    let title = "bytes as the paper counts, mean per group";
    let series = with(&one.series, |_, e| e.bytes_exact = e.bytes_paper);
    Section {
        part: "fig5",
        title: one.title("Figure 5, F1 against bytes"),
        rows: vec![head(), row, all],
        notes: Vec::new(),
        claims,
        figures: vec![(
            file(one, "fig5"),
            chart_file(&series, "f1", Axis::Bytes, Some(title)),
        )],
    }
}

/// AUC against time with computation ten times shorter and ten times longer.
pub(super) fn figure6(one: &Reproduced) -> Section {
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
    let mut rows = vec![head()];
    let (mut claims, mut figures) = (Vec::new(), Vec::new());
    for (scale, name) in [(0.1, "0.1"), (10.0, "10")] {
        let what = format!("time, computation × {name},");
        let taken = with_scale(scale);
        let (row, found) = needs(one, &target, &what, &taken, seconds, None);
        rows.push(row);
        claims.extend(found);
        let series = with(&one.series, |i, e| e.seconds = taken(i, e));
        let title = format!("simulated time, computation × {name}");
        let file = file(one, &format!("fig6-{name}"));
        figures.push((
            file,
            chart_file(&series, "auc", Axis::Seconds, Some(&title)),
        ));
    }
    claims.extend((1..NAMES.len()).map(|i| widens(one, &target, i, &with_scale)));
    Section {
        part: "fig6",
        title: one.title("Figure 6, computation ten times shorter and longer"),
        rows,
        notes: Vec::new(),
        claims,
        figures,
    }
}

/// The gap between HSGD and another widens with the time of computation.
fn widens<F: Fn(usize, &Evaluation) -> f64>(
    one: &Reproduced,
    target: &Target,
    i: usize,
    with_scale: &impl Fn(f64) -> F,
) -> Claim {
    let gaps = |scale: f64| -> Vec<Option<f64>> {
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
    let wider = pairs.iter().filter(|(a, b)| b > a).count();
    let all = short.len();
    let verdict = match (pairs.len(), wider) {
        (0, _) => Verdict::Unreached,
        (n, wider) if n == all && wider == n && n >= 5 => Verdict::Holds,
        (n, 0) if n == all && n >= 5 => Verdict::Reversed,
        _ => Verdict::Open,
    };
    Claim {
        text: format!("the gap to {} widens with computation", NAMES[i]),
        paper: "it widens".into(),
        verdict,
        found: format!("in {wider} of {all} seeds"),
    }
}

/// The same series with other numbers in their evaluations.
pub(super) fn with(series: &[Series], change: impl Fn(usize, &mut Evaluation)) -> Vec<Series> {
    let mut changed = series.to_vec();
    for (i, one) in changed.iter_mut().enumerate() {
        for evaluation in one.runs.iter_mut().flat_map(|run| &mut run.evaluations) {
            change(i, evaluation);
        }
    }
    changed
}
