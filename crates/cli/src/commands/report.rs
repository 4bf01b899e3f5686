//! `selvedge report`

use super::print;
use crate::args::ReportArgs;
use crate::comparison::rates;
use crate::comparison::table::Table;
use crate::comparison::targets::{or_usual, parse_all};
use crate::{Outcome, report};
use anyhow::{Result, bail};
use selvedge_run::comparison::Comparison;
use selvedge_run::files::write_whole;
use selvedge_run::files::{METRICS, make_folder};
use selvedge_run::format::{bytes, count};
use selvedge_run::outputs::{Kind, Output, is_same_place};
use selvedge_run::runs;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ReportArgs) -> Result<Outcome> {
    let series = runs::series(&args.runs, crate::note)?;
    if series.iter().all(|s| s.evaluated().next().is_none()) {
        bail!(
            "{}: nothing has been evaluated yet; wait for the first line of {METRICS}",
            args.runs[0].display()
        );
    }
    let mut notes = runs::incomplete(&args.runs)?;
    for sentence in &notes {
        crate::note(sentence);
    }
    for path in &args.runs {
        let rates = Comparison::read(path)?.and_then(|c| c.rates);
        notes.extend(rates.iter().flat_map(rates::sentences));
    }
    let out = match (&args.out, &args.runs[..]) {
        (Some(out), _) => out.clone(),
        (None, [one]) => one.join("report.html"),
        (None, _) => PathBuf::from("report.html"),
    };
    let given = parse_all(&args.target)?;
    let charts = match &args.svg {
        Some(_) => report::files(&series),
        None => Vec::new(),
    };
    check_outputs(&out, args.svg.as_deref(), &charts)?;
    let table = Table::new(&series, &or_usual(&given, &series));
    let page = report::page(&series, &table, &notes);
    write_whole(&out, page.as_bytes())?;
    let mut text = format!("Report  {} ({})\n", out.display(), bytes(page.len() as f64));
    if let Some(folder) = &args.svg {
        make_folder(folder)?;
        for (name, contents) in &charts {
            write_whole(&folder.join(name), contents.as_bytes())?;
        }
        text += &format!(
            "Charts  {} ({} files)\n",
            folder.display(),
            count(charts.len() as u64)
        );
    }
    if !given.is_empty() {
        text = format!("{}\n{text}", table.text());
    }
    print(&text)?;
    Ok(Outcome::Done)
}

/// Before anything is written: only earlier pages and charts are replaced.
fn check_outputs(page: &Path, folder: Option<&Path>, charts: &[(String, String)]) -> Result<()> {
    let check = |option: &str, path: &Path, kind| Output { option, path, kind }.check(&[]);
    check("--out", page, Kind::Page)?;
    let paths = charts
        .iter()
        .filter_map(|(name, _)| Some(folder?.join(name)));
    for path in paths {
        check("--svg", &path, Kind::Chart)?;
        if is_same_place(&path, page) {
            bail!(
                "--out {}: --svg writes a chart there; expected another file",
                page.display()
            );
        }
    }
    Ok(())
}
