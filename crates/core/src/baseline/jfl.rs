//! JFL: no local aggregation. For each drawn device the hospital keeps (θ0, θ1) of its own; such a pair trains
//! together, and all pairs' models go to the cloud.
//!
//! ```text
//! t = 0      Q      2Q     …      P
//!     ├──────┼──────┼──────┼──────┤
//!     A_m is drawn; every Q each pair exchanges ζ2 for (θ0, ζ1), then both take Q steps;  at P the cloud averages
//! ```
//!
//! Nothing crosses pairs between two global aggregations, so the loop goes from one to the next. With P = Q = 1 a mean
//! of models one step away is one step of the mean gradient: the same steps as HSGD's, where all devices have equally
//! many samples.

use super::wave::Wave;
use crate::clock::Rates;
use crate::cloud;
use crate::exchange::{Embeddings, Frozen};
use crate::experiment::Side;
use crate::group::{Turnout, Workspaces};
use crate::hsgd;
use crate::ledger::{Direction, Kind, Link, Payload};
use crate::local_steps::{
    Batch, DeviceWorkspace, Owned, Stepped, Steps, TowerWorkspace, device_steps, hospital_steps,
};
use crate::model::Model;
use crate::run::AlgorithmSteps;
use crate::schedule::Segment;
use crate::state::{Progress, State};
use crate::task::Task;
use rayon::prelude::*;

/// The algorithm, for the driver ([`run::train`](crate::run::train)).
pub(crate) fn steps_of<'a>(task: &'a Task<'_>) -> AlgorithmSteps<'a> {
    let w = task.architecture.widths();
    let workspaces =
        Workspaces::new(move || Wave::new(task, w.n0 + w.n1 + w.n2, || PairWorkspace::new(task)));
    AlgorithmSteps {
        before: |_, _| {},
        interval: Box::new(move |state, groups| {
            let started = task.stopwatch.map(|now| now());
            pairs_train(task, state, groups, &workspaces);
            account(task, &mut state.progress, groups, started);
        }),
        aggregate: |task, state| cloud::adopt_mean(task, state, &[0, 1, 2]),
    }
}

/// The buffers of a pair.
struct PairWorkspace {
    hospital_side: Embeddings,
    device_side: Embeddings,
    frozen: Frozen,
    /// θ2 at the exchange.
    start: Vec<f32>,
    hospital: TowerWorkspace,
    device: DeviceWorkspace,
}

impl PairWorkspace {
    fn new(task: &Task<'_>) -> Self {
        let architecture = &task.architecture;
        PairWorkspace {
            hospital_side: Embeddings::new(true),
            device_side: Embeddings::new(true),
            frozen: Frozen::new(architecture),
            start: vec![0.0; architecture.device.params()],
            hospital: TowerWorkspace::new(architecture, Side::Hospital, 1),
            device: DeviceWorkspace::new(architecture),
        }
    }
}

/// Each group draws its devices; each pair trains for P iterations; `θ[m]` becomes the mean over the pairs.
fn pairs_train(
    task: &Task<'_>,
    state: &mut State,
    groups: &mut [Turnout],
    workspaces: &Workspaces<'_, Wave<PairWorkspace>>,
) {
    let Progress { t, segment, .. } = state.progress;
    let work = groups.par_iter_mut().zip(&mut state.groups).enumerate();
    work.for_each(|(m, (group, model))| {
        group.draw(task, m, t);
        workspaces.with(|wave| {
            let mean = wave.mean(task, group.subset.len(), |position, own, workspace| {
                pair_trains(
                    task,
                    (m, segment, t),
                    group,
                    position,
                    (model, own),
                    workspace,
                );
            });
            let (theta0, rest) = mean.split_at(model.theta0.len());
            let (theta1, theta2) = rest.split_at(model.theta1.len());
            model.theta0.copy_from_slice(theta0);
            model.theta1.copy_from_slice(theta1);
            model.theta2.copy_from_slice(theta2);
        });
    });
    state.progress.t = t + segment.global_interval;
}

/// P iterations of one pair, from its group's model to its own.
fn pair_trains(
    task: &Task<'_>,
    (m, segment, t): (usize, Segment, u64),
    group: &Turnout,
    position: usize,
    (model, own): (&Model, &mut [f32]),
    workspace: &mut PairWorkspace,
) {
    let (theta0, rest) = own.split_at_mut(model.theta0.len());
    let (theta1, theta2) = rest.split_at_mut(model.theta1.len());
    theta0.copy_from_slice(&model.theta0);
    theta1.copy_from_slice(&model.theta1);
    theta2.copy_from_slice(&model.theta2);
    let rows = &group.rows[group.starts[position] as usize..group.starts[position + 1] as usize];
    let architecture = &task.architecture;
    let descents = (task.pair_descent(), task.device_descent());
    let samples = &task.dataset.groups[m].samples;
    let inputs = architecture.device.input().len();
    let first_row = rows[0] as usize;
    let PairWorkspace {
        hospital_side,
        device_side,
        frozen,
        start,
        hospital,
        device,
    } = workspace;
    let intervals = segment.global_interval / segment.local_interval;
    for first in (0..intervals).map(|i| t + i * segment.local_interval) {
        let steps = Steps { segment, first };
        device_side.embed(&architecture.device, theta2, &samples.x2, rows);
        hospital_side.embed(&architecture.hospital, theta1, &samples.x1, rows);
        frozen.freeze(architecture, theta0, theta2);
        start.copy_from_slice(theta2);
        let batch = Batch {
            samples,
            y: &samples.y,
            rows,
            starts: &[0, rows.len() as u32],
            present: &[true],
            other: &device_side.zeta,
            tapes: &hospital_side.tapes,
        };
        let stepped = Stepped::plain(theta0, theta1);
        hospital_steps(architecture, descents.0, steps, batch, stepped, hospital);
        let owned = Owned {
            x2: &samples.x2[first_row * inputs..][..rows.len() * inputs],
            y: (&samples.y, first_row..first_row + rows.len()),
            zeta1: &hospital_side.zeta,
            tapes: &device_side.tapes,
        };
        let thetas = (&start[..], &mut *theta2);
        let descent = descents.1;
        device_steps(architecture, descent, steps, owned, frozen, thetas, device);
    }
}

/// Each pair's exchanges, and all pairs' models to the cloud and back.
fn account(task: &Task<'_>, progress: &mut Progress, groups: &[Turnout], started: Option<f64>) {
    use {Direction::*, Kind::*, Link::*};
    let w = task.architecture.widths();
    let rates = Rates::new(&task.experiment.time);
    let Segment {
        global_interval,
        local_interval,
        ..
    } = progress.segment;
    let exchanges = (global_interval / local_interval) as usize;
    let theta = [w.n0, w.n1, w.n2].map(Payload::dense);
    let seconds = hsgd::compute(task, global_interval, started);
    let mut download: f64 = 0.0;
    let Progress { ledger, clock, .. } = progress;
    for (m, group) in groups.iter().enumerate() {
        let (sizes, traffic) = (&group.messages, group.traffic());
        let (pairs, samples) = (traffic.devices, traffic.samples * exchanges);
        let messages = pairs * exchanges;
        let (theta0, zeta1) = (
            sizes.theta0_to_device.times(messages),
            sizes.zeta1.times(samples),
        );
        ledger.charge(
            DeviceHospital,
            Zeta2,
            Up,
            messages,
            sizes.zeta2.times(samples),
        );
        ledger.charge(DeviceHospital, Theta0, Down, messages, theta0);
        ledger.charge(DeviceHospital, Zeta1, Down, messages, zeta1);
        for (link, kind, each) in [
            (HospitalCloud, Theta0, theta[0]),
            (HospitalCloud, Theta1, theta[1]),
            (DeviceCloud, Theta2, theta[2]),
        ] {
            ledger.charge_both_ways(link, kind, pairs, each);
        }
        let exchange = rates.pair_exchange(sizes, traffic);
        clock.advance(m, exchange * exchanges as f64 + seconds);
        clock.advance(m, rates.pair_upload(&theta, pairs));
        download = download.max(rates.pair_download(&theta, pairs));
    }
    // The cloud has the mean when the last group's models are there.
    clock.meet(download);
}
