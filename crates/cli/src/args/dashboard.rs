//! Arguments of the live view.

use clap::Args as Arguments;
use std::path::PathBuf;

#[derive(Arguments)]
#[command(after_help = include_str!("help/dashboard.txt").trim_end())]
pub(crate) struct DashboardArgs {
    /// Run directories, or folders that contain some; by default `runs`
    #[arg(value_name = "RUNS")]
    pub(crate) runs: Vec<PathBuf>,
    /// Where to listen: an address of this machine with a port; any address but loopback needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// Require this token from visitors; `--token` alone, or an address beyond loopback, generates one
    #[arg(long, value_name = "TOKEN", num_args = 0..=1, env = "SELVEDGE_DASHBOARD_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<Option<String>>,
    /// Print the address as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
