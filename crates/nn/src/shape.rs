//! The shape of one sample on its way through a network.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The shape of one sample: `[features]`, `[steps, features]` or `[channels, height, width]`.
///
/// Flat slices hold a sample in row-major order of exactly this shape. (Convolutions keep images channels-last between
/// themselves; that is private to them.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<usize>", try_from = "Vec<usize>")]
pub enum Shape {
    /// `[features]`
    Flat(usize),
    /// `[steps, features]`: a time series
    Steps(usize, usize),
    /// `[channels, height, width]`
    Image(usize, usize, usize),
}

impl Shape {
    /// How many numbers one sample has.
    pub fn len(self) -> usize {
        match self {
            Shape::Flat(n) => n,
            Shape::Steps(s, f) => s * f,
            Shape::Image(c, h, w) => c * h * w,
        }
    }

    /// Whether a sample has no numbers at all.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The dimensions, outermost first.
    pub fn dims(self) -> Vec<usize> {
        self.into()
    }
}

impl From<Shape> for Vec<usize> {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Flat(n) => vec![n],
            Shape::Steps(s, f) => vec![s, f],
            Shape::Image(c, h, w) => vec![c, h, w],
        }
    }
}

impl TryFrom<Vec<usize>> for Shape {
    type Error = ShapeError;

    fn try_from(dims: Vec<usize>) -> Result<Self, ShapeError> {
        match dims[..] {
            [n] => Ok(Shape::Flat(n)),
            [s, f] => Ok(Shape::Steps(s, f)),
            [c, h, w] => Ok(Shape::Image(c, h, w)),
            _ => Err(ShapeError(format!(
                "a shape has 1, 2 or 3 dimensions, not {}: [features], [steps, features] or [channels, height, width]",
                dims.len()
            ))),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims().iter().map(usize::to_string).collect();
        write!(f, "[{}]", dims.join(", "))
    }
}

/// A layer that does not fit what comes before it; the message names the layer, the shape it was given and what would
/// be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub(crate) String);
