//! One party, from its config to the end of the run.

use super::answer::Answering;
use super::bounds::{longest_message, most_gateways, turn};
use super::config::{Kind, NodeConfig};
use super::journal::{Journal, LogFormat, log_line};
use crate::files::{exposed, only_own};
use anyhow::{Context, Result, bail};
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::Experiment;
use selvedge_core::positive::Positive;
use selvedge_core::role::wire::MOST_CLASSES;
use selvedge_core::role::{Cloud, Edge, Gateway, HeldOutSamples, Hospital, Party, Role};
use selvedge_core::task::{Task, check_targets};
use selvedge_data::{HeldOut, PartyLoaded, PartyShard, read_party_and_patients};
use selvedge_net::drive::{Options, Outcome, Patience, Settings, drive};
use selvedge_net::identity::RunIdentity;
use selvedge_net::records::RecordCopy;
use selvedge_net::transport::{Access, neighbours};
use selvedge_run::files::read_text;
use selvedge_run::format::counted;
use selvedge_run::manifest::DataInfo;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What somebody wants of a party.
pub(crate) struct Wishes<'a> {
    pub(crate) format: LogFormat,
    pub(crate) forget: bool,
    /// Those in quarantine who are to be heard again.
    pub(crate) pardon: &'a [u32],
    pub(crate) answering: Answering<'a>,
}

/// Runs a party until the run is over, or somebody wants it to stop.
pub(crate) fn run(
    kind: Kind,
    file: &Path,
    wishes: Wishes<'_>,
    stop: &AtomicBool,
) -> Result<Outcome> {
    let Wishes {
        format,
        forget,
        pardon,
        answering,
    } = wishes;
    answering.check(kind)?;
    if kind == Kind::Devices && !pardon.is_empty() {
        bail!(
            "--pardon: a gateway holds nothing against anybody: give it to the cloud (a group), or to a hospital or an edge (a device)"
        );
    }
    let mut config = NodeConfig::read(file)?;
    let in_config = || format!("{} is invalid", file.display());
    let party = config.party(kind).with_context(in_config)?;
    let experiment = config.start()?;
    let access = access(&config)?;
    let warn = |text: &str| crate::say(&log_line(format, party, "warn", text));
    let (shard, ranges) = shard(&config, party).with_context(in_config)?;
    if let Some(own) = shard.file().map(|file| config.data.join(file))
        && let Ok(Some(mode)) = exposed(&own)
    {
        let text = "is about patients and readable by others";
        warn(&format!(
            "{} {text} (mode {mode:o}): chmod 600 it",
            own.display()
        ));
    }
    let (loaded, patients) = read_party_and_patients(&config.data, shard)?;
    check(&experiment, &loaded)?;
    let task = Task::of_party(&experiment, &loaded.dataset, &loaded.labels)?;
    let mut journal = match party {
        Party::Cloud => {
            let data = (data_info(&experiment, &loaded), &loaded.statistics);
            Journal::of_cloud(&task, &config.name, data, &config.out, format)?
        }
        _ => Journal::open(party, &config.out, format)?,
    }
    .forgetting(forget);
    let ranges = match party {
        Party::Edge(m) => config
            .ranges(loaded.dataset.groups[m].devices())
            .with_context(in_config)?,
        _ => ranges,
    };
    let mut role = role(&task, party, &loaded, &ranges, &config);
    role.pardon(pardon);
    let known = (&loaded.statistics, &patients);
    let tell = |text: &str| crate::say(&log_line(format, party, "info", text));
    if let (Some(newcomers), Role::Hospital(hospital)) = (
        answering.newcomers(&config, &experiment, known, &tell)?,
        &mut role,
    ) {
        tell(&format!(
            "{} in its tables not taking part: it can answer for them too",
            counted(newcomers.len() as u64, "patient")
        ));
        hospital.add_newcomers(newcomers);
    }
    drop(patients);
    let held_out_of_all = loaded.held_out_of_all.iter().sum();
    let settings = Settings {
        access,
        neighbours: neighbours(party, loaded.dataset.groups.len(), ranges.len()),
        longest_message: longest_message(&task, ranges.len()),
        turn: turn(&task, party, held_out_of_all, answering.stays),
        most_gateways: most_gateways(&task),
        patience: Patience::TRAINING,
        options: Options {
            identity: Some(identity(&experiment, &loaded)),
            deadlines: config.deadlines,
            http: config.http,
            iterations: experiment.train.iterations,
            forget,
            copy: Some(RecordCopy::of(&config.out, party == Party::Cloud)),
            answer: answering.stays,
        },
        stop,
        notice: &warn,
    };
    Ok(drive(&mut role, &settings, &mut journal)?)
}

/// How a party gets to its server.
pub(crate) fn access(config: &NodeConfig) -> Result<Access> {
    only_own(&config.key)?;
    let seed = read_text(&config.key)?;
    Ok(Access {
        servers: config.servers.clone(),
        authority: config.authority.clone(),
        seed: seed.trim().to_owned(),
    })
}

/// What all parties of a run must have in common.
pub(super) fn identity(experiment: &Experiment, loaded: &PartyLoaded) -> RunIdentity {
    RunIdentity::new(
        experiment.identity(),
        loaded.statistics_fingerprint.clone(),
        loaded.fingerprint.clone(),
    )
}

/// What a party reads, and the gateways that it knows of.
pub(super) fn shard(config: &NodeConfig, party: Party) -> Result<(PartyShard, Vec<Range<u32>>)> {
    Ok(match party {
        Party::Cloud => (PartyShard::Coordinator, Vec::new()),
        Party::Hospital(m) => (PartyShard::Hospital(m), Vec::new()),
        Party::Edge(m) => (PartyShard::Edge(m), Vec::new()),
        Party::Gateway(group, g) => {
            let Some([first, end]) = config.gateways.get(g).copied() else {
                bail!(
                    "gateways: it lists {}, so there is no gateway {g}",
                    config.gateways.len()
                );
            };
            let devices = first..end;
            let shard = PartyShard::Gateway {
                group,
                devices: devices.clone(),
                held_out: g == 0 || config.enrolled_held_out.is_some(),
            };
            (shard, vec![devices])
        }
    })
}

pub(super) fn check(experiment: &Experiment, loaded: &PartyLoaded) -> Result<()> {
    check_targets(experiment, loaded.held_out_of_all)?;
    if experiment.data.groups != loaded.dataset.groups.len() && experiment.data.set == "shards" {
        bail!(
            "data.groups = {}, but the shards have {} groups",
            experiment.data.groups,
            loaded.dataset.groups.len()
        );
    }
    if loaded.dataset.classes.len() > MOST_CLASSES {
        bail!(
            "the data has {} classes: a deployment can have at most {MOST_CLASSES}",
            loaded.dataset.classes.len()
        );
    }
    Ok(())
}

fn data_info(experiment: &Experiment, loaded: &PartyLoaded) -> DataInfo {
    let dataset = &loaded.dataset;
    DataInfo {
        fingerprint: loaded.fingerprint.clone(),
        outcome: dataset.outcome.kind(),
        classes: dataset.classes.clone(),
        training_samples: dataset.training_samples(),
        validation_samples: loaded.held_out_of_all[0],
        test_samples: loaded.held_out_of_all[1],
        groups: dataset.groups.iter().map(|g| g.name.clone()).collect(),
        // How many patients of a group have what is nobody's business.
        labels: Vec::new(),
        positive: dataset
            .outcome
            .is_class()
            .then(|| Positive::of(experiment, &dataset.classes, &loaded.labels))
            .flatten(),
    }
}

fn role<'a>(
    task: &'a Task<'a>,
    party: Party,
    loaded: &PartyLoaded,
    ranges: &[Range<u32>],
    config: &NodeConfig,
) -> Role<'a> {
    let quorum = config.deadlines.quorum();
    let groups = &loaded.dataset.groups;
    match party {
        Party::Cloud => Role::Cloud(Box::new(Cloud::new(task, quorum))),
        Party::Edge(m) => {
            let edge = Edge::new(task, m, ranges.to_vec(), quorum);
            let range = |[start, end]: &[u32; 2]| *start..*end;
            let held_out = config.enrolled_held_out.iter().flatten();
            let held_out: Vec<[Range<u32>; 2]> =
                held_out.map(|parts| parts.each_ref().map(range)).collect();
            Role::Edge(Box::new(match held_out.len() == ranges.len() {
                true => edge.with_held_out(held_out),
                false => edge,
            }))
        }
        Party::Hospital(m) => {
            let held_out = held_out(&loaded.held_out, |x| (x, Vec::new()));
            Role::Hospital(Box::new(Hospital::new(
                task,
                m,
                groups[m].clone(),
                held_out,
            )))
        }
        Party::Gateway(m, g) => {
            let held_out = held_out(&loaded.held_out, |x| (Vec::new(), x));
            let samples = groups[m].samples.clone();
            let devices = ranges.first().cloned().unwrap_or_default();
            Role::Gateway(Box::new(Gateway::new(
                task,
                (m, g),
                devices,
                samples,
                held_out,
                loaded.held_out.each_ref().map(|part| part.from),
            )))
        }
    }
}

fn held_out(
    parts: &[HeldOut; 2],
    sides: impl Fn(Vec<f32>) -> (Vec<f32>, Vec<f32>),
) -> HeldOutSamples {
    [0, 1].map(|i| {
        let (x1, x2) = sides(parts[i].x.clone());
        Samples {
            x1,
            x2,
            y: parts[i].y.clone(),
        }
    })
}
