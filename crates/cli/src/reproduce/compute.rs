//! Table IV: how long an iteration computes. The clock of a run takes the paper's numbers, so this is measured apart.

use super::claims::{LEVEL, Verdict, compare};
use super::paper::Compared;
use super::{Claim, PerSeed, Reproduced, Section, of_paper};
use crate::comparison::Options;
use crate::interrupt::is_interrupted;
use crate::load;
use anyhow::Result;
use selvedge_core::experiment::Experiment;
use selvedge_core::run;
use selvedge_core::state::State;
use selvedge_core::task::Task;
use selvedge_data::SETS;
use selvedge_run::format::seconds;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// A turn measures about so many iterations, after an interval that it does not measure.
const ITERATIONS: u64 = 20;
/// How many timings each algorithm has, so that noise shows.
const TIMINGS: u64 = 5;
/// A timing is the least of so many turns, which algorithms take one after another: whatever else the machine does can
/// only add to it.
const TURNS: u64 = 3;

/// Processor seconds of an iteration, divided by the groups that the data has: a merged group does the work of all of
/// them, and its parties work side by side like theirs.
pub(super) fn table4(one: &Reproduced, options: &Options) -> Result<Section> {
    let base = SETS.from_json(&one.comparison.experiment)?;
    let dataset = load::dataset(&base, &options.data)?;
    let groups = dataset.groups.len() as f64;
    let threads = load::threads(Some(1))?;
    let measured = one.interval * (ITERATIONS / one.interval).max(4);
    // Never at its end, which would be evaluated.
    let total = TIMINGS * TURNS * (measured + one.interval) + one.interval;
    let experiments = one.compared().iter().map(|compared| {
        let mut set = compared.set();
        set.push(format!("train.iterations={total}"));
        set.push(format!("train.evaluate_every={total}"));
        SETS.with(&base, &set)
    });
    let experiments: Vec<Experiment> = experiments.collect::<Result<_, _>>()?;
    let mut running = Vec::new();
    for experiment in &experiments {
        let mut task = Task::new(experiment, &dataset)?;
        task.architecture = task.architecture.with_level(options.level);
        let state = State::initial(&task);
        running.push((task, state));
    }
    let mut times: Vec<PerSeed> = vec![Vec::new(); running.len()];
    for turn in 0..TIMINGS * TURNS {
        for ((task, state), times) in running.iter_mut().zip(&mut times) {
            if is_interrupted() {
                break;
            }
            let seconds = threads.install(|| iteration(task, state, measured)) / groups;
            match times.last_mut().filter(|_| turn % TURNS > 0) {
                Some(Some(least)) => *least = least.min(seconds),
                _ => times.push(Some(seconds)),
            }
        }
    }
    let what = "computation per iteration and group";
    let mut section = one.section("table4", "Table IV", what);
    let papers = of_paper(one.compared(), &one.paper.table4, seconds);
    section.row("the paper", papers);
    let least = |t: &PerSeed| t.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let micro = |t: &PerSeed| format!("{:.0} µs", least(t) * 1e6);
    section.row("here, processor time", times.iter().map(micro));
    let hsgd = least(&times[0]);
    let ratio = |t: &PerSeed| format!("{:.2}", least(t) / hsgd);
    section.row("  hsgd = 1", times.iter().map(ratio));
    let others = one.compared().iter().enumerate().skip(1);
    section.claims = others
        .map(|(i, other)| claim(one, (i, other), &times))
        .collect();
    Ok(section)
}

/// Processor seconds of an iteration of all groups, without evaluations: training goes on behind an interval that
/// is not measured for so many iterations.
fn iteration(task: &Task<'_>, state: &mut State, measured: u64) -> f64 {
    let from = state.progress.t + task.experiment.train.global_interval;
    let (mut started, mut elapsed) = (f64::NAN, f64::NAN);
    let result: Result<_, Infallible> = run::train(task, state, |interval| {
        let t = interval.state.progress.t;
        if t == from {
            started = processor_seconds();
        } else if t == from + measured {
            elapsed = processor_seconds() - started;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    });
    let Ok(_) = result;
    elapsed / measured as f64
}

/// Seconds that a processor has worked for this thread: where it is shared, waiting for it is no work.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes to the place that it is given, which is there.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    match read {
        0 => time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64,
        _ => f64::NAN,
    }
}

/// JFL computes longer than HSGD, the others as long: within a fifth is as long.
fn claim(one: &Reproduced, (i, other): (usize, &Compared), times: &[PerSeed]) -> Claim {
    let [ours, theirs] = [0, other.column].map(|column| one.paper.table4[column]);
    let found = compare(&times[0], &times[i]);
    let equal = ours == theirs;
    let ratio = found.ratio.unwrap_or(1.0);
    let near = (0.8..1.25).contains(&ratio);
    let verdict = match (equal, near) {
        (true, true) => Verdict::Holds,
        (true, false) if found.p < LEVEL => Verdict::Reversed,
        (true, false) => Verdict::Open,
        (false, _) => found.verdict(true),
    };
    let sign = if equal { "≈" } else { "<" };
    Claim {
        text: format!("computation: hsgd {sign} {}", other.name),
        between: Some(("computation".into(), other.name.into())),
        paper: format!("{ours} {sign} {theirs} s"),
        verdict,
        ratio: found.ratio,
        found: found.text().replace("seeds", "timings"),
    }
}
