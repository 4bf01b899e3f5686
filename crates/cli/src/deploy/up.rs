//! `selvedge up`: a run as real processes on this machine, from an experiment to a trained model.

use super::config::check_deployable;
use super::kit::Deployment;
use super::kit::local::{self, Wishes};
use super::processes::Processes;
use super::status::ask_node;
use crate::interrupt::is_interrupted;
use crate::progress::Bar;
use crate::summary::without;
use anyhow::Result;
use selvedge_core::state::Evaluation;
use selvedge_net::broker::{Counters, Program};
use selvedge_net::drive::Snapshot;
use selvedge_run::files::{check_free, is_run, make_folder};
use selvedge_run::format::shell;
use selvedge_run::format::{bytes, count, score, seconds};
use selvedge_run::manifest::Manifest;
use selvedge_run::{ledger, metrics};
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often processes are looked after.
const TEND_EVERY: Duration = Duration::from_millis(50);

/// How often the display changes.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// How long parties may take to end once the cloud has.
const END_TIME: Duration = Duration::from_secs(10);

/// A deployment that has ended.
pub(crate) struct Ended {
    folder: PathBuf,
    interrupted: bool,
    manifest: Option<Manifest>,
    last: Option<Evaluation>,
    ledger_bytes: u64,
    servers: Vec<(String, Counters)>,
    restarts: u64,
    /// Whether servers have counted more than is known.
    gaps: bool,
    seconds: f64,
}

/// Writes the files of a deployment into a new folder.
pub(crate) fn prepare(folder: &Path, wishes: &Wishes<'_>) -> Result<Deployment> {
    check_deployable(wishes.experiment)?;
    check_free(folder)?;
    // Before anything is written: without servers nothing of it can be used.
    Program::find()?;
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
    }
    local::create(folder, wishes)
}

/// Starts everything, and looks after it until the run is over or somebody presses Ctrl-C.
pub(crate) fn run(folder: &Path, deployment: &Deployment, answer: bool) -> Result<Ended> {
    let started = Instant::now();
    let mut display = Display::new(&deployment.consortium.name, deployment.cloud_http());
    let mut processes = Processes::start(folder, deployment)?;
    display.say(&format!(
        "{} servers and {} parties are running; see `selvedge status {}`",
        deployment.servers().len(),
        deployment.nodes().len(),
        shell(folder)
    ));
    let mut read = Instant::now();
    let interrupted = loop {
        if is_interrupted() {
            display.say("Ctrl-C: stopping all parties …");
            break true;
        }
        if processes.tend()? {
            break false;
        }
        display.update();
        if read.elapsed() > Duration::from_secs(1) {
            processes.counters();
            read = Instant::now();
        }
        std::thread::sleep(TEND_EVERY);
    };
    display.close();
    if !interrupted {
        processes.wait_for_parties(END_TIME)?;
    }
    let servers = processes.counters();
    let lasted = started.elapsed().as_secs_f64();
    if answer && !interrupted {
        answer_until_interrupted(folder, &mut processes)?;
    }
    let (restarts, gaps) = (processes.restarts, processes.has_gaps());
    processes.stop()?;
    let run = folder.join("run");
    let manifest = is_run(&run).then(|| Manifest::read(&run)).transpose()?;
    let ledger = ledger::read(&run).unwrap_or_default();
    let evaluations = metrics::newest(&run).unwrap_or_default();
    Ok(Ended {
        folder: folder.into(),
        interrupted,
        manifest,
        last: evaluations.into_iter().flatten().next(),
        ledger_bytes: ledger.iter().map(|line| line.bytes).sum(),
        servers,
        restarts,
        gaps,
        seconds: lasted,
    })
}

/// Lets hospitals and edges answer predictions for the model that they were left with.
fn answer_until_interrupted(folder: &Path, processes: &mut Processes) -> Result<()> {
    processes.answer()?;
    crate::say(&format!(
        "the run is over; ask with `selvedge ask --config {}`, and stop with Ctrl-C",
        folder.join("group-0/gateway-0/node.toml").display()
    ));
    while !is_interrupted() {
        processes.tend()?;
        std::thread::sleep(TEND_EVERY);
    }
    Ok(())
}

impl Ended {
    /// Whether it was stopped before its end.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// How the run ended, if it has: `finished`, `reached` or `diverged`, and when.
    pub(crate) fn ending(&self) -> Option<(&str, u64)> {
        let ending = self.manifest.as_ref()?.ending.as_ref()?;
        Some((ending.kind.as_str(), ending.t))
    }

    fn total(&self, of: fn(&Counters) -> u64) -> u64 {
        self.servers.iter().map(|(_, counters)| of(counters)).sum()
    }

    /// One JSON object.
    pub(crate) fn json(&self) -> Value {
        json!({
            "deployment": self.folder.display().to_string(),
            "run": self.folder.join("run").display().to_string(),
            "ending": self.manifest.as_ref().and_then(|m| m.ending.as_ref()),
            "last": self.last,
            "payload_bytes": self.ledger_bytes,
            "servers": self.servers.iter().map(|(name, c)| json!({"name": name, "counters": c})).collect::<Vec<_>>(),
            "restarts": self.restarts,
            "seconds": self.seconds,
        })
    }

    /// A page for people.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let run = self.folder.join("run");
        match (&self.manifest, self.interrupted) {
            (_, true) => writeln!(
                out,
                "stopped; resume with `selvedge up --resume {}`",
                shell(&self.folder)
            )?,
            (Some(manifest), false) => {
                let ending = manifest
                    .ending
                    .as_ref()
                    .map_or("ended", |e| e.kind.as_str());
                writeln!(
                    out,
                    "{} · {ending} at t {} · {}",
                    manifest.name,
                    count(manifest.timing.iterations),
                    seconds(self.seconds)
                )?;
            }
            (None, false) => {}
        }
        if let Some(e) = &self.last {
            writeln!(
                out,
                "Model   training loss {}; test AUC {}, F1 {}, accuracy {}; last evaluated at t {}",
                score(Some(e.loss_train)),
                score(e.test.auc),
                score(e.test.f1),
                score(e.test.accuracy),
                count(e.t)
            )?;
            if !e.without.is_empty() {
                writeln!(out, "{}", without("there", e, &[]))?;
            }
        }
        let received = self.total(|c| c.in_bytes);
        let hubs = self
            .servers
            .iter()
            .filter(|(name, _)| name.starts_with("hub"));
        writeln!(
            out,
            "Bytes   {} of payload; the servers received {}{} in {} messages ({:.2} ×), links carried {}, {} are stored",
            bytes(self.ledger_bytes as f64),
            // What a server counted in its last second before it was killed is known to nobody.
            if self.gaps { "at least " } else { "" },
            bytes(received as f64),
            count(self.total(|c| c.in_messages)),
            match self.ledger_bytes {
                0 => 0.0,
                payload => received as f64 / payload as f64,
            },
            bytes(
                hubs.map(|(_, hub)| (hub.link_in_bytes + hub.link_out_bytes) as f64)
                    .sum()
            ),
            bytes(self.total(|c| c.stored_bytes) as f64),
        )?;
        if self.restarts > 0 {
            writeln!(out, "Restart {} processes were restarted", self.restarts)?;
        }
        writeln!(out, "Files   {}", run.display())
    }
}

/// What a person sees meanwhile.
struct Display {
    bar: Bar,
    cloud: SocketAddr,
    shown: Instant,
}

impl Display {
    fn new(label: &str, cloud: SocketAddr) -> Self {
        Display {
            bar: Bar::new(label),
            cloud,
            shown: Instant::now(),
        }
    }

    fn say(&self, text: &str) {
        self.bar.say(text);
    }

    fn update(&mut self) {
        if self.shown.elapsed() < SHOW_EVERY {
            return;
        }
        self.shown = Instant::now();
        let Ok(snapshot) = ask_node(self.cloud) else {
            return;
        };
        let (t, all) = (snapshot.doing.t, snapshot.iterations);
        self.bar.update(t, Some(all), || {
            format!("t {}/{}  {}", count(t), count(all), line(&snapshot))
        });
    }

    fn close(&self) {
        self.bar.close();
    }
}

fn line(snapshot: &Snapshot) -> String {
    let found = snapshot.evaluation.as_ref().map_or(String::new(), |e| {
        format!(
            "loss {:.3}  AUC {}  {} per group  ",
            e.loss_train,
            score(e.test.auc),
            bytes(e.bytes_exact)
        )
    });
    format!("{found}{}", snapshot.doing.what)
}
