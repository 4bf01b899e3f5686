//! The numbers of a comparison: against the metrics of its runs, and its runs against those of `selvedge train`.

use crate::common::run::{Run, number, same_results};
use crate::common::{ALGORITHMS, Place, says, words};
use crate::tables::{COLUMNS, close, csv, spread, text_row};
use crate::{SHORT, same_comparison};
use serde_json::Value;
use std::fs;

/// A target: how it is asked for, its heading, and what a line of metrics has to say to meet it.
struct Target {
    metric: &'static str,
    value: f64,
    heading: &'static str,
    meets: fn(&Value, f64) -> bool,
}

const TARGETS: [Target; 3] = [
    Target {
        metric: "auc",
        value: 0.85,
        heading: "validation AUC ≥ 0.85",
        meets: |line, value| number(line, "auc_validation") >= value,
    },
    Target {
        metric: "loss",
        value: 0.45,
        heading: "training loss ≤ 0.45",
        meets: |line, value| number(line, "loss_train") <= value,
    },
    Target {
        metric: "f1",
        value: 0.999,
        heading: "validation F1 ≥ 0.999",
        meets: |line, value| number(line, "f1_validation") >= value,
    },
];

/// What the runs of a variant need to reach a target, by the names of the table's columns.
fn needed(runs: &[Run], target: &Target, column: &str) -> Vec<f64> {
    let of = |run: &Run| {
        let lines = run.metrics();
        // An untrained model has reached nothing.
        let line = lines[1..]
            .iter()
            .find(|l| (target.meets)(l, target.value))?;
        let t = number(line, "t");
        let cost = &run.manifest()["sizes"]["cost"];
        Some(match column {
            "iterations" => t,
            "bytes" => number(line, "bytes_exact"),
            "bytes_paper" => number(line, "bytes_paper"),
            "seconds" => number(line, "seconds"),
            "flops" => number(cost, "flops") * t,
            "memory_accumulated" => number(cost, "memory") * t,
            _ => panic!("{column}"),
        })
    };
    runs.iter().filter_map(of).collect()
}

/// Mean and sample standard deviation; the latter is 0 for one value.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (
        mean,
        if values.len() > 1 {
            (squares / (n - 1.0)).sqrt()
        } else {
            0.0
        },
    )
}

#[track_caller]
fn same(found: f64, expected: f64, what: &str) {
    let near = (found - expected).abs() <= 1e-9 * expected.abs().max(1e-6);
    assert!(near, "{what}: {found}, not {expected}");
}

/// The table as text, without its seal.
fn table_text(place: &Place) -> String {
    let text = fs::read_to_string(place.join("cmp/table.txt")).unwrap();
    let (table, seal) = text.split_once("\n# ").unwrap();
    assert!(seal.starts_with("as written by selvedge"), "{seal}");
    table.to_owned()
}

#[test]
fn text_csv_and_json_say_what_the_metrics_of_the_runs_say() {
    let place = Place::new("numbers");
    let mut args = words("compare --algorithms all --seeds 3 --out cmp");
    args.extend(["--set", "train.iterations=200"]);
    for target in ["auc=0.85", "loss=0.45", "f1=0.999"] {
        args.extend(["--target", target]);
    }
    let json = place.succeeds(&[&args[..], &["--json"]].concat()).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let shown = place.succeeds(&args).stdout;
    let rows = csv(&fs::read_to_string(place.join("cmp/table.csv")).unwrap());
    let text = table_text(&place);
    assert!(shown.contains(&text), "what is printed is what is written");
    assert_eq!(rows.len(), TARGETS.len() * ALGORITHMS.len());
    assert_eq!(json["seeds"], serde_json::json!([42, 43, 44]));

    let mut reached_by = Vec::new();
    for (i, target) in TARGETS.iter().enumerate() {
        let block = &json["table"]["targets"][i];
        assert_eq!(
            (&block["metric"], &block["value"]),
            (&target.metric.into(), &target.value.into())
        );
        for (j, algorithm) in ALGORITHMS.iter().enumerate() {
            let what = format!("{algorithm}, {}", target.heading);
            let runs = [42, 43, 44].map(|s| Run::at(&place, &format!("cmp/{algorithm}/seed-{s}")));
            let row = &block["variants"][j];
            assert_eq!(row["variant"], *algorithm);
            let key = (
                target.metric.into(),
                target.value.to_string(),
                (*algorithm).into(),
            );
            let line = &rows[&key];
            let cells = text_row(&text, target.heading, algorithm);
            assert_eq!(cells.len(), 1 + COLUMNS.len(), "{cells:?}");

            let reached = needed(&runs, target, "iterations").len();
            reached_by.push(reached);
            assert_eq!(
                (&row["seeds"], &row["reached"]),
                (&3.into(), &reached.into()),
                "{what}"
            );
            assert_eq!(
                (line["seeds"].as_str(), &line["reached"]),
                ("3", &reached.to_string())
            );
            assert_eq!(cells[1], format!("{reached} of 3"), "{what}");
            let memory = number(&runs[0].manifest()["sizes"]["cost"], "memory");
            assert_eq!(
                (number(row, "memory"), &line["memory"]),
                (memory, &memory.to_string())
            );

            let columns = [
                "iterations",
                "bytes",
                "bytes_paper",
                "seconds",
                "flops",
                "memory_accumulated",
            ];
            for column in columns {
                let what = format!("{what}: {column}");
                let values = needed(&runs, target, column);
                let place = COLUMNS.iter().position(|c| *c == column);
                let cell = place.map(|c| cells[c + 1].as_str());
                if values.is_empty() {
                    assert_eq!(row[column], Value::Null, "{what}");
                    assert_eq!(line[&format!("{column}_mean")], "", "{what}");
                    assert!(cell.is_none_or(|cell| cell == "–"), "{what}: {cell:?}");
                    continue;
                }
                let (mean, deviation) = mean_and_deviation(&values);
                same(number(&row[column], "mean"), mean, &what);
                same(number(&row[column], "deviation"), deviation, &what);
                same(
                    line[&format!("{column}_mean")].parse().unwrap(),
                    mean,
                    &what,
                );
                same(
                    line[&format!("{column}_sd")].parse().unwrap(),
                    deviation,
                    &what,
                );
                if let Some(cell) = cell {
                    let (shown_mean, shown_deviation) = spread(cell);
                    close(shown_mean, mean, &what);
                    close(shown_deviation, deviation, &what);
                }
            }
        }
    }
    for (what, there) in [("all", 3), ("no", 0)] {
        assert!(
            reached_by.contains(&there),
            "no target that {what} seeds reach"
        );
    }
    assert!(
        reached_by.iter().any(|n| [1, 2].contains(n)),
        "no target that some seeds reach"
    );
    last_metrics_are_those_of_the_last_lines(&place, &json, &text);
}

fn last_metrics_are_those_of_the_last_lines(place: &Place, json: &Value, text: &str) {
    for (j, algorithm) in ALGORITHMS.iter().enumerate() {
        let last = &json["table"]["last"][j];
        assert_eq!(
            (&last["variant"], &last["diverged"]),
            (&(*algorithm).into(), &0.into())
        );
        let cells = text_row(text, "at the end, on test", algorithm);
        assert_eq!(cells[1], "0.1");
        for (c, metric) in last["metrics"].as_array().unwrap().iter().enumerate() {
            let name = match metric[0].as_str().unwrap() {
                "loss" => "loss_train",
                other => other,
            };
            let value = |seed: u64| {
                let run = Run::at(place, &format!("cmp/{algorithm}/seed-{seed}"));
                number(run.metrics().last().unwrap(), name)
            };
            let (mean, deviation) = mean_and_deviation(&[42, 43, 44].map(value));
            let what = format!("{algorithm}: {name}");
            same(number(&metric[1], "mean"), mean, &what);
            same(number(&metric[1], "deviation"), deviation, &what);
            let (shown, _) = spread(&cells[c + 2]);
            assert!(
                (shown - mean).abs() <= 0.000_501,
                "{what}: {shown} for {mean}"
            );
        }
    }
}

/// Settings of `selvedge train` for a run of the comparison below.
fn train_args<'a>(algorithm: &'a str, seed: &'a str, every: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut args = vec!["train", "--out", out];
    for setting in [algorithm, seed, every] {
        args.extend(["--set", setting]);
    }
    args.extend(SHORT);
    args
}

#[test]
fn runs_are_those_of_train_whatever_the_number_of_threads() {
    let place = Place::new("same-as-train");
    for threads in ["1", "2", "4"] {
        let out = format!("cmp-{threads}");
        let args = [
            "compare",
            "--algorithms",
            "all",
            "--seeds",
            "2",
            "--threads",
            threads,
        ];
        place.succeeds(&[&args[..], &["--out", &out], &SHORT].concat());
    }
    for threads in ["2", "4"] {
        same_comparison(&place, "cmp-1", &format!("cmp-{threads}"));
    }
    for algorithm in ALGORITHMS {
        for seed in [42, 43] {
            let run = Run::at(&place, &format!("cmp-2/{algorithm}/seed-{seed}"));
            let every = run.manifest()["experiment"]["train"]["evaluate_every"].clone();
            let out = format!("train-{algorithm}-{seed}");
            place.succeeds(&train_args(
                &format!("train.algorithm={algorithm}"),
                &format!("seed={seed}"),
                &format!("train.evaluate_every={every}"),
                &out,
            ));
            same_results(&Run::at(&place, &out), &run, &format!("{algorithm} {seed}"));
        }
    }
}

#[test]
fn a_diverged_run_is_noted_and_the_others_finish() {
    let place = Place::new("diverged");
    let args = words("sweep --over train.learning_rate=0.1,1e6 --seeds 2 --out cmp");
    let args = [&args[..], &SHORT, &["--target", "auc=0.8"]].concat();
    let ran = place.succeeds(&args);
    let note = "note: learning_rate=1e6 seed 42 diverged at iteration";
    says(&ran.stderr, &[note]);
    let row = text_row(&ran.stdout, "at the end, on test", "learning_rate=1e6");
    assert_eq!(row.last().unwrap(), "2 diverged");
    assert_eq!(
        text_row(&ran.stdout, "validation AUC", "learning_rate=0.1")[1],
        "2 of 2"
    );
    assert_eq!(
        text_row(&ran.stdout, "validation AUC", "learning_rate=1e6")[1],
        "0 of 2"
    );
    // It is not tried again, and still said.
    let again = place.succeeds(&[&args[..], &["--json"]].concat());
    assert_eq!(again.stderr, "");
    let json: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(json["table"]["last"][1]["diverged"], 2);
}

#[test]
fn a_report_of_the_runs_has_the_same_numbers() {
    let place = Place::new("report-target");
    let args = words("compare --algorithms hsgd,jfl --seeds 2 --out cmp");
    let targets = ["--target", "auc=0.8", "--target", "accuracy=0.999"];
    place.succeeds(&[&args[..], &SHORT, &targets].concat());
    let table = table_text(&place);
    let ran = place.succeeds(&[&["report", "cmp", "--out", "page.html"][..], &targets].concat());
    assert_eq!(
        ran.stdout.split("Report  ").next().unwrap().trim_end(),
        table.trim_end()
    );
    place.succeeds(&["report", "cmp"]);
    for (name, wanted) in [("page.html", true), ("cmp/report.html", false)] {
        let page = fs::read_to_string(place.join(name)).unwrap();
        let section = page.split("<table id=\"needs\">").nth(1).unwrap();
        let section = section.split("</table>").next().unwrap();
        assert_eq!(
            section.contains("validation accuracy ≥ 0.999"),
            wanted,
            "{name}"
        );
        if !wanted {
            continue;
        }
        for heading in ["validation AUC ≥ 0.8", "validation accuracy ≥ 0.999"] {
            for variant in ["hsgd", "jfl"] {
                let rows = section
                    .split("<tr")
                    .filter(|row| row.contains(&format!(">{heading}<")));
                let rows: Vec<&str> = rows
                    .filter(|row| row.contains(&format!(">{variant}<")))
                    .collect();
                let [row] = rows[..] else {
                    panic!("{heading}, {variant}: {rows:?}")
                };
                let plain = ["<small>", "</small>", "<strong>", "</strong>"];
                let row = plain
                    .iter()
                    .fold(row.to_owned(), |row, tag| row.replace(tag, ""));
                for cell in &text_row(&table, heading, variant)[1..] {
                    assert!(
                        row.contains(&format!(">{cell}<")),
                        "{heading}, {variant}, {cell}: {row}"
                    );
                }
            }
        }
    }
    place.refuses(
        &["report", "cmp", "--target", "auc=2"],
        &["--target auc=2", "at most 1"],
    );
}
