//! How gradients become steps, beside plain gradient descent.

use super::keys::settings;
use super::values::{ABOVE_0, REST, Range, Values};
use serde::{Deserialize, Serialize};
use std::fmt;

settings! {
    /// `[optimiser]`: how gradients become steps. Devices keep nothing between two intervals: they descend plainly.
    OptimiserSettings, "optimiser." {
        hospital: Method = Method::Sgd, Values::OneOf(&["sgd", "momentum", "adam", "adamw"]), "how hospitals step on θ0 and θ1";
        #[serde(skip_serializing_if = "Option::is_none")]
        hospital_rate: Option<f64> = None, ABOVE_0,
            "learning rate at hospitals; if not set, train.learning_rate, or 0.001 for adam and adamw";
        hospital_clip: f64 = 0.0, CLIP,
            "norm of a hospital's gradient, of θ0 and θ1 together, beyond which it is shortened; 0: never";
        device_clip: f64 = 0.0, CLIP, "norm of a device's gradient beyond which it is shortened; 0: never";
        edge: Averager = Averager::Sgd, AVERAGERS,
            "how edges step from θ2 towards the aggregate of their devices' models";
        #[serde(skip_serializing_if = "Option::is_none")]
        edge_rate: Option<f64> = None, ABOVE_0, "learning rate at edges; if not set, 1, or 0.01 for adam";
        cloud: Averager = Averager::Sgd, AVERAGERS,
            "how the cloud steps from θ towards the aggregate of the groups' models";
        #[serde(skip_serializing_if = "Option::is_none")]
        cloud_rate: Option<f64> = None, ABOVE_0, "learning rate at the cloud; if not set, 1, or 0.01 for adam";
        momentum: f64 = 0.9, REST, "share of its velocity that momentum keeps from step to step";
        beta1: f64 = 0.9, REST, "β1, the share of its mean of gradients that Adam keeps from step to step";
        beta2: f64 = 0.999, REST, "β2, the share of its mean of squared gradients that Adam keeps from step to step";
        epsilon: f64 = 1e-8, EPSILON, "ε, what Adam adds to the root of its mean of squared gradients";
    }
}

const CLIP: Values = Values::Number(Range::AtLeast(0.0));
/// In single precision, less could be nothing.
const EPSILON: Values = Values::Number(Range::AtLeast(1e-12));

const AVERAGERS: Values = Values::OneOf(&["sgd", "momentum", "adam"]);

/// An optimiser of edges or the cloud: weight decay is for those who have gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Averager {
    /// Plain descent: at a rate of 1, the aggregate is adopted.
    #[default]
    Sgd,
    /// Heavy-ball momentum.
    Momentum,
    /// Adam.
    Adam,
}

impl From<Averager> for Method {
    fn from(averager: Averager) -> Self {
        match averager {
            Averager::Sgd => Method::Sgd,
            Averager::Momentum => Method::Momentum,
            Averager::Adam => Method::Adam,
        }
    }
}

/// An optimiser of hospitals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Plain descent.
    #[default]
    Sgd,
    /// Heavy-ball momentum.
    Momentum,
    /// Adam; a regulariser is part of the gradient.
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
}

impl Method {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Method::Sgd => "sgd",
            Method::Momentum => "momentum",
            Method::Adam => "adam",
            Method::AdamW => "adamw",
        }
    }

    /// Whether its steps have the length of its rate, however long gradients are.
    pub fn is_adaptive(self) -> bool {
        matches!(self, Method::Adam | Method::AdamW)
    }
}

impl OptimiserSettings {
    /// Whether nothing is set: such experiments are written as before there were optimisers.
    pub fn is_usual(&self) -> bool {
        *self == OptimiserSettings::default()
    }

    /// The learning rate of hospitals, where it is not that of devices.
    pub fn hospital_rate(&self) -> Option<f64> {
        let usual = self.hospital.is_adaptive().then_some(0.001);
        self.hospital_rate.or(usual)
    }

    /// The learning rate of edges, along a pseudo-gradient.
    pub fn edge_rate(&self) -> f64 {
        self.edge_rate.unwrap_or(usual_of(self.edge))
    }

    /// The learning rate of the cloud, along a pseudo-gradient.
    pub fn cloud_rate(&self) -> f64 {
        self.cloud_rate.unwrap_or(usual_of(self.cloud))
    }
}

impl fmt::Display for OptimiserSettings {
    /// `adamw at hospitals (η 0.001), adam at the cloud (η 0.01)`; nothing where all is plain descent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (edge, cloud) = (self.edge_rate(), self.cloud_rate());
        let rates = [self.hospital_rate(), Some(edge), Some(cloud)];
        let plain = [None, Some(1.0), Some(1.0)];
        let methods = [self.hospital, self.edge.into(), self.cloud.into()];
        let mut parts = Vec::new();
        for (i, place) in ["hospitals", "edges", "the cloud"].into_iter().enumerate() {
            let rate = rates[i].filter(|_| rates[i] != plain[i]);
            if methods[i] != Method::Sgd || rate.is_some() {
                let rate = rate.map_or(String::new(), |rate| format!(" (η {rate})"));
                parts.push(format!("{} at {place}{rate}", methods[i].name()));
            }
        }
        let clips = [
            ("hospitals", self.hospital_clip),
            ("devices", self.device_clip),
        ];
        for (place, clip) in clips.into_iter().filter(|(_, clip)| *clip > 0.0) {
            parts.push(format!("gradients of {place} up to {clip}"));
        }
        f.write_str(&parts.join(", "))
    }
}

/// The rate along a pseudo-gradient: the whole way, or steps that Adam takes well.
fn usual_of(averager: Averager) -> f64 {
    match averager {
        Averager::Adam => 0.01,
        Averager::Sgd | Averager::Momentum => 1.0,
    }
}
