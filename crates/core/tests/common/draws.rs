//! What anyone can recompute of a run: who is drawn, and how long the steps are.

use selvedge_core::experiment::Experiment;
use selvedge_core::selection::{Draw, Selection, Uniform};
use selvedge_core::task::Task;

/// The devices that a group draws at `t`, each as its rows.
pub fn drawn(task: &Task<'_>, m: usize, t: u64) -> Vec<Vec<usize>> {
    let (train, data) = (&task.experiment.train, &task.dataset.groups[m]);
    let count = (train.participation * data.devices() as f64).round() as usize;
    let mut subset = Vec::new();
    let draw = Draw::new(task.experiment.seed, m, t, data.devices(), count.max(1));
    Uniform.select(draw, &mut subset);
    subset.iter().map(|n| data.rows(*n).collect()).collect()
}

/// η at an iteration, counted from the start.
pub fn learning_rate(e: &Experiment, t: u64) -> f64 {
    let halvings = t.checked_div(e.train.halve_every).unwrap_or(0);
    e.train.learning_rate * 0.5f64.powi(halvings as i32)
}
