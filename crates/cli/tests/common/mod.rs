//! The binary under test, folders of our own, and what its files say.

#![allow(dead_code, unreachable_pub)] // each test file uses its share
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

pub mod browser;
pub mod disk;
pub mod memory;
pub mod npz;
pub mod process;
pub mod python;
pub mod run;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub use process::{Ran, selvedge};

/// The repository.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Every algorithm.
pub const ALGORITHMS: [&str; 9] = [
    "hsgd",
    "jfl",
    "tdcd",
    "c-hsgd",
    "c-tdcd",
    "centralised",
    "fedavg",
    "hospital-only",
    "device-only",
];

/// A new folder, removed again at the end.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    /// Runs `selvedge` in this folder to its end.
    #[track_caller]
    pub fn selvedge(&self, args: &[&str]) -> Ran {
        process::finish(selvedge(self.path()).args(args))
    }

    /// The same, and it must succeed.
    #[track_caller]
    pub fn succeeds(&self, args: &[&str]) -> Ran {
        self.selvedge(args).succeeded()
    }

    /// The same, and it must be refused for a reason that has all of `parts` in it, leaving every file of this folder
    /// as it was.
    #[track_caller]
    pub fn refuses(&self, args: &[&str], parts: &[&str]) -> Ran {
        let before = snapshot(self.path());
        let ran = self.selvedge(args).refused(parts);
        unchanged(&before, &snapshot(self.path()), &format!("{args:?}"));
        ran
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A folder that stays behind harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every file and folder below `folder`; a folder has no bytes.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.insert(path.clone(), None);
                todo.push(path);
            } else {
                let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                found.insert(path, Some(bytes));
            }
        }
    }
    found
}

/// Two snapshots must be the same, but for logs, to which parties that run may write at any time.
#[track_caller]
pub fn unchanged(
    before: &BTreeMap<PathBuf, Option<Vec<u8>>>,
    after: &BTreeMap<PathBuf, Option<Vec<u8>>>,
    what: &str,
) {
    let gone = before.keys().filter(|k| !after.contains_key(*k));
    let changed = after
        .iter()
        .filter(|(k, v)| before.get(*k) != Some(*v) && !k.ends_with("log"))
        .map(|(k, _)| k);
    let different: Vec<_> = gone.chain(changed).collect();
    assert!(different.is_empty(), "{what} changed {different:?}");
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (path, bytes) in snapshot(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        match bytes {
            None => fs::create_dir_all(target).unwrap(),
            // Modes too: a secret that is copied stays one.
            Some(_) => {
                fs::create_dir_all(target.parent().unwrap()).unwrap();
                fs::copy(path, target).unwrap();
            }
        }
    }
}

/// The folder with real data, or a word that the test is skipped.
pub fn real_data(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SELVEDGE_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: {test} needs SELVEDGE_DATA, a folder with esr/");
    }
    folder
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A text must have all of `parts` in it.
#[track_caller]
pub fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Numbers in [0, 1) from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A small experiment with a validation share and two classes.
pub fn small_experiment(groups: u32, devices: u32, global_interval: u32) -> String {
    format!(
        "[data]
groups = {groups}
devices = {devices}
validation = 0.2
[train]
iterations = 200
global_interval = {global_interval}
local_interval = 5
learning_rate = 0.2
participation = 0.2
"
    )
}

/// An experiment on a table of patients of several sites, with lab results on one side and vital signs on the other.
pub fn table_experiment(data: &str, table: &str, train: &str, device: &str) -> String {
    format!(
        r#"[data]
set = "table"
split = "column"
{data}
[data.table]
id = "patient"
label = "ill"
group = "site"
hospital = ["age", "sex", "lactate"]
device = ["hr", "spo2"]
categorical = ["sex"]
{table}
[train]
learning_rate = 0.3
participation = 0.2
{train}
[model]
hospital = [{{ linear = {{ out = 8 }} }}, "tanh"]
device = [{device}]
combined = [{{ linear = {{ out = 2 }} }}]
"#
    )
}

/// A small mixed model on generated data: all recurrent and convolving layers, P and Q apart, a best model.
pub fn mixed_experiment(iterations: u64) -> String {
    format!(
        r#"seed = 7
[data]
groups = 5
devices = 60
features = [48, 48]
classes = 3
validation = 0.1
[train]
iterations = {iterations}
global_interval = 12
local_interval = 4
learning_rate = 0.05
halve_every = 1000
participation = 0.2
evaluate_every = 24
[model]
hospital = [{{ window = {{ size = 8 }} }}, {{ lstm = {{ hidden = 16 }} }}]
device   = [{{ window = {{ size = 8 }} }}, {{ conv1d = {{ out = 8, size = 3 }} }}, "relu", {{ gru = {{ hidden = 12 }} }}]
combined = [{{ linear = {{ out = 16 }} }}, "tanh", {{ linear = {{ out = 3 }} }}]
"#
    )
}
