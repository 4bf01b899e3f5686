//! `selvedge reproduce`: the paper's tables and figures, each beside what is found here.
//!
//! ```text
//! for each data set at hand:  comparison of the five algorithms, each with its best learning rate of the same grid
//!                                └──► sections: tables, figures, claims with a paired test
//! ```
//!
//! A claim is an ordering that the paper prints or writes. Whether it holds is said as it is found.

pub(crate) mod claims;
mod compute;
mod figures;
mod paper;
mod tables;

use crate::comparison::table::Table;
use crate::comparison::targets::usual;
use crate::comparison::{Comparison, Options, Variant, rates, run_all};
use crate::load;
use crate::presets;
use crate::runs::{Series, series};
use crate::{Outcome, args::DataDirectory};
use anyhow::{Context, Result, anyhow, bail};
use claims::Verdict;
use paper::{NAMES, PaperSet, SETS};
use selvedge_core::experiment::{Experiment, one_of};
use selvedge_core::state::Evaluation;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What can be reproduced.
pub(crate) const PARTS: [&str; 6] = ["table2", "table3", "table4", "fig4", "fig5", "fig6"];

/// A table or a figure for one data set.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) part: &'static str,
    pub(crate) title: String,
    /// Rows under each other; the first has the headings.
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) claims: Vec<Claim>,
    /// Charts that belong to it: names of files and their contents.
    #[serde(skip)]
    pub(crate) figures: Vec<(String, String)>,
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
    /// P = Q
    pub(crate) intervals: Vec<u64>,
    pub(crate) seeds: u64,
    pub(crate) set: Vec<String>,
    pub(crate) folder: PathBuf,
}

/// The parts of that name; `all` are all.
pub(crate) fn parts(name: &str) -> Result<Vec<&'static str>> {
    if name == "all" {
        return Ok(PARTS.to_vec());
    }
    let found = PARTS.into_iter().find(|part| *part == name);
    let found = found.ok_or_else(|| anyhow!("{name}: {}, or \"all\"", one_of(name, &PARTS)))?;
    Ok(vec![found])
}

/// The sets to use: those named, which must be there, or all that are, whether of the paper or standing for one of it.
pub(crate) fn sets_at_hand(
    named: &[String],
    data: &DataDirectory,
) -> Result<Vec<(&'static PaperSet, &'static str)>> {
    let all = || {
        SETS.iter()
            .flat_map(|set| set.experiments.iter().map(move |name| (set, *name)))
    };
    if !named.is_empty() {
        let known: Vec<&str> = all().map(|(_, name)| name).collect();
        let mut found: Vec<(&PaperSet, &str)> = Vec::new();
        for name in named {
            let set = all().find(|(_, known)| known == name);
            let set = set.ok_or_else(|| anyhow!("--data {name}: {}", one_of(name, &known)))?;
            if !found.iter().any(|(_, name)| *name == set.1) {
                found.push(set);
            }
        }
        return Ok(found);
    }
    let is_there = |name: &str| -> bool {
        let loaded = preset(name, &[]).and_then(|experiment| load_silently(&experiment, data));
        let directory = data.data_dir.as_deref();
        match loaded {
            // A file that is there and cannot be read is another thing than one that is not there.
            Err(error) if directory.is_some_and(|d| d.join(name).exists()) => {
                crate::say(&format!("note: {name}: {error:#}"));
                false
            }
            Ok(samples) if samples < ENOUGH => {
                crate::say(&format!(
                    "note: {name} is left out: {samples} training samples show nothing"
                ));
                false
            }
            loaded => loaded.is_ok(),
        }
    };
    let mut found = Vec::new();
    for set in &SETS {
        let there: Vec<_> = set
            .experiments
            .iter()
            .filter(|name| is_there(name))
            .collect();
        if there.is_empty() {
            crate::say(&format!(
                "note: {} is left out: nothing of {} is in the data folder",
                set.name,
                set.experiments.join(", ")
            ));
        }
        found.extend(there.into_iter().map(|name| (set, *name)));
    }
    if found.is_empty() {
        bail!(
            "no data set is at hand: `selvedge data fetch` lists where they come from, --data-dir says where they are"
        );
    }
    Ok(found)
}

/// Fewer training samples are a demonstration of a set, like that of MIMIC-III, and not the set.
const ENOUGH: usize = 1000;

/// The training samples of an experiment, if they can be loaded; what there is to say of them is said when they are used.
fn load_silently(experiment: &Experiment, data: &DataDirectory) -> Result<usize> {
    load::check_directory_of(experiment, data)?;
    let directory = data.data_dir.as_deref();
    let loaded = selvedge_data::load_with_notes(&experiment.data, experiment.seed, directory)?;
    Ok(loaded.dataset.training_samples())
}

fn preset(name: &str, set: &[String]) -> Result<Experiment> {
    let preset = presets::find(name).with_context(|| format!("no experiment `{name}`"))?;
    Experiment::parse(preset.text, set).map_err(|e| anyhow!("{name}: {e}"))
}

/// Runs what a plan needs, or finds it done; nothing if it was interrupted.
pub(crate) fn reproduce(plan: &Plan, options: &Options) -> Result<Option<Vec<Reproduced>>> {
    // What cannot be is said before anything is run.
    for key in [
        "train.global_interval",
        "train.local_interval",
        "time.compute",
        "train.algorithm",
    ] {
        let is_set = |change: &String| change.split('=').next().is_some_and(|k| k.trim() == key);
        if plan.set.iter().any(is_set) {
            bail!(
                "--set {key}: the paper's tables and figures decide that; --intervals chooses P = Q"
            );
        }
    }
    let mut prepared = Vec::new();
    for (paper, name) in &plan.sets {
        for interval in &plan.intervals {
            let comparison = comparison(plan, paper, name, *interval)?;
            comparison.cells(Path::new(""))?;
            prepared.push((*paper, *interval, comparison));
        }
    }
    for (_, name) in &plan.sets {
        load_silently(&preset(name, &plan.set)?, &options.data)?;
    }
    let mut all = Vec::new();
    for (paper, interval, comparison) in prepared {
        let Some(one) = one(plan, paper, comparison, interval, options)? else {
            return Ok(None);
        };
        all.push(one);
    }
    Ok(Some(all))
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
    let last = experiment.seed.checked_add(plan.seeds - 1);
    let last = last.context("--seeds: the last seed is too large")?;
    let variant = |name: &&str| {
        let set = vec![format!("train.algorithm={name}")];
        Variant::new((*name).into(), set)
    };
    Ok(Comparison {
        name: name.into(),
        kind: "compare".into(),
        experiment: serde_json::to_value(&experiment)?,
        variants: NAMES.iter().map(variant).collect(),
        seeds: (experiment.seed..=last).collect(),
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
    comparison.check(&folder, Some(paper.grid))?;
    let _lock = Comparison::lock(&folder)?;
    if rates::choose(&mut comparison, paper.grid, &folder, options)?.is_none() {
        return Ok(None);
    }
    comparison.write(&folder)?;
    if let Outcome::Interrupted = run_all(&comparison, &folder, options)? {
        return Ok(None);
    }
    let mut series = series(std::slice::from_ref(&folder))?;
    series.retain(|s| NAMES.contains(&s.label.as_str()));
    let table = Table::new(&series, &usual(&series));
    let notes = comparison.rates.as_ref().map(rates::Tuning::sentences);
    let notes = notes.unwrap_or_default();
    let report = crate::report::page(&series, &table, &notes);
    crate::files::write_whole(&folder.join("report.html"), report.as_bytes())?;
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
pub(crate) fn sections(plan: &Plan, all: &[Reproduced], options: &Options) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for part in &plan.parts {
        for one in all {
            match *part {
                "table2" => sections.push(tables::table2(one)),
                "table3" => sections.push(tables::table3(one)),
                "table4" => sections.push(compute::table4(one, options)?),
                "fig4" => sections.push(figures::figure4(one)),
                "fig5" => sections.push(figures::figure5(one)),
                _ => sections.push(figures::figure6(one)),
            }
        }
    }
    Ok(sections)
}

impl Reproduced {
    /// `ESR` or `MIMIC-III (physionet2012 stands for it)`, with P and Q.
    fn title(&self, what: &str) -> String {
        let stands_for = match self.paper.experiments[0] == self.experiment {
            true => String::new(),
            false => format!(" ({} stands for it)", self.experiment),
        };
        format!(
            "{what} · {}{stands_for} · P = Q = {}",
            self.paper.name, self.interval
        )
    }

    /// What each seed of an algorithm costs until a target.
    fn costs(
        &self,
        algorithm: usize,
        target: &crate::comparison::targets::Target,
        cost: impl Fn(&Evaluation) -> f64,
    ) -> Vec<Option<f64>> {
        let runs = self.series.get(algorithm).map(|s| &s.runs[..]);
        let runs = runs.unwrap_or_default().iter();
        runs.map(|run| target.reached(run).map(&cost)).collect()
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
    costs: &[Vec<Option<f64>>],
    papers: &[Option<f64>; 5],
    unit: &dyn Fn(f64) -> String,
) -> Vec<Claim> {
    let text = |x: Option<f64>| x.map_or("–".into(), unit);
    let order = |i: usize| {
        let infinite = |x: Option<f64>| x.unwrap_or(f64::INFINITY);
        infinite(papers[0]).total_cmp(&infinite(papers[i]))
    };
    let claim = |i: usize| {
        let less = match order(i) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => return None,
        };
        let found = claims::compare(&costs[0], &costs[i]);
        let sign = if less { "<" } else { ">" };
        Some(Claim {
            text: format!("{what}: hsgd {sign} {}", NAMES[i]),
            paper: format!("{} {sign} {}", text(papers[0]), text(papers[i])),
            verdict: found.verdict(less),
            found: found.text(),
        })
    };
    (1..NAMES.len()).filter_map(claim).collect()
}

/// Everything as one text in Markdown, which is readable as it is.
pub(crate) fn markdown(all: &[Reproduced], sections: &[Section]) -> String {
    let mut out = String::new();
    for one in all {
        if let Some(rates) = &one.comparison.rates {
            out += &format!(
                "## {}\n\n```text\n{}```\n\n",
                one.title("Learning rates"),
                rates.text()
            );
        }
    }
    for section in sections {
        out += &format!("## {}\n\n", section.title);
        for (name, _) in &section.figures {
            out += &format!("![{name}]({name})\n\n");
        }
        out += &format!("```text\n{}```\n\n", crate::format::table(&section.rows));
        if section.claims.is_empty() {
            continue;
        }
        out += "| claim | paper | | found here (first / second) |\n| --- | --- | --- | --- |\n";
        for claim in &section.claims {
            out += &format!(
                "| {} | {} | {} | {} |\n",
                claim.text,
                claim.paper,
                claim.verdict.name(),
                claim.found
            );
        }
        out.push('\n');
    }
    out += &counts(sections);
    out
}

/// How many claims hold.
fn counts(sections: &[Section]) -> String {
    let claims: Vec<&Claim> = sections.iter().flat_map(|s| &s.claims).collect();
    let count = |verdict| claims.iter().filter(|c| c.verdict == verdict).count();
    format!(
        "{} claims: {} hold, {} are reversed, {} show no difference, in {} neither gets there.\n",
        claims.len(),
        count(Verdict::Holds),
        count(Verdict::Reversed),
        count(Verdict::Open),
        count(Verdict::Unreached)
    )
}

/// Writes the text, the charts and the data behind them.
pub(crate) fn write(folder: &Path, text: &str, sections: &[Section]) -> Result<()> {
    use crate::files::write_whole;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, contents) in sections.iter().flat_map(|s| &s.figures) {
        write_whole(&folder.join(name), contents.as_bytes())?;
    }
    write_whole(&folder.join("reproduction.md"), text.as_bytes())?;
    let json = serde_json::to_string_pretty(sections)?;
    write_whole(&folder.join("reproduction.json"), json.as_bytes())
}
