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
use std::ops::RangeBounds;
use std::path::PathBuf;

/// Hybrid federated learning for e-health: hospitals and wearables train one model, and raw data stays where
/// it is.
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
    /// Train with several algorithms and seeds, and see what each needs to reach a target
    Compare(CompareArgs),
    /// Train with several values of any keys, and compare them in the same way
    Sweep(SweepArgs),
    /// Choose P, Q and η from the convergence bound and from short trials
    Tune(TuneArgs),
    /// Make the paper's tables and figures, and see which of its claims hold
    Reproduce(ReproduceArgs),
    /// Get data, and look at it as training would see it
    #[command(subcommand)]
    Data(DataCommand),
    /// Measure how good a run's model is, on its own patients or on others, with intervals
    Evaluate(EvaluateArgs),
    /// Say what a run's model thinks of new patients
    Predict(PredictArgs),
    /// Write a run's model as ONNX, for PyTorch, and with a model card
    Export(ExportArgs),
    /// Write runs as one HTML page, with charts and tables
    Report(ReportArgs),
    /// Follow runs on a local web page, while they are trained and later
    Dashboard(DashboardArgs),
    /// List the experiments that come with selvedge
    Experiments(ExperimentsArgs),
    /// Measure how fast this machine trains
    Bench(BenchArgs),
    /// Train as real processes on this machine: servers, cloud, hospitals, edges and device gateways
    Up(UpArgs),
    /// Find out who takes part, from tables that hospitals and gateways hold themselves
    Enrol(EnrolArgs),
    /// Run one party of a deployment
    Node(NodeArgs),
    /// Ask for predictions of a trained deployment, at a gateway: vital signs and lab results stay where they are
    Ask(AskArgs),
    /// Make the certificates, keys, configurations and folders of a consortium
    Provision(ProvisionArgs),
    /// Add a hospital to a kit, replace a key, or shut somebody out
    #[command(subcommand)]
    Kit(KitCommand),
    /// See whether a party can take part: its server, its key, its clock, its data
    Doctor(DoctorArgs),
    /// Show who is there, who is missing and why, and how far a deployment is
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
    /// Change a key, like train.iterations=500; may be given again
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
                format!(" --data-dir {}", path.display())
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
    /// The run directory to write; by default a new one under runs/
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Train with this many seeds, from the experiment's own upwards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,
    /// Threads to use; the result is the same with any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: Option<u64>,
    /// Write trace.jsonl: who took part in each interval
    #[arg(long)]
    pub(crate) trace: bool,
    /// Go on with the run in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Instructions to use: avx512, avx2 or plain; the result is the same with any
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
    /// Let those be absent who were in a deployment: an absences.jsonl, or a folder with some below; may be given again
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
    /// Bytes of one group that a training may send, like 50e6: what learns most from them is chosen
    #[arg(long, value_name = "BYTES", conflicts_with = "target")]
    pub(crate) budget: Option<f64>,
    /// What is to be reached, like auc=0.82 or loss=0.8: what needs the fewest bytes for it is chosen
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) target: Option<String>,
    /// Write the tuned experiment; by default as NAME-tuned.toml
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(crate) apply: Option<Option<PathBuf>>,
    /// Instructions to use: avx512, avx2 or plain; the result is the same with any
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What many runs may use of the machine.
#[derive(Arguments)]
pub(crate) struct MachineArgs {
    /// Runs side by side; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: Option<u64>,
    /// Instructions to use: avx512, avx2 or plain; the result is the same with any
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
}

/// What comparisons have in common.
#[derive(Arguments)]
pub(crate) struct ComparisonArgs {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
    /// Seeds of each variant, from the experiment's own upwards
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// What is to be reached, like auc=0.9 or loss=0.8; may be given again; by default the paper's targets for its sets,
    /// for others what all variants reach
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) target: Vec<String>,
    /// Let each variant choose the best of these learning rates first, on a seed of its own
    #[arg(long, value_name = "RATE,RATE,…", value_delimiter = ',')]
    pub(crate) learning_rates: Vec<f64>,
    /// The folder to write, or to go on with; by default one under runs/
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
    /// Which algorithms; `paper` and `all` stand for several
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
    /// A key and its values, like train.local_interval=1,5,10; may be given again for another key
    #[arg(long, value_name = "KEY=VALUE,VALUE,…", required = true)]
    pub(crate) over: Vec<String>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/reproduce.txt").trim_end())]
pub(crate) struct ReproduceArgs {
    /// table2, table3, table4, fig4, fig5, fig6, fig7, fig8, fig9, several of them like fig7,fig8, or all
    pub(crate) what: String,
    /// Which sets: esr, physionet2012, mednist, organamnist, mimic3; by default all that are at hand
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',')]
    pub(crate) data: Vec<String>,
    /// P = Q; several are reproduced one after the other; no effect on fig7, fig8 and fig9, which have their own
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1")]
    pub(crate) intervals: Vec<u64>,
    /// Seeds of each algorithm, or of each setting of P, Q and the learning rate
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// Change a key of the experiments, like train.iterations=500; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) directory: DataDirectory,
    /// The folder to write, or to go on with
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
    /// Show what each group, side and device holds
    #[command(after_help = include_str!("args/help/data-inspect.txt").trim_end())]
    Inspect {
        #[command(flatten)]
        experiment: ExperimentArgs,
        /// Print it as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure what training rows show: stats.json, which every party scales by
    #[command(after_help = include_str!("args/help/data-stats.txt").trim_end())]
    Stats {
        #[command(flatten)]
        experiment: ExperimentArgs,
        /// The file to write; by default it is printed
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Cut a set into one shard per party, with only its rows and its columns
    Split(SplitArgs),
    /// Write what training sees as a NumPy file
    #[command(after_help = include_str!("args/help/data-export.txt").trim_end())]
    Export {
        #[command(flatten)]
        experiment: ExperimentArgs,
        /// The .npz file to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Download a data set, or say how to get it
    Fetch(FetchArgs),
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/fetch.txt").trim_end())]
pub(crate) struct FetchArgs {
    /// The set; without one, all are listed
    pub(crate) set: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataDirectory,
    /// Take the files from URL/NAME instead of from their publisher
    #[arg(long, value_name = "URL")]
    pub(crate) mirror: Option<String>,
    /// Replace files that are there and are other ones than expected
    #[arg(long, conflicts_with = "show")]
    pub(crate) force: bool,
    /// Only say what would be fetched
    #[arg(long)]
    pub(crate) show: bool,
    /// Print it as JSON
    #[arg(long, requires = "show")]
    pub(crate) json: bool,
    /// Give up a connection on which nothing comes for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// A catalogue of sets of your own, in JSON, instead of the one that comes with selvedge
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
    /// The file with the key of the pseudonyms: 64 hexadecimal digits, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/report.txt").trim_end())]
pub(crate) struct ReportArgs {
    /// Run directories, or folders of several runs
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// The page to write; by default report.html in the folder of the run, or here if there are several
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print what it takes to reach this, like auc=0.9 or loss=0.8; may be given again
    #[arg(long, value_name = "METRIC=VALUE")]
    pub(crate) target: Vec<String>,
    /// Write every chart as an SVG file into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/experiments.txt").trim_end())]
pub(crate) struct ExperimentsArgs {
    /// Print the text of one of them
    #[arg(long, value_name = "NAME", conflicts_with = "keys")]
    pub(crate) show: Option<String>,
    /// List every key an experiment may have, with its default
    #[arg(long)]
    pub(crate) keys: bool,
    /// Print it as JSON
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
    /// Measure the experiment as real processes, beside plain NATS with messages of the same sizes
    #[arg(long, requires = "experiment")]
    pub(crate) deployed: bool,
    /// Threads to use; by default all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024), requires = "experiment")]
    pub(crate) threads: Option<u64>,
    /// Instructions to use: avx512, avx2 or plain
    #[arg(long, value_name = "NAME")]
    pub(crate) simd: Option<String>,
    /// Times that a training is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) repeats: u64,
    /// How long each of them takes
    #[arg(long, value_name = "SECONDS", default_value_t = 0.3, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Measure once for each line of the standard input, and answer each with a line of JSON
    #[arg(long, requires = "experiment", hide = true)]
    pub(crate) lines: bool,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    number(text, 0.001..=3600.0, "expected seconds, 0.001 to 3600")
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
    /// The folder to write; by default a new one under runs/
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the deployment in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Gateways of each group, which share its devices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) gateways: u64,
    /// Servers of the cloud: one, or a cluster of three, which goes on with two
    #[arg(long, value_name = "1|3", default_value_t = 1, value_parser = cloud_servers)]
    pub(crate) cloud_servers: usize,
    /// Seconds after the first device, or group, that the others are waited for; by default for ever
    #[arg(long, value_name = "SECONDS")]
    pub(crate) deadline: Option<f64>,
    /// The same for groups alone; by default long enough for a group that waits for devices in each of its phases
    #[arg(long, value_name = "SECONDS")]
    pub(crate) group_deadline: Option<f64>,
    /// The share of devices, and of groups, without whom a deadline does not count
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) quorum: f64,
    /// Let servers acknowledge records before they are on the disk: faster, but not safe from a power cut
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Let a group's link dial another address than the hub's, a proxy say; may be given again
    #[arg(long, value_name = "GROUP=ADDRESS")]
    pub(crate) link_through: Vec<String>,
    /// Threads of each party
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
    /// What it is told: its experiment, its server, its key
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// A CSV or Parquet file instead of those that the config names; may be given again. A hospital's first has ids and labels
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Vec<PathBuf>,
    /// Replace the data folder of an earlier enrolment
    #[arg(long)]
    pub(crate) again: bool,
    /// How it logs, on the error output
    #[arg(long, value_enum, default_value = "plain")]
    pub(crate) log: crate::deploy::journal::LogFormat,
    /// Print what was decided as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/node.txt").trim_end())]
pub(crate) struct NodeArgs {
    /// Which party
    pub(crate) kind: crate::deploy::config::Kind,
    /// What it is told: its run, its shard, its server
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// How it logs, on the error output
    #[arg(long, value_enum, default_value = "plain")]
    pub(crate) log: crate::deploy::journal::LogFormat,
    /// Forget records that the server keeps of another run, which can then not be gone on with
    #[arg(long)]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Arguments)]
#[command(after_help = include_str!("args/help/status.txt").trim_end())]
pub(crate) struct StatusArgs {
    /// A folder of `selvedge up`, or a node's address
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
        _ => Err("expected 1, or 3 for a cluster that goes on with two".into()),
    }
}
