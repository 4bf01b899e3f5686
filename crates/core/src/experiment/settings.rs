//! The tables of an experiment, and their defaults.

use super::keys::settings;
use super::values::{ABOVE_0, ANY, POSITIVE, RATE, Range, SHARE, UP_TO_A_MILLION, Values};
use super::{Algorithm, Usual};
use selvedge_nn::LayerSpec;
use serde::{Deserialize, Serialize};

settings! {
    /// `[train]`: the algorithm and its parameters.
    TrainSettings, "train." {
        algorithm: Algorithm = Algorithm::Hsgd, Values::OneOf(&Algorithm::NAMES), "which loop trains";
        iterations: u64 = 2000, POSITIVE, "T, a multiple of P";
        global_interval: u64 = 10, POSITIVE, "P, iterations between global aggregations, a multiple of Q";
        local_interval: u64 = 5, POSITIVE, "Q, iterations between local aggregations and exchanges";
        learning_rate: f64 = 0.1, ABOVE_0, "η0";
        halve_every: u64 = 0, ANY, "T0, halve the learning rate every so many iterations; 0 is never";
        #[serde(skip_serializing_if = "Adaptive::is_off")]
        adaptive: Adaptive = Adaptive::Off, Values::OneOf(&["off", "bound", "gain"]),
            "who chooses P, Q and η while training, from these on (hsgd, c-hsgd)";
        participation: f64 = 0.1, SHARE, "α, the share of a group's devices that takes part in an interval";
        selection: String = "uniform".into(), Values::OneOf(&["uniform"]), "how they are drawn";
        weight_decay: f64 = 0.0, Values::Number(Range::AtLeast(0.0)), "λ of the regulariser on the towers";
        class_weights: ClassWeights = ClassWeights::None, Values::Other("text or list", "none | balanced | a list with one factor per class"),
            "the factor of each class's loss";
        broadcast: Broadcast = Broadcast::Selected, Values::OneOf(&["selected", "all"]),
            "which devices are sent the device model at an exchange";
        #[serde(skip_serializing_if = "Option::is_none")]
        evaluate_every: Option<u64> = None, POSITIVE, "evaluate at most every so many iterations";
        loss_samples: usize = 0, ANY, "training loss over a fixed sample of so many; 0 is over all";
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_bytes: Option<u64> = None, ANY,
            "S, bytes of raw data charged where an algorithm moves it; else those of all training samples";
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

settings! {
    /// `[model]`: the three networks. Left out, they are chosen for the data set.
    ModelSettings, "model." {
        #[serde(skip_serializing_if = "Option::is_none")]
        hospital: Option<Vec<LayerSpec>> = None, Values::Layers, "layers of the hospital tower";
        #[serde(skip_serializing_if = "Option::is_none")]
        device: Option<Vec<LayerSpec>> = None, Values::Layers, "layers of the device tower";
        #[serde(skip_serializing_if = "Option::is_none")]
        combined: Option<Vec<LayerSpec>> = None, Values::Layers,
            "layers over both embeddings, ending in one logit per class";
    }
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

    /// Fills in what was left out.
    pub(super) fn fill(&mut self, usual: &Usual) {
        let logits = LayerSpec::Linear { out: usual.classes };
        let combined = || usual.combined.iter().cloned().chain([logits]).collect();
        self.hospital.get_or_insert_with(|| usual.tower.clone());
        self.device.get_or_insert_with(|| usual.tower.clone());
        self.combined.get_or_insert_with(combined);
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

settings! {
    /// `[time]`: the simulated clock. Rates are in bit/s.
    TimeSettings, "time." {
        mobile_up: f64 = 14e6, RATE, "bit/s from a device";
        mobile_down: f64 = 110e6, RATE, "bit/s to a device";
        fixed_up: f64 = 74e6, RATE, "bit/s from a hospital or an edge";
        fixed_down: f64 = 204e6, RATE, "bit/s to a hospital or an edge";
        compute: Compute = Compute::Set, Values::OneOf(&["set", "measured"]),
            "whether the time of computation is as set below or measured";
        #[serde(skip_serializing_if = "Option::is_none")]
        compute_seconds: Option<f64> = None, UP_TO_A_MILLION, "t_c, seconds of computation in an iteration";
        compute_scale: f64 = 1.0, UP_TO_A_MILLION, "a factor on the time of computation";
        shared_uplink: bool = false, Values::Flag, "whether a group's devices share one uplink";
        sequential_exchange: bool = false, Values::Flag, "whether the two ways of an exchange follow each other";
    }
}

impl TimeSettings {
    /// t_c, zero before the experiment is resolved.
    pub fn compute_seconds(&self) -> f64 {
        self.compute_seconds.unwrap_or_default()
    }

    /// Fills in what was left out.
    pub(super) fn fill(&mut self, usual: &Usual, algorithm: Algorithm) {
        self.compute_seconds.get_or_insert(match algorithm {
            Algorithm::Jfl => usual.seconds_of_pairs,
            _ => usual.seconds,
        });
    }
}
