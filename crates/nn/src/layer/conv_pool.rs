//! A convolution and the largest of each window of what it gives, with or without cutting off what is negative, in one
//! layer: to the bit what the two or three would give one after the other.
//!
//! What the convolution gives is four times as much as what is left of it, and nobody needs it afterwards: it lives for
//! one line of windows. Kept are which pixel of each window was the largest and what became of it.
//!
//! ```text
//! tape   padded input | the lines of one line of windows | which was the largest | output
//! ```

use super::conv::Conv;
use super::pool::MaxPool;
use super::{Backward, Layer};
use crate::Tensor;
use crate::kernel::{load, rest_of_columns, store};
use crate::simd::{Kernel, LANES, Lanes, Level, Vector};

/// A convolution whose output is pooled.
#[derive(Debug)]
pub(super) struct ConvPool {
    pub conv: Conv,
    pub pool: MaxPool,
    /// Whether what is negative becomes zero.
    pub relu: bool,
}

/// The parts of the tape.
struct Tape<S> {
    padded: S,
    lines: S,
    chosen: S,
    output: S,
}

impl ConvPool {
    /// Where the parts of the tape end, each begun on a cache line.
    fn ends(&self) -> [usize; 3] {
        let padded = self.conv.pad().next_multiple_of(LANES);
        let lines = self.pool.rows * self.conv.line();
        let lines = padded + lines.next_multiple_of(LANES);
        [padded, lines, lines + self.output().next_multiple_of(LANES)]
    }

    fn write<'a>(&self, tape: &'a mut [f32]) -> Tape<&'a mut [f32]> {
        let [padded_end, lines_end, chosen_end] = self.ends();
        let (rest, output) = tape.split_at_mut(chosen_end);
        let (rest, chosen) = rest.split_at_mut(lines_end);
        let (padded, lines) = rest.split_at_mut(padded_end);
        Tape {
            padded,
            lines,
            chosen,
            output,
        }
    }
}

struct Forward<'a> {
    layer: &'a ConvPool,
    params: &'a [f32],
    tape: Tape<&'a mut [f32]>,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Forward {
            layer,
            params,
            tape,
        } = self;
        let (pool, conv) = (&layer.pool, &layer.conv);
        let line = conv.line();
        let across = pool.across() * pool.channels;
        let outputs = tape.output.chunks_exact_mut(across);
        let chosen = tape.chosen.chunks_exact_mut(across);
        for (y, (output, chosen)) in outputs.zip(chosen).enumerate() {
            for (row, line) in tape
                .lines
                .chunks_exact_mut(line)
                .take(pool.rows)
                .enumerate()
            {
                conv.forward_line::<L>(params, tape.padded, y * pool.rows + row, line);
            }
            for x in 0..pool.across() {
                let (from, to) = (pool.window(0, x), x * pool.channels);
                let mut column = 0;
                rest_of_columns!(
                    L,
                    column,
                    pool.channels,
                    choose(pool, layer.relu, (from, to), tape.lines, chosen, output)
                );
            }
        }
    }
}

/// One vector of channels of the window that begins at `from`: the first of the largest, and which it is.
#[inline(always)]
fn choose<V: Vector, const C: usize, const PARTIAL: bool>(
    pool: &MaxPool,
    relu: bool,
    (from, to): (usize, usize),
    lines: &[f32],
    chosen: &mut [f32],
    output: &mut [f32],
    column: usize,
) {
    let width = match PARTIAL {
        true => pool.channels - column,
        false => V::WIDTH,
    };
    let last = pool.pixel(from, pool.rows - 1, pool.columns - 1);
    assert!(lines.len() >= last + column + width);
    assert!(output.len() >= to + column + width && chosen.len() >= to + column + width);
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        let mut largest = load::<V, PARTIAL>(lines, from + column, width);
        let mut which = V::splat(0.0);
        for pixel in 1..pool.rows * pool.columns {
            let (dy, dx) = (pixel / pool.columns, pixel % pool.columns);
            let x = load::<V, PARTIAL>(lines, pool.pixel(from, dy, dx) + column, width);
            let change = V::splat(pixel as f32).sub(which);
            which = which.add(x.sub(largest).gate(change));
            largest = largest.max(x);
        }
        if relu {
            largest = V::splat(0.0).max(largest);
        }
        store::<V, PARTIAL>(largest, output, to + column, width);
        store::<V, PARTIAL>(which, chosen, to + column, width);
    }
}

struct ToPixels<'a> {
    layer: &'a ConvPool,
    chosen: &'a [f32],
    output: &'a [f32],
    d_output: &'a [f32],
    d_pixels: &'a mut [f32],
}

impl Kernel for ToPixels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let ToPixels {
            layer,
            chosen,
            output,
            d_output,
            d_pixels,
        } = self;
        let pool = &layer.pool;
        // Pixels that fill no window get nothing.
        if pool.height % pool.rows > 0 || pool.width % pool.columns > 0 {
            d_pixels.fill(0.0);
        }
        let (down, across) = (pool.height / pool.rows, pool.across());
        for y in 0..down {
            for x in 0..across {
                let (to, from) = (pool.window(y, x), (y * across + x) * pool.channels);
                let mut column = 0;
                rest_of_columns!(
                    L,
                    column,
                    pool.channels,
                    hand_back(layer, (from, to), [chosen, output, d_output], d_pixels)
                );
            }
        }
    }
}

/// One vector of channels of the window that begins at `to`: the gradient goes to the pixel that was chosen.
#[inline(always)]
fn hand_back<V: Vector, const C: usize, const PARTIAL: bool>(
    layer: &ConvPool,
    (from, to): (usize, usize),
    [chosen, output, d_output]: [&[f32]; 3],
    d_pixels: &mut [f32],
    column: usize,
) {
    let pool = &layer.pool;
    let width = match PARTIAL {
        true => pool.channels - column,
        false => V::WIDTH,
    };
    let at = from + column;
    let last = pool.pixel(to, pool.rows - 1, pool.columns - 1) + column + width;
    assert!(d_pixels.len() >= last && chosen.len() >= at + width);
    assert!(output.len() >= at + width && d_output.len() >= at + width);
    // SAFETY: the assertions are about the last number of each slice that is touched.
    unsafe {
        let which = load::<V, PARTIAL>(chosen, at, width);
        // What is still to be given away: behind the chosen pixel, nothing.
        let mut left = load::<V, PARTIAL>(d_output, at, width);
        if layer.relu {
            left = load::<V, PARTIAL>(output, at, width).gate(left);
        }
        for pixel in 0..pool.rows * pool.columns {
            let (dy, dx) = (pixel / pool.columns, pixel % pool.columns);
            let kept = which.sub(V::splat(pixel as f32)).gate(left);
            let place = pool.pixel(to, dy, dx) + column;
            store::<V, PARTIAL>(left.sub(kept), d_pixels, place, width);
            left = kept;
        }
    }
}

impl Layer for ConvPool {
    fn output(&self) -> usize {
        self.pool.output()
    }

    fn tape(&self) -> usize {
        self.ends()[2] + self.output()
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.conv.tensors()
    }

    fn prepared(&self) -> usize {
        self.conv.prepared()
    }

    /// The gradient of what the convolution gave, then what the convolution needs.
    fn scratch(&self) -> usize {
        self.conv.output().next_multiple_of(LANES) + self.conv.scratch()
    }

    fn forward_flops(&self) -> u64 {
        self.conv.forward_flops()
    }

    fn initial_bound(&self) -> f32 {
        self.conv.initial_bound()
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]) {
        let tape = self.write(tape);
        self.conv.pad_input(level, input, tape.padded);
        level.run(Forward {
            layer: self,
            params,
            tape,
        });
    }

    fn prepare(&self, level: Level, params: &[f32], prepared: &mut [f32], input_gradient: bool) {
        self.conv.prepare(level, params, prepared, input_gradient);
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        let [padded_end, lines_end, chosen_end] = self.ends();
        let (d_pixels, scratch) = pass
            .scratch
            .split_at_mut(self.conv.output().next_multiple_of(LANES));
        let d_pixels = &mut d_pixels[..self.conv.output()];
        level.run(ToPixels {
            layer: self,
            chosen: &pass.tape[lines_end..chosen_end],
            output: &pass.tape[chosen_end..],
            d_output: pass.d_output,
            d_pixels,
        });
        self.conv.backward(
            level,
            Backward {
                tape: &pass.tape[..padded_end],
                d_output: d_pixels,
                scratch,
                ..pass
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::random::Key;
    use crate::{ConvSpec, LayerSpec, Network, Shape, Update};

    /// Forward and backward through one network after another: the result and all gradients.
    fn through(networks: &[Network], params: &[f32], input: &[f32], d_output: &[f32]) -> Vec<u32> {
        let mut tapes: Vec<Vec<f32>> = networks.iter().map(|n| vec![0.0; n.tape()]).collect();
        let (mut value, mut inputs) = (input.to_vec(), Vec::new());
        for (network, tape) in networks.iter().zip(&mut tapes) {
            inputs.push(value.clone());
            let own = &params[..network.params()];
            value = network
                .forward(own, &inputs[inputs.len() - 1], tape)
                .to_vec();
        }
        let mut bits: Vec<u32> = value.iter().map(|v| v.to_bits()).collect();
        let mut d = d_output.to_vec();
        for ((network, tape), input) in networks.iter().zip(&tapes).zip(&inputs).rev() {
            let own = &params[..network.params()];
            let mut prepared = vec![0.0; network.prepared()];
            network.prepare(own, &mut prepared);
            let mut gradient = vec![0.0; network.params()];
            let mut d_input = vec![0.0; network.input().len()];
            let mut scratch = vec![0.0; network.scratch()];
            network.backward(
                &prepared,
                input,
                tape,
                &d,
                Update::Accumulate(&mut gradient),
                &mut scratch,
                Some(&mut d_input),
            );
            bits.extend(gradient.iter().chain(&d_input).map(|v| v.to_bits()));
            d = d_input;
        }
        bits
    }

    #[test]
    fn one_layer_is_to_the_bit_what_three_are() {
        for seed in 0..40 {
            let mut stream = Key::new(seed).stream();
            let mut draw =
                |from: usize, to: usize| from + stream.below((to - from) as u64 + 1) as usize;
            let (channels, height, width) = (draw(1, 3), draw(6, 13), draw(6, 13));
            let conv = ConvSpec {
                out: draw(1, 18),
                size: draw(1, 3),
                stride: draw(1, 2),
                padding: 0,
            };
            let pool = LayerSpec::Maxpool { size: draw(1, 2) };
            let relu = seed % 2 == 0;
            let mut list = vec![LayerSpec::Conv2d(conv)];
            let mut after = vec![pool];
            if relu {
                after.insert(0, LayerSpec::Relu);
            }
            list.extend(after.iter().cloned());
            let image = Shape::Image(channels, height, width);
            let network = |shape, list: &[LayerSpec]| {
                Network::new(shape, list).unwrap().with_input_gradient()
            };
            let first = network(image, &list[..1]);
            let (h, w) = (
                (height - conv.size) / conv.stride + 1,
                (width - conv.size) / conv.stride + 1,
            );
            let second = network(Shape::Image(conv.out, h, w), &after);
            let whole = network(image, &list);
            let mut numbers = |count| (0..count).map(|_| stream.normal()).collect::<Vec<f32>>();
            let params = numbers(first.params());
            let input = numbers(image.len());
            let d_output = numbers(second.output().len());
            let apart = through(&[first, second], &params, &input, &d_output);
            let together = through(&[whole], &params, &input, &d_output);
            let results = d_output.len();
            assert_eq!(
                apart[..results],
                together[..results],
                "forward, seed {seed}"
            );
            // Of the two networks, the gradients of the first: the second has no weights.
            let tail = apart.len() - params.len() - input.len();
            assert_eq!(apart[tail..], together[results..], "backward, seed {seed}");
        }
    }
}
