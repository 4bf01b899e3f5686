//! Long short-term memory; the output is the last hidden state.
//!
//! ```text
//! z = b + W_ih x_t + W_hh h_{t−1}        gates i, f, g, o, each `hidden` wide
//! c_t = σ(f) c_{t−1} + σ(i) tanh(g)      h_t = σ(o) tanh(c_t)
//! ```
//!
//! Weights lie input by input, `[in][4·hidden]`, so that lanes run along the gates. The sum for h_{t−1}'s
//! gradient runs gate by gate and then over the four gates: four sums in flight instead of one.

use super::recurrent::Recurrent;
use super::{Backward, Layer};
use crate::Tensor;
use crate::kernel::{self, Rows, Start, Target, lanes};
use crate::math::{sigmoid, sigmoid_slope, tanh, tanh_slope};
use crate::simd::{Kernel, Lanes, Level};

#[derive(Debug)]
pub(super) struct Lstm(pub Recurrent);

/// The tape: gates after their nonlinearity, cell states, their tanh, hidden states; step by step.
struct Tape<S> {
    gates: S,
    cells: S,
    squashed: S,
    hiddens: S,
}

impl Lstm {
    fn states(&self) -> usize {
        self.0.steps * self.0.hidden
    }

    fn read<'a>(&self, tape: &'a [f32]) -> Tape<&'a [f32]> {
        let (gates, rest) = tape.split_at(4 * self.states());
        let (cells, rest) = rest.split_at(self.states());
        let (squashed, hiddens) = rest.split_at(self.states());
        Tape {
            gates,
            cells,
            squashed,
            hiddens,
        }
    }

    fn write<'a>(&self, tape: &'a mut [f32]) -> Tape<&'a mut [f32]> {
        let (gates, rest) = tape.split_at_mut(4 * self.states());
        let (cells, rest) = rest.split_at_mut(self.states());
        let (squashed, hiddens) = rest.split_at_mut(self.states());
        Tape {
            gates,
            cells,
            squashed,
            hiddens,
        }
    }
}

struct Forward<'a> {
    sizes: Recurrent,
    params: &'a [f32],
    input: &'a [f32],
    tape: Tape<&'a mut [f32]>,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let Forward {
            sizes,
            params,
            input,
            tape,
        } = self;
        let (hidden, width) = (sizes.hidden, sizes.width());
        let (weight_ih, weight_hh, bias) = sizes.split(params);

        // The inputs of all steps at once: rows share the loads of the weights.
        kernel::multiply::<L>(
            input,
            Rows::dense(sizes.steps, sizes.inputs),
            weight_ih,
            width,
            Start::Row(bias),
            tape.gates,
        );

        for t in 0..sizes.steps {
            let z = &mut tape.gates[t * width..][..width];
            let (before, now) = tape.hiddens.split_at_mut(t * hidden);
            if t > 0 {
                let previous = &before[(t - 1) * hidden..];
                kernel::multiply::<L>(
                    previous,
                    Rows::dense(1, hidden),
                    weight_hh,
                    width,
                    Start::There,
                    z,
                );
            }
            let (i_f, g_o) = z.split_at_mut(2 * hidden);
            let (g, o) = g_o.split_at_mut(hidden);
            lanes!(L, i_f, [z] => sigmoid(z));
            lanes!(L, g, [z] => tanh(z));
            lanes!(L, o, [z] => sigmoid(z));

            let (i, f) = i_f.split_at(hidden);
            let (cells_before, cells) = tape.cells.split_at_mut(t * hidden);
            let cell = &mut cells[..hidden];
            lanes!(L, cell, [_old, i = i, g = g] => i.mul(g));
            if t > 0 {
                let previous = &cells_before[(t - 1) * hidden..];
                lanes!(L, cell, [sum, f = f, c = previous] => f.mul_add(c, sum));
            }
            let squashed = &mut tape.squashed[t * hidden..][..hidden];
            lanes!(L, squashed, [_old, c = cell] => tanh(c));
            lanes!(L, &mut now[..hidden], [_old, o = o, s = squashed] => o.mul(s));
        }
    }
}

struct BackwardPass<'a> {
    sizes: Recurrent,
    prepared: &'a [f32],
    input: &'a [f32],
    tape: Tape<&'a [f32]>,
    d_output: &'a [f32],
    target: Option<Target<'a>>,
    d_input: Option<&'a mut [f32]>,
    scratch: &'a mut [f32],
}

/// Turns dh_t and dc_t into the gates' gradients, and dc_t into dc_{t−1}.
#[inline(always)]
fn gate_gradients<L: Lanes>(
    [i, f, g, o]: [&[f32]; 4],
    squashed: &[f32],
    previous_cell: Option<&[f32]>,
    d_hidden: &[f32],
    d_cell: &mut [f32],
    [di, df, dg, d_o]: [&mut [f32]; 4],
) {
    lanes!(L, d_o, [_old, dh = d_hidden, s = squashed, o = o] => {
        dh.mul(s).mul(sigmoid_slope(o))
    });
    lanes!(L, d_cell, [dc, dh = d_hidden, s = squashed, o = o] => {
        dh.mul(o).mul_add(tanh_slope(s), dc)
    });
    lanes!(L, di, [_old, dc = d_cell, g = g, i = i] => {
        dc.mul(g).mul(sigmoid_slope(i))
    });
    lanes!(L, dg, [_old, dc = d_cell, i = i, g = g] => {
        dc.mul(i).mul(tanh_slope(g))
    });
    match previous_cell {
        Some(cell) => lanes!(L, df, [_old, dc = d_cell, c = cell, f = f] => {
            dc.mul(c).mul(sigmoid_slope(f))
        }),
        None => df.fill(0.0),
    }
    lanes!(L, d_cell, [dc, f = f] => dc.mul(f));
}

impl Kernel for BackwardPass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let BackwardPass {
            sizes,
            prepared,
            input,
            tape,
            d_output,
            target,
            d_input,
            scratch,
        } = self;
        let (steps, hidden, width) = (sizes.steps, sizes.hidden, sizes.width());
        let (of_input, of_hidden) = sizes.weights();
        let (turned_hh, turned_ih) = prepared.split_at(of_hidden);
        let (deltas, rest) = scratch.split_at_mut(steps * width);
        let (d_hidden, d_cell) = rest.split_at_mut(hidden);
        d_hidden.copy_from_slice(d_output);
        d_cell.fill(0.0);

        for t in (0..steps).rev() {
            let gates = &tape.gates[t * width..][..width];
            let gates = std::array::from_fn(|k| &gates[k * hidden..][..hidden]);
            let delta = &mut deltas[t * width..][..width];
            let (d_if, d_go) = delta.split_at_mut(2 * hidden);
            let ((di, df), (dg, d_o)) = (d_if.split_at_mut(hidden), d_go.split_at_mut(hidden));
            let squashed = &tape.squashed[t * hidden..][..hidden];
            let previous = (t > 0).then(|| &tape.cells[(t - 1) * hidden..][..hidden]);
            gate_gradients::<L>(
                gates,
                squashed,
                previous,
                d_hidden,
                d_cell,
                [di, df, dg, d_o],
            );
            if t > 0 {
                let delta = &deltas[t * width..][..width];
                kernel::multiply_gates::<L, 4>(delta, turned_hh, hidden, d_hidden);
            }
        }

        if let Some(target) = target {
            let (d_weight_ih, rest) = target.split_at(of_input);
            let (d_weight_hh, d_bias) = rest.split_at(of_hidden);
            kernel::correlate::<L>(
                input,
                Rows::dense(steps, sizes.inputs),
                deltas,
                width,
                d_weight_ih,
            );
            // The hidden state before the first step is zero.
            let later = Rows::dense(steps - 1, hidden);
            kernel::correlate::<L>(tape.hiddens, later, &deltas[width..], width, d_weight_hh);
            kernel::add_rows::<L>(deltas, d_bias);
        }
        if let Some(d_input) = d_input {
            kernel::multiply::<L>(
                deltas,
                Rows::dense(steps, width),
                turned_ih,
                sizes.inputs,
                Start::Zero,
                d_input,
            );
        }
    }
}

impl Layer for Lstm {
    fn output(&self) -> usize {
        self.0.hidden
    }

    fn tape(&self) -> usize {
        7 * self.states()
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.0.tensors()
    }

    fn prepared(&self) -> usize {
        self.0.prepared()
    }

    fn scratch(&self) -> usize {
        self.0.steps * self.0.width() + 2 * self.0.hidden
    }

    fn forward_flops(&self) -> u64 {
        self.0.forward_flops()
    }

    fn backward_flops(&self, input_gradient: bool) -> u64 {
        self.0.backward_flops(input_gradient)
    }

    fn initial_bound(&self) -> f32 {
        self.0.initial_bound()
    }

    fn forward(&self, level: Level, params: &[f32], input: &[f32], tape: &mut [f32]) {
        level.run(Forward {
            sizes: self.0,
            params,
            input,
            tape: self.write(tape),
        });
    }

    fn prepare(&self, level: Level, params: &[f32], prepared: &mut [f32], input_gradient: bool) {
        self.0.prepare(level, params, prepared, input_gradient);
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        level.run(BackwardPass {
            sizes: self.0,
            prepared: pass.prepared,
            input: pass.input,
            tape: self.read(pass.tape),
            d_output: pass.d_output,
            target: pass.target,
            d_input: pass.d_input,
            scratch: pass.scratch,
        });
    }
}
