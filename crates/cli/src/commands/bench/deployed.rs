//! `selvedge bench EXPERIMENT --deployed`: a run as real processes, beside plain NATS with messages of the same sizes.

use super::super::{print, print_json};
use crate::Outcome;
use crate::args::BenchArgs;
use crate::deploy::config::NodeConfig;
use crate::deploy::kit::local::Wishes;
use crate::deploy::kit::{Deployment, NodeFiles};
use crate::deploy::node::access;
use crate::deploy::processes::Processes;
use crate::deploy::up;
use crate::interrupt::catch_interrupts;
use crate::load;
use anyhow::{Result, bail};
use selvedge_core::role::Party;
use selvedge_data::SETS;
use selvedge_net::counters::{Counters, Durations};
use selvedge_net::deadlines::Deadlines;
use selvedge_net::floor::{self, Plan, Sizes};
use selvedge_net::transport::Access;
use selvedge_run::format::table;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// A phase as both have it: what it is called, and which phases of edges belong to it. In a deployment the record is
/// kept before a phase counts as over.
const PHASES: [(&str, &[&str]); 4] = [
    ("exchange: θ2 to devices, ζ2 back", &["exchange"]),
    ("hospital: ζ2 to hospital, θ0 and ζ1 back", &["hospital"]),
    (
        "upload: θ0 and ζ1 to devices, models back",
        &["upload", "record"],
    ),
    ("global: models to the cloud, θ back", &["global"]),
];

pub(super) fn run(args: &BenchArgs) -> Result<Outcome> {
    catch_interrupts();
    let named = load::experiment(&args.experiment)?;
    load::check_directory_of(&named.experiment, &args.experiment.data)?;
    // Nothing but training is compared.
    let every = format!("train.evaluate_every={}", named.experiment.train.iterations);
    let experiment = SETS.with(&named.experiment, &[every])?;
    let train = &experiment.train;
    if !train.adaptive.is_off() {
        bail!("train.adaptive changes P and Q during the run: set it to \"off\" to measure");
    }
    let folder = std::env::temp_dir().join(format!("selvedge-bench-{}", std::process::id()));
    let _remove = Removed(&folder);
    let wishes = Wishes {
        name: &named.name,
        experiment: &experiment,
        data_dir: args.experiment.data.data_dir.as_deref(),
        gateways: 1,
        cloud_servers: 1,
        deadlines: Deadlines::default(),
        durable: true,
        links: Vec::new(),
        threads: args.threads.unwrap_or(1) as usize,
    };
    let deployment = up::prepare(&folder, &wishes)?;
    let ended = up::run(&folder, &deployment, false)?;
    if ended.interrupted() {
        return Ok(Outcome::Interrupted);
    }
    match ended.ending() {
        Some(("finished", _)) => {}
        Some((kind, t)) => {
            bail!("the run ended early, at t = {t} ({kind}): only a complete run is measured")
        }
        None => bail!("the run has not ended"),
    }
    let all = counters(&folder, &deployment)?;
    let intervals = (train.iterations / train.local_interval) as usize;
    let sizes = sizes(&all, intervals)?;
    let servers = Processes::servers_alone(&folder, &deployment)?;
    let plan = Plan {
        parties: accesses(&folder, &deployment)?,
        sizes,
        intervals,
        per_aggregation: (train.global_interval / train.local_interval) as usize,
    };
    let floor = floor::measure(&plan)?;
    servers.stop()?;
    let groups = deployment.consortium.hospitals.len();
    let deployed = edges(&all);
    let per_interval = |phases: &BTreeMap<String, Durations>, names: &[&str]| -> f64 {
        let sums = names.iter().filter_map(|name| phases.get(*name));
        sums.map(|d| d.sum).sum::<f64>() / (groups * intervals) as f64
    };
    let phases = ["exchange", "hospital", "upload", "global"];
    let ours = per_interval(&deployed, &phases);
    let theirs = per_interval(&floor.phases, &[&phases[..], &["record"]].concat());
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let computed: f64 = all.iter().map(|(_, c)| c.computed).sum();
    let computed = computed / intervals as f64 / cores.min(groups + 1) as f64;
    let ratio = (ours - computed) / theirs;
    if args.json {
        print_json(&json!({
            "groups": groups, "intervals": intervals, "sizes": sizes,
            "deployed": { "interval_seconds": ours, "computed_seconds": computed, "phases": quantiles(&deployed) },
            "floor": { "interval_seconds": theirs, "phases": quantiles(&floor.phases) },
            "ratio": ratio,
        }))?;
        return Ok(Outcome::Done);
    }
    let mut rows = vec![
        [
            "phase, milliseconds",
            "deployed p50",
            "p99",
            "plain NATS p50",
            "p99",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let ms = |seconds: f64| format!("{:.2}", 1e3 * seconds);
    for (label, names) in PHASES {
        let of = |phases: &BTreeMap<String, Durations>, share: f64, names: &[&str]| {
            let found = names.iter().filter_map(|name| phases.get(*name));
            ms(found.map(|d| d.quantile(share)).sum())
        };
        rows.push(vec![
            label.to_owned(),
            of(&deployed, 0.5, &names[..1]),
            of(&deployed, 0.99, &names[..1]),
            of(&floor.phases, 0.5, names),
            of(&floor.phases, 0.99, names),
        ]);
    }
    print(&table(&rows))?;
    print(&format!(
        "\nGroups: {groups}, intervals: {intervals}; {:.1} intervals per second deployed, {:.1} with plain NATS\n\
         {} ms per interval, of which {} ms is computation on {cores} cores; plain NATS {} ms: {ratio:.2} × that, without computation\n",
        1.0 / ours,
        1.0 / theirs,
        ms(ours),
        ms(computed),
        ms(theirs),
    ))?;
    Ok(Outcome::Done)
}

/// A folder that goes with this.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

fn counters(folder: &Path, deployment: &Deployment) -> Result<Vec<(Party, Counters)>> {
    let read = |node: &NodeFiles| -> Result<(Party, Counters)> {
        let at = match node.party {
            Party::Cloud => "run",
            _ => &node.folder,
        };
        let path = folder.join(at).join("counters.json");
        Ok((node.party, selvedge_run::files::read_json(&path)?))
    };
    deployment.nodes().iter().map(read).collect()
}

/// The phases of all edges together.
fn edges(all: &[(Party, Counters)]) -> BTreeMap<String, Durations> {
    let mut phases: BTreeMap<String, Durations> = BTreeMap::new();
    for (_, counters) in all.iter().filter(|(p, _)| matches!(p, Party::Edge(_))) {
        for (phase, durations) in &counters.phases {
            phases.entry(phase.clone()).or_default().merge(durations);
        }
    }
    phases
}

fn quantiles(phases: &BTreeMap<String, Durations>) -> serde_json::Value {
    let of = |d: &Durations| json!({"count": d.count, "p50": d.quantile(0.5), "p99": d.quantile(0.99), "sum": d.sum});
    phases
        .iter()
        .map(|(name, d)| (name.clone(), of(d)))
        .collect()
}

/// How long messages and records of each kind were.
fn sizes(all: &[(Party, Counters)], intervals: usize) -> Result<Sizes> {
    let mean = |kind: &str| -> Result<(usize, u64)> {
        let found = all.iter().filter_map(|(_, c)| c.kinds.get(kind));
        let (count, bytes) = found.fold((0, 0), |(n, b), (count, bytes)| (n + count, b + bytes));
        if count == 0 {
            bail!("no message of the kind `{kind}` was sent");
        }
        Ok(((bytes / count) as usize, count))
    };
    let record = |wanted: fn(&Party) -> bool| {
        let found = all.iter().filter(|(party, _)| wanted(party));
        let (bytes, count) =
            found.fold((0, 0), |(b, n), (_, c)| (b + c.record_bytes, n + c.records));
        (bytes / count.max(1)) as usize
    };
    let (models, count) = mean("models")?;
    let gateways = all.iter().filter(|(p, _)| matches!(p, Party::Gateway(..)));
    let per_interval = count as f64 / (gateways.count() * intervals) as f64;
    Ok(Sizes {
        invite: mean("invite")?.0,
        zeta2: mean("zeta2")?.0,
        batch: mean("batch")?.0,
        frozen: mean("frozen")?.0,
        lesson: mean("lesson")?.0,
        models,
        models_count: (per_interval.round() as usize).max(1),
        hospital_model: mean("hospital model")?.0,
        edge_model: mean("edge model")?.0,
        global: mean("global")?.0,
        hospital_record: record(|p| matches!(p, Party::Hospital(_))),
        edge_record: record(|p| matches!(p, Party::Edge(_))),
        cloud_record: record(|p| matches!(p, Party::Cloud)),
    })
}

fn accesses(folder: &Path, deployment: &Deployment) -> Result<Vec<(Party, Access)>> {
    let access = |node: &NodeFiles| -> Result<(Party, Access)> {
        let config = NodeConfig::read(&folder.join(&node.folder).join("node.toml"))?;
        Ok((node.party, access(&config)?))
    };
    deployment.nodes().iter().map(access).collect()
}
