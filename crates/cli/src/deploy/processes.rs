//! Servers and parties as processes of this machine, started again when they die.

use super::kit::{Deployment, NodeFiles, ServerFiles};
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::role::Party;
use selvedge_net::broker::{Counters, Program, Server, ask, spawn_kept, tail};
use selvedge_run::files::write_whole;
use selvedge_run::manifest::Manifest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A party that has failed by itself so often in a row is not started again.
const MOST_FAILURES: u32 = 5;

/// A party that has lived so long did not fail in a row.
const LONG_LIFE: Duration = Duration::from_secs(20);

/// How long a party may take to stop.
const STOP_TIME: Duration = Duration::from_secs(10);

/// What servers have counted so far.
const COUNTED: &str = "counted.json";

/// How often servers are asked how they are, and how long one may say that it is not well: it does not write again to a
/// disk that was full, though there is room, until it is started again.
const ASK_EVERY: Duration = Duration::from_secs(2);
const ILL_TIME: Duration = Duration::from_secs(8);

/// A party that ends well while the cloud goes on was stopped by somebody; after so long it is started again. Parties
/// that know of the end are faster than the cloud.
const EARLY_END: Duration = Duration::from_secs(10);

/// What goes with a process that holds it.
struct Running {
    child: Child,
    _keeper: mpsc::Sender<()>,
    since: Instant,
}

struct Node {
    files: NodeFiles,
    running: Option<Running>,
    failures: u32,
    /// Since when it has ended for good.
    over: Option<Instant>,
    /// Whether it is to answer predictions when the run is over.
    answers: bool,
}

struct Broker {
    files: ServerFiles,
    server: Option<Server>,
    since: Instant,
    failures: u32,
    /// What it counted before it was last started, and since.
    before: Counters,
    counted: Counters,
    /// When it was last asked, and since when it says that it is not well.
    asked: Instant,
    ill: Option<Instant>,
}

impl Broker {
    /// Whether it runs, and has said for a while that it is not well.
    fn is_ill_for_long(&mut self) -> bool {
        if self.server.is_none() || self.asked.elapsed() < ASK_EVERY {
            return false;
        }
        self.asked = Instant::now();
        // Who does not answer is being started, or about to be.
        let is_ill =
            matches!(ask(self.files.monitor, "/healthz"), Ok((status, _)) if status != 200);
        let since = self.ill.take().unwrap_or(self.asked);
        self.ill = is_ill.then_some(since);
        let lasts = is_ill && since.elapsed() >= ILL_TIME;
        if lasts {
            self.ill = None;
        }
        lasts
    }
}

/// All of a deployment.
pub(crate) struct Processes {
    folder: PathBuf,
    program: Program,
    brokers: Vec<Broker>,
    nodes: Vec<Node>,
    /// Whether servers have counted something in an earlier `selvedge up`.
    was_resumed: bool,
    /// How often something was started again.
    pub(crate) restarts: u64,
}

/// A line of `processes.json`.
#[derive(Serialize)]
struct Listed {
    name: String,
    pid: Option<u32>,
}

impl Processes {
    /// Starts all servers, and no party.
    pub(crate) fn servers_alone(folder: &Path, deployment: &Deployment) -> Result<Self> {
        let mut processes = Self::of(folder, deployment)?;
        processes.nodes.clear();
        processes.start_servers()?;
        Ok(processes)
    }

    fn start_servers(&mut self) -> Result<()> {
        (0..self.brokers.len()).try_for_each(|at| self.launch_server(at))?;
        let servers = self.brokers.iter_mut().filter_map(|b| b.server.as_mut());
        for server in servers {
            server.wait_until_healthy()?;
        }
        Ok(())
    }

    /// Starts all servers, then all parties.
    pub(crate) fn start(folder: &Path, deployment: &Deployment) -> Result<Self> {
        let mut processes = Self::of(folder, deployment)?;
        processes.start_servers()?;
        for at in 0..processes.nodes.len() {
            processes.start_node(at)?;
        }
        processes.list()?;
        Ok(processes)
    }

    /// Nothing is started yet.
    fn of(folder: &Path, deployment: &Deployment) -> Result<Self> {
        let folder = std::path::absolute(folder)
            .with_context(|| format!("cannot find {}", folder.display()))?;
        let counted = counted_before(&folder);
        let broker = |files: &ServerFiles| Broker {
            files: files.clone(),
            server: None,
            since: Instant::now(),
            failures: 0,
            before: counted.get(&files.folder).copied().unwrap_or_default(),
            counted: Counters::default(),
            asked: Instant::now(),
            ill: None,
        };
        let node = |files: &NodeFiles| Node {
            files: files.clone(),
            running: None,
            failures: 0,
            over: None,
            answers: false,
        };
        Ok(Processes {
            folder,
            program: Program::find()?,
            brokers: deployment.servers().iter().map(broker).collect(),
            nodes: deployment.nodes().iter().map(node).collect(),
            was_resumed: !counted.is_empty(),
            restarts: 0,
        })
    }

    fn launch_server(&mut self, at: usize) -> Result<()> {
        let files = &self.brokers[at].files;
        let folder = self.folder.join(&files.folder);
        let (config, log) = (folder.join("server.conf"), folder.join("log"));
        let server = self.program.launch(&config, files.monitor, &log)?;
        let broker = &mut self.brokers[at];
        (broker.server, broker.since) = (Some(server), Instant::now());
        broker.before = broker.before.and(&broker.counted);
        broker.counted = Counters::default();
        Ok(())
    }

    fn start_node(&mut self, at: usize) -> Result<()> {
        let files = &self.nodes[at].files;
        let folder = self.folder.join(&files.folder);
        let log = folder.join("log");
        let open = || {
            File::options()
                .create(true)
                .append(true)
                .open(&log)
                .with_context(|| format!("cannot write {}", log.display()))
        };
        let kind = match files.party {
            Party::Cloud => "cloud",
            Party::Hospital(_) => "hospital",
            Party::Edge(_) => "edge",
            Party::Gateway(..) => "devices",
        };
        let mut command = Command::new(std::env::current_exe().context("cannot find selvedge")?);
        command
            .args(["node", kind, "--config"])
            .arg(folder.join("node.toml"))
            .args(self.nodes[at].answers.then_some("--answer"))
            .stdin(Stdio::null())
            .stdout(open()?)
            .stderr(open()?);
        let (child, keeper) =
            spawn_kept(command).with_context(|| format!("cannot start {}", files.party))?;
        self.nodes[at].running = Some(Running {
            child,
            _keeper: keeper,
            since: Instant::now(),
        });
        Ok(())
    }

    /// Notes which process is whose.
    fn list(&self) -> Result<()> {
        let servers = self.brokers.iter().map(|broker| Listed {
            name: broker.files.folder.clone(),
            pid: broker.server.as_ref().map(Server::pid),
        });
        let nodes = self.nodes.iter().map(|node| Listed {
            name: node.files.folder.clone(),
            pid: node.running.as_ref().map(|running| running.child.id()),
        });
        let all: Vec<Listed> = servers.chain(nodes).collect();
        let text = serde_json::to_string_pretty(&all)?;
        let path = self.folder.join("processes.json");
        Ok(write_whole(&path, text.as_bytes())?)
    }

    /// Starts again whatever has died. True once the cloud has ended with the run.
    pub(crate) fn tend(&mut self) -> Result<bool> {
        let mut changed = false;
        for at in 0..self.brokers.len() {
            let broker = &mut self.brokers[at];
            let status = match &mut broker.server {
                Some(server) => server.exited()?,
                None => None,
            };
            let is_ill = status.is_none() && broker.is_ill_for_long();
            if let Some(server) = broker.server.take_if(|_| is_ill) {
                let (folder, why) = (&broker.files.folder, tail(server.log(), 1));
                crate::say(&format!(
                    "the server {folder} is not well, and is started again: {why}"
                ));
                server.stop()?;
            }
            if broker.server.is_some() && status.is_none() {
                continue;
            }
            broker.server = None;
            broker.failures = match broker.since.elapsed() < LONG_LIFE {
                // Who is killed from outside has done nothing wrong.
                _ if is_ill || status.is_some_and(|status| status.code().is_none()) => 0,
                true => broker.failures + 1,
                false => 1,
            };
            if broker.failures >= MOST_FAILURES {
                let folder = broker.files.folder.clone();
                return Err(self.failed_often(&format!("the server {folder}"), &folder));
            }
            self.restarts += 1;
            changed = true;
            // It may be that its port is not free yet: there is another try.
            let _ = self.launch_server(at);
        }
        let is_over = self.is_over();
        for at in 0..self.nodes.len() {
            if let Some(since) = self.nodes[at].over {
                if is_over || since.elapsed() < EARLY_END {
                    continue;
                }
                (changed, self.nodes[at].over) = (true, None);
                self.restarts += 1;
                self.start_node(at)?;
            }
            let Some(running) = &mut self.nodes[at].running else {
                continue;
            };
            let Some(status) = running
                .child
                .try_wait()
                .context("cannot wait for a party")?
            else {
                continue;
            };
            changed = true;
            let lived = running.since.elapsed();
            let node = &mut self.nodes[at];
            node.running = None;
            // Who has lingered until now is to come back and answer.
            let has_ended = match node.files.party {
                // It may have been stopped.
                Party::Cloud => status.success() && has_ending(&self.folder),
                _ => status.success() || (is_over && status.code().is_some()),
            };
            if has_ended && !node.answers {
                node.over = Some(Instant::now());
                continue;
            }
            // Who is killed from outside has no exit code, and has done nothing wrong.
            node.failures = match status.code() {
                Some(0 | 130) => 0,
                Some(_) if lived < LONG_LIFE => node.failures + 1,
                Some(_) => 1,
                None => 0,
            };
            if node.failures >= MOST_FAILURES {
                let NodeFiles { party, folder } = node.files.clone();
                return Err(self.failed_often(&party.to_string(), &folder));
            }
            self.restarts += 1;
            self.start_node(at)?;
        }
        if changed {
            self.list()?;
        }
        Ok(self.is_over())
    }

    /// Whether the cloud has ended: who ends later has nothing to come back for.
    fn is_over(&self) -> bool {
        let cloud = |node: &Node| node.files.party == Party::Cloud && node.over.is_some();
        self.nodes.iter().any(cloud)
    }

    fn failed_often(&self, who: &str, folder: &str) -> anyhow::Error {
        let log = self.folder.join(folder).join("log");
        let tail = tail(&log, 8);
        anyhow!(
            "{who} has failed {MOST_FAILURES} times in a row; its log {} ends with:\n{tail}",
            log.display()
        )
    }

    /// Whether a server may have counted what nobody has asked it for: it was killed, or whoever asks was.
    pub(crate) fn has_gaps(&self) -> bool {
        self.restarts > 0 || self.was_resumed
    }

    /// What the servers have counted since the run began, by name; of one that was killed, up to when it was last asked.
    /// It is noted for a later `selvedge up --resume`.
    pub(crate) fn counters(&mut self) -> Vec<(String, Counters)> {
        let read = |broker: &mut Broker| {
            if let Some(Ok(counted)) = broker.server.as_ref().map(Server::counters) {
                broker.counted = counted;
            }
            let all = broker.before.and(&broker.counted);
            (broker.files.folder.clone(), all)
        };
        let all: Vec<_> = self.brokers.iter_mut().map(read).collect();
        let noted: BTreeMap<_, _> = all.iter().cloned().collect();
        // Without it a later total is smaller, and no more.
        let _ =
            serde_json::to_vec(&noted).map(|text| write_whole(&self.folder.join(COUNTED), &text));
        all
    }

    /// Asks all parties to stop, waits for them, and then stops the servers.
    pub(crate) fn stop(mut self) -> Result<()> {
        for node in &self.nodes {
            if let Some(running) = &node.running {
                terminate(&running.child)?;
            }
        }
        let deadline = Instant::now() + STOP_TIME;
        for node in &mut self.nodes {
            let Some(running) = &mut node.running else {
                continue;
            };
            while running.child.try_wait()?.is_none() {
                if Instant::now() >= deadline {
                    running.child.kill()?;
                    running.child.wait()?;
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // Sites first, so that none looks for a hub that is gone.
        for broker in self.brokers.iter_mut().rev() {
            if let Some(server) = broker.server.take() {
                server.stop()?;
            }
        }
        Ok(())
    }

    /// Starts hospitals and edges once more, to answer predictions.
    pub(crate) fn answer(&mut self) -> Result<()> {
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            if matches!(node.files.party, Party::Hospital(_) | Party::Edge(_)) {
                (node.answers, node.over, node.failures) = (true, None, 0);
                if node.running.is_none() {
                    self.start_node(at)?;
                }
            }
        }
        self.list()
    }

    /// Waits a while for parties to end by themselves, with the run.
    pub(crate) fn wait_for_parties(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline && self.nodes.iter().any(|node| node.over.is_none()) {
            self.tend()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(running) = &mut node.running {
                // It may be gone already; there is nobody to tell.
                let _ = running.child.kill();
                let _ = running.child.wait();
            }
        }
    }
}

/// What servers had counted when somebody last looked after them.
fn counted_before(folder: &Path) -> BTreeMap<String, Counters> {
    let text = std::fs::read(folder.join(COUNTED)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Whether the run of a deployment has ended.
fn has_ending(folder: &Path) -> bool {
    let manifest = Manifest::read(&folder.join("run"));
    manifest.is_ok_and(|manifest| manifest.ending.is_some())
}

fn terminate(child: &Child) -> Result<()> {
    let Ok(pid) = libc::pid_t::try_from(child.id()) else {
        bail!("process {} has an invalid number", child.id());
    };
    // SAFETY: it is our child and nobody has waited for it, so the number is still its own.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    Ok(())
}
