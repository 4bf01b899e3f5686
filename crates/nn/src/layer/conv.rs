//! Convolution in one or two dimensions, channels last.
//!
//! ```text
//! padded input   one patch = `rows` stretches of `columns · channels` numbers
//!   ....         weights lie as [row][column][channel][out], so a patch times the weights
//!   .##.         is a plain product, and lanes run along the output channels
//!   .##.
//! ```
//!
//! The input gradient is the same product over the output's gradient, spread out by the stride, with
//! the weights turned round.

use super::{Backward, Layer};
use crate::kernel::{self, Rows, Start, Target, lanes};
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
        Ok(Conv {
            dimensions: 1,
            channels,
            out: spec.out,
            y,
            x,
        })
    }

    pub(super) fn two_dimensional(
        spec: &ConvSpec,
        channels: usize,
        height: usize,
        width: usize,
    ) -> Result<Self, ShapeError> {
        let y = axis("conv2d", spec, height, "pixels of height")?;
        let x = axis("conv2d", spec, width, "pixels of width")?;
        Ok(Conv {
            dimensions: 2,
            channels,
            out: spec.out,
            y,
            x,
        })
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

    /// Numbers in one line of the output.
    pub(super) fn line(&self) -> usize {
        self.x.output() * self.out
    }

    /// Numbers in the padded input.
    pub(super) fn pad(&self) -> usize {
        self.y.padded() * self.x.padded() * self.channels
    }

    /// Writes the input with its zeros around it.
    pub(super) fn pad_input(&self, level: Level, input: &[f32], padded: &mut [f32]) {
        let wide = self.x.padded() * self.channels;
        level.run(Framed {
            lines: input,
            line: self.x.input * self.channels,
            wide,
            above: self.y.padding * wide,
            left: self.x.padding * self.channels,
            out: padded,
        });
    }

    /// One line of the output.
    #[inline(always)]
    pub(super) fn forward_line<L: Lanes>(
        &self,
        params: &[f32],
        padded: &[f32],
        y: usize,
        output: &mut [f32],
    ) {
        let (weight, bias) = params.split_at(self.weights());
        let line = self.x.padded() * self.channels * self.y.stride;
        kernel::multiply::<L>(
            &padded[y * line..],
            self.patches(),
            weight,
            self.out,
            Start::Row(bias),
            output,
        );
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

/// Writes lines into wider ones, with zeros around them. In lanes, because lines are short: a call to copy or to fill one
/// costs more than that.
struct Framed<'a> {
    lines: &'a [f32],
    /// Numbers in a line.
    line: usize,
    /// Numbers in a wider line.
    wide: usize,
    /// Numbers before the first line.
    above: usize,
    /// Numbers before each line.
    left: usize,
    out: &'a mut [f32],
}

impl Kernel for Framed<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (above, rest) = self.out.split_at_mut(self.above);
        lanes!(L, above, [_old] => L::splat(0.0));
        let count = self.lines.len() / self.line;
        let (inside, below) = rest.split_at_mut(count * self.wide);
        let lines = self.lines.chunks_exact(self.line);
        for (line, out) in lines.zip(inside.chunks_exact_mut(self.wide)) {
            lanes!(L, out, [_old] => L::splat(0.0));
            let out = &mut out[self.left..][..self.line];
            lanes!(L, out, [_old, x = line] => x);
        }
        lanes!(L, below, [_old] => L::splat(0.0));
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
    params: &'a [f32],
    padded: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let lines = self.output.chunks_exact_mut(self.conv.line());
        for (y, output) in lines.enumerate() {
            self.conv
                .forward_line::<L>(self.params, self.padded, y, output);
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
        let (padded, output) = tape.split_at_mut(self.pad().next_multiple_of(LANES));
        self.pad_input(level, input, padded);
        level.run(Forward {
            conv: self,
            params,
            padded,
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
        let line = self.x.spread() * self.out;
        let above = (self.y.size - 1 - self.y.padding) * line;
        let left = (self.x.size - 1 - self.x.padding) * self.out;
        if self.x.stride == 1 && self.y.stride == 1 {
            level.run(Framed {
                lines: pass.d_output,
                line: self.line(),
                wide: line,
                above,
                left,
                out: spread,
            });
        } else {
            spread.fill(0.0);
            for (y, line_of_output) in pass.d_output.chunks_exact(self.line()).enumerate() {
                for (x, numbers) in line_of_output.chunks_exact(self.out).enumerate() {
                    let to = above + left + y * self.y.stride * line + x * self.x.stride * self.out;
                    spread[to..to + self.out].copy_from_slice(numbers);
                }
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
