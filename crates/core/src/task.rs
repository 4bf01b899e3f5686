//! Everything a run needs and nothing it changes: experiment, data, networks, who is drawn and who is absent.

use crate::absence::{Absences, Nobody};
use crate::aggregate::{Aggregations, Gatherer};
use crate::attack::Attack;
use crate::cost::DeviceCost;
use crate::dataset::Dataset;
use crate::experiment::{Adaptive, Algorithm, DataSettings, Experiment, LossName, TrainSettings};
use crate::keys::{Purpose, key};
use crate::ledger::WORD;
use crate::local_steps::{Descent, Steps};
use crate::message_path::Compression;
use crate::metrics::{Metric, Tally, Validation};
use crate::model::{Architecture, ArchitectureError, Widths};
use crate::objective::{Objective, objective_of};
use crate::optimiser::{Mover, Optimiser, Optimisers, Sgd};
use crate::outcome::{Kind, Outcome, Targets};
use crate::schedule::{Schedule, Segment};
use crate::selection::{Draw, Selection, Uniform, subset_size};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A training task.
pub struct Task<'a> {
    /// The experiment, resolved.
    pub experiment: &'a Experiment,
    /// Its data, split.
    pub given: &'a Dataset,
    /// The groups that train: those of the data, or all of them merged into one.
    pub dataset: Cow<'a, Dataset>,
    /// Its networks.
    pub architecture: Architecture,
    /// What they learn.
    pub objective: Box<dyn Objective>,
    /// How gradients become steps.
    pub optimisers: Optimisers,
    /// How models are aggregated.
    pub aggregation: Aggregations,
    /// The codecs of messages.
    pub compression: Compression,
    /// |A_m| of each group.
    pub selected: Vec<usize>,
    /// How devices are drawn.
    pub selection: Box<dyn Selection>,
    /// Who is absent; only hsgd and c-hsgd use it.
    pub absences: Box<dyn Absences>,
    /// Hostile parties, in simulation.
    pub attack: Option<Attack>,
    /// Whether what arrives is checked. Who replays a deployment has its decisions, and does not decide again.
    pub judges: bool,
    /// Seconds since any fixed moment, for `time.compute = "measured"`.
    pub stopwatch: Option<fn() -> f64>,
    /// Rows of each group over which the training loss is computed; without a list, all of them.
    pub loss_rows: Option<Vec<Vec<u32>>>,
}

/// The sizes of a run, as its manifest shows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// n0, n1, n2, d1, d2.
    #[serde(flatten)]
    pub widths: Widths,
    /// M
    pub groups: usize,
    /// K_m of each group.
    pub devices: Vec<usize>,
    /// |A_m| of each group that trains; one where an algorithm merges all.
    pub selected: Vec<usize>,
    /// The weight of each class in the loss.
    pub class_weights: Vec<f32>,
    /// Training samples over which `loss_train` is computed.
    pub loss_samples: usize,
    /// What an iteration costs the device with the most samples.
    #[serde(default)]
    pub cost: DeviceCost,
}

/// Why a task is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The networks do not fit the data.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// The class weights do not fit the classes.
    #[error(
        "train.class_weights lists {listed} factors, but the data has {classes} classes or labels: list {classes}"
    )]
    ClassWeights {
        /// How many are listed.
        listed: usize,
        /// How many there must be.
        classes: usize,
    },
    /// An invalid class weight.
    #[error(
        "train.class_weights = {weights:?}: expected factors of 0 or more, at least one above 0"
    )]
    ClassWeightValue {
        /// What is listed.
        weights: Vec<f32>,
    },
    /// An invalid codec.
    #[error("{problem}")]
    Compression {
        /// The key and what would be right.
        problem: String,
    },
    /// A target that cannot be reached.
    #[error(
        "{key} is a target on validation or test samples, but there are none: set data.validation or data.test above 0"
    )]
    NoTest {
        /// The target.
        key: &'static str,
    },
    /// Patience without anything to wait for.
    #[error(
        "stop.patience waits for a better score on the validation samples, but there are none: set data.validation above 0"
    )]
    NoValidation,
    /// A target that is not defined where it is judged.
    #[error(
        "{key} cannot be reached: {why}, and so it is not defined; hold out more samples, or use stop.loss{or}"
    )]
    Undefined {
        /// The target.
        key: &'static str,
        /// What is missing.
        why: String,
        /// What else can be a target.
        or: &'static str,
    },
    /// A target for another kind of outcome.
    #[error("{key} is not measured of {kind}: use {right}")]
    NotMeasured {
        /// The target.
        key: &'static str,
        /// The kind of outcome.
        kind: &'static str,
        /// The targets that are.
        right: String,
    },
    /// A setting of another kind of outcome.
    #[error("{key} is for {of}, but the outcome is {kind}: leave it out")]
    OtherOutcome {
        /// The key.
        key: &'static str,
        /// What it is for.
        of: &'static str,
        /// The kind of outcome.
        kind: &'static str,
    },
    /// A setting of another loss.
    #[error("{key} is for train.loss = \"{of}\", but it is \"{loss}\": leave it out")]
    OtherLoss {
        /// The key.
        key: &'static str,
        /// The loss that has it.
        of: &'static str,
        /// The loss.
        loss: &'static str,
    },
    /// Weights of what has none.
    #[error("train.class_weights is for classes and labels: leave it out")]
    Unweighted,
    /// Label counts that do not fit the data.
    #[error("{counted} label counts, but the data needs {wanted}: give one count for each answer")]
    LabelCounts {
        /// How many were given.
        counted: usize,
        /// How many there must be.
        wanted: usize,
    },
    /// There is nobody to train.
    #[error("the data has no groups: give it at least one")]
    NoGroups,
    /// Data that is inconsistent with its description.
    #[error("{part}: {problem}")]
    Samples {
        /// Where.
        part: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// An objective for another network.
    #[error("the objective needs {wanted} logits, but the combined model outputs {given}")]
    Logits {
        /// How many the objective wants.
        wanted: usize,
        /// How many there are.
        given: usize,
    },
    /// An optimiser that steering cannot judge.
    #[error(
        "train.adaptive needs plain gradient descent, but hospitals use another optimiser: set it to \"off\""
    )]
    Steered,
    /// A group without devices.
    #[error("group {group} (`{name}`) has no devices: give every group at least one")]
    EmptyGroup {
        /// Its number.
        group: usize,
        /// Its name.
        name: String,
    },
    /// A device without samples.
    #[error("device {device} of group {group} (`{name}`) has no samples: leave such devices out")]
    EmptyDevice {
        /// The group's number.
        group: usize,
        /// The group's name.
        name: String,
        /// The device's number.
        device: usize,
    },
}

impl<'a> Task<'a> {
    /// The task of an experiment: nobody is absent, and devices are drawn as the experiment states.
    ///
    /// # Errors
    /// If the data is inconsistent, the networks or the class weights do not fit it, or a group is empty.
    pub fn new(experiment: &'a Experiment, dataset: &'a Dataset) -> Result<Self, TaskError> {
        let held_out = [dataset.validation.len(), dataset.test.len()];
        check_targets(experiment, held_out)?;
        if let Some((part, problem)) = dataset.problem() {
            return Err(TaskError::Samples { part, problem });
        }
        let task = Self::of_party(experiment, dataset, &dataset.label_counts())?;
        check_defined(experiment, dataset, &*task.objective)?;
        Ok(task)
    }

    /// The same task as one party of a deployment sees it. Of its own group `dataset` has the true offsets and this
    /// party's columns, of others only sizes ([`Group::hollow`](crate::dataset::Group::hollow)); held-out rows may be
    /// elsewhere. `labels` are the counts of each class over the training rows of all groups.
    ///
    /// # Errors
    /// If the networks, the class weights or the counts do not fit the data, or a group is empty.
    pub fn of_party(
        experiment: &'a Experiment,
        dataset: &'a Dataset,
        labels: &[u64],
    ) -> Result<Self, TaskError> {
        if dataset.groups.is_empty() {
            return Err(TaskError::NoGroups);
        }
        for (group, data) in dataset.groups.iter().enumerate() {
            let name = || data.name.clone();
            if data.devices() == 0 {
                return Err(TaskError::EmptyGroup {
                    group,
                    name: name(),
                });
            }
            let empty = (0..data.devices()).find(|n| data.rows(*n as u32).is_empty());
            if let Some(device) = empty {
                return Err(TaskError::EmptyDevice {
                    group,
                    name: name(),
                    device,
                });
            }
        }
        let (outcome, names) = (&dataset.outcome, &dataset.classes);
        let wanted = outcome.counts(names);
        if labels.len() != wanted {
            return Err(TaskError::LabelCounts {
                counted: labels.len(),
                wanted,
            });
        }
        check_metrics(experiment, outcome.kind())?;
        check_outcome(experiment, outcome.kind())?;
        let train = &experiment.train;
        let mut architecture = Architecture::new(
            &experiment.model,
            dataset.hospital,
            dataset.device,
            (outcome.kind(), outcome.outputs(names)),
        )?;
        architecture.blind_to = train.algorithm.blind_to();
        let given = dataset;
        let dataset = match train.algorithm.merges_groups() {
            true => Cow::Owned(given.merged()),
            false => Cow::Borrowed(given),
        };
        let sizes = dataset
            .groups
            .iter()
            .map(|g| subset_size(train.participation, g.devices()));
        Ok(Task {
            objective: objective_of(train, outcome, names, labels)?,
            optimisers: Optimisers::new(&experiment.optimiser),
            aggregation: Aggregations::new(&experiment.defence),
            attack: Attack::new(experiment.seed, &experiment.attack, given),
            judges: true,
            compression: match train.algorithm.compresses() {
                true => Compression::new(&experiment.compression)
                    .map_err(|(_, problem)| TaskError::Compression { problem })?,
                false => Compression::NONE,
            },
            selected: sizes.collect(),
            selection: Box::new(Uniform),
            absences: Box::new(Nobody),
            stopwatch: None,
            loss_rows: loss_rows(experiment, given),
            experiment,
            given,
            dataset,
            architecture,
        })
    }

    /// Refuses seams that do not fit each other.
    ///
    /// # Errors
    /// The seams that do not fit.
    pub fn check_seams(&self) -> Result<(), TaskError> {
        let (wanted, given) = (self.objective.logits(), self.architecture.combined.output());
        if wanted != given.len() {
            let given = given.len();
            return Err(TaskError::Logits { wanted, given });
        }
        let adaptive = self.experiment.train.adaptive;
        if adaptive != Adaptive::Off && !self.optimisers.hospital.is_plain() {
            return Err(TaskError::Steered);
        }
        Ok(())
    }

    /// Its networks and its objective.
    pub fn networks(&self) -> (&Architecture, &dyn Objective) {
        (&self.architecture, &*self.objective)
    }

    /// The learning rates of devices.
    pub fn schedule(&self) -> Schedule {
        Schedule::of(&self.experiment.train)
    }

    /// How a hospital steps from batch to batch.
    pub(crate) fn hospital_descent(&self) -> Descent<'_> {
        Descent {
            optimiser: &*self.optimisers.hospital,
            ..self.pair_descent()
        }
    }

    /// How a hospital steps for one pair of JFL: it remembers nothing.
    pub(crate) fn pair_descent(&self) -> Descent<'_> {
        let own = &self.experiment.optimiser;
        Descent {
            schedule: self.schedule().from(own.hospital_rate()),
            clip: own.hospital_clip,
            ..self.device_descent()
        }
    }

    /// How a device steps: it remembers nothing.
    pub(crate) fn device_descent(&self) -> Descent<'_> {
        let train = &self.experiment.train;
        Descent {
            objective: &*self.objective,
            optimiser: &Sgd,
            schedule: self.schedule(),
            weight_decay: train.weight_decay as f32,
            combined_weight_decay: train.combined_weight_decay as f32,
            clip: self.experiment.optimiser.device_clip,
        }
    }

    /// How an edge moves to the aggregate of what its devices' steps led to.
    pub(crate) fn edge_mover(&self, steps: Steps) -> Mover<'_> {
        let rate = self.experiment.optimiser.edge_rate();
        self.mover(&*self.optimisers.edge, rate, steps.share(self.schedule()))
    }

    /// How the cloud moves to the aggregate of the groups' models at `t`.
    pub(crate) fn cloud_mover(&self, segment: &Segment, t: u64) -> Mover<'_> {
        let rate = self.experiment.optimiser.cloud_rate();
        let left = self.schedule().share(segment, t - 1);
        self.mover(&*self.optimisers.cloud, rate, left)
    }

    fn mover<'b>(&'b self, optimiser: &'b dyn Optimiser, rate: f64, left: f64) -> Mover<'b> {
        Mover {
            optimiser,
            rate: (rate, left),
            level: self.architecture.level(),
        }
    }

    /// Who is absent, for the algorithms that can be deployed; nobody is in the others.
    pub(crate) fn absent(&self) -> &dyn Absences {
        match self.experiment.train.algorithm {
            Algorithm::Hsgd | Algorithm::CHsgd => &*self.absences,
            _ => &Nobody,
        }
    }

    /// How much longer than usual may be what arrives, if it is judged at all; 0: any length.
    pub(crate) fn limit(&self, of: f64) -> Option<f64> {
        self.judges.then_some(of)
    }

    /// How an edge makes one model of those of its devices.
    pub(crate) fn gatherer(&self) -> Gatherer<'_> {
        Gatherer {
            rule: &*self.aggregation.edge,
            level: self.architecture.level(),
            limit: self.experiment.defence.device_limit,
            judges: self.judges,
        }
    }

    /// Whether hospitals and edges keep the last aggregated θ.
    pub(crate) fn groups_keep_theta(&self) -> bool {
        self.compression.groups_keep_theta() || self.experiment.defence.download > 0.0
    }

    /// Whether a device is not there.
    pub(crate) fn is_absent(&self, t: u64, group: usize, device: u32) -> bool {
        let keeps_away = |attack: &Attack| attack.keeps_away(t, group, device);
        self.absent().exchange(t, group, device) || self.attack.as_ref().is_some_and(keeps_away)
    }

    /// Whether a group is not there.
    pub(crate) fn is_group_absent(&self, t: u64, group: usize) -> bool {
        let keeps_away = |attack: &Attack| attack.group_keeps_away(t, group);
        self.absent().group(t, group) || self.attack.as_ref().is_some_and(keeps_away)
    }

    /// What a device learns from: features and labels of its group.
    pub(crate) fn lessons(&self, t: u64, group: usize, device: u32) -> (&[f32], &Targets) {
        let samples = &self.dataset.groups[group].samples;
        let lies = self
            .attack
            .as_ref()
            .and_then(|attack| attack.lessons(t, group, device));
        lies.unwrap_or((&samples.x2, &samples.y))
    }

    /// The labels that a hospital learns.
    pub(crate) fn labels(&self, t: u64, group: usize) -> &Targets {
        let lies = self
            .attack
            .as_ref()
            .and_then(|attack| attack.labels(t, group));
        lies.unwrap_or(&self.dataset.groups[group].samples.y)
    }

    /// S: bytes of raw data, for algorithms that move it.
    pub fn raw_bytes(&self) -> u64 {
        let sample = self.given.hospital.len() + self.given.device.len() + 1;
        let all = WORD * (sample * self.given.training_samples()) as u64;
        self.experiment.train.raw_bytes.unwrap_or(all)
    }

    /// The sizes, for the manifest.
    pub fn sizes(&self) -> Sizes {
        let all = self.given.training_samples();
        Sizes {
            widths: self.architecture.widths(),
            groups: self.given.groups.len(),
            devices: self.given.groups.iter().map(|g| g.devices()).collect(),
            selected: self.selected.clone(),
            class_weights: self.objective.class_weights().to_vec(),
            loss_samples: self
                .loss_rows
                .as_ref()
                .map_or(all, |rows| rows.iter().map(Vec::len).sum()),
            cost: DeviceCost::of(
                &self.architecture,
                self.dataset.most_samples_of_a_device(),
                self.experiment.train.algorithm,
            ),
        }
    }

    /// About how many numbers a run keeps besides its data: the groups' models, and what a few groups at work need.
    pub fn numbers(&self) -> u128 {
        let Widths { n0, n1, n2, d1, d2 } = self.architecture.widths();
        let model = (n0 + n1 + n2) as u128;
        let tapes = (self.architecture.hospital.tape() + self.architecture.device.tape()) as u128;
        let groups = self.selected.len() as u128;
        let selected = self.selected.iter().map(|s| *s as u128).max().unwrap_or(0);
        // A wave of JFL holds whole models.
        let held = match self.aggregation.edge.streams() {
            true => 0,
            false => selected * model * groups.min(rayon::current_num_threads() as u128),
        };
        let memories = self
            .optimisers
            .remembered(self.architecture.widths(), groups);
        (groups + 64) * model + 64 * tapes + selected * (d1 + d2) as u128 + held + memories
    }

    /// The first segment. A steered run begins with P = Q, by strategy 1.
    pub fn segment(&self) -> Segment {
        Segment::first(&self.experiment.train)
    }
}

/// Refuses a target on held-out samples, of validation and of test, if there are none.
///
/// # Errors
/// The target's key.
pub fn check_targets(experiment: &Experiment, held_out: [usize; 2]) -> Result<(), TaskError> {
    if experiment.stop.patience.is_some() && held_out[0] == 0 {
        return Err(TaskError::NoValidation);
    }
    let mut targets = experiment.stop.targets().map(|(metric, _)| metric);
    let tested = targets.find(|metric| metric.tested && held_out == [0, 0]);
    match tested.and_then(|metric| metric.stop) {
        Some(key) => Err(TaskError::NoTest { key: key.path }),
        None => Ok(()),
    }
}

/// Refuses a target that is not measured of a kind of outcome.
fn check_metrics(experiment: &Experiment, kind: Kind) -> Result<(), TaskError> {
    let mut targets = experiment.stop.targets().map(|(metric, _)| metric);
    targets.try_for_each(|metric| check_measured(metric, kind, |m| Some(m.stop?.path)))
}

/// Refuses a target that is not measured of a kind of outcome; `name` is what targets are called there.
///
/// # Errors
/// If it is not.
pub fn check_measured(
    metric: &Metric,
    kind: Kind,
    name: fn(&Metric) -> Option<&'static str>,
) -> Result<(), TaskError> {
    let Some(key) = name(metric).filter(|_| !metric.is_of(kind)) else {
        return Ok(());
    };
    let right = Metric::of_kind(kind).filter_map(name);
    Err(TaskError::NotMeasured {
        key,
        kind: in_words(kind),
        right: right.collect::<Vec<_>>().join(", "),
    })
}

/// Refuses settings that would have no effect, since they are about another kind of outcome, or another loss.
fn check_outcome(experiment: &Experiment, kind: Kind) -> Result<(), TaskError> {
    let (train, data) = (&experiment.train, &experiment.data);
    let (usual, losses) = (DataSettings::default(), TrainSettings::default());
    let (huber, quantile) = (LossName::Huber, LossName::Quantile);
    let (quantity, survival) = (Kind::Quantity, Kind::Survival);
    let set = [
        ("train.loss", quantity, None, train.loss != losses.loss),
        (
            "train.huber",
            quantity,
            Some(huber),
            train.huber != losses.huber,
        ),
        (
            "train.quantile",
            quantity,
            Some(quantile),
            train.quantile != losses.quantile,
        ),
        (
            "data.intervals",
            survival,
            None,
            data.intervals != usual.intervals,
        ),
        ("data.horizon", survival, None, data.horizon.is_some()),
    ];
    for (key, of, loss, _) in set.into_iter().filter(|(.., is_set)| *is_set) {
        if of != kind {
            return Err(TaskError::OtherOutcome {
                key,
                of: in_words(of),
                kind: kind.name(),
            });
        }
        if let Some(of) = loss.filter(|of| *of != train.loss) {
            return Err(TaskError::OtherLoss {
                key,
                of: of.name(),
                loss: train.loss.name(),
            });
        }
    }
    Ok(())
}

/// A kind of outcome in a sentence.
fn in_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Class => "classes",
        Kind::Labels => "labels",
        Kind::Quantity => "a quantity",
        Kind::Survival => "survival",
    }
}

/// Refuses a target that is not defined on the samples it is judged on, since a class has none there, or all are alike.
fn check_defined(
    experiment: &Experiment,
    dataset: &Dataset,
    objective: &dyn Objective,
) -> Result<(), TaskError> {
    let (part, samples) = match dataset.validation.is_empty() {
        true => ("test", &dataset.test),
        false => ("validation", &dataset.validation),
    };
    let names = &dataset.classes;
    let mut tally = Tally::new(objective.layout());
    // Whatever is said of them.
    let said = vec![0.5; samples.len() * objective.logits()];
    objective.count(&mut tally, &said, &samples.y);
    let found = Validation::new(0.0, &objective.metrics(&tally));
    let is_defined = |metric: &Metric| {
        metric
            .on_validation
            .is_none_or(|read| read(&found).is_some())
    };
    let mut targets = experiment.stop.targets().map(|(metric, _)| metric);
    let undefined = targets.find(|metric| metric.tested && !is_defined(metric));
    let Some(key) = undefined.and_then(|metric| metric.stop) else {
        return Ok(());
    };
    let mut counts = vec![0; dataset.outcome.counts(names)];
    dataset.outcome.count(&samples.y, &mut counts);
    let lacks = |place: &usize| counts[*place] == 0;
    let (why, or) = match dataset.outcome {
        Outcome::Class => {
            let lacking = (0..names.len()).find(lacks).unwrap_or_default();
            let label = &names[lacking];
            let why = format!("no {part} samples have the label {label:?}");
            (why, " or stop.accuracy")
        }
        Outcome::Labels => {
            let answer = (0..counts.len()).find(lacks).unwrap_or_default();
            let (label, yes) = (&names[answer / 2], ["without", "with"][answer % 2]);
            let why = format!("no {part} samples are known to be {yes} the label {label:?}");
            (why, " or stop.accuracy")
        }
        Outcome::Quantity { .. } => {
            let why = format!("all {part} samples have the same value");
            (why, " or stop.mae")
        }
        Outcome::Survival { .. } => {
            let why = format!(
                "of no two {part} samples it is known who had the event in an earlier interval"
            );
            (why, "")
        }
    };
    Err(TaskError::Undefined {
        key: key.path,
        why,
        or,
    })
}

/// A fixed keyed sample of the training rows, shared out over the groups by their size.
fn loss_rows(experiment: &Experiment, dataset: &Dataset) -> Option<Vec<Vec<u32>>> {
    let (wanted, all) = (experiment.train.loss_samples, dataset.training_samples());
    if wanted == 0 || wanted >= all {
        return None;
    }
    // Each group's share ends where its rows do, rounded: so the shares add up to what is wanted.
    let end = |rows: usize| (rows as u128 * wanted as u128 / all as u128) as usize;
    let mut before = 0;
    let rows = dataset.groups.iter().enumerate().map(|(group, data)| {
        let rows = data.row_count();
        let count = end(before + rows) - end(before);
        before += rows;
        let key = key(experiment.seed, Purpose::LossSample).with(group as u64);
        let mut sample = Vec::new();
        Uniform.select(
            Draw {
                group,
                t: 0,
                devices: rows,
                count,
                key,
            },
            &mut sample,
        );
        sample
    });
    Some(rows.collect())
}

#[cfg(test)]
mod tests;
