//! `manifest.json`: what a run is.

use crate::error::{Context, Result, bail};
use crate::extending::Extension;
use crate::files::{MANIFEST, check_readable, is_run, read_json, write_json};
use crate::format::{bytes, count, seconds};
use selvedge_core::dataset::{Dataset, Group};
use selvedge_core::experiment::Experiment;
use selvedge_core::fingerprint::{Fingerprint, was_mixed};
use selvedge_core::metrics::Metric;
use selvedge_core::objective::SOFTMAX;
use selvedge_core::outcome::Kind;
use selvedge_core::positive::Positive;
use selvedge_core::run::Ending;
use selvedge_core::task::{Sizes, Task};
use selvedge_data::SETS;
use selvedge_nn::random::Key;
use selvedge_nn::simd::Level;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The format of run directories. It changes when an older selvedge could not read one any more, or would read
/// something else.
pub const FORMAT: u32 = 1;

fn first_format() -> u32 {
    1
}

fn softmax() -> String {
    SOFTMAX.into()
}

fn is_softmax(name: &str) -> bool {
    name == SOFTMAX
}

/// Everything about a run that is not measured while it trains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of selvedge that wrote it.
    pub selvedge: String,
    /// The format of the run directory; the first did not say it.
    #[serde(default = "first_format")]
    pub format: u32,
    /// What the experiment is called.
    pub name: String,
    /// What its models have learnt to say ([`Objective::name`](selvedge_core::objective::Objective::name)).
    #[serde(default = "softmax", skip_serializing_if = "is_softmax")]
    pub objective: String,
    /// Whether a program has set [seams](crate::Training::seams) of its own, of which the experiment knows nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_seams: bool,
    /// The experiment with every key.
    pub experiment: serde_json::Value,
    /// What it was computed on.
    pub cpu: Cpu,
    /// What it learns from.
    pub data: DataInfo,
    /// How large everything is.
    pub sizes: Sizes,
    /// Real time of training.
    pub timing: Timing,
    /// How it ended, once it has.
    pub ending: Option<EndingInfo>,
    /// Each time that it was given more than it began with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<Extension>,
    /// The iteration of its best model, once it has ended; runs of 0.2 do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<u64>,
    /// SHA-256 of its files by name: of those that do not change any more. Runs of 0.2 do not say any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// What the run was computed on; it changes no result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cpu {
    /// The instructions that were used.
    pub instructions: String,
    /// Those that it has.
    pub available: Vec<String>,
}

/// What a run learns from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DataInfo {
    /// Other data has another one.
    pub fingerprint: String,
    /// The kind of outcome.
    #[serde(default, skip_serializing_if = "Kind::is_class")]
    pub outcome: Kind,
    /// The names of the classes or labels, or that of the quantity or of the event.
    pub classes: Vec<String>,
    /// Samples of all groups.
    pub training_samples: usize,
    /// Samples that choose the best model.
    pub validation_samples: usize,
    /// Samples that count.
    pub test_samples: usize,
    /// The names of the groups; runs of earlier builds have none.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Of each group, how many training samples each class has; or have no and yes for each label.
    #[serde(default)]
    pub labels: Vec<Vec<u64>>,
    /// The positive class, if there is one; runs of 0.2 do not say it ([`Manifest::positive`] finds it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<Positive>,
}

impl DataInfo {
    /// Training samples of each class; none where nobody may know.
    fn class_counts(&self) -> Vec<u64> {
        let add = |mut sums: Vec<u64>, group: &Vec<u64>| {
            sums.resize(group.len(), 0);
            sums.iter_mut().zip(group).for_each(|(sum, n)| *sum += n);
            sums
        };
        self.labels.iter().fold(Vec::new(), add)
    }
}

/// Real time of training, evaluation included.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// How far it has come.
    pub iterations: u64,
    /// In so many seconds.
    pub seconds: f64,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndingInfo {
    /// `finished`, `reached`, `interrupted` or `diverged`.
    pub kind: String,
    /// At this iteration.
    pub t: u64,
    /// The key of what was reached, or of what to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The samples that a reached target was judged on: `training`, `validation` or `test`. Runs of 0.2 do not say it:
    /// theirs were judged on the test samples, but for the loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

impl EndingInfo {
    pub(crate) fn new(ending: &Ending, t: u64, data: &DataInfo) -> Self {
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
        let on = match ending {
            Ending::Reached {
                key: "stop.patience",
                ..
            } => Some("validation".into()),
            Ending::Reached { key, .. } => {
                let is_it = |m: &&Metric| m.stop.is_some_and(|stop| stop.path == *key);
                let metric = Metric::targets().find(is_it);
                metric.map(|metric| metric.judged_on(data.validation_samples > 0).to_owned())
            }
            _ => None,
        };
        EndingInfo {
            kind: kind.into(),
            t,
            key,
            value,
            on,
        }
    }

    /// `stop.auc reached at 0.9012 on the validation samples`; nothing if nothing was reached.
    pub fn reached(&self) -> Option<String> {
        let (Some(key), Some(value), "reached") = (&self.key, self.value, self.kind.as_str())
        else {
            return None;
        };
        let value = match key.as_str() {
            "stop.bytes" => bytes(value),
            "stop.seconds" => seconds(value),
            "stop.patience" => {
                let waited = count(value as u64);
                return Some(format!(
                    "{key}: no better model on the validation samples for {waited} iterations"
                ));
            }
            _ => format!("{value:.4}"),
        };
        Some(format!("{key} reached at {value}{}", self.judged()))
    }

    /// ` on the validation samples`, where it says so.
    pub fn judged(&self) -> String {
        let on = self.on.as_ref();
        on.map_or(String::new(), |on| format!(" on the {on} samples"))
    }
}

impl Manifest {
    /// The manifest of a run on data of which everything is known.
    pub(crate) fn new(name: &str, task: &Task<'_>) -> Result<Self> {
        let dataset = task.given;
        let labels = dataset.groups.iter().map(|g| label_counts(dataset, g));
        let data = DataInfo {
            fingerprint: dataset.fingerprint(),
            outcome: dataset.outcome.kind(),
            classes: dataset.classes.clone(),
            training_samples: dataset.training_samples(),
            validation_samples: dataset.validation.len(),
            test_samples: dataset.test.len(),
            groups: dataset.groups.iter().map(|g| g.name.clone()).collect(),
            labels: labels.collect(),
            positive: None,
        };
        Self::on_data(name, task, data)
    }

    /// The manifest of a run on data of which only so much is known.
    pub(crate) fn on_data(name: &str, task: &Task<'_>, mut data: DataInfo) -> Result<Self> {
        if data.outcome.is_class() {
            data.positive = Positive::of(task.experiment, &data.classes, &data.class_counts());
        }
        Ok(Manifest {
            selvedge: VERSION.into(),
            format: FORMAT,
            name: name.into(),
            objective: task.objective.name().into(),
            own_seams: false,
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
            extended: Vec::new(),
            best: None,
            files: BTreeMap::new(),
        })
    }

    /// Reads the manifest of a run.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(MANIFEST);
        if !is_run(run) {
            check_readable(&path)?;
            if !run.exists() {
                bail!(
                    "{} is not a run directory: there is no such folder",
                    run.display()
                );
            }
            bail!(
                "{} is not a run directory: it has no {MANIFEST}",
                run.display()
            );
        }
        let value: serde_json::Value = read_json(&path)?;
        let version = value["selvedge"].as_str().unwrap_or("unknown").to_owned();
        let format = value["format"].as_u64().unwrap_or(1);
        if format > u64::from(FORMAT) {
            bail!(
                "{} is a run directory of format {format}, written by selvedge {version}: this is selvedge {VERSION}, which reads format {FORMAT}; upgrade it",
                run.display()
            );
        }
        serde_json::from_value(value).with_context(|| {
            format!(
                "{} is damaged, or of another version of selvedge: it says {version}, and this is {VERSION}",
                path.display()
            )
        })
    }

    /// Its experiment; `run` is where the manifest was read from.
    ///
    /// # Errors
    /// If it is none.
    pub fn experiment(&self, run: &Path) -> Result<Experiment> {
        SETS.from_json(&self.experiment).with_context(|| {
            let path = run.join(MANIFEST);
            let versions = match self.selvedge == VERSION {
                true => String::new(),
                false => format!(
                    " for selvedge {VERSION}, having been written by {}",
                    self.selvedge
                ),
            };
            format!("{}: its experiment is invalid{versions}", path.display())
        })
    }

    /// The class that sensitivity and the like are about: as the run says or, in one of 0.2, as it would say.
    pub fn positive(&self) -> Option<Positive> {
        let found = || {
            let experiment = SETS.from_json(&self.experiment).ok()?;
            Positive::of(&experiment, &self.data.classes, &self.data.class_counts())
        };
        self.data
            .positive
            .clone()
            .or_else(|| self.data.outcome.is_class().then(found).flatten())
    }

    /// Writes it into a run directory.
    pub(crate) fn write(&self, run: &Path) -> Result<()> {
        write_json(&run.join(MANIFEST), self)
    }

    /// How it ended, at which iteration and after how much real time.
    pub(crate) fn end(&mut self, ending: &Ending, t: u64, seconds: f64) {
        self.ending = Some(EndingInfo::new(ending, t, &self.data));
        self.timing = Timing {
            iterations: t,
            seconds,
        };
    }

    /// Ties a checkpoint to its experiment and data.
    pub(crate) fn fingerprint(&self) -> String {
        Fingerprint::of("experiment and data")
            .text(&self.experiment.to_string())
            .text(&self.data.fingerprint)
            .hex()
    }

    /// Whether a checkpoint with this fingerprint is of its experiment and data.
    pub(crate) fn has_fingerprint(&self, stated: &str) -> bool {
        // As 0.2 and earlier stated it.
        let mixed = || {
            let text = format!("{} {}", self.experiment, self.data.fingerprint);
            Key::new(0).with_all(text.bytes().map(u64::from)).hex()
        };
        match was_mixed(stated) {
            true => mixed() == stated,
            false => self.fingerprint() == stated,
        }
    }
}

/// How often each answer is among the samples of a group.
fn label_counts(dataset: &Dataset, group: &Group) -> Vec<u64> {
    let mut counts = vec![0; dataset.outcome.counts(&dataset.classes)];
    dataset.outcome.count(&group.samples.y, &mut counts);
    counts
}
