//! A trained model in files that others read: ONNX, safetensors for PyTorch, and a model card.
//!
//! ```text
//! Trained ──► models (what is computed) ──► layers (a network) ──► onnx (a file) ──► protobuf (its bytes)
//!         ├─► description (what weights are of) ──► model.safetensors, which load.py reads
//!         └─► card (what the run was) ──► model-card.md
//! ```
//!
//! All take numbers as they were measured: scaling is a part of the model.

mod card;
mod description;
mod folder;
mod layers;
mod models;
mod onnx;
mod protobuf;

pub(crate) use folder::write;

use anyhow::Result;
use layers::Part;
use onnx::Graph;
use selvedge_core::calibration::Calibration;
use selvedge_core::experiment::{Experiment, Side};
use selvedge_core::model::{Architecture, Model};
use selvedge_core::outcome::Outcome;
use selvedge_data::{Inputs, SideInputs, SideStatistics};
use selvedge_run::manifest::Manifest;
use selvedge_run::outputs::Kind;
use selvedge_run::trained::Trained;
use std::ffi::OsStr;
use std::path::Path;

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// hospital.onnx, device.onnx, combined.onnx and model.onnx
    Onnx,
    /// model.safetensors, and load.py, which runs it in PyTorch
    Safetensors,
    /// model-card.md: data, splits, metrics, bytes, limits of use
    Card,
}

/// Every file that an export can have.
const FILES: [&str; 7] = [
    "hospital.onnx",
    "device.onnx",
    "combined.onnx",
    "model.onnx",
    "model.safetensors",
    "load.py",
    "model-card.md",
];

/// A file to be written.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind<'static>,
    pub(crate) contents: Vec<u8>,
}

/// What is exported.
pub(crate) struct Exported<'a> {
    trained: &'a Trained,
    manifest: &'a Manifest,
    experiment: &'a Experiment,
    architecture: &'a Architecture,
    /// The name of the model's file in the run.
    file: &'a OsStr,
    model: &'a Model,
    inputs: &'a Inputs,
    calibration: Option<&'a Calibration>,
}

impl<'a> Exported<'a> {
    pub(crate) fn new(trained: &'a Trained) -> Self {
        Exported {
            trained,
            manifest: &trained.manifest,
            experiment: &trained.experiment,
            architecture: &trained.architecture,
            file: trained.file.file_name().unwrap_or_default(),
            model: &trained.model,
            inputs: &trained.inputs,
            calibration: trained.calibration.as_ref(),
        }
    }

    /// The files of these formats; `run` is where the run lies.
    pub(crate) fn files(&self, formats: &[Format], run: &Path) -> Result<Vec<File>> {
        let mut files = Vec::new();
        let mut add = |name, kind, contents| {
            files.push(File {
                name,
                kind,
                contents,
            });
        };
        if formats.contains(&Format::Onnx) {
            for (name, graph) in FILES.into_iter().zip(self.graphs()?) {
                let model = name.trim_end_matches(".onnx");
                let explanation = self.explanation(model);
                let file = graph.into_file(model, &explanation, &self.facts())?;
                add(name, Kind::Network, file);
            }
        }
        if formats.contains(&Format::Safetensors) {
            add("model.safetensors", Kind::Weights, self.weights()?);
            add("load.py", Kind::Script, include_bytes!("load.py").to_vec());
        }
        if formats.contains(&Format::Card) {
            let card = card::text(self, run)?.into_bytes();
            add("model-card.md", Kind::Card, card);
        }
        Ok(files)
    }

    /// The graphs in the order of [`FILES`].
    fn graphs(&self) -> Result<[Graph; 4]> {
        let mut towers = [Graph::default(), Graph::default()];
        let (mut combined, mut whole) = (Graph::default(), Graph::default());
        let (mut given, mut made) = (Vec::new(), Vec::new());
        let sides = [(Side::Hospital, "zeta1"), (Side::Device, "zeta2")];
        for ((side, zeta), tower) in sides.into_iter().zip(&mut towers) {
            let width = self.architecture.tower(side).output().len();
            let own = models::add_tower(tower, self, side)?;
            tower.output(zeta, width, &own);
            given.push(combined.input(zeta, &[width]));
            made.push(models::add_tower(&mut whole, self, side)?);
        }
        models::add_combined(&mut combined, self, [&given[0], &given[1]])?;
        models::add_combined(&mut whole, self, [&made[0], &made[1]])?;
        let [hospital, device] = towers;
        Ok([hospital, device, combined, whole])
    }

    fn tower(&self, side: Side) -> Part<'a> {
        let layers = &self.experiment.model;
        let (name, layers, weights) = match side {
            Side::Hospital => ("hospital", layers.hospital(), &self.model.theta1),
            Side::Device => ("device", layers.device(), &self.model.theta2),
        };
        Part {
            name,
            network: self.architecture.tower(side),
            layers,
            weights,
        }
    }

    fn combined(&self) -> Part<'a> {
        Part {
            name: "combined",
            network: &self.architecture.combined,
            layers: self.experiment.model.combined(),
            weights: &self.model.theta0,
        }
    }

    /// What the model's answers are called.
    fn answers(&self) -> &'static str {
        match self.trained.outcome() {
            Outcome::Class | Outcome::Labels => "probabilities",
            Outcome::Quantity { .. } => "prediction",
            Outcome::Survival { .. } => "survival",
        }
    }

    /// The names of the classes or labels, or that of the quantity or of the event.
    fn classes(&self) -> &'a [String] {
        &self.inputs.statistics.classes
    }

    /// How a side is scaled.
    fn statistics(&self, side: Side) -> &'a SideStatistics {
        self.side(side).0
    }

    /// The same, and what training has seen of it.
    fn side(&self, side: Side) -> (&'a SideStatistics, &'a SideInputs) {
        let [hospital, device] = self.inputs.sides();
        match side {
            Side::Hospital => hospital,
            Side::Device => device,
        }
    }
}
