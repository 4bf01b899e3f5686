//! What a comparison leaves in its folder besides its runs: the table as text and as values, and the report.

use super::table::Table;
use crate::written::is_under;
use anyhow::Result;
use selvedge_run::outputs::{Kind, Output, write_together};
use std::path::{Path, PathBuf};

const NAMES: [&str; 3] = ["table.txt", "table.csv", "report.html"];

fn paths(folder: &Path) -> [PathBuf; 3] {
    NAMES.map(|name| folder.join(name))
}

fn is_table(text: &str) -> bool {
    is_under(&Table::csv_head(), text)
}

fn outputs(paths: &[PathBuf; 3]) -> [Output<'_>; 3] {
    let [text, csv, page] = paths;
    let output = |path, kind| Output {
        option: "",
        path,
        kind,
    };
    [
        output(text, Kind::Table),
        output(csv, Kind::Known("a table", &is_table)),
        output(page, Kind::Page),
    ]
}

/// Refuses a folder in which somebody else has files of these names, before anything is trained.
pub(crate) fn check(folder: &Path) -> Result<()> {
    let paths = paths(folder);
    Ok(outputs(&paths)
        .iter()
        .try_for_each(|output| output.check(&[]))?)
}

/// Writes all three; `text` is the table with what stands above it.
pub(crate) fn write(folder: &Path, text: &str, table: &Table, page: &str) -> Result<()> {
    let (paths, csv) = (paths(folder), table.csv());
    let [first, second, third] = outputs(&paths);
    let files = [
        (first, text.as_bytes()),
        (second, csv.as_bytes()),
        (third, page.as_bytes()),
    ];
    Ok(write_together(&files)?)
}

/// Writes the report alone.
pub(crate) fn write_report(folder: &Path, page: &str) -> Result<()> {
    let paths = paths(folder);
    let [.., report] = outputs(&paths);
    Ok(report.write(page)?)
}
