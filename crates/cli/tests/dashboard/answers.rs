//! What is answered is what the run directories say.

use super::{Served, place};
use crate::common::run::Run;
use serde_json::{Value, json};

#[test]
fn a_run_is_told_as_its_files_have_it() {
    let place = place("dashboard-told", &[("one", &["--trace"])]);
    let (served, run) = (Served::start(&place, &[]), Run::at(&place, "runs/one"));
    let runs = served.runs();
    let (summary, metrics) = (&runs["one"], run.metrics());
    let last = metrics.last().unwrap();
    assert_eq!(summary["state"], "finished");
    assert_eq!(
        (&summary["t"], &summary["iterations"]),
        (&json!(200), &json!(200))
    );
    assert_eq!(summary["last"]["auc"], last["auc"]);
    assert_eq!(summary["last"]["bytes"], last["bytes_exact"]);
    let id = served.id("one");
    let curves = served.curves(&id);
    assert_eq!(curves["lines"], metrics.len());
    for (metric, key) in [
        ("loss", "loss_train"),
        ("loss_test", "loss_test"),
        ("auc", "auc"),
        ("recall", "recall"),
    ] {
        let curve = &curves["curves"][metric];
        let column = |key: &str| {
            metrics
                .iter()
                .map(|line| line[key].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(curve["iterations"], json!(column("t")));
        let near = |(a, b): (&Value, Value)| {
            (a.as_f64().unwrap() / b.as_f64().unwrap() - 1.0).abs() < 1e-4
        };
        assert!(
            curve["y"]
                .as_array()
                .unwrap()
                .iter()
                .zip(column(key))
                .all(near),
            "{metric}"
        );
    }
    let details = served.json(&format!("/api/run/{id}"));
    run.sent_as_many_bytes_as(&details["ledger"]);
    assert_eq!(details["schedule"]["steps"], json!([[0, 20, 5, 0.2]]));
    assert_eq!(details["problems"], json!([]));
    let experiment = details["experiment"].as_str().unwrap();
    assert!(experiment.contains("learning_rate = 0.2"), "{experiment}");
    // The text is an experiment: it trains to the same model.
    place.write("again.toml", experiment);
    place.succeeds(&["train", "again.toml", "--out", "again"]);
    assert_eq!(
        Run::at(&place, "again").bytes("model.safetensors"),
        run.bytes("model.safetensors")
    );
}

#[test]
fn files_are_downloaded_as_they_are_and_no_others() {
    let place = place(
        "dashboard-files",
        &[("one", &["--trace", "--set", "train.adaptive=gain"])],
    );
    place.write("secret.txt", "secret");
    let (served, run) = (Served::start(&place, &[]), Run::at(&place, "runs/one"));
    let id = served.id("one");
    for name in [
        "manifest.json",
        "metrics.jsonl",
        "ledger.csv",
        "segments.jsonl",
        "trace.jsonl",
    ] {
        let answer = served.get(&format!("/api/run/{id}/file/{name}"));
        assert_eq!(answer.status, 200, "{name}");
        assert!(answer.body == run.bytes(name), "{name}");
        let disposition = &answer.headers["content-disposition"];
        assert_eq!(
            *disposition,
            format!("attachment; filename=\"{id}-{name}\"")
        );
    }
    let toml = served.get(&format!("/api/run/{id}/file/experiment.toml"));
    assert!(toml.text().contains("adaptive = \"gain\""));
    for name in [
        "model.safetensors",
        "checkpoint/lock",
        "../one/manifest.json",
        "..%2f..%2fsecret.txt",
        "%2e%2e/%2e%2e/secret.txt",
        "/etc/passwd",
        "",
        "manifest.json/",
        "manifest.json%00",
        "absences.jsonl",
    ] {
        let answer = served.get(&format!("/api/run/{id}/file/{name}"));
        assert_eq!(answer.status, 404, "{name}: {}", answer.text());
    }
    for path in [
        "/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/api/run/../secret.txt",
        "/api/run/..%2F..",
        "/api",
        "/nothing",
    ] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
    // A link is not followed out of the folder.
    std::fs::remove_file(run.file("trace.jsonl")).unwrap();
    std::os::unix::fs::symlink(place.join("secret.txt"), run.file("trace.jsonl")).unwrap();
    let answer = served.get(&format!("/api/run/{id}/file/trace.jsonl"));
    assert_eq!(answer.status, 422);
    assert!(!answer.text().contains("secret\""), "{}", answer.text());
}

/// Who takes part, as told and as drawn again.
fn members(interval: &Value) -> Vec<Value> {
    let groups = interval["who"]["groups"].as_array().unwrap();
    groups
        .iter()
        .map(|group| group["members"].clone())
        .collect()
}

#[test]
fn who_takes_part_is_the_same_by_the_trace_and_drawn_again() {
    let steered = ["--trace", "--set", "train.adaptive=gain"];
    let place = place(
        "dashboard-who",
        &[("fixed", &["--trace"]), ("steered", &steered)],
    );
    let others = [
        "jfl",
        "tdcd",
        "c-tdcd",
        "centralised",
        "fedavg",
        "hospital-only",
        "device-only",
    ];
    for name in others {
        let algorithm = format!("train.algorithm={name}");
        super::train(&place, name, &["--trace", "--set", &algorithm]);
    }
    let served = Served::start(&place, &[]);
    let mut devices_act = Vec::new();
    for label in ["fixed", "steered"].into_iter().chain(others) {
        let (id, run) = (served.id(label), Run::at(&place, &format!("runs/{label}")));
        let lines = run.lines("trace.jsonl");
        let starts: Vec<u64> = lines
            .iter()
            .filter(|l| l["group"] == 0)
            .map(|l| l["t"].as_u64().unwrap())
            .collect();
        let ask = |t: u64| served.json(&format!("/api/run/{id}/interval?t={t}"));
        let told: Vec<Value> = starts.iter().map(|t| ask(*t)).collect();
        for (interval, start) in told.iter().zip(&starts) {
            assert_eq!(interval["start"], *start, "{label}");
            assert_eq!(interval["who"]["source"], "trace", "{label}");
            let of_trace = lines.iter().filter(|l| l["t"] == *start);
            let of_trace: Vec<Value> = of_trace.map(|l| l["devices"].clone()).collect();
            assert_eq!(members(interval), of_trace, "{label} at {start}");
        }
        std::fs::remove_file(run.file("trace.jsonl")).unwrap();
        for (interval, start) in told.iter().zip(&starts) {
            let drawn = ask(*start);
            assert_eq!(drawn["who"]["source"], "drawn", "{label}");
            assert_eq!(members(&drawn), members(interval), "{label} at {start}");
            assert_eq!(drawn["end"], interval["end"], "{label} at {start}");
            let last = drawn["end"].as_u64().unwrap() - 1;
            assert_eq!(ask(last), drawn, "{label} at {last}");
        }
        // Without asking for one it is the last, and one can go back from there to the first.
        let mut at = served.json(&format!("/api/run/{id}/interval"));
        assert_eq!(
            (&at["start"], &at["end"]),
            (&json!(starts[starts.len() - 1]), &json!(200)),
            "{label}"
        );
        let mut steps = 0;
        while let Some(before) = at["before"].as_u64() {
            at = ask(before);
            steps += 1;
        }
        assert_eq!(steps + 1, starts.len(), "{label}");
        let idle = ["centralised", "fedavg", "hospital-only"].contains(&label);
        devices_act.push((label, at["who"]["devices_act"] == !idle));
        let refused = served.get(&format!("/api/run/{id}/interval?t=200"));
        assert!(
            refused.status == 422 && refused.text().contains("0 to 199"),
            "{}",
            refused.text()
        );
        assert_eq!(
            served.get(&format!("/api/run/{id}/interval?t=x")).status,
            400
        );
    }
    assert!(
        devices_act.iter().all(|(_, right)| *right),
        "{devices_act:?}"
    );
}

#[test]
fn absences_of_a_replay_and_of_parties_are_told() {
    let place = place("dashboard-absent", &[("whole", &["--trace"])]);
    let drawn = Run::at(&place, "runs/whole").lines("trace.jsonl");
    let device = |t: u64, group: u64| {
        let line = drawn
            .iter()
            .find(|l| l["t"] == t && l["group"] == group)
            .unwrap();
        line["devices"][0].as_u64().unwrap()
    };
    let (exchange, upload) = (device(25, 1), device(25, 2));
    let lines = [
        json!({ "phase": "exchange", "t": 25, "group": 1, "device": exchange }),
        json!({ "phase": "upload", "t": 30, "group": 2, "device": upload }),
        json!({ "phase": "global", "t": 20, "group": 0 }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("absences.jsonl", &text);
    super::train(&place, "replayed", &["--replay", "absences.jsonl"]);
    // The folder of a deployment: the cloud's run, and what parties have noted.
    crate::common::copy(&place.join("runs/whole"), &place.join("runs/up/run"));
    std::fs::remove_file(place.join("runs/up/run/trace.jsonl")).unwrap();
    place.write("runs/up/deployment.json", "{}");
    place.write(
        "runs/up/group-1/edge/absences.jsonl",
        format!("{}\n", lines[0]),
    );
    place.write(
        "runs/up/group-2/edge/absences.jsonl",
        format!("{}\n{{\"cut of", lines[1]),
    );
    place.write("runs/up/run/absences.jsonl", format!("{}\n", lines[2]));
    let served = Served::start(&place, &[]);
    for label in ["replayed", "up"] {
        let id = served.id(label);
        let who = &served.json(&format!("/api/run/{id}/interval?t=25"))["who"];
        let groups = &who["groups"];
        assert_eq!(groups[1]["missed_exchange"], json!([exchange]), "{label}");
        assert_eq!(groups[2]["missed_upload"], json!([upload]), "{label}");
        let away: Vec<&Value> = groups
            .as_array()
            .unwrap()
            .iter()
            .map(|g| &g["missed_global"])
            .collect();
        assert_eq!(away, [true, false, false], "{label}");
        assert_eq!(who["missed"], 1, "{label}");
        let other = &served.json(&format!("/api/run/{id}/interval?t=50"))["who"];
        assert_eq!(other["missed"], 0, "{label}");
    }
    assert_eq!(served.runs()["up"]["deployed"], true);
}

#[test]
fn absences_are_told_only_where_somebody_can_be_absent() {
    let place = place("dashboard-never-absent", &[]);
    let line = json!({ "phase": "exchange", "t": 20, "group": 0, "device": 3 });
    place.write("absences.jsonl", format!("{line}\n"));
    for algorithm in ["hsgd", "c-hsgd", "jfl", "tdcd", "hospital-only"] {
        let set = format!("train.algorithm={algorithm}");
        let args = ["--replay", "absences.jsonl", "--set", &set];
        super::train(&place, algorithm, &args);
    }
    let served = Served::start(&place, &[]);
    for (label, run) in served.runs() {
        let id = run["id"].as_str().unwrap();
        let who = &served.json(&format!("/api/run/{id}/interval?t=20"))["who"];
        let missed = usize::from(label.ends_with("hsgd"));
        assert_eq!(who["missed"], missed, "{label}");
    }
}

#[test]
fn of_many_devices_only_numbers_are_told() {
    let place = place("dashboard-many", &[]);
    let line = |device: u32| json!({ "phase": "exchange", "t": 0, "group": 0, "device": device });
    place.write("absences.jsonl", format!("{}\n{}\n", line(9), line(4)));
    let args = ["--replay", "absences.jsonl", "--set"];
    super::train(&place, "few", &[&args[..], &["data.devices=600"]].concat());
    super::train(&place, "many", &[&args[..], &["data.devices=601"]].concat());
    let served = Served::start(&place, &[]);
    for (label, told) in [("many", json!([])), ("few", json!([4, 9]))] {
        let id = served.id(label);
        let group = &served.json(&format!("/api/run/{id}/interval?t=0"))["who"]["groups"][0];
        assert_eq!(group["missed_exchange"], told, "{label}");
        assert_eq!(group["missed"], 2, "{label}");
        assert_eq!(group["members"].is_array(), label == "few");
    }
}

#[test]
fn changes_of_p_q_and_eta_come_with_their_reasons() {
    let halved = ["--set", "train.halve_every=80"];
    let place = place(
        "dashboard-changes",
        &[
            ("steered", &["--set", "train.adaptive=gain"]),
            ("halved", &halved),
        ],
    );
    let served = Served::start(&place, &[]);
    let details = |label: &str| served.json(&format!("/api/run/{}", served.id(label)));
    let lines = Run::at(&place, "runs/steered").lines("segments.jsonl");
    assert!(lines.len() > 3);
    assert_eq!(details("steered")["schedule"]["changes"], json!(lines));
    assert_eq!(details("steered")["steered"], "gain");
    let steps = &details("halved")["schedule"]["steps"];
    assert_eq!(
        *steps,
        json!([[0, 20, 5, 0.2], [80, 20, 5, 0.1], [160, 20, 5, 0.05]])
    );
    // The rates are those that the metrics name.
    for line in Run::at(&place, "runs/halved").metrics() {
        let at = steps
            .as_array()
            .unwrap()
            .iter()
            .rfind(|s| s[0].as_u64() <= line["t"].as_u64());
        assert_eq!(at.unwrap()[3], line["eta"], "{line}");
    }
}
