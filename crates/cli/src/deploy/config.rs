//! What a node is told, as TOML. Paths are seen from the file's own folder.

use crate::load;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::{Adaptive, Algorithm, Compute, Experiment};
use selvedge_core::role::Party;
use selvedge_data::enrol::{self, Summary};
use selvedge_net::deadlines::Deadlines;
use selvedge_run::files::read_text;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// `selvedge node … --config FILE`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeConfig {
    /// What the run is called.
    pub(crate) name: String,
    /// The experiment, the same for all parties.
    pub(crate) experiment: PathBuf,
    /// The folder with this party's shard.
    pub(crate) data: PathBuf,
    /// Its server, or several of one cluster, as `host:port`.
    pub(crate) servers: Vec<String>,
    /// The certificate of the deployment's authority.
    pub(crate) authority: PathBuf,
    /// The file with the seed of its key, a secret.
    pub(crate) key: PathBuf,
    /// For enrolment: this party's own files, whose columns the experiment explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tables: Vec<PathBuf>,
    /// For enrolment: the key of pseudonyms, which hospital and gateways of a group share. A secret.
    #[serde(default)]
    pub(crate) pseudonyms: Option<PathBuf>,
    /// Where it writes: the cloud its run directory, others what was absent.
    pub(crate) out: PathBuf,
    /// Where it answers over HTTP.
    #[serde(default)]
    pub(crate) http: Option<SocketAddr>,
    /// Its group; the cloud has none.
    #[serde(default)]
    pub(crate) group: Option<usize>,
    /// A gateway's number.
    #[serde(default)]
    pub(crate) gateway: Option<usize>,
    /// For enrolment: how many gateways the group has.
    #[serde(default)]
    pub(crate) gateway_count: Option<u32>,
    /// The devices of each gateway: the first, and one past the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gateways: Vec<[u32; 2]>,
    /// Threads to compute with.
    #[serde(default)]
    pub(crate) threads: Option<usize>,
    /// How long it waits for whom.
    #[serde(default)]
    pub(crate) deadlines: Deadlines,
    /// Where the gateways are those that enrolment has left, each may hold held-out patients; an edge knows which.
    #[serde(skip)]
    pub(crate) enrolled_held_out: Option<Vec<[[u32; 2]; 2]>>,
}

/// The four kinds of nodes, as they are called on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Averages the groups' models
    Cloud,
    /// Holds lab results, and trains θ0 and θ1
    Hospital,
    /// Coordinates a group
    Edge,
    /// A gateway: speaks for one or more devices
    Devices,
}

impl NodeConfig {
    /// The files that it names.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let single = [&self.experiment, &self.authority, &self.key];
        let single = single.into_iter().chain(&self.pseudonyms);
        single.chain(&self.tables).cloned().collect()
    }

    /// Reads a file; its paths become those that can be opened.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = read_text(file)?;
        let wrong = |problem: String| anyhow!("{}: {problem}", file.display());
        let mut config: NodeConfig =
            toml::from_str(&text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
        config.deadlines.check().map_err(wrong)?;
        if config.servers.is_empty() {
            return Err(wrong(
                "servers is empty: name one, like \"127.0.0.1:4222\"".into(),
            ));
        }
        if let Some(http) = config.http.filter(|http| !http.ip().is_loopback()) {
            return Err(wrong(format!(
                "http = \"{http}\": it has no password protection, so choose a loopback address, like \"127.0.0.1:9100\""
            )));
        }
        let folder = file.with_file_name("");
        let paths = [
            &mut config.experiment,
            &mut config.data,
            &mut config.authority,
            &mut config.key,
            &mut config.out,
        ];
        let further = config.tables.iter_mut().chain(&mut config.pseudonyms);
        for path in paths.into_iter().chain(further) {
            *path = folder.join(&*path);
        }
        Ok(config)
    }

    /// A key that such a party's configuration does not have.
    fn key_of_another(&self, kind: Kind) -> Option<&'static str> {
        let is_cloud = kind == Kind::Cloud;
        let is_gateway = kind == Kind::Devices;
        let wrong = [
            ("group", self.group.is_some() && is_cloud),
            ("gateway", self.gateway.is_some() && !is_gateway),
            (
                "gateway_count",
                self.gateway_count.is_some() && (is_cloud || kind == Kind::Hospital),
            ),
            (
                "pseudonyms",
                self.pseudonyms.is_some() && (is_cloud || kind == Kind::Edge),
            ),
        ];
        wrong
            .into_iter()
            .find_map(|(key, is_set)| is_set.then_some(key))
    }

    /// Who the node is.
    pub(crate) fn party(&self, kind: Kind) -> Result<Party> {
        if let Some(key) = self.key_of_another(kind) {
            bail!(
                "it sets `{key}`, so it is the configuration of another kind of party: expected this party's own node.toml"
            );
        }
        let group = || {
            self.group
                .ok_or_else(|| anyhow!("group is missing: name the group that the node belongs to"))
        };
        Ok(match kind {
            Kind::Cloud => Party::Cloud,
            Kind::Hospital => Party::Hospital(group()?),
            Kind::Edge => Party::Edge(group()?),
            Kind::Devices => Party::Gateway(
                group()?,
                self.gateway.ok_or_else(|| {
                    anyhow!("gateway is missing: name the number of this gateway")
                })?,
            ),
        })
    }

    /// Starts the threads that it wants, and gives the experiment; gateways are then as they enrolled.
    pub(crate) fn start(&mut self) -> Result<Experiment> {
        if let Some(threads) = self.threads {
            let built = rayon::ThreadPoolBuilder::new().num_threads(threads);
            built.build_global().context("cannot start threads")?;
        }
        let experiment = self.experiment()?;
        self.take_enrolled_gateways(&experiment)?;
        Ok(experiment)
    }

    /// Takes the devices of each gateway from what enrolment has left, where the config names none.
    ///
    /// # Errors
    /// If another experiment was enrolled for.
    pub(crate) fn take_enrolled_gateways(&mut self, experiment: &Experiment) -> Result<()> {
        if self.gateways.is_empty()
            && let Some(summary) = Summary::read(&self.data)?
        {
            let terms = enrol::terms(&experiment.data, experiment.seed)?;
            if !summary.is_by(&terms) {
                bail!(
                    "{} was enrolled with a different [data] table or seed than {} has: let all parties enrol again, with --again, or go back to that experiment",
                    self.data.display(),
                    self.experiment.display()
                );
            }
            self.gateways = summary.gateways;
            self.enrolled_held_out = Some(summary.held_out);
        }
        Ok(())
    }

    /// The devices of each gateway of a group of so many; all of them behind one, if the config names none.
    pub(crate) fn ranges(&self, devices: usize) -> Result<Vec<Range<u32>>> {
        if self.gateways.is_empty() {
            return Ok(std::iter::once(0..devices as u32).collect());
        }
        let mut next = 0;
        for [first, end] in &self.gateways {
            if *first != next || end <= first {
                bail!(
                    "gateways: [{first}, {end}] does not continue from device {next}: list each gateway's first device and the one past its last, in order, without gaps"
                );
            }
            next = *end;
        }
        if next as usize != devices {
            bail!("gateways: they carry {next} devices, but the group has {devices}");
        }
        Ok(self.gateways.iter().map(|[a, b]| *a..*b).collect())
    }

    /// The experiment, if it can be deployed.
    pub(crate) fn experiment(&self) -> Result<Experiment> {
        let experiment = load::experiment_file(&self.experiment, Some(&self.data))?;
        check_deployable(&experiment)?;
        Ok(experiment)
    }
}

/// Refuses what only a simulation can do.
pub(crate) fn check_deployable(experiment: &Experiment) -> Result<()> {
    let train = &experiment.train;
    if !matches!(train.algorithm, Algorithm::Hsgd | Algorithm::CHsgd) {
        bail!(
            "train.algorithm = \"{}\" is a baseline that only `selvedge train` runs: deploy hsgd or c-hsgd",
            train.algorithm
        );
    }
    if train.adaptive == Adaptive::Bound {
        bail!(
            "train.adaptive = \"bound\" measures extra gradients between training steps, and the protocol has no messages for them: choose \"gain\" or \"off\", or run it with `selvedge train`"
        );
    }
    if !experiment.attack.is_none() {
        bail!("[attack] is for simulations: leave it out, or run it with `selvedge train`");
    }
    if experiment.time.compute == Compute::Measured {
        bail!("time.compute = \"measured\" is for simulations: set time.compute = \"set\"");
    }
    Ok(())
}
