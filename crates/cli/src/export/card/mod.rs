//! The model card: what a model is, what it was trained on, how good it is, and where it must not be used.
//!
//! Everything in it comes from the run's own files.

mod inputs;
mod limits;
mod markdown;
mod outcome;
mod results;

use super::Exported;
use super::description::listed;
use super::layers::Part;
use anyhow::Result;
use markdown::{cell, table};
use selvedge_core::experiment::{Adaptive, Side};
use selvedge_core::state::Evaluation;
use selvedge_run::format::{count, counted, rate, seconds};
use selvedge_run::runs::Run;
use std::path::Path;

/// A run as its card tells of it.
struct Card<'a> {
    exported: &'a Exported<'a>,
    run: &'a Run,
}

/// The card of the run at `path`.
pub(super) fn text(exported: &Exported<'_>, path: &Path) -> Result<String> {
    let run = &Run::read(path)?;
    let card = Card { exported, run };
    let meaning = card.meaning();
    let mut sections = vec![card.introduction()];
    sections.extend(meaning);
    sections.extend([
        card.inputs(),
        card.use_of_it(),
        card.data(),
        card.training(),
        card.metrics(path)?,
        card.bytes(),
        card.limits(),
    ]);
    Ok(sections.join("\n"))
}

impl Card<'_> {
    /// Whether it is the model that was best on the validation samples, and not the last.
    fn is_best(&self) -> bool {
        self.exported.trained.is_best()
    }

    fn has_diverged(&self) -> bool {
        let ending = self.run.manifest.ending.as_ref();
        ending.is_some_and(|ending| ending.kind == "diverged")
    }

    /// The evaluation of this very model.
    fn evaluation(&self) -> Option<&Evaluation> {
        match self.is_best() {
            true => self.run.best(),
            false => self.run.last(),
        }
    }

    fn introduction(&self) -> String {
        let (manifest, widths) = (&self.run.manifest, self.run.manifest.sizes.widths);
        let which = match self.evaluation() {
            Some(e) if self.is_best() => {
                format!(
                    "the model after {} iterations, the best on the validation samples",
                    count(e.t)
                )
            }
            Some(e) if self.has_diverged() => {
                format!("the last good model, after {} iterations", count(e.t))
            }
            _ => format!(
                "the last model, after {} iterations",
                count(manifest.timing.iterations)
            ),
        };
        let [hospital, device] = [Side::Hospital, Side::Device].map(|s| self.exported.tower(s));
        let shape = |shape: Vec<usize>| format!("[{}]", listed(&shape, ", "));
        let combined = self.exported.combined();
        let rows = [
            (&hospital, "`hospital` → `zeta1`", widths.n1),
            (&device, "`device` → `zeta2`", widths.n2),
            (&combined, "`zeta1`, `zeta2` → `logits`", widths.n0),
        ];
        let row = |(part, what, weights): (&Part<'_>, &str, usize)| {
            vec![
                part.name.to_owned(),
                what.to_owned(),
                shape(part.network.input().dims()),
                cell(&layers_of(part)),
                count(weights as u64),
            ]
        };
        format!(
            "# {}\n\n\
             Written by `selvedge export` {} from the files of a run. The model {}, from the \
             data of a hospital and the measurements of a patient's device. It is {which}. It was trained with selvedge {}.\n\n{}",
            cell(&manifest.name),
            env!("CARGO_PKG_VERSION"),
            self.predicts(),
            cell(&manifest.selvedge),
            table(
                &["part", "computes", "input", "layers", "weights"],
                rows.map(row)
            ),
        )
    }

    fn use_of_it(&self) -> String {
        let (output, columns) = self.output();
        let answers = self.exported.answers();
        format!(
            "## How to use it\n\n\
             ```python\n\
             import numpy, onnxruntime\n\
             arrays = numpy.load(\"inputs.npz\")     # as `selvedge predict --arrays inputs.npz` writes them\n\
             session = onnxruntime.InferenceSession(\"model.onnx\")\n\
             inputs = {{\"hospital\": arrays[\"hospital\"], \"device\": arrays[\"device\"]}}\n\
             ({answers},) = session.run([\"{output}\"], inputs)     # [N, {}]: {columns}\n\
             ```\n\n\
             A hospital and a device that do not share their measurements each run their own tower, `hospital.onnx` or `device.onnx`, \
             and `combined.onnx` runs on both results. In PyTorch: `load.py`, which reads `model.safetensors`.\n",
            self.exported.trained.outputs(),
        )
    }

    fn data(&self) -> String {
        let (data, settings) = (&self.run.manifest.data, &self.run.experiment.data);
        let sizes = &self.run.manifest.sizes;
        let path = match settings.path.as_str() {
            "" => String::new(),
            path => format!(", file {}", cell(path)),
        };
        let labels = match data.labels.is_empty() {
            true if self.outcome().is_class() => {
                "The number of samples of each class in each group is not known here.\n".into()
            }
            true => {
                "The number of samples with each answer in each group is not known here.\n".into()
            }
            false => format!("{}:\n\n{}", self.counted_by().0, self.labels()),
        };
        let positive = self
            .run
            .manifest
            .positive()
            .map_or(String::new(), |positive| {
                let class = cell(&positive.label);
                format!("The positive class is {class} ({}).\n\n", positive.why)
            });
        let units = match settings.table.patient.is_empty() {
            true => "rows",
            false => "patients",
        };
        format!(
            "## Data and splits\n\n\
             Data set {}{path}, fingerprint `{}`; statistics of training rows `{}`.\n\n\
             {} training samples on {} devices of {} (split: {}); {} validation samples, {} test samples; seed {}. Before groups are \
             made, {} of the {units} are held out for the test and {} of the rest for validation, unless the data set has its own parts (PhysioNet's \
             set-b, or a column that names them).\n\n{positive}{labels}",
            cell(&settings.set),
            cell(&data.fingerprint),
            self.exported.inputs.statistics.fingerprint(),
            count(data.training_samples as u64),
            count(sizes.devices.iter().sum::<usize>() as u64),
            counted(sizes.groups as u64, "group"),
            cell(&settings.split),
            count(data.validation_samples as u64),
            count(data.test_samples as u64),
            self.run.experiment.seed,
            percent(settings.test),
            percent(settings.validation),
        )
    }

    /// How many samples of each class, or with each answer, each group has.
    fn labels(&self) -> String {
        let (data, devices) = (&self.run.manifest.data, &self.run.manifest.sizes.devices);
        let head = ["group", "devices"].map(String::from).into_iter();
        let head: Vec<String> = head.chain(self.counted_by().1).collect();
        let row = |(m, labels): (usize, &Vec<u64>)| {
            let devices = devices.get(m).copied().unwrap_or_default();
            let counts = labels.iter().map(|n| count(*n));
            let first = [self.group_name(m), count(devices as u64)];
            first.into_iter().chain(counts).collect()
        };
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        table(&head, data.labels.iter().enumerate().map(row))
    }

    fn group_name(&self, m: usize) -> String {
        let name = self.run.manifest.data.groups.get(m);
        name.map_or_else(|| m.to_string(), |name| cell(name))
    }

    fn training(&self) -> String {
        let (train, manifest) = (&self.run.experiment.train, &self.run.manifest);
        let steered = match train.adaptive {
            Adaptive::Off => "",
            _ => " initially; they were changed during training (segments.jsonl)",
        };
        let optimisers = match self.run.experiment.optimiser.to_string() {
            none if none.is_empty() => none,
            some => format!(", {some}"),
        };
        let ending = match &manifest.ending {
            Some(ending) => match (ending.kind.as_str(), &ending.key, ending.value) {
                ("reached", Some(key), Some(waited)) if key == "stop.patience" => format!(
                    "Training stopped at iteration {} because no model had been better on the validation samples for {} iterations.",
                    count(ending.t),
                    count(waited as u64)
                ),
                ("reached", Some(key), Some(value)) => format!(
                    "Training stopped at iteration {} because {} was reached{}, at {value:.4}.",
                    count(ending.t),
                    cell(key),
                    ending.judged()
                ),
                ("diverged", ..) => {
                    let last = match self.is_best() {
                        true => "",
                        false => "; this is the last model with finite weights",
                    };
                    format!("Training diverged at iteration {}{last}.", count(ending.t))
                }
                ("interrupted", ..) => {
                    format!("Training was interrupted at iteration {}.", count(ending.t))
                }
                (kind, ..) => format!("Training {} at iteration {}.", cell(kind), count(ending.t)),
            },
            None => String::new(),
        };
        format!(
            "## Training\n\n\
             Algorithm `{}`, at most {} iterations, P {}, Q {}, η {}{steered}{optimisers}; {} of a group's devices in each interval. \
             {ending} Training and evaluation took {} of real time. All settings are in the run's `manifest.json`.\n",
            train.algorithm,
            count(train.iterations),
            train.global_interval,
            train.local_interval,
            rate(train.learning_rate),
            percent(train.participation),
            seconds(manifest.timing.seconds),
        )
    }
}

/// `linear out 8 → tanh`
fn layers_of(part: &Part<'_>) -> String {
    let layers = part.layers.iter().map(|layer| {
        let json = serde_json::to_string(layer).unwrap_or_default();
        let words = json.replace(['"', '{', '}'], "").replace(':', " ");
        words.replace(',', ", ")
    });
    layers.collect::<Vec<_>>().join(" → ")
}

/// `12.5 %`
fn percent(share: f64) -> String {
    format!("{} %", rate(100.0 * share))
}
