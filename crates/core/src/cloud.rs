//! Global aggregation (lines 3–10 of Algorithm 1): what groups send to the cloud, what it makes of it, and what it sends
//! back.

use crate::adaptive::{self, Report, Verdict};
use crate::aggregate::{global_mean, global_mean_of};
use crate::clock::Rates;
use crate::codec::{Codec, with_feedback};
use crate::compression::{Compression, message_key};
use crate::ledger::{Direction, Kind, Payload};
use crate::model::Model;
use crate::role::Numbers;
use crate::state::{Progress, Residuals, State};
use crate::task::Task;
use rayon::prelude::*;
use selvedge_nn::random::Key;

/// The parts of θ.
pub(crate) const KINDS: [Kind; 3] = [Kind::Theta0, Kind::Theta1, Kind::Theta2];

/// θ = Σ_m (K_m/K) `θ[m]` over the groups that are there; all adopt it. (What an absent group does until it returns is
/// never aggregated, since it returns by adopting θ; so it may as well adopt it now.)
pub(crate) fn aggregate(task: &Task<'_>, state: &mut State) {
    let absent = |m: &usize| task.absent().group(state.progress.t, *m);
    let (away, there): (Vec<usize>, Vec<usize>) = (0..state.groups.len()).partition(absent);
    for m in away {
        // What it has lost since is lost with the rest.
        state.residuals.forget(m);
        if let Some(controller) = &mut state.progress.controller {
            controller.reports[m] = Report::default();
        }
    }
    upload(task, state, &there);
    let before = state.progress.aggregated;
    let returned = |m: &usize| before > 0 && task.absent().group(before, *m);
    let returned: Vec<usize> = there.iter().copied().filter(returned).collect();
    gather(task, state, &there, &returned);
}

/// What the cloud does once the models of those who are there have arrived: the mean, what comes next, and the download.
/// `returned` are those of them who were absent at the aggregation before.
pub(crate) fn gather(
    task: &Task<'_>,
    state: &mut State,
    there: &[usize],
    returned: &[usize],
) -> Announced {
    // The θ that the groups started from, for who steers.
    let before = state.safe.is_some().then(|| state.theta.clone());
    let mut announced = mean(task, state, there);
    let restored = before.is_some_and(|before| steer(task, state, there, before));
    if restored {
        announced = Announced::Restored;
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
    account(task, progress, (there, returned), restored);
    progress.aggregated = progress.t;
    announced
}

/// How θ goes to the groups.
pub(crate) enum Announced {
    /// As it is.
    Whole,
    /// As it is, being a model of before: all begin anew.
    Restored,
    /// θ0, θ1 and θ2 as differences to the θ before.
    Differences([Numbers; 3]),
}

/// Lets the controller look at the aggregated θ: it may begin a segment, or put the last good model in its place. True if it
/// did the latter.
fn steer(task: &Task<'_>, state: &mut State, there: &[usize], before: Model) -> bool {
    let State {
        progress,
        theta,
        safe,
        residuals,
        ..
    } = state;
    match adaptive::steer(task, progress, there, (&before, theta)) {
        Verdict::Unknown => false,
        Verdict::Good => {
            *safe = Some(before);
            false
        }
        Verdict::Restore => {
            if let Some(safe) = safe {
                theta.copy_from(safe);
            }
            // What was lost of models that nobody wants is not to be added to others, being as large as they had become.
            let groups = task.dataset.groups.len();
            *residuals = Residuals::none(&task.compression, task.architecture.widths(), groups);
            true
        }
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
    let codecs = &task.compression;
    if codecs.global_upload == Codec::None {
        return;
    }
    let State {
        progress,
        theta,
        groups,
        residuals: Residuals { uploads, .. },
        ..
    } = state;
    for &m in there {
        let parts = theta.parts().into_iter().zip(groups[m].parts_mut());
        for (((known, model), lost), kind) in parts.zip(uploads[m].parts_mut()).zip(KINDS) {
            let key = message_key(task.experiment.seed, m, kind, progress.t).with(UP);
            step(
                codecs.global_upload,
                codecs.error_feedback,
                key,
                known,
                model,
                lost,
            );
        }
    }
}

/// θ becomes the groups' mean, or what the groups read of it.
fn mean(task: &Task<'_>, state: &mut State, there: &[usize]) -> Announced {
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
        return Announced::Whole;
    }
    let mut mean = theta.clone();
    global_mean(level, &models, &mut mean);
    let keep = task.compression.error_feedback;
    let mut sent = Vec::new();
    let parts = theta.parts().into_iter().zip(mean.parts_mut());
    for (((known, mean), lost), kind) in parts.zip(residuals.cloud.parts_mut()).zip(KINDS) {
        let key = message_key(task.experiment.seed, usize::MAX, kind, progress.t).with(DOWN);
        sent.push(match step(codec, keep, key, known, mean, lost) {
            Some(frame) => Numbers::Frame(frame.into()),
            None => Numbers::dense(mean),
        });
    }
    theta.copy_from(&mean);
    sent.try_into()
        .map_or(Announced::Whole, Announced::Differences)
}

const UP: u64 = 1;
const DOWN: u64 = 2;

/// Sends a part of a model as its difference to `known`, which the receiver has. `model` becomes what the receiver then
/// has. One that is no longer finite goes as it is, and not as a frame: codecs would make it finite, and nobody would see
/// that the run has diverged.
fn step(
    codec: Codec,
    keep: bool,
    key: Key,
    known: &[f32],
    model: &mut [f32],
    residual: &mut [f32],
) -> Option<Vec<u8>> {
    if !model.iter().all(|x| x.is_finite()) {
        return None;
    }
    let difference: Vec<f32> = model
        .iter()
        .zip(known)
        .map(|(new, old)| new - old)
        .collect();
    let (mut sent, mut frame) = (vec![0.0; difference.len()], Vec::new());
    if !keep {
        residual.fill(0.0);
    }
    with_feedback(codec, key, &difference, residual, &mut sent, &mut frame);
    for ((model, known), sent) in model.iter_mut().zip(known).zip(&sent) {
        *model = known + sent;
    }
    Some(frame)
}

/// A part of a group's model on its way to the cloud, which knows the one it began with.
pub(crate) fn pack_upload(
    codecs: &Compression,
    key: Key,
    known: &[f32],
    model: &[f32],
    residual: &mut [f32],
) -> Numbers {
    let mut model = model.to_vec();
    let frame = match codecs.global_upload {
        Codec::None => None,
        codec => {
            let keep = codecs.error_feedback;
            step(codec, keep, key.with(UP), known, &mut model, residual)
        }
    };
    match frame {
        Some(frame) => Numbers::Frame(frame.into()),
        None => Numbers::dense(&model),
    }
}

/// What the cloud reads of it.
pub(crate) fn unpack_upload(
    codec: Codec,
    key: Key,
    sent: &Numbers,
    known: &[f32],
) -> Option<Vec<f32>> {
    let read = sent.unpack(codec, key.with(UP), known.len())?;
    Some(match sent {
        Numbers::Dense(_) => read,
        Numbers::Frame(_) => known
            .iter()
            .zip(read)
            .map(|(known, sent)| known + sent)
            .collect(),
    })
}

/// What a group reads of a part of θ, of `count` numbers: whole, or a difference to the θ of the aggregation that it has.
pub(crate) fn unpack_download(
    codec: Codec,
    key: Key,
    (sent, count): (&Numbers, usize),
    (since, has): (Option<u64>, u64),
    known: &[f32],
) -> Option<Vec<f32>> {
    let read = sent.unpack(codec, key.with(DOWN), count)?;
    match sent {
        Numbers::Dense(_) => Some(read),
        Numbers::Frame(_) if since == Some(has) => Some(
            known
                .iter()
                .zip(read)
                .map(|(known, sent)| known + sent)
                .collect(),
        ),
        Numbers::Frame(_) => None,
    }
}

/// What the aggregation has sent, and how long it takes. A model that was restored goes whole: groups do not have what a
/// difference to it would be.
fn account(
    task: &Task<'_>,
    progress: &mut Progress,
    (there, returned): (&[usize], &[usize]),
    restored: bool,
) {
    let w = task.architecture.widths();
    let theta = [w.n0, w.n1, w.n2];
    let codecs = &task.compression;
    let up = theta.map(|numbers| Payload::coded(codecs.global_upload, numbers));
    let down = theta.map(|numbers| match restored {
        true => Payload::dense(numbers),
        false => Payload::coded(codecs.global_download, numbers),
    });
    for m in there {
        progress.ledger.charge_global(&up, Direction::Up);
        progress.ledger.charge_global(&down, Direction::Down);
        if returned.contains(m) {
            // Who was absent last time has fetched θ since: all of it, not having what a difference is to.
            let whole = theta.map(Payload::dense);
            progress.ledger.charge_global(&whole, Direction::Down);
            if progress.controller.is_some() {
                adaptive::announce(&mut progress.ledger);
            }
        }
    }
    let rates = Rates::new(&task.experiment.time);
    progress.clock.meet(rates.global_aggregation(&up, &down));
}
