//! The command line.

mod dashboard;
mod export;
mod joint;
mod kits;
mod reference;
mod using;

pub(crate) use dashboard::*;
pub(crate) use export::*;
pub(crate) use joint::*;
pub(crate) use kits::*;
pub(crate) use reference::*;
pub(crate) use using::*;

use clap::{Args as Arguments, Parser, Subcommand};
use selvedge_run::format::shell;
use std::ops::RangeBounds;
use std::path::PathBuf;

/// Hybrid federated learning for e-health: hospitals and wearables train one model, and raw data stays where it is.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = include_str!("args/help/selvedge.txt").trim_end()
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Train a model and write a run directory
    Train(TrainArgs),
    /// Train with several algorithms and seeds, and compare what each needs to reach a target
    Compare(CompareArgs),
    /// Train with several values of one or more keys, and compare the results
    Sweep(SweepArgs),
    /// Choose P, Q and η from the convergence bound and short trial runs
    Tune(TuneArgs),
    /// Reproduce the paper's tables and figures, and check which of its claims hold
    Reproduce(ReproduceArgs),
    /// Fetch, inspect, split and export data, as training sees it
    #[command(subcommand)]
    Data(DataCommand),
    /// Measure how good a run's model is, on the run's patients or on new ones, with confidence intervals
    Evaluate(EvaluateArgs),
    /// Predict the classes of new patients with a run's model
    Predict(PredictArgs),
    /// Export a run's model to ONNX and PyTorch, with a model card
    Export(ExportArgs),
    /// Write a report on runs as one HTML page, with charts and tables
    Report(ReportArgs),
    /// Follow runs on a local web page, during training and afterwards
    Dashboard(DashboardArgs),
    /// List the experiments that come with selvedge
    Experiments(ExperimentsArgs),
    /// Measure how fast this machine trains
    Bench(BenchArgs),
    /// Train as real processes on this machine: servers, cloud, hospitals, edges and device gateways
    Up(UpArgs),
    /// Match patients and decide who takes part, without anybody sharing a table
    Enrol(EnrolArgs),
    /// Run one party of a deployment
    Node(NodeArgs),
    /// Ask a trained deployment for predictions, from a gateway; raw measurements are not sent
    Ask(AskArgs),
    /// Create the certificates, keys, configurations and folders of a consortium
    Provision(ProvisionArgs),
    /// Add a hospital to a kit, replace a key, or revoke access
    #[command(subcommand)]
    Kit(KitCommand),
    /// Check whether a party can take part: its server, key, clock and data
    Doctor(DoctorArgs),
    /// Show a deployment's progress, which parties are present, and which are missing and why
    Status(StatusArgs),
    /// Write the reference of all commands and keys
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

/// Which experiment, with changes.
#[derive(Arguments)]
pub(crate) struct ExperimentArgs {
    /// A TOML file, the name of an experiment that comes with selvedge, or a run directory
    pub(crate) experiment: Option<PathBuf>,
    /// Change a setting, like train.iterations=500 (see `selvedge experiments --keys`); can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

/// Where data sets are.
#[derive(Arguments, Clone)]
pub(crate) struct DataDirectory {
    /// The folder with one sub-folder per data set
    #[arg(long, value_name = "DIR", env = "SELVEDGE_DATA")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl DataDirectory {
    /// The option again, for commands that are suggested; nothing if the environment says it anyway.
    pub(crate) fn as_option(&self) -> String {
        let environment = std::env::var_os("SELVEDGE_DATA");
        match &self.data_dir {
            Some(path) if environment.as_deref() != Some(path.as_os_str()) => {
                format!(" --data-dir {}", shell(path))
            }
            _ => String::new(),
        }
    }
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/train.txt").trim_end())]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    /// The run directory to write; by default a new one in runs/
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Train N times, with seeds seed, seed + 1, …
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,
    /// Threads to use; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: Option<u64>,
    /// Write trace.jsonl: who took part in each interval
    #[arg(long)]
    pub(crate) trace: bool,
    /// Resume the run in this directory; with --set train.iterations=N, or a stop.* key, one that has ended goes
    /// on
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// CPU instruction set: avx512, avx2 or plain; the result does not depend on it
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
    /// Simulate the absences recorded in a deployment: an absences.jsonl, or a folder that contains some; can be
    /// repeated
    #[arg(long, value_name = "PATH", conflicts_with = "resume")]
    pub(crate) replay: Vec<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/tune.txt").trim_end())]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    /// Bytes per group that a training run may send, like 50e6: choose the settings with the lowest loss within it; not
    /// with --target
    #[arg(long, value_name = "BYTES", conflicts_with = "target")]
    pub(crate) budget: Option<f64>,
    /// The target, like auc=0.82 or loss=0.8: choose the settings that reach it with the fewest bytes
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) target: Option<String>,
    /// Write the tuned experiment; by default as NAME-tuned.toml
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) apply: Option<Option<PathBuf>>,
    /// CPU instruction set: avx512, avx2 or plain; the result does not depend on it
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What many runs may use of the machine.
#[derive(Arguments)]
pub(crate) struct MachineArgs {
    /// Number of runs to train in parallel; by default one per processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: Option<u64>,
    /// CPU instruction set: avx512, avx2 or plain; the result does not depend on it
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
}

/// What comparisons have in common.
#[derive(Arguments)]
pub(crate) struct ComparisonArgs {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    /// Train each variant N times, with seeds seed, seed + 1, …
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// A target, like auc=0.9 or loss=0.8; can be repeated; default: the paper's targets on its data sets; on other
    /// data, values that every variant reaches
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) target: Vec<String>,
    /// Try these learning rates first, with a separate seed, and use each variant's best
    #[arg(long, value_name = "RATE,RATE,…", value_delimiter = ',')]
    pub(crate) learning_rates: Vec<f64>,
    /// The folder to write or resume; by default runs/compare-NAME or runs/sweep-NAME, with a number if that is taken
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Print the tables as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/compare.txt").trim_end())]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) comparison: ComparisonArgs,
    /// Comma-separated names, or `paper` (those of the paper) or `all`
    #[arg(
        long,
        value_name = "NAME,NAME,…",
        value_delimiter = ',',
        default_value = "paper"
    )]
    pub(crate) algorithms: Vec<String>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/sweep.txt").trim_end())]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) comparison: ComparisonArgs,
    /// A key and its values, like train.local_interval=1,5,10; can be repeated for other keys
    #[arg(long, value_name = "KEY=VALUE,VALUE,…", required = true)]
    pub(crate) over: Vec<String>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/reproduce.txt").trim_end())]
pub(crate) struct ReproduceArgs {
    /// bytes, table2, table3, table4, fig4, …, fig9, printed, layers, several of them like fig7,fig8, or all
    pub(crate) what: String,
    /// Which data sets: esr, physionet2012, mednist, organamnist, mimic3; by default all that are available
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',')]
    pub(crate) data: Vec<String>,
    /// P = Q; several values are run one after the other; fig7, fig8, fig9 and printed have their own and ignore it
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1")]
    pub(crate) intervals: Vec<u64>,
    /// Seeds per algorithm, or per setting of P, Q and the learning rate
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// Change a setting of the experiments, like train.iterations=500; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) directory: DataDirectory,
    /// The folder to write or resume
    #[arg(long, value_name = "DIR", default_value = "runs/reproduction")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Print the sections as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    /// Show each group's patients and labels, and the columns on each side
    #[command(after_help = include_str!("args/help/data-inspect.txt").trim_end())]
    Inspect {
        #[command(flatten)]
        experiment: ExperimentArgs,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Compute the means and standard deviations by which every party scales its data (stats.json)
    #[command(after_help = include_str!("args/help/data-stats.txt").trim_end())]
    Stats {
        #[command(flatten)]
        experiment: ExperimentArgs,
        /// The file to write; by default it is printed
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Cut a data set into one shard per party, with only that party's rows and columns
    Split(SplitArgs),
    /// Write the data as training sees it to a NumPy file
    #[command(after_help = include_str!("args/help/data-export.txt").trim_end())]
    Export {
        #[command(flatten)]
        experiment: ExperimentArgs,
        /// The .npz file to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Download a data set, or explain how to get it
    Fetch(FetchArgs),
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/fetch.txt").trim_end())]
pub(crate) struct FetchArgs {
    /// The data set; without one, all are listed
    pub(crate) set: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataDirectory,
    /// Download the files from URL/NAME instead of from their publisher
    #[arg(long, value_name = "URL")]
    pub(crate) mirror: Option<String>,
    /// Replace existing files that are not the expected ones
    #[arg(long, conflicts_with = "show")]
    pub(crate) force: bool,
    /// Only show what would be fetched
    #[arg(long)]
    pub(crate) show: bool,
    /// Print the list as JSON
    #[arg(long, requires = "show")]
    pub(crate) json: bool,
    /// Give up on a connection after this long without data
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Your own catalogue of data sets, in JSON, instead of the one that comes with selvedge
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/split.txt").trim_end())]
pub(crate) struct SplitArgs {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    /// The folder to write, new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// The file with the pseudonym key: 64 hexadecimal digits, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/report.txt").trim_end())]
pub(crate) struct ReportArgs {
    /// Run directories, or folders of several runs
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// The page to write; by default report.html in the run's folder, or in the current folder for several runs
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print the cost of reaching this target, like auc=0.9 or loss=0.8, too; can be repeated
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) target: Vec<String>,
    /// Write every chart as an SVG file to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/experiments.txt").trim_end())]
pub(crate) struct ExperimentsArgs {
    /// Print an experiment as TOML
    #[arg(long, value_name = "NAME", conflicts_with = "keys")]
    pub(crate) show: Option<String>,
    /// List every key of an experiment, with its default
    #[arg(long)]
    pub(crate) keys: bool,
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/bench.txt").trim_end())]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    /// Only describe the machine
    #[arg(long, conflicts_with = "experiment")]
    pub(crate) machine: bool,
    /// Only measure the kernels
    #[arg(long, conflicts_with = "experiment")]
    pub(crate) kernels: bool,
    /// Only measure what an iteration costs as devices, groups, widths, P, Q and threads grow
    #[arg(long, conflicts_with = "experiment")]
    pub(crate) growth: bool,
    /// Measure the experiment as real processes, compared with plain NATS and messages of the same sizes
    #[arg(long, requires = "experiment")]
    pub(crate) deployed: bool,
    /// Threads to use; by default all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024), requires = "experiment")]
    pub(crate) threads: Option<u64>,
    /// CPU instruction set: avx512, avx2 or plain
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
    /// How often each training run is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) repeats: u64,
    /// How long each measurement takes
    #[arg(long, value_name = "SECONDS", default_value_t = 0.3, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Measure once for each line of standard input, and answer each with a line of JSON
    #[arg(long, requires = "experiment", hide = true)]
    pub(crate) lines: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    number(
        text,
        0.001..=3600.0,
        "expected a number of seconds from 0.001 to 3600",
    )
}

fn number(text: &str, range: impl RangeBounds<f64>, expected: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| expected.into())
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/up.txt").trim_end())]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    /// The folder to write; by default a new one in runs/
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Resume the deployment in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Gateways per group, which share its devices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) gateways: u64,
    /// Servers of the cloud: one, or a cluster of three, which keeps running with two
    #[arg(long, value_name = "1|3", default_value_t = 1, value_parser = cloud_servers)]
    pub(crate) cloud_servers: usize,
    /// Seconds to wait for the others after the first device or group has answered; by default indefinitely
    #[arg(long, value_name = "SECONDS")]
    pub(crate) deadline: Option<f64>,
    /// The same for groups only; by default long enough for a group that waits for devices in each of its phases
    #[arg(long, value_name = "SECONDS")]
    pub(crate) group_deadline: Option<f64>,
    /// The share of devices, and of groups, that must be present before a deadline takes effect
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) quorum: f64,
    /// Let servers acknowledge records before they are on disk: faster, but a power cut can lose them
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Connect a group's server to the hub through another address, such as a proxy; can be repeated
    #[arg(long, value_name = "GROUP=ADDRESS")]
    pub(crate) link_through: Vec<String>,
    /// Threads per party
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: u64,
    /// When the run is over, let hospitals and edges answer `selvedge ask` until Ctrl-C
    #[arg(long)]
    pub(crate) answer: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/enrol.txt").trim_end())]
pub(crate) struct EnrolArgs {
    /// Which party
    pub(crate) kind: crate::deploy::config::Kind,
    /// The party's configuration file, node.toml: experiment, server, key
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// A CSV or Parquet file instead of those in the config; can be repeated. A hospital's first has ids and labels
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Vec<PathBuf>,
    /// Enrol again, replacing the earlier data folder
    #[arg(long)]
    pub(crate) again: bool,
    /// Log format, on standard error
    #[arg(long, value_enum, default_value = "plain")]
    pub(crate) log: crate::deploy::journal::LogFormat,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/node.txt").trim_end())]
pub(crate) struct NodeArgs {
    /// Which party
    pub(crate) kind: crate::deploy::config::Kind,
    /// The party's configuration file, node.toml: run, shard, server
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Log format, on standard error
    #[arg(long, value_enum, default_value = "plain")]
    pub(crate) log: crate::deploy::journal::LogFormat,
    /// Delete an earlier run's records from the server; that run can then no longer be resumed
    #[arg(long)]
    pub(crate) forget: bool,
    /// Hear somebody in quarantine again: a group at the cloud, a device at a hospital or an edge; can be repeated
    #[arg(long, value_name = "N")]
    pub(crate) pardon: Vec<u32>,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/status.txt").trim_end())]
pub(crate) struct StatusArgs {
    /// A folder written by `selvedge up`, or a node's address
    #[arg(value_name = "DEPLOYMENT")]
    pub(crate) whom: String,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A cluster of two would stop with either of them.
fn cloud_servers(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        _ => Err("expected 1, or 3 for a cluster that keeps running with two".into()),
    }
}
