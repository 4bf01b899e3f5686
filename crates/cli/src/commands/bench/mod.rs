//! `selvedge bench`: how fast this machine trains, and how close that is to what it could do.
//!
//! Each training is measured in a process of its own, so that threads and peak memory are its own too.

mod deployed;
mod growth;
mod kernels;
mod machine;
mod training;

use super::{print, print_either, print_json};
use crate::Outcome;
use crate::args::BenchArgs;
use anyhow::{Context, Result, bail};
use machine::Machine;
use selvedge_run::format::table;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use training::Measured;

/// The work sizes that are measured when nothing else is asked for.
const SIZES: [&str; 3] = ["size-esr", "size-physionet", "size-cnn"];

pub(crate) fn run(args: &BenchArgs) -> Result<Outcome> {
    if args.lines {
        training::answer_lines(args)?;
        return Ok(Outcome::Done);
    }
    if args.deployed {
        return deployed::run(args);
    }
    if args.experiment.experiment.is_some() {
        let measured = training::measure(args)?;
        return print_either(args.json, &measured, &measured.text());
    }
    if !args.experiment.set.is_empty() {
        bail!("--set changes an experiment: name one, like `selvedge bench size-esr --set …`");
    }
    let everything = !args.kernels && !args.growth && !args.machine;
    let machine = Machine::measure();
    let mut result = json!({ "machine": machine });
    let show = |text: &str| if args.json { Ok(()) } else { print(text) };
    show(&machine.text())?;
    if args.kernels || everything {
        let kernels = kernels::measure();
        show(&kernels::text(&kernels))?;
        result["kernels"] = serde_json::to_value(&kernels)?;
    }
    if everything {
        result["training"] = sizes(args, &machine, &show)?;
    }
    if args.growth {
        result["growth"] = growth::measure(args, &show)?;
    }
    if args.json {
        print_json(&result)?;
    }
    Ok(Outcome::Done)
}

/// Every work size with P = Q = 1 and 5, on one thread and on all.
fn sizes(args: &BenchArgs, machine: &Machine, show: &dyn Fn(&str) -> Result<()>) -> Result<Value> {
    show("\nTraining, ms per iteration (fastest and slowest of the repeats)\n")?;
    let mut rows = vec![strings(&[
        "size", "P = Q", "threads", "fastest", "slowest", "of peak", "memory",
    ])];
    let mut all = Vec::new();
    for size in SIZES {
        for interval in [1, 5] {
            let mut counts = vec![1, machine.cores];
            counts.dedup();
            for threads in counts {
                let settings = [
                    format!("train.global_interval={interval}"),
                    format!("train.local_interval={interval}"),
                ];
                let measured = in_own_process(args, size, &settings, threads)?;
                let peak = machine.peak * measured.threads.min(machine.cores) as f64;
                rows.push(vec![
                    size.trim_start_matches("size-").into(),
                    interval.to_string(),
                    measured.threads.to_string(),
                    format!("{:.3}", measured.fastest()),
                    format!("{:.3}", measured.slowest()),
                    format!("{:.0} %", 100.0 * measured.flops_per_second() / peak),
                    format!("{:.0} MB", measured.peak_megabytes),
                ]);
                all.push(serde_json::to_value(&measured)?);
            }
        }
    }
    show(&table(&rows))?;
    Ok(Value::Array(all))
}

/// Measures one training in a process of its own.
fn in_own_process(
    args: &BenchArgs,
    experiment: &str,
    settings: &[String],
    threads: usize,
) -> Result<Measured> {
    let mut command = Command::new(std::env::current_exe().context("cannot find selvedge itself")?);
    command.args(["bench", experiment, "--json", "--threads"]);
    command.arg(threads.to_string());
    command.args(["--repeats", &args.repeats.to_string()]);
    command.args(["--seconds", &args.seconds.to_string()]);
    if let Some(simd) = &args.simd {
        command.args(["--simd", simd]);
    }
    for setting in settings {
        command.args(["--set", setting]);
    }
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start selvedge again")?;
    if !output.status.success() {
        bail!("measuring {experiment} failed");
    }
    serde_json::from_slice(&output.stdout).context("cannot read the measurement")
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
