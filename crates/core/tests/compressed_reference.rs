//! C-HSGD once more, in f64 and without a backward pass: who sees what of which message. Top-k everywhere, because what
//! it sends can be said in a line.

mod common;

use common::draws::{drawn, learning_rate};
use common::reference::{Theta, World, descend, theta, weighted_mean};
use common::{
    Plan, TANH, assert_near, checked, dataset, experiment, for_seeds, pick, run, stream, task,
    with_algorithm,
};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Algorithm, CompressionSettings, Experiment};
use selvedge_core::run::Ending;
use selvedge_core::task::Task;
use selvedge_nn::random::Stream;

/// What a receiver reads of `values`, if 2 to the power of `bits` are the levels; without bits all of it.
fn sent(bits: Option<u32>, values: &[f64]) -> Vec<f64> {
    let Some(bits) = bits else {
        return values.to_vec();
    };
    let mut order: Vec<usize> = (0..values.len()).collect();
    // A stable sort: of equal magnitudes the first is kept.
    order.sort_by(|a, b| values[*b].abs().total_cmp(&values[*a].abs()));
    let kept = (values.len() * bits as usize / 32).max(1);
    let mut read = vec![0.0; values.len()];
    order.iter().take(kept).for_each(|i| read[*i] = values[*i]);
    read
}

fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The same, with what was lost before; what is lost now stays behind, if anything may.
fn sent_with(bits: Option<u32>, values: &[f64], lost: &mut Vec<f64>, keeps: bool) -> Vec<f64> {
    let meant = if keeps {
        plus(values, lost)
    } else {
        values.to_vec()
    };
    let read = sent(bits, &meant);
    *lost = minus(&meant, &read);
    read
}

/// log2 of the levels for each kind of message, `None` where it goes as it is.
#[derive(Clone, Copy, Debug)]
struct Bits {
    theta0: Option<u32>,
    zeta1: Option<u32>,
    zeta2: Option<u32>,
    device_upload: Option<u32>,
    device_download: Option<u32>,
    global_upload: Option<u32>,
    global_download: Option<u32>,
    feedback: bool,
    theta0_feedback: bool,
}

impl Bits {
    fn random(draw: &mut Stream) -> Self {
        let [a, b, c, d, e, f, g] = [0; 7].map(|_| pick(draw, &[None, Some(8), Some(15)]));
        Bits {
            theta0: a,
            zeta1: b,
            zeta2: c,
            device_upload: d,
            device_download: e,
            global_upload: f,
            global_download: g,
            feedback: draw.below(3) > 0,
            theta0_feedback: draw.below(2) > 0,
        }
    }

    fn settings(self) -> CompressionSettings {
        let name = |bits: Option<u32>| match bits {
            None => "none".into(),
            Some(bits) => format!("top-k:{}", 1u32 << bits),
        };
        CompressionSettings {
            theta0: Some(name(self.theta0)),
            zeta1: Some(name(self.zeta1)),
            zeta2: Some(name(self.zeta2)),
            device_upload: name(self.device_upload),
            device_download: name(self.device_download),
            global_upload: name(self.global_upload),
            global_download: name(self.global_download),
            error_feedback: self.feedback,
            theta0_feedback: self.theta0_feedback,
            ..CompressionSettings::default()
        }
    }
}

/// A group, with its edge's copy of θ0 and what its uploads have lost.
struct Group {
    theta: Theta,
    copy0: Vec<f64>,
    lost: Theta,
}

/// One interval of a group.
fn interval(world: &World<'_>, bits: Bits, m: usize, first: u64, group: &mut Group) {
    let e = world.task.experiment;
    let Group { theta, copy0, .. } = group;
    let received2 = sent(bits.device_download, &theta[2]);
    let frozen0 = match bits.theta0_feedback {
        true => plus(copy0, &sent(bits.theta0, &minus(&theta[0], copy0))),
        false => sent(bits.theta0, &theta[0]),
    };
    copy0.clone_from(&frozen0);
    let devices = drawn(world.task, m, first);
    let zeta1 = |row: &usize| {
        let zeta = world.zeta(1, &theta[1], &world.row(m, *row).0);
        (*row, sent(bits.zeta1, &zeta))
    };
    let zeta2 = |row: &usize| {
        let zeta = world.zeta(2, &received2, &world.row(m, *row).1);
        (*row, sent(bits.zeta2, &zeta))
    };
    let batch: Vec<_> = devices.iter().flatten().map(zeta2).collect();
    let theirs: Vec<Vec<_>> = devices
        .iter()
        .map(|rows| rows.iter().map(zeta1).collect())
        .collect();
    let mut models = vec![received2.clone(); devices.len()];
    for t in first..first + e.train.local_interval {
        let rate = learning_rate(e, t);
        let [g0, g1] = world.hospital_gradient(m, [&theta[0], &theta[1]], &batch);
        descend(&mut theta[0], &g0, rate, 0.0);
        descend(&mut theta[1], &g1, rate, world.decay);
        for (own, rows) in models.iter_mut().zip(&theirs) {
            let g2 = world.device_gradient(m, own, &frozen0, rows);
            descend(own, &g2, rate, world.decay);
        }
    }
    // The edge adds what it reads of the devices' steps to the model that it has.
    for own in &models {
        let step = sent(bits.device_upload, &minus(own, &received2));
        let share = step.iter().map(|x| x / models.len() as f64);
        theta[2] = plus(&theta[2], &share.collect::<Vec<_>>());
    }
}

/// θ at every global aggregation.
fn c_hsgd(task: &Task<'_>, bits: Bits) -> Vec<Theta> {
    let (world, train) = (World::new(task), &task.experiment.train);
    let mut global = theta(&task.architecture.initial(task.experiment.seed));
    let zeros = global.clone().map(|part| vec![0.0; part.len()]);
    let mut lost_by_cloud = zeros.clone();
    let group = |_| Group {
        theta: global.clone(),
        copy0: zeros[0].clone(),
        lost: zeros.clone(),
    };
    let mut groups: Vec<Group> = task.dataset.groups.iter().map(group).collect();
    let mut seen = vec![global.clone()];
    for t in (0..train.iterations).step_by(train.local_interval as usize) {
        for (m, group) in groups.iter_mut().enumerate() {
            interval(&world, bits, m, t, group);
        }
        if !(t + train.local_interval).is_multiple_of(train.global_interval) {
            continue;
        }
        for Group { theta, lost, .. } in &mut groups {
            for part in 0..3 {
                let step = minus(&theta[part], &global[part]);
                let step = sent_with(bits.global_upload, &step, &mut lost[part], bits.feedback);
                theta[part] = plus(&global[part], &step);
            }
        }
        let devices = task.dataset.groups.iter().map(|g| g.devices() as f64);
        let models: Vec<_> = devices.zip(groups.iter().map(|g| &g.theta)).collect();
        let mean = weighted_mean(&models).expect("there are groups");
        for part in 0..3 {
            let (step, lost) = (minus(&mean[part], &global[part]), &mut lost_by_cloud[part]);
            let step = sent_with(bits.global_download, &step, lost, bits.feedback);
            global[part] = plus(&global[part], &step);
        }
        groups.iter_mut().for_each(|g| g.theta = global.clone());
        seen.push(global.clone());
    }
    seen
}

/// Three classes: of two, the last layer's steps are each other's opposite, and which of them is larger a matter of
/// rounding.
const THREE: [&str; 3] = [
    r#"[{"linear": {"out": 4}}, "tanh", {"linear": {"out": 3}}]"#,
    TANH[1],
    TANH[2],
];

fn case(seed: u64, bits: Bits) -> (Experiment, Dataset) {
    let mut e = experiment(seed, [18, 6, 3], THREE);
    e.train.weight_decay = 0.02;
    e.train.halve_every = 7;
    e.compression = bits.settings();
    let mut plan = Plan {
        classes: 3,
        ..Plan::of_groups(&[5, 4, 7])
    };
    let several = plan.devices.iter_mut().flatten().step_by(3);
    several.for_each(|samples| *samples = 2);
    let e = with_algorithm(&checked(&e), Algorithm::CHsgd);
    (e, dataset(seed, &plan))
}

#[test]
fn every_party_of_c_hsgd_works_with_what_it_was_sent() {
    for_seeds(0..60, |seed| {
        let bits = Bits::random(&mut stream(seed));
        let (e, data) = case(seed, bits);
        let task = task(&e, &data);
        let (run, want) = (run(&task), c_hsgd(&task, bits));
        assert_eq!(run.ending, Ending::Finished);
        let aggregated = run.log.states.iter();
        let aggregated = aggregated.filter(|s| s.progress.aggregated == s.progress.t);
        let got: Vec<Theta> = aggregated.map(|s| theta(&s.theta)).collect();
        assert_eq!(got.len(), want.len());
        for (i, (got, want_now)) in got.iter().zip(&want).enumerate() {
            let what = format!("global aggregation {i}, {bits:?}");
            assert_near(got, want_now, &want[0], &what);
        }
    });
}
