//! Configurations of `nats-server`: one for the cloud's server (the hub), one for each group's site.
//!
//! On a site everybody has an account: `HOSPITAL`, `EDGE`, one for each gateway, and `LINK`, where the link to the hub
//! is and nobody else. Accounts see nothing of each other but what one exports and the other imports, and that is six
//! subjects, and two more for each gateway, each with one sender and one receiver. So the hub gets nothing but what
//! hospital and edge say to the cloud, even if its operator gives the link every right there is: rights on the hub only
//! protect the hub and other sites. And an edge that makes its stream a copy of something else finds nothing of the
//! hospital's there.
//!
//! Gateways are not in the edge's account since rights alone would not keep them from its stream: a server answers a
//! question to whatever subject the question names, and asks for no right there. Whoever shares an account with a
//! stream and may ask who it is can so have the answer written over a record.
//!
//! Besides that, every account has calls that its server answers itself, about its connections and streams. The link
//! would offer those to the hub, so it denies them in both directions.
//!
//! The hub may be a cluster of three servers, which keeps working with two. They identify each other by their
//! individual certificates: a site has a certificate of the same authority, and must not be able to join them.

mod quotas;
mod rights;

pub use quotas::Quotas;

use crate::credentials::Identity;
use crate::subjects::{self, CLOUD, EDGE, HOSPITAL, Link};
use rights::{Connection, Rights, Users, list};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why a configuration cannot be written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A name that would be more than one token of a subject, or a wildcard.
    #[error("{0:?} is not a valid name: expected letters, digits, - and _, at most 64")]
    Name(String),
    /// A gateway with a name that somebody else has, or two sites of one group.
    #[error("{0:?} occurs twice")]
    Twice(String),
    /// A text that is not the public key of a user.
    #[error("the key of {name} is not a NATS user's public key, which begins with U{}", if *.is_secret { "; this is the secret half, so it is not shown here: make a new key" } else { "" })]
    Key {
        /// Whose key. What was given is not repeated: it may be a secret.
        name: String,
        /// Whether it seems to be one.
        is_secret: bool,
    },
    /// A site without a hub to dial.
    #[error("a site needs the address of at least one of the cloud's servers")]
    NoHub,
    /// Monitoring has no passwords, so it must not be reachable from other machines.
    #[error("monitoring at {0}: only a loopback address can be used")]
    Monitor(SocketAddr),
    /// The hub's address is not `host:port`.
    #[error("{0:?} is not an address of the form host:port")]
    Address(String),
    /// A configuration is UTF-8, so its paths are.
    #[error("{0}: the path is not UTF-8")]
    Path(PathBuf),
}

/// Files for TLS, as PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate.
    pub certificate: PathBuf,
    /// Its key, a secret.
    pub key: PathBuf,
    /// The certificate of the deployment's authority, by which a site knows the hub.
    pub authority: PathBuf,
}

/// What the hub knows of a site: the key of its link.
#[derive(Clone, Debug)]
pub struct SiteKey {
    /// The site's group.
    pub group: usize,
    /// The link's public key.
    pub public: String,
}

/// The cloud's server.
#[derive(Clone, Debug)]
pub struct Hub {
    /// The server's name.
    pub name: String,
    /// Where the cloud connects.
    pub listen: SocketAddr,
    /// Where sites connect.
    pub leaf: SocketAddr,
    /// Where its health and counters can be read: a loopback address.
    pub monitor: SocketAddr,
    /// The folder of JetStream.
    pub store: PathBuf,
    /// Certificate and key of this server.
    pub tls: TlsFiles,
    /// The cloud's public key.
    pub cloud: String,
    /// All sites.
    pub sites: Vec<SiteKey>,
    /// Whether a record is on the disk before it is acknowledged: it then survives a power cut.
    pub durable: bool,
    /// The other servers of a cluster, if it is one of several.
    pub cluster: Option<Cluster>,
    /// What the cloud may take up.
    pub quotas: Quotas,
}

/// How the servers of a cluster find and identify each other.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The name of the cluster.
    pub name: String,
    /// Where this one listens for the others.
    pub listen: SocketAddr,
    /// Where the others listen, as `host:port`.
    pub others: Vec<String>,
    /// The fingerprints of the keys of all of them ([`Issued::fingerprint`](crate::credentials::Issued)).
    pub fingerprints: Vec<String>,
}

/// The server of one group's site.
#[derive(Clone, Debug)]
pub struct Site {
    /// The group.
    pub group: usize,
    /// Where the group's parties connect.
    pub listen: SocketAddr,
    /// Where its health and counters can be read: a loopback address.
    pub monitor: SocketAddr,
    /// The folder of JetStream.
    pub store: PathBuf,
    /// Certificate and key of this server, and the authority by which it knows the hub.
    pub tls: TlsFiles,
    /// The hub's addresses for links, as `host:port`: one for each of its servers.
    pub hubs: Vec<String>,
    /// The name of the file with the link's key ([`link_text`]), next to the configuration, which therefore contains no
    /// secret.
    pub link: String,
    /// The hospital's public key; none if it was revoked.
    pub hospital: Option<String>,
    /// The edge's public key; none if it was revoked.
    pub edge: Option<String>,
    /// Names and public keys of the gateways.
    pub gateways: Vec<(String, String)>,
    /// Whether a record is on the disk before it is acknowledged: it then survives a power cut.
    pub durable: bool,
    /// What each party may take up.
    pub quotas: Quotas,
}

/// The file that holds the key of a site's link: `nats-server` reads it from nowhere but its configuration. A secret.
pub fn link_text(link: &Identity) -> String {
    format!("nkey: {}\n", quoted(&link.seed))
}

impl Hub {
    /// The configuration as text.
    pub fn to_text(&self) -> Result<String, ConfigError> {
        let mut users = Users::default();
        let mut cloud = Rights::with_stream(CLOUD);
        cloud.publish.push(subjects::all_from_cloud());
        cloud.subscribe.push(subjects::all_to_cloud());
        users.add(CLOUD, &self.cloud, Connection::Client, cloud)?;
        for site in &self.sites {
            // For a link, to publish is to bring messages here, and to subscribe is to take them from here.
            let rights = Rights {
                publish: vec![subjects::all_over(Link::Up, site.group)],
                subscribe: vec![subjects::all_over(Link::Down, site.group)],
            };
            users.add(
                &subjects::group_name(site.group),
                &site.public,
                Connection::Link,
                rights,
            )?;
        }
        let waiting = self.quotas.waiting_at_hub;
        let general = general(&self.name, (self.listen, self.monitor), &self.tls, waiting)?;
        let store = 2 * self.quotas.store;
        let jetstream = jetstream("hub", (&self.store, store), self.durable)?;
        // Each server of a cluster holds a copy, and all of them count.
        let servers = 1 + self.cluster.as_ref().map_or(0, |c| c.others.len());
        let quota = self.quotas.of_records(servers);
        let (leaf, users) = (quoted(&self.leaf.to_string()), users.take());
        let tls = server_tls(&self.tls)?;
        let cluster = match &self.cluster {
            Some(cluster) => cluster.to_text(&self.tls)?,
            None => String::new(),
        };
        Ok(format!(
            "{general}{jetstream}{cluster}leafnodes {{
  listen: {leaf}
  # Sites dial the addresses in their own configuration, and no other that a hub may advertise.
  no_advertise: true
  compression: off
  {tls}
}}
accounts {{
  CLOUD {{
{quota}    users: [
{users}    ]
  }}
}}
"
        ))
    }
}

impl Cluster {
    fn to_text(&self, tls: &TlsFiles) -> Result<String, ConfigError> {
        check_name(&self.name)?;
        let (name, listen) = (quoted(&self.name), quoted(&self.listen.to_string()));
        let routes = over_tls(&self.others)?;
        let fingerprints = list(&self.fingerprints);
        let (certificate, key, authority) = (
            path(&tls.certificate)?,
            path(&tls.key)?,
            path(&tls.authority)?,
        );
        Ok(format!(
            "cluster {{
  name: {name}
  listen: {listen}
  no_advertise: true
  routes: {routes}
  tls {{
    cert_file: {certificate}, key_file: {key}, ca_file: {authority}
    verify: true, min_version: \"1.3\", timeout: 5
    pinned_certs: {fingerprints}
  }}
}}
"
        ))
    }
}

impl Site {
    /// The configuration as text.
    pub fn to_text(&self) -> Result<String, ConfigError> {
        let group = self.group;
        let mut users = Users::default();
        let mut edge = Rights::with_stream(EDGE);
        let mut hospital = Rights::with_stream(HOSPITAL);
        for (name, rights) in [(HOSPITAL, &mut hospital), (EDGE, &mut edge)] {
            rights.publish.push(subjects::up(group, name));
            rights.subscribe.push(subjects::down(group, name));
        }
        Rights::connect(group, (EDGE, &mut edge), (HOSPITAL, &mut hospital));
        let mut shared = vec![
            Shared::new("HOSPITAL", "EDGE", subjects::inside(group, HOSPITAL, EDGE)),
            Shared::new("EDGE", "HOSPITAL", subjects::inside(group, EDGE, HOSPITAL)),
            Shared::new("HOSPITAL", "LINK", subjects::up(group, HOSPITAL)),
            Shared::new("EDGE", "LINK", subjects::up(group, EDGE)),
            Shared::new("LINK", "HOSPITAL", subjects::down(group, HOSPITAL)),
            Shared::new("LINK", "EDGE", subjects::down(group, EDGE)),
        ];
        let mut gateways = Vec::new();
        for (name, public) in &self.gateways {
            let mut gateway = Rights::of(name);
            Rights::connect(group, (EDGE, &mut edge), (name, &mut gateway));
            let account = account(name);
            let (there, back) = (
                subjects::inside(group, EDGE, name),
                subjects::inside(group, name, EDGE),
            );
            shared.push(Shared::new("EDGE", &account, there));
            shared.push(Shared::new(&account, "EDGE", back));
            gateways.push((name, public, gateway));
        }
        // The cloud is not here, but a gateway of that name could send in its place; nor may one take the place of
        // somebody who was revoked.
        for name in [CLOUD, HOSPITAL, EDGE] {
            users.reserve(name);
        }
        users.add_reserved(HOSPITAL, self.hospital.as_deref(), hospital)?;
        let hospital_users = users.take();
        users.add_reserved(EDGE, self.edge.as_deref(), edge)?;
        let edge_users = users.take();
        let (mut of_gateways, few) = (String::new(), Quotas::of_connections(0));
        for (name, public, rights) in gateways {
            users.add(name, public, Connection::Client, rights)?;
            let account = account(name);
            let (of_gateway, users) = (Shared::of_account(&shared, &account), users.take());
            let account = quoted(&account);
            of_gateways +=
                &format!("  {account} {{\n{few}{of_gateway}    users: [\n{users}    ]\n  }}\n");
        }
        let name = subjects::group_name(group);
        let waiting = self.quotas.waiting_at_site;
        let general = general(&name, (self.listen, self.monitor), &self.tls, waiting)?;
        let store = 2 * self.quotas.store;
        let jetstream = jetstream(&name, (&self.store, store), self.durable)?;
        let records = self.quotas.of_records(1);
        // An edge listens to most, and to all of its gateways.
        let connections = Quotas::of_connections(self.gateways.len());
        let hubs = match self.hubs.is_empty() {
            true => return Err(ConfigError::NoHub),
            false => over_tls(&self.hubs)?,
        };
        let (link, authority) = (quoted(&self.link), path(&self.tls.authority)?);
        let server_calls = list(&["$SYS.>", "$JS.>"].map(str::to_owned));
        let [of_hospital, of_edge, of_link] =
            ["HOSPITAL", "EDGE", "LINK"].map(|account| Shared::of_account(&shared, account));
        Ok(format!(
            "{general}{jetstream}leafnodes {{
  reconnect: \"1s\"
  remotes: [
    {{
      urls: {hubs}
      account: LINK
      include {link}
      compression: off
      deny_imports: {server_calls}
      deny_exports: {server_calls}
      tls {{ ca_file: {authority}, min_version: \"1.3\", timeout: 5 }}
    }}
  ]
}}
accounts {{
  HOSPITAL {{
{records}{connections}{of_hospital}    users: [
{hospital_users}    ]
  }}
  EDGE {{
{records}{connections}{of_edge}    users: [
{edge_users}    ]
  }}
{of_gateways}  LINK {{
{of_link}  }}
}}
"
        ))
    }
}

/// The account of a party on its server. Whatever a gateway is called, its account is not another's.
pub fn account(name: &str) -> String {
    match name {
        CLOUD | HOSPITAL | EDGE => name.to_uppercase(),
        gateway => format!("GATEWAY-{gateway}"),
    }
}

/// A subject that one account lets another have.
struct Shared {
    from: String,
    to: String,
    subject: String,
}

impl Shared {
    fn new(from: &str, to: &str, subject: String) -> Self {
        Shared {
            from: from.to_owned(),
            to: to.to_owned(),
            subject,
        }
    }

    /// What an account gives, and what it takes.
    fn of_account(all: &[Shared], account: &str) -> String {
        let mut text = String::from("    exports: [\n");
        for Shared { to, subject, .. } in all.iter().filter(|s| s.from == account) {
            let (subject, to) = (quoted(subject), quoted(to));
            text += &format!("      {{ stream: {subject}, accounts: [{to}] }}\n");
        }
        text += "    ]\n    imports: [\n";
        for Shared { from, subject, .. } in all.iter().filter(|s| s.to == account) {
            let (subject, from) = (quoted(subject), quoted(from));
            text += &format!("      {{ stream: {{ account: {from}, subject: {subject} }} }}\n");
        }
        text + "    ]\n"
    }
}

fn check_name(name: &str) -> Result<(), ConfigError> {
    subjects::is_name(name)
        .then_some(())
        .ok_or_else(|| ConfigError::Name(name.to_owned()))
}

/// What every server has. Pings are frequent, so that a dead link is noticed within seconds.
fn general(
    name: &str,
    (listen, monitor): (SocketAddr, SocketAddr),
    tls: &TlsFiles,
    waiting: u64,
) -> Result<String, ConfigError> {
    check_name(name)?;
    if !monitor.ip().is_loopback() {
        return Err(ConfigError::Monitor(monitor));
    }
    let (name, listen, monitor) = (
        quoted(name),
        quoted(&listen.to_string()),
        quoted(&monitor.to_string()),
    );
    let tls = server_tls(tls)?;
    Ok(format!(
        "server_name: {name}
listen: {listen}
http: {monitor}
{tls}
max_payload: 1MB
ping_interval: \"5s\"
ping_max: 2
write_deadline: \"10s\"
# Models of many devices arrive at once. Who sends more is slowed from half of it on; who does not read is disconnected.
max_pending: {waiting}
"
    ))
}

/// A server grants accounts no more than it has itself, so it is told how much that is.
fn jetstream(
    domain: &str,
    (store, most): (&Path, u64),
    durable: bool,
) -> Result<String, ConfigError> {
    let (domain, store) = (quoted(domain), path(store)?);
    let sync = if durable {
        "  sync_interval: always\n"
    } else {
        ""
    };
    Ok(format!(
        "jetstream {{\n  domain: {domain}\n  store_dir: {store}\n  max_file: {most}\n{sync}}}\n"
    ))
}

fn server_tls(files: &TlsFiles) -> Result<String, ConfigError> {
    let (certificate, key) = (path(&files.certificate)?, path(&files.key)?);
    Ok(format!(
        "tls {{ cert_file: {certificate}, key_file: {key}, min_version: \"1.3\", timeout: 5 }}"
    ))
}

/// A list of addresses to dial.
fn over_tls(addresses: &[String]) -> Result<String, ConfigError> {
    let dial = |address: &String| Ok(format!("tls://{}", host_and_port(address)?));
    let all: Vec<String> = addresses.iter().map(dial).collect::<Result<_, _>>()?;
    Ok(list(&all))
}

fn host_and_port(address: &str) -> Result<&str, ConfigError> {
    let wrong = || ConfigError::Address(address.to_owned());
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-.[]:".contains(c);
    let fine =
        !host.is_empty() && host.chars().all(allowed) && port.parse::<u16>().is_ok_and(|p| p > 0);
    fine.then_some(address).ok_or_else(wrong)
}

fn path(path: &Path) -> Result<String, ConfigError> {
    path.to_str()
        .map(quoted)
        .ok_or_else(|| ConfigError::Path(path.to_owned()))
}

/// A string as the configuration's language writes it.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let public = || Identity::generate().unwrap().public;
        Site {
            group: 3,
            listen: "127.0.0.1:4222".parse().unwrap(),
            monitor: "127.0.0.1:8222".parse().unwrap(),
            store: "store".into(),
            tls: TlsFiles {
                certificate: "c.pem".into(),
                key: "k.pem".into(),
                authority: "a.pem".into(),
            },
            hubs: vec!["hub.example:7422".to_owned()],
            link: "link.conf".into(),
            hospital: Some(public()),
            edge: Some(public()),
            gateways: vec![("gateway-0".to_owned(), public())],
            durable: true,
            quotas: Quotas::default(),
        }
    }

    #[test]
    fn a_name_cannot_widen_rights() {
        for name in ["*", ">", "a.b", "a\"]", ""] {
            let mut site = site();
            site.gateways[0].0 = name.to_owned();
            assert_eq!(site.to_text(), Err(ConfigError::Name(name.to_owned())));
        }
        for name in [HOSPITAL, EDGE, CLOUD] {
            let mut site = site();
            site.gateways[0].0 = name.to_owned();
            assert_eq!(site.to_text(), Err(ConfigError::Twice(name.to_owned())));
        }
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let mut two_of_one = site();
        two_of_one.edge = two_of_one.hospital.clone();
        assert!(matches!(two_of_one.to_text(), Err(ConfigError::Twice(_))));
        let mut no_key = site();
        no_key.edge = Some(Identity::generate().unwrap().seed);
        assert!(matches!(no_key.to_text(), Err(ConfigError::Key { .. })));
        let mut open = site();
        open.monitor = "0.0.0.0:8222".parse().unwrap();
        assert_eq!(open.to_text(), Err(ConfigError::Monitor(open.monitor)));
        for hub in [
            "hub.example",
            "hub.example:0",
            ":1",
            "user@hub:1",
            "hub/x:1",
        ] {
            let mut wrong = site();
            wrong.hubs.push(hub.to_owned());
            assert_eq!(wrong.to_text(), Err(ConfigError::Address(hub.to_owned())));
        }
    }

    #[test]
    fn nobody_takes_the_place_of_who_was_revoked() {
        let mut site = site();
        let was = site.edge.take().unwrap();
        let text = site.to_text().unwrap();
        assert!(!text.contains(&was) && text.contains(&site.hospital.clone().unwrap()));
        site.gateways[0].0 = EDGE.to_owned();
        assert_eq!(site.to_text(), Err(ConfigError::Twice(EDGE.to_owned())));
        site.hubs.clear();
        assert!(site.to_text().is_err());
    }
}
