//! A kit of `selvedge provision`, whose servers and parties a test starts one by one, as people would.

use crate::common::process::Live;
use crate::common::{Place, selvedge};
use crate::deployment::{LONG, read};
use selvedge_net::broker::{Program, Server, ask, free_port, free_ports};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Hospitals of this machine, each with so many gateways.
pub(crate) fn consortium(cloud_servers: usize, hospitals: &[(&str, u16)]) -> String {
    let port = || free_port().unwrap();
    let mut text = format!(
        "name = \"trial\"\nexperiment = \"experiment.toml\"\nthreads = 1\nhttp = {}\n",
        port()
    );
    for _ in 0..cloud_servers {
        text += &format!(
            "[[cloud]]\nhost = \"127.0.0.1\"\nlisten = \"127.0.0.1\"\nclient = {}\nlinks = {}\ncluster = {}\nmonitor = {}\n",
            port(),
            port(),
            port(),
            port()
        );
    }
    for (name, gateways) in hospitals {
        text += &format!(
            "[[hospital]]\nname = \"{name}\"\nhost = \"localhost\"\nlisten = \"127.0.0.1\"\nclient = {}\nmonitor = {}\nhttp = {}\ngateways = {gateways}\n",
            port(),
            port(),
            free_ports(2 + gateways).unwrap()
        );
    }
    text
}

/// Where servers are monitored and where parties answer, by the names of their folders.
type Addresses = (BTreeMap<String, SocketAddr>, BTreeMap<String, SocketAddr>);

/// Those of a kit.
pub(crate) fn addresses(folder: &Path) -> Addresses {
    let description: Value = serde_json::from_str(&read(&folder.join("deployment.json"))).unwrap();
    let at = |port: u64| SocketAddr::from(([127, 0, 0, 1], port as u16));
    let c = &description["consortium"];
    let (mut servers, mut nodes) = (BTreeMap::new(), BTreeMap::new());
    let hubs = c["cloud"].as_array().unwrap();
    for (i, hub) in hubs.iter().enumerate() {
        let name = match hubs.len() {
            1 => "hub".to_owned(),
            _ => format!("hub-{i}"),
        };
        servers.insert(name, at(hub["monitor"].as_u64().unwrap()));
    }
    nodes.insert("cloud".to_owned(), at(c["http"].as_u64().unwrap()));
    for hospital in c["hospital"].as_array().unwrap() {
        let name = hospital["name"].as_str().unwrap();
        let monitor = at(hospital["monitor"].as_u64().unwrap());
        servers.insert(format!("{name}/server"), monitor);
        let http = hospital["http"].as_u64().unwrap();
        nodes.insert(format!("{name}/hospital"), at(http));
        nodes.insert(format!("{name}/edge"), at(http + 1));
        for g in 0..hospital["gateways"].as_u64().unwrap() {
            nodes.insert(format!("{name}/gateway-{g}"), at(http + 2 + g));
        }
    }
    (servers, nodes)
}

/// What a party says of itself; nothing if it does not answer.
pub(crate) fn status(address: SocketAddr) -> Value {
    let (_, body) = ask(address, "/status").unwrap_or_default();
    serde_json::from_str(&body).unwrap_or_default()
}

/// A kit, and what was started of it; all ends with it.
pub(crate) struct Kit {
    folder: PathBuf,
    pub(crate) nodes: BTreeMap<String, Live>,
    pub(crate) servers: BTreeMap<String, Server>,
}

impl Kit {
    /// Cuts the set of `experiment.toml` and makes the kit `kit` from it. Where the experiment says nothing of defences, the
    /// kit has none, as the simulation that it is compared with.
    pub(crate) fn of_shards(place: &Place, consortium: &str) -> Self {
        let experiment = read(&place.join("experiment.toml"));
        if !experiment.contains("[defence]") {
            place.write(
                "experiment.toml",
                experiment + "\n[defence]\nquarantine = 0\n",
            );
        }
        place.write("consortium.toml", consortium);
        place.succeeds(&["data", "split", "experiment.toml", "--out", "shards"]);
        let args = ["provision", "consortium.toml", "--out", "kit"];
        place.succeeds(&[&args[..], &["--shards", "shards"]].concat());
        Kit {
            folder: place.join("kit"),
            nodes: BTreeMap::new(),
            servers: BTreeMap::new(),
        }
    }

    /// Makes the kit `kit` for parties that will enrol with tables of their own.
    pub(crate) fn for_enrolment(place: &Place, consortium: &str) -> Self {
        place.write("consortium.toml", consortium);
        place.succeeds(&["provision", "consortium.toml", "--out", "kit"]);
        Kit {
            folder: place.join("kit"),
            nodes: BTreeMap::new(),
            servers: BTreeMap::new(),
        }
    }

    fn addresses(&self) -> Addresses {
        addresses(&self.folder)
    }

    /// Where a party answers over HTTP.
    pub(crate) fn http(&self, name: &str) -> String {
        self.addresses().1[name].to_string()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts a server; those of a cluster are healthy only together.
    pub(crate) fn launch(&mut self, name: &str) {
        let monitor = self.addresses().0[name];
        let (config, log) = (
            self.file(&format!("{name}/server.conf")),
            self.file(&format!("{name}/log")),
        );
        let server = Program::find().unwrap().launch(&config, monitor, &log);
        self.servers.insert(name.to_owned(), server.unwrap());
    }

    /// Stops a server and starts it again, until it is healthy.
    pub(crate) fn restart(&mut self, name: &str) {
        self.servers.remove(name).unwrap().stop().unwrap();
        self.launch(name);
        let server = self.servers.get_mut(name).unwrap();
        server.wait_until_healthy().unwrap();
    }

    /// Starts all servers.
    pub(crate) fn launch_all(&mut self) {
        for name in self.addresses().0.into_keys() {
            self.launch(&name);
        }
        for server in self.servers.values_mut() {
            server
                .wait_until_healthy()
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// Starts a party.
    pub(crate) fn start(&mut self, name: &str) {
        self.start_as("node", name, &[]);
    }

    /// Starts a party with `selvedge node` or `selvedge enrol`, told more besides.
    pub(crate) fn start_as(&mut self, command: &str, name: &str, more: &[&str]) {
        let kind = match name.rsplit('/').next().unwrap_or_default() {
            gateway if gateway.starts_with("gateway") => "devices",
            kind => kind,
        };
        let args = [command, kind, "--config", "node.toml"];
        let mut command = selvedge(&self.file(name));
        command.args(args).args(more);
        self.nodes
            .insert(name.to_owned(), Live::start(&mut command));
    }

    /// Kills a party.
    pub(crate) fn kill(&mut self, name: &str) {
        drop(self.nodes.remove(name));
    }

    /// Starts whoever has ended with an error again, as a service manager does, and says why it had ended.
    pub(crate) fn look_after(&mut self) {
        let mut failed = Vec::new();
        for (name, node) in &mut self.nodes {
            if !node.is_running() {
                failed.push(name.clone());
            }
        }
        for name in failed {
            let ran = self.nodes.remove(&name).unwrap().collect(LONG);
            match ran.code() {
                Some(0) => {}
                Some(2) => {
                    let last = ran.stderr.lines().last().unwrap_or_default().to_owned();
                    println!("{name} ended: {last}");
                    assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
                    self.start(&name);
                }
                code => panic!("{name} ended with {code:?}: {}", ran.stderr),
            }
        }
    }

    /// Waits for the end of all parties, who are looked after.
    #[track_caller]
    pub(crate) fn ends_looked_after(&mut self) {
        let began = Instant::now();
        while !self.nodes.is_empty() {
            self.look_after();
            assert!(began.elapsed() < LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts all parties.
    pub(crate) fn start_all(&mut self) {
        for name in self.addresses().1.into_keys() {
            self.start(&name);
        }
    }

    /// Where the cloud is.
    pub(crate) fn t(&self) -> u64 {
        let status = status(self.addresses().1["cloud"]);
        status["doing"]["t"].as_u64().unwrap_or_default()
    }

    /// Waits until the cloud has got further than that.
    #[track_caller]
    pub(crate) fn gets_beyond(&self, t: u64) -> u64 {
        let began = Instant::now();
        loop {
            let now = self.t();
            if now > t {
                return now;
            }
            assert!(began.elapsed() < LONG, "still at {now}, not beyond {t}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the cloud does not get any further.
    #[track_caller]
    pub(crate) fn stands_still(&self) -> u64 {
        let began = Instant::now();
        loop {
            let t = self.t();
            std::thread::sleep(Duration::from_secs(1));
            if self.t() == t {
                return t;
            }
            assert!(began.elapsed() < LONG, "it still goes on at {t}");
        }
    }

    /// What a server says of its clients and links, with their keys.
    pub(crate) fn connected(&self, server: &str) -> String {
        let monitor = self.addresses().0[server];
        let pages = ["/connz?auth=1", "/leafz?auth=1"];
        pages.map(|page| ask(monitor, page).unwrap().1).concat()
    }

    /// Waits for the end of all parties, which must be a good one.
    #[track_caller]
    pub(crate) fn ends(&mut self) {
        for (name, node) in std::mem::take(&mut self.nodes) {
            let ran = node.collect(LONG);
            if let Some(complaint) = ran.complaint(0) {
                panic!("{name}: {complaint}");
            }
        }
    }
}
