//! How long a server lives: as long as whoever holds it, and no longer than the process.

use crate::deployment::{Deployment, LONG};
use selvedge_net::broker::BrokerError;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Set in the process that the first test starts and kills.
const HOLDER: &str = "SELVEDGE_TEST_HOLDS_A_SERVER";

/// What that process says before the number of its server.
const SAID: &str = "server: ";

#[test]
fn a_server_ends_with_a_parent_that_is_killed() {
    let Some(mut all) = Deployment::new("killed-parent") else {
        return;
    };
    if std::env::var_os(HOLDER).is_some() {
        // The thread that started the server ends long before the process does.
        let all = thread::spawn(move || {
            all.start_site();
            all
        });
        let all = all.join().unwrap();
        thread::sleep(Duration::from_millis(300));
        all.site_servers[0]
            .as_ref()
            .unwrap()
            .counters()
            .expect("it outlives a thread");
        println!(
            "{SAID}{} {}",
            all.site_servers[0].as_ref().unwrap().pid(),
            all.dir.display()
        );
        thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "life::a_server_ends_with_a_parent_that_is_killed",
            "--nocapture",
        ])
        .env(HOLDER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let said = lines
        .filter_map(|line| line.split_once(SAID).map(|(_, rest)| rest.to_owned()))
        .next();
    holder.kill().unwrap();
    holder.wait().unwrap();
    let said = said.expect("the holder starts a server");
    let (server, dir) = said.split_once(' ').unwrap();
    let is_there = || {
        fs::read_to_string(format!("/proc/{server}/comm"))
            .is_ok_and(|name| name.trim() == "nats-server")
    };
    let deadline = Instant::now() + LONG;
    while is_there() {
        assert!(Instant::now() < deadline, "{server} is still there");
        thread::sleep(Duration::from_millis(20));
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let Some(mut all) = Deployment::new("says-why") else {
        return;
    };
    let (config, log) = (all.dir.join("wrong.conf"), all.dir.join("wrong.log"));
    fs::write(&config, "listen: nowhere:here\n").unwrap();
    let error = all
        .program
        .start(&config, all.sites[0].monitor, &log)
        .expect_err("that is no address")
        .to_string();
    assert!(
        error.contains("wrong.log") && error.contains("could not parse port"),
        "{error}"
    );
    all.start_site();
    let error = all
        .program
        .start(&config, all.sites[0].monitor, &log)
        .expect_err("the port is taken");
    assert!(matches!(error, BrokerError::System { .. }), "{error}");
}
