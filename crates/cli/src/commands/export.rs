//! `selvedge export`: a run's model in files that others read.

use super::print_either;
use crate::Outcome;
use crate::args::ExportArgs;
use crate::export::{self, Exported, File};
use anyhow::Result;
use selvedge_run::format::{bytes, table};
use selvedge_run::trained::Trained;
use serde_json::json;

pub(crate) fn run(args: &ExportArgs) -> Result<Outcome> {
    let run = &args.chosen.run;
    let trained = Trained::open(run, args.chosen.which())?;
    let warnings = trained.warnings();
    warnings.iter().for_each(|warning| crate::note(warning));
    let files = Exported::new(&trained).files(&args.format, run)?;
    let out = args.out.clone().unwrap_or_else(|| run.join("export"));
    export::write(&out, &files)?;
    let length = |file: &File| {
        out.join(file.name)
            .metadata()
            .map_or(0, |there| there.len())
    };
    let file = |file: &File| json!({ "name": file.name, "bytes": length(file) });
    let value = json!({
        "run": run.display().to_string(),
        "model": trained.file.display().to_string(),
        "out": out.display().to_string(),
        "notes": warnings,
        "files": files.iter().map(file).collect::<Vec<_>>(),
    });
    let row = |file: &File| vec![file.name.to_owned(), bytes(length(file) as f64)];
    let rows: Vec<Vec<String>> = files.iter().map(row).collect();
    let text = format!("{}\n{}", out.display(), table(&rows));
    print_either(args.json, &value, &text)
}
