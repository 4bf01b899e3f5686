//! A gateway, an edge and a hospital that flood whomever they may talk to, with real connections and keys: they are cut
//! off, and the run ends the same.
//!
//! `SELVEDGE_FLOOD_SECONDS=20` floods for longer than a moment (`tools/flood`).

use crate::common::memory::memory;
use crate::deployment::{FORTY_INTERVALS, LONG, Up, place_alone, read, simulated};
use crate::hostile::{Flood, Flooder};
use crate::kit::{addresses, status};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long each of them floods.
fn time() -> Duration {
    let seconds = std::env::var("SELVEDGE_FLOOD_SECONDS").map_or(1.0, |s| s.parse().unwrap());
    Duration::from_secs_f64(seconds)
}

/// Whoever may flood, and who hears it.
fn flooders() -> [(Flooder, &'static str, Vec<&'static str>); 3] {
    let flooder = |name, greeted_at: &str, floods: &[&str]| Flooder {
        folder: format!("group-0/{name}"),
        name,
        greeted_at: greeted_at.to_owned(),
        floods: floods.iter().map(|&to| to.to_owned()).collect(),
    };
    [
        (
            flooder(
                "gateway-0",
                "group.0.edge.gateway-0",
                &["group.0.gateway-0.edge"],
            ),
            "gateway 0-0",
            vec!["group-0/edge"],
        ),
        (
            flooder(
                "edge",
                "group.0.hospital.edge",
                &[
                    "group.0.edge.hospital",
                    "group.0.edge.gateway-0",
                    "group.0.edge.gateway-1",
                    "up.0.edge.cloud",
                ],
            ),
            "edge 0",
            vec!["group-0/hospital", "group-0/gateway-0", "cloud"],
        ),
        (
            flooder(
                "hospital",
                "group.0.edge.hospital",
                &["group.0.hospital.edge", "up.0.hospital.cloud"],
            ),
            "hospital 0",
            vec!["group-0/edge", "cloud"],
        ),
    ]
}

/// A deployment that is watched.
struct Watched<'a> {
    up: Up<'a>,
    parties: BTreeMap<String, SocketAddr>,
}

/// What was seen of it in some time.
#[derive(Default)]
struct Seen {
    /// Intervals per second of groups other than the first.
    rate: f64,
    /// The most memory of each party and server.
    memory: BTreeMap<String, u64>,
    /// Intervals of each second.
    seconds: Vec<u64>,
}

impl<'a> Watched<'a> {
    fn start(place: &'a crate::common::Place, more: &[&str]) -> Self {
        let up = Up::start(place, "up", more);
        up.processes();
        let parties = addresses(&up.folder()).1;
        Watched { up, parties }
    }

    fn t(&self) -> u64 {
        let t = &status(self.parties["cloud"])["doing"]["t"];
        t.as_u64().unwrap_or_default()
    }

    #[track_caller]
    fn gets_beyond(&self, t: u64) {
        let began = Instant::now();
        while self.t() <= t {
            assert!(began.elapsed() < LONG, "it does not get beyond {t}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Intervals that the other groups' edges have done.
    fn intervals(&self) -> u64 {
        let others = self.parties.iter();
        let others =
            others.filter(|(name, _)| name.ends_with("/edge") && !name.starts_with("group-0/"));
        let counts = others.map(|(_, at)| {
            let count = &status(*at)["counters"]["phases"]["upload"]["count"];
            count.as_u64().unwrap_or_default()
        });
        counts.sum()
    }

    /// Looks on while something happens, for so long.
    fn while_<T: Send>(&self, time: Duration, happens: impl FnOnce() -> T + Send) -> (Seen, T) {
        let mut seen = Seen::default();
        std::thread::scope(|scope| {
            let (began, before) = (Instant::now(), self.intervals());
            let happening = scope.spawn(happens);
            while began.elapsed() < time || !happening.is_finished() {
                for (name, pid) in self.up.processes() {
                    let most = seen.memory.entry(name).or_default();
                    *most = memory(pid).unwrap_or_default().max(*most);
                }
                std::thread::sleep(Duration::from_millis(100));
                if began.elapsed().as_secs() > seen.seconds.len() as u64 {
                    let so_far = before + seen.seconds.iter().sum::<u64>();
                    seen.seconds.push(self.intervals().saturating_sub(so_far));
                }
            }
            let intervals = self.intervals().saturating_sub(before);
            seen.rate = intervals as f64 / began.elapsed().as_secs_f64();
            (seen, happening.join().unwrap())
        })
    }

    /// Waits until somebody is listened to again.
    fn is_heard_again(&self, flooder: &str, by: &[&str]) {
        let began = Instant::now();
        let is_cut_off = |name: &str| {
            let counters = &status(self.parties[name])["counters"];
            counters["dropped"][flooder]["is_cut_off"] == true
        };
        while by.iter().any(|name| is_cut_off(name)) {
            assert!(began.elapsed() < LONG, "{flooder} is still cut off");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// What a party has dropped of somebody.
fn dropped(party: SocketAddr, flooder: &str) -> Value {
    status(party)["counters"]["dropped"][flooder].clone()
}

/// What a server may take beyond twice as much as usual: it collects its garbage when there is as much again as it needs,
/// and more of it under load.
const GARBAGE: u64 = 32 << 20;

/// What a party may take beyond twice as much as in its first second, before it has measured a model.
const LATER: u64 = 4 << 20;

/// By how much memory has grown, of the party and of the server where it has grown most; and who has more than it may:
/// twice what is usual.
fn grown(usual: &Seen, seen: &Seen, later: u64) -> (String, Vec<String>) {
    let mut most = BTreeMap::new();
    let mut above = Vec::new();
    for (name, bytes) in &seen.memory {
        let usual = usual.memory.get(name).copied().unwrap_or(*bytes).max(1);
        let times = *bytes as f64 / usual as f64;
        let text = format!(
            "{name} {times:.2} times ({:.1} MB, usually {:.1} MB)",
            *bytes as f64 / 1e6,
            usual as f64 / 1e6
        );
        let is_server = name.ends_with("server") || name.starts_with("hub");
        if *bytes > 2 * usual + if is_server { GARBAGE } else { later } {
            above.push(text.clone());
        }
        let most = most.entry(is_server).or_insert((0.0, String::new()));
        if times > most.0 {
            *most = (times, text);
        }
    }
    let most: Vec<String> = most.into_values().map(|(_, text)| text).collect();
    (most.join(", "), above)
}

fn told(who: &str, flood: Flood, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    format!(
        "{who} sent {} messages and {:.0} MB in {seconds:.0} s",
        flood.messages,
        flood.bytes as f64 / 1e6
    )
}

/// The log of whoever heard the flood says whose it was.
fn is_named(folder: &Path, by: &str, flooder: &str) {
    let log = read(&folder.join(by).join("log"));
    let says = log.contains(&format!("{flooder} floods: it is not listened to"));
    assert!(says, "{by} does not name {flooder}:\n{log}");
}

/// Three groups, and so many iterations.
fn experiment(iterations: u64) -> String {
    let longer = FORTY_INTERVALS.replace("iterations = 80", &format!("iterations = {iterations}"));
    let longer = longer.replace("groups = 2", "groups = 3");
    longer.replace("evaluate_every = 8", "evaluate_every = 1000")
}

#[test]
fn who_floods_is_cut_off_and_the_run_ends_the_same() {
    let Some(place) = place_alone("up-flooded") else {
        return;
    };
    let time = time();
    let expected = simulated(&place, &experiment(2000), &[]);
    let watched = Watched::start(&place, &["--gateways", "2"]);
    watched.gets_beyond(40);
    let (usual, ()) = watched.while_(Duration::from_secs(1), || ());
    let folder = watched.up.folder();
    for (flooder, name, heard_by) in flooders() {
        let before = watched.t();
        let (seen, flood) = watched.while_(time, || flooder.floods_for(&folder, time));
        let ended = Instant::now();
        for by in &heard_by {
            let dropped = dropped(watched.parties[*by], name);
            println!("  {by} of {name}: {dropped}");
            assert!(dropped["cut_off"].as_u64() > Some(0), "{by} of {name}");
            is_named(&folder, by, name);
        }
        watched.is_heard_again(name, &heard_by);
        watched.gets_beyond(watched.t());
        let (most, above) = grown(&usual, &seen, LATER);
        println!(
            "{}; memory: {most}; it goes on {:.1} s later, from t = {before}",
            told(name, flood, time),
            ended.elapsed().as_secs_f64(),
        );
        assert!(above.is_empty(), "memory: {above:?}");
    }
    assert!(watched.t() < 2000, "it was over before all had happened");
    watched.up.ends().is(&expected, "flooded");
}

/// Takes a processor, as whoever floods does.
fn busy_for(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
#[ignore = "takes minutes: tools/flood runs it"]
fn others_go_on_while_somebody_floods() {
    let Some(place) = place_alone("up-flooded-others") else {
        return;
    };
    let time = time();
    let iterations = 2000 + 2400 * time.as_secs();
    place.write("experiment.toml", experiment(iterations));
    // Who floods is absent: others wait for it for three deadlines and no longer.
    let deadlines = ["--deadline", "0.5", "--group-deadline", "1"];
    let watched = Watched::start(&place, &[&["--gateways", "2"][..], &deadlines].concat());
    watched.gets_beyond(100);
    let folder = watched.up.folder();
    let mut slow = Vec::new();
    for (flooder, name, heard_by) in flooders() {
        let (control, ()) = watched.while_(time, || busy_for(time));
        println!("with a busy loop, by seconds: {:?}", control.seconds);
        let (seen, flood) = watched.while_(time, || flooder.floods_for(&folder, time));
        let (most, above) = grown(&control, &seen, 0);
        let slower = control.rate / seen.rate;
        println!(
            "{}\n  intervals of others: {:.0} per second, {:.0} with a busy loop instead: {slower:.2} times as long",
            told(name, flood, time),
            seen.rate,
            control.rate,
        );
        println!("  by seconds: {:?}", seen.seconds);
        println!("  memory: {most}");
        for by in &heard_by {
            println!("  {by} of {name}: {}", dropped(watched.parties[*by], name));
        }
        watched.is_heard_again(name, &heard_by);
        if slower >= 2.0 || !above.is_empty() {
            slow.push((name, slower, above));
        }
        assert!(
            watched.t() < iterations,
            "it was over before all had happened"
        );
    }
    assert!(slow.is_empty(), "too slow or too large: {slow:?}");
    let ended = watched.up.ends();
    let replayed = [
        "train",
        "experiment.toml",
        "--replay",
        "up",
        "--out",
        "again",
    ];
    place.succeeds(&replayed);
    let again = crate::common::run::Run::at(&place, "again");
    assert_eq!(
        std::fs::read(again.0.join("model.safetensors")).unwrap(),
        std::fs::read(ended.run.0.join("model.safetensors")).unwrap(),
        "the replay gives the same model"
    );
}
