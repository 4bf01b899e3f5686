//! HSGD once more, as plainly as it can be said: f64, one iteration at a time, and no backward pass at all. Gradients
//! are finite differences of the loss.

use super::optimisers::{Memory, rate, shorten};
use selvedge_core::experiment::ClassWeights;
use selvedge_core::model::Model;
use selvedge_core::schedule::Segment;
use selvedge_core::selection::Draw;
use selvedge_core::task::Task;
use selvedge_nn::{LayerSpec, Network, Tensor};

/// θ0, θ1, θ2 in f64, laid out like the loop's.
pub type Theta = [Vec<f64>; 3];

/// Numbers in f64.
pub fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}

/// A model in f64.
pub fn theta(model: &Model) -> Theta {
    model.parts().map(wide)
}

/// A layer, with the places of its numbers in the parameter slice.
enum Layer {
    Linear(Affine),
    Tanh,
    Lstm { of_input: Affine, of_hidden: Affine },
}

/// `W x + b`, row by row; without bias it is `W x`.
struct Affine {
    weight: Vec<Vec<usize>>,
    bias: Option<Vec<usize>>,
}

impl Affine {
    fn apply(&self, params: &[f64], x: &[f64]) -> Vec<f64> {
        let row = |(o, row): (usize, &Vec<usize>)| {
            assert_eq!(row.len(), x.len());
            let bias = self.bias.as_ref().map_or(0.0, |b| params[b[o]]);
            row.iter()
                .zip(x)
                .fold(bias, |sum, (w, x)| sum + params[*w] * x)
        };
        self.weight.iter().enumerate().map(row).collect()
    }
}

/// A network in f64.
pub struct Net(Vec<Layer>);

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-z))
}

impl Net {
    /// The same function as `network`, which was made of `specs`; it only asks where the tensors lie.
    pub fn new(network: &Network, specs: &[LayerSpec]) -> Self {
        let places: Vec<f32> = (0..network.params()).map(|i| i as f32).collect();
        let tensors = network.tensors();
        let read = |layer: usize, name: &str| {
            let name = format!("{layer}.{name}");
            let tensor = tensors.iter().find(|t| t.name == name);
            let tensor: &Tensor = tensor.unwrap_or_else(|| panic!("no tensor {name}"));
            let flat = tensor.read(&places).into_iter().map(|p| p as usize);
            (flat.collect::<Vec<_>>(), tensor.shape.clone())
        };
        let affine = |layer: usize, weight: &str, bias: Option<&str>| {
            let (flat, shape) = read(layer, weight);
            Affine {
                weight: flat.chunks(shape[1]).map(<[usize]>::to_vec).collect(),
                bias: bias.map(|name| read(layer, name).0),
            }
        };
        let layer = |(i, spec): (usize, &LayerSpec)| match spec {
            LayerSpec::Linear { .. } => Layer::Linear(affine(i, "weight", Some("bias"))),
            LayerSpec::Tanh => Layer::Tanh,
            LayerSpec::Lstm(_) => Layer::Lstm {
                of_input: affine(i, "weight_ih", Some("bias")),
                of_hidden: affine(i, "weight_hh", None),
            },
            other => panic!("the reference has no layer {other:?}"),
        };
        Net(specs.iter().enumerate().map(layer).collect())
    }

    /// One sample.
    pub fn forward(&self, params: &[f64], x: &[f64]) -> Vec<f64> {
        let mut x = x.to_vec();
        for layer in &self.0 {
            x = match layer {
                Layer::Tanh => x.iter().map(|x| libm::tanh(*x)).collect(),
                Layer::Linear(affine) => affine.apply(params, &x),
                Layer::Lstm {
                    of_input,
                    of_hidden,
                } => {
                    let n = of_hidden.weight[0].len();
                    let (mut h, mut c) = (vec![0.0; n], vec![0.0; n]);
                    for step in x.chunks(of_input.weight[0].len()) {
                        let from_input = of_input.apply(params, step);
                        let from_hidden = of_hidden.apply(params, &h);
                        let z = |gate: usize, k: usize| {
                            from_input[gate * n + k] + from_hidden[gate * n + k]
                        };
                        for k in 0..n {
                            c[k] = sigmoid(z(1, k)) * c[k] + sigmoid(z(0, k)) * libm::tanh(z(2, k));
                            h[k] = sigmoid(z(3, k)) * libm::tanh(c[k]);
                        }
                    }
                    h
                }
            };
        }
        x
    }
}

/// The gradient of `f`, by central differences.
pub fn gradient(at: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let mut x = at.to_vec();
    let slope = |i: usize| {
        x[i] = at[i] + STEP;
        let above = f(&x);
        x[i] = at[i] - STEP;
        let below = f(&x);
        x[i] = at[i];
        (above - below) / (2.0 * STEP)
    };
    (0..at.len()).map(slope).collect()
}

/// `params −= rate · (gradient + decay · params)`
pub fn descend(params: &mut [f64], gradient: &[f64], rate: f64, decay: f64) {
    for (p, g) in params.iter_mut().zip(gradient) {
        *p -= rate * (g + decay * *p);
    }
}

/// The three networks and the data of a task, in f64.
pub struct World<'a> {
    pub task: &'a Task<'a>,
    pub nets: [Net; 3],
    pub class_weights: Vec<f64>,
    pub decay: f64,
}

impl<'a> World<'a> {
    pub fn new(task: &'a Task<'a>) -> Self {
        let (model, networks) = (&task.experiment.model, task.architecture.parts());
        let specs = [model.combined(), model.hospital(), model.device()];
        let data = &task.dataset;
        let labels: Vec<u32> = data
            .groups
            .iter()
            .flat_map(|g| g.samples.y.classes().to_vec())
            .collect();
        let classes = data.classes.len();
        let count = |c: usize| labels.iter().filter(|y| **y as usize == c).count() as f64;
        let class_weights = match &task.experiment.train.class_weights {
            ClassWeights::None => vec![1.0; classes],
            ClassWeights::Listed(list) => wide(list),
            ClassWeights::Balanced => (0..classes)
                .map(|c| {
                    if count(c) == 0.0 {
                        0.0
                    } else {
                        labels.len() as f64 / (classes as f64 * count(c))
                    }
                })
                .collect(),
        };
        World {
            task,
            nets: [0, 1, 2].map(|i| Net::new(networks[i], specs[i])),
            class_weights,
            decay: task.experiment.train.weight_decay,
        }
    }

    /// x1, x2 and the label of a row.
    pub fn row(&self, m: usize, row: usize) -> (Vec<f64>, Vec<f64>, usize) {
        let (data, samples) = (&self.task.dataset, &self.task.dataset.groups[m].samples);
        let (len1, len2) = (data.hospital.len(), data.device.len());
        let x1 = wide(&samples.x1[row * len1..][..len1]);
        let x2 = wide(&samples.x2[row * len2..][..len2]);
        (x1, x2, samples.y.classes()[row] as usize)
    }

    /// ζ1 or ζ2: what tower 1 or 2 says of its side of a sample.
    pub fn zeta(&self, tower: usize, params: &[f64], x: &[f64]) -> Vec<f64> {
        self.nets[tower].forward(params, x)
    }

    /// −ln p(label), without class weights.
    pub fn loss(&self, theta0: &[f64], zeta1: &[f64], zeta2: &[f64], label: usize) -> f64 {
        let logits = self.nets[0].forward(theta0, &[zeta1, zeta2].concat());
        let largest = logits.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = logits.iter().map(|z| libm::exp(z - largest)).sum();
        libm::log(sum) + largest - logits[label]
    }

    /// The loss of a whole model on one row, with all three parts live and the class's weight.
    pub fn loss_of(&self, model: &Theta, m: usize, row: usize) -> f64 {
        let (x1, x2, y) = self.row(m, row);
        let (zeta1, zeta2) = (self.zeta(1, &model[1], &x1), self.zeta(2, &model[2], &x2));
        self.class_weights[y] * self.loss(&model[0], &zeta1, &zeta2, y)
    }

    /// The hospital's gradients of θ0 and θ1: the mean over rows, each with its frozen ζ2.
    pub fn hospital_gradient(
        &self,
        m: usize,
        [theta0, theta1]: [&[f64]; 2],
        rows: &[(usize, Vec<f64>)],
    ) -> [Vec<f64>; 2] {
        let mean = |theta0: &[f64], theta1: &[f64]| {
            let one = |(row, zeta2): &(usize, Vec<f64>)| {
                let (x1, _, y) = self.row(m, *row);
                self.class_weights[y] * self.loss(theta0, &self.zeta(1, theta1, &x1), zeta2, y)
            };
            rows.iter().map(one).sum::<f64>() / rows.len() as f64
        };
        [
            gradient(theta0, |p| mean(p, theta1)),
            gradient(theta1, |p| mean(theta0, p)),
        ]
    }

    /// A device's gradient of θ2: the mean over its own rows, with frozen θ0 and ζ1.
    pub fn device_gradient(
        &self,
        m: usize,
        theta2: &[f64],
        theta0: &[f64],
        rows: &[(usize, Vec<f64>)],
    ) -> Vec<f64> {
        gradient(theta2, |theta2| {
            let one = |(row, zeta1): &(usize, Vec<f64>)| {
                let (_, x2, y) = self.row(m, *row);
                self.class_weights[y] * self.loss(theta0, zeta1, &self.zeta(2, theta2, &x2), y)
            };
            rows.iter().map(one).sum::<f64>() / rows.len() as f64
        })
    }
}

/// A device of the current subset that sent its ζ2.
struct Device {
    id: u32,
    theta2: Vec<f64>,
    /// Its rows, with the ζ1 that it was sent.
    rows: Vec<(usize, Vec<f64>)>,
}

/// A group between two exchanges.
struct Group {
    theta: Theta,
    frozen_theta0: Vec<f64>,
    /// Rows of the batch, with the ζ2 that the hospital was sent.
    batch: Vec<(usize, Vec<f64>)>,
    devices: Vec<Device>,
    /// Of θ0, θ1 and θ2.
    memories: [Memory; 3],
}

/// The models right behind the aggregations at `t`.
pub struct Instant {
    pub t: u64,
    pub theta: Theta,
    pub groups: Vec<Theta>,
}

/// Σ weight · model / Σ weight, part by part; `None` without models.
pub fn weighted_mean(models: &[(f64, &Theta)]) -> Option<Theta> {
    let whole: f64 = models.iter().map(|m| m.0).sum();
    let (_, first) = models.first()?;
    Some([0, 1, 2].map(|part| {
        let number = |i: usize| models.iter().map(|(w, m)| w * m[part][i]).sum::<f64>() / whole;
        (0..first[part].len()).map(number).collect()
    }))
}

/// Algorithm 1 over `segments`, iteration by iteration; the models behind every local aggregation.
pub fn hsgd(task: &Task<'_>, initial: &Model, segments: &[Segment]) -> Vec<Instant> {
    let world = World::new(task);
    let (e, train) = (task.experiment, &task.experiment.train);
    let mut remembered: [Memory; 3] = Default::default();
    let mut global = theta(initial);
    let mut groups: Vec<Group> = (0..task.dataset.groups.len())
        .map(|_| Group {
            theta: global.clone(),
            frozen_theta0: vec![],
            batch: vec![],
            devices: vec![],
            memories: Default::default(),
        })
        .collect();
    let mut instants = Vec::new();
    for t in 0..=train.iterations {
        // What ends at t belongs to the segment before.
        let ending = segments.iter().rev().find(|s| s.start < t);
        if let Some(s) = ending.filter(|s| (t - s.start).is_multiple_of(s.local_interval)) {
            // The share of the learning rate that was left at the last step.
            let left = rate(train, 1.0, t - 1);
            for (m, group) in groups.iter_mut().enumerate() {
                local_aggregation(task, t, m, group, left);
            }
            if (t - s.start).is_multiple_of(s.global_interval) {
                let there = (0..groups.len()).filter(|m| !task.absences.group(t, *m));
                let devices = |m: usize| task.dataset.groups[m].devices() as f64;
                let models: Vec<_> = there.map(|m| (devices(m), &groups[m].theta)).collect();
                if let Some(mean) = weighted_mean(&models) {
                    let (how, rate) = ((e, e.optimiser.cloud.into()), e.optimiser.cloud_rate());
                    for (part, memory) in remembered.iter_mut().enumerate() {
                        memory.move_on(how, rate, left, (&mut global[part], &mean[part]));
                    }
                }
                for (m, group) in groups.iter_mut().enumerate() {
                    group.theta = global.clone();
                    if task.absences.group(t, m) {
                        group.memories = Default::default();
                    }
                }
            }
            let now = groups.iter().map(|g| g.theta.clone()).collect();
            instants.push(Instant {
                t,
                theta: global.clone(),
                groups: now,
            });
        }
        if t == train.iterations {
            break;
        }
        let segment = segments
            .iter()
            .rev()
            .find(|s| s.start <= t)
            .expect("a segment at t = 0");
        let since = t - segment.start;
        let halvings = segment.halve_every.map_or(0, |every| since / every);
        let own = segment.learning_rate * 0.5f64.powi(halvings as i32);
        // With several segments, halving counts from the last; nothing else is left of the learning rate then.
        let rates = [
            segment.learning_rate,
            e.optimiser.hospital_rate().unwrap_or(segment.learning_rate),
        ];
        let rates = match segments.len() {
            1 => rates.map(|initial| rate(train, initial, t)),
            _ => [own; 2],
        };
        for (m, group) in groups.iter_mut().enumerate() {
            if since.is_multiple_of(segment.local_interval) {
                exchange(&world, t, m, group);
            }
            local_step(&world, m, group, rates);
        }
    }
    instants
}

fn exchange(world: &World<'_>, t: u64, m: usize, group: &mut Group) {
    let (task, data) = (world.task, &world.task.dataset.groups[m]);
    let share = task.experiment.train.participation * data.devices() as f64;
    let count = (share.round() as usize).max(1);
    let draw = Draw::new(task.experiment.seed, m, t, data.devices(), count);
    let mut subset = Vec::new();
    task.selection.select(draw, &mut subset);
    group.frozen_theta0 = group.theta[0].clone();
    group.batch.clear();
    group.devices.clear();
    for id in subset {
        if task.absences.exchange(t, m, id) {
            continue;
        }
        let mut rows = Vec::new();
        for row in data.rows(id) {
            let (x1, x2, _) = world.row(m, row);
            rows.push((row, world.zeta(1, &group.theta[1], &x1)));
            group.batch.push((row, world.zeta(2, &group.theta[2], &x2)));
        }
        group.devices.push(Device {
            id,
            theta2: group.theta[2].clone(),
            rows,
        });
    }
}

fn local_step(world: &World<'_>, m: usize, group: &mut Group, [own, hospital]: [f64; 2]) {
    let Group {
        theta: [theta0, theta1, _],
        frozen_theta0,
        batch,
        devices,
        memories: [memory0, memory1, _],
    } = group;
    let e = world.task.experiment;
    let (train, o) = (&e.train, &e.optimiser);
    if !batch.is_empty() {
        let gradients = world.hospital_gradient(m, [theta0, theta1], batch);
        let [g0, g1] = shorten(gradients, o.hospital_clip);
        let how = (e, o.hospital);
        memory0.step(how, theta0, &g0, (hospital, train.combined_weight_decay));
        memory1.step(how, theta1, &g1, (hospital, world.decay));
    }
    for device in devices {
        let g2 = world.device_gradient(m, &device.theta2, frozen_theta0, &device.rows);
        let [g2] = shorten([g2], o.device_clip);
        descend(&mut device.theta2, &g2, own, world.decay);
    }
}

fn local_aggregation(task: &Task<'_>, t: u64, m: usize, group: &mut Group, left: f64) {
    let arrived: Vec<&Device> = group
        .devices
        .iter()
        .filter(|d| !task.absences.upload(t, m, d.id))
        .collect();
    if arrived.is_empty() {
        return;
    }
    let sum = |i: usize| arrived.iter().map(|d| d.theta2[i]).sum::<f64>();
    let numbers = 0..group.theta[2].len();
    let mean: Vec<f64> = numbers.map(|i| sum(i) / arrived.len() as f64).collect();
    let e = task.experiment;
    let (how, rate) = ((e, e.optimiser.edge.into()), e.optimiser.edge_rate());
    group.memories[2].move_on(how, rate, left, (&mut group.theta[2], &mean));
}
