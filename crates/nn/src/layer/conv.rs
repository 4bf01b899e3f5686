//! Convolution in one or two dimensions, channels last.
//!
//! ```text
//! padded input   one patch = `rows` stretches of `columns · channels` numbers
//!   ....         weights lie as [row][column][channel][out], so a patch times the weights
//!   .##.         is a plain product, and lanes run along the output channels
//!   .##.
//! ```
//!
//! The input gradient is the same product over the output's gradient, spread out by the stride, with the weights turned
//! round.

use super::{Backward, Layer};
use crate::kernel::{self, Rows, Start, Target};
use crate::simd::{Kernel, LANES, Lanes, Level};
use crate::spec::ConvSpec;
use crate::{ShapeError, Tensor};

/// One axis.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    size: usize,
    stride: usize,
    padding: usize,
}

impl Axis {
    fn padded(self) -> usize {
        self.input + 2 * self.padding
    }

    fn output(self) -> usize {
        (self.padded() - self.size) / self.stride + 1
    }

    /// Length of the output's gradient spread out for the input's gradient.
    fn spread(self) -> usize {
        self.input + self.size - 1
    }
}

/// A convolution over `y` (one line for time series) and `x`.
#[derive(Debug)]
pub(super) struct Conv {
    dimensions: usize,
    channels: usize,
    out: usize,
    y: Axis,
    x: Axis,
}

impl Conv {
    pub(super) fn one_dimensional(
        spec: &ConvSpec,
        steps: usize,
        channels: usize,
    ) -> Result<Self, ShapeError> {
        let y = Axis {
            input: 1,
            size: 1,
            stride: 1,
            padding: 0,
        };
        let x = axis("conv1d", spec, steps, "steps")?;
        Ok(Conv::new(1, channels, spec.out, [y, x]))
    }

    pub(super) fn two_dimensional(
        spec: &ConvSpec,
        channels: usize,
        height: usize,
        width: usize,
    ) -> Result<Self, ShapeError> {
        let y = axis("conv2d", spec, height, "pixels of height")?;
        let x = axis("conv2d", spec, width, "pixels of width")?;
        Ok(Conv::new(2, channels, spec.out, [y, x]))
    }

    fn new(dimensions: usize, channels: usize, out: usize, [y, x]: [Axis; 2]) -> Self {
        Conv {
            dimensions,
            channels,
            out,
            y,
            x,
        }
    }

    pub(super) fn out_height(&self) -> usize {
        self.y.output()
    }

    pub(super) fn out_width(&self) -> usize {
        self.x.output()
    }

    fn weights(&self) -> usize {
        self.y.size * self.x.size * self.channels * self.out
    }

    fn pad(&self) -> usize {
        self.y.padded() * self.x.padded() * self.channels
    }

    /// The patches of all outputs, line by line.
    fn patches(&self) -> Rows {
        Rows {
            rows: self.x.output(),
            stride: self.x.stride * self.channels,
            segments: self.y.size,
            segment_stride: self.x.padded() * self.channels,
            k: self.x.size * self.channels,
            lines: self.y.output(),
            line_stride: self.y.stride * self.x.padded() * self.channels,
        }
    }
}

fn axis(layer: &str, spec: &ConvSpec, input: usize, unit: &str) -> Result<Axis, ShapeError> {
    let ConvSpec {
        out,
        size,
        stride,
        padding,
    } = *spec;
    for (key, value) in [("out", out), ("size", size), ("stride", stride)] {
        if value == 0 {
            return Err(ShapeError(format!(
                "layer `{layer}`: {key} = 0; it must be at least 1"
            )));
        }
    }
    if padding >= size {
        return Err(ShapeError(format!(
            "layer `{layer}`: padding = {padding} must be less than size = {size}"
        )));
    }
    super::fits(
        layer,
        size,
        input + 2 * padding,
        &format!("{unit}, padding included,"),
    )?;
    Ok(Axis {
        input,
        size,
        stride,
        padding,
    })
}

struct Forward<'a> {
    conv: &'a Conv,
    padded: &'a [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let conv = self.conv;
        let line = conv.x.padded() * conv.channels * conv.y.stride;
        for (y, output) in self
            .output
            .chunks_exact_mut(conv.x.output() * conv.out)
            .enumerate()
        {
            kernel::multiply::<L>(
                &self.padded[y * line..],
                conv.patches(),
                self.weight,
                conv.out,
                Start::Row(self.bias),
                output,
            );
        }
    }
}

struct WeightGradient<'a> {
    conv: &'a Conv,
    padded: &'a [f32],
    d_output: &'a [f32],
    target: Target<'a>,
}

impl Kernel for WeightGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let conv = self.conv;
        let (weight, bias) = self.target.split_at(conv.weights());
        kernel::correlate::<L>(self.padded, conv.patches(), self.d_output, conv.out, weight);
        kernel::add_rows::<L>(self.d_output, bias);
    }
}

struct InputGradient<'a> {
    conv: &'a Conv,
    spread: &'a [f32],
    turned: &'a [f32],
    d_input: &'a mut [f32],
}

impl Kernel for InputGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let conv = self.conv;
        let line = conv.x.spread() * conv.out;
        let patches = Rows {
            rows: conv.x.input,
            stride: conv.out,
            segments: conv.y.size,
            segment_stride: line,
            k: conv.x.size * conv.out,
            lines: 1,
            line_stride: 0,
        };
        for (y, d_input) in self
            .d_input
            .chunks_exact_mut(conv.x.input * conv.channels)
            .enumerate()
        {
            kernel::multiply::<L>(
                &self.spread[y * line..],
                patches,
                self.turned,
                conv.channels,
                Start::Zero,
                d_input,
            );
        }
    }
}

impl Layer for Conv {
    fn output(&self) -> usize {
        self.y.output() * self.x.output() * self.out
    }

    /// The padded input, then the output, on a cache line too.
    fn tape(&self) -> usize {
        self.pad().next_multiple_of(LANES) + self.output()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (rows, columns, channels, out) = (self.y.size, self.x.size, self.channels, self.out);
        let weight = if self.dimensions == 1 {
            Tensor::permuted(
                "weight",
                vec![out, channels, columns],
                vec![1, out, channels * out],
            )
        } else {
            Tensor::permuted(
                "weight",
                vec![out, channels, rows, columns],
                vec![1, out, columns * channels * out, channels * out],
            )
        };
        vec![weight, Tensor::vector("bias", out)]
    }

    fn prepared(&self) -> usize {
        self.weights()
    }

    fn scratch(&self) -> usize {
        self.y.spread() * self.x.spread() * self.out
    }

    fn forward_flops(&self) -> u64 {
        2 * (self.y.output() * self.x.output() * self.weights()) as u64
    }

    fn initial_bound(&self) -> f32 {
        1.0 / ((self.weights() / self.out) as f32).sqrt()
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]) {
        let (weight, bias) = params.split_at(self.weights());
        let (padded, output) = tape.split_at_mut(self.pad().next_multiple_of(LANES));
        padded.fill(0.0);
        let line = self.x.input * self.channels;
        for (y, input) in input.chunks_exact(line).enumerate() {
            let at = ((y + self.y.padding) * self.x.padded() + self.x.padding) * self.channels;
            padded[at..at + line].copy_from_slice(input);
        }
        level.run(Forward {
            conv: self,
            padded,
            weight,
            bias,
            output,
        });
    }

    /// `[row][column][channel][out]` → `[last − row][last − column][out][channel]`
    fn prepare(&self, level: Level, params: &[f32], prepared: &mut [f32], input_gradient: bool) {
        if !input_gradient {
            return;
        }
        let tap = self.channels * self.out;
        let taps = self.y.size * self.x.size;
        for (i, turned) in prepared.chunks_exact_mut(tap).enumerate() {
            kernel::transpose(
                level,
                &params[(taps - 1 - i) * tap..][..tap],
                self.channels,
                self.out,
                turned,
            );
        }
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        if let Some(target) = pass.target {
            let padded = &pass.tape[..self.pad()];
            level.run(WeightGradient {
                conv: self,
                padded,
                d_output: pass.d_output,
                target,
            });
        }

        let Some(d_input) = pass.d_input else { return };
        let spread = pass.scratch;
        spread.fill(0.0);
        // Neighbours stay neighbours where the stride is one.
        let together = match self.x.stride {
            1 => self.x.output(),
            _ => 1,
        };
        for y in 0..self.y.output() {
            for x in (0..self.x.output()).step_by(together) {
                let row = y * self.y.stride + self.y.size - 1 - self.y.padding;
                let column = x * self.x.stride + self.x.size - 1 - self.x.padding;
                let to = (row * self.x.spread() + column) * self.out;
                let from = (y * self.x.output() + x) * self.out;
                let numbers = together * self.out;
                spread[to..to + numbers].copy_from_slice(&pass.d_output[from..from + numbers]);
            }
        }
        level.run(InputGradient {
            conv: self,
            spread,
            turned: pass.prepared,
            d_input,
        });
    }
}
