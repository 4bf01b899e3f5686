//! Finding and starting the program.

use super::{BrokerError, OLDEST, PROGRAM_VARIABLE, Server, system};
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// A `nats-server` program of a suitable version.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    version: String,
}

impl Program {
    /// Looks for the program: the variable, then PATH, then `tools/bin` in the folders above this program's.
    ///
    /// If the variable is set, nothing else is tried.
    pub fn find() -> Result<Self, BrokerError> {
        if let Some(path) = std::env::var_os(PROGRAM_VARIABLE).filter(|path| !path.is_empty()) {
            return Self::check(Path::new(&path));
        }
        let paths = std::env::var_os("PATH");
        let folders = paths.iter().flat_map(std::env::split_paths);
        let in_path = folders.map(|folder| folder.join("nats-server"));
        // A binary is in target/release, a test in target/release/deps.
        let program = std::env::current_exe().unwrap_or_default();
        let above = program.ancestors().skip(2).take(2);
        let beside = above.map(|folder| folder.join("tools/bin/nats-server"));
        let path = in_path
            .chain(beside)
            .find(|path| path.is_file())
            .ok_or(BrokerError::Missing)?;
        Self::check(&path)
    }

    /// Asks a program for its version.
    pub fn check(path: &Path) -> Result<Self, BrokerError> {
        let unfit = |problem: String| BrokerError::Unfit {
            program: path.to_owned(),
            problem,
        };
        let output = Command::new(path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| unfit(e.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match parse_version(&said) {
            Some(found) if found >= OLDEST => Ok(Self {
                path: path.to_owned(),
                version: said,
            }),
            _ => Err(unfit(format!("it reports {said:?}"))),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version that it reports.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Starts a server and waits until it is healthy; see [`launch`](Self::launch).
    ///
    /// # Errors
    /// If it cannot be started, or is not healthy in time.
    pub fn start(
        &self,
        config: &Path,
        monitor: SocketAddr,
        log: &Path,
    ) -> Result<Server, BrokerError> {
        let mut server = self.launch(config, monitor, log)?;
        server.wait_until_healthy()?;
        Ok(server)
    }

    /// Starts a server. Paths in its configuration are relative to the configuration's folder. Servers of a cluster are
    /// healthy once most of them are up, so launch all of them before waiting for one.
    ///
    /// `monitor` is the address that the configuration gives to monitoring. The log is appended to.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn launch(
        &self,
        config: &Path,
        monitor: SocketAddr,
        log: &Path,
    ) -> Result<Server, BrokerError> {
        // What answers there later must be this server, and not one that was there before.
        TcpListener::bind(monitor).map_err(system(format!("monitoring at {monitor}")))?;
        let open = || File::options().create(true).append(true).open(log);
        let open = || open().map_err(system(format!("log {}", log.display())));
        let program = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = config.parent().filter(|p| !p.as_os_str().is_empty());
        let mut command = Command::new(program);
        command
            .arg("-c")
            .arg(config.file_name().unwrap_or_default())
            .current_dir(folder.unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(open()?)
            .stderr(open()?);
        let (child, keeper) =
            spawn_kept(command).map_err(system(format!("starting {}", self.path.display())))?;
        Ok(Server {
            child,
            _keeper: keeper,
            monitor,
            log: log.to_owned(),
        })
    }
}

fn parse_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said
        .strip_prefix("nats-server:")?
        .trim()
        .trim_start_matches('v')
        .split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Starts a child process that ends with this process at the latest: dropping the returned sender ends it too.
///
/// Linux sends the signal when the *thread* that started the child ends, so a thread is kept for it, which ends when
/// the returned sender is dropped.
///
/// # Errors
/// If it cannot be started.
pub fn spawn_kept(mut command: Command) -> io::Result<(Child, mpsc::Sender<()>)> {
    let (give_child, take_child) = mpsc::sync_channel(1);
    let (keep, until_dropped) = mpsc::channel::<()>();
    thread::Builder::new()
        .name("keeper of a process".to_owned())
        .spawn(move || {
            end_with_parent(&mut command);
            let _ = give_child.send(command.spawn());
            // Nothing is ever sent.
            let _ = until_dropped.recv();
        })?;
    let child = take_child.recv().map_err(io::Error::other)??;
    Ok((child, keep))
}

#[cfg(target_os = "linux")]
fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: both calls take numbers only, and may be used between fork and exec.
        let (asked, parent_now) = unsafe {
            let asked = libc::prctl(
                libc::PR_SET_PDEATHSIG,
                libc::SIGKILL as libc::c_ulong,
                0,
                0,
                0,
            );
            (asked, libc::getppid())
        };
        if asked != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have ended just before.
        if u32::try_from(parent_now) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure makes two system calls and takes no lock and no memory.
    unsafe { command.pre_exec(ask) };
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent(_command: &mut Command) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        assert_eq!(parse_version("nats-server: v2.15.1"), Some((2, 15)));
        assert_eq!(parse_version("nats-server: v2.10.0-beta.2"), Some((2, 10)));
        assert_eq!(parse_version("coreutils 9.1"), None);
        let unfit = Program::check(Path::new("/bin/echo"))
            .unwrap_err()
            .to_string();
        assert!(
            unfit.contains("/bin/echo") && unfit.contains("tools/nats"),
            "{unfit}"
        );
    }
}
