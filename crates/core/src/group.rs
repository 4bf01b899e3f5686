//! A group: one hospital, its edge and their devices, with all that it holds during an interval.
//!
//! The three methods of [`Group`] are the three phases of an interval. Threads share out a group's samples and
//! devices as well as the groups, so that one group with many devices keeps them busy too.

use crate::aggregate::{add_models, finish_mean};
use crate::clock::Traffic;
use crate::exchange::{Embeddings, Frozen};
use crate::local_steps::{
    BLOCK, Batch, DeviceWorkspace, HospitalWorkspace, Owned, Steps, device_steps, hospital_steps,
};
use crate::model::{Architecture, Model};
use crate::selection::Draw;
use crate::task::Task;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Devices whose steps one task takes, one after the other, in the same buffers: at least so many.
const DEVICES_PER_TASK: usize = 4;

/// Numbers in the device models that are held at the same time (2 MB of them), if that is not less than one block of
/// devices: the edge adds them up before the next devices begin, so that memory does not grow with the subset.
const HELD: usize = 1 << 19;

/// Numbers on all tapes that are kept from the exchange to the first step (64 MB of them).
const KEPT: usize = 1 << 24;

/// Who takes part in a group's interval.
#[derive(Debug, Default)]
pub struct Group {
    /// A_m, in rising order.
    pub subset: Vec<u32>,
    /// Whether the device at each position sent its ζ2.
    pub exchanged: Vec<bool>,
    /// Whether its model arrived at the end.
    pub uploaded: Vec<bool>,
    rows: Vec<u32>,
    starts: Vec<u32>,
}

/// What a group's interval computes, besides `θ[m]`; any number of groups can use it one after the other.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// ζ1 and what the hospital keeps with it.
    hospital_side: Embeddings,
    /// ζ2 and what the devices keep with it.
    device_side: Embeddings,
    frozen: Frozen,
    /// `θ2[m][n]` of some of the selected devices, position by position.
    models: Vec<f32>,
    /// The sum of those that arrived.
    sum: Vec<f32>,
    hospital: HospitalWorkspace,
    devices: Vec<DeviceWorkspace>,
}

impl Workspace {
    fn new(task: &Task<'_>) -> Self {
        let architecture = &task.architecture;
        let selected = task.selected.iter().copied().max().unwrap_or(0);
        let keeps = |tape: usize| selected * task.experiment.data.samples_per_device * tape <= KEPT;
        let n2 = architecture.device.params();
        let held = selected.min((HELD / n2.max(1) / BLOCK).max(1) * BLOCK);
        Workspace {
            hospital_side: Embeddings::new(keeps(architecture.hospital.tape())),
            device_side: Embeddings::new(keeps(architecture.device.tape())),
            frozen: Frozen::new(architecture),
            models: vec![0.0; held * n2],
            sum: vec![0.0; n2],
            hospital: HospitalWorkspace::new(architecture, selected),
            devices: (0..held.div_ceil(DEVICES_PER_TASK))
                .map(|_| DeviceWorkspace::new(architecture))
                .collect(),
        }
    }
}

/// Workspaces for the groups that are at work at the same time. The one used last is used next: it is in the cache.
#[derive(Default)]
pub(crate) struct Workspaces(Mutex<Vec<Workspace>>);

impl Workspaces {
    /// Lends a workspace.
    pub(crate) fn with<R>(&self, task: &Task<'_>, work: impl FnOnce(&mut Workspace) -> R) -> R {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = free().pop();
        let mut workspace = last.unwrap_or_else(|| Workspace::new(task));
        let result = work(&mut workspace);
        free().push(workspace);
        result
    }
}

impl Group {
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

    /// What the exchange sent.
    pub(crate) fn traffic(&self) -> Traffic {
        let sizes = self.starts.windows(2).zip(&self.exchanged);
        let sizes = sizes
            .filter(|(_, there)| **there)
            .map(|(ends, _)| (ends[1] - ends[0]) as usize);
        Traffic {
            devices: sizes.clone().count(),
            samples: sizes.clone().sum(),
            largest: sizes.max().unwrap_or(0),
        }
    }

    /// Draws A_m; the drawn devices adopt `θ2[m]` and send ζ2; the hospital sends θ0 and the subset's ζ1.
    pub(crate) fn exchange(
        &mut self,
        task: &Task<'_>,
        m: usize,
        t: u64,
        model: &Model,
        workspace: &mut Workspace,
    ) {
        self.draw(task, m, t);
        let Architecture {
            hospital, device, ..
        } = &task.architecture;
        let Workspace {
            hospital_side,
            device_side,
            frozen,
            ..
        } = workspace;
        let samples = &task.dataset.groups[m].samples;
        device_side.embed(device, &model.theta2, &samples.x2, &self.rows);
        frozen.freeze(&task.architecture, model);
        hospital_side.embed(hospital, &model.theta1, &samples.x1, &self.rows);
    }

    /// Hospital and devices take their Q steps side by side, on what the exchange froze. The devices' models are added
    /// up as they come.
    pub(crate) fn local_steps(
        &mut self,
        task: &Task<'_>,
        m: usize,
        steps: Steps,
        model: &mut Model,
        workspace: &mut Workspace,
    ) {
        let (architecture, descent) = (&task.architecture, &task.descent);
        let Workspace {
            hospital_side,
            device_side,
            frozen,
            models,
            sum,
            hospital,
            devices,
        } = workspace;
        let end = steps.first + steps.segment.local_interval;
        self.uploaded.clear();
        let arrived = self.subset.iter().zip(&self.exchanged);
        self.uploaded
            .extend(arrived.map(|(n, there)| *there && !task.absences.upload(end, m, *n)));
        let batch = Batch {
            samples: &task.dataset.groups[m].samples,
            rows: &self.rows,
            starts: &self.starts,
            present: &self.exchanged,
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
        let theta2 = &theta2[..];
        let device_work = || {
            sum.fill(0.0);
            let n2 = sum.len();
            if n2 == 0 {
                return; // a tower without weights has nothing to learn
            }
            for (wave, arrived) in self
                .uploaded
                .chunks(devices.len() * DEVICES_PER_TASK)
                .enumerate()
            {
                let first = wave * devices.len() * DEVICES_PER_TASK;
                let models = &mut models[..arrived.len() * n2];
                let tasks = models.par_chunks_mut(DEVICES_PER_TASK * n2);
                tasks
                    .zip(&mut *devices)
                    .enumerate()
                    .for_each(|(i, (models, workspace))| {
                        for (j, own) in models.chunks_exact_mut(n2).enumerate() {
                            let places = batch.places(first + i * DEVICES_PER_TASK + j);
                            if !places.is_empty() {
                                let owned =
                                    owned(architecture, batch, places, hospital_side, device_side);
                                let theta2 = (theta2, own);
                                device_steps(
                                    architecture,
                                    descent,
                                    steps,
                                    owned,
                                    frozen,
                                    theta2,
                                    workspace,
                                );
                            }
                        }
                    });
                add_models(architecture.level(), models, arrived, sum);
            }
        };
        rayon::join(hospital_work, device_work);
    }

    /// `θ2[m]` = the mean over the subset whose models arrived.
    pub(crate) fn local_aggregation(
        &self,
        task: &Task<'_>,
        model: &mut Model,
        workspace: &Workspace,
    ) {
        let level = task.architecture.level();
        finish_mean(level, &workspace.sum, &self.uploaded, &mut model.theta2);
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
