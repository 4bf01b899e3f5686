//! What charts have around their data: grid, axes, ticks, titles, legend.

use super::drawing::WIDTH;
use super::mapping::Mapping;
use super::style::Style;
use super::text::{cut, escape};
use super::ticks::{Scale, Ticks, Unit, at_values, ticks};
use std::fmt::Write;

pub(super) const HEIGHT: f64 = 292.0;
pub(super) const LEFT: f64 = 52.0;
pub(super) const RIGHT: f64 = 14.0;
pub(super) const TOP: f64 = 34.0;
pub(super) const BOTTOM: f64 = 44.0;

/// What an axis shows.
pub(crate) struct ChartAxis {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
}

/// Both axes, with where their values are.
pub(super) struct Frame<'a> {
    x: (&'a ChartAxis, &'a Mapping, Ticks),
    y: (&'a ChartAxis, &'a Mapping, Ticks),
}

impl<'a> Frame<'a> {
    /// With ticks at round values.
    pub(super) fn new(x: (&'a ChartAxis, &'a Mapping), y: (&'a ChartAxis, &'a Mapping)) -> Self {
        let with_ticks = |(axis, mapping): (&'a ChartAxis, &'a Mapping)| {
            let ticks = ticks(mapping.lo, mapping.hi, 5, mapping.scale, axis.unit);
            (axis, mapping, ticks)
        };
        Frame {
            x: with_ticks(x),
            y: with_ticks(y),
        }
    }

    /// With ticks below these values instead, where only few are measured.
    pub(super) fn with_ticks_at(mut self, values: &[f64]) -> Self {
        if !values.is_empty() {
            self.x.2 = at_values(values);
        }
        self
    }

    /// Grid, axis, ticks and texts.
    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let ((_, x, x_ticks), (_, y, y_ticks)) = (&self.x, &self.y);
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        write!(
            out,
            "<g class=\"chart-grid\" stroke=\"#e4e6ea\" stroke-width=\"1\">"
        )?;
        for tick in &y_ticks.ticks {
            let at = y.at(tick.value);
            write!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>"
            )?;
        }
        write!(
            out,
            "</g><g class=\"chart-axis\" stroke=\"#9aa0aa\" stroke-width=\"1\">"
        )?;
        write!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>"
        )?;
        for tick in &x_ticks.ticks {
            let at = x.at(tick.value);
            write!(
                out,
                "<line x1=\"{at:.1}\" y1=\"{bottom}\" x2=\"{at:.1}\" y2=\"{}\"/>",
                bottom + 4.0
            )?;
        }
        write!(out, "</g>")?;
        self.write_texts(out)
    }

    /// What stands beside the ticks, and the titles.
    fn write_texts(&self, out: &mut String) -> std::fmt::Result {
        let ((x_axis, x, x_ticks), (y_axis, y, y_ticks)) = (&self.x, &self.y);
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        write!(
            out,
            "<g class=\"chart-text\" fill=\"#5b626e\" font-size=\"11\">"
        )?;
        for tick in &y_ticks.ticks {
            let at = y.at(tick.value) + 3.8;
            write!(
                out,
                "<text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 7.0,
                tick.text
            )?;
        }
        let mut free_from = 0.0;
        for tick in &x_ticks.ticks {
            let at = x.at(tick.value);
            let half = 3.2 * tick.text.chars().count() as f64;
            // Texts that would touch are left out; logarithmic ticks come close.
            if at - half < free_from {
                continue;
            }
            free_from = at + half + 5.0;
            // The last one stays within the drawing, in the larger letters of small screens too.
            let at = at.min(WIDTH - 1.2 * half - 1.0);
            write!(
                out,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                tick.text
            )?;
        }
        let middle = (LEFT + right) / 2.0;
        write!(
            out,
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>",
            HEIGHT - 8.0,
            with_unit(&x_axis.title, x_ticks)
        )?;
        write!(
            out,
            "<text class=\"chart-title\" x=\"8\" y=\"17\" font-size=\"13.5\" font-weight=\"600\" fill=\"#1d2127\">{}</text>",
            with_unit(&y_axis.title, y_ticks)
        )
    }
}

fn with_unit(title: &str, ticks: &Ticks) -> String {
    match ticks.unit {
        Some(unit) => escape(&format!("{title} ({unit})")),
        None => escape(title),
    }
}

/// How a line of the legend shows what it names.
pub(super) enum Look {
    Line,
    /// A place on the x axis.
    Upright,
}

/// A line of the legend.
pub(super) struct Entry<'a> {
    pub(super) style: Style,
    pub(super) look: Look,
    pub(super) label: &'a str,
}

/// The legend, in rows below the chart; gives the height that it takes.
pub(super) fn write_legend<'a>(out: &mut String, entries: impl Iterator<Item = Entry<'a>>) -> f64 {
    let (mut x, mut y) = (LEFT, HEIGHT + 12.0);
    out.push_str("<g class=\"chart-legend\" font-size=\"11\" fill=\"#1d2127\">");
    for Entry { style, look, label } in entries {
        let label = cut(label, 60);
        let width = 34.0 + 6.3 * label.chars().count() as f64 + 16.0;
        if x + width > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + 18.0);
        }
        let swatch = match look {
            Look::Line => style.swatch(x, y),
            Look::Upright => style.upright(x, y),
        };
        let _ = write!(
            out,
            "<g data-series=\"{}\"><g fill=\"currentColor\" color=\"{}\">{}</g><text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            style.index,
            style.colour(),
            swatch,
            x + 33.0,
            y + 4.0,
            escape(&label)
        );
        x += width;
    }
    out.push_str("</g>");
    y + 12.0 - HEIGHT
}
