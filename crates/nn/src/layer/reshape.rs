//! Layers that only move numbers.

use super::{Backward, Layer};
use crate::kernel;
use crate::simd::Level;

/// `[from]` → `[to]`, zeros at the end.
#[derive(Debug)]
pub(super) struct Pad {
    pub from: usize,
    pub to: usize,
}

impl Layer for Pad {
    fn is_identity(&self) -> bool {
        self.from == self.to
    }

    fn output(&self) -> usize {
        self.to
    }

    fn forward(&self, _: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        tape[..self.from].copy_from_slice(input);
        tape[self.from..].fill(0.0);
    }

    fn backward(&self, _: Level, pass: Backward<'_>) {
        if let Some(d_input) = pass.d_input {
            d_input.copy_from_slice(&pass.d_output[..self.from]);
        }
    }
}

/// `[rows, columns]` → `[columns, rows]`
#[derive(Debug)]
pub(super) struct Transpose {
    pub rows: usize,
    pub columns: usize,
}

impl Layer for Transpose {
    fn is_identity(&self) -> bool {
        self.rows == 1 || self.columns == 1
    }

    fn output(&self) -> usize {
        self.rows * self.columns
    }

    fn forward(&self, level: Level, _: &[f32], input: &[f32], tape: &mut [f32]) {
        kernel::transpose(level, input, self.rows, self.columns, tape);
    }

    fn backward(&self, level: Level, pass: Backward<'_>) {
        if let Some(d_input) = pass.d_input {
            kernel::transpose(level, pass.d_output, self.columns, self.rows, d_input);
        }
    }
}
