//! HSGD: the paper's Algorithm 1, as one loop.
//!
//! ```text
//! t = 0      Q      2Q     …      P
//!     ├──────┼──────┼──────┼──────┤
//!     exchange, then Q local steps, then local aggregation;  at P also global aggregation
//! ```
//!
//! Nothing crosses parties between two exchanges, so the loop goes from exchange to exchange. Against the
//! paper's listing: a pass of this loop begins behind its aggregations (lines 3–12), which therefore stand at the
//! end of the pass before; at t = 0 both are identities. Local aggregation comes before global, both before a
//! new exchange. The paper's extra update at t = T is dropped, since it is never aggregated. Unselected devices
//! carry no model of their own (line 15 overwrites them all), so none is kept for them.

use crate::aggregate::{global_mean, local_mean};
use crate::clock::{Rates, Traffic};
use crate::evaluation::{budget, evaluate, is_due, target};
use crate::exchange::{Embeddings, Frozen};
use crate::experiment::{Broadcast, Compute, KEYS};
use crate::ledger::{Direction, Kind, Link};
use crate::local_steps::{
    Batch, DeviceWorkspace, HospitalWorkspace, Owned, Steps, device_steps, hospital_steps,
};
use crate::model::{Architecture, Model};
use crate::selection::Draw;
use crate::state::{Evaluation, Progress, Reached, State};
use crate::task::Task;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Devices whose steps one task takes, one after the other, in the same buffers: at least so many.
const DEVICES_PER_TASK: usize = 4;

/// Tasks that a group's devices are shared out to, at most: it bounds the memory for buffers.
const TASKS: usize = 64;

/// Numbers on all tapes that are kept from the exchange to the first step (64 MB of them).
const KEPT: usize = 1 << 24;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// At t = T.
    Finished,
    /// A target or budget of `[stop]` was reached.
    Reached {
        /// Its key.
        key: &'static str,
        /// What it has become.
        value: f64,
    },
    /// The callback asked for it.
    Interrupted,
    /// A loss or a weight is no longer a finite number. `State::theta` is the last model that was evaluated and
    /// found good.
    Diverged {
        /// The iteration at which that was seen.
        t: u64,
        /// The learning rate there.
        learning_rate: f64,
    },
}

/// What the callback sees after each interval.
pub struct Interval<'a> {
    /// The run as it is now; saving it is saving the run.
    pub state: &'a State,
    /// The groups, with who took part.
    pub groups: &'a [Group],
    /// The evaluation, if this interval ended with one.
    pub evaluation: Option<&'a Evaluation>,
}

/// Trains from `state` to the end. `after` is called behind the evaluation at t = 0 and after every interval.
///
/// # Errors
/// Only what `after` returns.
pub fn train<E>(
    task: &Task<'_>,
    state: &mut State,
    mut after: impl FnMut(Interval<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<Ending, E> {
    let mut groups: Vec<Group> = (0..task.dataset.groups.len())
        .map(|m| Group::new(task, m))
        .collect();
    if let Some(Reached { key, value }) = &state.progress.reached {
        let key = KEYS
            .iter()
            .map(|k| k.path)
            .find(|path| path == key)
            .unwrap_or("stop");
        return Ok(Ending::Reached { key, value: *value });
    }
    if state.progress.evaluated.is_none() {
        let evaluation = evaluate(task, state);
        if !evaluation.loss_train.is_finite() {
            let learning_rate = state.progress.segment.learning_rate;
            return Ok(Ending::Diverged {
                t: 0,
                learning_rate,
            });
        }
        if after(Interval {
            state,
            groups: &groups,
            evaluation: Some(&evaluation),
        })?
        .is_break()
        {
            return Ok(Ending::Interrupted);
        }
    }
    while state.progress.t < task.experiment.train.iterations {
        let segment = state.progress.segment;

        // Lines 13–21: draw A_m; ζ2 up, θ0 and ζ1 down; all of it frozen for Q steps.
        exchange(task, state, &mut groups);
        // Lines 22–26, Q times: hospitals step on θ0 and θ1, selected devices on θ2.
        local_steps(task, state, &mut groups);
        state.progress.t += segment.local_interval;
        // Line 12: each edge averages the models of its subset.
        local_aggregation(task, state, &mut groups);

        let mut evaluation = None;
        let mut ending = None;
        if segment.aggregates_globally_at(state.progress.t) {
            // Lines 3–10: the cloud averages the groups, and all adopt the result.
            global_aggregation(task, state);
            ending = budget(task, &state.progress);
            let last = state.progress.t == task.experiment.train.iterations || ending.is_some();
            let mut finite = state.theta.is_finite();
            if finite && (last || is_due(task, &state.progress)) {
                let result = evaluate(task, state);
                finite = result.loss_train.is_finite();
                if finite {
                    // Finite weights can have an infinite loss: only this tells that a model is good.
                    state.good.copy_from(&state.theta);
                }
                ending = target(task, &result).or(ending);
                evaluation = Some(result);
            }
            if !finite {
                state.theta.copy_from(&state.good);
                let t = state.progress.t;
                return Ok(Ending::Diverged {
                    t,
                    learning_rate: segment.learning_rate_at(t - 1),
                });
            }
        }
        if let Some(Ending::Reached { key, value }) = &ending {
            state.progress.reached = Some(Reached {
                key: (*key).into(),
                value: *value,
            });
        }
        let flow = after(Interval {
            state,
            groups: &groups,
            evaluation: evaluation.as_ref(),
        })?;
        if let Some(ending) = ending {
            return Ok(ending);
        }
        if flow.is_break() && state.progress.t < task.experiment.train.iterations {
            return Ok(Ending::Interrupted);
        }
    }
    Ok(Ending::Finished)
}

/// What a group holds during an interval, besides `θ[m]`.
pub struct Group {
    /// A_m, in rising order.
    pub subset: Vec<u32>,
    /// Whether the device at each position sent its ζ2.
    pub exchanged: Vec<bool>,
    /// Whether its model arrived at the end.
    pub uploaded: Vec<bool>,
    rows: Vec<u32>,
    starts: Vec<u32>,
    /// ζ1 and what the hospital keeps with it.
    hospital_side: Embeddings,
    /// ζ2 and what the devices keep with it.
    device_side: Embeddings,
    frozen: Frozen,
    /// `θ2[m][n]` of the selected devices, position by position.
    models: Vec<f32>,
    per_task: usize,
    hospital: HospitalWorkspace,
    devices: Vec<DeviceWorkspace>,
    seconds: f64,
}

impl Group {
    fn new(task: &Task<'_>, m: usize) -> Self {
        let architecture = &task.architecture;
        let selected = task.selected[m];
        let per_task = selected.div_ceil(TASKS).max(DEVICES_PER_TASK);
        let workspaces = selected.div_ceil(per_task);
        let samples: usize = task.selected.iter().sum();
        let keeps = |tape: usize| samples * task.experiment.data.samples_per_device * tape <= KEPT;
        Group {
            subset: Vec::with_capacity(selected),
            exchanged: Vec::with_capacity(selected),
            uploaded: Vec::with_capacity(selected),
            rows: Vec::with_capacity(selected),
            starts: Vec::with_capacity(selected + 1),
            hospital_side: Embeddings::new(keeps(architecture.hospital.tape())),
            device_side: Embeddings::new(keeps(architecture.device.tape())),
            frozen: Frozen::new(architecture),
            models: vec![0.0; selected * architecture.device.params()],
            per_task,
            hospital: HospitalWorkspace::new(architecture, selected),
            devices: (0..workspaces)
                .map(|_| DeviceWorkspace::new(architecture))
                .collect(),
            seconds: 0.0,
        }
    }

    /// Draws A_m and lists its samples.
    fn draw(&mut self, task: &Task<'_>, m: usize, t: u64) {
        let data = &task.dataset.groups[m];
        let draw = Draw::new(task.experiment.seed, m, t, data.devices(), task.selected[m]);
        task.selection.select(draw, &mut self.subset);
        self.exchanged.clear();
        self.exchanged.extend(
            self.subset
                .iter()
                .map(|n| !task.absences.exchange(t, m, *n)),
        );
        self.rows.clear();
        self.starts.clear();
        self.starts.push(0);
        for &device in &self.subset {
            self.rows.extend(data.rows(device).map(|row| row as u32));
            self.starts.push(self.rows.len() as u32);
        }
    }

    fn batch<'a>(&'a self, task: &'a Task<'_>, m: usize) -> Batch<'a> {
        Batch {
            samples: &task.dataset.groups[m].samples,
            rows: &self.rows,
            starts: &self.starts,
            present: &self.exchanged,
            zeta2: &self.device_side.zeta,
            tapes: &self.hospital_side.tapes,
        }
    }

    fn traffic(&self, task: &Task<'_>, m: usize) -> Traffic {
        let batch = self.batch(task, m);
        Traffic {
            devices: self.exchanged.iter().filter(|e| **e).count(),
            samples: batch.len(),
            largest: (0..self.subset.len())
                .map(|p| batch.places(p).len())
                .max()
                .unwrap_or(0),
        }
    }
}

/// Lines 13–21. Each group draws its subset; the drawn devices adopt `θ2[m]` and send ζ2; the hospital sends θ0 and
/// the subset's ζ1.
fn exchange(task: &Task<'_>, state: &mut State, groups: &mut [Group]) {
    let t = state.progress.t;
    let started = task.stopwatch.map(|now| now());
    groups
        .par_iter_mut()
        .zip(&state.groups)
        .enumerate()
        .for_each(|(m, (group, model))| {
            group.draw(task, m, t);
            group.exchange(task, m, model);
        });
    let Progress { ledger, clock, .. } = &mut state.progress;
    let widths = task.architecture.widths();
    let rates = Rates::new(&task.experiment.time, widths);
    let share = share_of(task, started);
    for (m, group) in groups.iter_mut().enumerate() {
        let traffic = group.traffic(task, m);
        let receivers = match task.experiment.train.broadcast {
            Broadcast::Selected => group.subset.len(),
            Broadcast::All => task.dataset.groups[m].devices(),
        };
        ledger.charge_exchange(widths, receivers, traffic);
        clock.advance(m, rates.exchange(traffic));
        group.seconds = share;
    }
}

impl Group {
    fn exchange(&mut self, task: &Task<'_>, m: usize, model: &Model) {
        let Architecture {
            hospital, device, ..
        } = &task.architecture;
        let samples = &task.dataset.groups[m].samples;
        self.device_side
            .embed(device, &model.theta2, &samples.x2, &self.rows);
        self.frozen.freeze(&task.architecture, &model.theta0);
        self.hospital_side
            .embed(hospital, &model.theta1, &samples.x1, &self.rows);
    }
}

/// Lines 22–26, Q times. Hospitals and devices work side by side on what the exchange froze.
fn local_steps(task: &Task<'_>, state: &mut State, groups: &mut [Group]) {
    let Progress { t, segment, .. } = state.progress;
    let steps = Steps { segment, first: t };
    let started = task.stopwatch.map(|now| now());
    groups
        .par_iter_mut()
        .zip(&mut state.groups)
        .enumerate()
        .for_each(|(m, (group, model))| {
            group.local_steps(task, m, model, steps);
        });
    let clock = &mut state.progress.clock;
    let iteration = Rates::new(&task.experiment.time, task.architecture.widths()).iteration();
    let share = share_of(task, started);
    for (m, group) in groups.iter().enumerate() {
        clock.advance(
            m,
            match task.experiment.time.compute {
                Compute::Set => iteration * segment.local_interval as f64,
                Compute::Measured => (group.seconds + share) * task.experiment.time.compute_scale,
            },
        );
    }
}

/// Measured seconds since `started` that one group would have taken on one core.
fn share_of(task: &Task<'_>, started: Option<f64>) -> f64 {
    let elapsed = task
        .stopwatch
        .zip(started)
        .map_or(0.0, |(now, started)| now() - started);
    elapsed * rayon::current_num_threads() as f64 / task.dataset.groups.len() as f64
}

impl Group {
    fn local_steps(&mut self, task: &Task<'_>, m: usize, model: &mut Model, steps: Steps) {
        let Group {
            exchanged,
            rows,
            starts,
            hospital_side,
            device_side,
            frozen,
            ..
        } = self;
        let Group {
            models,
            per_task,
            hospital,
            devices,
            ..
        } = self;
        let samples = &task.dataset.groups[m].samples;
        let (architecture, descent) = (&task.architecture, &task.descent);
        let batch = Batch {
            samples,
            rows,
            starts,
            present: exchanged,
            zeta2: &device_side.zeta,
            tapes: &hospital_side.tapes,
        };
        let Model {
            theta0,
            theta1,
            theta2,
        } = model;
        let hospital_work = || {
            hospital_steps(
                architecture,
                descent,
                steps,
                batch,
                (theta0, theta1),
                hospital,
            );
        };
        let device_work = || {
            let n2 = architecture.device.params();
            let tasks = models
                .par_chunks_mut(*per_task * n2.max(1))
                .zip(devices)
                .enumerate();
            tasks.for_each(|(i, (models, workspace))| {
                for (j, own) in models.chunks_exact_mut(n2.max(1)).enumerate() {
                    let places = batch.places(i * *per_task + j);
                    if !places.is_empty() {
                        own.copy_from_slice(theta2);
                        let owned = owned(architecture, batch, places, hospital_side, device_side);
                        device_steps(architecture, descent, steps, owned, frozen, own, workspace);
                    }
                }
            });
        };
        rayon::join(hospital_work, device_work);
    }
}

/// What the device at some places of the batch owns and was sent. Its rows lie one after the other.
fn owned<'a>(
    architecture: &Architecture,
    batch: Batch<'a>,
    places: Range<usize>,
    hospital_side: &'a Embeddings,
    device_side: &'a Embeddings,
) -> Owned<'a> {
    let (d1, inputs) = (
        architecture.hospital.output().len(),
        architecture.device.input().len(),
    );
    let first = batch.rows[places.start] as usize;
    let tape = architecture.device.tape();
    Owned {
        x2: &batch.samples.x2[first * inputs..][..places.len() * inputs],
        y: &batch.samples.y[first..][..places.len()],
        zeta1: &hospital_side.zeta[places.start * d1..places.end * d1],
        tapes: device_side
            .tapes
            .get(places.start * tape..places.end * tape)
            .unwrap_or_default(),
    }
}

/// Line 12. `θ2[m]` = the mean over the subset that took part in the interval that ends here.
fn local_aggregation(task: &Task<'_>, state: &mut State, groups: &mut [Group]) {
    let t = state.progress.t;
    groups
        .par_iter_mut()
        .zip(&mut state.groups)
        .enumerate()
        .for_each(|(m, (group, model))| {
            group.uploaded.clear();
            let arrived = group.subset.iter().zip(&group.exchanged);
            group
                .uploaded
                .extend(arrived.map(|(n, there)| *there && !task.absences.upload(t, m, *n)));
            local_mean(
                task.architecture.level(),
                &group.models,
                &group.uploaded,
                &mut model.theta2,
            );
        });
    let Progress { ledger, clock, .. } = &mut state.progress;
    let widths = task.architecture.widths();
    let rates = Rates::new(&task.experiment.time, widths);
    for (m, group) in groups.iter().enumerate() {
        let uploads = group.uploaded.iter().filter(|u| **u).count();
        ledger.charge(
            Link::DeviceEdge,
            Kind::Theta2,
            Direction::Up,
            uploads,
            uploads * widths.n2,
        );
        clock.advance(m, rates.local_aggregation(uploads));
    }
}

/// Lines 3–10. θ = Σ_m (K_m/K) `θ[m]` over the groups that are there; all adopt it. (What an absent group does
/// until it returns is never aggregated, since it returns by adopting θ; so it may as well adopt it now.)
fn global_aggregation(task: &Task<'_>, state: &mut State) {
    let State {
        progress,
        theta,
        groups,
        ..
    } = state;
    let (t, before) = (progress.t, progress.aggregated);
    let there: Vec<usize> = (0..groups.len())
        .filter(|m| !task.absences.group(t, *m))
        .collect();
    let devices = |m: usize| task.dataset.groups[m].devices() as u64;
    let models: Vec<(u64, &Model)> = there.iter().map(|&m| (devices(m), &groups[m])).collect();
    global_mean(task.architecture.level(), &models, theta);
    groups
        .par_iter_mut()
        .for_each(|model| model.copy_from(theta));

    let widths = task.architecture.widths();
    for &m in &there {
        // Who was absent last time has fetched θ since.
        let returned = before > 0 && task.absences.group(before, m);
        progress.ledger.charge_global(widths, Direction::Up, 1);
        progress
            .ledger
            .charge_global(widths, Direction::Down, 1 + usize::from(returned));
    }
    progress
        .clock
        .meet(Rates::new(&task.experiment.time, widths).global_aggregation());
    progress.aggregated = t;
}
