//! Faults of all kinds in mixed order on one long run: kills, stops, floods, garbage, disks that are lost, restored and cut
//! off. The run ends as the simulation does, and nothing grows.
//!
//! `SELVEDGE_FAULTS=200` has so many of them instead of a handful, `SELVEDGE_SEED=7` others (`tools/faults`).

use crate::common::memory::{disk, memory};
use crate::common::process::Live;
use crate::common::run::{Run, same_results};
use crate::common::{Place, copy};
use crate::deployment::{FORTY_INTERVALS, LONG, place_alone, simulated};
use crate::hostile::Flooder;
use crate::killed::{Random, number};
use crate::kit::{Kit, consortium};
use crate::lost::{cut_off, parties, store};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// So many iterations between two faults.
const APART: u64 = 300;

const SERVERS: [&str; 3] = ["hub", "north/server", "south/server"];

const PARTIES: [&str; 8] = [
    "cloud",
    "north/hospital",
    "north/edge",
    "north/gateway-0",
    "north/gateway-1",
    "south/hospital",
    "south/edge",
    "south/gateway-0",
];

/// Those with somebody to talk to, of whom they may say as much as they like.
const HOSTILE: &[&str] = PARTIES.split_at(1).1;

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Killed,
    ServerKilled,
    Stopped,
    ServerStopped,
    Flood,
    Garbage,
    StoreLost,
    StoreRestored,
    StoreCutOff,
    CopyLost,
    CopyRestored,
    CopyCutOff,
}

const FAULTS: [Fault; 12] = [
    Fault::Killed,
    Fault::ServerKilled,
    Fault::Stopped,
    Fault::ServerStopped,
    Fault::Flood,
    Fault::Garbage,
    Fault::StoreLost,
    Fault::StoreRestored,
    Fault::StoreCutOff,
    Fault::CopyLost,
    Fault::CopyRestored,
    Fault::CopyCutOff,
];

impl Random {
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Some time up to so many milliseconds.
    fn time(&mut self, most: usize) -> Duration {
        Duration::from_millis(self.below(most) as u64)
    }
}

struct Faulty<'a> {
    place: &'a Place,
    kit: Kit,
    random: Random,
    /// Sizes of processes and disks after each fault.
    sizes: BTreeMap<String, Vec<u64>>,
}

/// A hostile client in the name of a party.
fn flooder(party: &str) -> Flooder {
    let (site, name) = party.split_once('/').unwrap();
    let m = if site == "north" { 0 } else { 1 };
    let inside = |from: &str, to: &str| format!("group.{m}.{from}.{to}");
    let (name, neighbour, floods) = match name {
        "hospital" => (
            "hospital",
            "edge",
            vec![inside("hospital", "edge"), format!("up.{m}.hospital.cloud")],
        ),
        "edge" => (
            "edge",
            "hospital",
            vec![
                inside("edge", "hospital"),
                inside("edge", "gateway-0"),
                format!("up.{m}.edge.cloud"),
            ],
        ),
        "gateway-0" => ("gateway-0", "edge", vec![inside("gateway-0", "edge")]),
        _ => ("gateway-1", "edge", vec![inside("gateway-1", "edge")]),
    };
    Flooder {
        folder: party.to_owned(),
        name,
        greeted_at: inside(neighbour, name),
        floods,
    }
}

impl Faulty<'_> {
    /// One fault; what it was.
    fn happens(&mut self, fault: Fault) -> String {
        let Faulty { kit, random, .. } = self;
        match fault {
            Fault::Killed => {
                let (party, pause) = (random.of(&PARTIES), random.time(2000));
                kit.kill(party);
                std::thread::sleep(pause);
                kit.start(party);
                format!("{party} killed, started again after {pause:?}")
            }
            Fault::Stopped => {
                let (party, pause) = (random.of(&PARTIES), random.time(4000));
                // It may have ended by itself.
                let Some(pid) = kit.nodes.get_mut(party).and_then(Live::pid) else {
                    return format!("{party} is not there to be stopped");
                };
                signal(pid, "STOP");
                std::thread::sleep(pause);
                signal(pid, "CONT");
                format!("{party} stopped for {pause:?}")
            }
            Fault::ServerStopped => {
                let (server, pause) = (random.of(&SERVERS), random.time(4000));
                let pid = kit.servers[server].pid();
                signal(pid, "STOP");
                std::thread::sleep(pause);
                signal(pid, "CONT");
                format!("{server} stopped for {pause:?}")
            }
            Fault::Flood => {
                let (party, time) = (random.of(HOSTILE), random.time(1500));
                let flood = flooder(party).floods_for(&kit.file(""), time);
                format!("{party} floods for {time:?}: {} bytes", flood.bytes)
            }
            Fault::Garbage => {
                let party = random.of(HOSTILE);
                flooder(party).says_nonsense(&kit.file(""), 300);
                format!("{party} says nonsense")
            }
            Fault::ServerKilled => {
                let server = random.of(&SERVERS);
                self.with_server_down(server, |_, _| String::new());
                format!("{server} killed")
            }
            Fault::StoreLost => self.store(|_, store| {
                fs::remove_dir_all(store).unwrap();
                "lost".into()
            }),
            Fault::StoreRestored => self.store(|backup, store| match backup.exists() {
                true => {
                    fs::remove_dir_all(store).unwrap();
                    fs::rename(backup, store).unwrap();
                    "restored from a backup".into()
                }
                false => {
                    copy(store, backup);
                    "copied".into()
                }
            }),
            Fault::StoreCutOff => self.store(|_, store| {
                cut_off(store);
                "cut off".into()
            }),
            Fault::CopyLost => self.copy(|_, record| {
                let _ = fs::remove_file(record);
                "lost".into()
            }),
            Fault::CopyRestored => self.copy(|backup, record| match backup.exists() {
                true => {
                    fs::rename(backup, record).unwrap();
                    "restored from a backup".into()
                }
                false => {
                    fs::copy(record, backup).unwrap();
                    "copied".into()
                }
            }),
            Fault::CopyCutOff => self.copy(|_, record| {
                let bytes = fs::read(record).unwrap();
                fs::write(record, &bytes[..bytes.len() / 2]).unwrap();
                "cut off".into()
            }),
        }
    }

    /// A server is killed, its parties perhaps with it, and something happens to its store.
    fn with_server_down(
        &mut self,
        server: &str,
        happens: impl FnOnce(&PathBuf, &PathBuf) -> String,
    ) -> String {
        let with_parties = self.random.below(2) == 1;
        let parties = parties(server);
        self.kit.servers.remove(server).unwrap().kill().unwrap();
        if with_parties {
            parties.iter().for_each(|name| self.kit.kill(name));
        }
        let backup = self
            .place
            .join(format!("{}-backup", server.replace('/', "-")));
        let what = happens(&backup, &store(&self.kit, server));
        std::thread::sleep(self.random.time(2000));
        self.kit.launch(server);
        let again = self.kit.servers.get_mut(server).unwrap();
        again.wait_until_healthy().unwrap();
        if with_parties {
            parties.iter().for_each(|name| self.kit.start(name));
        }
        format!("{what}, parties killed: {with_parties}")
    }

    fn store(&mut self, happens: impl FnOnce(&PathBuf, &PathBuf) -> String) -> String {
        let server = self.random.of(&SERVERS);
        let what = self.with_server_down(server, happens);
        format!("the store of {server} {what}")
    }

    /// A party is killed, and something happens to the record in its folder.
    fn copy(&mut self, happens: impl FnOnce(&PathBuf, &PathBuf) -> String) -> String {
        let kept = [
            "cloud",
            "north/hospital",
            "north/edge",
            "south/hospital",
            "south/edge",
        ];
        let party = self.random.of(&kept);
        self.kit.kill(party);
        let folder = match party {
            "cloud" => "cloud/run",
            party => party,
        };
        let record = self.kit.file(&format!("{folder}/record"));
        let backup = self.place.join(format!("{}-copy", party.replace('/', "-")));
        let what = match record.exists() {
            true => happens(&backup, &record),
            false => "not there".into(),
        };
        self.kit.start(party);
        format!("the copy of {party} {what}")
    }

    /// Waits until the run is that far.
    fn gets_to(&mut self, t: u64, after: &str) {
        let began = Instant::now();
        while self.kit.t() < t {
            self.kit.look_after();
            assert!(began.elapsed() < LONG, "at {} after {after}", self.kit.t());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn measure(&mut self) {
        let mut found = Vec::new();
        for (name, server) in &self.kit.servers {
            found.push((format!("memory of {name}"), memory(server.pid())));
            let folder = self.kit.file(name);
            found.push((format!("disk of {name}"), Some(disk(&folder))));
        }
        let folders: Vec<String> = self.kit.nodes.keys().cloned().collect();
        for name in folders {
            let pid = self.kit.nodes.get_mut(&name).and_then(Live::pid);
            found.push((format!("memory of {name}"), pid.and_then(memory)));
            let folder = self.kit.file(&name);
            found.push((format!("disk of {name}"), Some(disk(&folder))));
        }
        for (name, size) in found {
            self.sizes.entry(name).or_default().extend(size);
        }
    }

    /// What is larger in the last third than in the first, by half and by more than a server's block of records.
    fn grown(&self) -> Vec<String> {
        let mean = |some: &[u64]| some.iter().sum::<u64>() / some.len().max(1) as u64;
        let grown = self.sizes.iter().filter_map(|(name, sizes)| {
            let third = sizes.len() / 3;
            let (first, last) = (mean(&sizes[..third]), mean(&sizes[sizes.len() - third..]));
            let most = sizes.iter().max().copied().unwrap_or_default();
            println!(
                "  {name}: {:.1} MB, {:.1} MB at last, {:.1} MB at most",
                first as f64 / 1e6,
                last as f64 / 1e6,
                most as f64 / 1e6
            );
            (last > first + first / 2 + (8 << 20)).then(|| name.clone())
        });
        grown.collect()
    }
}

fn signal(pid: u32, name: &str) {
    let args = [format!("-{name}"), pid.to_string()];
    let sent = std::process::Command::new("kill").args(args).status();
    assert!(sent.unwrap().success(), "kill -{name} {pid}");
}

#[test]
fn any_faults_in_any_order_and_the_run_ends_the_same() {
    let Some(place) = place_alone("faults") else {
        return;
    };
    let (count, seed) = (
        number("SELVEDGE_FAULTS").unwrap_or(6),
        number("SELVEDGE_SEED").unwrap_or(1),
    );
    // While somebody floods, others go on: the run must outlast the last fault all the same.
    let iterations = format!("iterations = {}", (count + 12) * APART);
    let long = FORTY_INTERVALS.replace("iterations = 80", &iterations);
    let long = long.replace("evaluate_every = 8", "evaluate_every = 100");
    let expected = simulated(&place, &long, &[]);
    let mut kit = Kit::of_shards(&place, &consortium(1, &[("north", 2), ("south", 1)]));
    kit.launch_all();
    kit.start_all();
    let mut faulty = Faulty {
        place: &place,
        kit,
        random: Random(seed),
        sizes: BTreeMap::new(),
    };
    // All kinds, as often as each other, in an order of the seed's.
    let mut order: Vec<Fault> = (0..count as usize)
        .map(|i| FAULTS[i % FAULTS.len()])
        .collect();
    for i in (1..order.len()).rev() {
        order.swap(i, faulty.random.below(i + 1));
    }
    let (began, mut before) = (Instant::now(), String::from("the start"));
    for (number, fault) in order.into_iter().enumerate() {
        faulty.gets_to((number as u64 + 1) * APART, &before);
        faulty.measure();
        before = faulty.happens(fault);
        let at = faulty.kit.t();
        println!(
            "{number:>4}  {:>5.0} s  t {at:>6}  {before}",
            began.elapsed().as_secs_f64()
        );
        faulty.kit.look_after();
    }
    faulty.gets_to((count + 1) * APART, &before);
    let grown = faulty.grown();
    faulty.kit.ends_looked_after();
    let what = format!("SELVEDGE_SEED={seed}, {count} faults");
    same_results(&expected, &Run(faulty.kit.file("cloud/run")), &what);
    println!("{what}: {:.0} s", began.elapsed().as_secs_f64());
    assert!(count < 30 || grown.is_empty(), "{grown:?} have grown");
}
