//! The files of a deployment: for every party its key and its config, for every server its configuration, in a folder
//! of its own that can be handed over. It holds what that party may have, and nothing else.
//!
//! ```text
//! KIT/
//! ├── deployment.json          who there is and whose keys are good; no secrets
//! ├── experiment.toml          what all train by
//! ├── authority/               signs certificates: a secret of the operator, handed to nobody
//! ├── hub/                     the cloud's server; hub-0, hub-1 and hub-2 of a cluster
//! ├── cloud/                   node.toml, key.nk, README.md, a unit for systemd, data/
//! ├── north/server/            the server of a hospital
//! ├── north/hospital/          …
//! ├── north/edge/              …
//! └── north/gateway-0/         …
//! ```
//!
//! `selvedge provision` makes a kit from a description ([`Consortium`]), `selvedge up` one for this machine
//! ([`local`]).

mod handover;
pub(crate) mod local;
mod write;

pub(crate) use write::Stock;

use super::consortium::{CloudServer, Consortium, Hospital, group_of, join};
use crate::load;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::{Experiment, nearest};
use selvedge_core::role::Party;
use selvedge_net::credentials::{Authority, write_secret};
use selvedge_net::server::{Cluster, Hub, Quotas, Site, SiteKey, TlsFiles};
use selvedge_net::transport::name;
use selvedge_run::files::{read_text, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use write::Writer;

const FILE: &str = "deployment.json";
const EXPERIMENT: &str = "experiment.toml";

/// `deployment.json`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deployment {
    pub(crate) consortium: Consortium,
    /// T
    pub(crate) iterations: u64,
    /// The public keys that are good, by folder; that of a hospital's link is under its server's.
    keys: BTreeMap<String, String>,
    /// Of the keys of the cloud's servers, by which those of a cluster know each other.
    fingerprints: Vec<String>,
    /// What parties may take up of servers, as far as the sizes of the run are known.
    #[serde(default)]
    quotas: Quotas,
}

/// A server to be started.
#[derive(Clone, Debug)]
pub(crate) struct ServerFiles {
    pub(crate) folder: String,
    pub(crate) monitor: SocketAddr,
}

/// A node to be started.
#[derive(Clone, Debug)]
pub(crate) struct NodeFiles {
    pub(crate) party: Party,
    pub(crate) folder: String,
}

/// What a change of a kit has changed, for people.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Changed {
    /// Files to be handed over again.
    pub(crate) files: Vec<String>,
    /// Servers that must be restarted with them.
    pub(crate) restart: Vec<String>,
}

/// Somebody or something with a key, by what people call it.
enum Keyed {
    Party(Party),
    /// A hospital's server: its link.
    Site(usize),
    /// A server of the cloud.
    Hub(usize),
}

impl Deployment {
    /// Reads what was written.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        serde_json::from_str(&read_text(&path)?)
            .with_context(|| format!("{} is damaged, or from another version", path.display()))
    }

    /// Reads a kit to change it. Nobody else changes it until what comes with it is dropped: of two changes at once,
    /// one would be lost, and a revoked key be good again.
    pub(crate) fn lock(folder: &Path) -> Result<(Self, File)> {
        let lock =
            File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
        lock.lock()
            .with_context(|| format!("cannot lock {}", folder.display()))?;
        Ok((Self::read(folder)?, lock))
    }

    /// Whether a folder is a kit.
    pub(crate) fn is_at(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    fn save(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(write_whole(&folder.join(FILE), text.as_bytes())?)
    }

    /// All servers, the cloud's first: the others look for them.
    pub(crate) fn servers(&self) -> Vec<ServerFiles> {
        let at = |folder: String, port: u16| ServerFiles {
            folder,
            monitor: (Ipv4Addr::LOCALHOST, port).into(),
        };
        let c = &self.consortium;
        let hubs = c.cloud.iter().enumerate();
        let hubs = hubs.map(|(i, server)| at(c.hub_folder(i), server.monitor));
        let sites = c.hospitals.iter().enumerate();
        let sites = sites.map(|(m, hospital)| at(c.site_folder(m), hospital.monitor));
        hubs.chain(sites).collect()
    }

    /// All parties, the cloud first.
    pub(crate) fn nodes(&self) -> Vec<NodeFiles> {
        let node = |party: Party| NodeFiles {
            party,
            folder: self.consortium.folder_of(party),
        };
        self.consortium.parties().into_iter().map(node).collect()
    }

    /// Where the cloud's node answers.
    pub(crate) fn cloud_http(&self) -> SocketAddr {
        self.consortium.http_of(Party::Cloud)
    }

    /// Makes all files of a kit in a new folder, which appears once it is whole.
    pub(crate) fn create(
        folder: &Path,
        consortium: Consortium,
        experiment: &Experiment,
        stock: &Stock<'_>,
    ) -> Result<Self> {
        if folder.exists() {
            bail!(
                "{} already exists: choose another folder, or change it with `selvedge kit`",
                folder.display()
            );
        }
        write::whole(folder, |partial| {
            Self::create_in(partial, consortium, experiment, stock)
        })
    }

    /// The same, in a folder that is there.
    fn create_in(
        folder: &Path,
        consortium: Consortium,
        experiment: &Experiment,
        stock: &Stock<'_>,
    ) -> Result<Self> {
        let mut deployment = Deployment {
            iterations: experiment.train.iterations,
            keys: BTreeMap::new(),
            fingerprints: vec![String::new(); consortium.cloud.len()],
            quotas: match stock.shards {
                Some(shards) => write::quotas(shards, experiment)?,
                None => Quotas::default(),
            },
            consortium,
        };
        let authority = Authority::new(&deployment.consortium.name)?;
        write::make_folder(&folder.join("authority"))?;
        authority.save(&folder.join("authority"))?;
        let mut writer = Writer {
            folder,
            authority: &authority,
            experiment,
            stock,
            deployment: &mut deployment,
        };
        for at in 0..writer.deployment.consortium.cloud.len() {
            writer.hub(at)?;
        }
        writer.node(Party::Cloud)?;
        for m in 0..writer.deployment.consortium.hospitals.len() {
            writer.group(m)?;
        }
        std::fs::write(folder.join(EXPERIMENT), experiment.to_toml())?;
        deployment.save(folder)?;
        for (server, text) in deployment.configurations()? {
            write_whole(&folder.join(server).join("server.conf"), text.as_bytes())?;
        }
        Ok(deployment)
    }

    /// Adds a hospital, as the last group.
    pub(crate) fn add(&mut self, folder: &Path, hospital: Hospital) -> Result<Changed> {
        let path = folder.join(EXPERIMENT);
        let mut experiment = load::experiment_file(&path, None)?;
        if experiment.data.set != "table" {
            bail!(
                "data.set = {:?}: these parties were given shards, so cut the data again and make a new kit; a hospital can only be added where parties enrol, with \"table\"",
                experiment.data.set
            );
        }
        let before = self.clone();
        self.consortium.hospitals.push(hospital);
        self.consortium.check()?;
        let m = self.consortium.hospitals.len() - 1;
        let own = folder.join(&self.consortium.hospitals[m].name);
        if own.exists() {
            bail!(
                "{} is there already, and a kit has made no such hospital: move it elsewhere, or choose another name",
                own.display()
            );
        }
        experiment.data.groups = m + 1;
        let authority = Authority::load(&folder.join("authority"))?;
        let stock = Stock {
            shards: None,
            run: "run",
        };
        let mut writer = Writer {
            folder,
            authority: &authority,
            experiment: &experiment,
            stock: &stock,
            deployment: self,
        };
        writer.group(m)?;
        let own = format!("{}/", self.consortium.hospitals[m].name);
        let mut changed = Changed {
            files: vec![own.clone()],
            restart: Vec::new(),
        };
        // One group more is another run, for all.
        let text = experiment.to_toml();
        write_whole(&path, text.as_bytes())?;
        // Who was revoked gets nothing more, and neither does anybody of a hospital that was.
        for node in before.nodes() {
            if before.takes_part(node.party) {
                hand_over(folder, &node.folder, &text, &mut changed)?;
            }
        }
        let mut changed = self.finish(folder, &before, changed)?;
        // Its folder is handed over as a whole, and its server is not running yet.
        changed
            .files
            .retain(|file| *file == own || !file.starts_with(&own));
        changed.restart.retain(|server| !server.starts_with(&own));
        Ok(changed)
    }

    /// Gives somebody a new key; the old one is good for nothing any more. With `public` it has made its key itself.
    pub(crate) fn rotate(
        &mut self,
        folder: &Path,
        who: &str,
        public: Option<&str>,
    ) -> Result<Changed> {
        let (keyed, before) = (self.find(who)?, self.clone());
        let authority = Authority::load(&folder.join("authority"))?;
        let at = self.folder_of(&keyed);
        write::make_folder(&folder.join(&at))?;
        let mut changed = Changed::default();
        match (&keyed, public) {
            (Keyed::Party(_), Some(public)) => {
                self.keys.insert(at.clone(), public.to_owned());
                self.configurations()?;
                // What was made here before is nobody's now.
                let _ = std::fs::remove_file(folder.join(at).join("key.nk"));
            }
            (_, Some(_)) => bail!("{who} is a server: --public is for parties"),
            (Keyed::Party(_), None) => {
                let identity = write::new_key(&folder.join(&at))?;
                changed.files.push(format!("{at}/key.nk"));
                self.keys.insert(at, identity.public);
            }
            (Keyed::Site(m), None) => {
                let host = self.consortium.hospitals[*m].host.clone();
                write::new_certificate(&folder.join(&at), &authority, &host)?;
                let link = write::new_link(&folder.join(&at))?;
                let files = ["certificate.pem", "key.pem", "link.conf"];
                changed
                    .files
                    .extend(files.map(|file| format!("{at}/{file}")));
                changed.restart.push(at.clone());
                self.keys.insert(at, link.public);
            }
            (Keyed::Hub(i), None) => {
                let host = self.consortium.cloud[*i].host.clone();
                self.fingerprints[*i] =
                    write::new_certificate(&folder.join(&at), &authority, &host)?;
                let files = ["certificate.pem", "key.pem"];
                changed
                    .files
                    .extend(files.map(|file| format!("{at}/{file}")));
                changed.restart.push(at);
            }
        }
        // Who is taken back may have missed a change of the experiment.
        let text = read_text(&folder.join(EXPERIMENT))?;
        for node in self.nodes() {
            if self.takes_part(node.party) && !before.takes_part(node.party) {
                hand_over(folder, &node.folder, &text, &mut changed)?;
            }
        }
        self.finish(folder, &before, changed)
    }

    /// Whether a party has a key that is good, and its hospital a link.
    fn takes_part(&self, party: Party) -> bool {
        let has_key = |folder: String| self.keys.contains_key(&folder);
        let has_link = |m: usize| has_key(self.consortium.site_folder(m));
        has_key(self.consortium.folder_of(party)) && group_of(party).is_none_or(has_link)
    }

    /// Gives a hospital and its gateways a new key of pseudonyms, for the next enrolment: who was revoked knows the old
    /// one.
    pub(crate) fn renew_pseudonyms(&self, folder: &Path, who: &str) -> Result<Changed> {
        let Keyed::Site(m) = self.find(who)? else {
            bail!("{who} is not a hospital: name one, like north");
        };
        let key = write::new_pseudonyms()?;
        let mut changed = Changed::default();
        let parties = self.consortium.parties_of(m).into_iter();
        for party in parties.filter(|party| !matches!(party, Party::Edge(_))) {
            let at = self.consortium.folder_of(party);
            if self.keys.contains_key(&at) {
                write::make_folder(&folder.join(&at))?;
                write_secret(&folder.join(&at).join("pseudonyms.key"), &key.to_text())?;
                changed.files.push(format!("{at}/pseudonyms.key"));
            }
        }
        Ok(changed)
    }

    /// Shuts somebody out: a party, or with its server a whole hospital.
    pub(crate) fn revoke(&mut self, folder: &Path, who: &str) -> Result<Changed> {
        let (keyed, before) = (self.find(who)?, self.clone());
        if matches!(keyed, Keyed::Hub(_) | Keyed::Party(Party::Cloud)) {
            bail!("without {who} nobody can train: give it a new key with `selvedge kit rotate`");
        }
        // Who is revoked already stays so; what was interrupted then is finished.
        self.keys.remove(&self.folder_of(&keyed));
        self.finish(folder, &before, Changed::default())
    }

    /// Whether somebody was given a key of pseudonyms.
    pub(crate) fn knows_pseudonyms(&self, who: &str) -> bool {
        let keyed = self.find(who);
        matches!(
            keyed,
            Ok(Keyed::Party(Party::Hospital(_) | Party::Gateway(..)))
        )
    }

    /// Saves what has changed since `before`, and writes the configurations that follow from it.
    fn finish(&self, folder: &Path, before: &Self, mut changed: Changed) -> Result<Changed> {
        let texts = self.configurations()?;
        // Configurations follow from this, and not the other way round: so it is first.
        self.save(folder)?;
        let before: BTreeMap<String, String> = before
            .configurations()
            .unwrap_or_default()
            .into_iter()
            .collect();
        for (server, text) in texts {
            let file = folder.join(&server).join("server.conf");
            let stale = std::fs::read_to_string(&file).is_ok_and(|there| there != text);
            if stale || before.get(&server) != Some(&text) {
                write::make_folder(&folder.join(&server))?;
                write_whole(&file, text.as_bytes())?;
                changed.files.push(format!("{server}/server.conf"));
                changed.restart.push(server);
            }
        }
        changed.restart.sort_unstable();
        changed.restart.dedup();
        Ok(changed)
    }

    /// Who has a key, and who was revoked.
    pub(crate) fn list(&self) -> Vec<(String, Option<&str>)> {
        let sites = (0..self.consortium.hospitals.len()).map(|m| self.consortium.site_folder(m));
        let parties = self.nodes().into_iter().map(|node| node.folder);
        let with_key = |folder: String| {
            let key = self.keys.get(&folder).map(String::as_str);
            (folder, key)
        };
        parties.chain(sites).map(with_key).collect()
    }

    fn find(&self, who: &str) -> Result<Keyed> {
        let who = who.trim_end_matches('/');
        let c = &self.consortium;
        let parties = c.parties().into_iter().map(Keyed::Party);
        let sites = (0..c.hospitals.len()).map(Keyed::Site);
        let hubs = (0..c.cloud.len()).map(Keyed::Hub);
        let mut all = parties.chain(sites).chain(hubs);
        let is_meant = |keyed: &Keyed| match keyed {
            Keyed::Site(m) if c.hospitals[*m].name == who => true,
            keyed => self.folder_of(keyed) == who,
        };
        all.find(is_meant).ok_or_else(|| {
            let names: Vec<String> = self.list().into_iter().map(|(name, _)| name).collect();
            match nearest(who, names.iter().map(String::as_str)) {
                Some(near) => anyhow!("there is no {who:?}: did you mean {near:?}?"),
                None => anyhow!("there is no {who:?}: `selvedge kit list` shows all names"),
            }
        })
    }

    fn folder_of(&self, keyed: &Keyed) -> String {
        match keyed {
            Keyed::Party(party) => self.consortium.folder_of(*party),
            Keyed::Site(m) => self.consortium.site_folder(*m),
            Keyed::Hub(at) => self.consortium.hub_folder(*at),
        }
    }

    /// The configurations of all servers, by folder.
    fn configurations(&self) -> Result<Vec<(String, String)>> {
        let c = &self.consortium;
        let mut texts = Vec::new();
        for at in 0..c.cloud.len() {
            texts.push((c.hub_folder(at), self.hub(at)?.to_text()?));
        }
        for m in 0..c.hospitals.len() {
            texts.push((c.site_folder(m), self.site(m).to_text()?));
        }
        Ok(texts)
    }

    fn hub(&self, at: usize) -> Result<Hub> {
        let c = &self.consortium;
        let CloudServer {
            listen,
            client,
            links,
            cluster,
            monitor,
            ..
        } = &c.cloud[at];
        let others = c.cloud.iter().enumerate().filter(|(i, _)| *i != at);
        let others: Vec<String> = others.map(|(_, o)| join(&o.host, o.cluster)).collect();
        let site = |m: usize| {
            let public = self.keys.get(&c.site_folder(m))?;
            Some(SiteKey {
                group: m,
                public: public.clone(),
            })
        };
        let cloud = self.keys.get(&c.folder_of(Party::Cloud));
        Ok(Hub {
            name: c.hub_folder(at),
            listen: (*listen, *client).into(),
            leaf: (*listen, *links).into(),
            monitor: (Ipv4Addr::LOCALHOST, *monitor).into(),
            store: "store".into(),
            tls: tls_files(),
            cloud: cloud.context("the cloud has no key")?.clone(),
            sites: (0..c.hospitals.len()).filter_map(site).collect(),
            durable: c.durable,
            cluster: (!others.is_empty()).then(|| Cluster {
                name: c.name.clone(),
                listen: (*listen, *cluster).into(),
                others,
                fingerprints: self.fingerprints.clone(),
            }),
            quotas: self.quotas,
        })
    }

    fn site(&self, m: usize) -> Site {
        let c = &self.consortium;
        let hospital = &c.hospitals[m];
        let key = |party: Party| self.keys.get(&c.folder_of(party)).cloned();
        let gateways = (0..hospital.gateways as usize).map(|g| Party::Gateway(m, g));
        Site {
            group: m,
            listen: (hospital.listen, hospital.client).into(),
            monitor: (Ipv4Addr::LOCALHOST, hospital.monitor).into(),
            store: "store".into(),
            tls: tls_files(),
            hubs: c.dialled_by(hospital),
            link: "link.conf".into(),
            hospital: key(Party::Hospital(m)),
            edge: key(Party::Edge(m)),
            gateways: gateways.filter_map(|g| Some((name(g), key(g)?))).collect(),
            durable: c.durable,
            quotas: self.quotas,
        }
    }
}

/// Gives a party the experiment. A folder that was handed over and taken away is there again, with what is new.
fn hand_over(kit: &Path, node: &str, experiment: &str, changed: &mut Changed) -> Result<()> {
    write::make_folder(&kit.join(node))?;
    write_whole(&kit.join(node).join(EXPERIMENT), experiment.as_bytes())?;
    changed.files.push(format!("{node}/{EXPERIMENT}"));
    Ok(())
}

/// Beside the configuration: paths in that are seen from its folder.
fn tls_files() -> TlsFiles {
    TlsFiles {
        certificate: PathBuf::from("certificate.pem"),
        key: "key.pem".into(),
        authority: "authority.pem".into(),
    }
}
