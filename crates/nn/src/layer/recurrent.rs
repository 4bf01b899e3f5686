//! What the recurrent layers share: sizes, weights and the transposed copies of them.
//!
//! Weights lie input by input, `[in][gates · hidden]`, so that lanes run along the gates: first those of the input, then
//! those of the hidden state, then one bias.

use crate::Tensor;
use crate::kernel;
use crate::simd::Level;

/// The sizes of a recurrent layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recurrent {
    pub steps: usize,
    pub inputs: usize,
    pub hidden: usize,
    pub gates: usize,
}

impl Recurrent {
    /// Numbers in one step's gates.
    pub(super) fn width(&self) -> usize {
        self.gates * self.hidden
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

    pub(super) fn tensors(&self) -> Vec<Tensor> {
        let width = self.width();
        vec![
            Tensor::permuted("weight_ih", vec![width, self.inputs], vec![1, width]),
            Tensor::permuted("weight_hh", vec![width, self.hidden], vec![1, width]),
            Tensor::vector("bias", width),
        ]
    }

    pub(super) fn prepared(&self) -> usize {
        (self.inputs + self.hidden) * self.width()
    }

    /// The gates' sums, of input and hidden state; the hidden state before the first step is zero.
    pub(super) fn forward_flops(&self) -> u64 {
        let (of_input, of_hidden) = self.weights();
        2 * (self.steps * of_input + (self.steps - 1) * of_hidden) as u64
    }

    /// Gradients of the hidden states, and of the input where it is asked for.
    pub(super) fn frozen_backward_flops(&self, input_gradient: bool) -> u64 {
        let (of_input, of_hidden) = self.weights();
        let of_states = 2 * ((self.steps - 1) * of_hidden) as u64;
        let of_inputs = if input_gradient {
            2 * (self.steps * of_input) as u64
        } else {
            0
        };
        of_states + of_inputs
    }

    pub(super) fn initial_bound(&self) -> f32 {
        1.0 / (self.hidden as f32).sqrt()
    }

    /// W_hh turned, then, if the input's gradient is wanted, W_ih turned.
    pub(super) fn prepare(
        &self,
        level: Level,
        params: &[f32],
        prepared: &mut [f32],
        input_gradient: bool,
    ) {
        let (weight_ih, weight_hh, _) = self.split(params);
        let (turned_hh, turned_ih) = prepared.split_at_mut(weight_hh.len());
        kernel::transpose(level, weight_hh, self.hidden, self.width(), turned_hh);
        if input_gradient {
            kernel::transpose(level, weight_ih, self.inputs, self.width(), turned_ih);
        }
    }
}
