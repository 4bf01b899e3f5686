//! What this machine is and what it can do at most: measured, not looked up.

use super::kernels::best_time;
use selvedge_nn::limits;
use selvedge_nn::simd::Level;
use serde::Serialize;
use std::fs::read_to_string;
use std::time::Instant;

/// Numbers in each of the arrays that are streamed: far more than any cache holds.
const STREAMED: usize = 16 << 20;

/// The machine.
#[derive(Serialize)]
pub(super) struct Machine {
    cpu: String,
    pub(super) cores: usize,
    memory_gb: f64,
    system: String,
    version: &'static str,
    level: &'static str,
    /// Floating-point operations a second of one core.
    pub(super) peak: f64,
    /// Bytes a second of one core, and of all, that read two arrays and write a third.
    bandwidth: f64,
    bandwidth_of_all: f64,
}

impl Machine {
    pub(super) fn measure() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let level = Level::detect();
        Machine {
            cpu: first_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into()),
            cores,
            memory_gb: first_value("/proc/meminfo", "MemTotal")
                .and_then(|text| text.trim_end_matches(" kB").parse::<f64>().ok())
                .map_or(0.0, |kilobytes| kilobytes * 1024.0 / 1e9),
            system: read_to_string("/proc/sys/kernel/osrelease").map_or_else(
                |_| std::env::consts::OS.into(),
                |v| format!("Linux {}", v.trim()),
            ),
            version: env!("CARGO_PKG_VERSION"),
            level: level.name(),
            peak: peak(level),
            bandwidth: bandwidth(1),
            bandwidth_of_all: bandwidth(cores),
        }
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{}, {} cores, {:.0} GB, {}; selvedge {} with {}\n\
             peak of one core {:.1} GFLOP/s (multiply-adds in registers), memory {:.1} GB/s on one core, {:.1} GB/s on all\n",
            self.cpu,
            self.cores,
            self.memory_gb,
            self.system,
            self.version,
            self.level,
            self.peak / 1e9,
            self.bandwidth / 1e9,
            self.bandwidth_of_all / 1e9,
        )
    }
}

/// What stands behind a word in one of the system's files.
pub(super) fn first_value(path: &str, word: &str) -> Option<String> {
    let text = read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(word))?;
    Some(line.split_once(':')?.1.trim().into())
}

/// Operations a second of one core on these instructions.
pub(super) fn peak(level: Level) -> f64 {
    let rounds = 20_000;
    let mut operations = 0;
    let seconds = best_time(|| operations = limits::multiply_adds(level, rounds));
    operations as f64 / seconds
}

/// Bytes a second of so many threads that compute `c = a + 3 b`.
fn bandwidth(threads: usize) -> f64 {
    let mut arrays: Vec<_> = (0..threads)
        .map(|_| {
            let length = STREAMED / threads;
            (
                vec![1.0f32; length],
                vec![2.0f32; length],
                vec![0.0f32; length],
            )
        })
        .collect();
    let mut best = f64::INFINITY;
    for _ in 0..4 {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (a, b, c) in &mut arrays {
                scope.spawn(|| {
                    limits::triad(a, b, c);
                });
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    3.0 * 4.0 * STREAMED as f64 / best
}
