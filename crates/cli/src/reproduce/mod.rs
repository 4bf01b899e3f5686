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
mod iteration;
mod output;
mod paper;
mod section;
mod sets;
mod strategy2;
mod summary;
mod tables;
mod trend;

pub(crate) use output::{check, markdown, write};
pub(crate) use sets::sets_at_hand;

use crate::Outcome;
use crate::comparison::table::Table;
use crate::comparison::targets::{Target, usual};
use crate::comparison::{Options, rates, run_all};
use crate::load;
use anyhow::{Result, anyhow, bail};
use intervals::Varied;
use paper::{COMPARED, Compared, NAMES, PaperSet};
use section::{Claim, PerSeed, Section, against_hsgd, mean_text, of_paper};
use selvedge_core::experiment::one_of;
use selvedge_core::state::Evaluation;
use selvedge_run::comparison::{Comparison, Variant};
use selvedge_run::runs::{Series, series};
use sets::{ENOUGH, load_silently, preset};
use std::path::{Path, PathBuf};

/// What can be reproduced: the paper's tables and figures, the bytes of an iteration, Table II with the learning rates
/// that the paper prints, and Table II with a combined model of two layers.
pub(crate) const PARTS: [&str; 12] = [
    "bytes", "table2", "table3", "table4", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9",
    "printed", "layers",
];

/// With which settings algorithms are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settings {
    /// Each algorithm has its best learning rate.
    Tuned,
    /// The learning rate that the paper prints, P = Q = 1, no validation samples.
    Printed,
    /// As tuned, with a combined model of two layers.
    TwoLayers,
}

/// One data set with one P = Q, run.
pub(crate) struct Reproduced {
    pub(crate) paper: &'static PaperSet,
    /// The experiment that stands for it.
    pub(crate) experiment: String,
    pub(crate) settings: Settings,
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

    /// The comparisons of algorithms that its parts need: with which settings, and which P = Q.
    fn settings(&self) -> Vec<(Settings, u64)> {
        let needs = |part: &str| self.parts.contains(&part);
        let needs_tuned = |part: &&&str| {
            let others = ["printed", "layers"].contains(*part);
            !others && !intervals::PARTS.contains(*part)
        };
        let mut all = Vec::new();
        if self.parts.iter().any(|part| needs_tuned(&part)) {
            all.extend(self.intervals.iter().map(|k| (Settings::Tuned, *k)));
        }
        if needs("printed") {
            all.push((Settings::Printed, 1));
        }
        if needs("layers") {
            let first = self.intervals.first();
            all.extend(first.map(|k| (Settings::TwoLayers, *k)));
        }
        all
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
    for (part, keys) in [
        (
            "printed",
            &[
                "train.learning_rate",
                "train.halve_every",
                "data.validation",
            ][..],
        ),
        ("layers", &["model.combined"]),
    ] {
        let changed = keys.iter().find(|key| plan.sets(key));
        if let Some(key) = changed.filter(|_| plan.parts.contains(&part)) {
            bail!("--set {key}: `{part}` fixes this; leave that part out to change it");
        }
    }
    let mut prepared = Vec::new();
    for (settings, interval) in plan.settings() {
        for (paper, name) in &plan.sets {
            let Some(comparison) = comparison(plan, (paper, name), settings, interval)? else {
                crate::say(&format!(
                    "note: {name} is not compared with a combined model of two layers; esr is"
                ));
                continue;
            };
            comparison.cells(Path::new(""))?;
            prepared.push((*paper, *name, settings, interval, comparison));
        }
    }
    let varied = intervals::prepare(plan)?;
    if prepared.is_empty() && varied.is_empty() {
        bail!(
            "{}: there is nothing to reproduce for these data sets; `layers` needs --data esr",
            plan.parts.join(",")
        );
    }
    for (paper, name) in &plan.sets {
        let experiment = preset(name, &plan.set)?;
        let samples = load_silently(&experiment, &options.data)?;
        // A demonstration of a set must not stand under its name.
        if samples < ENOUGH && !experiment.data.set.starts_with("synthetic") {
            bail!(
                "{name}: {samples} training samples are too few for {}: expected the whole set, with at least {ENOUGH}",
                paper.name
            );
        }
    }
    let mut runs = Runs {
        algorithms: Vec::new(),
        intervals: Vec::new(),
    };
    for (paper, name, settings, interval, comparison) in prepared {
        let what = (paper, name, settings, interval);
        let Some(one) = one(plan, what, comparison, options)? else {
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

/// The algorithms on one data set with one P = Q; nothing if the set is not compared with these settings.
fn comparison(
    plan: &Plan,
    (paper, name): (&PaperSet, &str),
    settings: Settings,
    interval: u64,
) -> Result<Option<Comparison>> {
    let preset_name = match settings {
        Settings::Printed => format!("{name}-paper"),
        _ => name.to_owned(),
    };
    let mut set = paper.changes_of(&preset_name).to_vec();
    set.push(format!("train.global_interval={interval}"));
    set.push(format!("train.local_interval={interval}"));
    if paper.experiments[0] == name {
        set.push(format!("train.raw_bytes={}", paper.raw_bytes));
    }
    if settings == Settings::TwoLayers {
        let Some(layers) = paper.two_layers.get(name) else {
            return Ok(None);
        };
        set.push(format!("model.combined={layers}"));
    }
    set.extend(plan.set.iter().cloned());
    let experiment = load::for_comparison(preset(&preset_name, &set)?)?;
    let is_compared = |one: &&Compared| settings != Settings::Printed || one.is_papers();
    let compared = COMPARED.iter().filter(is_compared);
    Ok(Some(Comparison {
        name: preset_name,
        kind: "compare".into(),
        experiment: serde_json::to_value(&experiment)?,
        variants: compared
            .map(|one| Variant::new(one.name.into(), one.set()))
            .collect(),
        seeds: load::seeds(experiment.seed, plan.seeds)?,
        rates: None,
    }))
}

fn one(
    plan: &Plan,
    (paper, name, settings, interval): (&'static PaperSet, &str, Settings, u64),
    mut comparison: Comparison,
    options: &Options,
) -> Result<Option<Reproduced>> {
    let folder = plan.folder.join(match settings {
        Settings::Tuned => format!("{name}-{interval}"),
        Settings::Printed => format!("{name}-printed"),
        Settings::TwoLayers => format!("{name}-layers-{interval}"),
    });
    crate::say(&format!(
        "{}, P = Q = {interval}: {}",
        comparison.name,
        folder.display()
    ));
    let grid = (settings != Settings::Printed).then_some(&paper.grid[..]);
    comparison.check(&folder, grid)?;
    crate::comparison::output::check(&folder)?;
    let _lock = Comparison::lock(&folder)?;
    if let Some(grid) = grid
        && rates::choose(&mut comparison, (grid, true), &folder, options)?.is_none()
    {
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
    crate::comparison::output::write_report(&folder, &report)?;
    series.sort_by_key(|s| NAMES.iter().position(|name| *name == s.label));
    Ok(Some(Reproduced {
        paper,
        experiment: name.into(),
        settings,
        interval,
        comparison,
        series,
    }))
}

/// The sections of what was run.
pub(crate) fn sections(plan: &Plan, runs: &Runs, options: &Options) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for one in &runs.algorithms {
        sections.extend(tables::learning_rates(one));
    }
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
            match (*part, one.settings) {
                ("bytes", Settings::Tuned) => sections.push(iteration::bytes(one)),
                ("table2", Settings::Tuned) => sections.push(tables::table2(one)),
                ("table3", Settings::Tuned) => sections.push(tables::table3(one)),
                ("table4", Settings::Tuned) => sections.push(compute::table4(one, options)?),
                ("fig4", Settings::Tuned) => sections.push(figures::figure4(one)),
                ("fig5", Settings::Tuned) => sections.push(figures::figure5(one)),
                ("fig6", Settings::Tuned) => sections.push(figures::figure6(one)),
                ("printed", Settings::Printed) => sections.push(tables::printed(one)?),
                ("layers", Settings::TwoLayers) => sections.push(tables::two_layers(one)?),
                _ => {}
            }
        }
    }
    Ok(sections)
}

impl Reproduced {
    /// A section about it, headed by what is compared.
    fn section(&self, part: &str, what: &str, head: &str) -> Section {
        let reads = self.comparison.experiment["data"]["set"].as_str();
        let set = self
            .paper
            .shown(&self.experiment, reads.unwrap_or_default());
        let mut section = Section::new(part, what, set, Some(self.interval));
        section.row(head, self.compared().iter().map(|one| one.name.to_owned()));
        section
    }

    /// What is compared, in the order of the series.
    fn compared(&self) -> &'static [Compared] {
        &COMPARED[..self.series.len()]
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

    /// The same of all that are compared.
    fn costs_of_all(
        &self,
        target: &Target,
        cost: impl Fn(usize, &Evaluation) -> f64,
    ) -> Vec<PerSeed> {
        let of = |i: usize| self.costs(i, target, |e| cost(i, e));
        (0..self.series.len()).map(of).collect()
    }
}

fn costs(series: Option<&Series>, target: &Target, cost: impl Fn(&Evaluation) -> f64) -> PerSeed {
    let runs = series.into_iter().flat_map(|s| &s.runs);
    runs.map(|run| target.reached(run).map(&cost)).collect()
}
