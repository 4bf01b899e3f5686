//! Global aggregation (lines 3–10 of Algorithm 1): what groups send to the cloud, what it makes of it, and what it sends
//! back.

use crate::adaptive;
use crate::aggregate::{global_mean, global_mean_of};
use crate::clock::Rates;
use crate::codec::{Codec, with_feedback};
use crate::compression::message_key;
use crate::ledger::{Direction, Kind, Payload};
use crate::model::Model;
use crate::state::{Progress, Residuals, State};
use crate::task::Task;
use rayon::prelude::*;
use selvedge_nn::random::Key;

/// The parts of θ.
const KINDS: [Kind; 3] = [Kind::Theta0, Kind::Theta1, Kind::Theta2];

/// θ = Σ_m (K_m/K) `θ[m]` over the groups that are there; all adopt it. (What an absent group does until it returns is
/// never aggregated, since it returns by adopting θ; so it may as well adopt it now.)
pub(crate) fn aggregate(task: &Task<'_>, state: &mut State) {
    let there: Vec<usize> = (0..state.groups.len())
        .filter(|m| !task.absent().group(state.progress.t, *m))
        .collect();
    upload(task, state, &there);
    // The θ that the groups started from, for who steers.
    let before = state.safe.is_some().then(|| state.theta.clone());
    mean(task, state, &there);
    if let Some(before) = before {
        steer(task, state, before);
    }
    let State {
        progress,
        theta,
        groups,
        ..
    } = state;
    groups
        .par_iter_mut()
        .for_each(|model| model.copy_from(theta));
    account(task, progress, &there);
    progress.aggregated = progress.t;
}

/// Lets the controller look at the aggregated θ: it may begin a segment, or put the last good model in its place. `before` is
/// good if nothing is wrong with what the groups saw of it.
fn steer(task: &Task<'_>, state: &mut State, before: Model) {
    let State {
        progress,
        theta,
        safe,
        ..
    } = state;
    if !adaptive::steer(task, progress, (&before, theta)) {
        *safe = Some(before);
    } else if let Some(safe) = safe {
        theta.copy_from(safe);
    }
}

/// Some parts of θ become the mean of all groups, which adopt it: for algorithms that send it their own way.
pub(crate) fn adopt_mean(task: &Task<'_>, state: &mut State, parts: &[usize]) {
    let State {
        progress,
        theta,
        groups,
        ..
    } = state;
    let data = task.dataset.groups.iter();
    let devices = data.map(|group| group.devices() as u64);
    let models: Vec<(u64, &Model)> = devices.zip(&*groups).collect();
    global_mean_of(task.architecture.level(), &models, parts, theta);
    groups
        .par_iter_mut()
        .for_each(|model| model.copy_from(theta));
    progress.aggregated = progress.t;
}

/// Groups send their models. `θ[m]` becomes what the cloud reads of it.
fn upload(task: &Task<'_>, state: &mut State, there: &[usize]) {
    let codec = task.compression.global_upload;
    if codec == Codec::None {
        return;
    }
    let State {
        progress,
        theta,
        groups,
        residuals: Residuals { uploads, .. },
        ..
    } = state;
    let keep = task.compression.error_feedback;
    for &m in there {
        let key = |kind| message_key(task.experiment.seed, m, kind, progress.t).with(UP);
        step(codec, keep, key, theta, &mut groups[m], &mut uploads[m]);
    }
}

/// θ becomes the groups' mean, or what the groups read of it.
fn mean(task: &Task<'_>, state: &mut State, there: &[usize]) {
    let (level, codec) = (task.architecture.level(), task.compression.global_download);
    let State {
        progress,
        theta,
        groups,
        residuals,
        ..
    } = state;
    let devices = |m: usize| task.dataset.groups[m].devices() as u64;
    let models: Vec<(u64, &Model)> = there.iter().map(|&m| (devices(m), &groups[m])).collect();
    if codec == Codec::None || there.is_empty() {
        global_mean(level, &models, theta);
        return;
    }
    let mut mean = theta.clone();
    global_mean(level, &models, &mut mean);
    let keep = task.compression.error_feedback;
    let key = |kind| message_key(task.experiment.seed, usize::MAX, kind, progress.t).with(DOWN);
    step(codec, keep, key, theta, &mut mean, &mut residuals.cloud);
    theta.copy_from(&mean);
}

const UP: u64 = 1;
const DOWN: u64 = 2;

/// Sends `model` as its difference to `known`, which the receiver has. `model` becomes what the receiver then has. One
/// that is no longer finite goes as it is: codecs would make it so, and nobody would see that the run has diverged.
fn step(
    codec: Codec,
    keep: bool,
    key: impl Fn(Kind) -> Key,
    known: &Model,
    model: &mut Model,
    residual: &mut Model,
) {
    if !model.is_finite() {
        return;
    }
    let (mut difference, mut sent, mut frame) = (Vec::new(), Vec::new(), Vec::new());
    let parts = known.parts().into_iter().zip(model.parts_mut());
    for (((known, model), residual), kind) in parts.zip(residual.parts_mut()).zip(KINDS) {
        difference.clear();
        difference.extend(model.iter().zip(known).map(|(new, old)| new - old));
        sent.clear();
        sent.resize(difference.len(), 0.0);
        if !keep {
            residual.fill(0.0);
        }
        let key = key(kind);
        with_feedback(codec, key, &difference, residual, &mut sent, &mut frame);
        for ((model, known), sent) in model.iter_mut().zip(known).zip(&sent) {
            *model = known + sent;
        }
    }
}

/// What the aggregation has sent, and how long it takes.
fn account(task: &Task<'_>, progress: &mut Progress, there: &[usize]) {
    let w = task.architecture.widths();
    let theta = [w.n0, w.n1, w.n2];
    let codecs = &task.compression;
    let up = theta.map(|numbers| Payload::coded(codecs.global_upload, numbers));
    let down = theta.map(|numbers| Payload::coded(codecs.global_download, numbers));
    let before = progress.aggregated;
    for &m in there {
        progress.ledger.charge_global(&up, Direction::Up);
        progress.ledger.charge_global(&down, Direction::Down);
        if before > 0 && task.absent().group(before, m) {
            // Who was absent last time has fetched θ since: all of it, not having what a difference is to.
            let whole = theta.map(Payload::dense);
            progress.ledger.charge_global(&whole, Direction::Down);
        }
    }
    let rates = Rates::new(&task.experiment.time);
    progress.clock.meet(rates.global_aggregation(&up, &down));
}
