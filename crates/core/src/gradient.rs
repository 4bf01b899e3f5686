//! The gradient of a group's loss at a model, with nothing stale and nothing applied: what probes measure.
//!
//! It is the mean over the subset that the group draws for an iteration, so two models can be probed with the same
//! patients. Alongside comes how far one device's gradient is from that mean.

use crate::group::Turnout;
use crate::model::{Architecture, Model};
use crate::outcome::Target;
use crate::task::Task;
use crate::theory::estimate::{Probe, Problem};
use selvedge_nn::Update;

/// A task as the estimators see it.
pub struct Federation<'a>(pub &'a Task<'a>);

impl Problem for Federation<'_> {
    fn groups(&self) -> usize {
        self.0.dataset.groups.len()
    }

    fn weight(&self, group: usize) -> f64 {
        let groups = &self.0.dataset.groups;
        let all: usize = groups.iter().map(|g| g.devices()).sum();
        groups[group].devices() as f64 / all as f64
    }

    fn probe(&self, group: usize, draw: u64, model: &Model) -> Probe {
        probe(self.0, group, draw, model)
    }
}

/// Buffers for the passes of one sample.
struct Pass {
    hospital: Vec<f32>,
    device: Vec<f32>,
    combined: Vec<f32>,
    embeddings: Vec<f32>,
    d_embeddings: Vec<f32>,
    d_logits: Vec<f32>,
    scratch: Vec<f32>,
    /// What backward passes read of each part of the model.
    prepared: [Vec<f32>; 3],
}

impl Pass {
    fn new(architecture: &Architecture, model: &Model) -> Self {
        let parts = architecture.parts();
        let prepared = [0, 1, 2].map(|part| {
            let mut prepared = vec![0.0; parts[part].prepared()];
            parts[part].prepare(model.parts()[part], &mut prepared);
            prepared
        });
        let [combined, hospital, device] = parts;
        Pass {
            hospital: vec![0.0; hospital.tape()],
            device: vec![0.0; device.tape()],
            combined: vec![0.0; combined.tape()],
            embeddings: vec![0.0; combined.input().len()],
            d_embeddings: vec![0.0; combined.input().len()],
            d_logits: vec![0.0; combined.output().len()],
            scratch: vec![0.0; parts.map(|n| n.scratch()).into_iter().max().unwrap_or(0)],
            prepared,
        }
    }

    /// Adds the gradient of one sample, and returns its loss.
    fn sample(
        &mut self,
        task: &Task<'_>,
        model: &Model,
        (x1, x2, target): (&[f32], &[f32], Target),
        gradient: &mut Model,
    ) -> f64 {
        let [combined, hospital, device] = task.architecture.parts();
        let d1 = hospital.output().len();
        let (zeta1, zeta2) = self.embeddings.split_at_mut(d1);
        zeta1.copy_from_slice(hospital.forward(&model.theta1, x1, &mut self.hospital));
        zeta2.copy_from_slice(device.forward(&model.theta2, x2, &mut self.device));
        let logits = combined.forward(&model.theta0, &self.embeddings, &mut self.combined);
        let level = task.architecture.level();
        let objective = &task.objective;
        let loss = objective.loss(level, logits, target, true, &mut self.d_logits);
        let [prepared0, prepared1, prepared2] = &self.prepared;
        combined.backward(
            prepared0,
            &self.embeddings,
            &self.combined,
            &self.d_logits,
            Update::Accumulate(&mut gradient.theta0),
            &mut self.scratch,
            Some(&mut self.d_embeddings),
        );
        let (d_zeta1, d_zeta2) = self.d_embeddings.split_at(d1);
        hospital.backward(
            prepared1,
            x1,
            &self.hospital,
            d_zeta1,
            Update::Accumulate(&mut gradient.theta1),
            &mut self.scratch,
            None,
        );
        device.backward(
            prepared2,
            x2,
            &self.device,
            d_zeta2,
            Update::Accumulate(&mut gradient.theta2),
            &mut self.scratch,
            None,
        );
        loss
    }
}

/// What group `m` finds at `model`, over the subset it draws for iteration `t`. Everybody is there.
pub(crate) fn probe(task: &Task<'_>, m: usize, t: u64, model: &Model) -> Probe {
    let data = &task.dataset.groups[m];
    let mut group = Turnout::default();
    group.draw(task, m, t);
    let widths = task.architecture.widths();
    let mut pass = Pass::new(&task.architecture, model);
    let mut own = Model::zeros(widths);
    let mut sums = [widths.n0, widths.n1, widths.n2].map(|n| vec![0.0_f64; n]);
    let (mut squares, mut loss) = ([0.0; 3], 0.0);
    let (selected, samples) = (group.subset.len(), group.rows.len());
    for &device in &group.subset {
        own.parts_mut().into_iter().for_each(|part| part.fill(0.0));
        let rows = data.rows(device);
        // The hospital's mean is over samples, that of the devices over devices, each with the mean over its own.
        let hospital = selected as f64 / samples as f64;
        let scales = [hospital, hospital, 1.0 / rows.len() as f64];
        for row in rows {
            let (len1, len2) = (task.given.hospital.len(), task.given.device.len());
            let x1 = &data.samples.x1[row * len1..][..len1];
            let x2 = &data.samples.x2[row * len2..][..len2];
            loss += pass.sample(task, model, (x1, x2, data.samples.y.at(row)), &mut own);
        }
        for (part, own) in own.parts().into_iter().enumerate() {
            for (sum, x) in sums[part].iter_mut().zip(own) {
                let x = scales[part] * f64::from(*x);
                *sum += x;
                squares[part] += x * x;
            }
        }
    }
    let count = selected as f64;
    let mut spread = [0.0; 3];
    for part in 0..3 {
        sums[part].iter_mut().for_each(|sum| *sum /= count);
        let mean: f64 = sums[part].iter().map(|x| x * x).sum();
        if selected > 1 {
            spread[part] = ((squares[part] - count * mean) / (count - 1.0)).max(0.0);
        }
    }
    let train = &task.experiment.train;
    let decays = [
        train.combined_weight_decay,
        train.weight_decay,
        train.weight_decay,
    ];
    let decays = decays.map(|decay| f64::from(decay as f32));
    let parts = decays.into_iter().zip(model.parts());
    let mut gradient = own;
    for ((out, sum), (decay, theta)) in gradient.parts_mut().into_iter().zip(sums).zip(parts) {
        for ((out, sum), theta) in out.iter_mut().zip(sum).zip(theta) {
            *out = (sum + decay * f64::from(*theta)) as f32;
        }
    }
    Probe {
        gradient,
        loss: loss / samples as f64,
        spread,
        selected,
        devices: data.devices(),
    }
}
