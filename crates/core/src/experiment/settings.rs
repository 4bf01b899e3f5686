//! The tables of an experiment, and their defaults.

use super::keys::settings;
use super::values::{ABOVE_0, ANY, POSITIVE, RATE, Range, SHARE, UP_TO_A_MILLION, Values};
use super::{Algorithm, Seen, Usual};
use selvedge_nn::loss::Distance;
use selvedge_nn::{LayerSpec, RecurrentSpec};
use serde::{Deserialize, Serialize};

settings! {
    /// `[train]`: the algorithm and its parameters.
    TrainSettings, "train." {
        algorithm: Algorithm = Algorithm::Hsgd, Values::OneOf(&Algorithm::NAMES), "training algorithm";
        iterations: u64 = 2000, POSITIVE, "T, the number of iterations, a multiple of P";
        global_interval: u64 = 10, POSITIVE, "P, iterations between global aggregations, a multiple of Q";
        local_interval: u64 = 5, POSITIVE, "Q, iterations between local aggregations and exchanges";
        learning_rate: f64 = 0.1, ABOVE_0, "η0, the initial learning rate";
        halve_every: u64 = 0, ANY, "T0, iterations between halvings of the learning rate; 0: never";
        #[serde(skip_serializing_if = "Fall::is_halving")]
        schedule: Fall = Fall::Halving, Values::OneOf(&["halving", "cosine"]),
            "how learning rates fall: halved every train.halve_every iterations, or along a cosine to 0 at train.iterations";
        #[serde(skip_serializing_if = "is_zero")]
        warm_up: u64 = 0, ANY, "iterations at the beginning over which learning rates rise to their initial values; 0: none";
        #[serde(skip_serializing_if = "Adaptive::is_off")]
        adaptive: Adaptive = Adaptive::Off, Values::OneOf(&["off", "bound", "gain"]),
            "how P, Q and η are changed while training, starting from the values set in the experiment (hsgd, c-hsgd)";
        participation: f64 = 0.1, SHARE, "α, the share of a group's devices that takes part in an interval";
        selection: String = "uniform".into(), Values::OneOf(&["uniform"]), "how the devices that take part in an interval are drawn";
        weight_decay: f64 = 0.0, Values::Number(Range::AtLeast(0.0)), "λ of the regulariser on the towers";
        #[serde(skip_serializing_if = "is_zero")]
        combined_weight_decay: f64 = 0.0, Values::Number(Range::AtLeast(0.0)), "λ of the regulariser on the combined model";
        class_weights: ClassWeights = ClassWeights::None, Values::Other("text or list", "none | balanced | a list with one factor per class"),
            "weight of each class in the loss, or of each label";
        #[serde(skip_serializing_if = "LossName::is_squared")]
        loss: LossName = LossName::Squared, Values::OneOf(&["squared", "huber", "quantile"]),
            "loss of a quantity: its mean is learnt, a mean in which outliers count less, or a quantile";
        #[serde(skip_serializing_if = "is_one")]
        huber: f64 = 1.0, ABOVE_0,
            "distance from the truth, in standard deviations, beyond which train.loss = huber grows in proportion";
        #[serde(skip_serializing_if = "is_half")]
        quantile: f64 = 0.5, Values::Number(Range::Within(0.001, 0.999)), "quantile that train.loss = quantile learns";
        broadcast: Broadcast = Broadcast::Selected, Values::OneOf(&["selected", "all"]),
            "which devices receive the device model at an exchange";
        #[serde(skip_serializing_if = "Option::is_none")]
        evaluate_every: Option<u64> = None, POSITIVE,
            "minimum number of iterations between evaluations; if not set, about 1/50 of train.iterations, rounded up to a multiple of P";
        loss_samples: usize = 0, ANY, "size of the fixed sample for the training loss; 0: all samples";
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_bytes: Option<u64> = None, ANY,
            "S, size of the raw data in bytes, for algorithms that move raw data; if not set, that of all training samples";
    }
}

/// Whether a setting is off; such experiments are written as before it existed.
fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn is_half(value: &f64) -> bool {
    *value == 0.5
}

impl TrainSettings {
    /// How far a quantity is from the truth, in standard deviations.
    pub fn distance(&self) -> Distance {
        match self.loss {
            LossName::Squared => Distance::Squared,
            LossName::Huber => Distance::Huber(self.huber),
            LossName::Quantile => Distance::Quantile(self.quantile),
        }
    }
}

/// The loss of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossName {
    /// Half the square of the distance.
    Squared,
    /// The same for small distances, and in proportion to large ones.
    Huber,
    /// In proportion, more to one side than to the other.
    Quantile,
}

impl LossName {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            LossName::Squared => "squared",
            LossName::Huber => "huber",
            LossName::Quantile => "quantile",
        }
    }

    fn is_squared(&self) -> bool {
        *self == LossName::Squared
    }
}

/// How learning rates fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fall {
    /// In steps of a half, or not at all.
    Halving,
    /// Along half a cosine, to 0 at T.
    Cosine,
}

impl Fall {
    fn is_halving(&self) -> bool {
        *self == Fall::Halving
    }
}

/// The weight of each class in the loss.
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

impl ClassWeights {
    /// Whether all are 1.
    pub fn is_none(&self) -> bool {
        *self == ClassWeights::None
    }
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

/// How P, Q and η are chosen while training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adaptive {
    /// They stay as the experiment states.
    Off,
    /// The paper's strategies 2 and 3, with constants measured on the run.
    Bound,
    /// By comparing the gain of an interval on its own patients with that on fresh ones.
    Gain,
}

impl Adaptive {
    /// Whether the run is not steered; such experiments are written as before steering existed, so that their runs can
    /// be resumed.
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

    /// Whether something was left out.
    pub(super) fn lacks(&self) -> bool {
        [&self.hospital, &self.device, &self.combined].contains(&&None)
    }

    /// Fills in what was left out, for what was seen of the data.
    pub(super) fn fit(&mut self, usual: Usual, seen: Option<Seen>) {
        let series = seen.map_or([false; 2], |seen| seen.series);
        for (layers, _) in [&mut self.hospital, &mut self.device]
            .into_iter()
            .zip(series)
            .filter(|(_, series)| *series)
        {
            layers.get_or_insert_with(|| vec![LayerSpec::Lstm(RecurrentSpec::new(16))]);
        }
        self.fill(&Usual {
            outputs: seen.map_or(usual.outputs, |seen| seen.outputs),
            ..usual
        });
    }

    /// Fills in what was left out.
    pub(super) fn fill(&mut self, usual: &Usual) {
        let logits = LayerSpec::Linear { out: usual.outputs };
        let combined = || usual.combined.iter().cloned().chain([logits]).collect();
        self.hospital.get_or_insert_with(|| usual.tower.clone());
        self.device.get_or_insert_with(|| usual.tower.clone());
        self.combined.get_or_insert_with(combined);
    }
}

/// Where computation times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    /// `compute_seconds` per iteration.
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
            "whether computation time is set by time.compute_seconds or measured";
        #[serde(skip_serializing_if = "Option::is_none")]
        compute_seconds: Option<f64> = None, UP_TO_A_MILLION, "t_c, seconds of computation per iteration";
        compute_scale: f64 = 1.0, UP_TO_A_MILLION, "factor on computation time";
        shared_uplink: bool = false, Values::Flag, "whether a group's devices share one uplink";
        sequential_exchange: bool = false, Values::Flag, "whether the two directions of an exchange run one after the other";
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
