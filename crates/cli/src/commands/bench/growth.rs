//! What an iteration costs as one thing grows and all others stay.

use super::{in_own_process, strings};
use crate::args::BenchArgs;
use anyhow::Result;
use selvedge_run::format::{count, table};
use serde_json::{Value, json};

/// The same training with one thing growing.
struct Series {
    what: &'static str,
    /// What each step of growth is called, and the settings that make it.
    steps: Vec<(String, Vec<String>)>,
    /// One thread, or all.
    threads: usize,
}

/// Ten selected devices of each group, so that what does not grow does not matter.
fn selected(of: usize) -> String {
    format!("train.participation={}", 10.0 / of as f64)
}

fn all_series(cores: usize) -> Vec<Series> {
    let series = |what, values: &[usize], settings: &dyn Fn(usize) -> Vec<String>| Series {
        what,
        steps: values
            .iter()
            .map(|value| (count(*value as u64), settings(*value)))
            .collect(),
        threads: cores,
    };
    let participation = |a: usize| vec![format!("train.participation={}", a as f64 / 920.0)];
    let devices = |k: usize| {
        vec![
            format!("data.devices={k}"),
            selected(k),
            "data.test=0.001".into(),
        ]
    };
    let groups = |m: usize| vec![format!("data.groups={m}")];
    let lstm = |hidden: usize| {
        ["hospital", "device"]
            .iter()
            .map(|side| format!("model.{side}=[{{ lstm = {{ hidden = {hidden} }} }}]"))
            .collect()
    };
    let global = |p: usize| vec![format!("train.global_interval={p}")];
    let both = |q: usize| [global(q), vec![format!("train.local_interval={q}")]].concat();
    let intervals = [1, 2, 5, 10, 20];
    let samples = [1_000, 10_000, 100_000];
    vec![
        series(
            "selected devices A of each group, of K = 920",
            &[9, 18, 37, 74, 147, 294],
            &participation,
        ),
        series(
            "devices K of each group, ten of them selected",
            &[100, 1_000, 10_000, 100_000],
            &devices,
        ),
        series("groups M", &[5, 10, 20, 40, 80], &groups),
        series("width of the LSTMs", &[8, 16, 32, 64, 128], &lstm),
        series("P = Q", &intervals, &both),
        series("P, with Q = 1", &intervals, &global),
        Series {
            threads: 1,
            ..series(
                "samples of one hospital, all selected, 1 thread",
                &samples,
                &one_hospital,
            )
        },
        series(
            "samples of one hospital, all selected, all threads",
            &samples,
            &one_hospital,
        ),
    ]
}

fn one_hospital(samples: usize) -> Vec<String> {
    vec![
        "data.groups=1".into(),
        format!("data.devices={samples}"),
        "train.participation=1".into(),
        "data.test=0.001".into(),
    ]
}

pub(super) fn measure(args: &BenchArgs, show: &dyn Fn(&str) -> Result<()>) -> Result<Value> {
    show(
        "\nGrowth: size-esr with one setting changed, ms per iteration (fastest and slowest of the repeats)\n",
    )?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    for series in all_series(cores) {
        let mut rows = vec![strings(&["", "fastest", "slowest", "GFLOP/s", "memory"])];
        for (name, settings) in &series.steps {
            let measured = in_own_process(args, "size-esr", settings, series.threads)?;
            rows.push(vec![
                name.clone(),
                format!("{:.3}", measured.fastest()),
                format!("{:.3}", measured.slowest()),
                format!("{:.1}", measured.flops_per_second() / 1e9),
                format!("{:.0} MB", measured.peak_megabytes),
            ]);
            all.push(json!({ "growing": series.what, "value": name, "measured": measured }));
        }
        show(&format!("\n{}\n{}", series.what, table(&rows)))?;
    }
    Ok(Value::Array(all))
}
