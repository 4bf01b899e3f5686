//! A deployment of a test's own.

use crate::common::process::{Live, Ran};
use crate::common::run::{Run, same_results};
use crate::common::{Place, selvedge};
use selvedge_core::outcome::Kind;
use selvedge_net::broker::{BrokerError, Program};
use selvedge_run::trained::{Trained, WhichModel};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How long a deployment may take, whatever happens to it.
pub(crate) const LONG: Duration = Duration::from_secs(240);

/// Who floods or waits for what must happen soon has the machine for itself.
static MACHINE: RwLock<()> = RwLock::new(());

/// A folder of a test that may use the machine.
pub(crate) struct Turn<G> {
    place: Place,
    _machine: G,
}

impl<G> std::ops::Deref for Turn<G> {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// A new folder, if there is a server to test with; a line for the count, if not.
pub(crate) fn place_with_server(name: &str) -> Option<Turn<impl Sized>> {
    let machine = || MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    with_server(name, machine)
}

/// The same, while no other test of this program runs that needs a server.
pub(crate) fn place_alone(name: &str) -> Option<Turn<impl Sized>> {
    let machine = || MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    with_server(name, machine)
}

fn with_server<G>(name: &str, machine: impl FnOnce() -> G) -> Option<Turn<G>> {
    match Program::find() {
        Ok(_) => Some(Turn {
            _machine: machine(),
            place: Place::new(name),
        }),
        Err(BrokerError::Missing) => {
            println!("skipped: there is no nats-server (tools/nats installs it)");
            None
        }
        Err(wrong) => panic!("{wrong}"),
    }
}

/// Two hospitals with thirty patients each, of whom some have several samples; forty intervals, a global aggregation at
/// every second one.
pub(crate) const FORTY_INTERVALS: &str = r#"
seed = 7
[data]
set = "synthetic"
groups = 2
devices = 30
samples_per_device = 2
validation = 0.1
[train]
iterations = 80
global_interval = 4
local_interval = 2
learning_rate = 0.3
participation = 0.5
evaluate_every = 8
"#;

/// A run that a simulation has done, to compare with.
pub(crate) fn simulated(place: &Place, experiment: &str, more: &[&str]) -> Run {
    place.write("experiment.toml", experiment);
    let args = ["train", "experiment.toml", "--out", "simulated"];
    place.succeeds(&[&args[..], more].concat());
    Run::at(place, "simulated")
}

/// A deployment that is running.
pub(crate) struct Up<'a> {
    place: &'a Place,
    name: String,
    pub(crate) live: Live,
}

impl<'a> Up<'a> {
    pub(crate) fn start(place: &'a Place, name: &str, more: &[&str]) -> Self {
        let args = ["up", "experiment.toml", "--json", "--out", name];
        let mut command = selvedge(place.path());
        command.args(args).args(more);
        Up {
            place,
            name: name.into(),
            live: Live::start(&mut command),
        }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.place.join(&self.name)
    }

    /// The processes of the deployment by name, once it has started.
    pub(crate) fn processes(&self) -> Vec<(String, u32)> {
        let path = self.folder().join("processes.json");
        let began = Instant::now();
        loop {
            let listed = std::fs::read_to_string(&path).unwrap_or_default();
            if let Ok(Value::Array(all)) = serde_json::from_str(&listed) {
                let pid = |p: &Value| p["pid"].as_u64().map(|pid| pid as u32);
                let name = |p: &Value| p["name"].as_str().unwrap_or_default().to_owned();
                return all
                    .iter()
                    .filter_map(|p| Some((name(p), pid(p)?)))
                    .collect();
            }
            assert!(began.elapsed() < LONG, "nothing was started");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end, which must be a good one.
    pub(crate) fn ends(self) -> Ended {
        let folder = self.folder();
        let ran = self.live.collect(LONG);
        if let Some(complaint) = ran.complaint(0) {
            panic!("{complaint}\n{}", logs(&folder));
        }
        let said = serde_json::from_str(&ran.stdout).unwrap();
        Ended {
            run: Run::at(self.place, &format!("{}/run", self.name)),
            said,
            ran,
        }
    }
}

/// All logs below a folder.
fn logs_of(folder: &std::path::Path) -> Vec<PathBuf> {
    let (mut all, mut todo) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.file_name().is_some_and(|name| name == "log") {
                all.push(path);
            }
        }
    }
    all
}

/// The ends of all logs.
fn logs(folder: &std::path::Path) -> String {
    let mut all = String::new();
    for path in logs_of(folder) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(12)..];
        all += &format!("--- {}\n{}\n", path.display(), tail.join("\n"));
    }
    all
}

/// A deployment that has ended.
pub(crate) struct Ended {
    pub(crate) run: Run,
    pub(crate) said: Value,
    #[allow(dead_code)]
    pub(crate) ran: Ran,
}

impl Ended {
    /// The run is that of the simulation: model, metrics and ledger.
    #[track_caller]
    pub(crate) fn is(&self, simulated: &Run, what: &str) {
        same_results(simulated, &self.run, what);
        let ending = |run: &Run| run.manifest()["ending"].clone();
        assert_eq!(ending(simulated), ending(&self.run), "{what}");
        let has_best = simulated.file("best.safetensors").is_file();
        let best = has_best.then_some(WhichModel::Best);
        for which in [WhichModel::Last].into_iter().chain(best) {
            let [a, b] = [simulated, &self.run].map(|run| Trained::open(&run.file(""), which));
            let (a, b) = (a.unwrap(), b.unwrap());
            let calibrates = matches!(a.outcome().kind(), Kind::Class | Kind::Labels);
            assert_eq!(a.calibration.is_some(), has_best && calibrates, "{what}");
            assert_eq!(a.calibration, b.calibration, "{what}");
            assert!(!calibrates || a.calibrated_on == b.calibrated_on, "{what}");
        }
    }

    /// Nobody was taken for flooding, and records needed a fraction of their quota.
    #[track_caller]
    pub(crate) fn stays_within_bounds(&self, what: &str) {
        let folder = self.run.0.parent().unwrap();
        let logs = logs_of(folder);
        assert!(!logs.is_empty(), "{what}");
        for log in logs {
            assert!(!read(&log).contains(" floods: "), "{what}: {log:?}");
        }
        let deployment: Value =
            serde_json::from_str(&read(&folder.join("deployment.json"))).unwrap();
        let quota = deployment["quotas"]["store"].as_u64().unwrap();
        for server in self.said["servers"].as_array().unwrap() {
            let stored = server["counters"]["stored_bytes"].as_u64().unwrap();
            assert!(stored < quota / 4, "{what}: {stored} of {quota} bytes");
        }
    }
}

/// A file as text.
#[track_caller]
pub(crate) fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
