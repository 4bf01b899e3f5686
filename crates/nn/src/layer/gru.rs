//! Gated recurrent unit; the output is the last hidden state, or those of all steps.
//!
//! ```text
//! r = σ(b_r + W_ir x + W_hr h)    z = σ(b_z + W_iz x + W_hz h)
//! n = tanh(b_n + W_in x + r · (W_hn h))    h' = n + z · (h − n)
//! ```
//!
//! Weights lie input by input, `[in][3·hidden]`, gates in the order r, z, n.

use super::Backward;
use super::recurrent::{BackwardPass, Recurrent};
use crate::kernel::{self, Start, lanes};
use crate::math::{sigmoid, sigmoid_slope, tanh, tanh_slope};
use crate::simd::{Kernel, Lanes, Level};

/// The tape: gates r, z, n after their nonlinearity, then W_h· h of all three gates, then hidden states.
struct Tape<S> {
    gates: S,
    recurrent: S,
    hiddens: S,
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
        let (sizes, tape) = (self.sizes, self.tape);
        let (hidden, width) = (sizes.hidden, sizes.width());
        let (_, weight_hh, _) = sizes.split(self.params);

        sizes.sum_inputs::<L>(self.params, self.input, tape.gates);
        tape.recurrent.fill(0.0);

        for t in 0..sizes.steps {
            let (before, now) = tape.hiddens.split_at_mut(t * hidden);
            let recurrent = &mut tape.recurrent[t * width..][..width];
            if t > 0 {
                let previous = &before[(t - 1) * hidden..];
                let previous = &previous[..hidden];
                kernel::multiply_row::<L>(previous, weight_hh, Start::There, recurrent);
            }
            let gates = &mut tape.gates[t * width..][..width];
            let (r_z, n) = gates.split_at_mut(2 * hidden);
            lanes!(L, r_z, [z, q = &recurrent[..2 * hidden]] => sigmoid(z.add(q)));
            let (r, z) = r_z.split_at(hidden);
            lanes!(L, n, [n, r = r, q = &recurrent[2 * hidden..]] => {
                tanh(r.mul_add(q, n))
            });
            let now = &mut now[..hidden];
            match t {
                0 => now.fill(0.0),
                _ => now.copy_from_slice(&before[(t - 1) * hidden..]),
            }
            lanes!(L, now, [h, z = z, n = n] => z.mul_add(h.sub(n), n));
        }
    }
}

impl Kernel for BackwardPass<'_, Tape<&[f32]>> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let BackwardPass { sizes, tape, pass } = self;
        let (steps, hidden, width) = (sizes.steps, sizes.hidden, sizes.width());
        let (turned_hh, turned_ih) = pass.prepared.split_at(sizes.weights().1);
        // Gradients of what is summed from the input, and of what is summed from the hidden state: they differ for gate
        // n, whose recurrent part is scaled by r.
        let (d_inputs, rest) = pass.scratch.split_at_mut(steps * width);
        let (d_recurrents, rest) = rest.split_at_mut(steps * width);
        let (sums, rest) = rest.split_at_mut(hidden);
        let (d_hidden, zeros) = rest.split_at_mut(hidden);
        d_hidden.copy_from_slice(sizes.of_last_step(pass.d_output));
        zeros.fill(0.0);

        for t in (0..steps).rev() {
            let gates = &tape.gates[t * width..][..width];
            let [r, z, n]: [&[f32]; 3] = std::array::from_fn(|k| &gates[k * hidden..][..hidden]);
            let q = &tape.recurrent[t * width + 2 * hidden..][..hidden];
            let previous = match t {
                0 => &*zeros,
                _ => &tape.hiddens[(t - 1) * hidden..][..hidden],
            };
            let d_input = &mut d_inputs[t * width..][..width];
            let (d_r, rest) = d_input.split_at_mut(hidden);
            let (d_z, d_n) = rest.split_at_mut(hidden);
            lanes!(L, d_n, [_old, dh = d_hidden, z = z, n = n] => {
                dh.mul(L::splat(1.0).sub(z)).mul(tanh_slope(n))
            });
            lanes!(L, d_z, [_old, dh = d_hidden, h = previous, n = n, z = z] => {
                dh.mul(h.sub(n)).mul(sigmoid_slope(z))
            });
            lanes!(L, d_r, [_old, dn = d_n, q = q, r = r] => {
                dn.mul(q).mul(sigmoid_slope(r))
            });
            let d_recurrent = &mut d_recurrents[t * width..][..width];
            d_recurrent[..2 * hidden].copy_from_slice(&d_inputs[t * width..][..2 * hidden]);
            let d_n = &d_inputs[t * width + 2 * hidden..][..hidden];
            lanes!(L, &mut d_recurrent[2 * hidden..], [_old, dn = d_n, r = r] => {
                dn.mul(r)
            });
            if t > 0 {
                kernel::multiply_gates::<L, 3>(d_recurrent, turned_hh, hidden, sums);
                lanes!(L, d_hidden, [dh, sum = sums, z = z] => dh.mul_add(z, sum));
                if let Some(d_output) = sizes.of_step(pass.d_output, t - 1) {
                    lanes!(L, d_hidden, [dh, d = d_output] => dh.add(d));
                }
            }
        }

        sizes.finish::<L>(
            (pass.input, tape.hiddens),
            (d_inputs, d_recurrents),
            turned_ih,
            pass.target,
            pass.d_input,
        );
    }
}

pub(super) fn forward(
    sizes: &Recurrent,
    level: Level,
    params: &[f32],
    input: &[f32],
    tape: &mut [f32],
) {
    let (gates, rest) = tape.split_at_mut(sizes.steps * sizes.width());
    let (recurrent, hiddens) = rest.split_at_mut(sizes.steps * sizes.width());
    let tape = Tape {
        gates,
        recurrent,
        hiddens,
    };
    level.run(Forward {
        sizes: *sizes,
        params,
        input,
        tape,
    });
}

pub(super) fn backward(sizes: Recurrent, level: Level, pass: Backward<'_>) {
    let (gates, rest) = pass.tape.split_at(sizes.steps * sizes.width());
    let (recurrent, hiddens) = rest.split_at(sizes.steps * sizes.width());
    let tape = Tape {
        gates,
        recurrent,
        hiddens,
    };
    level.run(BackwardPass { sizes, tape, pass });
}
