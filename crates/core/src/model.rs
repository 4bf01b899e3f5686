//! The model: a hospital tower, a device tower, and what combines them.

use crate::experiment::{ModelSettings, Side};
use crate::keys::{Purpose, key};
use crate::outcome::Kind;
use selvedge_nn::{Network, Shape, ShapeError, Tensor, simd::Level};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The three networks: h1(θ1; x1) → ζ1, h2(θ2; x2) → ζ2, h0(θ0; [ζ1, ζ2]) → logits.
#[derive(Debug)]
pub struct Architecture {
    /// h0, over the two embeddings.
    pub combined: Network,
    /// h1, over the hospital's features.
    pub hospital: Network,
    /// h2, over the device's features.
    pub device: Network,
    /// The side whose embedding is zero, where an algorithm does not use it.
    pub blind_to: Option<Side>,
}

/// The parts, in the order of θ0, θ1, θ2, with the names that files use.
pub const PARTS: [&str; 3] = ["combined", "hospital", "device"];

impl Architecture {
    /// The networks of an experiment for samples of these shapes.
    ///
    /// # Errors
    /// If a layer does not fit, or the last one does not give as many numbers as the kind of outcome needs.
    pub fn new(
        settings: &ModelSettings,
        hospital: Shape,
        device: Shape,
        (kind, needed): (Kind, usize),
    ) -> Result<Self, ArchitectureError> {
        let build = |part, input, specs| {
            Network::new(input, specs).map_err(|problem| ArchitectureError::Layer { part, problem })
        };
        let hospital = build("hospital", hospital, settings.hospital())?;
        let device = build("device", device, settings.device())?;
        let embeddings = Shape::Flat(hospital.output().len() + device.output().len());
        let combined = build("combined", embeddings, settings.combined())?.with_input_gradient();
        if combined.output().len() != needed {
            return Err(ArchitectureError::Outputs {
                out: combined.output().len(),
                needed,
                of: kind.outputs(needed),
            });
        }
        Ok(Architecture {
            combined,
            hospital,
            device,
            blind_to: None,
        })
    }

    /// The same networks with another instruction set: the results are the same to the bit.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Architecture {
            combined: self.combined.with_level(level),
            hospital: self.hospital.with_level(level),
            device: self.device.with_level(level),
            ..self
        }
    }

    /// The network of one side.
    pub fn tower(&self, side: Side) -> &Network {
        match side {
            Side::Hospital => &self.hospital,
            Side::Device => &self.device,
        }
    }

    /// Where a side's embedding lies in what the combined model reads, and where the other side's.
    pub fn places(&self, side: Side) -> (Range<usize>, Range<usize>) {
        let d1 = self.hospital.output().len();
        let (hospital, device) = (0..d1, d1..self.combined.input().len());
        match side {
            Side::Hospital => (hospital, device),
            Side::Device => (device, hospital),
        }
    }

    /// The instruction set they use.
    pub fn level(&self) -> Level {
        self.combined.level()
    }

    /// n0, n1, n2, d1, d2.
    pub fn widths(&self) -> Widths {
        Widths {
            n0: self.combined.params(),
            n1: self.hospital.params(),
            n2: self.device.params(),
            d1: self.hospital.output().len(),
            d2: self.device.output().len(),
        }
    }

    /// The networks in the order of [`PARTS`].
    pub fn parts(&self) -> [&Network; 3] {
        [&self.combined, &self.hospital, &self.device]
    }

    /// The model that a seed starts from.
    pub fn initial(&self, seed: u64) -> Model {
        let [theta0, theta1, theta2] = [0, 1, 2].map(|part| {
            let network = self.parts()[part];
            let mut params = vec![0.0; network.params()];
            network.initialise(
                key(seed, Purpose::Initialise).with(part as u64),
                &mut params,
            );
            params
        });
        Model {
            theta0,
            theta1,
            theta2,
        }
    }

    /// Every tensor of a model as `<part>.<layer index>.<name>`, with the part's number.
    pub fn tensors(&self) -> Vec<(usize, Tensor)> {
        let of_part = |(part, network): (usize, &Network)| {
            let rename = move |mut tensor: Tensor| {
                tensor.name = format!("{}.{}", PARTS[part], tensor.name);
                (part, tensor)
            };
            network
                .tensors()
                .into_iter()
                .map(rename)
                .collect::<Vec<_>>()
        };
        self.parts()
            .into_iter()
            .enumerate()
            .flat_map(of_part)
            .collect()
    }
}

/// A model that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ArchitectureError {
    /// A layer does not fit.
    #[error("model.{part}: {problem}")]
    Layer {
        /// `hospital`, `device` or `combined`.
        part: &'static str,
        /// What does not fit.
        problem: ShapeError,
    },
    /// The last layer has the wrong width.
    #[error(
        "model.combined outputs {out} numbers, but the data has {needed} {of}: end it with {{ linear = {{ out = {needed} }} }}"
    )]
    Outputs {
        /// What it gives.
        out: usize,
        /// What it must give.
        needed: usize,
        /// What these are.
        of: &'static str,
    },
}

/// Numbers of parameters and widths of embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widths {
    /// Parameters of the combined model.
    pub n0: usize,
    /// Parameters of the hospital tower.
    pub n1: usize,
    /// Parameters of the device tower.
    pub n2: usize,
    /// Width of ζ1.
    pub d1: usize,
    /// Width of ζ2.
    pub d2: usize,
}

/// θ = (θ0, θ1, θ2)
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The combined model's parameters.
    pub theta0: Vec<f32>,
    /// The hospital tower's parameters.
    pub theta1: Vec<f32>,
    /// The device tower's parameters.
    pub theta2: Vec<f32>,
}

impl Model {
    /// A model of zeros.
    pub fn zeros(widths: Widths) -> Self {
        Model {
            theta0: vec![0.0; widths.n0],
            theta1: vec![0.0; widths.n1],
            theta2: vec![0.0; widths.n2],
        }
    }

    /// θ0, θ1, θ2.
    pub fn parts(&self) -> [&[f32]; 3] {
        [&self.theta0, &self.theta1, &self.theta2]
    }

    /// θ0, θ1, θ2, mutable.
    pub fn parts_mut(&mut self) -> [&mut Vec<f32>; 3] {
        [&mut self.theta0, &mut self.theta1, &mut self.theta2]
    }

    /// Takes over another model's numbers.
    pub fn copy_from(&mut self, other: &Model) {
        for (ours, theirs) in self.parts_mut().into_iter().zip(other.parts()) {
            ours.copy_from_slice(theirs);
        }
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.parts()
            .iter()
            .all(|part| part.iter().all(|x| x.is_finite()))
    }
}
