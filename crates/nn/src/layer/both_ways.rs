//! Two recurrent layers side by side, of which the second reads the steps from the last to the first.
//!
//! Where all hidden states come out, those of a step stand together, so the second layer's are turned round again.
//! Otherwise both give their last: that of the second is at the first step.

use super::recurrent::Recurrent;
use super::{Backward, Layer};
use crate::Tensor;
use crate::simd::Level;
use crate::vector;

/// Both are of this size.
#[derive(Debug)]
pub(super) struct BothWays(pub Recurrent);

/// Rows of `width` from the last to the first.
fn turn_round(rows: &[f32], width: usize, out: &mut [f32]) {
    for (out, row) in out
        .chunks_exact_mut(width)
        .zip(rows.chunks_exact(width).rev())
    {
        out.copy_from_slice(row);
    }
}

impl BothWays {
    /// Numbers in the input.
    fn inputs(&self) -> usize {
        self.0.steps * self.0.inputs
    }

    /// Parameters of one of the two.
    fn params(&self) -> usize {
        let (of_input, of_hidden) = self.0.weights();
        of_input + of_hidden + self.0.width()
    }

    /// Steps that come out.
    fn steps(&self) -> usize {
        self.0.output() / self.0.hidden
    }
}

impl Layer for BothWays {
    fn output(&self) -> usize {
        2 * self.0.output()
    }

    /// The input turned round, the tapes of both, the output.
    fn tape(&self) -> usize {
        self.inputs() + 2 * self.0.tape() + self.output()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let backwards = self.0.tensors().into_iter().map(|mut tensor| {
            tensor.name += "_reverse";
            tensor
        });
        self.0.tensors().into_iter().chain(backwards).collect()
    }

    fn prepared(&self) -> usize {
        2 * self.0.prepared()
    }

    /// Gradients of both outputs, that of the input turned round, and what each needs for itself.
    fn scratch(&self) -> usize {
        self.output() + self.inputs() + self.0.scratch()
    }

    fn forward_flops(&self) -> u64 {
        2 * self.0.forward_flops()
    }

    fn frozen_backward_flops(&self, input_gradient: bool) -> u64 {
        2 * self.0.frozen_backward_flops(input_gradient)
    }

    fn initial_bound(&self) -> f32 {
        self.0.initial_bound()
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]) {
        let (one, hidden) = (&self.0, self.0.hidden);
        let (turned, rest) = tape.split_at_mut(self.inputs());
        let (ahead, rest) = rest.split_at_mut(one.tape());
        let (back, output) = rest.split_at_mut(one.tape());
        let (params_ahead, params_back) = params.split_at(self.params());
        turn_round(input, one.inputs, turned);
        one.forward(level, params_ahead, input, ahead);
        one.forward(level, params_back, turned, back);
        let of_ahead = ahead[one.tape() - one.output()..].chunks_exact(hidden);
        let of_back = back[one.tape() - one.output()..].chunks_exact(hidden).rev();
        let both = of_ahead.zip(of_back);
        for (out, (ahead, back)) in output.chunks_exact_mut(2 * hidden).zip(both) {
            out[..hidden].copy_from_slice(ahead);
            out[hidden..].copy_from_slice(back);
        }
    }

    fn prepare(&self, level: Level, params: &[f32], prepared: &mut [f32], input_gradient: bool) {
        let params = params.chunks_exact(self.params());
        let prepared = prepared.chunks_exact_mut(self.0.prepared());
        for (params, prepared) in params.zip(prepared) {
            self.0.prepare(level, params, prepared, input_gradient);
        }
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        let (one, hidden, steps) = (&self.0, self.0.hidden, self.steps());
        let (turned, rest) = pass.tape.split_at(self.inputs());
        let (ahead, rest) = rest.split_at(one.tape());
        let back = &rest[..one.tape()];
        let (prepared_ahead, prepared_back) = pass.prepared.split_at(one.prepared());
        let (target_ahead, target_back) = match pass.target {
            Some(target) => {
                let (ahead, back) = target.split_at(self.params());
                (Some(ahead), Some(back))
            }
            None => (None, None),
        };
        let (d_ahead, rest) = pass.scratch.split_at_mut(one.output());
        let (d_back, rest) = rest.split_at_mut(one.output());
        let (d_turned, scratch) = rest.split_at_mut(self.inputs());
        for (step, d) in pass.d_output.chunks_exact(2 * hidden).enumerate() {
            let (of_ahead, of_back) = d.split_at(hidden);
            d_ahead[step * hidden..][..hidden].copy_from_slice(of_ahead);
            d_back[(steps - 1 - step) * hidden..][..hidden].copy_from_slice(of_back);
        }
        let mut d_input = pass.d_input;
        one.backward(
            level,
            Backward {
                prepared: prepared_ahead,
                input: pass.input,
                tape: ahead,
                d_output: d_ahead,
                target: target_ahead,
                d_input: d_input.as_deref_mut(),
                scratch: &mut *scratch,
            },
        );
        one.backward(
            level,
            Backward {
                prepared: prepared_back,
                input: turned,
                tape: back,
                d_output: d_back,
                target: target_back,
                d_input: d_input.is_some().then_some(&mut *d_turned),
                scratch,
            },
        );
        if let Some(d_input) = d_input {
            let rows = d_turned.chunks_exact(one.inputs).rev();
            for (d_input, row) in d_input.chunks_exact_mut(one.inputs).zip(rows) {
                vector::add(level, row, d_input);
            }
        }
    }
}
