//! Runs that cannot be read are shown with the reason, and all others as ever.

use super::{Served, place};
use crate::common::copy;
use crate::common::run::{Run, append};
use serde_json::json;
use std::fs;

#[test]
fn damaged_runs_are_told_and_others_are_not_touched() {
    let place = place("dashboard-damaged", &[("good", &[])]);
    let runs = [
        "later",
        "other",
        "cut",
        "no-experiment",
        "lines",
        "ledger",
        "binary",
        "folder",
    ];
    for run in runs {
        copy(&place.join("runs/good"), &place.join(format!("runs/{run}")));
    }
    let run = |label: &str| Run::at(&place, &format!("runs/{label}"));
    run("later").edit_manifest(|manifest| manifest["selvedge"] = "9.9.9".into());
    run("other").edit_manifest(|manifest| {
        manifest["selvedge"] = "9.9.9".into();
        manifest["sizes"] = "more than numbers".into();
    });
    let manifest = run("cut").text("manifest.json");
    place.write("runs/cut/manifest.json", &manifest[..manifest.len() / 2]);
    run("no-experiment")
        .edit_manifest(|manifest| manifest["experiment"]["train"]["local_interval"] = json!(7));
    let metrics = run("lines").text("metrics.jsonl");
    let mut lines: Vec<&str> = metrics.lines().collect();
    lines.insert(3, "{\"t\": what");
    place.write(
        "runs/lines/metrics.jsonl",
        format!("{}\n{{\"t\":99", lines.join("\n")),
    );
    append(
        &run("ledger").file("ledger.csv"),
        b"device-edge,theta2,up,many,bytes\n",
    );
    place.write("runs/binary/metrics.jsonl", [0, 255, 10, 0].repeat(5000));
    fs::remove_file(run("folder").file("metrics.jsonl")).unwrap();
    fs::create_dir(run("folder").file("metrics.jsonl")).unwrap();

    let served = Served::start(&place, &[]);
    let all = served.runs();
    assert_eq!(all.len(), runs.len() + 1);
    assert_eq!(all["good"]["state"], "finished");
    let text = |label: &str, key: &str| all[label][key].as_str().unwrap_or_default().to_owned();
    assert_eq!(all["later"]["state"], "finished");
    assert!(
        text("later", "note").contains("selvedge 9.9.9"),
        "{}",
        all["later"]
    );
    for (label, parts) in [
        ("other", ["it says 9.9.9, and this is", "manifest.json"]),
        ("cut", ["manifest.json is damaged", "line"]),
        ("no-experiment", ["its experiment is invalid", "train."]),
    ] {
        assert_eq!(all[label]["state"], "damaged", "{label}");
        let problem = text(label, "problem");
        assert!(
            parts.iter().all(|part| problem.contains(part)),
            "{label}: {problem}"
        );
        let answer = served.get(&format!("/api/run/{}", served.id(label)));
        assert!(
            answer.status == 422 && answer.text().contains(parts[0]),
            "{}",
            answer.text()
        );
    }
    let details = |label: &str| served.json(&format!("/api/run/{}", served.id(label)));
    let curves = |label: &str| served.curves(&served.id(label));
    assert!(
        curves("lines")["problems"][0]
            .as_str()
            .unwrap()
            .starts_with("metrics.jsonl, line 4 is damaged")
    );
    assert_eq!(
        curves("lines")["curves"],
        curves("good")["curves"],
        "all else is there"
    );
    assert_eq!(
        all["lines"]["last"], all["good"]["last"],
        "the last whole line"
    );
    let problem = details("ledger")["problems"][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        problem.contains("ledger.csv, line") && problem.contains("many"),
        "{problem}"
    );
    assert!(
        curves("binary")["problems"][10]
            .as_str()
            .unwrap()
            .contains("more lines are damaged")
    );
    let answer = served.get(&format!("/api/run/{}/curves", served.id("folder")));
    assert!(
        answer.status == 422 && answer.text().contains("not a regular file"),
        "{}",
        answer.text()
    );
}

#[test]
fn sizes_that_cannot_be_do_no_harm() {
    let place = place("dashboard-sizes", &[("one", &[])]);
    let run = Run::at(&place, "runs/one");
    for (devices, selected) in [
        (json!([1, 2]), json!([9, 9, 9])),
        (json!([]), json!([])),
        (json!([u64::MAX, u64::MAX, 3]), json!([u64::MAX, 5, 1])),
        (json!([4_000_000_000u64, 10, 10]), json!([900_000, 1, 1])),
        (json!(vec![3; 5000]), json!(vec![1; 5000])),
    ] {
        run.edit_manifest(|manifest| {
            manifest["sizes"]["devices"] = devices.clone();
            manifest["sizes"]["selected"] = selected.clone();
        });
        let served = Served::start(&place, &[]);
        let id = served.id("one");
        let who = served.json(&format!("/api/run/{id}/interval"))["who"].clone();
        assert!(who["groups"].as_array().unwrap().len() <= 120, "{devices}");
        assert_eq!(who["group_count"], devices.as_array().unwrap().len());
        served.json(&format!("/api/run/{id}"));
    }
}
