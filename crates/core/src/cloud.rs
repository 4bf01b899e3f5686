//! Global aggregation (lines 3–10 of Algorithm 1): what groups send to the cloud, what it makes of it, and what it
//! sends back.

use crate::adaptive::{self, Report, Verdict};
use crate::aggregate;
use crate::checks::{self, Reason, squared_length};
use crate::clock::Rates;
use crate::ledger::{Direction, Kind, Payload};
use crate::message_path::{Leg, Numbers, Route};
use crate::model::Model;
use crate::optimiser::{Memories, Mover};
use crate::reversal::Heading;
use crate::state::{Progress, Residuals, State};
use crate::task::Task;
use rayon::prelude::*;

/// The parts of θ.
pub(crate) const KINDS: [Kind; 3] = [Kind::Theta0, Kind::Theta1, Kind::Theta2];

/// θ = Σ_m (K_m/K) `θ[m]` over the groups that are there; all adopt it. (What an absent group does until it returns is
/// never aggregated, since it returns by adopting θ; so it may as well adopt it now.)
pub(crate) fn aggregate(task: &Task<'_>, state: &mut State) {
    let t = state.progress.t;
    let absent = |m: &usize| task.is_group_absent(t, *m);
    let (mut away, mut there): (Vec<usize>, Vec<usize>) = (0..state.groups.len()).partition(absent);
    let before = state.progress.aggregated;
    let left_out = state.progress.left_out.clone();
    let was_left_out = |m: &usize| left_out.iter().any(|(out, _)| out == m);
    let returned = |m: &usize| before > 0 && (task.is_group_absent(before, *m) || was_left_out(m));
    upload(task, state, &there);
    leave_out(task, state, &mut there);
    away.extend(state.progress.left_out.iter().map(|(m, _)| *m));
    for m in away {
        // What it has lost since is lost with the rest.
        state.residuals.forget(m);
        state.memories.forget(m);
        if let Some(controller) = &mut state.progress.controller {
            controller.reports[m] = Report::default();
        }
    }
    let returned: Vec<usize> = there.iter().copied().filter(returned).collect();
    gather(task, state, &there, &returned);
}

/// Those whose model cannot be used, or who have sent too many of that kind, are not there.
pub(crate) fn leave_out(task: &Task<'_>, state: &mut State, there: &mut Vec<usize>) {
    let State {
        progress,
        theta,
        groups,
        reversals,
        ..
    } = state;
    let quarantined = progress.quarantined_groups(task);
    progress.left_out.clear();
    let defence = &task.experiment.defence;
    let Some(limit) = task.limit(defence.group_limit) else {
        return;
    };
    let reach = reach(task, progress);
    let conduct = &mut progress.conduct;
    // They may be there or not: nobody waits for them.
    let mut heard = std::mem::take(there);
    heard.retain(|m| !quarantined.contains(m));
    let quarantined = quarantined.into_iter().map(|m| (m, Reason::Quarantined));
    let usual = |half: usize, median: f64| conduct.usual(half, median / reach) * reach;
    let verdicts = judge(task, (theta, groups), &heard, (limit, usual));
    let sound = heard.iter().zip(&verdicts).filter(|(_, v)| v.is_none());
    let sound: Vec<(usize, u64)> = sound.map(|(m, _)| (*m, devices(task, *m))).collect();
    let seed = task.experiment.seed;
    let headings = match defence.reversal > 0.0 {
        true => reversals.observe(seed, defence.reversal, (theta, groups), &sound),
        false => vec![Heading::Forward; groups.len()],
    };
    for (m, verdict) in heard.iter().zip(verdicts) {
        let (who, heading) = (*m as u32, headings[*m]);
        let verdict = verdict.or_else(|| (heading > Heading::Forward).then_some(Reason::Reversed));
        match verdict {
            None => {
                conduct.behaved(who);
                there.push(*m);
                continue;
            }
            // It may be chance.
            Some(Reason::Reversed) if heading == Heading::Suspect => {}
            Some(_) => conduct.offended(who),
        }
        reversals.left_out(*m);
        progress.left_out.extend(verdict.map(|reason| (*m, reason)));
    }
    progress.left_out.extend(quarantined);
    progress.left_out.sort_unstable();
}

/// K_m
fn devices(task: &Task<'_>, group: usize) -> u64 {
    task.dataset.groups[group].devices() as u64
}

/// How far groups may have gone since the last aggregation, squared, but for a factor.
fn reach(task: &Task<'_>, progress: &Progress) -> f64 {
    let (schedule, since) = (task.schedule(), progress.aggregated..progress.t);
    let reach: f64 = since.map(|t| schedule.rate(&progress.segment, t)).sum();
    reach * reach
}

/// What is wrong with the models of groups: of each, the hospital's half or the edge's may be.
fn judge(
    task: &Task<'_>,
    (theta, groups): (&Model, &[Model]),
    there: &[usize],
    (limit, mut usual): (f64, impl FnMut(usize, f64) -> f64),
) -> Vec<Option<Reason>> {
    let mut half = |half: usize, parts: &[usize]| {
        let length = |m: &usize| {
            let (from, to) = (theta.parts(), groups[*m].parts());
            let parts = parts
                .iter()
                .map(|part| squared_length(to[*part], Some(from[*part])));
            (devices(task, *m), parts.sum())
        };
        let lengths: Vec<(u64, f64)> = there.par_iter().map(length).collect();
        checks::judge(&lengths, limit, |median| usual(half, median))
    };
    let (hospitals, edges) = (half(0, &[0, 1]), half(1, &[2]));
    hospitals
        .into_iter()
        .zip(edges)
        .map(|(a, b)| a.or(b))
        .collect()
}

/// What the cloud does once the models of those who are there have arrived: the mean, what comes next, and the
/// download. `returned` are those of them who were absent at the aggregation before.
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
    /// θ0, θ1 and θ2 as steps from the θ before.
    Steps([Numbers; 3]),
}

/// Lets the controller look at the aggregated θ: it may begin a segment, or put the last good model in its place. True
/// if it did the latter.
fn steer(task: &Task<'_>, state: &mut State, there: &[usize], before: Model) -> bool {
    let State {
        progress,
        theta,
        safe,
        residuals,
        memories,
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
            // What was lost of models that nobody wants is not to be added to others, being as large as they had
            // become.
            let groups = task.dataset.groups.len();
            let widths = task.architecture.widths();
            *residuals = Residuals::none(&task.compression, widths, groups);
            *memories = Memories::new(&task.optimisers, widths, groups);
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
        memories,
        ..
    } = state;
    let data = task.dataset.groups.iter();
    let devices = data.map(|group| group.devices() as u64);
    let models: Vec<(u64, &Model)> = devices.zip(&*groups).collect();
    let level = task.architecture.level();
    let mover = task.cloud_mover(&progress.segment, progress.t);
    let before = (!mover.adopts()).then(|| theta.clone());
    aggregate::of_groups(&*task.aggregation.cloud, level, &models, parts, theta);
    if let Some(before) = &before {
        step(mover, parts, before, theta, &mut memories.cloud);
    }
    groups
        .par_iter_mut()
        .for_each(|model| model.copy_from(theta));
    progress.aggregated = progress.t;
}

/// Some parts of θ step from where they were towards what the groups' models have aggregated to.
fn step(mover: Mover<'_>, parts: &[usize], before: &Model, theta: &mut Model, memory: &mut Model) {
    let (theta, memory) = (theta.parts_mut(), memory.parts_mut());
    for &part in parts {
        let mut moved = before.parts()[part].to_vec();
        mover.move_on(&mut moved, &mut *theta[part], &mut *memory[part]);
        *theta[part] = moved;
    }
}

/// Groups send their models. `θ[m]` becomes what the cloud reads of it.
fn upload(task: &Task<'_>, state: &mut State, there: &[usize]) {
    let State {
        progress,
        theta,
        groups,
        residuals: Residuals { uploads, .. },
        ..
    } = state;
    let mut frame = Vec::new();
    if let Some(attack) = &task.attack {
        for &m in there {
            attack.of_group(progress.t, m, theta, &mut groups[m]);
        }
    }
    for (&m, part) in there.iter().flat_map(|m| [0, 1, 2].map(|part| (m, part))) {
        let route = task.route(Leg::Upload(KINDS[part]), m, progress.t);
        if !route.changes_nothing() {
            let model = &mut *groups[m].parts_mut()[part];
            let lost = &mut *uploads[m].parts_mut()[part];
            route.send(model, theta.parts()[part], lost, &mut frame);
        }
    }
}

/// θ becomes the groups' mean, or what the groups read of it.
fn mean(task: &Task<'_>, state: &mut State, there: &[usize]) -> Announced {
    let level = task.architecture.level();
    let State {
        progress,
        theta,
        groups,
        residuals,
        memories,
        ..
    } = state;
    let routes = KINDS.map(|kind| task.route(Leg::Download(kind), 0, progress.t));
    let weighted = there.iter().map(|&m| (devices(task, m), &groups[m]));
    let models: Vec<(u64, &Model)> = weighted.collect();
    if there.is_empty() {
        return Announced::Whole; // θ stays
    }
    let whole = routes.iter().all(Route::changes_nothing);
    let mover = task.cloud_mover(&progress.segment, progress.t);
    let before = (!whole || !mover.adopts()).then(|| theta.clone());
    let all = [0, 1, 2];
    aggregate::of_groups(&*task.aggregation.cloud, level, &models, &all, theta);
    let Some(before) = before else {
        return Announced::Whole;
    };
    step(mover, &all, &before, theta, &mut memories.cloud);
    if whole {
        return Announced::Whole;
    }
    let mut part = 0;
    Announced::Steps(routes.map(|route| {
        let (mean, known) = (&mut *theta.parts_mut()[part], before.parts()[part]);
        let lost = &mut *residuals.cloud.parts_mut()[part];
        part += 1;
        route.pack_in_place(mean, known, lost)
    }))
}

/// What the aggregation has sent, and how long it takes. A model that was restored goes whole: groups do not have what
/// a difference to it would be.
fn account(
    task: &Task<'_>,
    progress: &mut Progress,
    (there, returned): (&[usize], &[usize]),
    restored: bool,
) {
    let w = task.architecture.widths();
    let theta = [w.n0, w.n1, w.n2];
    let path = &task.compression;
    let up = theta.map(|numbers| path.payload(Leg::Upload(Kind::Theta0), numbers));
    let down = theta.map(|numbers| match restored {
        true => Payload::dense(numbers),
        false => path.payload(Leg::Download(Kind::Theta0), numbers),
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
