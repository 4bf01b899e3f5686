//! Any role or server killed at any moment, with `kill -9`: the run goes on, and ends the same.
//!
//! `SELVEDGE_KILLS=100` tries a hundred seeds instead of a handful (`tools/kills`); `SELVEDGE_SEED=7` that one alone.

use crate::common::Place;
use crate::common::run::Run;
use crate::deployment::{FORTY_INTERVALS, Up, place_with_server, simulated};
use crate::equal::{asking, partly_known, with_adam, with_momentum};
use std::time::{Duration, Instant};

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} = {text}: expected a number")),
    )
}

#[test]
fn killed_at_any_moment_it_ends_the_same() {
    killed("up-killed", FORTY_INTERVALS, 5);
}

#[test]
fn killed_with_adam_at_every_tier_it_ends_the_same() {
    killed("up-killed-adam", &with_adam(FORTY_INTERVALS), 3);
}

#[test]
fn killed_whatever_is_learnt_and_remembered_it_ends_the_same() {
    killed("up-killed-labels", &with_adam(&partly_known()), 2);
    killed("up-killed-survival", &with_momentum(&asking("survival")), 2);
}

fn killed(name: &str, experiment: &str, usually: u64) {
    let Some(place) = place_with_server(name) else {
        return;
    };
    let expected = simulated(&place, experiment, &[]);
    let began = Instant::now();
    let up = Up::start(&place, "calm", &[]);
    up.processes();
    let started = Instant::now();
    up.ends().is(&expected, "without kills");
    let length = started.elapsed().as_micros() as u64;
    let seeds = match number("SELVEDGE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SELVEDGE_KILLS").unwrap_or(usually),
    };
    let (mut missed, all) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let mut random = Random(seed);
        // A machine that is faster than a moment ago may be done before the moment comes: then there is another try, with
        // an earlier moment.
        let met = (0..10).any(|missed| {
            let shorter = length * (10 - missed) / 10;
            kill_one(&place, &expected, seed, &mut random, shorter)
        });
        missed += u64::from(!met);
    }
    println!(
        "{all} runs in which a process was killed and started again, {:.0} s",
        began.elapsed().as_secs_f64()
    );
    assert_eq!(missed, 0, "kills that met no running process");
}

/// Kills one process of a run at some moment; whether it was there to be killed.
fn kill_one(place: &Place, expected: &Run, seed: u64, random: &mut Random, length: u64) -> bool {
    let name = format!("killed-{seed}");
    let up = Up::start(place, &name, &[]);
    let processes = up.processes();
    let wait = Duration::from_micros(random.next() % length);
    std::thread::sleep(wait);
    let (victim, pid) = &processes[(random.next() % processes.len() as u64) as usize];
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .stderr(std::process::Stdio::null())
        .status();
    let ended = up.ends();
    let what = format!("SELVEDGE_SEED={seed}: {victim} killed after {wait:?}");
    ended.is(expected, &what);
    ended.stays_within_bounds(&what);
    let _ = std::fs::remove_dir_all(place.join(&name));
    let again = ended.said["restarts"].as_u64().unwrap();
    killed.is_ok_and(|status| status.success()) && again > 0
}
