//! What a person reads when a run has ended, and what a script reads instead.

use crate::format::{bytes, count, rate, score, seconds};
use crate::run_directory::Manifest;
use selvedge_core::metrics::{METRICS, Metric};
use selvedge_core::run::Ending;
use selvedge_core::state::{Evaluation, State};
use serde_json::{Value, json};
use std::fmt::Write;

/// A run that has ended.
pub(crate) struct Finished {
    pub(crate) path: std::path::PathBuf,
    /// The command to run next.
    pub(crate) next: String,
    pub(crate) manifest: Manifest,
    pub(crate) ending: Ending,
    pub(crate) state: State,
    /// The last evaluation, and the one chosen on the validation samples.
    pub(crate) last: Option<Evaluation>,
    pub(crate) chosen: Option<Evaluation>,
}

impl Finished {
    /// The evaluation that counts: the chosen one, else the last.
    pub(crate) fn result(&self) -> Option<&Evaluation> {
        self.chosen.as_ref().or(self.last.as_ref())
    }

    /// One JSON object.
    pub(crate) fn json(&self) -> Value {
        json!({
            "run": self.path.display().to_string(),
            "name": self.manifest.name,
            "seed": self.manifest.experiment["seed"],
            "ending": self.manifest.ending,
            "last": self.last,
            "chosen_on_validation": self.chosen,
            "ledger": self.state.progress.ledger.entries(),
            "timing": self.manifest.timing,
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
        let train = &self.manifest.experiment["train"];
        let progress = &self.state.progress;
        writeln!(
            out,
            "{} · {} · {} of {} iterations · {} · seed {}",
            self.manifest.name,
            train["algorithm"].as_str().unwrap_or_default(),
            count(progress.t),
            count(train["iterations"].as_u64().unwrap_or_default()),
            self.settings(),
            self.manifest.experiment["seed"],
        )?;
        self.write_ending(out)?;
        self.write_metrics(out)?;
        self.write_bytes(out)?;
        let timing = self.manifest.timing;
        let rate = timing.iterations as f64 / timing.seconds.max(1e-9);
        writeln!(
            out,
            "\nTime    simulated {}, real {} ({} iterations a second, evaluation included)",
            seconds(progress.clock.seconds()),
            seconds(timing.seconds),
            count(rate.round() as u64)
        )?;
        writeln!(out, "Files   {}", self.path.display())?;
        writeln!(out, "Next    {}", self.next)
    }

    /// P, Q and η, and what became of them where somebody steers.
    fn settings(&self) -> String {
        let train = &self.manifest.experiment["train"];
        let (p, q) = (&train["global_interval"], &train["local_interval"]);
        let given = format!("P {p}, Q {q}, η {}", train["learning_rate"]);
        let (progress, mode) = (&self.state.progress, train["adaptive"].as_str());
        let Some(mode) = mode.filter(|_| progress.controller.is_some()) else {
            return given;
        };
        let segment = &progress.segment;
        let (p, q) = (segment.global_interval, segment.local_interval);
        let eta = rate(segment.learning_rate);
        format!("{given}, by {mode} now P {p}, Q {q}, η {eta}")
    }

    fn write_ending(&self, out: &mut String) -> std::fmt::Result {
        match &self.ending {
            Ending::Finished => Ok(()),
            Ending::Reached { key, value } => {
                writeln!(out, "Stopped: {key} is reached at {value:.4}")
            }
            Ending::Interrupted => {
                writeln!(
                    out,
                    "Interrupted and saved at iteration {}",
                    count(self.state.progress.t)
                )
            }
            Ending::Diverged { t, .. } => writeln!(out, "Diverged at iteration {t}"),
        }
    }

    fn write_metrics(&self, out: &mut String) -> std::fmt::Result {
        let width = |metric: &Metric| (metric.heading.len() + 2).max(7);
        let heading = |metric: &Metric| format!("{:>1$}", metric.heading, width(metric));
        let headings: String = METRICS.iter().map(heading).collect();
        writeln!(out, "\n{:<18}{headings}", "")?;
        let rows = [("last", &self.last), ("best on validation", &self.chosen)];
        for (name, e) in rows {
            let Some(e) = e else { continue };
            let value = |metric: &Metric| format!("{:>1$}", score(metric.of(e)), width(metric));
            let values: String = METRICS.iter().map(value).collect();
            writeln!(out, "{name:<18}{values}   t {}", count(e.t))?;
        }
        Ok(())
    }

    fn write_bytes(&self, out: &mut String) -> std::fmt::Result {
        let ledger = &self.state.progress.ledger;
        let groups = self.manifest.sizes.groups as f64;
        let per_group = |n: f64| bytes(n / groups);
        writeln!(
            out,
            "\nBytes sent, mean per group: {} in all, {} as the paper counts",
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

/// Mean and standard deviation over seeds of what counts.
pub(crate) fn over_seeds(runs: &[Finished]) -> String {
    let results: Vec<&Evaluation> = runs.iter().filter_map(Finished::result).collect();
    let mut out = format!("{} seeds, mean ± standard deviation\n", results.len());
    for metric in Metric::targets() {
        let (name, values) = (metric.heading, results.iter().filter_map(|e| metric.of(e)));
        let values: Vec<f64> = values.collect();
        if values.is_empty() {
            let _ = writeln!(out, "  {name:<12}–");
            continue;
        }
        let (mean, deviation) = mean_and_deviation(&values);
        let _ = writeln!(out, "  {name:<12}{mean:.4} ± {deviation:.4}");
    }
    out
}

/// The mean, and the standard deviation of a sample (0 for one value).
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (
        mean,
        if values.len() < 2 {
            0.0
        } else {
            (squares / (n - 1.0)).sqrt()
        },
    )
}
