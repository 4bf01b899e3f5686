//! The layers, each forward and backward by hand, one sample at a time.
//!
//! A layer owns a stretch of its network's parameter slice, of the sample's *tape* (what the forward pass leaves for
//! the backward pass; the output is the tape's end), of the *prepared* weights (transposed copies that input gradients
//! need, made once per value of the parameters) and of the *scratch*.

mod activation;
mod both_ways;
mod conv;
mod gru;
mod linear;
mod lstm;
mod pool;
mod recurrent;
mod reshape;
mod spectrum;
mod steps;

use crate::kernel::Target;
use crate::simd::Level;
use crate::spectrum::{LONGEST, bins};
use crate::{LayerSpec, PoolSpec, RecurrentSpec, Shape, ShapeError, Tensor};
use activation::{Elementwise, Gelu, Relu, Sigmoid, Softplus, Tanh};

/// What a backward pass reads and writes.
pub(crate) struct Backward<'a> {
    pub prepared: &'a [f32],
    pub input: &'a [f32],
    pub tape: &'a [f32],
    pub d_output: &'a [f32],
    /// What becomes of the parameters' gradient; absent where they are frozen.
    pub target: Option<Target<'a>>,
    /// Overwritten; absent where nobody asks for it.
    pub d_input: Option<&'a mut [f32]>,
    pub scratch: &'a mut [f32],
}

/// One layer.
pub(crate) trait Layer: std::fmt::Debug + Send + Sync {
    /// Numbers in the output, which is the end of the tape.
    fn output(&self) -> usize;
    /// Whether the output is the input.
    fn is_identity(&self) -> bool {
        false
    }
    /// Numbers on the tape, the output included.
    fn tape(&self) -> usize {
        self.output()
    }
    /// The tensors in the parameter slice, one after the other.
    fn tensors(&self) -> Vec<Tensor> {
        Vec::new()
    }
    /// Numbers in the prepared weights.
    fn prepared(&self) -> usize {
        0
    }
    /// Numbers that the backward pass needs for itself.
    fn scratch(&self) -> usize {
        0
    }
    /// Operations in the products of a forward pass, a multiply-add being two. Work on single numbers is not counted.
    fn forward_flops(&self) -> u64 {
        0
    }
    /// The same for the gradient of the weights: each weight meets as many numbers as in the forward pass.
    fn weight_gradient_flops(&self) -> u64 {
        self.forward_flops()
    }
    /// The same of a backward pass without that: the gradient of the input, where it is asked for, and what a layer
    /// needs of its own to have one.
    fn frozen_backward_flops(&self, input_gradient: bool) -> u64 {
        if input_gradient {
            self.forward_flops()
        } else {
            0
        }
    }
    /// Weights are uniform in ± this (the usual initialisation: 1/√fan-in, or 1/√hidden).
    fn initial_bound(&self) -> f32 {
        0.0
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]);
    /// Two samples side by side, to the bit as one after the other: for layers that would wait for their own results.
    fn forward_both(
        &self,
        level: Level,
        params: &[f32],
        inputs: [&[f32]; 2],
        tapes: [&mut [f32]; 2],
    ) {
        one_by_one(self, level, params, inputs, tapes);
    }
    /// Makes the transposed copies; those for the input's gradient only where it will be asked for.
    fn prepare(
        &self,
        _level: Level,
        _params: &[f32],
        _prepared: &mut [f32],
        _input_gradient: bool,
    ) {
    }
    fn backward(&self, level: Level, pass: Backward<'_>);
}

/// Samples one after the other.
fn one_by_one(
    layer: &(impl Layer + ?Sized),
    level: Level,
    params: &[f32],
    inputs: [&[f32]; 2],
    tapes: [&mut [f32]; 2],
) {
    for (input, tape) in inputs.into_iter().zip(tapes) {
        layer.forward(level, params, input, tape);
    }
}

/// A layer, and the shape that comes out of it. Images are channels-last from here on.
pub(crate) fn build(spec: &LayerSpec, input: Shape) -> Result<(Box<dyn Layer>, Shape), ShapeError> {
    let wrong = |wanted: &str| {
        ShapeError(format!(
            "layer `{}` takes {wanted}, but is given {input}",
            spec.name()
        ))
    };
    let positive = |what: &str, value: usize| match value {
        0 => Err(ShapeError(format!(
            "layer `{}`: {what} = 0; it must be at least 1",
            spec.name()
        ))),
        _ => Ok(()),
    };
    check_size(spec, input)?;
    Ok(match (spec, input) {
        (&LayerSpec::Linear { out }, Shape::Flat(inputs)) => {
            positive("out", out)?;
            (Box::new(linear::Linear { inputs, out }), Shape::Flat(out))
        }
        (LayerSpec::Linear { .. }, _) => {
            return Err(wrong("[features] (put \"flatten\" before it)"));
        }
        (LayerSpec::Conv1d(conv), Shape::Steps(steps, features)) => {
            let layer = conv::Conv::one_dimensional(conv, steps, features)?;
            let shape = Shape::Steps(layer.out_width(), conv.out);
            (Box::new(layer), shape)
        }
        (LayerSpec::Conv1d(_), _) => {
            return Err(wrong(
                "[steps, features] (a `window` layer makes steps of flat features)",
            ));
        }
        (LayerSpec::Conv2d(conv), Shape::Image(channels, height, width)) => {
            let layer = conv::Conv::two_dimensional(conv, channels, height, width)?;
            let shape = Shape::Image(conv.out, layer.out_height(), layer.out_width());
            (Box::new(layer), shape)
        }
        (LayerSpec::Conv2d(_), _) => return Err(wrong("[channels, height, width]")),
        (&LayerSpec::Maxpool { size }, Shape::Steps(steps, features)) => {
            positive("size", size)?;
            let layer = pool::MaxPool {
                height: 1,
                width: steps,
                channels: features,
                rows: 1,
                columns: size,
            };
            fits("maxpool", size, steps, "steps")?;
            (Box::new(layer), Shape::Steps(steps / size, features))
        }
        (&LayerSpec::Maxpool { size }, Shape::Image(channels, height, width)) => {
            positive("size", size)?;
            fits("maxpool", size, height.min(width), "pixels")?;
            let layer = pool::MaxPool {
                height,
                width,
                channels,
                rows: size,
                columns: size,
            };
            (
                Box::new(layer),
                Shape::Image(channels, height / size, width / size),
            )
        }
        (LayerSpec::Maxpool { .. }, _) => {
            return Err(wrong("[steps, features] or [channels, height, width]"));
        }
        (LayerSpec::Relu, shape) => (Box::new(Elementwise(Relu, shape.len())), shape),
        (LayerSpec::Tanh, shape) => (Box::new(Elementwise(Tanh, shape.len())), shape),
        (LayerSpec::Sigmoid, shape) => (Box::new(Elementwise(Sigmoid, shape.len())), shape),
        (LayerSpec::Gelu, shape) => (Box::new(Elementwise(Gelu, shape.len())), shape),
        (LayerSpec::Softplus, shape) => (Box::new(Elementwise(Softplus, shape.len())), shape),
        (LayerSpec::Flatten, shape) => (channels_first(shape), Shape::Flat(shape.len())),
        (&LayerSpec::Window { size }, Shape::Flat(n)) => {
            positive("size", size)?;
            let steps = n.div_ceil(size);
            (
                Box::new(reshape::Pad {
                    from: n,
                    to: steps * size,
                }),
                Shape::Steps(steps, size),
            )
        }
        (LayerSpec::Window { .. }, _) => return Err(wrong("[features]")),
        (LayerSpec::Spectrum, Shape::Flat(_) | Shape::Steps(..)) => {
            let (rows, size) = match input {
                Shape::Steps(steps, size) => (steps, size),
                _ => (1, input.len()),
            };
            if size > LONGEST {
                return Err(wrong(&format!(
                    "windows of at most {LONGEST} numbers (a `window` layer makes steps of flat features)"
                )));
            }
            let shape = match input {
                Shape::Steps(steps, _) => Shape::Steps(steps, bins(size)),
                _ => Shape::Flat(bins(size)),
            };
            (Box::new(spectrum::Spectrum::new(rows, size)), shape)
        }
        (LayerSpec::Spectrum, _) => return Err(wrong("[features] or [steps, features]")),
        (&LayerSpec::Pool(over), Shape::Steps(steps, features)) => {
            let layer: Box<dyn Layer> = match over {
                PoolSpec::Mean => Box::new(steps::Mean { steps, features }),
                PoolSpec::Last => Box::new(steps::Last { steps, features }),
                PoolSpec::Max => Box::new(pool::MaxPool {
                    height: 1,
                    width: steps,
                    channels: features,
                    rows: 1,
                    columns: steps,
                }),
            };
            (layer, Shape::Flat(features))
        }
        (LayerSpec::Pool(_), _) => {
            return Err(wrong(
                "[steps, features] (`maxpool` takes images, and recurrent layers give steps with `sequence = true`)",
            ));
        }
        (&LayerSpec::Lstm(keys) | &LayerSpec::Gru(keys), Shape::Steps(steps, inputs)) => {
            let RecurrentSpec {
                hidden,
                sequence,
                both_ways,
            } = keys;
            positive("hidden", hidden)?;
            let (cell, gates) = match spec {
                LayerSpec::Lstm(_) => (recurrent::Cell::Lstm, 4),
                _ => (recurrent::Cell::Gru, 3),
            };
            let layer = recurrent::Recurrent {
                cell,
                gates,
                steps,
                inputs,
                hidden,
                sequence,
            };
            let width = if both_ways { 2 * hidden } else { hidden };
            let shape = match sequence {
                true => Shape::Steps(steps, width),
                false => Shape::Flat(width),
            };
            match both_ways {
                true => (Box::new(both_ways::BothWays(layer)), shape),
                false => (Box::new(layer), shape),
            }
        }
        (LayerSpec::Lstm(_) | LayerSpec::Gru(_), _) => {
            return Err(wrong(
                "[steps, features] (a `window` layer makes steps of flat features, and a recurrent layer before it keeps them with `sequence = true`)",
            ));
        }
    })
}

/// Numbers that a layer may keep, weights and tape together: 8 GB of them. Below it no size overflows.
const MOST_NUMBERS: f64 = (1u64 << 31) as f64;

fn check_size(spec: &LayerSpec, input: Shape) -> Result<(), ShapeError> {
    let dims: Vec<f64> = input.dims().into_iter().map(|d| d as f64).collect();
    let inputs = dims.iter().product::<f64>();
    let numbers = match *spec {
        LayerSpec::Linear { out } => (inputs + 1.0) * out as f64,
        LayerSpec::Conv1d(conv) | LayerSpec::Conv2d(conv) => {
            let (size, padding, out) = (conv.size as f64, conv.padding as f64, conv.out as f64);
            let planes = dims.len().saturating_sub(1) as i32;
            let channels = if planes == 2 {
                dims[0]
            } else {
                *dims.last().unwrap_or(&1.0)
            };
            let places: f64 = match dims[..] {
                [_, h, w] => (h + 2.0 * padding) * (w + 2.0 * padding),
                [steps, _] => steps + 2.0 * padding,
                _ => inputs,
            };
            places * (channels + out) + size.powi(planes) * channels * out
        }
        LayerSpec::Window { size } => inputs + size as f64,
        // Parts and powers of all rows.
        LayerSpec::Spectrum => 4.0 * inputs,
        LayerSpec::Lstm(keys) | LayerSpec::Gru(keys) => {
            let hidden = keys.hidden as f64;
            let one_way = 7.0 * dims[0] * hidden + 4.0 * hidden * (hidden + inputs + 1.0);
            match keys.both_ways {
                true => 2.0 * (one_way + dims[0] * hidden) + inputs,
                false => one_way,
            }
        }
        LayerSpec::Maxpool { .. }
        | LayerSpec::Pool(_)
        | LayerSpec::Relu
        | LayerSpec::Tanh
        | LayerSpec::Sigmoid
        | LayerSpec::Gelu
        | LayerSpec::Softplus
        | LayerSpec::Flatten => inputs,
    };
    if numbers <= MOST_NUMBERS {
        return Ok(());
    }
    Err(ShapeError(format!(
        "layer `{}` with {} would store {numbers:.1e} numbers for {input}; at most {MOST_NUMBERS:.1e} are possible, so choose smaller sizes",
        spec.name(),
        spec.sizes()
    )))
}

fn fits(layer: &str, size: usize, room: usize, unit: &str) -> Result<(), ShapeError> {
    if size <= room {
        return Ok(());
    }
    Err(ShapeError(format!(
        "layer `{layer}`: size = {size} is more than the {room} {unit} of its input; use at most {room}"
    )))
}

/// From the layers' own order of an image to the row-major one of [`Shape`].
pub(crate) fn channels_first(shape: Shape) -> Box<dyn Layer> {
    match shape {
        Shape::Image(c, h, w) => Box::new(reshape::Transpose {
            rows: h * w,
            columns: c,
        }),
        _ => copy(shape.len()),
    }
}

/// The input as it is.
pub(crate) fn copy(numbers: usize) -> Box<dyn Layer> {
    Box::new(reshape::Pad {
        from: numbers,
        to: numbers,
    })
}

/// From the row-major order of [`Shape`] to the layers' own order of an image.
pub(crate) fn channels_last(channels: usize, pixels: usize) -> Box<dyn Layer> {
    Box::new(reshape::Transpose {
        rows: channels,
        columns: pixels,
    })
}
