//! Arguments of the live view.

use clap::Args as Arguments;
use std::path::PathBuf;

#[derive(Arguments)]
#[command(after_help = "\
Examples:
  selvedge dashboard                                   all runs below runs/, now and later
  selvedge dashboard runs/esr-42 runs/compare-esr
  selvedge dashboard --listen 127.0.0.1:0              any free port
  selvedge dashboard --listen 0.0.0.0:8080             for others too: prints an address with a token

RUNS are run directories, or folders with some below: of seeds, of comparisons, of `selvedge up`. The page only reads
them: training neither waits for it nor notices when it ends. Ctrl-C ends it.")]
pub(crate) struct DashboardArgs {
    /// Run directories, or folders with some below; by default `runs`
    #[arg(value_name = "RUNS")]
    pub(crate) runs: Vec<PathBuf>,
    /// Where to listen: an address of this machine with a port; anything but loopback needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// Ask every visitor for this token; without a value, or where one is needed, a random one is made
    #[arg(long, value_name = "TOKEN", num_args = 0..=1, env = "SELVEDGE_DASHBOARD_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<Option<String>>,
    /// Print the address as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
