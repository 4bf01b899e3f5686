//! What a person reads when a run has ended, and what a script reads instead.

use crate::comparison::table::{means, targets_of};
use selvedge_core::experiment::OptimiserSettings;
use selvedge_core::metrics::Metric;
use selvedge_core::run::Ending;
use selvedge_core::state::{Evaluation, Without};
use selvedge_run::Finished;
use selvedge_run::format::{bytes, count, counted, exact, rate, score, seconds};
use selvedge_run::left_out;
use selvedge_run::manifest::EndingInfo;
use selvedge_run::runs::mean_and_deviation;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// A run that has ended, for whoever trained it.
pub(crate) struct Summary {
    pub(crate) run: Finished,
    /// Its directory.
    pub(crate) path: PathBuf,
    /// The command to run next.
    pub(crate) next: String,
    /// How often a backdoor works, and how often the same is answered without its mark.
    pub(crate) backdoor: Option<[f64; 2]>,
}

impl Summary {
    /// One JSON object.
    pub(crate) fn json(&self) -> Value {
        let (groups, devices) = self.quarantined();
        json!({
            "run": self.path.display().to_string(),
            "name": self.run.manifest.name,
            "seed": self.run.manifest.experiment["seed"],
            "ending": self.run.manifest.ending,
            "last": self.run.last(),
            "chosen_on_validation": self.run.chosen(),
            "ledger": self.run.state.progress.ledger.entries(),
            "timing": self.run.manifest.timing,
            "backdoor": self.backdoor,
            "quarantined": groups.len() + devices,
        })
    }

    /// A page of text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let train = &self.run.manifest.experiment["train"];
        let progress = &self.run.state.progress;
        writeln!(
            out,
            "{} · {} · {} of {} iterations · {} · seed {}",
            self.run.manifest.name,
            train["algorithm"].as_str().unwrap_or_default(),
            count(progress.t),
            count(train["iterations"].as_u64().unwrap_or_default()),
            self.settings(),
            self.run.manifest.experiment["seed"],
        )?;
        self.write_ending(out)?;
        self.write_metrics(out)?;
        self.write_left_out(out)?;
        if let Some([marked, unmarked]) = self.backdoor {
            let [marked, unmarked] = [marked, unmarked].map(|share| 100.0 * share);
            writeln!(
                out,
                "\nBackdoor  {marked:.0} % of marked test samples are taken for the last class, {unmarked:.0} % of the same without the mark"
            )?;
        }
        self.write_bytes(out)?;
        let timing = self.run.manifest.timing;
        let rate = timing.iterations as f64 / timing.seconds.max(1e-9);
        writeln!(
            out,
            "\nTime    simulated {}, real {} ({} iterations per second, including evaluation)",
            seconds(progress.clock.seconds()),
            seconds(timing.seconds),
            count(rate.round() as u64)
        )?;
        writeln!(out, "Files   {}", self.path.display())?;
        writeln!(out, "Next    {}", self.next)
    }

    /// P, Q and η, and what became of them where somebody steers.
    fn settings(&self) -> String {
        let train = &self.run.manifest.experiment["train"];
        let (p, q) = (&train["global_interval"], &train["local_interval"]);
        let eta = train["learning_rate"].as_f64().map_or(String::new(), exact);
        let mut given = format!("P {p}, Q {q}, η {eta}");
        let optimiser = self.run.manifest.experiment["optimiser"].clone();
        let optimiser: OptimiserSettings = serde_json::from_value(optimiser).unwrap_or_default();
        if !optimiser.is_usual() {
            given += &format!(", {optimiser}");
        }
        let (progress, mode) = (&self.run.state.progress, train["adaptive"].as_str());
        let Some(mode) = mode.filter(|_| progress.controller.is_some()) else {
            return given;
        };
        let segment = &progress.segment;
        let (p, q) = (segment.global_interval, segment.local_interval);
        let eta = rate(segment.learning_rate);
        format!("{given}, steered by {mode} to P {p}, Q {q}, η {eta}")
    }

    fn write_ending(&self, out: &mut String) -> std::fmt::Result {
        match &self.run.ending {
            Ending::Finished => Ok(()),
            Ending::Reached { .. } => {
                let ending = self.run.manifest.ending.as_ref();
                let reached = ending.and_then(EndingInfo::reached);
                writeln!(out, "Stopped: {}", reached.unwrap_or_default())
            }
            Ending::Interrupted => {
                writeln!(
                    out,
                    "Interrupted and saved at iteration {}",
                    count(self.run.state.progress.t)
                )
            }
            Ending::Diverged { t, .. } => writeln!(out, "Diverged at iteration {t}"),
        }
    }

    fn write_metrics(&self, out: &mut String) -> std::fmt::Result {
        let rows = [
            ("last evaluated", self.run.last()),
            ("best on validation", self.run.chosen()),
        ];
        let rows: Vec<(&str, &Evaluation)> = rows
            .into_iter()
            .filter_map(|(name, e)| Some((name, e?)))
            .collect();
        let width = |metric: &Metric| {
            let values = rows
                .iter()
                .map(|(_, e)| score(metric.of(e)).chars().count());
            values
                .chain([metric.heading.chars().count(), 5])
                .max()
                .unwrap_or(0)
                + 2
        };
        let heading = |metric: &Metric| format!("{:>1$}", metric.heading, width(metric));
        let kind = self.run.manifest.data.outcome;
        let headings: String = Metric::of_kind(kind).map(heading).collect();
        writeln!(out, "\n{:<18}{headings}", "")?;
        for (name, e) in &rows {
            let value = |metric: &Metric| format!("{:>1$}", score(metric.of(e)), width(metric));
            let values: String = Metric::of_kind(kind).map(value).collect();
            let untrained = if e.t == 0 { ", untrained" } else { "" };
            writeln!(
                out,
                "{name:<18}{values}   iteration {}{untrained}",
                count(e.t)
            )?;
        }
        for (name, e) in &rows {
            if !e.without.is_empty() {
                let groups = &self.run.manifest.data.groups;
                writeln!(out, "{}", without(&format!("in {name:?}"), e, groups))?;
            }
        }
        let data = &self.run.manifest.data;
        match (data.test_samples, data.validation_samples) {
            (0, 0) => writeln!(
                out,
                "No test samples, so only the training loss is measured."
            ),
            (0, _) => writeln!(
                out,
                "No test samples: `evaluate` has the metrics on the validation samples, by which the best model was chosen."
            ),
            _ => writeln!(
                out,
                "On the test samples, but for the training loss.\n{}.",
                means(kind)
            ),
        }
    }

    /// The groups in quarantine, and how many devices are.
    fn quarantined(&self) -> (Vec<u32>, usize) {
        let defence = &self.run.manifest.experiment["defence"];
        let after = defence["quarantine"].as_u64().unwrap_or_default();
        let state = &self.run.state;
        let groups = state.progress.conduct.quarantined(after).collect();
        let devices = state.devices.iter().map(|held| held.quarantined(after));
        (groups, devices.sum())
    }

    /// Whose messages were left out, if any were.
    fn write_left_out(&self, out: &mut String) -> std::fmt::Result {
        let counts = left_out::counts(&self.path).unwrap_or_default();
        if counts.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nLeft out")?;
        for of in counts {
            let who = if of.devices { "device" } else { "group" };
            writeln!(
                out,
                "  {:<14}{:>9} × of {}",
                of.reason.to_string(),
                count(of.messages as u64),
                counted(of.parties as u64, who)
            )?;
        }
        let (groups, devices) = self.quarantined();
        let groups = groups.into_iter().map(|m| format!("group {m}"));
        let devices = (devices > 0).then(|| counted(devices as u64, "device"));
        let all: Vec<String> = groups.chain(devices).collect();
        match all.is_empty() {
            true => Ok(()),
            false => writeln!(out, "  in quarantine: {}", all.join(", ")),
        }
    }

    fn write_bytes(&self, out: &mut String) -> std::fmt::Result {
        let ledger = &self.run.state.progress.ledger;
        let groups = self.run.manifest.sizes.groups as f64;
        let per_group = |n: f64| bytes(n / groups);
        writeln!(
            out,
            "\nBytes sent, mean per group: {} in total, {} by the paper's count",
            per_group(ledger.exact() as f64),
            per_group(ledger.paper())
        )?;
        for e in ledger.entries() {
            let (from, to) = e.link.ends(e.direction);
            let share = e.bytes as f64 / ledger.exact().max(1) as f64;
            let bar = "▇".repeat((share * 30.0).round() as usize);
            writeln!(
                out,
                "  {:<20}{:<8}{:>9}{:>5.0} %  {bar}",
                format!("{from} → {to}"),
                e.kind.name(),
                per_group(e.bytes as f64),
                100.0 * share
            )?;
        }
        Ok(())
    }
}

/// Whose patients are not in the figures of an evaluation.
pub(crate) fn without(what: &str, e: &Evaluation, names: &[String]) -> String {
    let group = |out: &Without| {
        let name = names.get(out.group as usize);
        let name = name.map_or_else(
            || format!("group {}", out.group),
            |name| format!("{name:?}"),
        );
        let reason = out
            .reason
            .map_or("absent".into(), |reason| reason.to_string());
        format!("{name} ({reason})")
    };
    let groups: Vec<String> = e.without.iter().map(group).collect();
    format!(
        "Without the patients of some groups {what}: {}",
        groups.join(", ")
    )
}

/// Mean and standard deviation over seeds of what counts.
pub(crate) fn over_seeds(runs: &[Summary]) -> String {
    let results: Vec<&Evaluation> = runs.iter().filter_map(|s| s.run.result()).collect();
    let first = runs.first().map(|s| s.run.manifest.data.outcome);
    let mut out = format!("{} seeds, mean ± standard deviation\n", results.len());
    for metric in targets_of(first.unwrap_or_default()) {
        let (name, values) = (metric.heading, results.iter().filter_map(|e| metric.of(e)));
        let values: Vec<f64> = values.collect();
        if values.is_empty() {
            let _ = writeln!(out, "  {name:<12}–");
            continue;
        }
        let (mean, deviation) = mean_and_deviation(&values);
        let deviation = deviation.map_or(String::new(), |deviation| format!(" ± {deviation:.4}"));
        let few = match values.len() == results.len() {
            true => String::new(),
            false => format!("   of {}", counted(values.len() as u64, "seed")),
        };
        let _ = writeln!(out, "  {name:<12}{mean:.4}{deviation}{few}");
    }
    out
}
