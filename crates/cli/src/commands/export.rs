//! `selvedge export`: a run's model in files that others read.

use super::{print, print_json};
use crate::Outcome;
use crate::args::ExportArgs;
use crate::export::{self, Exported};
use anyhow::Result;
use selvedge_run::format::{bytes, table};
use selvedge_run::trained::Trained;
use serde_json::{Value, json};

pub(crate) fn run(args: &ExportArgs) -> Result<Outcome> {
    let run = &args.chosen.run;
    let trained = Trained::open(run, args.chosen.which())?;
    let files = Exported::new(&trained).files(&args.format, run)?;
    let out = args.out.clone().unwrap_or_else(|| run.join("export"));
    export::write(&out, &files)?;
    let sizes = files.iter().map(|file| (file.name, file.contents.len()));
    if args.json {
        let file = |(name, size): (&str, usize)| json!({ "name": name, "bytes": size });
        let files: Vec<Value> = sizes.map(file).collect();
        print_json(&json!({
            "run": run.display().to_string(),
            "model": trained.file.display().to_string(),
            "out": out.display().to_string(),
            "files": files,
        }))?;
    } else {
        let row = |(name, size): (&str, usize)| vec![name.to_owned(), bytes(size as f64)];
        let rows: Vec<Vec<String>> = sizes.map(row).collect();
        print(&format!("{}\n{}", out.display(), table(&rows)))?;
    }
    Ok(Outcome::Done)
}
