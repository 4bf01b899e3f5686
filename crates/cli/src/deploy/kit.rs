//! The files of a deployment on one machine: for every party its shard, its key and its config, for every server its
//! configuration. A party's folder holds what that party may have, and nothing else.
//!
//! ```text
//! DIR/
//! ├── deployment.json          all servers and nodes
//! ├── authority/               signs certificates; a secret
//! ├── hub/                     the cloud's server
//! ├── cloud/                   node.toml, key, data/
//! ├── run/                     the cloud's run directory
//! ├── group-0/server/          the hospital site's server
//! ├── group-0/hospital/        node.toml, key, data/
//! ├── group-0/edge/            …
//! └── group-0/gateway-0/       …
//! ```

use super::config::NodeConfig;
use crate::files::{read_text, write_whole};
use anyhow::{Context, Result, bail};
use selvedge_core::experiment::Experiment;
use selvedge_core::role::Party;
use selvedge_data::{PartyShard, PseudonymKey, cut, distribute, read_party};
use selvedge_net::broker::free_port;
use selvedge_net::credentials::{Authority, Identity, write_secret};
use selvedge_net::deadlines::Deadlines;
use selvedge_net::server::{Hub, Site, SiteKey, TlsFiles};
use selvedge_net::subjects::group_name;
use selvedge_net::transport::name;
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// `deployment.json`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deployment {
    /// What the run is called.
    pub(crate) name: String,
    /// T
    pub(crate) iterations: u64,
    /// Where links reach the hub.
    pub(crate) hub_links: SocketAddr,
    pub(crate) servers: Vec<ServerFiles>,
    pub(crate) nodes: Vec<NodeFiles>,
}

/// A server to be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServerFiles {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) monitor: SocketAddr,
}

/// A node to be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NodeFiles {
    pub(crate) party: Party,
    pub(crate) folder: PathBuf,
    pub(crate) http: SocketAddr,
}

/// What a deployment is to be like.
pub(crate) struct Wishes<'a> {
    pub(crate) name: &'a str,
    pub(crate) experiment: &'a Experiment,
    pub(crate) data_dir: Option<&'a Path>,
    /// Gateways of each group.
    pub(crate) gateways: usize,
    pub(crate) deadlines: Deadlines,
    /// Whether servers have records on the disk before they acknowledge them.
    pub(crate) durable: bool,
    /// Where some groups' links dial to instead of the hub.
    pub(crate) links: Vec<(usize, SocketAddr)>,
    /// Threads of each node.
    pub(crate) threads: usize,
}

fn address() -> Result<SocketAddr> {
    Ok((Ipv4Addr::LOCALHOST, free_port()?).into())
}

impl Deployment {
    /// Reads what was written.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("deployment.json");
        serde_json::from_str(&read_text(&path)?)
            .with_context(|| format!("{} is damaged, or of another version", path.display()))
    }

    /// Writes all files into a new folder, which appears once it is whole.
    pub(crate) fn write(folder: &Path, wishes: &Wishes<'_>) -> Result<Self> {
        let mut partial = folder.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let _ = fs::remove_dir_all(&partial);
        let made = Maker::new(&partial, wishes).and_then(|mut maker| maker.make());
        let deployment = made.inspect_err(|_| {
            let _ = fs::remove_dir_all(&partial);
        })?;
        fs::rename(&partial, folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(deployment)
    }
}

struct Maker<'a> {
    folder: &'a Path,
    wishes: &'a Wishes<'a>,
    authority: Authority,
    shards: PathBuf,
    deployment: Deployment,
}

impl<'a> Maker<'a> {
    fn new(folder: &'a Path, wishes: &'a Wishes<'a>) -> Result<Self> {
        // Shards are about patients, and keys are secrets.
        std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700)
            .create(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Maker {
            folder,
            wishes,
            authority: Authority::new(wishes.name)?,
            shards: folder.join("shards"),
            deployment: Deployment {
                name: wishes.name.into(),
                iterations: wishes.experiment.train.iterations,
                hub_links: address()?,
                servers: Vec::new(),
                nodes: Vec::new(),
            },
        })
    }

    fn make(&mut self) -> Result<Deployment> {
        let Experiment { data, seed, .. } = self.wishes.experiment;
        self.make_folder("authority")?;
        self.authority.save(&self.folder.join("authority"))?;
        let mut secret = [0; 32];
        fs::File::open("/dev/urandom")
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut secret))
            .context("cannot read random numbers")?;
        let key = PseudonymKey::new(secret);
        cut(data, *seed, self.wishes.data_dir, &key, &self.shards)?;
        let groups = read_party(&self.shards, PartyShard::Coordinator)?
            .dataset
            .groups;
        let links = &self.wishes.links;
        if let Some((group, _)) = links.iter().find(|(group, _)| *group >= groups.len()) {
            bail!(
                "--link-through {group}=…: there are groups 0 to {}",
                groups.len() - 1
            );
        }
        let (cloud, hub_address) = (Identity::generate()?, address()?);
        let mut links = Vec::new();
        for (m, group) in groups.iter().enumerate() {
            links.push(self.group(m, group.devices() as u32)?);
        }
        let hub = Hub {
            name: "hub".into(),
            listen: hub_address,
            leaf: self.deployment.hub_links,
            monitor: address()?,
            store: "store".into(),
            tls: self.tls("hub")?,
            cloud: cloud.public.clone(),
            sites: links,
            durable: self.wishes.durable,
        };
        self.server("hub", hub.monitor);
        write_secret(&self.folder.join("hub/server.conf"), &hub.to_text()?)?;
        self.node(Party::Cloud, "cloud", hub_address, &cloud, &[])?;
        // The hub comes first: sites look for it.
        self.deployment.servers.rotate_right(1);
        fs::remove_dir_all(&self.shards).context("cannot remove the shards of all")?;
        let text = serde_json::to_string_pretty(&self.deployment)?;
        write_whole(&self.folder.join("deployment.json"), text.as_bytes())?;
        Ok(self.deployment.clone())
    }

    fn make_folder(&self, name: &str) -> Result<()> {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))
    }

    /// A group's server and its parties; gives the key of its link.
    fn group(&mut self, m: usize, devices: u32) -> Result<SiteKey> {
        let (link, hospital, edge) = (
            Identity::generate()?,
            Identity::generate()?,
            Identity::generate()?,
        );
        let ranges = share_out(devices, self.wishes.gateways as u32);
        let folder = group_name(m);
        let server = format!("{folder}/server");
        let (listen, monitor) = (address()?, address()?);
        let mut gateways = Vec::new();
        for g in 0..ranges.len() {
            let identity = Identity::generate()?;
            let party = Party::Gateway(m, g);
            gateways.push((name(party), identity.public.clone()));
            let own = format!("{folder}/{}", name(party));
            self.node(party, &own, listen, &identity, &ranges)?;
        }
        let dialled = self.wishes.links.iter().find(|(group, _)| *group == m);
        let site = Site {
            group: m,
            listen,
            monitor,
            store: "store".into(),
            tls: self.tls(&server)?,
            hub: dialled
                .map_or(self.deployment.hub_links, |(_, at)| *at)
                .to_string(),
            link_seed: link.seed.clone(),
            hospital: hospital.public.clone(),
            edge: edge.public.clone(),
            gateways,
            durable: self.wishes.durable,
        };
        write_secret(
            &self.folder.join(&server).join("server.conf"),
            &site.to_text()?,
        )?;
        self.server(&server, monitor);
        self.node(
            Party::Hospital(m),
            &format!("{folder}/hospital"),
            listen,
            &hospital,
            &ranges,
        )?;
        self.node(
            Party::Edge(m),
            &format!("{folder}/edge"),
            listen,
            &edge,
            &ranges,
        )?;
        Ok(SiteKey {
            group: m,
            public: link.public,
        })
    }

    /// A server's certificate, beside its configuration: paths in that are seen from its folder.
    fn tls(&self, folder: &str) -> Result<TlsFiles> {
        self.make_folder(folder)?;
        let hosts = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let issued = self.authority.issue_server(&hosts)?;
        let at = self.folder.join(folder);
        fs::write(at.join("certificate.pem"), issued.certificate)?;
        fs::write(at.join("authority.pem"), self.authority.certificate())?;
        write_secret(&at.join("key.pem"), &issued.key)?;
        Ok(TlsFiles {
            certificate: "certificate.pem".into(),
            key: "key.pem".into(),
            authority: "authority.pem".into(),
        })
    }

    fn server(&mut self, folder: &str, monitor: SocketAddr) {
        self.deployment.servers.push(ServerFiles {
            name: folder.into(),
            folder: folder.into(),
            monitor,
        });
    }

    /// A party's folder.
    fn node(
        &mut self,
        party: Party,
        folder: &str,
        server: SocketAddr,
        identity: &Identity,
        ranges: &[Range<u32>],
    ) -> Result<()> {
        self.make_folder(folder)?;
        let at = self.folder.join(folder);
        let (group, gateway, shard) = match party {
            Party::Cloud => (None, None, PartyShard::Coordinator),
            Party::Hospital(m) => (Some(m), None, PartyShard::Hospital(m)),
            Party::Edge(m) => (Some(m), None, PartyShard::Edge(m)),
            Party::Gateway(m, g) => {
                let shard = PartyShard::Gateway {
                    group: m,
                    devices: ranges[g].clone(),
                    held_out: g == 0,
                };
                (Some(m), Some(g), shard)
            }
        };
        distribute(&self.shards, shard, &at.join("data"))?;
        fs::write(at.join("authority.pem"), self.authority.certificate())?;
        fs::write(at.join("experiment.toml"), self.wishes.experiment.to_toml())?;
        write_secret(&at.join("key.nk"), &identity.seed)?;
        let http = address()?;
        let config = NodeConfig {
            name: self.wishes.name.into(),
            experiment: "experiment.toml".into(),
            data: "data".into(),
            servers: vec![server.to_string()],
            authority: "authority.pem".into(),
            key: "key.nk".into(),
            out: match party {
                Party::Cloud => "../run".into(),
                _ => ".".into(),
            },
            http: Some(http),
            group,
            gateway,
            gateways: ranges.iter().map(|r| [r.start, r.end]).collect(),
            threads: Some(self.wishes.threads),
            deadlines: self.wishes.deadlines,
        };
        fs::write(at.join("node.toml"), toml::to_string(&config)?)?;
        self.deployment.nodes.push(NodeFiles {
            party,
            folder: folder.into(),
            http,
        });
        Ok(())
    }
}

/// Devices shared out over gateways, as evenly as can be.
fn share_out(devices: u32, gateways: u32) -> Vec<Range<u32>> {
    let gateways = gateways.clamp(1, devices);
    let end = |g: u32| (u64::from(devices) * u64::from(g) / u64::from(gateways)) as u32;
    (0..gateways).map(|g| end(g)..end(g + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::share_out;

    #[test]
    fn every_gateway_has_devices_and_every_device_one_gateway() {
        assert_eq!(share_out(5, 2), [0..2, 2..5]);
        assert_eq!(share_out(2, 7), [0..1, 1..2]);
        assert_eq!(share_out(9, 1), std::slice::from_ref(&(0..9)));
    }
}
