//! A run directory: everything about a run, resumable at any moment.
//!
//! ```text
//! manifest.json         experiment, versions, sizes, how it ended     replaced whole
//! metrics.jsonl         a line per evaluation                         appended, cut on resume
//! trace.jsonl           who took part, with --trace                   appended, cut on resume
//! segments.jsonl        P, Q, η and why, where train.adaptive         appended, cut on resume
//! ledger.csv            bytes by link, kind and direction             replaced whole
//! checkpoint/           the state at the end of an interval           replaced whole
//! initial.safetensors, model.safetensors, best.safetensors            replaced whole
//! inputs.json           what the model's inputs are, how they are scaled          replaced whole
//! validation.safetensors   what the models say of the validation patients         replaced whole
//! ```
//!
//! The directory appears under its name only once it can be resumed.

use crate::checkpoint::{self, Header};
use crate::files::{read_text, write_whole};
use crate::{trained, weights};
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::dataset::{Dataset, Group};
use selvedge_core::experiment::Experiment;
use selvedge_core::ledger::Ledger;
use selvedge_core::run::{Ending, Interval};
use selvedge_core::state::State;
use selvedge_core::task::{Sizes, Task};
use selvedge_data::Inputs;
use selvedge_data::SETS;
use selvedge_nn::simd::Level;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `manifest.json`
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) selvedge: String,
    pub(crate) name: String,
    pub(crate) experiment: serde_json::Value,
    pub(crate) cpu: Cpu,
    pub(crate) data: DataInfo,
    pub(crate) sizes: Sizes,
    pub(crate) timing: Timing,
    pub(crate) ending: Option<EndingInfo>,
}

/// What the run was computed on; it changes no result.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Cpu {
    pub(crate) instructions: String,
    pub(crate) available: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct DataInfo {
    pub(crate) fingerprint: String,
    pub(crate) classes: Vec<String>,
    pub(crate) training_samples: usize,
    pub(crate) validation_samples: usize,
    pub(crate) test_samples: usize,
    /// The names of the groups; runs of earlier builds have none.
    #[serde(default)]
    pub(crate) groups: Vec<String>,
    /// Of each group, how many training samples each class has.
    #[serde(default)]
    pub(crate) labels: Vec<Vec<u64>>,
}

/// Real time of training, evaluation included.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Timing {
    pub(crate) iterations: u64,
    pub(crate) seconds: f64,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct EndingInfo {
    /// `finished`, `reached`, `interrupted` or `diverged`.
    pub(crate) kind: String,
    pub(crate) t: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
}

impl EndingInfo {
    pub(crate) fn new(ending: &Ending, t: u64) -> Self {
        let (kind, t, key, value) = match ending {
            Ending::Finished => ("finished", t, None, None),
            Ending::Reached { key, value } => ("reached", t, Some((*key).to_owned()), Some(*value)),
            Ending::Interrupted => ("interrupted", t, None, None),
            Ending::Diverged { t, learning_rate } => (
                "diverged",
                *t,
                Some("train.learning_rate".to_owned()),
                Some(*learning_rate),
            ),
        };
        EndingInfo {
            kind: kind.into(),
            t,
            key,
            value,
        }
    }
}

impl Manifest {
    /// The manifest of a run on data of which everything is known.
    pub(crate) fn new(name: &str, task: &Task<'_>) -> Result<Self> {
        let dataset = task.given;
        let labels = dataset.groups.iter().map(|g| label_counts(dataset, g));
        let data = DataInfo {
            fingerprint: dataset.fingerprint(),
            classes: dataset.classes.clone(),
            training_samples: dataset.training_samples(),
            validation_samples: dataset.validation.len(),
            test_samples: dataset.test.len(),
            groups: dataset.groups.iter().map(|g| g.name.clone()).collect(),
            labels: labels.collect(),
        };
        Self::on_data(name, task, data)
    }

    /// The manifest of a run on data of which only so much is known.
    pub(crate) fn on_data(name: &str, task: &Task<'_>, data: DataInfo) -> Result<Self> {
        Ok(Manifest {
            selvedge: VERSION.into(),
            name: name.into(),
            experiment: serde_json::to_value(task.experiment)?,
            cpu: Cpu {
                instructions: task.architecture.level().name().into(),
                available: Level::available()
                    .iter()
                    .map(|l| l.name().to_owned())
                    .collect(),
            },
            data,
            sizes: task.sizes(),
            timing: Timing {
                iterations: 0,
                seconds: 0.0,
            },
            ending: None,
        })
    }

    /// Reads the manifest of a run.
    pub(crate) fn read(run: &Path) -> Result<Self> {
        let path = run.join("manifest.json");
        if !path.is_file() {
            bail!(
                "{} is not a run directory: it has no manifest.json",
                run.display()
            );
        }
        let text = read_text(&path)?;
        let value: serde_json::Value = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        let version = value["selvedge"].as_str().unwrap_or("unknown").to_owned();
        serde_json::from_value(value).with_context(|| {
            format!(
                "{} is damaged, or of another version of selvedge: it says {version}, and this is {VERSION}",
                path.display()
            )
        })
    }

    /// Refuses the run of a version that may mean something else by the same names: one whose first two numbers differ.
    pub(crate) fn check_version(&self, run: &Path) -> Result<()> {
        let of = |version: &str| -> Vec<String> {
            version.split('.').take(2).map(str::to_owned).collect()
        };
        match of(&self.selvedge) == of(VERSION) {
            true => Ok(()),
            false => bail!(
                "{} was trained by selvedge {}, and this is {VERSION}: use that version, or train it again",
                run.display(),
                self.selvedge
            ),
        }
    }

    /// Its experiment; `run` is where the manifest was read from.
    pub(crate) fn experiment(&self, run: &Path) -> Result<Experiment> {
        SETS.from_json(&self.experiment).with_context(|| {
            format!(
                "{}: its experiment cannot be",
                run.join("manifest.json").display()
            )
        })
    }

    /// Writes it into a run directory.
    pub(crate) fn write(&self, run: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        write_whole(&run.join("manifest.json"), text.as_bytes())
    }
}

/// A run directory that is being written.
pub(crate) struct RunDirectory {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    metrics: Appended,
    trace: Option<Appended>,
    segments: Option<Appended>,
    /// Held so that no second process trains here.
    _lock: File,
}

/// A file that grows.
struct Appended {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
}

impl Appended {
    /// Opens a file and cuts it to `length`.
    fn open(path: PathBuf, length: u64) -> Result<Self> {
        let open = || -> std::io::Result<File> {
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)?;
            if file.metadata()?.len() < length {
                return Err(std::io::Error::other(format!(
                    "it has fewer than the {length} bytes that the checkpoint counted"
                )));
            }
            file.set_len(length)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Appended {
            file: BufWriter::new(file),
            path,
            length,
        })
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.length += line.len() as u64;
        self.file
            .write_all(&line)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .flush()
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let synced = self.file.get_ref().sync_data();
        synced.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// One line of `trace.jsonl`.
#[derive(Serialize)]
struct TraceLine<'a> {
    t: u64,
    group: usize,
    devices: &'a [u32],
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Vec<Vec<usize>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent_exchange: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent_upload: Vec<u32>,
}

fn checkpoint_path(run: &Path) -> PathBuf {
    run.join("checkpoint").join("state.safetensors")
}

fn lock(run: &Path) -> Result<File> {
    let path = run.join("checkpoint").join("lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(anyhow!(
            "another process is training in {}: wait for it or end it",
            run.display()
        )),
        Err(fs::TryLockError::Error(e)) => {
            Err(e).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Removes what processes that were killed while they made this directory have left.
fn remove_abandoned(parent: &Path, path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.partial-");
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let entry_name = entry.file_name();
        let process = entry_name.to_str().and_then(|n| n.strip_prefix(&prefix));
        let alive = |id: &str| !Path::new("/proc").is_dir() || Path::new("/proc").join(id).is_dir();
        if process.is_some_and(|id| id.parse::<u32>().is_ok() && !alive(id)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl RunDirectory {
    /// Makes the directory of a new run, with a checkpoint at t = 0.
    pub(crate) fn create(
        path: &Path,
        name: &str,
        (task, inputs): (&Task<'_>, &Inputs),
        state: &State,
        trace: bool,
    ) -> Result<Self> {
        if path.exists() {
            bail!(
                "{} is there already: choose another --out, or go on with it by --resume {}",
                path.display(),
                path.display()
            );
        }
        let manifest = Manifest::new(name, task)?;
        let parent = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(path.file_name().context("--out names no directory")?);
        hidden.push(format!(".partial-{}", std::process::id()));
        let partial = parent.join(&hidden);
        remove_abandoned(parent, path);
        let build = || -> Result<()> {
            fs::create_dir_all(partial.join("checkpoint"))
                .with_context(|| format!("cannot make {}", partial.display()))?;
            manifest.write(&partial)?;
            trained::write_inputs(&partial, inputs)?;
            weights::save(
                &partial.join("initial.safetensors"),
                &task.architecture,
                &state.theta,
            )?;
            let header = Header {
                fingerprint: fingerprint(&manifest),
                progress: state.progress.clone(),
                metrics_length: 0,
                trace_length: trace.then_some(0),
                segments_length: state.progress.controller.as_ref().map(|_| 0),
                real_seconds: 0.0,
            };
            checkpoint::save(&checkpoint_path(&partial), &header, state)?;
            fs::rename(&partial, path).with_context(|| format!("cannot make {}", path.display()))
        };
        build().inspect_err(|_| {
            let _ = fs::remove_dir_all(&partial);
        })?;
        let lock = lock(path)?;
        Ok(RunDirectory {
            metrics: Appended::open(path.join("metrics.jsonl"), 0)?,
            trace: trace
                .then(|| Appended::open(path.join("trace.jsonl"), 0))
                .transpose()?,
            segments: (state.progress.controller.is_some())
                .then(|| Appended::open(path.join("segments.jsonl"), 0))
                .transpose()?,
            path: path.into(),
            manifest,
            _lock: lock,
        })
    }

    /// Opens a run to go on with it, cutting off what the checkpoint does not know.
    pub(crate) fn resume(path: &Path, task: &Task<'_>) -> Result<(Self, State)> {
        let lock = lock(path)?;
        let mut manifest = Manifest::read(path)?;
        let data = task.given.fingerprint();
        if manifest.data.fingerprint != data {
            bail!(
                "{}: the data is not what the run began with (fingerprint {}, then {}): point --data-dir at the same files",
                path.display(),
                data,
                manifest.data.fingerprint
            );
        }
        let (header, state) = checkpoint::load(&checkpoint_path(path), task)?;
        if header.fingerprint != fingerprint(&manifest) {
            bail!(
                "{}: the checkpoint belongs to another experiment than the manifest",
                path.display()
            );
        }
        manifest.timing = Timing {
            iterations: state.progress.t,
            seconds: header.real_seconds,
        };
        manifest.cpu.instructions = task.architecture.level().name().into();
        let open = |name: &str, length: Option<u64>| {
            length
                .map(|length| Appended::open(path.join(name), length))
                .transpose()
        };
        let run = RunDirectory {
            metrics: Appended::open(path.join("metrics.jsonl"), header.metrics_length)?,
            trace: open("trace.jsonl", header.trace_length)?,
            segments: open("segments.jsonl", header.segments_length)?,
            path: path.into(),
            manifest,
            _lock: lock,
        };
        Ok((run, state))
    }

    /// Notes what an interval brought.
    pub(crate) fn record(&mut self, task: &Task<'_>, interval: &Interval<'_>) -> Result<()> {
        if let Some(evaluation) = interval.evaluation {
            self.metrics.line(evaluation)?;
            // So that whoever follows the file sees it now.
            self.metrics.flush()?;
        }
        if let (Some(segments), Some(change)) = (&mut self.segments, interval.change()) {
            segments.line(change)?;
            segments.flush()?;
        }
        let progress = &interval.state.progress;
        let Some(trace) = self.trace.as_mut().filter(|_| progress.t > 0) else {
            return Ok(());
        };
        let several = task.experiment.data.samples_per_device > 1;
        for (m, group) in interval.groups.iter().enumerate() {
            let data = &task.dataset.groups[m];
            let missing = |there: &[bool]| {
                group
                    .subset
                    .iter()
                    .zip(there)
                    .filter(|(_, there)| !**there)
                    .map(|(n, _)| *n)
                    .collect()
            };
            trace.line(&TraceLine {
                t: group.drawn,
                group: m,
                devices: &group.subset,
                samples: several.then(|| {
                    group
                        .subset
                        .iter()
                        .map(|n| data.rows(*n).collect())
                        .collect()
                }),
                absent_exchange: missing(&group.exchanged),
                absent_upload: missing(&group.uploaded),
            })?;
        }
        Ok(())
    }

    /// Saves the run as it is, so that it can be resumed from here.
    pub(crate) fn save(&mut self, state: &State, real_seconds: f64) -> Result<()> {
        self.metrics.sync()?;
        for file in [&mut self.trace, &mut self.segments].into_iter().flatten() {
            file.sync()?;
        }
        let header = Header {
            fingerprint: fingerprint(&self.manifest),
            progress: state.progress.clone(),
            metrics_length: self.metrics.length,
            trace_length: self.trace.as_ref().map(|t| t.length),
            segments_length: self.segments.as_ref().map(|s| s.length),
            real_seconds,
        };
        self.write_ledger(state)?;
        checkpoint::save(&checkpoint_path(&self.path), &header, state)
    }

    /// Writes the result: the model, the best one, and how it ended.
    pub(crate) fn finish(
        &mut self,
        task: &Task<'_>,
        state: &State,
        ending: &Ending,
        real_seconds: f64,
    ) -> Result<()> {
        if !matches!(ending, Ending::Interrupted) {
            weights::save(
                &self.path.join("model.safetensors"),
                &task.architecture,
                &state.theta,
            )?;
            if let Some(best) = &state.best {
                weights::save(
                    &self.path.join("best.safetensors"),
                    &task.architecture,
                    best,
                )?;
            }
            trained::write_validation(
                &self.path,
                task.networks(),
                [Some(&state.theta), state.best.as_ref()],
                &task.given.validation,
            )?;
        }
        self.write_ledger(state)?;
        self.manifest.timing = Timing {
            iterations: state.progress.t,
            seconds: real_seconds,
        };
        self.manifest.ending = Some(EndingInfo::new(ending, state.progress.t));
        self.manifest.write(&self.path)
    }

    fn write_ledger(&self, state: &State) -> Result<()> {
        write_ledger(&self.path, &state.progress.ledger)
    }
}

/// Writes `ledger.csv` of a run.
pub(crate) fn write_ledger(run: &Path, ledger: &Ledger) -> Result<()> {
    let mut text = String::from("link,kind,direction,messages,bytes\n");
    for e in ledger.entries() {
        let (link, kind, direction) = (e.link.name(), e.kind.name(), e.direction.name());
        text += &format!("{link},{kind},{direction},{},{}\n", e.messages, e.bytes);
    }
    write_whole(&run.join("ledger.csv"), text.as_bytes())
}

/// How many samples of a group each class has.
fn label_counts(dataset: &Dataset, group: &Group) -> Vec<u64> {
    let mut counts = vec![0; dataset.classes.len()];
    for y in &group.samples.y {
        counts[*y as usize] += 1;
    }
    counts
}

/// Ties a checkpoint to its experiment and data.
fn fingerprint(manifest: &Manifest) -> String {
    let text = format!("{} {}", manifest.experiment, manifest.data.fingerprint);
    selvedge_nn::random::Key::new(0)
        .with_all(text.bytes().map(u64::from))
        .hex()
}
