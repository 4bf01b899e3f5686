//! `selvedge evaluate`: exact metrics, from all scores.

use super::{print, print_json};
use crate::Outcome;
use crate::args::EvaluateArgs;
use crate::format::{count, score};
use crate::run_directory::Manifest;
use crate::{load, weights};
use anyhow::{Result, bail};
use selvedge_core::dataset::Samples;
use selvedge_core::evaluate::predict;
use selvedge_core::metrics::{Metrics, Tally};
use selvedge_core::model::{Architecture, Model};
use selvedge_core::task::Task;
use serde_json::{Value, json};

/// Exact results on some samples.
struct Scored {
    name: &'static str,
    samples: usize,
    loss: f64,
    metrics: Metrics,
    confusion: Vec<Vec<u64>>,
}

impl Scored {
    fn new(
        name: &'static str,
        architecture: &Architecture,
        model: &Model,
        samples: &[&Samples],
    ) -> Self {
        let mut tally = Tally::new(architecture.combined.output().len());
        let (mut loss, mut probabilities, mut labels) = (0.0, Vec::new(), Vec::new());
        for samples in samples {
            let predictions = predict(architecture, model, samples, None);
            loss += predictions.losses.total();
            tally.add(&predictions.probabilities, &samples.y);
            probabilities.extend(predictions.probabilities);
            labels.extend_from_slice(&samples.y);
        }
        Scored {
            name,
            samples: labels.len(),
            loss: loss / labels.len() as f64,
            metrics: tally.exact_metrics(&probabilities, &labels),
            confusion: tally.confusion().into_iter().map(<[u64]>::to_vec).collect(),
        }
    }

    fn json(&self) -> Result<Value> {
        let mut value = serde_json::to_value(self.metrics)?;
        value["loss"] = json!(self.loss);
        value["samples"] = json!(self.samples);
        value["confusion"] = json!(self.confusion);
        Ok(value)
    }
}

pub(crate) fn run(args: &EvaluateArgs) -> Result<Outcome> {
    let manifest = Manifest::read(&args.run)?;
    let experiment = manifest.experiment(&args.run)?;
    let file = args.run.join(if args.best {
        "best.safetensors"
    } else {
        "model.safetensors"
    });
    if !file.is_file() {
        if args.best {
            bail!(
                "{} has no best.safetensors: train with data.validation above 0",
                args.run.display()
            );
        }
        let run = args.run.display();
        bail!("{run} has no model.safetensors yet: finish it with `selvedge train --resume {run}`");
    }
    let dataset = load::dataset(&experiment, &args.data)?;
    if dataset.fingerprint() != manifest.data.fingerprint {
        bail!(
            "the data is not what {} was trained on: point --data-dir at the same files",
            args.run.display()
        );
    }
    let task = Task::new(&experiment, &dataset)?;
    let architecture = &task.architecture;
    let model = weights::load(&file, architecture)?;
    let training: Vec<&Samples> = dataset.groups.iter().map(|g| &g.samples).collect();
    let mut scored = vec![Scored::new("train", architecture, &model, &training)];
    for (name, samples) in [("validation", &dataset.validation), ("test", &dataset.test)] {
        if !samples.is_empty() {
            scored.push(Scored::new(name, architecture, &model, &[samples]));
        }
    }
    if args.json {
        let mut value = json!({ "run": args.run.display().to_string(), "model": file.display().to_string(), "classes": dataset.classes });
        for s in &scored {
            value[s.name] = s.json()?;
        }
        print_json(&value)?;
    } else {
        print(&text(&scored, &dataset.classes))?;
    }
    Ok(Outcome::Done)
}

fn text(scored: &[Scored], classes: &[String]) -> String {
    let mut out = format!(
        "{:<12}{:>9}{:>8}{:>7}{:>11}{:>8}{:>7}{:>10}\n",
        "", "samples", "loss", "AUC", "precision", "recall", "F1", "accuracy"
    );
    for s in scored {
        let m = &s.metrics;
        out += &format!(
            "{:<12}{:>9}{:>8.4}{:>7}{:>11.4}{:>8.4}{:>7.4}{:>10.4}\n",
            s.name,
            count(s.samples as u64),
            s.loss,
            score(m.auc),
            m.precision,
            m.recall,
            m.f1,
            m.accuracy
        );
    }
    if let Some(last) = scored.last() {
        out += &format!(
            "\nConfusion on the {} samples: rows are true classes, columns predicted ones\n",
            last.name
        );
        out += &format!("{:>10}", "");
        out.extend(classes.iter().map(|c| format!("{c:>9}")));
        out.push('\n');
        for (class, row) in classes.iter().zip(&last.confusion) {
            out += &format!("{class:>10}");
            out.extend(row.iter().map(|n| format!("{:>9}", count(*n))));
            out.push('\n');
        }
    }
    out
}
