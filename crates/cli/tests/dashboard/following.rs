//! Runs that come, go, grow, are cut and are trained beside a dashboard.

use super::{Served, place, small, train};
use crate::common::process::Live;
use crate::common::run::{Run, append};
use crate::common::{Place, copy, selvedge};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

#[test]
fn runs_come_and_go_and_only_what_changed_is_told() {
    let place = place(
        "dashboard-come",
        &[("one", &[]), ("seeds/a", &["--seeds", "2"])],
    );
    let served = Served::start(&place, &["runs"]);
    let all = served.json("/api/runs");
    let labels: Vec<String> = served.runs().into_keys().collect();
    assert_eq!(labels, ["one", "seeds/a/seed-42", "seeds/a/seed-43"]);
    let since = |list: &Value| format!("/api/runs?since={}", list["version"].as_str().unwrap());
    // A run that was just written is fresh for a while, which is a change too.
    std::thread::sleep(Duration::from_millis(350));
    let nothing = served.json(&since(&all));
    assert_eq!(
        (&nothing["runs"], &nothing["ids"]),
        (&json!([]), &Value::Null),
        "{nothing}"
    );

    train(&place, "two", &[]);
    copy(&place.join("runs/two"), &place.join("runs/.two.partial-1"));
    served.wait_until("another run", |served| served.runs().len() == 4);
    let more = served.json(&since(&all));
    assert_eq!(more["runs"].as_array().unwrap().len(), 1);
    assert_eq!(more["runs"][0]["label"], "two");
    assert_eq!(more["ids"].as_array().unwrap().len(), 4);

    let id = served.id("one");
    fs::remove_dir_all(place.join("runs/one")).unwrap();
    let gone = served.get(&format!("/api/run/{id}"));
    assert_eq!(gone.status, 404);
    assert!(gone.text().contains("no longer exists"), "{}", gone.text());
    served.wait_until("one run less", |served| served.runs().len() == 3);
    let less = served.json(&since(&more));
    assert!(!less["ids"].as_array().unwrap().contains(&json!(id)));
    assert_eq!(served.get("/api/run/never-was").status, 404);

    // Another dashboard calls runs the same, and does not take the version of this one for its own.
    let other = Served::start(&place, &["runs/two", "runs"]);
    assert_eq!(other.id("two"), served.id("two"));
    assert_eq!(
        other.json(&since(&less))["runs"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn metrics_that_grow_and_are_cut_are_followed() {
    let place = place("dashboard-grow", &[("one", &[])]);
    let (served, run) = (Served::start(&place, &[]), Run::at(&place, "runs/one"));
    let (id, whole) = (served.id("one"), run.text("metrics.jsonl"));
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let path = run.file("metrics.jsonl");
    fs::write(&path, lines[..3].concat()).unwrap();
    assert_eq!(served.curves(&id)["lines"], 3);
    let (start, end) = lines[3].split_at(20);
    append(&path, start.as_bytes());
    assert_eq!(
        served.curves(&id)["lines"],
        3,
        "a line that is being written"
    );
    append(&path, end.as_bytes());
    assert_eq!(served.curves(&id)["lines"], 4);
    append(&path, lines[4..].concat().as_bytes());
    let complete = served.curves(&id);
    assert_eq!(complete["lines"], lines.len());
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(lines[0].len() as u64)
        .unwrap();
    assert_eq!(served.curves(&id)["lines"], 1, "cut, as by --resume");
    append(&path, lines[1..].concat().as_bytes());
    assert_eq!(served.curves(&id), complete);
}

#[test]
fn a_run_in_the_place_of_another_does_not_inherit_its_absences() {
    let place = place("dashboard-successor", &[]);
    let line = |device: u32| json!({ "phase": "exchange", "t": 0, "group": 0, "device": device });
    place.write("first.jsonl", format!("{}\n{}\n", line(3), line(1)));
    place.write("second.jsonl", format!("{}\n", line(2)));
    let served = Served::start(&place, &[]);
    let missed = |args: &[&str]| {
        train(&place, "one", args);
        served.wait_until("the run", |served| served.runs().contains_key("one"));
        let interval = format!("/api/run/{}/interval?t=0", served.id("one"));
        let who = served.json(&interval)["who"].clone();
        // Its successor comes before anybody looks: for the dashboard it is the same run.
        fs::remove_dir_all(place.join("runs/one")).unwrap();
        who["groups"][0]["missed_exchange"].clone()
    };
    assert_eq!(missed(&["--replay", "first.jsonl"]), json!([1, 3]));
    assert_eq!(missed(&["--replay", "second.jsonl"]), json!([2]));
    assert_eq!(missed(&[]), json!([]));
}

/// A training that lasts until somebody ends it.
fn long(place: &Place) -> Live {
    let text = small().replace(
        "iterations = 200",
        "iterations = 40000000\nevaluate_every = 2000",
    );
    place.write("long.toml", text);
    let mut command = selvedge(place.path());
    Live::start(command.args(["train", "long.toml", "--out", "runs/long"]))
}

#[test]
fn what_runs_is_running_and_what_was_killed_has_stopped() {
    let place = place("dashboard-running", &[]);
    let served = Served::start(&place, &[]);
    let mut live = long(&place);
    let state = |served: &Served, state: &str| {
        served
            .runs()
            .get("long")
            .is_some_and(|run| run["state"] == state)
    };
    served.wait_until("a run that runs", |served| state(served, "running"));
    let t = served.runs()["long"]["t"].as_u64();
    served.wait_until("its iterations move", |served| {
        served.runs()["long"]["t"].as_u64() > t
    });
    live.signal("INT");
    live.finish().ended(130);
    served.wait_until("that it was interrupted", |served| {
        state(served, "interrupted")
    });
    let mut again = Live::start(selvedge(place.path()).args(["train", "--resume", "runs/long"]));
    served.wait_until("that it goes on", |served| state(served, "running"));
    again.signal("KILL");
    again.collect(Duration::from_secs(10));
    // The manifest still tells of the first end.
    served.wait_until("that nobody trains it", |served| {
        state(served, "interrupted")
    });
    fs::remove_dir_all(place.join("runs/long")).unwrap();
    let mut live = long(&place);
    served.wait_until("another run in its place", |served| {
        state(served, "running")
    });
    live.signal("KILL");
    live.collect(Duration::from_secs(10));
    served.wait_until("that it was killed", |served| state(served, "stopped"));
}

#[test]
fn training_does_not_notice_a_dashboard() {
    let text = small().replace(
        "iterations = 200",
        "iterations = 60000\nevaluate_every = 20",
    );
    let place = Place::new("dashboard-unnoticed");
    place.write("long.toml", text);
    place.succeeds(&["train", "long.toml", "--out", "alone/run"]);
    let mut command = selvedge(place.path());
    let live = Live::start(command.args(["train", "long.toml", "--out", "runs/watched"]));
    {
        let served = Served::start(&place, &[]);
        served.wait_until("enough of it is read", |served| {
            if let Some(run) = served.runs().get("watched") {
                let id = run["id"].as_str().unwrap();
                for what in ["", "/curves", "/interval"] {
                    served.get(&format!("/api/run/{id}{what}"));
                }
                return run["t"].as_u64() > Some(2000);
            }
            false
        });
        served.signal("KILL");
    }
    live.finish().ended(0);
    let [alone, watched] = ["alone/run", "runs/watched"].map(|run| Run::at(&place, run));
    for file in ["metrics.jsonl", "ledger.csv", "model.safetensors"] {
        assert!(alone.bytes(file) == watched.bytes(file), "{file}");
    }
}
