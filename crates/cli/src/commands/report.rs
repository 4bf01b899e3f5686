//! `selvedge report`

use super::print;
use crate::args::ReportArgs;
use crate::comparison::rates;
use crate::comparison::table::Table;
use crate::comparison::targets::{or_usual, parse_all};
use crate::{Outcome, report};
use anyhow::{Result, bail};
use selvedge_run::comparison::Comparison;
use selvedge_run::files::{METRICS, make_folder};
use selvedge_run::format::{bytes, count};
use selvedge_run::outputs::{Kind, Output, is_same_place, of_data, write_together};
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
    let chart = |(name, _): &(String, String)| Some(args.svg.as_ref()?.join(name));
    let paths: Vec<PathBuf> = charts.iter().filter_map(chart).collect();
    let outputs = outputs(&out, &paths)?;
    let files = series.iter().flat_map(|s| &s.runs);
    let files: Vec<PathBuf> = files
        .flat_map(|run| of_data(&run.experiment, None))
        .collect();
    outputs.iter().try_for_each(|output| output.check(&files))?;
    let table = Table::new(&series, &or_usual(&given, &series)?);
    let page = report::page(&series, &table, &notes);
    let mut text = format!("Report  {} ({})\n", out.display(), bytes(page.len() as f64));
    if let Some(folder) = &args.svg {
        make_folder(folder)?;
        text += &format!(
            "Charts  {} ({} files)\n",
            folder.display(),
            count(charts.len() as u64)
        );
    }
    let contents = std::iter::once(&page).chain(charts.iter().map(|(_, chart)| chart));
    let whole: Vec<_> = outputs
        .into_iter()
        .zip(contents.map(String::as_bytes))
        .collect();
    write_together(&whole)?;
    if !given.is_empty() {
        text = format!("{}\n{text}", table.text());
    }
    print(&text)?;
    Ok(Outcome::Done)
}

/// The page and the charts, each in a file of its own.
fn outputs<'a>(page: &'a Path, charts: &'a [PathBuf]) -> Result<Vec<Output<'a>>> {
    if charts.iter().any(|path| is_same_place(path, page)) {
        bail!(
            "--out {}: --svg writes a chart there; expected another file",
            page.display()
        );
    }
    let output = |option, path, kind| Output { option, path, kind };
    let charts = charts
        .iter()
        .map(|path| output("--svg", path.as_path(), Kind::Chart));
    Ok(std::iter::once(output("--out", page, Kind::Page))
        .chain(charts)
        .collect())
}
