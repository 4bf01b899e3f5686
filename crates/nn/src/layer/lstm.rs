//! Long short-term memory; the output is the last hidden state, or those of all steps.
//!
//! ```text
//! z = b + W_ih x_t + W_hh h_{t−1}        gates i, f, g, o, each `hidden` wide
//! c_t = σ(f) c_{t−1} + σ(i) tanh(g)      h_t = σ(o) tanh(c_t)
//! ```
//!
//! Weights lie input by input, `[in][4·hidden]`, so that lanes run along the gates. The sum for h_{t−1}'s gradient runs
//! gate by gate and then over the four gates: four sums in flight instead of one.

use super::Backward;
use super::recurrent::{BackwardPass, Recurrent};
use crate::kernel::{self, Start, lanes, load, store};
use crate::math::{sigmoid, sigmoid_slope, tanh, tanh_slope};
use crate::simd::{Kernel, LANES, Lanes, Level};

/// The tape: gates after their nonlinearity, cell states, their tanh, hidden states; step by step.
struct Tape<S> {
    gates: S,
    cells: S,
    squashed: S,
    hiddens: S,
}

/// `N` samples. Their steps take turns: while one waits for its nonlinearities, the next has its products to compute.
struct Forward<'a, const N: usize> {
    sizes: Recurrent,
    params: &'a [f32],
    inputs: [&'a [f32]; N],
    tapes: [Tape<&'a mut [f32]>; N],
}

impl<const N: usize> Kernel for Forward<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let sizes = self.sizes;
        let (hidden, width) = (sizes.hidden, sizes.width());
        let (_, weight_hh, _) = sizes.split(self.params);

        for n in 0..N {
            sizes.sum_inputs::<L>(self.params, self.inputs[n], self.tapes[n].gates);
        }

        for t in 0..sizes.steps {
            for n in 0..N {
                let tape = &mut self.tapes[n];
                let z = &mut tape.gates[t * width..][..width];
                let (before, now) = tape.hiddens.split_at_mut(t * hidden);
                if t > 0 {
                    let previous = &before[(t - 1) * hidden..];
                    kernel::multiply_row::<L>(&previous[..hidden], weight_hh, Start::There, z);
                }
                let (cells_before, cells) = tape.cells.split_at_mut(t * hidden);
                let state = State {
                    previous_cell: (t > 0).then(|| &cells_before[(t - 1) * hidden..]),
                    gates: z,
                    cell: &mut cells[..hidden],
                    squashed: &mut tape.squashed[t * hidden..][..hidden],
                    hidden: &mut now[..hidden],
                };
                state.advance::<L>();
            }
        }
    }
}

/// Calls a method for sixteen units after the other, then for those that are left.
macro_rules! all_units {
    ($L:ident, $count:expr, $step:ident.$method:ident) => {
        let (n, mut at) = ($count, 0);
        while at + LANES <= n {
            $step.$method::<$L, false>(at, LANES);
            at += LANES;
        }
        if at < n {
            $step.$method::<$L, true>(at, n - at);
        }
    };
}

/// What one step reads and writes, besides the weights.
struct State<'a> {
    /// The gates' sums, which become the gates.
    gates: &'a mut [f32],
    previous_cell: Option<&'a [f32]>,
    cell: &'a mut [f32],
    squashed: &'a mut [f32],
    hidden: &'a mut [f32],
}

impl State<'_> {
    #[inline(always)]
    fn advance<L: Lanes>(mut self) {
        all_units!(L, self.hidden.len(), self.advance_units);
    }

    /// Some units from their sums to their hidden state, without a detour through memory: each would wait for the last.
    #[inline(always)]
    fn advance_units<L: Lanes, const PARTIAL: bool>(&mut self, at: usize, width: usize) {
        let n = self.hidden.len();
        assert!(at + width <= n && (PARTIAL || width == LANES));
        assert!(self.gates.len() == 4 * n && self.cell.len() == n && self.squashed.len() == n);
        assert!(self.previous_cell.is_none_or(|cell| cell.len() >= n));
        // SAFETY: the assertions are about the last number of each slice that is touched.
        unsafe {
            let i = sigmoid(load::<L, PARTIAL>(self.gates, at, width));
            let f = sigmoid(load::<L, PARTIAL>(self.gates, n + at, width));
            let g = tanh(load::<L, PARTIAL>(self.gates, 2 * n + at, width));
            let o = sigmoid(load::<L, PARTIAL>(self.gates, 3 * n + at, width));
            let mut cell = i.mul(g);
            if let Some(previous) = self.previous_cell {
                cell = f.mul_add(load::<L, PARTIAL>(previous, at, width), cell);
            }
            let squashed = tanh(cell);
            store::<L, PARTIAL>(o.mul(squashed), self.hidden, at, width);
            store::<L, PARTIAL>(squashed, self.squashed, at, width);
            store::<L, PARTIAL>(cell, self.cell, at, width);
            store::<L, PARTIAL>(i, self.gates, at, width);
            store::<L, PARTIAL>(f, self.gates, n + at, width);
            store::<L, PARTIAL>(g, self.gates, 2 * n + at, width);
            store::<L, PARTIAL>(o, self.gates, 3 * n + at, width);
        }
    }
}

/// What one step of the backward pass reads and writes, besides the weights.
struct Slopes<'a> {
    gates: &'a [f32],
    squashed: &'a [f32],
    previous_cell: Option<&'a [f32]>,
    d_hidden: &'a [f32],
    /// dc_t, which becomes dc_{t−1}.
    d_cell: &'a mut [f32],
    /// The gradients of the gates' sums.
    delta: &'a mut [f32],
}

impl Slopes<'_> {
    #[inline(always)]
    fn go_back<L: Lanes>(mut self) {
        all_units!(L, self.d_cell.len(), self.units_back);
    }

    #[inline(always)]
    fn units_back<L: Lanes, const PARTIAL: bool>(&mut self, at: usize, width: usize) {
        let n = self.d_cell.len();
        assert!(at + width <= n && (PARTIAL || width == LANES));
        assert!(self.gates.len() == 4 * n && self.delta.len() == 4 * n);
        assert!(self.squashed.len() == n && self.d_hidden.len() == n);
        assert!(self.previous_cell.is_none_or(|cell| cell.len() >= n));
        // SAFETY: the assertions are about the last number of each slice that is touched.
        unsafe {
            let i = load::<L, PARTIAL>(self.gates, at, width);
            let f = load::<L, PARTIAL>(self.gates, n + at, width);
            let g = load::<L, PARTIAL>(self.gates, 2 * n + at, width);
            let o = load::<L, PARTIAL>(self.gates, 3 * n + at, width);
            let squashed = load::<L, PARTIAL>(self.squashed, at, width);
            let dh = load::<L, PARTIAL>(self.d_hidden, at, width);
            let dc = load::<L, PARTIAL>(self.d_cell, at, width);
            let dc = dh.mul(o).mul_add(tanh_slope(squashed), dc);
            let df = match self.previous_cell {
                Some(cell) => dc
                    .mul(load::<L, PARTIAL>(cell, at, width))
                    .mul(sigmoid_slope(f)),
                None => L::splat(0.0),
            };
            let di = dc.mul(g).mul(sigmoid_slope(i));
            let dg = dc.mul(i).mul(tanh_slope(g));
            let d_o = dh.mul(squashed).mul(sigmoid_slope(o));
            store::<L, PARTIAL>(di, self.delta, at, width);
            store::<L, PARTIAL>(df, self.delta, n + at, width);
            store::<L, PARTIAL>(dg, self.delta, 2 * n + at, width);
            store::<L, PARTIAL>(d_o, self.delta, 3 * n + at, width);
            store::<L, PARTIAL>(dc.mul(f), self.d_cell, at, width);
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
        let (deltas, rest) = pass.scratch.split_at_mut(steps * width);
        let (d_hidden, d_cell) = rest.split_at_mut(hidden);
        d_hidden.copy_from_slice(sizes.of_last_step(pass.d_output));
        d_cell.fill(0.0);

        for t in (0..steps).rev() {
            let slopes = Slopes {
                gates: &tape.gates[t * width..][..width],
                squashed: &tape.squashed[t * hidden..][..hidden],
                previous_cell: (t > 0).then(|| &tape.cells[(t - 1) * hidden..][..hidden]),
                d_hidden,
                d_cell,
                delta: &mut deltas[t * width..][..width],
            };
            slopes.go_back::<L>();
            if t > 0 {
                let delta = &deltas[t * width..][..width];
                kernel::multiply_gates::<L, 4>(delta, turned_hh, hidden, d_hidden);
                if let Some(d_output) = sizes.of_step(pass.d_output, t - 1) {
                    lanes!(L, &mut *d_hidden, [dh, d = d_output] => dh.add(d));
                }
            }
        }

        sizes.finish::<L>(
            (pass.input, tape.hiddens),
            (deltas, deltas),
            turned_ih,
            pass.target,
            pass.d_input,
        );
    }
}

pub(super) fn forward<const N: usize>(
    sizes: &Recurrent,
    level: Level,
    params: &[f32],
    inputs: [&[f32]; N],
    tapes: [&mut [f32]; N],
) {
    let states = sizes.steps * sizes.hidden;
    let tapes = tapes.map(|tape| {
        let (gates, rest) = tape.split_at_mut(4 * states);
        let (cells, rest) = rest.split_at_mut(states);
        let (squashed, hiddens) = rest.split_at_mut(states);
        Tape {
            gates,
            cells,
            squashed,
            hiddens,
        }
    });
    level.run(Forward {
        sizes: *sizes,
        params,
        inputs,
        tapes,
    });
}

pub(super) fn backward(sizes: Recurrent, level: Level, pass: Backward<'_>) {
    let states = sizes.steps * sizes.hidden;
    let (gates, rest) = pass.tape.split_at(4 * states);
    let (cells, rest) = rest.split_at(states);
    let (squashed, hiddens) = rest.split_at(states);
    let tape = Tape {
        gates,
        cells,
        squashed,
        hiddens,
    };
    level.run(BackwardPass { sizes, tape, pass });
}
