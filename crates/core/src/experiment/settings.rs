//! The tables of an experiment, and their defaults.

use super::Algorithm;
use selvedge_nn::{ConvSpec, LayerSpec};
use serde::{Deserialize, Serialize};

/// `[train]`: the algorithm and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Which loop trains.
    pub algorithm: Algorithm,
    /// T
    pub iterations: u64,
    /// P, a multiple of Q
    pub global_interval: u64,
    /// Q
    pub local_interval: u64,
    /// η0
    pub learning_rate: f64,
    /// T0: halve the learning rate every so many iterations; 0 is never
    pub halve_every: u64,
    /// Who chooses P, Q and η while training: nobody (`off`), the convergence `bound`, or what an interval `gain`s
    #[serde(skip_serializing_if = "Adaptive::is_off")]
    pub adaptive: Adaptive,
    /// α: the share of a group's devices that takes part in an interval
    pub participation: f64,
    /// How the participants are drawn: `uniform`
    pub selection: String,
    /// λ of the regulariser (λ/2)‖θ‖² on the towers
    pub weight_decay: f64,
    /// `none`, `balanced`, or a list with one factor per class
    pub class_weights: ClassWeights,
    /// Who is sent the device model at an exchange: `selected` devices, or `all`
    pub broadcast: Broadcast,
    /// Evaluate at most every so many iterations, at global aggregations; by default about fifty times a run
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluate_every: Option<u64>,
    /// Compute the training loss over a fixed sample of so many training samples; 0 is over all
    pub loss_samples: usize,
    /// S: bytes of raw data that algorithms which move it are charged for; by default those of all training samples
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<u64>,
}

impl Default for TrainSettings {
    fn default() -> Self {
        TrainSettings {
            algorithm: Algorithm::Hsgd,
            iterations: 2000,
            global_interval: 10,
            local_interval: 5,
            learning_rate: 0.1,
            halve_every: 0,
            adaptive: Adaptive::Off,
            participation: 0.1,
            selection: "uniform".into(),
            weight_decay: 0.0,
            class_weights: ClassWeights::None,
            broadcast: Broadcast::Selected,
            evaluate_every: None,
            loss_samples: 0,
            raw_bytes: None,
        }
    }
}

/// The factor of each class's loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "ClassWeightsText", try_from = "ClassWeightsText")]
pub enum ClassWeights {
    /// All 1.
    None,
    /// Inverse to how often a class occurs, 1 on average over the samples.
    Balanced,
    /// As listed.
    Listed(Vec<f32>),
}

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"none\", \"balanced\" or a list with one factor per class"
)]
enum ClassWeightsText {
    Word(String),
    Listed(Vec<f32>),
}

impl From<ClassWeights> for ClassWeightsText {
    fn from(weights: ClassWeights) -> Self {
        match weights {
            ClassWeights::None => ClassWeightsText::Word("none".into()),
            ClassWeights::Balanced => ClassWeightsText::Word("balanced".into()),
            ClassWeights::Listed(list) => ClassWeightsText::Listed(list),
        }
    }
}

impl TryFrom<ClassWeightsText> for ClassWeights {
    type Error = String;

    fn try_from(text: ClassWeightsText) -> Result<Self, String> {
        match text {
            ClassWeightsText::Listed(list) => Ok(ClassWeights::Listed(list)),
            ClassWeightsText::Word(word) => match word.as_str() {
                "none" => Ok(ClassWeights::None),
                "balanced" => Ok(ClassWeights::Balanced),
                _ => Err(format!(
                    "class_weights = \"{word}\": use \"none\", \"balanced\" or a list with one factor per class"
                )),
            },
        }
    }
}

/// Who chooses P, Q and η while training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adaptive {
    /// Nobody: they are as the experiment says.
    Off,
    /// The paper's strategies 2 and 3, with constants measured on the run.
    Bound,
    /// What an interval gains on its own patients, against fresh ones.
    Gain,
}

impl Adaptive {
    /// Whether nobody steers; such experiments are written as they were before anybody could, so that their runs go on.
    pub fn is_off(&self) -> bool {
        *self == Adaptive::Off
    }
}

/// Who is sent the device model at an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Broadcast {
    /// The devices that take part: the same trajectory, fewer bytes.
    Selected,
    /// Every device of the group, as line 15 of Algorithm 1 has it.
    All,
}

/// `[model]`: the three networks. Left out, they are chosen for the data set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Layers of the hospital tower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hospital: Option<Vec<LayerSpec>>,
    /// Layers of the device tower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Vec<LayerSpec>>,
    /// Layers over both embeddings; the last gives one logit per class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combined: Option<Vec<LayerSpec>>,
}

impl ModelSettings {
    /// Layers of the hospital tower; none before the experiment is resolved.
    pub fn hospital(&self) -> &[LayerSpec] {
        self.hospital.as_deref().unwrap_or_default()
    }

    /// Layers of the device tower; none before the experiment is resolved.
    pub fn device(&self) -> &[LayerSpec] {
        self.device.as_deref().unwrap_or_default()
    }

    /// Layers of the combined model; none before the experiment is resolved.
    pub fn combined(&self) -> &[LayerSpec] {
        self.combined.as_deref().unwrap_or_default()
    }

    /// Fills in what was left out, for a data set.
    pub(super) fn fill(&mut self, set: &str, classes: usize) {
        let convolution = |out| {
            LayerSpec::Conv2d(ConvSpec {
                out,
                size: 3,
                stride: 1,
                padding: 1,
            })
        };
        let tower = match set {
            "esr" => vec![
                LayerSpec::Window { size: 8 },
                LayerSpec::Lstm { hidden: 32 },
            ],
            "mimic3" | "physionet2012" => vec![LayerSpec::Lstm { hidden: 16 }],
            "medmnist" | "mednist" | "organamnist" => vec![
                convolution(8),
                LayerSpec::Relu,
                LayerSpec::Maxpool { size: 2 },
                convolution(16),
                LayerSpec::Relu,
                LayerSpec::Maxpool { size: 2 },
                LayerSpec::Flatten,
            ],
            _ => vec![LayerSpec::Linear { out: 16 }, LayerSpec::Tanh],
        };
        let logits = LayerSpec::Linear { out: classes };
        let combined = match set {
            "synthetic" | "table" => vec![LayerSpec::Linear { out: 16 }, LayerSpec::Relu, logits],
            _ => vec![logits],
        };
        self.hospital.get_or_insert_with(|| tower.clone());
        self.device.get_or_insert(tower);
        self.combined.get_or_insert(combined);
    }
}

/// Where the seconds of computation come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    /// `compute_seconds` an iteration.
    Set,
    /// Measured on this machine; the run's seconds then differ from run to run.
    Measured,
}

/// `[time]`: the simulated clock. Rates are in bit/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeSettings {
    /// Upload of a device.
    pub mobile_up: f64,
    /// Download of a device.
    pub mobile_down: f64,
    /// Upload of a hospital or an edge.
    pub fixed_up: f64,
    /// Download of a hospital or an edge.
    pub fixed_down: f64,
    /// `set` takes `compute_seconds`, `measured` the real time.
    pub compute: Compute,
    /// t_c, seconds of computation in one iteration; by default the paper's Table IV for the data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_seconds: Option<f64>,
    /// A factor on the time of computation.
    pub compute_scale: f64,
    /// Whether a group's devices share one uplink.
    pub shared_uplink: bool,
    /// Whether the two ways of an exchange follow each other instead of running side by side.
    pub sequential_exchange: bool,
}

impl Default for TimeSettings {
    fn default() -> Self {
        TimeSettings {
            mobile_up: 14e6,
            mobile_down: 110e6,
            fixed_up: 74e6,
            fixed_down: 204e6,
            compute: Compute::Set,
            compute_seconds: None,
            compute_scale: 1.0,
            shared_uplink: false,
            sequential_exchange: false,
        }
    }
}

impl TimeSettings {
    /// t_c, zero before the experiment is resolved.
    pub fn compute_seconds(&self) -> f64 {
        self.compute_seconds.unwrap_or_default()
    }

    /// Fills in what was left out, for a data set: the paper's Table IV.
    pub(super) fn fill(&mut self, set: &str, algorithm: Algorithm) {
        let (seconds, of_pairs) = match set {
            "esr" => (0.064, 0.1),
            "medmnist" | "mednist" | "organamnist" => (0.06, 0.48),
            "mimic3" | "physionet2012" => (0.05, 0.8),
            // The paper has no number for JFL on other data.
            _ => (0.05, 0.05),
        };
        self.compute_seconds.get_or_insert(match algorithm {
            Algorithm::Jfl => of_pairs,
            _ => seconds,
        });
    }
}
