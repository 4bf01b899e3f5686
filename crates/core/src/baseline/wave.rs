//! Models that each selected device has of its own, made and added up in waves, so that memory does not grow with the
//! subset.

use crate::aggregate::Gathering;
use crate::group::{DEVICES_PER_TASK, held};
use crate::task::Task;
use rayon::prelude::*;

/// Room for the models that are held at the same time.
pub(super) struct Wave<W> {
    models: Vec<f32>,
    numbers: usize,
    gathering: Gathering,
    /// One for each task.
    workspaces: Vec<W>,
}

impl<W: Send> Wave<W> {
    /// Room for any group's subset of models of so many numbers each.
    pub(super) fn new(task: &Task<'_>, numbers: usize, workspace: impl Fn() -> W) -> Self {
        let selected = task.selected.iter().copied().max().unwrap_or(0);
        let held = held(selected, numbers);
        let tasks = held.div_ceil(DEVICES_PER_TASK);
        Wave {
            models: vec![0.0; held * numbers],
            gathering: Gathering::new(numbers),
            numbers,
            workspaces: (0..tasks).map(|_| workspace()).collect(),
        }
    }

    /// What becomes of the models that `work` makes for each position of a subset.
    pub(super) fn mean(
        &mut self,
        task: &Task<'_>,
        positions: usize,
        work: impl Fn(usize, &mut [f32], &mut W) + Sync,
    ) -> &[f32] {
        let (numbers, how) = (self.numbers, task.gatherer());
        let per_wave = self.workspaces.len() * DEVICES_PER_TASK;
        self.gathering.clear();
        let arrived = vec![true; positions];
        for (wave, arrived) in arrived.chunks(per_wave).enumerate() {
            let models = &mut self.models[..arrived.len() * numbers];
            models
                .par_chunks_mut(DEVICES_PER_TASK * numbers)
                .zip(&mut self.workspaces)
                .enumerate()
                .for_each(|(i, (models, workspace))| {
                    let first = wave * per_wave + i * DEVICES_PER_TASK;
                    for (j, own) in models.chunks_exact_mut(numbers).enumerate() {
                        work(first + j, own, workspace);
                    }
                });
            self.gathering.add(how, models, arrived);
        }
        // A subset has at least one device.
        self.gathering
            .finish(how, None, |median| median)
            .unwrap_or_default()
    }
}
