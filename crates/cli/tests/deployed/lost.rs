//! Disks that are lost, restored from a backup, cut off or full, one after the other in one run, which ends as the
//! simulation does.

use crate::common::disk::Disk;
use crate::common::run::{Run, same_results};
use crate::common::{Place, copy};
use crate::deployment::{
    FORTY_INTERVALS, LONG, Up, place_alone, place_with_server, read, simulated,
};
use crate::kit::{Kit, consortium};
use selvedge_net::broker::ask;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Long enough for all that happens, and each global interval short.
fn long() -> String {
    let longer = FORTY_INTERVALS.replace("iterations = 80", "iterations = 3000");
    longer.replace("evaluate_every = 8", "evaluate_every = 100")
}

const SERVERS: [&str; 2] = ["hub", "north/server"];

/// Whose records are on which server.
pub(crate) fn parties(server: &str) -> &'static [&'static str] {
    match server {
        "hub" => &["cloud"],
        "north/server" => &["north/hospital", "north/edge"],
        _ => &["south/hospital", "south/edge"],
    }
}

pub(crate) fn store(kit: &Kit, server: &str) -> PathBuf {
    kit.file(&format!("{server}/store"))
}

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

/// Every block of a store loses its second half.
pub(crate) fn cut_off(store: &Path) {
    let mut all = Vec::new();
    files(store, &mut all);
    all.retain(|path| path.extension().is_some_and(|e| e == "blk"));
    assert!(!all.is_empty(), "streams have blocks");
    for path in all {
        let length = fs::metadata(&path).unwrap().len();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(length / 2).unwrap();
    }
}

struct Running {
    kit: Kit,
    expected: Run,
    t: u64,
}

impl Running {
    fn begin(place: &Place) -> Self {
        let expected = simulated(place, &long(), &[]);
        let mut kit = Kit::of_shards(place, &consortium(1, &[("north", 1), ("south", 2)]));
        kit.launch_all();
        kit.start_all();
        let t = kit.gets_beyond(40);
        Running { kit, expected, t }
    }

    /// Something happens to a server's disk while the server is down; `killed` says whether its parties die too. Then it
    /// goes on.
    fn with_server_down(&mut self, server: &str, killed: bool, happens: impl FnOnce(&Path)) {
        let parties = if killed { parties(server) } else { &[] };
        self.with_dead(parties, server, happens);
        self.goes_on();
    }

    /// The same while some parties are dead.
    fn with_dead(&mut self, parties: &[&str], server: &str, happens: impl FnOnce(&Path)) {
        self.kit.servers.remove(server).unwrap().kill().unwrap();
        parties.iter().for_each(|name| self.kit.kill(name));
        happens(&store(&self.kit, server));
        self.kit.launch(server);
        let again = self.kit.servers.get_mut(server).unwrap();
        again.wait_until_healthy().unwrap();
        parties.iter().for_each(|name| self.kit.start(name));
    }

    fn goes_on(&mut self) {
        self.kit.look_after();
        let began = Instant::now();
        while self.kit.t() <= self.t + 40 {
            self.kit.look_after();
            assert!(began.elapsed() < LONG, "still at {}", self.kit.t());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.t = self.kit.t();
    }

    /// What a party says of itself as soon as it is not well.
    fn is_unhealthy(&mut self, party: &str) -> String {
        let http = self.kit.http(party).parse().unwrap();
        let began = Instant::now();
        loop {
            self.kit.look_after();
            match ask(http, "/healthz") {
                Ok((503, said)) => return said,
                // It notices at the next write, which a busy machine delays.
                _ => assert!(began.elapsed() < LONG, "it runs on"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn ends(mut self, what: &str) {
        println!("{what} at t = {}", self.t);
        assert!(self.t < 3000, "it was over before all had happened");
        self.kit.ends_looked_after();
        same_results(&self.expected, &Run(self.kit.file("cloud/run")), what);
    }
}

#[test]
fn each_servers_disk_is_lost_restored_and_cut_off_and_the_run_ends_the_same() {
    let Some(place) = place_with_server("lost-disks") else {
        return;
    };
    let mut running = Running::begin(&place);
    for server in SERVERS {
        for killed in [false, true] {
            running.with_server_down(server, killed, |store| fs::remove_dir_all(store).unwrap());
            // A backup, and some time later what it was made for.
            let backup = place.join("backup");
            running.with_server_down(server, false, |store| copy(store, &backup));
            running.with_server_down(server, killed, |store| {
                fs::remove_dir_all(store).unwrap();
                fs::rename(&backup, store).unwrap();
            });
            running.with_server_down(server, killed, cut_off);
        }
    }
    let lost = fs::metadata(running.kit.file("cloud/run/record"));
    assert!(lost.unwrap().len() > 100, "the cloud keeps a copy");
    running.ends("each disk was lost, restored and cut off");
}

#[test]
fn a_partys_own_folder_is_lost_or_restored_and_the_run_ends_the_same() {
    let Some(place) = place_with_server("lost-copies") else {
        return;
    };
    let mut running = Running::begin(&place);
    for name in ["north/hospital", "north/edge", "cloud"] {
        let folder = match name {
            "cloud" => "cloud/run".to_owned(),
            name => name.to_owned(),
        };
        let record = running.kit.file(&format!("{folder}/record"));
        let earlier = fs::read(&record).unwrap();
        running.goes_on();
        running.kit.kill(name);
        fs::write(&record, &earlier).unwrap();
        running.kit.start(name);
        running.goes_on();
        running.kit.kill(name);
        fs::write(&record, &earlier[..earlier.len() / 2]).unwrap();
        running.kit.start(name);
        running.goes_on();
        running.kit.kill(name);
        fs::remove_file(&record).unwrap();
        running.kit.start(name);
        running.goes_on();
    }
    running.ends("each copy was restored, cut off and lost");
}

/// A server's disk fills up, is full for a while, and is freed. Meanwhile the party says what is wrong.
#[test]
fn a_full_disk_is_told_and_heals_when_there_is_room_again() {
    let Some(place) = place_alone("full-store") else {
        return;
    };
    let mut running = Running::begin(&place);
    for (name, party) in [("hub", "cloud"), ("north/server", "north/hospital")] {
        let disk = place.join(format!("disk-{}", party.replace('/', "-")));
        let Some(mounted) = Disk::mount(&disk, 32 << 10) else {
            println!("skipped: mounting a small disk needs root");
            return;
        };
        running.with_server_down(name, false, |store| {
            copy(store, &disk.join("store"));
            fs::remove_dir_all(store).unwrap();
            std::os::unix::fs::symlink(disk.join("store"), store).unwrap();
        });
        let ballast = disk.join("ballast");
        let _ = fs::write(&ballast, vec![0; 64 << 20]);
        let said = running.is_unhealthy(party);
        assert!(said.contains("keeps its records"), "{said}");
        fs::remove_file(&ballast).unwrap();
        // What looks after a server does this (`selvedge up` by itself).
        running.kit.restart(name);
        running.goes_on();
        // Back to where it was, so that the small disk can go.
        running.with_server_down(name, false, |store| {
            fs::remove_file(store).unwrap();
            copy(&disk.join("store"), store);
        });
        drop(mounted);
    }
    running.ends("disks were full for a while");
}

/// `selvedge up` looks after its servers: a disk that was full heals by itself when there is room again.
#[test]
fn up_heals_a_disk_that_was_full() {
    let Some(place) = place_with_server("up-full") else {
        return;
    };
    let expected = simulated(&place, &long(), &[]);
    let Some(disk) = Disk::mount(&place.join("disk"), 32 << 10) else {
        println!("skipped: mounting a small disk needs root");
        return;
    };
    let up = Up::start(&place, "disk/up", &["--threads", "1"]);
    up.processes();
    std::thread::sleep(Duration::from_secs(1));
    let ballast = place.join("disk/ballast");
    let _ = fs::write(&ballast, vec![0; 64 << 20]);
    std::thread::sleep(Duration::from_secs(4));
    fs::remove_file(&ballast).unwrap();
    up.ends().is(&expected, "the disk was full for a while");
    drop(disk);
}

/// The cloud has lost its record and its copy: it does not begin again by itself, and does not touch its results.
#[test]
fn a_cloud_without_any_record_of_its_run_stops_and_says_what_goes_on() {
    let Some(place) = place_with_server("lost-cloud") else {
        return;
    };
    let mut running = Running::begin(&place);
    running.kit.servers.remove("hub").unwrap().kill().unwrap();
    running.kit.kill("cloud");
    let metrics = read(&running.kit.file("cloud/run/metrics.jsonl"));
    fs::remove_dir_all(store(&running.kit, "hub")).unwrap();
    fs::remove_file(running.kit.file("cloud/run/record")).unwrap();
    running.kit.launch("hub");
    let hub = running.kit.servers.get_mut("hub").unwrap();
    hub.wait_until_healthy().unwrap();
    running.kit.start("cloud");
    let ran = running.kit.nodes.remove("cloud").unwrap();
    let ran = ran.collect(Duration::from_secs(30));
    ran.refused(&["record is lost", "--forget", "run", "backup"]);
    assert_eq!(metrics, read(&running.kit.file("cloud/run/metrics.jsonl")));
}

/// Server and folder together: nothing is left of a hospital's record, then of an edge's, then of both; at last the cloud
/// and its server are restored from a backup that is older than what the groups have done since.
#[test]
fn what_is_lost_for_good_is_trained_again_from_the_last_aggregation() {
    let Some(place) = place_with_server("lost-for-good") else {
        return;
    };
    let mut running = Running::begin(&place);
    for names in [
        &["north/hospital"][..],
        &["north/edge"],
        &["north/hospital", "north/edge"],
    ] {
        for name in names {
            running.kit.kill(name);
            fs::remove_file(running.kit.file(&format!("{name}/record"))).unwrap();
        }
        // The other party of the site lives, and writes its record again.
        running.with_dead(names, "north/server", |store| {
            fs::remove_dir_all(store).unwrap();
        });
        running.goes_on();
    }
    let (run, backup) = (running.kit.file("cloud/run"), place.join("backup"));
    running.kit.servers.remove("hub").unwrap().kill().unwrap();
    running.kit.nodes.remove("cloud");
    copy(&store(&running.kit, "hub"), &backup.join("store"));
    copy(&run, &backup.join("run"));
    let before = read(&run.join("metrics.jsonl"));
    let restore = |running: &mut Running| {
        running.kit.launch("hub");
        let hub = running.kit.servers.get_mut("hub").unwrap();
        hub.wait_until_healthy().unwrap();
        running.kit.start("cloud");
        running.goes_on();
    };
    restore(&mut running);
    running.t += 200;
    running.goes_on();
    running.kit.servers.remove("hub").unwrap().kill().unwrap();
    running.kit.kill("cloud");
    for (from, to) in [("store", store(&running.kit, "hub")), ("run", run)] {
        fs::remove_dir_all(&to).unwrap();
        copy(&backup.join(from), &to);
    }
    running.t = 0;
    restore(&mut running);
    let after = read(&running.kit.file("cloud/run/metrics.jsonl"));
    assert!(after.starts_with(&before), "no line was lost");
    running.ends("all was lost in turn");
}
