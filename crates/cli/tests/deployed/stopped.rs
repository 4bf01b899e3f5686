//! Stopped, resumed, started wrongly: what a person would try.

use crate::common::process::finish_within;
use crate::common::run::Run;
use crate::common::{copy, selvedge, words};
use crate::deployment::{FORTY_INTERVALS, LONG, Up, place_with_server, read, simulated};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Long enough to be stopped in the middle.
fn long() -> String {
    FORTY_INTERVALS.replace("iterations = 80", "iterations = 1200")
}

/// Bytes that servers have received, as `selvedge up` says.
fn received(said: &str) -> u64 {
    let said: serde_json::Value = serde_json::from_str(said).unwrap();
    let servers = said["servers"].as_array().unwrap().iter();
    let bytes = servers.map(|server| server["counters"]["in_bytes"].as_u64().unwrap());
    bytes.sum()
}

#[test]
fn stopped_by_ctrl_c_or_killed_and_resumed_it_ends_the_same() {
    let Some(place) = place_with_server("up-stopped") else {
        return;
    };
    let expected = simulated(&place, &long(), &[]);
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
        let name = format!("up-{signal}");
        let mut up = Up::start(&place, &name, &[]);
        let processes = up.processes();
        std::thread::sleep(Duration::from_millis(400));
        up.live.signal(signal);
        let ran = up.live.collect(LONG);
        assert_eq!(ran.code(), code, "{signal}: {}", ran.stderr);
        // Whatever it had started ends with it.
        for (party, pid) in processes {
            let gone = || !std::path::Path::new(&format!("/proc/{pid}")).exists();
            let began = std::time::Instant::now();
            while !gone() {
                assert!(began.elapsed() < LONG, "{party} lives on after {signal}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let args = ["up", "--resume", &name, "--json"];
        let ran = finish_within(selvedge(place.path()).args(args), LONG).succeeded();
        // Servers have received what they have received since the run began, whoever looks later.
        let looked = finish_within(selvedge(place.path()).args(args), LONG).succeeded();
        let (first, later) = (received(&ran.stdout), received(&looked.stdout));
        assert!(
            first <= later,
            "{signal}: {later} bytes, and {first} before"
        );
        let run = Run::at(&place, &format!("{name}/run"));
        crate::common::run::same_results(&expected, &run, signal);
    }
}

#[test]
fn a_run_that_diverges_is_an_error_and_keeps_its_last_good_model() {
    let Some(place) = place_with_server("up-diverged") else {
        return;
    };
    place.write("experiment.toml", FORTY_INTERVALS);
    let args = words("up experiment.toml --out up --set train.learning_rate=1e30");
    place
        .selvedge(&args)
        .refused(&["diverged", "train.learning_rate", "model.safetensors"]);
    assert!(place.join("up/run/model.safetensors").is_file());
}

fn set_mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A key that others can read is refused, and what is about patients is told of.
#[test]
fn secrets_that_others_can_read_are_told() {
    let Some(place) = place_with_server("up-open") else {
        return;
    };
    place.write("experiment.toml", long());
    let up = Up::start(&place, "up", &[]);
    up.processes();
    for (kind, folder) in [("edge", "group-0/edge"), ("devices", "group-0/gateway-0")] {
        let other = place.join(kind);
        copy(&up.folder().join(folder), &other);
        for file in ["key.nk", "data/shards.json"] {
            let mode = std::fs::metadata(other.join(file)).unwrap().permissions();
            assert_eq!(mode.mode() & 0o777, 0o600, "{file}");
        }
        set_mode(&other.join("key.nk"), 0o640);
        let config = format!("{kind}/node.toml");
        let args = ["node", kind, "--config", &config];
        let ran = finish_within(selvedge(place.path()).args(args), LONG);
        ran.refused(&["key.nk", "mode 640", "chmod 600"]);
    }
    set_mode(&place.join("devices/key.nk"), 0o600);
    let shard = place.join("devices/data/group-0/devices.npz");
    set_mode(&shard, 0o644);
    // It answers where the original does.
    drop(up);
    let args = ["node", "devices", "--config", "devices/node.toml"];
    let mut node = crate::common::process::Live::start(selvedge(place.path()).args(args));
    // As a service manager stops it: that is no failure.
    std::thread::sleep(Duration::from_secs(1));
    node.signal("TERM");
    let ran = node.collect(LONG).ended(0);
    let told = ["devices.npz", "readable by others (mode 644)", "chmod 600"];
    for part in told {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

/// A party of `up` that somebody else stops is started again: the run ends the same.
#[test]
fn a_party_that_is_stopped_from_outside_comes_back() {
    let Some(place) = place_with_server("up-terminated") else {
        return;
    };
    let expected = simulated(&place, &long(), &[]);
    let up = Up::start(&place, "up", &[]);
    let processes = up.processes();
    std::thread::sleep(Duration::from_millis(700));
    for name in ["group-1/hospital", "cloud"] {
        let (_, pid) = processes.iter().find(|(it, _)| it == name).unwrap();
        let mut kill = std::process::Command::new("kill");
        let sent = kill.arg(pid.to_string()).status().unwrap();
        assert!(sent.success(), "{name} is gone already");
    }
    let ended = up.ends();
    ended.is(&expected, "two parties were stopped");
    assert!(ended.said["restarts"].as_u64().unwrap() >= 2);
}

#[test]
fn what_cannot_be_started_says_why() {
    let Some(place) = place_with_server("up-wrong") else {
        return;
    };
    place.write("experiment.toml", long());
    let up = Up::start(&place, "up", &[]);
    up.processes();
    let mode = |name: &str| {
        let path = up.folder().join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("group-0/hospital/key.nk"), 0o600);
    assert_eq!(mode("group-0/server/link.conf"), 0o600);
    let wrong = |change: &dyn Fn(&str) -> String, parts: &[&str]| {
        let other = place.join("other");
        let _ = std::fs::remove_dir_all(&other);
        copy(&up.folder().join("group-0/edge"), &other);
        let config = change(&read(&other.join("node.toml")));
        std::fs::write(other.join("node.toml"), config).unwrap();
        set_mode(&other.join("experiment.toml"), 0o600);
        let args = ["node", "edge", "--config", "other/node.toml"];
        finish_within(selvedge(place.path()).args(args), LONG).refused(parts);
    };
    wrong(
        &|c| format!("{c}\nnonsense = 1\n"),
        &["node.toml", "nonsense"],
    );
    wrong(&|c| c.replace("group = 0", "group = 7"), &["group"]);
    wrong(&|c| c.replace("key.nk", "nowhere.nk"), &["nowhere.nk"]);
    wrong(
        &|c| c.replace("key.nk", "experiment.toml"),
        &["key is invalid"],
    );
    wrong(
        &|c| c.replace("[[0, 30]]", "[[0, 29]]"),
        &["gateways", "29", "30"],
    );
    wrong(
        &|c| c.replace("127.0.0.1:", "0.0.0.0:"),
        &["http", "loopback"],
    );
    place
        .selvedge(&["status", "nowhere"])
        .refused(&["neither an address"]);
    place
        .selvedge(&["up", "--resume", "nowhere"])
        .refused(&["nowhere"]);
    let others = words("up experiment.toml --out jfl --set train.algorithm=jfl");
    place.selvedge(&others).refused(&["jfl", "hsgd or c-hsgd"]);
    place
        .selvedge(&["up", "experiment.toml", "--out", "up"])
        .refused(&["already exists"]);
    let absent = place.write(
        "absent.jsonl",
        "{\"phase\":\"global\",\"t\":4,\"group\":9}\n",
    );
    let absent = absent.to_string_lossy().into_owned();
    let replay = [
        "train",
        "experiment.toml",
        "--out",
        "replayed",
        "--replay",
        &absent,
    ];
    place.selvedge(&replay).refused(&["group 9", "2 groups"]);
    drop(up);
}
