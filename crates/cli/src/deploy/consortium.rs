//! A consortium as its operator describes it: where the cloud's servers are, which hospitals there are, and how each of
//! their servers is reached.

use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::enrol::MOST_GATEWAYS;
use selvedge_core::role::Party;
use selvedge_net::deadlines::Deadlines;
use selvedge_net::subjects::is_name;
use selvedge_run::files::read_text;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Names of folders of a kit, which no hospital can have.
const TAKEN: [&str; 7] = [
    "authority",
    "cloud",
    "hub",
    "hub-0",
    "hub-1",
    "hub-2",
    "run",
];

/// `CONSORTIUM.toml`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Consortium {
    /// What it is called, and its run.
    pub(crate) name: String,
    /// The experiment, seen from the file's folder.
    #[serde(default)]
    pub(crate) experiment: PathBuf,
    /// The first of the ports at which parties answer over HTTP, each on its own machine: the cloud's.
    #[serde(default = "port::<9100>")]
    pub(crate) http: u16,
    /// Threads that each party computes with; all that there are, if nothing is said.
    #[serde(default)]
    pub(crate) threads: Option<usize>,
    /// Whether servers have records on the disk before they acknowledge them.
    #[serde(default = "yes")]
    pub(crate) durable: bool,
    /// The cloud's servers: one, or the three of a cluster.
    pub(crate) cloud: Vec<CloudServer>,
    /// The hospitals, each a group.
    #[serde(rename = "hospital")]
    pub(crate) hospitals: Vec<Hospital>,
    /// How long parties wait for whom.
    #[serde(default)]
    pub(crate) deadlines: Deadlines,
}

/// A server of the cloud.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloudServer {
    /// The name or address by which others reach it.
    pub(crate) host: String,
    /// The address that it listens at.
    #[serde(default = "everywhere")]
    pub(crate) listen: IpAddr,
    /// Where the cloud's node connects.
    #[serde(default = "port::<4222>")]
    pub(crate) client: u16,
    /// Where hospitals' servers connect.
    #[serde(default = "port::<7422>")]
    pub(crate) links: u16,
    /// Where the other two of a cluster connect.
    #[serde(default = "port::<6222>")]
    pub(crate) cluster: u16,
    /// Where its health is read, on its own machine.
    #[serde(default = "port::<8222>")]
    pub(crate) monitor: u16,
}

/// A hospital: its server, and the parties there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hospital {
    /// What it is called: a folder, and what people read.
    pub(crate) name: String,
    /// The name or address by which its edge and gateways reach its server.
    pub(crate) host: String,
    /// The address that it listens at.
    #[serde(default = "everywhere")]
    pub(crate) listen: IpAddr,
    /// Where its parties connect.
    #[serde(default = "port::<4222>")]
    pub(crate) client: u16,
    /// Where its health is read, on its own machine.
    #[serde(default = "port::<8222>")]
    pub(crate) monitor: u16,
    /// How many gateways carry its patients' devices.
    #[serde(default = "one")]
    pub(crate) gateways: u32,
    /// The first of the ports at which its parties answer over HTTP: the hospital's, the edge's, then each gateway's.
    #[serde(default = "port::<9101>")]
    pub(crate) http: u16,
    /// Addresses that its server dials instead of the cloud's, proxies say.
    #[serde(default)]
    pub(crate) dial: Vec<String>,
}

fn yes() -> bool {
    true
}
fn everywhere() -> IpAddr {
    Ipv4Addr::UNSPECIFIED.into()
}
fn port<const N: u16>() -> u16 {
    N
}
fn one() -> u32 {
    1
}

impl Consortium {
    /// Reads a description.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = read_text(file)?;
        let wrong = |problem: String| anyhow!("{}: {problem}", file.display());
        let mut consortium: Consortium =
            toml::from_str(&text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
        consortium.check().map_err(|e| wrong(format!("{e:#}")))?;
        if consortium.experiment.as_os_str().is_empty() {
            return Err(wrong(
                "experiment is missing: name the file that all parties use, like \"sepsis.toml\""
                    .into(),
            ));
        }
        consortium.experiment = file.with_file_name("").join(&consortium.experiment);
        Ok(consortium)
    }

    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        if !is_name(&self.name) {
            bail!(
                "name = {:?}: expected letters, digits, - and _, at most 64",
                self.name
            );
        }
        if !matches!(self.cloud.len(), 1 | 3) {
            bail!(
                "[[cloud]] appears {} times: expected one server, or three for a cluster, which keeps running with two",
                self.cloud.len()
            );
        }
        if self.hospitals.is_empty() {
            bail!("there is no [[hospital]]: name at least one, with its host");
        }
        let mut names = HashSet::new();
        for hospital in &self.hospitals {
            let Hospital {
                name,
                gateways,
                http,
                ..
            } = hospital;
            if !is_name(name) || TAKEN.contains(&name.as_str()) {
                bail!(
                    "a hospital named {name:?}: expected letters, digits, - and _, at most 64, and none of {}",
                    TAKEN.join(", ")
                );
            }
            if !names.insert(name) {
                bail!("two hospitals are named {name:?}: choose different names");
            }
            if *gateways == 0 || *gateways as usize > MOST_GATEWAYS {
                bail!("hospital {name}: gateways = {gateways}: expected 1 to {MOST_GATEWAYS}");
            }
            if u32::from(*http) + 1 + gateways > u32::from(u16::MAX) {
                bail!("hospital {name}: http = {http} leaves no ports for {gateways} gateways");
            }
            for address in &hospital.dial {
                check_address(address).with_context(|| format!("hospital {name}: dial"))?;
            }
            check_host(&hospital.host).with_context(|| format!("hospital {name}: host"))?;
        }
        for server in &self.cloud {
            check_host(&server.host).context("[[cloud]]: host")?;
        }
        self.check_ports()?;
        self.deadlines
            .check()
            .map_err(|problem| anyhow!("[deadlines]: {problem}"))
    }

    /// No port may be 0, or another's of the same host.
    fn check_ports(&self) -> Result<()> {
        let cluster = self.cloud.len() > 1;
        let of_cloud = self.cloud.iter().flat_map(|s| {
            let own = [
                ("client", s.client),
                ("links", s.links),
                ("monitor", s.monitor),
            ];
            let own = own
                .into_iter()
                .chain(cluster.then_some(("cluster", s.cluster)));
            own.map(move |(key, port)| (&s.host, key, port))
        });
        let of_sites = self.hospitals.iter().flat_map(|h| {
            let own = [
                ("client", h.client),
                ("monitor", h.monitor),
                ("http", h.http),
            ];
            own.map(move |(key, port)| (&h.host, key, port))
        });
        let mut taken = HashSet::new();
        for (host, key, port) in of_cloud.chain(of_sites) {
            if port == 0 || !taken.insert((host, port)) {
                bail!(
                    "host {host:?}: {key} = {port}: expected a port from 1 to 65535 that nothing else on this host uses"
                );
            }
        }
        Ok(())
    }

    /// Where hospitals' servers dial.
    fn links(&self) -> Vec<String> {
        let link = |server: &CloudServer| join(&server.host, server.links);
        self.cloud.iter().map(link).collect()
    }

    /// What a hospital's server dials: the cloud's servers, unless it says others.
    pub(crate) fn dialled_by(&self, hospital: &Hospital) -> Vec<String> {
        match hospital.dial.is_empty() {
            true => self.links(),
            false => hospital.dial.clone(),
        }
    }

    /// Where a party connects.
    pub(crate) fn servers_of(&self, party: Party) -> Vec<String> {
        match group_of(party) {
            None => {
                let client = |server: &CloudServer| join(&server.host, server.client);
                self.cloud.iter().map(client).collect()
            }
            Some(m) => {
                let hospital = &self.hospitals[m];
                vec![join(&hospital.host, hospital.client)]
            }
        }
    }

    /// Where a party answers over HTTP.
    pub(crate) fn http_of(&self, party: Party) -> SocketAddr {
        let port = match party {
            Party::Cloud => self.http,
            Party::Hospital(m) => self.hospitals[m].http,
            Party::Edge(m) => self.hospitals[m].http + 1,
            Party::Gateway(m, g) => self.hospitals[m].http + 2 + g as u16,
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// The folder of a party, which is also what people call it.
    pub(crate) fn folder_of(&self, party: Party) -> String {
        let name = selvedge_net::transport::name(party);
        match group_of(party) {
            None => name,
            Some(m) => format!("{}/{name}", self.hospitals[m].name),
        }
    }

    /// All parties of a group.
    pub(crate) fn parties_of(&self, m: usize) -> Vec<Party> {
        let gateways = (0..self.hospitals[m].gateways as usize).map(|g| Party::Gateway(m, g));
        [Party::Hospital(m), Party::Edge(m)]
            .into_iter()
            .chain(gateways)
            .collect()
    }

    /// All parties.
    pub(crate) fn parties(&self) -> Vec<Party> {
        let groups = (0..self.hospitals.len()).flat_map(|m| self.parties_of(m));
        std::iter::once(Party::Cloud).chain(groups).collect()
    }

    /// The folder of one of the cloud's servers.
    pub(crate) fn hub_folder(&self, at: usize) -> String {
        match self.cloud.len() {
            1 => "hub".into(),
            _ => format!("hub-{at}"),
        }
    }

    /// The folder of a hospital's server.
    pub(crate) fn site_folder(&self, m: usize) -> String {
        format!("{}/server", self.hospitals[m].name)
    }
}

/// The group of a party; the cloud has none.
pub(crate) fn group_of(party: Party) -> Option<usize> {
    match party {
        Party::Cloud => None,
        Party::Hospital(m) | Party::Edge(m) | Party::Gateway(m, _) => Some(m),
    }
}

/// `host:port`, with the brackets that a bare IPv6 address needs.
pub(crate) fn join(host: &str, port: u16) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

fn check_host(host: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-.:".contains(c);
    let fine = !host.is_empty() && host.len() < 254 && host.chars().all(allowed);
    let port = !host.contains("::") && host.matches(':').count() == 1;
    match fine && !port {
        true => Ok(()),
        false => bail!(
            "{host:?} is not a host: expected a name or an address without a port, like \"nats.north.example\""
        ),
    }
}

fn check_address(address: &str) -> Result<()> {
    let parts = address
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match parts {
        Some((host, port)) if port > 0 => check_host(host.trim_matches(['[', ']'])),
        _ => bail!("{address:?}: expected host:port, like \"proxy.north.example:7422\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"c\"\nexperiment = \"e.toml\"\n[[cloud]]\nhost = \"cloud.example\"\n[[hospital]]\nname = \"north\"\nhost = \"10.0.0.7\"\ngateways = 2\n";

    #[test]
    fn what_is_left_out_has_a_default() {
        let consortium: Consortium = toml::from_str(TEXT).unwrap();
        consortium.check().unwrap();
        assert_eq!(consortium.links(), ["cloud.example:7422"]);
        assert_eq!(consortium.servers_of(Party::Edge(0)), ["10.0.0.7:4222"]);
        assert_eq!(
            consortium.folder_of(Party::Gateway(0, 1)),
            "north/gateway-1"
        );
        assert_eq!(consortium.http_of(Party::Gateway(0, 1)).port(), 9104);
        assert_eq!(consortium.parties().len(), 5);
        assert_eq!(join("::1", 4), "[::1]:4");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for (from, to, expected) in [
            ("\"north\"", "\"cloud\"", "none of"),
            ("\"north\"", "\"../x\"", "letters"),
            ("gateways = 2", "gateways = 0", "expected 1 to"),
            ("10.0.0.7", "10.0.0.7:4222", "without a port"),
            (
                "[[hospital]]",
                "[[cloud]]\nhost = \"b\"\n[[hospital]]",
                "2 times",
            ),
            ("gateways = 2", "dial = [\"proxy\"]", "host:port"),
            ("gateways = 2", "http = 65535", "no ports"),
            ("gateways = 2", "client = 0", "from 1 to"),
            ("gateways = 2", "client = 8222", "nothing else"),
        ] {
            let consortium: Consortium = toml::from_str(&TEXT.replace(from, to)).unwrap();
            let error = format!("{:#}", consortium.check().unwrap_err());
            assert!(error.contains(expected), "{to}: {error}");
        }
    }
}
