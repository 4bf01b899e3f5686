//! What does not belong to a run changes nothing: other experiments, and bytes that are no messages.

use crate::common::process::finish_within;
use crate::common::run::Run;
use crate::common::{Place, copy, selvedge};
use crate::deployment::{LONG, Up, place_with_server, read, simulated};
use crate::hostile::connect;
use std::path::Path;
use std::time::{Duration, Instant};

/// Long enough to be disturbed.
const EXPERIMENT: &str = r#"
seed = 5
[data]
set = "synthetic"
groups = 1
devices = 12
[train]
iterations = 1500
global_interval = 2
local_interval = 1
learning_rate = 0.2
participation = 0.5
evaluate_every = 100
"#;

/// It runs; and the run that nobody disturbs.
fn running(place: &Place) -> (Run, Up<'_>) {
    let expected = simulated(place, EXPERIMENT, &[]);
    let up = Up::start(place, "up", &[]);
    up.processes();
    (expected, up)
}

#[test]
fn a_party_with_another_experiment_is_refused_and_shown_the_difference() {
    let Some(place) = place_with_server("up-refused") else {
        return;
    };
    let (expected, up) = running(&place);
    let other = place.join("other");
    copy(&up.folder().join("group-0/gateway-0"), &other);
    let experiment = read(&other.join("experiment.toml"));
    let changed = experiment.replace("learning_rate = 0.2", "learning_rate = 0.1");
    assert_ne!(experiment, changed);
    std::fs::write(other.join("experiment.toml"), changed).unwrap();
    let config = read(&other.join("node.toml"));
    let without_http: Vec<&str> = config.lines().filter(|l| !l.starts_with("http")).collect();
    std::fs::write(other.join("node.toml"), without_http.join("\n")).unwrap();
    let args = ["node", "devices", "--config", "other/node.toml"];
    let ran = finish_within(selvedge(place.path()).args(args), LONG);
    ran.refused(&["edge 0 refuses", "train.learning_rate: 0.1 here, 0.2 there"]);
    up.ends().is(&expected, "with a stranger");
}

/// Waits until all parties know of each other: what is sent before may not arrive.
fn wait_until_it_trains(place: &Place) {
    let deadline = Instant::now() + LONG;
    loop {
        let status = place.selvedge(&["status", "up", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap_or_default();
        if status["doing"]["t"].as_u64().unwrap_or(0) > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "it does not begin");
    }
}

/// Sends bytes in the name of a party.
fn send(folder: &Path, party: &str, subject: &str, payloads: Vec<Vec<u8>>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = connect(folder, party).await;
        for payload in payloads {
            client
                .publish(subject.to_owned(), payload.into())
                .await
                .unwrap();
        }
        client.flush().await.unwrap();
    });
}

#[test]
fn bytes_that_are_no_messages_are_counted_and_change_nothing() {
    let Some(place) = place_with_server("up-garbage") else {
        return;
    };
    let (expected, up) = running(&place);
    wait_until_it_trains(&place);
    let mut garbage: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"hello".to_vec(),
        b"SV".to_vec(),
        b"SV\x63aaaaaaaa\x01".to_vec(),
        b"SV\x01aaaaaaaa\x01".to_vec(),
        b"{\"Greeting\":{}}".to_vec(),
        b"C".to_vec(),
        [b"C".as_slice(), &[255; 16], &[0; 100]].concat(),
        vec![b'S'; 700_000],
    ];
    garbage.extend((0..200).map(|i| vec![i as u8; i]));
    let count = garbage.len() as u64;
    let edge = up.folder().join("group-0/edge");
    send(&edge, "edge", "group.0.edge.hospital", garbage.clone());
    send(&edge, "edge", "group.0.edge.gateway-0", garbage.clone());
    send(&edge, "edge", "up.0.edge.cloud", garbage);
    // Not allowed at all: the server drops it.
    send(&edge, "edge", "group.0.hospital.edge", vec![b"SV".to_vec()]);
    let deadline = Instant::now() + LONG;
    let refused = || {
        let status = place.succeeds(&["status", "up", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
        let counters = &status["counters"];
        let refused = counters["refused"].as_object().unwrap().values();
        let refused: u64 = refused.map(|n| n.as_u64().unwrap()).sum();
        // Of so many at once, the last ones find no room.
        let dropped = counters["dropped"].as_object().unwrap().values();
        refused
            + dropped
                .map(|d| d["messages"].as_u64().unwrap())
                .sum::<u64>()
    };
    while refused() < count {
        assert!(Instant::now() < deadline, "{} of {count}", refused());
        std::thread::sleep(Duration::from_millis(20));
    }
    up.ends().is(&expected, "with garbage");
}
