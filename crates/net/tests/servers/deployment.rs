//! A hub and two sites on free ports of this machine, for tests.

use async_nats::{Client, ConnectError, ConnectOptions, Event};
use selvedge_net::broker::{BrokerError, Program, Server, free_port};
use selvedge_net::credentials::{Authority, Identity, write_secret};
use selvedge_net::server::{Hub, Quotas, Site, SiteKey, TlsFiles, link_text};
use selvedge_net::subjects::{self, CLOUD, EDGE, HOSPITAL};
use std::collections::HashMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// What each group has besides hospital and edge.
pub(crate) const GATEWAYS: [&str; 2] = ["gateway-0", "gateway-1"];

/// Those of a small run.
pub(crate) const QUOTAS: Quotas = Quotas {
    store: 20 << 20,
    waiting_at_site: 40 << 20,
    waiting_at_hub: 40 << 20,
};

/// The longest that a test waits for what must come.
pub(crate) const LONG: Duration = Duration::from_secs(15);

/// A party that is connected, and what its client was told.
pub(crate) struct Party {
    pub(crate) client: Client,
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
}

impl Party {
    /// Waits for an event whose text contains all of these.
    pub(crate) async fn told(&mut self, parts: &[&str]) {
        let wait = async {
            while let Some(event) = self.events.recv().await {
                if parts.iter().all(|part| event.to_string().contains(part)) {
                    return;
                }
            }
            panic!("the client ended");
        };
        timeout(LONG, wait)
            .await
            .unwrap_or_else(|_| panic!("nothing was said of {parts:?}"));
    }
}

/// Files, keys and servers; all end with it.
pub(crate) struct Deployment {
    pub(crate) dir: PathBuf,
    pub(crate) program: Program,
    pub(crate) hub: Hub,
    pub(crate) sites: [Site; 2],
    keys: HashMap<(usize, &'static str), Identity>,
    pub(crate) hub_server: Option<Server>,
    pub(crate) site_servers: [Option<Server>; 2],
}

/// A server's log, from where it was when this was made.
pub(crate) struct Log {
    path: PathBuf,
    from: usize,
}

impl Log {
    fn text(&self) -> String {
        let bytes = fs::read(&self.path).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.from..).unwrap_or_default()).into_owned()
    }

    /// Waits for a line that contains all of these.
    pub(crate) async fn has(&self, parts: &[&str]) {
        let there = |line: &str| parts.iter().all(|part| line.contains(part));
        let wait = async {
            while !self.text().lines().any(there) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(LONG, wait).await.is_err() {
            panic!("no line with {parts:?}:\n{}", self.text());
        }
    }

    /// Whether there is a line by now that contains all of these.
    pub(crate) fn has_by_now(&self, parts: &[&str]) -> bool {
        let text = self.text();
        text.lines()
            .any(|line| parts.iter().all(|part| line.contains(part)))
    }
}

/// The name of a site's server, for its files.
pub(crate) fn site_name(group: usize) -> String {
    format!("site-{group}")
}

pub(crate) fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port().unwrap()).into()
}

impl Deployment {
    /// Writes all files of a deployment with one group; `None`, and a line for the count, without `nats-server`.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let program = match Program::find() {
            Ok(program) => program,
            Err(BrokerError::Missing) => {
                println!("skipped: there is no nats-server (tools/nats installs it)");
                return None;
            }
            Err(wrong) => panic!("{wrong}"),
        };
        let dir = std::env::temp_dir().join(format!("selvedge-net-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Authority::new("test").unwrap().save(&dir).unwrap();
        // The one that was read again must issue certificates that belong to the one that was made.
        let authority = Authority::load(&dir).unwrap();
        let tls = |name: &str| {
            let issued = authority
                .issue_server(&["127.0.0.1".to_owned(), "localhost".to_owned()])
                .unwrap();
            let files = TlsFiles {
                certificate: dir.join(format!("{name}.pem")),
                key: dir.join(format!("{name}-key.pem")),
                authority: dir.join("authority.pem"),
            };
            fs::write(&files.certificate, issued.certificate).unwrap();
            write_secret(&files.key, &issued.key).unwrap();
            files
        };
        let names = [CLOUD, HOSPITAL, EDGE, "link", GATEWAYS[0], GATEWAYS[1]];
        let pairs = [0, 1]
            .into_iter()
            .flat_map(|group| names.map(|name| (group, name)));
        let keys: HashMap<_, _> = pairs
            .map(|who| (who, Identity::generate().unwrap()))
            .collect();
        let public = |group, name| keys[&(group, name)].public.clone();
        let hub = Hub {
            name: "hub".to_owned(),
            listen: free_address(),
            leaf: free_address(),
            monitor: free_address(),
            store: dir.join("hub"),
            tls: tls("hub-tls"),
            cloud: public(0, CLOUD),
            sites: [0, 1]
                .map(|group| SiteKey {
                    group,
                    public: public(group, "link"),
                })
                .to_vec(),
            durable: false,
            cluster: None,
            quotas: QUOTAS,
        };
        let sites = [0, 1].map(|group| {
            let name = site_name(group);
            let link = format!("{name}-link.conf");
            write_secret(&dir.join(&link), &link_text(&keys[&(group, "link")])).unwrap();
            Site {
                group,
                listen: free_address(),
                monitor: free_address(),
                store: dir.join(&name),
                tls: tls(&format!("{name}-tls")),
                hubs: vec![hub.leaf.to_string()],
                link,
                hospital: Some(public(group, HOSPITAL)),
                edge: Some(public(group, EDGE)),
                gateways: GATEWAYS
                    .map(|name| (name.to_owned(), public(group, name)))
                    .to_vec(),
                durable: true,
                quotas: QUOTAS,
            }
        });
        Some(Self {
            dir,
            program,
            hub,
            sites,
            keys,
            hub_server: None,
            site_servers: [None, None],
        })
    }

    /// Starts a server with a configuration that need not be the one of this crate.
    pub(crate) fn start(&self, name: &str, text: &str, monitor: SocketAddr) -> Server {
        let config = self.dir.join(format!("{name}.conf"));
        write_secret(&config, text).unwrap();
        let log = self.dir.join(format!("{name}.log"));
        self.program
            .start(&config, monitor, &log)
            .unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn start_hub(&mut self) {
        let text = self.hub.to_text().unwrap();
        self.hub_server = Some(self.start("hub", &text, self.hub.monitor));
    }

    /// A hub whose operator gives every right to everybody.
    pub(crate) fn start_open_hub(&mut self) {
        let text = open(&self.hub.to_text().unwrap());
        self.hub_server = Some(self.start("hub", &text, self.hub.monitor));
    }

    pub(crate) fn start_site(&mut self) {
        self.start_site_of(0);
    }

    pub(crate) fn start_site_of(&mut self, group: usize) {
        let text = self.sites[group].to_text().unwrap();
        self.start_site_with(group, &text);
    }

    pub(crate) fn start_site_with(&mut self, group: usize, text: &str) {
        let server = self.start(&site_name(group), text, self.sites[group].monitor);
        self.site_servers[group] = Some(server);
    }

    /// Gives a running server a new configuration, without a restart.
    pub(crate) async fn reload(&self, name: &str, text: &str, server: &Server) {
        let log = self.log(name);
        write_secret(&self.dir.join(format!("{name}.conf")), text).unwrap();
        let pid = server.pid().to_string();
        let sent = Command::new("kill").args(["-HUP", &pid]).status().unwrap();
        assert!(sent.success());
        log.has(&["Reloaded server configuration"]).await;
    }

    /// The hub and both sites, with their links.
    pub(crate) async fn start_all(&mut self) {
        self.start_hub();
        for group in [0, 1] {
            self.start_site_of(group);
        }
        for group in [0, 1] {
            self.linked_of(group).await;
        }
    }

    /// The same, with its hub and its first site linked.
    pub(crate) async fn started(test: &str) -> Option<Self> {
        Self::new(test)?.with_site(Self::start_hub).await
    }

    /// The same, with a hub that allows everything.
    pub(crate) async fn started_open(test: &str) -> Option<Self> {
        Self::new(test)?.with_site(Self::start_open_hub).await
    }

    async fn with_site(mut self, start_hub: fn(&mut Self)) -> Option<Self> {
        start_hub(&mut self);
        self.start_site();
        self.linked().await;
        Some(self)
    }

    /// Waits until the first site's link is up.
    pub(crate) async fn linked(&self) {
        self.linked_of(0).await;
    }

    pub(crate) async fn linked_of(&self, group: usize) {
        let server = self.site_servers[group].as_ref().unwrap();
        let wait = async {
            while server.counters().unwrap().links != 1 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, wait).await.expect("the link comes up");
    }

    /// The log of "hub" or of a site, from now on.
    pub(crate) fn log(&self, name: &str) -> Log {
        let path = self.dir.join(format!("{name}.log"));
        let from = fs::metadata(&path).map_or(0, |file| file.len() as usize);
        Log { path, from }
    }

    pub(crate) fn key(&self, group: usize, name: &'static str) -> &Identity {
        &self.keys[&(group, name)]
    }

    pub(crate) fn authority(&self) -> &Path {
        &self.hub.tls.authority
    }

    /// How a party connects, before its key.
    pub(crate) fn options(&self, name: &str) -> ConnectOptions {
        ConnectOptions::new()
            .name(name)
            .require_tls(true)
            .add_root_certificates(self.authority().to_owned())
            .custom_inbox_prefix(subjects::inbox_prefix(name))
    }

    /// Connects a party of the first group, or the cloud, to its server.
    pub(crate) async fn connect(&self, name: &'static str) -> Party {
        self.connect_of(0, name).await
    }

    pub(crate) async fn connect_of(&self, group: usize, name: &'static str) -> Party {
        let address = match name {
            CLOUD => self.hub.listen,
            _ => self.sites[group].listen,
        };
        self.try_connect((group, name), address)
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Connects with the key of somebody to any server; fails if it is refused.
    pub(crate) async fn try_connect(
        &self,
        (group, name): (usize, &'static str),
        address: SocketAddr,
    ) -> Result<Party, ConnectError> {
        let (tell, events) = mpsc::unbounded_channel();
        let client = self
            .options(name)
            .nkey(self.key(group, name).seed.clone())
            .event_callback(move |event| {
                let _ = tell.send(event);
                async {}
            })
            .connect(format!("tls://{address}"))
            .await?;
        Ok(Party { client, events })
    }
}

/// A configuration whose operator gives every right to everybody in it.
pub(crate) fn open(text: &str) -> String {
    let open = |line: &str| match line.trim_start().split_once(": { allow:") {
        Some((what, _)) => format!("{what}: \">\"\n"),
        None => format!("{line}\n"),
    };
    let text: String = text.lines().map(open).collect();
    assert!(!text.contains("allow:"), "{text}");
    text
}

impl Drop for Deployment {
    fn drop(&mut self) {
        self.hub_server = None;
        self.site_servers = [None, None];
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// A configuration whose link is in plain text, so that a test can read or speak it; nothing else differs. `tls` blocks
/// that are indented belong to links.
pub(crate) fn without_tls_on_the_link(text: &str) -> String {
    let of_link = |line: &&str| line.starts_with("  ") && line.trim_start().starts_with("tls {");
    assert_eq!(text.lines().filter(of_link).count(), 1, "{text}");
    let kept = text.lines().filter(|line| !of_link(line));
    kept.map(|line| format!("{line}\n")).collect()
}
