//! `selvedge reproduce`: the paper's tables and figures, each beside what is found here.
//!
//! ```text
//! for each data set at hand:  comparison of the five algorithms, each with its best learning rate of the same grid
//!                             comparison of HSGD with many P, Q and η, for the figures of the adaptive strategies
//!                                └──► sections: tables, figures, claims with a paired test
//! ```
//!
//! A claim is an ordering that the paper prints or writes. Whether it holds is said as it is found.

mod adaptive;
pub(crate) mod claims;
mod compute;
mod figures;
mod intervals;
mod output;
mod paper;
mod sets;
mod strategy2;
mod tables;
mod trend;

pub(crate) use output::{markdown, write};
pub(crate) use sets::sets_at_hand;

use crate::Outcome;
use crate::comparison::table::Table;
use crate::comparison::targets::{Target, usual};
use crate::comparison::{Options, rates, run_all};
use crate::load;
use anyhow::{Result, anyhow, bail};
use claims::Verdict;
use intervals::Varied;
use paper::{NAMES, PaperSet};
use selvedge_core::experiment::one_of;
use selvedge_core::state::Evaluation;
use selvedge_run::comparison::{Comparison, Variant};
use selvedge_run::runs::{Series, series};
use serde::Serialize;
use sets::{load_silently, preset};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// What can be reproduced.
pub(crate) const PARTS: [&str; 9] = [
    "table2", "table3", "table4", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9",
];

/// A table or a figure for one data set.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) part: &'static str,
    pub(crate) title: String,
    /// Rows under each other; the first has the headings.
    pub(crate) rows: Vec<Vec<String>>,
    /// Sentences below the rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    pub(crate) claims: Vec<Claim>,
    /// Charts that belong to it: names of files and their contents.
    #[serde(skip)]
    pub(crate) figures: Vec<(String, String)>,
}

/// What each seed needs until a target: nothing where it does not get there.
type PerSeed = Vec<Option<f64>>;

impl Section {
    fn new(part: &'static str, title: String) -> Self {
        Section {
            part,
            title,
            rows: Vec::new(),
            notes: Vec::new(),
            claims: Vec::new(),
            figures: Vec::new(),
        }
    }

    fn row(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        let name = std::iter::once(name.into());
        self.rows.push(name.chain(cells).collect());
    }

    /// Claims that the first of two that were compared needs less.
    fn claim(&mut self, text: String, paper: impl Into<String>, found: &claims::Comparison) {
        self.claims.push(Claim::new(text, paper, found, true));
    }
}

/// An ordering that the paper claims.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Claim {
    pub(crate) text: String,
    /// What the paper prints.
    pub(crate) paper: String,
    pub(crate) verdict: Verdict,
    pub(crate) found: String,
}

impl Claim {
    fn new(
        text: String,
        paper: impl Into<String>,
        found: &claims::Comparison,
        claimed_less: bool,
    ) -> Self {
        Claim {
            text,
            paper: paper.into(),
            verdict: found.verdict(claimed_less),
            found: found.text(),
        }
    }
}

/// One data set with one P = Q, run.
pub(crate) struct Reproduced {
    pub(crate) paper: &'static PaperSet,
    /// The experiment that stands for it.
    pub(crate) experiment: String,
    pub(crate) interval: u64,
    pub(crate) comparison: Comparison,
    /// In the order of the paper's tables.
    pub(crate) series: Vec<Series>,
}

/// What to reproduce, and how.
pub(crate) struct Plan {
    pub(crate) parts: Vec<&'static str>,
    pub(crate) sets: Vec<(&'static PaperSet, &'static str)>,
    /// P = Q of the comparisons of algorithms.
    pub(crate) intervals: Vec<u64>,
    pub(crate) seeds: u64,
    pub(crate) set: Vec<String>,
    pub(crate) folder: PathBuf,
}

/// The parts of these names, separated by commas; `all` are all.
pub(crate) fn parts(name: &str) -> Result<Vec<&'static str>> {
    if name == "all" {
        return Ok(PARTS.to_vec());
    }
    let one = |name: &str| {
        let found = PARTS.into_iter().find(|part| *part == name);
        found.ok_or_else(|| anyhow!("{name}: {}, or \"all\"", one_of(name, &PARTS)))
    };
    let asked: Vec<&str> = name.split(',').map(one).collect::<Result<_>>()?;
    // In the paper's order, each once.
    Ok(PARTS.into_iter().filter(|p| asked.contains(p)).collect())
}

impl Plan {
    /// The parts that vary P, Q and η of one algorithm.
    fn parts_of_intervals(&self) -> Vec<&'static str> {
        let of_intervals = |part: &&str| intervals::PARTS.contains(part);
        self.parts.iter().copied().filter(of_intervals).collect()
    }

    /// Whether any part compares algorithms.
    fn compares_algorithms(&self) -> bool {
        self.parts_of_intervals().len() < self.parts.len()
    }

    /// Whether the user changes a key.
    fn sets(&self, key: &str) -> bool {
        let is_it = |change: &String| change.split('=').next().is_some_and(|k| k.trim() == key);
        self.set.iter().any(is_it)
    }
}

/// What a plan needed, run.
pub(crate) struct Runs {
    pub(crate) algorithms: Vec<Reproduced>,
    pub(crate) intervals: Vec<Varied>,
}

/// Runs what a plan needs, or finds it done; nothing if it was interrupted.
pub(crate) fn reproduce(plan: &Plan, options: &Options) -> Result<Option<Runs>> {
    // What cannot be is said before anything is run.
    for key in [
        "train.global_interval",
        "train.local_interval",
        "time.compute",
        "train.algorithm",
    ] {
        if plan.sets(key) {
            bail!(
                "--set {key}: the paper's tables and figures fix this; --intervals sets P = Q for those that compare algorithms"
            );
        }
    }
    let mut prepared = Vec::new();
    if plan.compares_algorithms() {
        for (paper, name) in &plan.sets {
            for interval in &plan.intervals {
                let comparison = comparison(plan, paper, name, *interval)?;
                comparison.cells(Path::new(""))?;
                prepared.push((*paper, *interval, comparison));
            }
        }
    }
    let varied = intervals::prepare(plan)?;
    for (_, name) in &plan.sets {
        load_silently(&preset(name, &plan.set)?, &options.data)?;
    }
    let mut runs = Runs {
        algorithms: Vec::new(),
        intervals: Vec::new(),
    };
    for (paper, interval, comparison) in prepared {
        let Some(one) = one(plan, paper, comparison, interval, options)? else {
            return Ok(None);
        };
        runs.algorithms.push(one);
    }
    for prepared in varied {
        let Some(one) = prepared.run(plan, options)? else {
            return Ok(None);
        };
        runs.intervals.push(one);
    }
    Ok(Some(runs))
}

/// The algorithms on one data set with one P = Q.
fn comparison(plan: &Plan, paper: &PaperSet, name: &str, interval: u64) -> Result<Comparison> {
    let mut set = vec![
        format!("train.global_interval={interval}"),
        format!("train.local_interval={interval}"),
    ];
    if paper.experiments[0] == name {
        set.push(format!("train.raw_bytes={}", paper.raw_bytes));
    }
    set.extend(plan.set.iter().cloned());
    let experiment = load::for_comparison(preset(name, &set)?)?;
    let variant = |name: &&str| {
        let set = vec![format!("train.algorithm={name}")];
        Variant::new((*name).into(), set)
    };
    Ok(Comparison {
        name: name.into(),
        kind: "compare".into(),
        experiment: serde_json::to_value(&experiment)?,
        variants: NAMES.iter().map(variant).collect(),
        seeds: load::seeds(experiment.seed, plan.seeds)?,
        rates: None,
    })
}

fn one(
    plan: &Plan,
    paper: &'static PaperSet,
    mut comparison: Comparison,
    interval: u64,
    options: &Options,
) -> Result<Option<Reproduced>> {
    let name = comparison.name.clone();
    let folder = plan.folder.join(format!("{name}-{interval}"));
    crate::say(&format!("{name}, P = Q = {interval}: {}", folder.display()));
    comparison.check(&folder, Some(&paper.grid))?;
    let _lock = Comparison::lock(&folder)?;
    if rates::choose(&mut comparison, &paper.grid, &folder, options)?.is_none() {
        return Ok(None);
    }
    comparison.write(&folder)?;
    if let Outcome::Interrupted = run_all(&comparison, &folder, options)? {
        return Ok(None);
    }
    let mut series = series(std::slice::from_ref(&folder), crate::note)?;
    series.retain(|s| NAMES.contains(&s.label.as_str()));
    let table = Table::new(&series, &usual(&series));
    let notes = comparison.rates.as_ref().map(rates::sentences);
    let notes = notes.unwrap_or_default();
    let report = crate::report::page(&series, &table, &notes);
    selvedge_run::files::write_whole(&folder.join("report.html"), report.as_bytes())?;
    series.sort_by_key(|s| NAMES.iter().position(|name| *name == s.label));
    Ok(Some(Reproduced {
        paper,
        experiment: name,
        interval,
        comparison,
        series,
    }))
}

/// The sections of what was run.
pub(crate) fn sections(plan: &Plan, runs: &Runs, options: &Options) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for part in &plan.parts {
        for one in &runs.intervals {
            match *part {
                "fig7" => sections.push(adaptive::figure7(one)),
                "fig8" => sections.push(adaptive::figure8(one, options)?),
                "fig9" => sections.push(adaptive::figure9(one)),
                _ => {}
            }
        }
        for one in &runs.algorithms {
            match *part {
                "table2" => sections.push(tables::table2(one)),
                "table3" => sections.push(tables::table3(one)),
                "table4" => sections.push(compute::table4(one, options)?),
                "fig4" => sections.push(figures::figure4(one)),
                "fig5" => sections.push(figures::figure5(one)),
                "fig6" => sections.push(figures::figure6(one)),
                _ => {}
            }
        }
    }
    Ok(sections)
}

impl Reproduced {
    /// What is shown, of which set, with P and Q.
    fn title(&self, what: &str) -> String {
        let set = self.paper.shown(&self.experiment);
        format!("{what} · {set} · P = Q = {}", self.interval)
    }

    /// What each seed of an algorithm costs until a target.
    fn costs(
        &self,
        algorithm: usize,
        target: &Target,
        cost: impl Fn(&Evaluation) -> f64,
    ) -> PerSeed {
        costs(self.series.get(algorithm), target, cost)
    }

    /// The same of all algorithms.
    fn costs_of_all(
        &self,
        target: &Target,
        cost: impl Fn(usize, &Evaluation) -> f64,
    ) -> Vec<PerSeed> {
        let of = |i: usize| self.costs(i, target, |e| cost(i, e));
        (0..NAMES.len()).map(of).collect()
    }
}

fn costs(series: Option<&Series>, target: &Target, cost: impl Fn(&Evaluation) -> f64) -> PerSeed {
    let runs = series.into_iter().flat_map(|s| &s.runs);
    runs.map(|run| target.reached(run).map(&cost)).collect()
}

/// What the paper prints of something: a dash where it was not reached.
fn printed(value: f64, unit: fn(f64) -> String) -> String {
    match value.is_finite() {
        true => unit(value),
        false => "–".into(),
    }
}

/// The mean over the seeds that got there, with how many did where that is not all; a dash where none did.
fn mean_text(costs: &[Option<f64>], unit: impl Fn(f64) -> String) -> String {
    let there: Vec<f64> = costs.iter().flatten().copied().collect();
    if there.is_empty() {
        return "–".into();
    }
    let mean = unit(there.iter().sum::<f64>() / there.len() as f64);
    match there.len() == costs.len() {
        true => mean,
        false => format!("{mean} ({} of {})", there.len(), costs.len()),
    }
}

/// HSGD against each of the others, where the paper says who needs less.
fn against_hsgd(
    what: &str,
    costs: &[PerSeed],
    papers: &[f64; 5],
    unit: fn(f64) -> String,
) -> Vec<Claim> {
    let [ours, theirs @ ..] = papers.map(|value| printed(value, unit));
    let claim = |i: usize| {
        let (less, sign) = match papers[0].total_cmp(&papers[i]) {
            Ordering::Less => (true, "<"),
            Ordering::Greater => (false, ">"),
            Ordering::Equal => return None,
        };
        Some(Claim::new(
            format!("{what}: hsgd {sign} {}", NAMES[i]),
            format!("{ours} {sign} {}", theirs[i - 1]),
            &claims::compare(&costs[0], &costs[i]),
            less,
        ))
    };
    (1..NAMES.len()).filter_map(claim).collect()
}
