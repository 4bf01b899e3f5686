//! A hub and one site on free ports of this machine, for tests.

use async_nats::{Client, ConnectOptions, Event};
use selvedge_net::broker::{BrokerError, Program, Server, free_port};
use selvedge_net::credentials::{Authority, Identity, write_secret};
use selvedge_net::server::{Hub, Site, SiteKey, TlsFiles, link_text};
use selvedge_net::subjects::{self, CLOUD, EDGE, HOSPITAL};
use std::collections::HashMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// What the tests' group has besides hospital and edge.
pub(crate) const GATEWAYS: [&str; 2] = ["gateway-0", "gateway-1"];

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
    pub(crate) site: Site,
    pub(crate) keys: HashMap<&'static str, Identity>,
    pub(crate) hub_server: Option<Server>,
    pub(crate) site_server: Option<Server>,
}

fn free_address() -> SocketAddr {
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
        let keys = HashMap::from(names.map(|name| (name, Identity::generate().unwrap())));
        let public = |name: &str| keys[name].public.clone();
        let hub = Hub {
            name: "hub".to_owned(),
            listen: free_address(),
            leaf: free_address(),
            monitor: free_address(),
            store: dir.join("hub"),
            tls: tls("hub-tls"),
            cloud: public(CLOUD),
            sites: vec![SiteKey {
                group: 0,
                public: public("link"),
            }],
            durable: false,
            cluster: None,
        };
        let link = "link.conf".to_owned();
        write_secret(&dir.join(&link), &link_text(&keys["link"])).unwrap();
        let site = Site {
            group: 0,
            listen: free_address(),
            monitor: free_address(),
            store: dir.join("site"),
            tls: tls("site-tls"),
            hubs: vec![hub.leaf.to_string()],
            link,
            hospital: Some(public(HOSPITAL)),
            edge: Some(public(EDGE)),
            gateways: GATEWAYS
                .map(|name| (name.to_owned(), public(name)))
                .to_vec(),
            durable: true,
        };
        Some(Self {
            dir,
            program,
            hub,
            site,
            keys,
            hub_server: None,
            site_server: None,
        })
    }

    fn start(&self, name: &str, text: &str, monitor: SocketAddr) -> Server {
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
        let text = self.hub.to_text().unwrap();
        let open = |line: &str| match line.trim_start().split_once(": { allow:") {
            Some((what, _)) => format!("{what}: \">\"\n"),
            None => format!("{line}\n"),
        };
        let text: String = text.lines().map(open).collect();
        assert!(!text.contains("allow:"), "{text}");
        self.hub_server = Some(self.start("hub", &text, self.hub.monitor));
    }

    pub(crate) fn start_site(&mut self) {
        let text = self.site.to_text().unwrap();
        self.site_server = Some(self.start("site", &text, self.site.monitor));
    }

    /// Waits until the site's link is up.
    pub(crate) async fn linked(&self) {
        let server = self.site_server.as_ref().unwrap();
        let wait = async {
            while server.counters().unwrap().links != 1 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, wait).await.expect("the link comes up");
    }

    pub(crate) fn authority(&self) -> &Path {
        &self.site.tls.authority
    }

    /// How a party connects, before its key.
    pub(crate) fn options(&self, name: &str) -> ConnectOptions {
        ConnectOptions::new()
            .name(name)
            .require_tls(true)
            .add_root_certificates(self.authority().to_owned())
            .custom_inbox_prefix(subjects::inbox_prefix(name))
    }

    /// Connects a party to its server.
    pub(crate) async fn connect(&self, name: &str) -> Party {
        let (tell, events) = mpsc::unbounded_channel();
        let address = if name == CLOUD {
            self.hub.listen
        } else {
            self.site.listen
        };
        let client = self
            .options(name)
            .nkey(self.keys[name].seed.clone())
            .event_callback(move |event| {
                let _ = tell.send(event);
                async {}
            })
            .connect(format!("tls://{address}"))
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        Party { client, events }
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        self.hub_server = None;
        self.site_server = None;
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
