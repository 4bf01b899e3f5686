//! Starting the binary, and never waiting for it without end.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take before a test gives it up. All of them take seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary, to be run in `folder`, with an environment of our own.
pub fn selvedge(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command
        .current_dir(folder)
        .env_remove("SELVEDGE_DATA")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null());
    command
}

/// The same with no more than `gigabytes` of address space, so that a slip of the binary cannot take the machine down
/// with it.
pub fn bounded_selvedge(folder: &Path, gigabytes: u32) -> Command {
    let plain = selvedge(folder);
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {} && exec \"$0\" \"$@\"", gigabytes * 1_000_000);
    command
        .args(["-c", &script])
        .arg(plain.get_program())
        .current_dir(folder)
        .stdin(Stdio::null());
    for (key, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub command: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// It was still running when the time was up, and was killed.
    pub gave_up: bool,
}

impl Ran {
    /// The exit code, if it ended by itself.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Ends with 0 and without a panic.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        self.ended(0)
    }

    /// Ends with this code and without a panic.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        if let Some(complaint) = self.complaint(code) {
            panic!("{complaint}");
        }
        self
    }

    /// Ends with 2, saying one thing that has all of `parts` in it.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> Self {
        let ran = self.ended(2);
        for part in parts {
            assert!(
                ran.stderr.contains(part),
                "{}\ndoes not say {part:?}:\n{}",
                ran.command,
                ran.stderr
            );
        }
        ran
    }

    /// What is wrong with how it ended, if it should have ended with `code`.
    pub fn complaint(&self, code: i32) -> Option<String> {
        let problem = if self.gave_up {
            "did not end".to_owned()
        } else if let Some(signal) = self.status.signal() {
            format!("was ended by signal {signal}")
        } else if self.stderr.contains("panicked") {
            format!("panicked (code {:?})", self.code())
        } else if self.code() != Some(code) {
            format!("ended with {:?}, not {code}", self.code())
        } else {
            return None;
        };
        let Ran {
            command,
            stdout,
            stderr,
            ..
        } = self;
        Some(format!(
            "{command}\n{problem}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        ))
    }
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name();
    let words = program.into_iter().chain(command.get_args());
    let words = words.map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end.
#[track_caller]
pub fn finish(command: &mut Command) -> Ran {
    finish_within(command, PATIENCE).not_given_up()
}

impl Ran {
    #[track_caller]
    fn not_given_up(self) -> Self {
        assert!(
            !self.gave_up,
            "{}\nis still running after {PATIENCE:?}; stderr so far:\n{}",
            self.command, self.stderr
        );
        self
    }
}

/// Runs a command to its end, or kills it when `patience` is over.
pub fn finish_within(command: &mut Command, patience: Duration) -> Ran {
    let live = Live::start(command);
    live.collect(patience)
}

/// A command that is running; killed with the test that forgets it.
pub struct Live {
    command: String,
    child: Option<Child>,
    readers: Vec<std::thread::JoinHandle<Vec<u8>>>,
}

impl Live {
    pub fn start(command: &mut Command) -> Self {
        let text = describe(command);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {text}: {e}"));
        let read = |mut from: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // What cannot be read any more was not written.
                let _ = from.read_to_end(&mut bytes);
                bytes
            })
        };
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        Live {
            command: text,
            child: Some(child),
            readers: vec![read(Box::new(stdout)), read(Box::new(stderr))],
        }
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("not collected yet")
    }

    /// Its number, if it has not ended yet.
    pub fn pid(&mut self) -> Option<u32> {
        self.is_running().then(|| self.child().id())
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child().try_wait().unwrap().is_none()
    }

    /// Sends it a signal, like `INT`.
    pub fn signal(&mut self, name: &str) {
        let pid = self.child().id().to_string();
        let kill = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(kill.unwrap().success(), "kill -{name} {pid}");
    }

    /// Waits until `met` holds, for `patience` at most and only as long as it runs.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, patience: Duration, met: impl Fn() -> bool) {
        let started = Instant::now();
        while !met() {
            if !self.is_running() {
                let error = self.take_error();
                panic!("{} ended before {what}: {error}", self.command);
            }
            assert!(
                started.elapsed() < patience,
                "{}: still not {what} after {patience:?}",
                self.command
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn take_error(&mut self) -> String {
        let stderr = self.readers.pop().and_then(|r| r.join().ok());
        String::from_utf8_lossy(&stderr.unwrap_or_default()).into_owned()
    }

    /// Whether it ends by itself within that time.
    pub fn ends_within(&mut self, time: Duration) -> bool {
        let started = Instant::now();
        while self.is_running() {
            if started.elapsed() >= time {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Waits for its end, or kills it when `patience` is over.
    pub fn collect(mut self, patience: Duration) -> Ran {
        let gave_up = !self.ends_within(patience);
        if gave_up {
            self.child().kill().unwrap();
        }
        let mut child = self.child.take().expect("not collected yet");
        let status = child.wait().unwrap();
        let mut texts = self
            .readers
            .drain(..)
            .map(|r| String::from_utf8_lossy(&r.join().unwrap()).into_owned());
        Ran {
            command: self.command.clone(),
            status,
            stdout: texts.next().unwrap_or_default(),
            stderr: texts.next().unwrap_or_default(),
            gave_up,
        }
    }

    /// Waits for its end, which must come.
    #[track_caller]
    pub fn finish(self) -> Ran {
        self.collect(PATIENCE).not_given_up()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
