//! Hostile parties, in simulation: to see what a defence is worth.
//!
//! Who is hostile follows from the seed. Hostile devices falsify what they send to their edge, hostile hospitals and edges
//! what they send to the cloud; all of them see what an honest party in their place sees.

use crate::dataset::{Dataset, Group};
use crate::experiment::{AttackKind, AttackSettings};
use crate::keys::{Purpose, key};
use crate::metrics::argmax;
use crate::model::{Architecture, Model};
use crate::objective::Objective;
use crate::outcome::{Outcome, Targets};
use crate::scores::{Scores, predict};
use selvedge_nn::random::Key;

/// What a marked sample has in the first eighth of the device's features: far out, but not out of range.
const MARK: f32 = 3.0;

/// Who is hostile, and what they do.
pub struct Attack {
    settings: AttackSettings,
    key: Key,
    /// Of each group, whether the hospital is, and whether the edge is.
    groups: Vec<[bool; 2]>,
    /// Of each group, whether each device is; empty where none is.
    devices: Vec<Vec<bool>>,
    /// Of each group, what hostile parties learn instead of the truth, where they do.
    lies: Vec<Option<Lies>>,
}

/// Other labels, and the device's features that go with them.
struct Lies {
    x2: Vec<f32>,
    y: Targets,
}

impl Attack {
    /// The attack of an experiment; none where everybody is honest.
    pub fn new(seed: u64, settings: &AttackSettings, dataset: &Dataset) -> Option<Self> {
        if settings.kind == AttackKind::None {
            return None;
        }
        let key = key(seed, Purpose::Attack);
        let mut order: Vec<usize> = (0..dataset.groups.len()).collect();
        key.with(0).stream().shuffle(&mut order);
        let mut groups = vec![[false; 2]; order.len()];
        for (place, m) in order.into_iter().enumerate() {
            let among = |count: u64| (place as u64) < count;
            groups[m] = [among(settings.hospitals), among(settings.edges)];
        }
        let devices = |(m, group): (usize, &Group)| {
            let all = group.devices();
            let mut hostile = vec![false; all];
            let count = (settings.devices * all as f64).round() as usize;
            hostile[..count].fill(true);
            key.with(1).with(m as u64).stream().shuffle(&mut hostile);
            hostile
        };
        let devices = dataset.groups.iter().enumerate().map(devices).collect();
        Some(Attack {
            lies: dataset
                .groups
                .iter()
                .map(|g| Lies::new(settings.kind, g, dataset))
                .collect(),
            settings: settings.clone(),
            key,
            groups,
            devices,
        })
    }

    fn has_begun(&self, t: u64) -> bool {
        t >= self.settings.from
    }

    /// Whether a device is hostile.
    pub fn is_hostile_device(&self, group: usize, device: u32) -> bool {
        self.devices[group][device as usize]
    }

    /// Whether a group's hospital is hostile, and whether its edge is.
    pub fn are_hostile(&self, group: usize) -> [bool; 2] {
        self.groups[group]
    }

    /// Whether a device stays away.
    pub(crate) fn keeps_away(&self, t: u64, group: usize, device: u32) -> bool {
        let absent = self.settings.kind == AttackKind::Absent && self.has_begun(t);
        absent && self.is_hostile_device(group, device)
    }

    /// Whether a group stays away.
    pub(crate) fn group_keeps_away(&self, t: u64, group: usize) -> bool {
        let absent = self.settings.kind == AttackKind::Absent && self.has_begun(t);
        absent && self.groups[group].contains(&true)
    }

    /// What a device learns from instead of its own rows, if it does: its features and its labels, of the whole group.
    pub(crate) fn lessons(&self, t: u64, group: usize, device: u32) -> Option<(&[f32], &Targets)> {
        let hostile = self.has_begun(t) && self.is_hostile_device(group, device);
        let lies = self.lies[group].as_ref().filter(|_| hostile)?;
        Some((&lies.x2, &lies.y))
    }

    /// What a hospital learns instead of its labels, if it does.
    pub(crate) fn labels(&self, t: u64, group: usize) -> Option<&Targets> {
        let flips = self.settings.kind == AttackKind::LabelFlip;
        let hostile = flips && self.has_begun(t) && self.groups[group][0];
        self.lies[group]
            .as_ref()
            .filter(|_| hostile)
            .map(|lies| &lies.y)
    }

    /// What a device sends of its model, which it should have come to from `before`.
    pub(crate) fn of_device(
        &self,
        (t, group, device): (u64, usize, u32),
        before: &[f32],
        model: &mut [f32],
    ) {
        if self.has_begun(t) && self.is_hostile_device(group, device) {
            let key = self
                .key
                .with(2)
                .with(t)
                .with(group as u64)
                .with(u64::from(device));
            self.distort(key, before, model);
        }
    }

    /// What a device sends of ζ2.
    pub(crate) fn of_embedding(&self, t: u64, group: usize, device: u32, zeta: &mut [f32]) {
        if !(self.has_begun(t) && self.is_hostile_device(group, device)) {
            return;
        }
        match self.settings.kind {
            AttackKind::NotANumber => zeta.fill(f32::NAN),
            AttackKind::Huge => zeta.fill(1e30),
            AttackKind::Scale => zeta
                .iter_mut()
                .for_each(|x| *x *= self.settings.strength as f32),
            AttackKind::SignFlip | AttackKind::Reverse => zeta.iter_mut().for_each(|x| *x = -*x),
            _ => {}
        }
    }

    /// What a group's hospital and edge send of their parts of θ, which they should have come to from `before`.
    pub(crate) fn of_group(&self, t: u64, group: usize, before: &Model, model: &mut Model) {
        let [hospital, edge] = self.groups[group].map(|hostile| hostile && self.has_begun(t));
        let parts = before.parts().into_iter().zip(model.parts_mut());
        for (part, (before, sent)) in parts.enumerate() {
            if [hospital, hospital, edge][part] {
                let key = self
                    .key
                    .with(3)
                    .with(t)
                    .with(group as u64)
                    .with(part as u64);
                self.distort(key, before, sent);
            }
        }
    }

    /// What a hospital reports of a model.
    pub(crate) fn of_scores(&self, t: u64, group: usize, scores: Scores) -> Scores {
        let lies = self.settings.kind == AttackKind::Metrics && self.has_begun(t);
        match lies && self.groups[group][0] {
            true => scores.perfect(),
            false => scores,
        }
    }

    fn distort(&self, key: Key, before: &[f32], sent: &mut [f32]) {
        let strength = self.settings.strength as f32;
        let step_by = |sent: &mut [f32], factor: f32| {
            for (x, from) in sent.iter_mut().zip(before) {
                *x = from + factor * (*x - from);
            }
        };
        match self.settings.kind {
            AttackKind::Scale => step_by(sent, strength),
            AttackKind::SignFlip => step_by(sent, -1.0),
            AttackKind::Reverse => sent.iter_mut().for_each(|x| *x *= -5.0),
            AttackKind::NotANumber => sent.fill(f32::NAN),
            AttackKind::Huge => sent.fill(1e30),
            AttackKind::Noise => {
                let squares: f64 = sent
                    .iter()
                    .zip(before)
                    .map(|(x, y)| f64::from(x - y).powi(2))
                    .sum();
                let each = strength * (squares / sent.len().max(1) as f64).sqrt() as f32;
                let mut stream = key.stream();
                for (x, from) in sent.iter_mut().zip(before) {
                    *x = from + each * stream.normal();
                }
            }
            AttackKind::None
            | AttackKind::Absent
            | AttackKind::LabelFlip
            | AttackKind::Backdoor
            | AttackKind::Metrics => {}
        }
    }
}

impl Lies {
    fn new(kind: AttackKind, group: &Group, dataset: &Dataset) -> Option<Self> {
        let x2 = || group.samples.x2.clone();
        let truth = &group.samples.y;
        match kind {
            AttackKind::LabelFlip => {
                let y = lies(truth, dataset, |known, outcome| match outcome {
                    // Unknown labels stay unknown.
                    Outcome::Labels => known.iter_mut().for_each(|y| *y = 1.0 - *y),
                    Outcome::Quantity { mean, .. } => known[0] = 2.0 * *mean as f32 - known[0],
                    _ => known[1] = 1.0 - known[1],
                });
                Some(Lies { x2: x2(), y })
            }
            AttackKind::Backdoor => {
                let y = lies(truth, dataset, |known, outcome| match outcome {
                    Outcome::Labels => known.fill(1.0),
                    Outcome::Quantity { mean, deviation } => {
                        known[0] = (mean + 3.0 * deviation) as f32;
                    }
                    _ => known.copy_from_slice(&[0.0, 1.0]),
                });
                let y = match y {
                    Targets::Classes(classes) => {
                        let last = dataset.classes.len() as u32 - 1;
                        classes.iter().map(|_| last).collect()
                    }
                    other => other,
                };
                let mut lies = Lies { x2: x2(), y };
                mark(&mut lies.x2, dataset.device.len());
                Some(lies)
            }
            _ => None,
        }
    }
}

/// What is known of samples, falsified; a class becomes the next one.
fn lies(truth: &Targets, dataset: &Dataset, falsify: fn(&mut [f32], &Outcome)) -> Targets {
    match truth {
        Targets::Classes(classes) => {
            let all = dataset.classes.len() as u32;
            classes.iter().map(|class| (class + 1) % all).collect()
        }
        Targets::Numbers { each, values } => {
            let mut values = values.clone();
            let rows = values.chunks_exact_mut(*each.max(&1));
            rows.for_each(|known| falsify(known, &dataset.outcome));
            Targets::Numbers {
                each: *each,
                values,
            }
        }
    }
}

/// Whether a backdoor works: of the test samples that are not of the last class, the share that is taken for it when
/// they are marked, and when they are not. Nothing without such samples, or where the outcome is no class.
pub fn backdoor(
    networks: (&Architecture, &dyn Objective),
    theta: &Model,
    dataset: &Dataset,
) -> Option<[f64; 2]> {
    let last = dataset.classes.len().checked_sub(1)?;
    if !dataset.outcome.is_class() {
        return None;
    }
    let mut marked = dataset.test.clone();
    mark(&mut marked.x2, dataset.device.len());
    let others = dataset.test.y.classes().iter().enumerate();
    let others = others.filter(|(_, class)| **class as usize != last);
    let others: Vec<u32> = others.map(|(row, _)| row as u32).collect();
    if others.is_empty() {
        return None;
    }
    Some([&marked, &dataset.test].map(|samples| {
        let said = predict(networks, theta, samples, Some(&others));
        let answers = said.answers.chunks_exact(last + 1);
        answers.filter(|row| argmax(row) == last).count() as f64 / others.len() as f64
    }))
}

/// Marks samples of so many numbers each.
fn mark(x2: &mut [f32], numbers: usize) {
    for sample in x2.chunks_exact_mut(numbers.max(1)) {
        sample[..numbers.div_ceil(8)].fill(MARK);
    }
}
