//! `selvedge report`: runs as one HTML page that needs nothing else.
//!
//! ```text
//! runs::series ──► figures (charts as SVG) ──┬──► page: figures, tables, styles, script, values to point at
//!                  tables (HTML and CSV) ────┘
//!                  figures ──► SVG files
//! ```
//!
//! Whatever comes from a file is escaped where it is written. The page's security policy lets only its own script run,
//! and lets nothing be loaded.

mod bars;
pub(crate) mod chart;
mod drawing;
mod figures;
mod frame;
mod mapping;
mod needs;
mod notes;
mod page;
pub(crate) mod points;
mod style;
mod table;
mod tables;
pub(crate) mod text;
pub(crate) mod ticks;

pub(crate) use page::{SHARED_SCRIPT, page, plain_page, style_sheet};
pub(crate) use tables::{ending, ends, kind};

use selvedge_run::runs::{Axis, Series};

/// The charts as files of their own: names and contents.
pub(crate) fn files(series: &[Series]) -> Vec<(String, String)> {
    let figures = figures::figures(series);
    let charts = figures.iter().map(|f| (f.file(), f.drawing.file()));
    let labels = figures::label_mix(series);
    let labels = labels.map(|drawing| ("labels.svg".to_owned(), drawing.file()));
    charts.chain(labels).collect()
}

/// One chart as a file of its own; with another title below it, where the numbers of the axis are others.
pub(crate) fn chart_file(
    series: &[Series],
    metric: &str,
    axis: Axis,
    title: Option<&str>,
) -> String {
    figures::figure(series, metric, axis, title).map_or_else(String::new, |drawing| drawing.file())
}
