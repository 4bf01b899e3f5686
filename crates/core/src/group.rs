//! A group: one hospital, its edge and their devices, with all that it holds during an interval.
//!
//! The three methods of [`Turnout`] are the three phases of an interval. Threads share out a group's samples and
//! devices as well as the groups, so that one group with many devices keeps them busy too.

use crate::aggregate::Gathering;
use crate::checks::{self, Reason};
use crate::clock::Traffic;
use crate::conduct::{Conduct, DeviceConduct};
use crate::exchange::{Embeddings, Frozen};
use crate::experiment::Side;
use crate::ledger::Messages;
use crate::local_steps::{
    BLOCK, Batch, Descended, DeviceWorkspace, Owned, Stepped, Steps, TowerWorkspace, device_steps,
    hospital_steps,
};
use crate::message_path::Leg;
use crate::model::{Architecture, Model};
use crate::objective::Targets;
use crate::protocol::Phase;
use crate::selection::Draw;
use crate::task::Task;
use rayon::prelude::*;
use selvedge_nn::vector;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Devices whose steps one task takes, one after the other, in the same buffers: at least so many.
pub(crate) const DEVICES_PER_TASK: usize = 4;

/// Numbers in the device models that are held at the same time (2 MB of them), if that is not less than one block of
/// devices: the edge adds them up before the next devices begin, so that memory does not grow with the subset.
pub(crate) const HELD: usize = 1 << 19;

/// Numbers on all tapes that are kept from the exchange to the first step (64 MB of them).
const KEPT: usize = 1 << 24;

/// How many of a subset's models of that size are held at the same time: whole blocks, or all.
pub(crate) fn held(selected: usize, numbers: usize) -> usize {
    selected.min((HELD / numbers.max(1) / BLOCK).max(1) * BLOCK)
}

/// Who takes part in a group's interval.
#[derive(Debug, Default)]
pub struct Turnout {
    /// A_m, in rising order.
    pub subset: Vec<u32>,
    /// Whether the device at each position sent its ζ2.
    pub exchanged: Vec<bool>,
    /// Whether its model arrived at the end.
    pub uploaded: Vec<bool>,
    /// The iteration at which A_m was drawn.
    pub drawn: u64,
    /// Who was there and was left out, in which phase, and why.
    pub rejected: Vec<(Phase, u32, Reason)>,
    /// How large its messages are.
    pub messages: Messages,
    /// What its hospital saw while it stepped, if anybody was there.
    pub descended: Option<Descended>,
    /// The subset's rows of the group's samples, device by device.
    pub(crate) rows: Vec<u32>,
    /// Position `i` owns `rows[starts[i]..starts[i + 1]]`.
    pub(crate) starts: Vec<u32>,
}

/// What a group's interval computes, besides `θ[m]`; any number of groups can use it one after the other.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// ζ1 and what the hospital keeps with it.
    hospital_side: Embeddings,
    /// ζ2 and what the devices keep with it.
    device_side: Embeddings,
    frozen: Frozen,
    /// `θ2[m]` as the devices receive it, where that is compressed.
    received: Vec<f32>,
    frame: Vec<u8>,
    /// `θ2[m][n]` of some of the selected devices, position by position.
    models: Vec<f32>,
    /// What those that arrived become.
    gathering: Gathering,
    hospital: TowerWorkspace,
    devices: Vec<Devices>,
}

/// Buffers of some devices, one after the other.
#[derive(Debug)]
struct Devices {
    workspace: DeviceWorkspace,
    frame: Vec<u8>,
}

impl Workspace {
    pub(crate) fn new(task: &Task<'_>) -> Self {
        let architecture = &task.architecture;
        let selected = task.selected.iter().copied().max().unwrap_or(0);
        let samples = selected * task.dataset.most_samples_of_a_device();
        let keeps = |tape: usize| samples * tape <= KEPT;
        let n2 = architecture.device.params();
        let held = held(selected, n2);
        Workspace {
            hospital_side: Embeddings::new(keeps(architecture.hospital.tape())),
            device_side: Embeddings::new(keeps(architecture.device.tape())),
            frozen: Frozen::new(architecture),
            received: Vec::new(),
            frame: Vec::new(),
            models: vec![0.0; held * n2],
            gathering: Gathering::new(n2),
            hospital: TowerWorkspace::new(architecture, Side::Hospital, selected),
            devices: (0..held.div_ceil(DEVICES_PER_TASK))
                .map(|_| Devices {
                    workspace: DeviceWorkspace::new(architecture),
                    frame: Vec::new(),
                })
                .collect(),
        }
    }
}

/// Workspaces for the groups that are at work at the same time. The one used last is used next: it is in the cache.
pub(crate) struct Workspaces<'a, W> {
    make: Box<dyn Fn() -> W + Sync + 'a>,
    free: Mutex<Vec<W>>,
}

impl<'a, W> Workspaces<'a, W> {
    /// None yet; `make` makes one.
    pub(crate) fn new(make: impl Fn() -> W + Sync + 'a) -> Self {
        Workspaces {
            make: Box::new(make),
            free: Mutex::default(),
        }
    }

    /// Lends a workspace.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut W) -> R) -> R {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let last = free().pop();
        let mut workspace = last.unwrap_or_else(|| (self.make)());
        let result = work(&mut workspace);
        free().push(workspace);
        result
    }
}

impl Turnout {
    /// All groups of a task, before anybody was drawn.
    pub(crate) fn all(task: &Task<'_>) -> Vec<Turnout> {
        let mut groups = Vec::new();
        groups.resize_with(task.dataset.groups.len(), Turnout::default);
        groups
    }

    /// Draws A_m and lists its samples.
    pub(crate) fn draw(&mut self, task: &Task<'_>, m: usize, t: u64) {
        let data = &task.dataset.groups[m];
        let draw = Draw::new(task.experiment.seed, m, t, data.devices(), task.selected[m]);
        task.selection.select(draw, &mut self.subset);
        self.drawn = t;
        self.messages = Messages::new(task.architecture.widths(), &task.compression);
        self.exchanged.clear();
        self.exchanged
            .extend(self.subset.iter().map(|n| !task.is_absent(t, m, *n)));
        self.rows.clear();
        self.starts.clear();
        self.starts.push(0);
        for &device in &self.subset {
            self.rows.extend(data.rows(device).map(|row| row as u32));
            self.starts.push(self.rows.len() as u32);
        }
    }

    /// Devices in quarantine are not asked.
    pub(crate) fn leave_out_quarantined(&mut self, task: &Task<'_>, conduct: [&Conduct; 2]) {
        self.rejected.clear();
        let after = task.experiment.defence.quarantine;
        if conduct.iter().all(|conduct| conduct.is_clean()) {
            return;
        }
        for (device, there) in self.subset.iter().zip(&mut self.exchanged) {
            let is_out = |conduct: &&Conduct| conduct.is_quarantined(*device, after);
            if *there && conduct.iter().any(is_out) {
                *there = false;
                let quarantined = (Phase::Exchange, *device, Reason::Quarantined);
                self.rejected.push(quarantined);
            }
        }
    }

    /// Hostile devices send other embeddings.
    fn falsify(&self, task: &Task<'_>, (m, t): (usize, u64), zeta2: &mut [f32]) {
        let Some(attack) = &task.attack else { return };
        let width = task.architecture.device.output().len();
        for (device, ends) in self.subset.iter().zip(self.starts.windows(2)) {
            let own = &mut zeta2[ends[0] as usize * width..ends[1] as usize * width];
            attack.of_embedding(t, m, *device, own);
        }
    }

    /// Embeddings that cannot be used are left out, and who sent them is not there: `zeta2` has those of all drawn
    /// devices. The hospital decides that, with what it holds against its devices.
    pub(crate) fn judge_embeddings(
        &mut self,
        task: &Task<'_>,
        zeta2: &[f32],
        conduct: &mut Conduct,
    ) {
        let defence = &task.experiment.defence;
        let Some(limit) = task.limit(defence.embedding_limit) else {
            return;
        };
        let width = task.architecture.device.output().len();
        let own = |ends: &[u32]| &zeta2[ends[0] as usize * width..ends[1] as usize * width];
        let there = || {
            let all = self.starts.windows(2).zip(&self.exchanged).enumerate();
            all.filter(|(_, (_, there))| **there)
        };
        // Mostly there is nothing to judge.
        let finite = there().all(|(_, (ends, _))| checks::are_finite(own(ends)));
        if finite && limit == 0.0 && conduct.is_clean() {
            return;
        }
        let length = |ends: &[u32]| {
            let rows = own(ends).chunks_exact(width.max(1));
            rows.map(|row| checks::squared_length(row, None))
                .fold(0.0, larger)
        };
        let lengths: Vec<(u64, f64)> = there().map(|(_, (ends, _))| (1, length(ends))).collect();
        let verdicts = checks::judge(&lengths, limit, |median| conduct.usual(0, median));
        let places: Vec<usize> = there().map(|(place, _)| place).collect();
        for (place, verdict) in places.into_iter().zip(verdicts) {
            let device = self.subset[place];
            match verdict {
                None => conduct.behaved(device),
                Some(reason) => {
                    conduct.offended(device);
                    self.exchanged[place] = false;
                    self.rejected.push((Phase::Exchange, device, reason));
                }
            }
        }
    }

    /// Notes whose models were left out, by their edge, with what it holds against its devices.
    pub(crate) fn judge_models(&mut self, gathering: &Gathering, conduct: &mut Conduct) {
        if gathering.rejected.is_empty() && conduct.is_clean() {
            return;
        }
        let is_rejected = |place: usize| gathering.rejected.iter().any(|(p, _)| *p == place);
        let arrived = self.subset.iter().zip(&self.uploaded).enumerate();
        for (place, (device, _)) in arrived.filter(|(_, (_, arrived))| **arrived) {
            if !is_rejected(place) {
                conduct.behaved(*device);
            }
        }
        for (place, reason) in &gathering.rejected {
            let device = self.subset[*place];
            conduct.offended(device);
            self.rejected.push((Phase::Upload, device, *reason));
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

    /// Draws A_m; the drawn devices adopt `θ2[m]` and send ζ2; the hospital sends θ0 and the subset's ζ1. `copy` is the
    /// edge's copy of the hospital's θ0, where it keeps one.
    pub(crate) fn exchange(
        &mut self,
        task: &Task<'_>,
        (m, t): (usize, u64),
        model: &Model,
        (copy, conduct): (&mut [f32], &mut DeviceConduct),
        workspace: &mut Workspace,
    ) {
        self.draw(task, m, t);
        self.leave_out_quarantined(task, [&conduct.embeddings, &conduct.models]);
        let Architecture {
            hospital, device, ..
        } = &task.architecture;
        let Workspace {
            hospital_side,
            device_side,
            frozen,
            received,
            frame,
            ..
        } = workspace;
        let samples = &task.dataset.groups[m].samples;
        let route = |leg| task.route(leg, m, t);

        let mut theta2 = &model.theta2;
        let down = route(Leg::DeviceModel);
        if !down.changes_nothing() {
            received.clone_from(theta2);
            down.send(received, &[], &mut [], frame);
            theta2 = received;
        }
        device_side.embed(device, theta2, &samples.x2, &self.rows);
        frozen.theta0.copy_from_slice(&model.theta0);
        // If nobody is there to send to, nothing is sent, and the edge's copy stays.
        if self.exchanged.contains(&true) {
            route(Leg::Theta0).send(&mut frozen.theta0, copy, &mut [], frame);
            if !copy.is_empty() {
                copy.copy_from_slice(&frozen.theta0);
            }
        }
        frozen.prepare(&task.architecture, theta2);
        hospital_side.embed(hospital, &model.theta1, &samples.x1, &self.rows);
        route(Leg::Zeta2).send_rows(&self.rows, &mut device_side.zeta, frame);
        self.falsify(task, (m, t), &mut device_side.zeta);
        self.judge_embeddings(task, &device_side.zeta, &mut conduct.embeddings);
        route(Leg::Zeta1).send_rows(&self.rows, &mut hospital_side.zeta, frame);
    }

    /// Hospital and devices take their Q steps side by side, on what the exchange froze. The devices' models are added
    /// up as they come.
    pub(crate) fn local_steps(
        &mut self,
        task: &Task<'_>,
        (m, steps): (usize, Steps),
        (model, memory): (&mut Model, &mut Model),
        workspace: &mut Workspace,
    ) {
        let architecture = &task.architecture;
        let Workspace {
            hospital_side,
            device_side,
            frozen,
            received,
            models,
            gathering,
            hospital,
            devices,
            ..
        } = workspace;
        let end = steps.first + steps.segment.local_interval;
        self.uploaded.clear();
        let arrived = self.subset.iter().zip(&self.exchanged);
        self.uploaded
            .extend(arrived.map(|(n, there)| *there && !task.absent().upload(end, m, *n)));
        let samples = &task.dataset.groups[m].samples;
        let batch = Batch {
            samples,
            y: task.labels(steps.first, m),
            rows: &self.rows,
            starts: &self.starts,
            present: &self.exchanged,
            other: &device_side.zeta,
            tapes: &hospital_side.tapes,
        };
        let Model {
            theta0,
            theta1,
            theta2,
        } = model;
        let stepped = Stepped {
            theta0,
            theta: theta1,
            memory0: &mut memory.theta0,
            memory: &mut memory.theta1,
        };
        let descent = task.hospital_descent();
        let hospital_work =
            || hospital_steps(architecture, descent, steps, batch, stepped, hospital);
        let theirs = match task
            .route(Leg::DeviceModel, m, steps.first)
            .changes_nothing()
        {
            true => &theta2[..],
            false => &received[..],
        };
        let upload = task.route(Leg::DeviceStep, m, end);
        let device_work = || {
            gathering.clear();
            let (n2, descent) = (theirs.len(), task.device_descent());
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
                    .for_each(|(i, (models, devices))| {
                        for (j, own) in models.chunks_exact_mut(n2).enumerate() {
                            let position = first + i * DEVICES_PER_TASK + j;
                            let places = batch.places(position);
                            if !places.is_empty() {
                                let sides = (&*hospital_side, &*device_side);
                                let lesson = task.lessons(steps.first, m, self.subset[position]);
                                let owned = owned(architecture, batch, places, sides, lesson);
                                device_steps(
                                    architecture,
                                    descent,
                                    steps,
                                    owned,
                                    frozen,
                                    (theirs, own),
                                    &mut devices.workspace,
                                );
                                let device = self.subset[position];
                                if let Some(attack) = &task.attack {
                                    attack.of_device((end, m, device), theirs, own);
                                }
                                let upload = upload.of(device);
                                upload.send(own, theirs, &mut [], &mut devices.frame);
                            }
                        }
                    });
                gathering.add(task.gatherer(), models, arrived);
            }
        };
        (self.descended, ()) = rayon::join(hospital_work, device_work);
    }

    /// `θ2[m]` becomes what the models that arrived aggregate to.
    pub(crate) fn local_aggregation(
        &mut self,
        (task, steps): (&Task<'_>, Steps),
        (model, memory): (&mut Model, &mut Model),
        conduct: &mut Conduct,
        workspace: &mut Workspace,
    ) {
        let gathering = &mut workspace.gathering;
        let theta2 = (&mut model.theta2[..], &mut memory.theta2[..]);
        aggregate_locally((task, steps), gathering, theta2, conduct);
        self.judge_models(gathering, conduct);
    }
}

/// The larger of two; what is not finite is the largest.
fn larger(a: f64, b: f64) -> f64 {
    match b.is_finite() {
        true => a.max(b),
        false => b,
    }
}

/// `θ2[m]` becomes what the models that arrived aggregate to; it stays if none did. Where devices send steps, the edge
/// adds what those aggregate to to the model that it has, so that what was lost on the way down is not lost to it.
pub(crate) fn aggregate_locally(
    (task, steps): (&Task<'_>, Steps),
    gathering: &mut Gathering,
    (theta2, memory): (&mut [f32], &mut [f32]),
    conduct: &mut Conduct,
) {
    let level = task.architecture.level();
    let mover = task.edge_mover(steps);
    // How long a step is depends on how far it may go.
    let Steps { segment, first } = steps;
    let reach = task.schedule().reach(&segment, first);
    let usual = |median: f64| conduct.usual(0, median / (reach * reach)) * reach * reach;
    let steps = task.compression.devices_send_steps();
    let before = (!steps).then_some(&*theta2);
    let Some(new) = gathering.finish(task.gatherer(), before, usual) else {
        return;
    };
    if steps {
        vector::add(level, theta2, new);
    }
    mover.move_on(theta2, new, memory);
}

/// What the device at some places of the batch owns and was sent. Its rows lie one after the other.
fn owned<'a>(
    architecture: &Architecture,
    batch: Batch<'a>,
    places: Range<usize>,
    (hospital_side, device_side): (&'a Embeddings, &'a Embeddings),
    lesson: (&'a [f32], &'a Targets),
) -> Owned<'a> {
    let (d1, inputs) = (
        architecture.hospital.output().len(),
        architecture.device.input().len(),
    );
    let first = batch.rows[places.start] as usize;
    let tape = architecture.device.tape();
    let (x2, y) = lesson;
    Owned {
        x2: &x2[first * inputs..][..places.len() * inputs],
        y: (y, first..first + places.len()),
        zeta1: &hospital_side.zeta[places.start * d1..places.end * d1],
        tapes: device_side
            .tapes
            .get(places.start * tape..places.end * tape)
            .unwrap_or_default(),
    }
}
