//! `selvedge dashboard`

use super::print;
use crate::Outcome;
use crate::args::DashboardArgs;
use crate::dashboard::Dashboard;
use anyhow::{Result, bail};
use serde_json::json;
use std::path::PathBuf;

/// Where runs are, unless somebody says otherwise.
const RUNS: &str = "runs";

pub(crate) fn run(args: &DashboardArgs) -> Result<Outcome> {
    for path in &args.runs {
        let wrong = match path.exists() {
            true if path.is_dir() => continue,
            true => " is not a folder",
            false => ": there is no such folder",
        };
        bail!(
            "{}{wrong}: expected a run directory, or a folder that holds runs now or later",
            path.display()
        );
    }
    let runs = match &args.runs[..] {
        // It may not be there before the first training.
        [] => vec![PathBuf::from(RUNS)],
        runs => runs.to_vec(),
    };
    let token = args.token.as_ref().map(Option::as_deref);
    let dashboard = Dashboard::new(runs.clone(), &args.listen, token)?;
    print(&match args.json {
        true => format!("{}\n", started(&dashboard)),
        false => text(&dashboard, &runs),
    })?;
    dashboard.serve()
}

fn started(dashboard: &Dashboard) -> serde_json::Value {
    json!({ "url": dashboard.url(), "address": dashboard.address(), "token": dashboard.token() })
}

fn text(dashboard: &Dashboard, runs: &[PathBuf]) -> String {
    let runs: Vec<String> = runs.iter().map(|path| path.display().to_string()).collect();
    let mut text = format!(
        "Dashboard  {}\nRuns       {}\n",
        dashboard.url(),
        runs.join(", ")
    );
    let address = dashboard.address();
    if address.ip().is_unspecified() {
        text += &format!(
            "Also on    port {} on every address of this machine, with the same token; traffic is not encrypted\n",
            address.port()
        );
    }
    text + "Ctrl-C stops the dashboard; training continues.\n"
}
