//! A list of layers over one flat parameter slice.

use crate::kernel::Target;
use crate::layer::{self, Backward, Layer};
use crate::random::Key;
use crate::simd::{LANES, Level};
use crate::{Cost, LayerSpec, Shape, ShapeError};
use std::ops::Range;

/// A network: layers one after the other, over one flat slice of parameters.
///
/// It holds no numbers but constants: parameters, tape, prepared weights, gradient and scratch belong to the caller, who sizes them
/// with [`params`](Self::params), [`tape`](Self::tape), [`prepared`](Self::prepared) and [`scratch`](Self::scratch). So
/// nothing is allocated in a step.
#[derive(Debug)]
pub struct Network {
    level: Level,
    input: Shape,
    output: Shape,
    stages: Vec<Stage>,
    input_gradient: bool,
}

/// The layers with their places in the list. The largest of some numbers is chosen before its negative part is cut off,
/// where the list says it the other way around: it is the same to the bit, forward and backward, and less work.
fn in_best_order(specs: &[LayerSpec]) -> Vec<(usize, &LayerSpec)> {
    let mut order: Vec<_> = specs.iter().enumerate().collect();
    for i in 1..order.len() {
        if let (LayerSpec::Relu, LayerSpec::Maxpool { .. }) = (order[i - 1].1, order[i].1) {
            order.swap(i - 1, i);
        }
    }
    order
}

/// The next multiple of the numbers in a cache line.
fn on_cache_line(numbers: usize) -> usize {
    numbers.next_multiple_of(LANES)
}

/// A layer and its stretches of the caller's slices.
#[derive(Debug)]
struct Stage {
    /// Where the layer stands in the experiment's list; reorderings of images stand in none, and of the list those are
    /// left out that would only copy.
    index: Option<usize>,
    layer: Box<dyn Layer>,
    params: Range<usize>,
    tape: Range<usize>,
    prepared: Range<usize>,
    /// Numbers in the input.
    input: usize,
}

impl Stage {
    /// Where the output lies on the tape.
    fn output(&self) -> Range<usize> {
        self.tape.end - self.layer.output()..self.tape.end
    }
}

/// A named tensor inside the parameter slice, in the shape PyTorch gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// `<layer index>.<name>`, like `0.weight_ih`.
    pub name: String,
    /// PyTorch's shape.
    pub shape: Vec<usize>,
    /// Where it begins in the parameter slice.
    pub offset: usize,
    /// How far apart neighbours along each dimension lie in the parameter slice.
    strides: Vec<usize>,
}

impl Tensor {
    pub(crate) fn permuted(name: &str, shape: Vec<usize>, strides: Vec<usize>) -> Self {
        Tensor {
            name: name.into(),
            shape,
            offset: 0,
            strides,
        }
    }

    pub(crate) fn vector(name: &str, len: usize) -> Self {
        Self::permuted(name, vec![len], vec![1])
    }

    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where its numbers lie in the parameter slice, in PyTorch's (row-major) order.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|mut i| {
            let dimensions = self.shape.iter().zip(&self.strides).rev();
            dimensions.fold(self.offset, |place, (size, stride)| {
                let coordinate = i % size;
                i /= size;
                place + coordinate * stride
            })
        })
    }

    /// Its numbers in PyTorch's order.
    pub fn read(&self, params: &[f32]) -> Vec<f32> {
        self.places().map(|place| params[place]).collect()
    }

    /// Puts numbers that are in PyTorch's order where they belong.
    ///
    /// # Panics
    /// If `values` has another length than the tensor.
    pub fn write(&self, values: &[f32], params: &mut [f32]) {
        assert_eq!(values.len(), self.len(), "tensor {}", self.name);
        for (place, value) in self.places().zip(values) {
            params[place] = *value;
        }
    }
}

/// What a backward pass does with the gradient of the parameters.
#[derive(Debug)]
pub enum Update<'a> {
    /// Nothing: the parameters are frozen.
    Frozen,
    /// Adds it to a slice.
    Accumulate(&'a mut [f32]),
    /// Steps at once, `params = (1 − decay) · from − step · gradient`, and never stores it: to the bit what
    /// accumulating from zero and then [`crate::vector::descend`] give.
    Descend {
        /// Where the step begins, if not at `params`, of which then nothing is read.
        from: Option<&'a [f32]>,
        /// The parameters; the forward pass is over, so nobody reads them any more.
        params: &'a mut [f32],
        /// The length of the step.
        step: f32,
        /// The share of the parameters that is taken off.
        decay: f32,
    },
}

impl Update<'_> {
    /// The stretch that belongs to one layer.
    fn target(&mut self, params: Range<usize>) -> Option<Target<'_>> {
        match self {
            Update::Frozen => None,
            Update::Accumulate(gradient) => Some(Target::Add(&mut gradient[params])),
            Update::Descend {
                from,
                params: all,
                step,
                decay,
            } => Some(Target::Descend {
                from: from.map(|from| &from[params.clone()]),
                weights: &mut all[params],
                step: *step,
                keep: 1.0 - *decay,
            }),
        }
    }
}

impl Network {
    /// A network for samples of shape `input`, on the fastest instructions this CPU has.
    ///
    /// # Errors
    /// If a layer does not fit what comes before it.
    pub fn new(input: Shape, specs: &[LayerSpec]) -> Result<Self, ShapeError> {
        let mut network = Network {
            level: Level::detect(),
            input,
            output: input,
            stages: Vec::new(),
            input_gradient: false,
        };
        if input.is_empty() {
            return Err(ShapeError(format!(
                "a network needs an input, but {input} is empty"
            )));
        }
        if let Shape::Image(channels, height, width) = input {
            network.push(None, layer::channels_last(channels, height * width));
        }
        let mut shape = input;
        for (index, spec) in in_best_order(specs) {
            let (layer, output) =
                layer::build(spec, shape).map_err(|e| ShapeError(format!("layer {index}: {e}")))?;
            network.push(Some(index), layer);
            shape = output;
        }
        if let Shape::Image(..) = shape {
            network.push(None, layer::channels_first(shape));
        }
        if network.stages.is_empty() {
            // The result must be on the tape, even if it is the input.
            network.push_stage(None, layer::copy(shape.len()));
        }
        network.output = Shape::Flat(shape.len());
        Ok(network)
    }

    fn push(&mut self, index: Option<usize>, layer: Box<dyn Layer>) {
        if !layer.is_identity() {
            self.push_stage(index, layer);
        }
    }

    fn push_stage(&mut self, index: Option<usize>, layer: Box<dyn Layer>) {
        let after = |range: Option<&Range<usize>>, len: usize| {
            let start = range.map_or(0, |r| r.end);
            start..start + len
        };
        // What is nobody's business begins on cache lines, if the caller's slices do.
        let on_line = |range: Option<&Range<usize>>, len: usize| {
            let start = on_cache_line(range.map_or(0, |r| r.end));
            start..start + len
        };
        let last = self.stages.last();
        let params = layer.tensors().iter().map(Tensor::len).sum();
        let stage = Stage {
            index,
            params: after(last.map(|s| &s.params), params),
            tape: on_line(last.map(|s| &s.tape), layer.tape()),
            prepared: on_line(last.map(|s| &s.prepared), layer.prepared()),
            input: last.map_or(self.input.len(), |s| s.layer.output()),
            layer,
        };
        self.stages.push(stage);
    }

    /// The same network, whose backward pass also gives the gradient of its input. (Raw data needs none, embeddings
    /// do.)
    #[must_use]
    pub fn with_input_gradient(self) -> Self {
        Network {
            input_gradient: true,
            ..self
        }
    }

    /// The same network on other instructions: the results are the same to the bit.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Network { level, ..self }
    }

    /// The instructions it runs on.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The shape of a sample.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// The shape that comes out, always flat.
    pub fn output(&self) -> Shape {
        self.output
    }

    /// Numbers in the parameter slice and in a gradient.
    pub fn params(&self) -> usize {
        self.stages.last().map_or(0, |s| s.params.end)
    }

    /// Numbers on a sample's tape.
    pub fn tape(&self) -> usize {
        on_cache_line(self.stages.last().map_or(0, |s| s.tape.end))
    }

    /// Numbers in the prepared weights.
    pub fn prepared(&self) -> usize {
        self.stages.last().map_or(0, |s| s.prepared.end)
    }

    /// Numbers that a backward pass needs for itself.
    pub fn scratch(&self) -> usize {
        let own = self
            .stages
            .iter()
            .map(|s| s.layer.scratch())
            .max()
            .unwrap_or(0);
        2 * on_cache_line(self.widest()) + own
    }

    fn widest(&self) -> usize {
        self.stages
            .iter()
            .map(|s| s.input.max(s.layer.output()))
            .max()
            .unwrap_or(0)
    }

    /// Every tensor, with its name, PyTorch's shape and its place.
    pub fn tensors(&self) -> Vec<Tensor> {
        let mut tensors = Vec::new();
        for stage in &self.stages {
            let mut offset = stage.params.start;
            for mut tensor in stage.layer.tensors() {
                if let Some(index) = stage.index {
                    tensor.name = format!("{index}.{}", tensor.name);
                }
                tensor.offset = offset;
                offset += tensor.len();
                tensors.push(tensor);
            }
        }
        tensors
    }

    /// Fills the parameters with the usual initialisation of each layer: weights and biases uniform in ±1/√fan-in, or
    /// ±1/√hidden for recurrent layers. Every tensor has its own stream of `key`.
    pub fn initialise(&self, key: Key, params: &mut [f32]) {
        for stage in &self.stages {
            let Some(index) = stage.index else { continue };
            let bound = stage.layer.initial_bound();
            let mut offset = stage.params.start;
            for (i, mut tensor) in stage.layer.tensors().into_iter().enumerate() {
                let mut stream = key.with(index as u64).with(i as u64).stream();
                tensor.offset = offset;
                offset += tensor.len();
                // In PyTorch's order, so that the initial model does not depend on our layout.
                let values: Vec<f32> = (0..tensor.len())
                    .map(|_| bound * (2.0 * stream.uniform() - 1.0))
                    .collect();
                tensor.write(&values, params);
            }
        }
    }

    /// What one sample costs, layer by layer.
    pub fn costs(&self) -> Vec<Cost> {
        let first = self.first_to_differentiate();
        let costs = self.stages.iter().enumerate().map(|(i, stage)| {
            let input_gradient = i > first || self.input_gradient;
            let [of_weights, of_rest] = match i >= first {
                true => [
                    stage.layer.weight_gradient_flops(),
                    stage.layer.frozen_backward_flops(input_gradient),
                ],
                false => [0, 0],
            };
            Cost {
                params: stage.params.len(),
                activations: stage.tape.len(),
                forward_flops: stage.layer.forward_flops(),
                backward_flops: of_weights + of_rest,
                frozen_backward_flops: of_rest,
            }
        });
        costs.collect()
    }

    /// What one sample costs in all.
    pub fn cost(&self) -> Cost {
        self.costs().into_iter().sum()
    }

    /// The layers before the first one with parameters need no backward pass, unless the input's gradient is asked for.
    fn first_to_differentiate(&self) -> usize {
        if self.input_gradient {
            return 0;
        }
        self.stages
            .iter()
            .position(|s| !s.params.is_empty())
            .unwrap_or(self.stages.len())
    }

    /// Computes one sample and leaves on its tape what the backward pass needs, the result at last.
    pub fn forward<'t>(&self, params: &[f32], input: &[f32], tape: &'t mut [f32]) -> &'t [f32] {
        for (i, stage) in self.stages.iter().enumerate() {
            let (before, rest) = tape.split_at_mut(stage.tape.start);
            let input = if i == 0 {
                input
            } else {
                &before[self.stages[i - 1].output()]
            };
            let tape = &mut rest[..stage.tape.len()];
            stage
                .layer
                .forward(self.level, &params[stage.params.clone()], input, tape);
        }
        self.result(tape)
    }

    /// Computes two samples as [`forward`](Self::forward) does, to the bit, in less time than one after the other.
    pub fn forward_both(&self, params: &[f32], inputs: [&[f32]; 2], tapes: [&mut [f32]; 2]) {
        let [first, second] = tapes;
        for (i, stage) in self.stages.iter().enumerate() {
            let (before, rest) = first.split_at_mut(stage.tape.start);
            let (other_before, other_rest) = second.split_at_mut(stage.tape.start);
            let inputs = if i == 0 {
                inputs
            } else {
                let output = self.stages[i - 1].output();
                [&before[output.clone()], &other_before[output]]
            };
            let length = stage.tape.len();
            stage.layer.forward_both(
                self.level,
                &params[stage.params.clone()],
                inputs,
                [&mut rest[..length], &mut other_rest[..length]],
            );
        }
    }

    /// The result that a forward pass left on the tape.
    pub fn result<'t>(&self, tape: &'t [f32]) -> &'t [f32] {
        self.stages.last().map_or(&[], |s| &tape[s.output()])
    }

    /// Makes the transposed copies of the weights that [`backward`](Self::backward) reads. Once per value of the
    /// parameters, for any number of samples.
    pub fn prepare(&self, params: &[f32], prepared: &mut [f32]) {
        let first = self.first_to_differentiate();
        for (i, stage) in self.stages.iter().enumerate().skip(first) {
            let prepared = &mut prepared[stage.prepared.clone()];
            let input_gradient = i > first || self.input_gradient;
            stage.layer.prepare(
                self.level,
                &params[stage.params.clone()],
                prepared,
                input_gradient,
            );
        }
    }

    /// Updates with the gradient of one sample's loss, given its tape and the loss's gradient with respect to the
    /// result. Writes the gradient of the input to `d_input` if the network was made [with
    /// it](Self::with_input_gradient).
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        prepared: &[f32],
        input: &[f32],
        tape: &[f32],
        d_output: &[f32],
        mut update: Update<'_>,
        scratch: &mut [f32],
        mut d_input: Option<&mut [f32]>,
    ) {
        let first = self.first_to_differentiate();
        let widest = on_cache_line(self.widest());
        let (buffer_a, rest) = scratch.split_at_mut(widest);
        let (buffer_b, scratch) = rest.split_at_mut(widest);
        let (mut above, mut below) = (buffer_a, buffer_b);
        above[..d_output.len()].copy_from_slice(d_output);
        for (i, stage) in self.stages.iter().enumerate().skip(first).rev() {
            let d_input = if i > first {
                Some(&mut below[..stage.input])
            } else if self.input_gradient {
                d_input.take()
            } else {
                None
            };
            stage.layer.backward(
                self.level,
                Backward {
                    prepared: &prepared[stage.prepared.clone()],
                    input: if i == 0 {
                        input
                    } else {
                        &tape[self.stages[i - 1].output()]
                    },
                    tape: &tape[stage.tape.clone()],
                    d_output: &above[..stage.layer.output()],
                    target: update.target(stage.params.clone()),
                    d_input,
                    scratch: &mut scratch[..stage.layer.scratch()],
                },
            );
            (above, below) = (below, above);
        }
    }
}
