//! `bench`: what it measures is there, and makes sense.

use crate::common::Place;
use crate::common::process::finish;
use crate::common::selvedge;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

const QUICK: [&str; 4] = ["--seconds", "0.01", "--repeats", "2"];

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text:?}"))
}

#[test]
fn an_experiment_is_measured() {
    let place = Place::new("bench");
    let bench = |more: &[&str]| {
        let args = ["bench", "size-esr", "--json", "--threads", "1"];
        json(&place.succeeds(&[&args[..], &QUICK, more].concat()).stdout)
    };
    let one = bench(&[]);
    assert_eq!(one["ms_per_iteration"].as_array().unwrap().len(), 2);
    let fastest = |measured: &Value| {
        let times = measured["ms_per_iteration"].as_array().unwrap().iter();
        times
            .map(|ms| ms.as_f64().unwrap())
            .fold(f64::INFINITY, f64::min)
    };
    assert!(fastest(&one) > 0.0);
    assert!(one["peak_megabytes"].as_f64().unwrap() > 1.0);
    // Of each sample, both LSTMs and the combined model on both sides, every product once forward and its gradients.
    let lstm = |steps: f64, inputs: f64, hidden: f64| {
        let (of_input, of_hidden) = (
            8.0 * inputs * hidden * steps,
            8.0 * hidden * hidden * (steps - 1.0),
        );
        2.0 * of_input + 3.0 * of_hidden
    };
    let combined = 3.0 * 2.0 * 64.0 * 5.0;
    let expected = 180.0 * (2.0 * lstm(12.0, 8.0, 32.0) + 2.0 * combined);
    assert_eq!(one["flops_per_iteration"].as_f64().unwrap(), expected);

    // Eight times as many selected devices take more than three times as long, however noisy the machine.
    let eight = bench(&["--set", "train.participation=0.16"]);
    assert!(fastest(&eight) > 3.0 * fastest(&one), "{eight} {one}");
    assert!(
        std::fs::read_dir(place.path()).unwrap().next().is_none(),
        "it writes no files"
    );
}

#[test]
fn machine_and_kernels_are_described() {
    let place = Place::new("machine");
    let found = json(&place.succeeds(&["bench", "--kernels", "--json"]).stdout);
    assert!(found["machine"]["peak"].as_f64().unwrap() > 1e8);
    assert!(found["machine"]["bandwidth"].as_f64().unwrap() > 1e8);
    for kernel in found["kernels"].as_array().unwrap() {
        for pass in ["forward", "backward", "step"] {
            let share = kernel[pass]["share_of_peak"].as_f64().unwrap();
            // On a busy machine the peak is measured too low.
            assert!(share > 0.0 && share < 2.0, "{kernel}");
        }
    }
    let text = place.succeeds(&["bench", "--machine"]).stdout;
    assert!(text.contains("GFLOP/s") && text.contains("GB/s"), "{text}");
}

#[test]
fn one_chunk_is_timed_for_each_line() {
    let place = Place::new("lines");
    let mut command = selvedge(place.path());
    command.args(["bench", "size-esr", "--lines", "--seconds", "0.01"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\n\n\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines: Vec<Value> = std::str::from_utf8(&output.stdout)
        .unwrap()
        .lines()
        .map(json)
        .collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[0]["ready"], true);
    assert!(
        lines[1..]
            .iter()
            .all(|l| l["ms_per_iteration"].as_f64().unwrap() > 0.0)
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new("bench-refuses");
    for (args, parts) in [
        (&["bench", "size-ers"][..], &["size-ers", "size-esr"][..]),
        (&["bench", "--set", "seed=1"], &["name one"]),
        (&["bench", "--seconds", "0"], &["0.001 to 3600"]),
        (&["bench", "--threads", "2"], &["EXPERIMENT"]),
        (&["bench", "size-esr", "--simd", "mmx"], &["mmx", "plain"]),
        (&["bench", "size-esr", "--growth"], &["--growth"]),
    ] {
        let ran = finish(selvedge(place.path()).args(args));
        ran.refused(parts);
    }
}
