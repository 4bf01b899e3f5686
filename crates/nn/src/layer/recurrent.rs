//! The recurrent layers, and what their cells share: sizes, weights, the transposed copies of them, and their
//! gradients.
//!
//! Weights lie input by input, `[in][gates · hidden]`, so that lanes run along the gates: first those of the input,
//! then those of the hidden state, then one bias.

use super::{Backward, Layer, gru, lstm};
use crate::Tensor;
use crate::kernel::{self, Rows, Start, Target};
use crate::simd::{Lanes, Level};

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    Lstm,
    Gru,
}

/// A recurrent layer; the output is the last hidden state, or those of all steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recurrent {
    pub cell: Cell,
    pub gates: usize,
    pub steps: usize,
    pub inputs: usize,
    pub hidden: usize,
    /// Whether the hidden states of all steps come out.
    pub sequence: bool,
}

/// A backward pass, with the tape as its cell reads it.
pub(super) struct BackwardPass<'a, T> {
    pub sizes: Recurrent,
    pub tape: T,
    pub pass: Backward<'a>,
}

impl Recurrent {
    /// Numbers in one step's gates.
    pub(super) fn width(&self) -> usize {
        self.gates * self.hidden
    }

    /// The gradient that the output gives to the hidden state of a step that is not the last.
    pub(super) fn of_step<'a>(&self, d_output: &'a [f32], step: usize) -> Option<&'a [f32]> {
        self.sequence
            .then(|| &d_output[step * self.hidden..][..self.hidden])
    }

    /// The same of the last step.
    pub(super) fn of_last_step<'a>(&self, d_output: &'a [f32]) -> &'a [f32] {
        &d_output[d_output.len() - self.hidden..]
    }

    /// Numbers in W_ih and in W_hh.
    pub(super) fn weights(&self) -> (usize, usize) {
        (self.inputs * self.width(), self.hidden * self.width())
    }

    /// W_ih, W_hh and the bias.
    pub(super) fn split<'a>(&self, params: &'a [f32]) -> (&'a [f32], &'a [f32], &'a [f32]) {
        let (of_input, of_hidden) = self.weights();
        let (weight_ih, rest) = params.split_at(of_input);
        let (weight_hh, bias) = rest.split_at(of_hidden);
        (weight_ih, weight_hh, bias)
    }

    /// The products of the input in all steps at once, with the bias: rows share the loads of the weights.
    #[inline(always)]
    pub(super) fn sum_inputs<L: Lanes>(&self, params: &[f32], input: &[f32], gates: &mut [f32]) {
        let (weight_ih, _, bias) = self.split(params);
        let rows = Rows::dense(self.steps, self.inputs);
        let start = Start::Row(bias);
        kernel::multiply::<L>(input, rows, weight_ih, self.width(), start, gates);
    }

    /// What is left of a backward pass when each step has its gradients: `d_inputs` of what is summed from the input,
    /// `d_recurrents` of what is summed from the hidden state.
    #[inline(always)]
    pub(super) fn finish<L: Lanes>(
        &self,
        (input, hiddens): (&[f32], &[f32]),
        (d_inputs, d_recurrents): (&[f32], &[f32]),
        turned_ih: &[f32],
        target: Option<Target<'_>>,
        d_input: Option<&mut [f32]>,
    ) {
        let width = self.width();
        if let Some(target) = target {
            let (of_input, of_hidden) = self.weights();
            let (d_weight_ih, rest) = target.split_at(of_input);
            let (d_weight_hh, d_bias) = rest.split_at(of_hidden);
            let all = Rows::dense(self.steps, self.inputs);
            kernel::correlate::<L>(input, all, d_inputs, width, d_weight_ih);
            // The hidden state before the first step is zero.
            let later = Rows::dense(self.steps - 1, self.hidden);
            kernel::correlate::<L>(hiddens, later, &d_recurrents[width..], width, d_weight_hh);
            kernel::add_rows::<L>(d_inputs, d_bias);
        }
        if let Some(d_input) = d_input {
            let rows = Rows::dense(self.steps, width);
            kernel::multiply::<L>(d_inputs, rows, turned_ih, self.inputs, Start::Zero, d_input);
        }
    }
}

impl Layer for Recurrent {
    fn output(&self) -> usize {
        if self.sequence {
            self.steps * self.hidden
        } else {
            self.hidden
        }
    }

    fn tape(&self) -> usize {
        7 * self.steps * self.hidden
    }

    fn tensors(&self) -> Vec<Tensor> {
        let width = self.width();
        vec![
            Tensor::permuted("weight_ih", vec![width, self.inputs], vec![1, width]),
            Tensor::permuted("weight_hh", vec![width, self.hidden], vec![1, width]),
            Tensor::vector("bias", width),
        ]
    }

    fn prepared(&self) -> usize {
        (self.inputs + self.hidden) * self.width()
    }

    fn scratch(&self) -> usize {
        let (gates, hidden) = (self.steps * self.width(), self.hidden);
        match self.cell {
            Cell::Lstm => gates + 2 * hidden,
            Cell::Gru => 2 * gates + 3 * hidden,
        }
    }

    /// The gates' sums, of input and hidden state; the hidden state before the first step is zero.
    fn forward_flops(&self) -> u64 {
        let (of_input, of_hidden) = self.weights();
        2 * (self.steps * of_input + (self.steps - 1) * of_hidden) as u64
    }

    /// Gradients of the hidden states, and of the input where it is asked for.
    fn frozen_backward_flops(&self, input_gradient: bool) -> u64 {
        let (of_input, of_hidden) = self.weights();
        let of_states = 2 * ((self.steps - 1) * of_hidden) as u64;
        let of_inputs = if input_gradient {
            2 * (self.steps * of_input) as u64
        } else {
            0
        };
        of_states + of_inputs
    }

    fn initial_bound(&self) -> f32 {
        1.0 / (self.hidden as f32).sqrt()
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]) {
        match self.cell {
            Cell::Lstm => lstm::forward(self, level, params, [input], [tape]),
            Cell::Gru => gru::forward(self, level, params, input, tape),
        }
    }

    fn forward_both(
        &self,
        level: Level,
        params: &[f32],
        inputs: [&[f32]; 2],
        tapes: [&mut [f32]; 2],
    ) {
        match self.cell {
            Cell::Lstm => lstm::forward(self, level, params, inputs, tapes),
            Cell::Gru => super::one_by_one(self, level, params, inputs, tapes),
        }
    }

    /// W_hh turned, then, if the input's gradient is wanted, W_ih turned.
    fn prepare(&self, level: Level, params: &[f32], prepared: &mut [f32], input_gradient: bool) {
        let (weight_ih, weight_hh, _) = self.split(params);
        let (turned_hh, turned_ih) = prepared.split_at_mut(weight_hh.len());
        kernel::transpose(level, weight_hh, self.hidden, self.width(), turned_hh);
        if input_gradient {
            kernel::transpose(level, weight_ih, self.inputs, self.width(), turned_ih);
        }
    }
    fn backward(&self, level: Level, pass: Backward<'_>) {
        match self.cell {
            Cell::Lstm => lstm::backward(*self, level, pass),
            Cell::Gru => gru::backward(*self, level, pass),
        }
    }
}
