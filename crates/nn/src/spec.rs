//! Layers as an experiment writes them.

use crate::{Shape, ShapeError};
use serde::de::{self, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One layer, as written in an experiment: `{ lstm = { hidden = 16 } }`, `{ relu = {} }` or `"relu"`.
///
/// The width of what comes in is known from the layer before, so only what the layer adds is said.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// `maxpool { size = 2 }`: over steps, or over height and width; what does not fill a window is left out
    Maxpool {
        /// Side of the window, and its stride.
        size: usize,
    },
    /// `relu`: max(0, x)
    Relu,
    /// `tanh`
    Tanh,
    /// `flatten`: any shape → `[features]`, row-major
    Flatten,
    /// `window { size }`: `[n]` → `[⌈n/size⌉, size]`, padded with zeros
    Window {
        /// Numbers in one step.
        size: usize,
    },
    /// `lstm { hidden }`: `[steps, features]` → `[hidden]`, the last hidden state
    Lstm {
        /// Units.
        hidden: usize,
    },
    /// `gru { hidden }`: `[steps, features]` → `[hidden]`, the last hidden state
    Gru {
        /// Units.
        hidden: usize,
    },
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

/// The long form, one key naming the layer, for serde to derive.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Keyed {
    Linear {
        out: usize,
    },
    Conv1d(ConvSpec),
    Conv2d(ConvSpec),
    Maxpool {
        #[serde(default = "two")]
        size: usize,
    },
    Relu {},
    Tanh {},
    Flatten {},
    Window {
        size: usize,
    },
    Lstm {
        hidden: usize,
    },
    Gru {
        hidden: usize,
    },
}

impl From<Keyed> for LayerSpec {
    fn from(keyed: Keyed) -> Self {
        match keyed {
            Keyed::Linear { out } => LayerSpec::Linear { out },
            Keyed::Conv1d(conv) => LayerSpec::Conv1d(conv),
            Keyed::Conv2d(conv) => LayerSpec::Conv2d(conv),
            Keyed::Maxpool { size } => LayerSpec::Maxpool { size },
            Keyed::Relu {} => LayerSpec::Relu,
            Keyed::Tanh {} => LayerSpec::Tanh,
            Keyed::Flatten {} => LayerSpec::Flatten,
            Keyed::Window { size } => LayerSpec::Window { size },
            Keyed::Lstm { hidden } => LayerSpec::Lstm { hidden },
            Keyed::Gru { hidden } => LayerSpec::Gru { hidden },
        }
    }
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
            LayerSpec::Flatten => "flatten",
            LayerSpec::Window { .. } => "window",
            LayerSpec::Lstm { .. } => "lstm",
            LayerSpec::Gru { .. } => "gru",
        }
    }
}

impl LayerSpec {
    /// The shape that comes out of it.
    ///
    /// # Errors
    /// If it does not fit what comes in.
    pub fn output(&self, input: Shape) -> Result<Shape, ShapeError> {
        crate::layer::build(self, input).map(|(_, output)| output)
    }
}

impl LayerSpec {
    /// Its keys, for messages.
    pub(crate) fn sizes(&self) -> String {
        match *self {
            LayerSpec::Linear { out } => format!("out = {out}"),
            LayerSpec::Conv1d(c) | LayerSpec::Conv2d(c) => format!(
                "out = {}, size = {}, stride = {}, padding = {}",
                c.out, c.size, c.stride, c.padding
            ),
            LayerSpec::Maxpool { size } | LayerSpec::Window { size } => format!("size = {size}"),
            LayerSpec::Lstm { hidden } | LayerSpec::Gru { hidden } => format!("hidden = {hidden}"),
            LayerSpec::Relu | LayerSpec::Tanh | LayerSpec::Flatten => "no keys".into(),
        }
    }
}

impl Serialize for LayerSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            LayerSpec::Linear { out } => Keyed::Linear { out },
            LayerSpec::Conv1d(conv) => Keyed::Conv1d(conv),
            LayerSpec::Conv2d(conv) => Keyed::Conv2d(conv),
            LayerSpec::Maxpool { size } => Keyed::Maxpool { size },
            LayerSpec::Window { size } => Keyed::Window { size },
            LayerSpec::Lstm { hidden } => Keyed::Lstm { hidden },
            LayerSpec::Gru { hidden } => Keyed::Gru { hidden },
            LayerSpec::Relu | LayerSpec::Tanh | LayerSpec::Flatten => {
                return serializer.serialize_str(self.name());
            }
        }
        .serialize(serializer)
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
        match name {
            "relu" => Ok(LayerSpec::Relu),
            "tanh" => Ok(LayerSpec::Tanh),
            "flatten" => Ok(LayerSpec::Flatten),
            "maxpool" => Ok(LayerSpec::Maxpool { size: 2 }),
            "linear" | "conv1d" | "conv2d" | "window" | "lstm" | "gru" => Err(E::custom(format!(
                "layer `{name}` needs its size: {}",
                match name {
                    "linear" => "{ linear = { out = 16 } }",
                    "window" => "{ window = { size = 8 } }",
                    "conv1d" => "{ conv1d = { out = 8, size = 3 } }",
                    "conv2d" => "{ conv2d = { out = 8, size = 3 } }",
                    "lstm" => "{ lstm = { hidden = 16 } }",
                    _ => "{ gru = { hidden = 16 } }",
                }
            ))),
            _ => Err(E::unknown_variant(
                name,
                &[
                    "linear", "conv1d", "conv2d", "maxpool", "relu", "tanh", "flatten", "window",
                    "lstm", "gru",
                ],
            )),
        }
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<LayerSpec, A::Error> {
        Keyed::deserialize(MapAccessDeserializer::new(map)).map(LayerSpec::from)
    }
}
