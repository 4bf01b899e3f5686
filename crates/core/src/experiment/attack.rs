//! What hostile parties do, in simulation.

use super::keys::settings;
use super::values::{ANY, REST, Range, Values};
use serde::{Deserialize, Serialize};

settings! {
    /// `[attack]`: hostile parties, to try out defences in a simulation. Deployments refuse it.
    AttackSettings, "attack." {
        kind: AttackKind = AttackKind::None, Values::OneOf(&AttackKind::NAMES), "what hostile parties do; absent: they never take part";
        strength: f64 = 100.0, Values::Number(Range::Any), "factor of scale, times the length of an honest step of noise";
        devices: f64 = 0.0, REST, "share of each group's devices that are hostile";
        hospitals: u64 = 0, ANY, "number of hospitals that are hostile";
        edges: u64 = 0, ANY, "number of edges that are hostile, those of hostile hospitals first";
        from: u64 = 0, ANY, "the iteration at which they begin";
    }
}

impl AttackSettings {
    /// Whether everybody is honest.
    pub fn is_none(&self) -> bool {
        *self == AttackSettings::default()
    }
}

/// What hostile parties do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackKind {
    /// Nothing.
    None,
    /// They never take part: what a perfect defence would come to.
    Absent,
    /// Their step, multiplied.
    Scale,
    /// Their step, the other way.
    SignFlip,
    /// Their whole model, multiplied by −5.
    Reverse,
    /// A random step.
    Noise,
    /// Not a number.
    NotANumber,
    /// Numbers of 1e30.
    Huge,
    /// They learn the next class instead of the right one.
    LabelFlip,
    /// They teach the model to answer a mark in the device's data with the last class.
    Backdoor,
    /// Hospitals report perfect scores.
    Metrics,
}

impl AttackKind {
    /// Their names.
    pub const NAMES: [&'static str; 11] = [
        "none",
        "absent",
        "scale",
        "sign-flip",
        "reverse",
        "noise",
        "not-a-number",
        "huge",
        "label-flip",
        "backdoor",
        "metrics",
    ];
}
