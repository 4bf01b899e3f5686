//! Layers as an experiment writes them.

use crate::{Shape, ShapeError};
use serde::de::{self, IntoDeserializer, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One layer, as written in an experiment: `{ lstm = { hidden = 16 } }`, `{ relu = {} }` or `"relu"`.
///
/// The input width is known from the layer before, so only the layer's own sizes are stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase", deny_unknown_fields)]
pub enum LayerSpec {
    /// `linear { out }`: `[in]` → `[out]`
    Linear {
        /// Width of the output.
        out: usize,
    },
    /// `conv1d { out, size, stride = 1, padding = 0 }`: `[steps, features]` → `[steps', out]`
    Conv1d(ConvSpec),
    /// `conv2d { out, size, stride = 1, padding = 0 }`: `[channels, height, width]` → `[out, height', width']`
    Conv2d(ConvSpec),
    /// `maxpool { size = 2 }`: over steps, or over height and width; incomplete windows are left out
    Maxpool {
        /// Side of the window, and its stride.
        #[serde(default = "two")]
        size: usize,
    },
    /// `relu`: max(0, x)
    #[serde(deserialize_with = "no_keys")]
    Relu,
    /// `tanh`
    #[serde(deserialize_with = "no_keys")]
    Tanh,
    /// `sigmoid`: 1 / (1 + e⁻ˣ)
    #[serde(deserialize_with = "no_keys")]
    Sigmoid,
    /// `gelu`: x · Φ(x), with the exact share Φ of the normal distribution, not its approximation by tanh
    #[serde(deserialize_with = "no_keys")]
    Gelu,
    /// `softplus`: ln(1 + eˣ)
    #[serde(deserialize_with = "no_keys")]
    Softplus,
    /// `flatten`: any shape → `[features]`, row-major
    #[serde(deserialize_with = "no_keys")]
    Flatten,
    /// `window { size }`: `[n]` → `[⌈n/size⌉, size]`, padded with zeros
    Window {
        /// Numbers in one step.
        size: usize,
    },
    /// `spectrum`: ln(ε + |X|²) with the discrete Fourier transform X of a window: `[n]` → `[⌊n/2⌋ + 1]`, or of every
    /// step: `[steps, n]` → `[steps, ⌊n/2⌋ + 1]`
    #[serde(deserialize_with = "no_keys")]
    Spectrum,
    /// `pool = "mean"`, `"max"` or `"last"`: `[steps, features]` → `[features]`
    Pool(PoolSpec),
    /// `lstm { hidden, sequence = false, both_ways = false }`: `[steps, features]` → `[hidden]`, the last hidden state
    Lstm(RecurrentSpec),
    /// `gru { hidden, sequence = false, both_ways = false }`: `[steps, features]` → `[hidden]`, the last hidden state
    Gru(RecurrentSpec),
}

/// What becomes of a feature's numbers in all steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoolSpec {
    /// Their mean.
    Mean,
    /// The largest.
    Max,
    /// That of the last step.
    Last,
}

impl PoolSpec {
    fn name(self) -> &'static str {
        match self {
            PoolSpec::Mean => "mean",
            PoolSpec::Max => "max",
            PoolSpec::Last => "last",
        }
    }
}

/// The keys of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentSpec {
    /// Units, in each direction.
    pub hidden: usize,
    /// Whether the hidden states of all steps come out, `[steps, hidden]`, not the last alone.
    #[serde(default, skip_serializing_if = "is_not")]
    pub sequence: bool,
    /// Whether a second one reads the steps backwards: its hidden states stand beside those of the first.
    #[serde(default, skip_serializing_if = "is_not")]
    pub both_ways: bool,
}

impl RecurrentSpec {
    /// One that gives its last hidden state.
    pub fn new(hidden: usize) -> Self {
        RecurrentSpec {
            hidden,
            sequence: false,
            both_ways: false,
        }
    }
}

/// What is not so is left out: an experiment is written as it was before there was such a key.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_not(key: &bool) -> bool {
    !key
}

/// The keys of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvSpec {
    /// Output channels.
    pub out: usize,
    /// Side of the kernel.
    pub size: usize,
    /// Step of the kernel.
    #[serde(default = "one")]
    pub stride: usize,
    /// Zeros around the input.
    #[serde(default)]
    pub padding: usize,
}

fn one() -> usize {
    1
}

fn two() -> usize {
    2
}

/// `{}`
fn no_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoKeys {}
    NoKeys::deserialize(deserializer).map(|NoKeys {}| ())
}

impl LayerSpec {
    /// The name of the layer, as in an experiment.
    pub fn name(&self) -> &'static str {
        match self {
            LayerSpec::Linear { .. } => "linear",
            LayerSpec::Conv1d(_) => "conv1d",
            LayerSpec::Conv2d(_) => "conv2d",
            LayerSpec::Maxpool { .. } => "maxpool",
            LayerSpec::Relu => "relu",
            LayerSpec::Tanh => "tanh",
            LayerSpec::Sigmoid => "sigmoid",
            LayerSpec::Gelu => "gelu",
            LayerSpec::Softplus => "softplus",
            LayerSpec::Flatten => "flatten",
            LayerSpec::Window { .. } => "window",
            LayerSpec::Spectrum => "spectrum",
            LayerSpec::Pool(_) => "pool",
            LayerSpec::Lstm(_) => "lstm",
            LayerSpec::Gru(_) => "gru",
        }
    }

    /// Its output shape.
    ///
    /// # Errors
    /// If it does not fit its input.
    pub fn output(&self, input: Shape) -> Result<Shape, ShapeError> {
        crate::layer::build(self, input).map(|(_, output)| output)
    }

    /// Its keys, for messages.
    pub(crate) fn sizes(&self) -> String {
        match *self {
            LayerSpec::Linear { out } => format!("out = {out}"),
            LayerSpec::Conv1d(c) | LayerSpec::Conv2d(c) => format!(
                "out = {}, size = {}, stride = {}, padding = {}",
                c.out, c.size, c.stride, c.padding
            ),
            LayerSpec::Maxpool { size } | LayerSpec::Window { size } => format!("size = {size}"),
            LayerSpec::Pool(over) => over.name().into(),
            LayerSpec::Lstm(keys) | LayerSpec::Gru(keys) => format!("hidden = {}", keys.hidden),
            LayerSpec::Relu
            | LayerSpec::Tanh
            | LayerSpec::Sigmoid
            | LayerSpec::Gelu
            | LayerSpec::Softplus
            | LayerSpec::Spectrum
            | LayerSpec::Flatten => "no keys".into(),
        }
    }
}

impl Serialize for LayerSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The one that is derived.
        LayerSpec::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for LayerSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = LayerSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a layer, like { lstm = { hidden = 16 } } or \"relu\"")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<LayerSpec, E> {
        let example = match name {
            "relu" => return Ok(LayerSpec::Relu),
            "tanh" => return Ok(LayerSpec::Tanh),
            "sigmoid" => return Ok(LayerSpec::Sigmoid),
            "gelu" => return Ok(LayerSpec::Gelu),
            "spectrum" => return Ok(LayerSpec::Spectrum),
            "softplus" => return Ok(LayerSpec::Softplus),
            "flatten" => return Ok(LayerSpec::Flatten),
            "maxpool" => return Ok(LayerSpec::Maxpool { size: two() }),
            "linear" => "out = 16",
            "window" => "size = 8",
            "conv1d" | "conv2d" => "out = 8, size = 3",
            "lstm" | "gru" => "hidden = 16",
            "pool" => {
                return Err(E::custom(
                    "layer `pool` needs a word for what it takes of all steps, like { pool = \"mean\" }: \"mean\", \"max\" or \"last\"",
                ));
            }
            _ => return LayerSpec::deserialize(name.into_deserializer()),
        };
        Err(E::custom(format!(
            "layer `{name}` needs its size: {{ {name} = {{ {example} }} }}"
        )))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<LayerSpec, A::Error> {
        LayerSpec::deserialize(MapAccessDeserializer::new(map))
    }
}
