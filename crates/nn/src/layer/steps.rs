//! What is left of a time series when its steps become one.

use super::{Backward, Layer};
use crate::kernel::{Target, add_rows};
use crate::simd::{Kernel, Lanes, Level};
use crate::vector;

/// The mean of all steps, feature by feature.
#[derive(Debug)]
pub(super) struct Mean {
    pub steps: usize,
    pub features: usize,
}

struct Sum<'a>(&'a [f32], &'a mut [f32]);

impl Kernel for Sum<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        add_rows::<L>(self.0, Target::Add(self.1));
    }
}

impl Layer for Mean {
    fn is_identity(&self) -> bool {
        self.steps == 1
    }

    fn output(&self) -> usize {
        self.features
    }

    fn forward(&self, level: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        tape.fill(0.0);
        level.run(Sum(input, tape));
        vector::divide(level, tape, self.steps as f32);
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        let Some(d_input) = pass.d_input else { return };
        let (first, others) = d_input.split_at_mut(self.features);
        first.copy_from_slice(pass.d_output);
        vector::divide(level, first, self.steps as f32);
        for step in others.chunks_exact_mut(self.features) {
            step.copy_from_slice(first);
        }
    }
}

/// The last step.
#[derive(Debug)]
pub(super) struct Last {
    pub steps: usize,
    pub features: usize,
}

impl Layer for Last {
    fn is_identity(&self) -> bool {
        self.steps == 1
    }

    fn output(&self) -> usize {
        self.features
    }

    fn forward(&self, _: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        tape.copy_from_slice(&input[(self.steps - 1) * self.features..]);
    }

    fn backward(&self, _: Level, pass: Backward<'_>) {
        let Some(d_input) = pass.d_input else { return };
        let (others, last) = d_input.split_at_mut((self.steps - 1) * self.features);
        others.fill(0.0);
        last.copy_from_slice(pass.d_output);
    }
}
