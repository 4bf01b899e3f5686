//! A `nats-server` as a child of this process: found, started, watched and stopped.

mod monitor;
mod program;

pub use monitor::{Counters, ask};
pub use program::{Program, spawn_kept};

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that names the program to use.
pub const PROGRAM_VARIABLE: &str = "SELVEDGE_NATS_SERVER";

/// The oldest version that has all that configurations and streams use.
const OLDEST: (u32, u32) = (2, 10);

/// How long a server may take until it is healthy: it reads its streams first.
const START_TIME: Duration = Duration::from_secs(30);

/// How long a server may take to end when it is asked to.
const STOP_TIME: Duration = Duration::from_secs(5);

/// How many lines of a server's log an error shows.
const LOG_LINES: usize = 12;

/// Where free ports are looked for: below those that Linux gives to outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Why there is no server, or no answer from it.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// It was not found.
    #[error(
        "nats-server was not found in {PROGRAM_VARIABLE}, in PATH or in tools/bin next to the program: tools/nats installs it"
    )]
    Missing,
    /// What was found is not one, or too old.
    #[error("{program}: {problem}; nats-server {}.{} or later is needed: tools/nats installs one", OLDEST.0, OLDEST.1)]
    Unfit {
        /// What was tried.
        program: PathBuf,
        /// Its output, or why it does not run.
        problem: String,
    },
    /// A file or process could not be created.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server exited, or was not healthy in time.
    #[error("nats-server {problem}; its log {log} ends with:\n{tail}")]
    NotHealthy {
        /// What happened.
        problem: String,
        /// Where its log is.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The monitoring did not answer, or not as expected.
    #[error("monitoring http://{monitor}{page}: {problem}")]
    Monitoring {
        /// Where it is.
        monitor: SocketAddr,
        /// What was asked for.
        page: String,
        /// What came instead.
        problem: String,
    },
    /// No port is free.
    #[error("no port from {} to {} is free", PORTS.start, PORTS.end - 1)]
    NoPort,
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> BrokerError {
    let what = what.into();
    move |source| BrokerError::System { what, source }
}

/// A running server. It is killed when this is dropped, and on Linux also when this process ends, however it ends.
#[derive(Debug)]
pub struct Server {
    child: Child,
    _keeper: mpsc::Sender<()>,
    monitor: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// The process, for those who want to send it a signal.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its log is.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Reads the counters from the monitoring.
    pub fn counters(&self) -> Result<Counters, BrokerError> {
        Counters::read(self.monitor)
    }

    /// Waits until it is healthy, for a limited time.
    ///
    /// # Errors
    /// If it exits before, or takes too long.
    pub fn wait_until_healthy(&mut self) -> Result<(), BrokerError> {
        let deadline = Instant::now() + START_TIME;
        loop {
            if let Some(status) = self.exited()? {
                return Err(self.not_healthy(format!("ended with {status}")));
            }
            let answer = ask(self.monitor, "/healthz");
            if matches!(answer, Ok((200, _))) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = START_TIME.as_secs();
                return Err(
                    self.not_healthy(format!("was not healthy within {seconds} s, {answer:?}"))
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// How the server ended, if it has.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>, BrokerError> {
        self.child
            .try_wait()
            .map_err(system("waiting for nats-server"))
    }

    fn not_healthy(&self, problem: String) -> BrokerError {
        BrokerError::NotHealthy {
            problem,
            log: self.log.clone(),
            tail: tail(&self.log, LOG_LINES),
        }
    }

    /// Asks the server to end and waits; kills it if it does not.
    pub fn stop(mut self) -> Result<(), BrokerError> {
        if self.exited()?.is_some() {
            return Ok(());
        }
        if let Ok(pid) = libc::pid_t::try_from(self.pid()) {
            // SAFETY: it is our child and nobody has waited for it, so the number is still its own.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        let deadline = Instant::now() + STOP_TIME;
        while Instant::now() < deadline {
            if self.exited()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.kill()
    }

    /// Kills the server, as a crash would, and waits until it is gone.
    pub fn kill(mut self) -> Result<(), BrokerError> {
        self.child.kill().map_err(system("killing nats-server"))?;
        self.child
            .wait()
            .map_err(system("waiting for nats-server"))?;
        Ok(())
    }
}

/// The last lines of a log.
pub fn tail(log: &Path, lines: usize) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A free port of 127.0.0.1 that was not handed out before.
pub fn free_port() -> Result<u16, BrokerError> {
    free_ports(1)
}

/// The first of `count` consecutive such ports.
pub fn free_ports(count: u16) -> Result<u16, BrokerError> {
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    // Processes begin at different places.
    let all = u32::from(PORTS.end - PORTS.start);
    let begin = std::process::id().wrapping_mul(97) % all;
    let is_free = |port: u16| {
        PORTS.contains(&port)
            && !given.contains(&port)
            && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    };
    let first = (0..all)
        .filter_map(|step| u16::try_from((begin + step) % all).ok())
        .map(|offset| PORTS.start + offset)
        .find(|first| (0..count).all(|i| first.checked_add(i).is_some_and(is_free)))
        .ok_or(BrokerError::NoPort)?;
    given.extend(first..first + count);
    Ok(first)
}
