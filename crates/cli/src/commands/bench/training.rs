//! The time of training iterations, without evaluation and without a run directory.

use super::machine::first_value;
use crate::args::BenchArgs;
use crate::commands::{print, train::level};
use crate::load;
use anyhow::Result;
use selvedge_core::experiment::Experiment;
use selvedge_core::run;
use selvedge_core::state::State;
use selvedge_core::task::Task;
use selvedge_run::format;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ops::ControlFlow;
use std::time::Instant;

/// What was measured.
#[derive(Serialize, Deserialize)]
pub(super) struct Measured {
    experiment: String,
    p: u64,
    q: u64,
    pub(super) threads: usize,
    level: String,
    /// Operations in the products of one iteration.
    flops_per_iteration: f64,
    /// Milliseconds per iteration of each repeat.
    ms_per_iteration: Vec<f64>,
    /// Seconds from the start of the process to the end of its first interval.
    first_interval_after: f64,
    pub(super) peak_megabytes: f64,
}

impl Measured {
    pub(super) fn fastest(&self) -> f64 {
        self.ms_per_iteration
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }

    pub(super) fn slowest(&self) -> f64 {
        self.ms_per_iteration.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn flops_per_second(&self) -> f64 {
        self.flops_per_iteration / (self.fastest() / 1e3)
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{}, P = {}, Q = {}, {} threads, {}: {:.3} ms per iteration (slowest {:.3}), {:.1} GFLOP/s, first interval after {}, peak memory {:.0} MB\n",
            self.experiment,
            self.p,
            self.q,
            self.threads,
            self.level,
            self.fastest(),
            self.slowest(),
            self.flops_per_second() / 1e9,
            format::seconds(self.first_interval_after),
            self.peak_megabytes
        )
    }
}

/// Measures an experiment's iterations.
pub(super) fn measure(args: &BenchArgs) -> Result<Measured> {
    let mut repeats = args.repeats;
    chunks(args, |time| {
        repeats -= u64::from(time.is_some());
        Ok(match repeats {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    })
}

/// Measures one chunk for each line on the standard input, and answers with its time: so that somebody can take turns
/// with other programs.
pub(super) fn answer_lines(args: &BenchArgs) -> Result<()> {
    chunks(args, |time| {
        let answer = match time {
            Some(ms) => json!({ "ms_per_iteration": ms, "peak_mb": peak_megabytes() }),
            None => json!({ "ready": true }),
        };
        print(&format!("{answer}\n"))?;
        let asked = std::io::stdin().read_line(&mut String::new())? > 0;
        Ok(match asked {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(())
}

/// Trains for ever, in chunks of about `--seconds`; `between` is told the milliseconds per iteration of each chunk, and
/// once before the first that nothing was timed yet. It says when to stop.
fn chunks(
    args: &BenchArgs,
    between: impl FnMut(Option<f64>) -> Result<ControlFlow<()>> + Send,
) -> Result<Measured> {
    let named = load::experiment(&args.experiment)?;
    let mut experiment = named.experiment;
    // Only the iterations are measured: no evaluation falls due, and that before the first one is a small one.
    let train = &mut experiment.train;
    train.iterations = train.global_interval * 1_000_000_000;
    train.evaluate_every = Some(train.iterations);
    train.loss_samples = 1;
    experiment.stop = Default::default();
    let level = level(args.simd.as_deref())?;
    load::threads(args.threads)?.install(|| {
        let dataset = load::dataset(&experiment, &args.experiment.data)?;
        let mut task = Task::new(&experiment, &dataset)?;
        task.architecture = task.architecture.with_level(level);
        let (times, first_interval_after) = timed(&task, args.seconds, between)?;
        Ok(Measured {
            experiment: named.name,
            p: experiment.train.global_interval,
            q: experiment.train.local_interval,
            threads: rayon::current_num_threads(),
            level: level.name().into(),
            flops_per_iteration: flops(&task, &experiment),
            ms_per_iteration: times,
            first_interval_after,
            peak_megabytes: peak_megabytes(),
        })
    })
}

/// The times of all chunks, and when the first interval ended.
fn timed(
    task: &Task<'_>,
    seconds: f64,
    mut between: impl FnMut(Option<f64>) -> Result<ControlFlow<()>>,
) -> Result<(Vec<f64>, f64)> {
    let global_interval = task.experiment.train.global_interval;
    let mut state = State::initial(task);
    let mut times = Vec::new();
    let mut first_interval_after = None;
    let mut chunk: Option<u64> = None;
    let mut begun = (0, Instant::now());
    run::train(task, &mut state, |interval| {
        let t = interval.state.progress.t;
        if t == 0 || t % global_interval > 0 {
            return Ok::<_, anyhow::Error>(ControlFlow::Continue(()));
        }
        first_interval_after.get_or_insert_with(since_start);
        let (from, start) = begun;
        let elapsed = start.elapsed().as_secs_f64();
        let Some(length) = chunk else {
            // Warming up tells how many iterations fill the time, in whole global intervals.
            if elapsed >= seconds.min(0.2) {
                let wanted = (t - from) as f64 * seconds / elapsed / global_interval as f64;
                chunk = Some((wanted.round() as u64).max(1) * global_interval);
                let flow = between(None)?;
                begun = (t, Instant::now());
                return Ok(flow);
            }
            return Ok(ControlFlow::Continue(()));
        };
        if t - from < length {
            return Ok(ControlFlow::Continue(()));
        }
        let ms = elapsed * 1e3 / length as f64;
        times.push(ms);
        let flow = between(Some(ms))?;
        begun = (t, Instant::now());
        Ok(flow)
    })?;
    Ok((times, first_interval_after.unwrap_or(f64::NAN)))
}

/// Operations in the products of one iteration: both towers and the combined model twice, forward and backward, for
/// every selected sample.
fn flops(task: &Task<'_>, experiment: &Experiment) -> f64 {
    let [combined, hospital, device] = task.architecture.parts().map(|network| {
        let cost = network.cost();
        (cost.forward_flops + cost.backward_flops) as f64
    });
    let selected: usize = task.selected.iter().sum();
    (selected * experiment.data.samples_per_device) as f64 * (2.0 * combined + hospital + device)
}

/// Seconds that this process has been running.
fn since_start() -> f64 {
    let clock = |path, field: usize| -> Option<f64> {
        let text = std::fs::read_to_string(path).ok()?;
        // The name of the process may contain blanks; it stands in brackets.
        let text = text.rsplit_once(')').map_or(&text[..], |(_, rest)| rest);
        text.split_whitespace().nth(field)?.parse().ok()
    };
    let uptime = clock("/proc/uptime", 0);
    // The start time is field 22 of stat, in hundredths of a second; counted from behind the name it is the twentieth.
    let started = clock("/proc/self/stat", 19);
    match (uptime, started) {
        (Some(now), Some(started)) => now - started / 100.0,
        _ => f64::NAN,
    }
}

/// The most memory that this process has had, in megabytes.
fn peak_megabytes() -> f64 {
    first_value("/proc/self/status", "VmHWM")
        .and_then(|text| text.trim_end_matches(" kB").parse::<f64>().ok())
        .map_or(f64::NAN, |kilobytes| kilobytes * 1024.0 / 1e6)
}
