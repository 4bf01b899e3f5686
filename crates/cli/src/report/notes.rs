//! What a reader has to know about runs before believing their curves.

use super::figures::{Band, thinning};
use super::tables::ending;
use crate::summary::without;
use selvedge_core::state::Evaluation;
use selvedge_run::format::count;
use selvedge_run::runs::{Run, Series};
use std::collections::BTreeMap;

/// Sentences about runs that are incomplete, unequal or thinned out; `incomplete` is what is known of missing ones.
pub(super) fn notes(series: &[Series], incomplete: &[String]) -> Vec<String> {
    let mut notes: Vec<String> = incomplete
        .iter()
        .map(|sentence| format!("{sentence}."))
        .collect();
    notes.extend(unfinished(series));
    notes.extend(other_data(series));
    notes.extend(without_groups(series));
    for s in series.iter().filter(|s| s.evaluated().next().is_none()) {
        notes.push(format!("{} has not been evaluated yet.", s.label));
    }
    for s in series.iter().filter(|s| ends_differ(s)) {
        notes.push(format!(
            "The seeds of {} have not come equally far: after the first of them ends, its curve is over fewer seeds.",
            s.label
        ));
    }
    if let Some((drawn, all)) = thinning(series) {
        notes.push(format!(
            "Curves show {} of {} evaluations, evenly spaced.",
            count(drawn as u64),
            count(all as u64)
        ));
    }
    notes
}

/// What the bands of the charts are.
pub(super) fn bands(series: &[Series]) -> &'static str {
    let has = |band: Band| series.iter().any(|s| Band::of(s) == band);
    match (has(Band::Deviation), has(Band::Range)) {
        (true, true) => {
            "Lines are means over seeds; bands are ± one standard deviation, or the range of two seeds."
        }
        (true, false) => "Lines are means over seeds; bands are ± one standard deviation.",
        (false, true) => "Lines are means over two seeds; bands are their range.",
        (false, false) => "Each line is one seed.",
    }
}

fn ends_differ(series: &Series) -> bool {
    let mut ends = series.evaluated().filter_map(|run| run.last()).map(|e| e.t);
    let first = ends.next();
    ends.any(|t| Some(t) != first)
}

fn unfinished(series: &[Series]) -> Vec<String> {
    let mut by_ending: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    for run in series.iter().flat_map(|s| &s.runs) {
        let kind = run.manifest.ending.as_ref().map(|e| e.kind.as_str());
        if !matches!(kind, Some("finished" | "reached")) {
            by_ending
                .entry(ending(run.manifest.ending.as_ref()))
                .or_default()
                .push(run);
        }
    }
    let sentence = |(ending, runs): (String, Vec<&Run>)| {
        let names: Vec<String> = runs
            .iter()
            .take(3)
            .map(|run| run.path.display().to_string())
            .collect();
        let more = match runs.len() {
            0..=3 => String::new(),
            n => format!(" and {} more", count(n as u64 - 3)),
        };
        let (some, are, were) = match runs.len() {
            1 => ("One run", "is", "was"),
            _ => ("Some runs", "are", "were"),
        };
        match ending.as_str() {
            "not ended" => format!(
                "{some} {are} still training, or {were} killed: {}{more}.",
                names.join(", ")
            ),
            _ => format!(
                "{some} {}: {}{more}.",
                was(&ending, runs.len()),
                names.join(", ")
            ),
        }
    };
    by_ending.into_iter().map(sentence).collect()
}

fn was(ending: &str, runs: usize) -> String {
    match (ending, runs) {
        ("interrupted", 1) => "was interrupted and saved".into(),
        ("interrupted", _) => "were interrupted and saved".into(),
        _ => ending.into(),
    }
}

/// Figures at the end that are not about all patients.
fn without_groups(series: &[Series]) -> Vec<String> {
    let runs = series.iter().flat_map(|s| &s.runs);
    let lasts = runs.filter_map(|run| Some((run, run.last().filter(|e| !e.without.is_empty())?)));
    let sentence = |(run, e): (&Run, &Evaluation)| {
        let of = format!("in the last evaluation of {}", run.path.display());
        format!("{}.", without(&of, e, &run.manifest.data.groups))
    };
    lasts.map(sentence).collect()
}

/// The same settings and the same seed, but other files behind them.
fn other_data(series: &[Series]) -> Option<String> {
    let mut seen: BTreeMap<u64, &Run> = BTreeMap::new();
    for run in series.iter().flat_map(|s| &s.runs) {
        let first = *seen.entry(run.experiment.seed).or_insert(run);
        if first.manifest.data.fingerprint != run.manifest.data.fingerprint {
            return Some(format!(
                "The data of {} and {} differs, although their settings and seed are the same: compare their fingerprints below.",
                first.path.display(),
                run.path.display()
            ));
        }
    }
    None
}
