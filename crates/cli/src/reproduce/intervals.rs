//! The runs of Figures 7 to 9: HSGD with many P, Q and η, in one folder per data set, so that a run which several
//! figures need is trained once.

use super::paper::{Adaptive, PaperSet};
use super::sets::preset;
use super::{PerSeed, Plan, Section};
use crate::Outcome;
use crate::comparison::table::Table;
use crate::comparison::targets::Target;
use crate::comparison::{Options, run_all};
use crate::load;
use anyhow::{Context, Result};
use selvedge_core::experiment::Experiment;
use selvedge_core::state::Evaluation;
use selvedge_run::comparison::{Comparison, Variant};
use selvedge_run::runs::{Series, series};
use std::path::Path;

/// The parts that are made of these runs.
pub(super) const PARTS: [&str; 3] = ["fig7", "fig8", "fig9"];

/// Q of Figure 7, and what P is a multiple of it by. The paper shows four P for each of three Q and does not say which.
pub(super) const FIGURE7: ([u64; 3], [u64; 4]) = ([1, 5, 10], [1, 2, 4, 10]);

/// P = Q of Figure 8.
pub(super) const FIGURE8: std::ops::RangeInclusive<u64> = 1..=20;

/// P and Q of Figure 9, each with the experiment's η, its half and its quarter.
pub(super) const FIGURE9: ([(u64, u64); 3], [u32; 3]) = ([(10, 5), (20, 5), (20, 10)], [0, 1, 2]);

/// What one run has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    /// How often the experiment's η is halved.
    pub(super) halvings: u32,
    pub(super) q: u64,
    pub(super) p: u64,
}

impl Setting {
    pub(super) const fn new(p: u64, q: u64) -> Self {
        Setting { halvings: 0, q, p }
    }

    /// The learning rate, given that of the experiment.
    pub(super) fn rate(self, base: f64) -> f64 {
        base / 2_f64.powi(self.halvings as i32)
    }

    /// `P=10 Q=5`, with η where it is not the experiment's.
    fn label(self, base: &Experiment) -> String {
        let Setting { halvings, q, p } = self;
        match halvings {
            0 => format!("P={p} Q={q}"),
            _ => format!("P={p} Q={q} eta={}", self.rate(base.train.learning_rate)),
        }
    }

    /// The experiment with this setting. T becomes a multiple of P; evaluations come no further apart than they do in
    /// the experiment, unless P is.
    fn variant(self, base: &Experiment) -> Variant {
        let Setting { halvings, q, p } = self;
        let iterations = base.train.iterations.div_ceil(p).saturating_mul(p);
        let apart = (base.train.evaluate_every.unwrap_or(1) / p).max(1) * p;
        let mut set = vec![
            format!("train.global_interval={p}"),
            format!("train.local_interval={q}"),
            format!("train.iterations={iterations}"),
            format!("train.evaluate_every={apart}"),
        ];
        if halvings > 0 {
            let rate = self.rate(base.train.learning_rate);
            set.push(format!("train.learning_rate={rate}"));
        }
        Variant::new(self.label(base), set)
    }
}

/// What a figure needs.
fn settings_of(part: &str) -> Vec<Setting> {
    match part {
        "fig7" => {
            let (all, ratios) = FIGURE7;
            let of = |q| ratios.map(|ratio| Setting::new(ratio * q, q));
            all.into_iter().flat_map(of).collect()
        }
        "fig8" => FIGURE8.map(|q| Setting::new(q, q)).collect(),
        _ => {
            let (pairs, halvings) = FIGURE9;
            let of = |(p, q)| halvings.map(|halvings| Setting { halvings, q, p });
            pairs.into_iter().flat_map(of).collect()
        }
    }
}

/// What some figures need together, each once.
fn settings(parts: &[&str]) -> Vec<Setting> {
    let mut all: Vec<Setting> = parts.iter().flat_map(|part| settings_of(part)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A comparison of settings that is yet to be run.
pub(super) struct Prepared {
    paper: &'static PaperSet,
    targets: &'static Adaptive,
    base: Experiment,
    comparison: Comparison,
}

/// Settings on one data set, run.
pub(crate) struct Varied {
    pub(super) paper: &'static PaperSet,
    pub(super) targets: &'static Adaptive,
    /// The name of the experiment that stands for the set.
    pub(super) experiment: String,
    /// What all runs have in common.
    pub(super) base: Experiment,
    series: Vec<Series>,
}

/// The comparisons that a plan needs for Figures 7 to 9: none if it has none of them.
pub(super) fn prepare(plan: &Plan) -> Result<Vec<Prepared>> {
    let parts = plan.parts_of_intervals();
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    let mut prepared = Vec::new();
    for (paper, name) in &plan.sets {
        let targets = paper.adaptive.get(*name);
        let targets =
            targets.with_context(|| format!("{name} has no targets for Figures 7 to 9"))?;
        let base = base(plan, (paper, name), targets)?;
        let settings = settings(&parts).into_iter();
        let comparison = Comparison {
            name: (*name).into(),
            kind: "sweep".into(),
            experiment: serde_json::to_value(&base)?,
            variants: settings.map(|setting| setting.variant(&base)).collect(),
            seeds: load::seeds(base.seed, plan.seeds)?,
            rates: None,
        };
        comparison.cells(Path::new(""))?;
        prepared.push(Prepared {
            paper,
            targets,
            base,
            comparison,
        });
    }
    Ok(prepared)
}

/// What all settings are changes of.
fn base(plan: &Plan, (paper, name): (&PaperSet, &str), of: &Adaptive) -> Result<Experiment> {
    let mut set = paper.changes_of(name).to_vec();
    set.extend([
        "train.algorithm=hsgd".to_owned(),
        "train.global_interval=1".into(),
        "train.local_interval=1".into(),
        format!("train.iterations={}", of.iterations),
        format!("train.evaluate_every={}", of.evaluate_every),
        format!("stop.auc={}", of.ends_at),
    ]);
    set.extend(
        of.learning_rate
            .map(|rate| format!("train.learning_rate={rate}")),
    );
    set.extend(plan.set.iter().cloned());
    preset(name, &set)
}

impl Prepared {
    /// Runs it, or finds it done; nothing if it was interrupted.
    pub(super) fn run(mut self, plan: &Plan, options: &Options) -> Result<Option<Varied>> {
        let name = self.comparison.name.clone();
        let folder = plan.folder.join(format!("{name}-intervals"));
        let settings = self.comparison.variants.len();
        crate::say(&format!(
            "{name}, {settings} settings of P, Q and η: {}",
            folder.display()
        ));
        self.comparison.check(&folder, None)?;
        crate::comparison::output::check(&folder)?;
        let _lock = Comparison::lock(&folder)?;
        self.comparison.write(&folder)?;
        if let Outcome::Interrupted = run_all(&self.comparison, &folder, options)? {
            return Ok(None);
        }
        let mut series = series(std::slice::from_ref(&folder), crate::note)?;
        // In the same order whichever figure was asked for first.
        series.sort_by_key(|s| {
            let train = &s.first().experiment.train;
            let is_slower = train.learning_rate < self.base.train.learning_rate;
            (is_slower, train.local_interval, train.global_interval)
        });
        let table = Table::new(&series, &targets(self.targets));
        let note = format!(
            "The learning rate is {} unless a variant names another",
            self.base.train.learning_rate
        );
        let report = crate::report::page(&series, &table, &[note]);
        crate::comparison::output::write_report(&folder, &report)?;
        Ok(Some(Varied {
            paper: self.paper,
            targets: self.targets,
            experiment: name,
            base: self.base,
            series,
        }))
    }
}

/// The targets of all three figures, each once.
fn targets(of: &Adaptive) -> Vec<Target> {
    let mut all = vec![
        Target::new("auc", of.figure7),
        Target::new("auc", of.figure8.0),
        Target::new("auc", of.figure9),
        Target::new("loss", of.figure8.1),
    ];
    all.dedup();
    all
}

impl Varied {
    /// A section about it.
    pub(super) fn section(&self, part: &str, what: &str) -> Section {
        let set = self.paper.shown(&self.experiment, &self.base.data.set);
        Section::new(part, what, set, None)
    }

    /// The runs of a setting; none if it was not asked for.
    pub(super) fn series(&self, setting: Setting) -> Option<&Series> {
        let label = setting.label(&self.base);
        self.series.iter().find(|s| s.label == label)
    }

    /// What each seed of a setting costs until a target.
    pub(super) fn costs(
        &self,
        setting: Setting,
        target: &Target,
        cost: impl Fn(&Evaluation) -> f64,
    ) -> PerSeed {
        super::costs(self.series(setting), target, cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_data::SETS;
    use std::collections::BTreeSet;

    fn experiment(name: &str, iterations: u64) -> Experiment {
        preset(name, &[format!("train.iterations={iterations}")]).unwrap()
    }

    #[test]
    fn every_experiment_has_targets() {
        for set in super::super::paper::PAPER_SETS.iter() {
            for name in &set.experiments {
                assert!(set.adaptive.contains_key(name), "{name}");
            }
        }
    }

    #[test]
    fn what_several_figures_need_is_trained_once() {
        let count = |parts: &[&str]| settings(parts).len();
        assert_eq!(PARTS.map(|part| count(&[part])), [12, 20, 9]);
        // P = Q of 1, 5 and 10 are in Figures 7 and 8; (10, 5), (20, 5) and (20, 10) in 7 and 9.
        assert_eq!(count(&PARTS), 12 + 20 - 3 + 9 - 3);
        for part in PARTS {
            let all = settings(&PARTS);
            assert!(settings_of(part).iter().all(|s| all.contains(s)), "{part}");
        }
    }

    #[test]
    fn every_variant_is_possible_and_has_a_folder_of_its_own() {
        for (name, iterations) in [("esr", 3000), ("physionet2012", 200), ("mimic3", 1)] {
            let base = experiment(name, iterations);
            let (mut folders, mut texts) = (BTreeSet::new(), BTreeSet::new());
            for setting in settings(&PARTS) {
                let variant = setting.variant(&base);
                let found = SETS.with(&base, &variant.set).unwrap();
                let train = &found.train;
                assert!(train.iterations.is_multiple_of(setting.p));
                assert!((iterations..iterations + setting.p).contains(&train.iterations));
                let every = train.evaluate_every.unwrap();
                assert!(every.is_multiple_of(setting.p), "{setting:?} {every}");
                assert!(folders.insert(variant.folder), "{setting:?}");
                assert!(texts.insert(found.to_toml()), "{setting:?}");
            }
        }
    }

    #[test]
    fn rates_are_halved() {
        let base = experiment("physionet2012", 100);
        let setting = Setting {
            halvings: 2,
            q: 5,
            p: 20,
        };
        let variant = setting.variant(&base);
        assert_eq!(variant.label, "P=20 Q=5 eta=0.025");
        let found = SETS.with(&base, &variant.set).unwrap();
        assert_eq!(found.train.learning_rate, 0.025);
        assert_eq!(Setting::new(20, 5).label(&base), "P=20 Q=5");
    }
}
