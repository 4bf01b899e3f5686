//! The dashboard through the binary: what it answers and to whom, what it refuses, and how its page behaves in a real
//! browser beside a real training.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "dashboard/access.rs"]
mod access;
#[path = "dashboard/answers.rs"]
mod answers;
#[path = "dashboard/browser.rs"]
mod browser;
#[path = "dashboard/damaged.rs"]
mod damaged;
#[path = "dashboard/following.rs"]
mod following;

use common::{Place, selvedge, small_experiment};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A small experiment.
fn small() -> String {
    small_experiment(3, 40, 20)
}

/// A folder with the small experiment and runs of it.
fn place(name: &str, runs: &[(&str, &[&str])]) -> Place {
    let place = Place::new(name);
    place.write("small.toml", small());
    for (run, args) in runs {
        train(&place, run, args);
    }
    place
}

/// Trains the small experiment with changes.
fn train(place: &Place, run: &str, args: &[&str]) {
    let out = format!("runs/{run}");
    let mut all = vec!["train", "small.toml", "--out", &out];
    all.extend(args);
    place.succeeds(&all);
}

/// A dashboard that runs; ended with the test that forgets it.
struct Served {
    child: Child,
    /// What it said of itself.
    said: Value,
    address: SocketAddr,
}

/// An answer of a dashboard.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Served {
    /// Starts one in a folder, with a port of its own unless `args` say otherwise.
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut command = selvedge(place.path());
        command.args(["dashboard", "--json"]).args(args);
        if !args.iter().any(|arg| arg.starts_with("--listen")) {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Self::of(&mut command)
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let mut address: SocketAddr = said["address"].as_str().unwrap().parse().unwrap();
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        Served {
            child,
            said,
            address,
        }
    }

    fn url(&self) -> &str {
        self.said["url"].as_str().unwrap()
    }

    /// Sends bytes and reads until the other end closes.
    fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    fn request(&self, head: &str) -> Answer {
        Answer::parse(&self.send(format!("{head}\r\n\r\n").as_bytes()))
    }

    fn get(&self, path: &str) -> Answer {
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: localhost"))
    }

    #[track_caller]
    fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Runs by their labels.
    fn runs(&self) -> BTreeMap<String, Value> {
        let list = self.json("/api/runs");
        let runs = list["runs"].as_array().unwrap().iter();
        runs.map(|run| (run["label"].as_str().unwrap().to_owned(), run.clone()))
            .collect()
    }

    #[track_caller]
    fn id(&self, label: &str) -> String {
        let runs = self.runs();
        let run = runs
            .get(label)
            .unwrap_or_else(|| panic!("{label} is not among {:?}", runs.keys()));
        run["id"].as_str().unwrap().to_owned()
    }

    /// The curves of a run, all of them.
    fn curves(&self, id: &str) -> Value {
        loop {
            let curves = self.json(&format!("/api/run/{id}/curves"));
            if curves["has_more"] == false {
                return curves;
            }
        }
    }

    /// Waits until something holds.
    #[track_caller]
    fn wait_until(&self, what: &str, met: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !met(self) {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "never came: {what}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(killed.unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_lowercase(), value.to_owned())
        };
        Answer {
            status: status.parse().unwrap(),
            headers: lines.map(header).collect(),
            body: bytes[end + 4..].to_vec(),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
