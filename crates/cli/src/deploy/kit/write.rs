//! Writing the folders of a kit.

use super::{Deployment, handover};
use crate::deploy::bounds;
use crate::deploy::config::NodeConfig;
use crate::deploy::consortium::group_of;
use anyhow::{Context, Result, bail};
use selvedge_core::experiment::Experiment;
use selvedge_core::role::Party;
use selvedge_core::task::Task;
use selvedge_data::unfinished::Unfinished;
use selvedge_data::{PartyShard, PseudonymKey, distribute, read_party};
use selvedge_net::credentials::{Authority, Identity, random, write_secret};
use selvedge_net::server::{Quotas, link_text};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// What parties get besides keys.
pub(crate) struct Stock<'a> {
    /// Shards of all, where somebody has cut them; else parties are enrolled with their own tables.
    pub(crate) shards: Option<&'a Path>,
    /// The cloud's run directory, seen from its folder.
    pub(crate) run: &'a str,
}

/// Makes a folder that only its owner may look into: shards are about patients, and keys are secrets.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(path)
        .with_context(|| format!("cannot create {}", path.display()))
}

/// Fills a folder that appears once it is whole.
pub(super) fn whole<T>(folder: &Path, fill: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let cannot = || format!("cannot create {}", folder.display());
    let new = Unfinished::folder(folder, 0o700).with_context(cannot)?;
    let done = fill(new.path())?;
    new.put().with_context(cannot)?;
    Ok(done)
}

/// What the parties of a run may take up of servers.
pub(super) fn quotas(shards: &Path, experiment: &Experiment) -> Result<Quotas> {
    let loaded = read_party(shards, PartyShard::Coordinator)?;
    let task = Task::of_party(experiment, &loaded.dataset, &loaded.labels)?;
    Ok(bounds::quotas(&task, loaded.held_out_of_all.iter().sum()))
}

/// Writes a new key of a party.
pub(super) fn new_key(folder: &Path) -> Result<Identity> {
    let identity = Identity::generate()?;
    write_secret(&folder.join("key.nk"), &identity.seed)?;
    Ok(identity)
}

/// Writes a new key of a hospital's link.
pub(super) fn new_link(folder: &Path) -> Result<Identity> {
    let identity = Identity::generate()?;
    write_secret(&folder.join("link.conf"), &link_text(&identity))?;
    Ok(identity)
}

/// Writes a new certificate of a server and its key; gives the key's fingerprint.
pub(super) fn new_certificate(folder: &Path, authority: &Authority, host: &str) -> Result<String> {
    let mut hosts = vec![host.to_owned()];
    // Whoever is on the same machine may come the short way.
    hosts.extend(["127.0.0.1", "localhost"].map(str::to_owned));
    hosts.dedup();
    let issued = authority.issue_server(&hosts)?;
    fs::write(folder.join("certificate.pem"), issued.certificate)?;
    fs::write(folder.join("authority.pem"), authority.certificate())?;
    write_secret(&folder.join("key.pem"), &issued.key)?;
    Ok(issued.fingerprint)
}

/// A new key of pseudonyms.
pub(super) fn new_pseudonyms() -> Result<PseudonymKey> {
    Ok(PseudonymKey::new(
        random().context("cannot read random numbers")?,
    ))
}

/// Writes folders into a kit, and notes their keys.
pub(super) struct Writer<'a> {
    pub(super) folder: &'a Path,
    pub(super) authority: &'a Authority,
    pub(super) experiment: &'a Experiment,
    pub(super) stock: &'a Stock<'a>,
    pub(super) deployment: &'a mut Deployment,
}

impl Writer<'_> {
    /// One of the cloud's servers.
    pub(super) fn hub(&mut self, at: usize) -> Result<()> {
        let c = &self.deployment.consortium;
        let (name, host) = (c.hub_folder(at), c.cloud[at].host.clone());
        let folder = self.folder.join(&name);
        make_folder(&folder)?;
        self.deployment.fingerprints[at] = new_certificate(&folder, self.authority, &host)?;
        handover::hub(&folder, &self.deployment.consortium, at)
    }

    /// A hospital's server and its parties.
    pub(super) fn group(&mut self, m: usize) -> Result<()> {
        let c = &self.deployment.consortium;
        let (name, host) = (c.site_folder(m), c.hospitals[m].host.clone());
        let folder = self.folder.join(&name);
        make_folder(&folder)?;
        new_certificate(&folder, self.authority, &host)?;
        let link = new_link(&folder)?;
        handover::site(&folder, &self.deployment.consortium, m)?;
        self.deployment.keys.insert(name, link.public);
        // Known to who knows the patients, and to nobody else.
        let pseudonyms = new_pseudonyms()?;
        for party in self.deployment.consortium.parties_of(m) {
            self.node(party)?;
            if self.has_pseudonyms(party) {
                let folder = self.deployment.consortium.folder_of(party);
                let file = self.folder.join(folder).join("pseudonyms.key");
                write_secret(&file, &pseudonyms.to_text())?;
            }
        }
        Ok(())
    }

    fn has_pseudonyms(&self, party: Party) -> bool {
        let knows = matches!(party, Party::Hospital(_) | Party::Gateway(..));
        knows && self.stock.shards.is_none()
    }

    /// A party's folder.
    pub(super) fn node(&mut self, party: Party) -> Result<()> {
        let c = &self.deployment.consortium;
        let name = c.folder_of(party);
        let folder = self.folder.join(&name);
        make_folder(&folder)?;
        let ranges = match (self.stock.shards, group_of(party)) {
            (Some(shards), Some(m)) => {
                let groups = read_party(shards, PartyShard::Coordinator)?.dataset.groups;
                let (devices, gateways) = (groups[m].devices() as u32, c.hospitals[m].gateways);
                if gateways > devices {
                    bail!(
                        "hospital {}: gateways = {gateways}, but its group has {devices} devices: expected at most one gateway per device",
                        c.hospitals[m].name
                    );
                }
                share_out(devices, gateways)
            }
            _ => Vec::new(),
        };
        if let Some(shards) = self.stock.shards {
            let shard = match party {
                Party::Cloud => PartyShard::Coordinator,
                Party::Hospital(m) => PartyShard::Hospital(m),
                Party::Edge(m) => PartyShard::Edge(m),
                Party::Gateway(m, g) => PartyShard::Gateway {
                    group: m,
                    devices: ranges[g].clone(),
                    held_out: g == 0,
                },
            };
            distribute(shards, shard, &folder.join("data"))?;
        }
        fs::write(folder.join("authority.pem"), self.authority.certificate())?;
        fs::write(folder.join(super::EXPERIMENT), self.experiment.to_toml())?;
        let config = NodeConfig {
            name: c.name.clone(),
            experiment: super::EXPERIMENT.into(),
            data: "data".into(),
            servers: c.servers_of(party),
            authority: "authority.pem".into(),
            key: "key.nk".into(),
            tables: Vec::new(),
            pseudonyms: self.has_pseudonyms(party).then(|| "pseudonyms.key".into()),
            out: match party {
                Party::Cloud => self.stock.run.into(),
                _ => ".".into(),
            },
            http: Some(c.http_of(party)),
            group: group_of(party),
            gateway: match party {
                Party::Gateway(_, g) => Some(g),
                _ => None,
            },
            gateway_count: match party {
                Party::Edge(m) | Party::Gateway(m, _) if ranges.is_empty() => {
                    Some(c.hospitals[m].gateways)
                }
                _ => None,
            },
            gateways: ranges.iter().map(|r| [r.start, r.end]).collect(),
            threads: c.threads,
            deadlines: c.deadlines,
            enrolled_held_out: None,
        };
        fs::write(folder.join("node.toml"), toml::to_string(&config)?)?;
        handover::node(&folder, c, party, self.has_pseudonyms(party))?;
        let identity = new_key(&folder)?;
        self.deployment.keys.insert(name, identity.public);
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
