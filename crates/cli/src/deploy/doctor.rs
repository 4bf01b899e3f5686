//! `selvedge doctor`: can a party take part, and if not, what is wrong?

use super::config::{Kind, NodeConfig};
use super::node::{check, shard};
use crate::args::Patient;
use crate::files::{only_own, read_key};
use anyhow::Result;
use selvedge_core::role::Party;
use selvedge_core::task::Task;
use selvedge_data::{PseudonymKey, read_party};
use selvedge_net::broker::{Program, ask};
use selvedge_net::credentials::Identity;
use selvedge_net::examination::examine;
use selvedge_net::server::account;
use selvedge_net::transport::{Access, name};
use selvedge_run::format::count;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// A clock that is further off makes certificates and logs useless.
const CLOCK: f64 = 5.0;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) what: &'static str,
    pub(crate) fine: bool,
    pub(crate) text: String,
}

/// All that was looked at.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn note<T>(&mut self, what: &'static str, found: Result<(T, String), String>) -> Option<T> {
        let (value, fine, text) = match found {
            Ok((value, text)) => (Some(value), true, text),
            Err(text) => (None, false, text),
        };
        self.0.push(Finding { what, fine, text });
        value
    }
}

/// Looks at everything.
pub(crate) fn run(kind: Patient, file: &Path) -> Vec<Finding> {
    let mut findings = Findings::default();
    let kind = match kind {
        Patient::Cloud => Kind::Cloud,
        Patient::Hospital => Kind::Hospital,
        Patient::Edge => Kind::Edge,
        Patient::Devices => Kind::Devices,
        Patient::Server => {
            server(file, &mut findings);
            return findings.0;
        }
    };
    let config = NodeConfig::read(file)
        .and_then(|config| Ok((config.party(kind)?, config)))
        .map(|(party, config)| ((party, config), format!("{party}")))
        .map_err(|e| format!("{e:#}"));
    let Some((party, config)) = findings.note("config", config) else {
        return findings.0;
    };
    let identity = findings.note("key", key(&config.key));
    if let Some(path) = &config.pseudonyms {
        let key = read_key(path).map_err(|e| format!("{e:#}"));
        let fine = |key: PseudonymKey| ((), format!("key {}", key.name()));
        findings.note("pseudonyms", key.map(fine));
    }
    if let Err(e) = std::fs::metadata(&config.authority) {
        let problem = format!("{}: {e}", config.authority.display());
        findings.note::<()>("authority", Err(problem));
    }
    if let Some(identity) = identity {
        for server in &config.servers {
            let access = Access {
                servers: vec![server.clone()],
                authority: config.authority.clone(),
                seed: identity.seed.clone(),
            };
            reach(&access, server, (party, &identity), &mut findings);
        }
    }
    findings.note("data", data(&config, party));
    findings.0
}

fn key(path: &Path) -> Result<(Identity, String), String> {
    only_own(path).map_err(|e| format!("{e:#}"))?;
    let seed = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let identity = Identity::from_seed(&seed).map_err(|e| format!("{}: {e}", path.display()))?;
    let text = format!("public key {}", identity.public);
    Ok((identity, text))
}

fn reach(
    access: &Access,
    server: &str,
    (party, identity): (Party, &Identity),
    findings: &mut Findings,
) {
    let known = examine(access, server, party)
        .map_err(|problem| format!("{server}: {problem}"))
        .map(|known| {
            let (name, version) = (&known.server, &known.version);
            let text = format!(
                "{server} answers in {:.1} ms over TLS; it is {name}, nats-server {version}",
                1e3 * known.round_trip
            );
            (known, text)
        });
    let Some(known) = findings.note("server", known) else {
        return;
    };
    let expected = account(&name(party));
    let who = match known.user == identity.public && known.account == expected {
        true => Ok((
            (),
            format!("known to the server as {} ({expected})", name(party)),
        )),
        false => Err(format!(
            "known to the server as {} in the account {}: expected {} in {expected}; is this another party's folder?",
            known.user, known.account, identity.public
        )),
    };
    findings.note("identity", who);
    let ahead = known.clock_ahead;
    let clock = match ahead.abs() < CLOCK {
        true => Ok((
            (),
            format!("{:.2} s {} the server's", ahead.abs(), before(ahead)),
        )),
        false => Err(format!(
            "{:.0} s {} the server's: expected less than {CLOCK:.0}; correct one of the two (timedatectl set-ntp true)",
            ahead.abs(),
            before(ahead)
        )),
    };
    findings.note("clock", clock);
}

fn before(ahead: f64) -> &'static str {
    if ahead < 0.0 { "behind" } else { "ahead of" }
}

fn data(config: &NodeConfig, party: Party) -> Result<((), String), String> {
    let told = |e: anyhow::Error| format!("{e:#}");
    let experiment = config.experiment().map_err(told)?;
    if !config.data.exists() {
        return Err(format!(
            "{} does not exist yet: enrol first, with `selvedge enrol`",
            config.data.display()
        ));
    }
    let mut config = config.clone();
    config.take_enrolled_gateways(&experiment).map_err(told)?;
    let (shard, _) = shard(&config, party).map_err(told)?;
    let loaded = read_party(&config.data, shard).map_err(|e| e.to_string())?;
    check(&experiment, &loaded).map_err(told)?;
    // Layers, too, must fit what the shard has.
    Task::of_party(&experiment, &loaded.dataset, &loaded.labels).map_err(|e| e.to_string())?;
    let groups = &loaded.dataset.groups;
    let rows = match party {
        Party::Cloud => format!("{} groups", groups.len()),
        Party::Hospital(m) | Party::Edge(m) | Party::Gateway(m, _) => format!(
            "group {m} of {}, {} devices",
            groups.len(),
            count(groups[m].devices() as u64)
        ),
    };
    Ok((
        (),
        format!("fits the experiment: {rows}, data {}", loaded.fingerprint),
    ))
}

/// A server's configuration, its health and its link.
fn server(file: &Path, findings: &mut Findings) {
    let tried = || -> Result<(String, String), String> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let program = Program::find().map_err(|e| e.to_string())?;
        let folder = file.parent().filter(|p| !p.as_os_str().is_empty());
        let output = Command::new(
            std::path::absolute(program.path()).unwrap_or_else(|_| program.path().to_owned()),
        )
        .args(["-t", "-c"])
        .arg(file.file_name().unwrap_or_default())
        .current_dir(folder.unwrap_or(Path::new(".")))
        .output()
        .map_err(|e| format!("{}: {e}", program.path().display()))?;
        match output.status.success() {
            true => Ok((
                text,
                format!("{} accepts {}", program.version(), file.display()),
            )),
            // What it says may quote the file, and a link's key with it.
            false => Err(format!(
                "{} rejects {}: run `nats-server -t -c {1}` in its folder to see why",
                program.version(),
                file.display()
            )),
        }
    };
    let Some(text) = findings.note("config", tried()) else {
        return;
    };
    let folder = file.with_file_name("");
    for secret in ["key.pem", "link.conf"] {
        let path = folder.join(secret);
        if path.exists() {
            let fine = || format!("{} is readable by its owner only", path.display());
            let found = only_own(&path).map(|()| ((), fine()));
            findings.note("secret", found.map_err(|e| format!("{e:#}")));
        }
    }
    let monitor = text
        .lines()
        .find_map(|line| line.strip_prefix("http: \""))
        .and_then(|rest| rest.trim_end_matches('"').parse::<SocketAddr>().ok())
        .ok_or_else(|| "server.conf names no address for health checks".to_owned());
    let monitor = match monitor {
        Ok(monitor) => monitor,
        Err(problem) => {
            findings.note::<()>("health", Err(problem));
            return;
        }
    };
    let health = match ask(monitor, "/healthz") {
        Ok((200, _)) => Ok(((), format!("healthy, as reported at {monitor}"))),
        Ok((status, body)) => Err(format!("{monitor} answers {status}: {}", body.trim())),
        Err(e) => Err(format!("{e}: is it running?")),
    };
    if findings.note("health", health).is_none() || !text.contains("remotes:") {
        return;
    }
    let link = match selvedge_net::broker::Counters::read(monitor) {
        Ok(counters) if counters.links > 0 => Ok(((), "linked to the cloud's server".to_owned())),
        Ok(_) => Err("no link to the cloud's server: can it be reached from here (see the log), and is this hospital's key valid?".to_owned()),
        Err(e) => Err(e.to_string()),
    };
    findings.note("link", link);
}
