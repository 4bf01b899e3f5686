//! A chart of lines with bands, as SVG.
//!
//! The drawing is whole in itself: every colour is an attribute, so that any program can show it, and a page can
//! still give other ones by its style. The legend lies below the chart proper; a page that has its own shows the drawing
//! without it.

use super::drawing::{Drawing, WIDTH};
use super::mapping::{Mapping, range};
use super::style::Style;
use super::text::escape;
use super::ticks::{Scale, Ticks, Unit, ticks};
use std::fmt::Write;

const HEIGHT: f64 = 292.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;

/// Markers on a line, so that it can be told apart without colour.
const MARKERS: usize = 7;

/// A chart to be drawn.
pub(crate) struct Chart {
    /// What it shows, in a sentence, for those who cannot see it.
    pub(crate) description: String,
    pub(crate) x: ChartAxis,
    pub(crate) y: ChartAxis,
    pub(crate) lines: Vec<Line>,
}

pub(crate) struct ChartAxis {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
}

pub(crate) struct Line {
    pub(crate) label: String,
    /// Its colour, dash and marker: the same number looks the same in every chart.
    pub(crate) style: usize,
    /// By rising x.
    pub(crate) points: Vec<Place>,
}

/// A point of a line, and how far its band reaches; a line without a band has `lo` = `y` = `hi`.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

/// Draws a chart. Points that a logarithmic axis has no place for are left out.
pub(crate) fn draw(chart: &Chart) -> Drawing {
    let has_place = |p: &Place| {
        let fits = |scale, v: f64| v.is_finite() && (scale == Scale::Linear || v > 0.0);
        fits(chart.x.scale, p.x) && fits(chart.y.scale, p.y) && p.lo.is_finite() && p.hi.is_finite()
    };
    let lines: Vec<(&Line, Vec<Place>)> = chart
        .lines
        .iter()
        .map(|line| {
            (
                line,
                line.points.iter().copied().filter(has_place).collect(),
            )
        })
        .collect();
    let points = || lines.iter().flat_map(|(_, points)| points);
    let below = |p: &Place| match chart.y.scale {
        Scale::Log if p.lo <= 0.0 => p.y,
        _ => p.lo,
    };
    let across = range(points().map(|p| p.x), chart.x.scale, true);
    let upwards = range(
        points().flat_map(|p| [below(p), p.hi]),
        chart.y.scale,
        false,
    );
    let x = Mapping::new(chart.x.scale, across, (LEFT, WIDTH - RIGHT));
    let y = Mapping::new(chart.y.scale, upwards, (HEIGHT - BOTTOM, TOP));
    let mut body = String::new();
    let _ = write_frame(&mut body, chart, &x, &y);
    for (place, (line, points)) in lines.iter().enumerate() {
        let places: Vec<(f64, [f64; 3])> = points
            .iter()
            .map(|p| (x.at(p.x), [y.at(p.y), y.at(below(p)), y.at(p.hi)]))
            .collect();
        let _ = write_line(&mut body, line, &places, place, lines.len());
    }
    let legend_height = write_legend(&mut body, &chart.lines);
    Drawing {
        description: chart.description.clone(),
        body,
        height: HEIGHT,
        full_height: HEIGHT + legend_height,
        geometry: geometry(&x, &y),
    }
}

/// What a script needs to find values under a pointer.
fn geometry(x: &Mapping, y: &Mapping) -> String {
    format!(
        " data-plot=\"{LEFT} {TOP} {} {}\" data-x=\"{} {}\" data-y=\"{} {}\" data-scales=\"{} {}\"",
        WIDTH - LEFT - RIGHT,
        HEIGHT - TOP - BOTTOM,
        x.lo,
        x.hi,
        y.lo,
        y.hi,
        scale_name(x.scale),
        scale_name(y.scale),
    )
}

fn scale_name(scale: Scale) -> &'static str {
    match scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
    }
}

fn with_unit(title: &str, ticks: &Ticks) -> String {
    match ticks.unit {
        Some(unit) => escape(&format!("{title} ({unit})")),
        None => escape(title),
    }
}

/// Grid, axis, ticks and texts.
fn write_frame(out: &mut String, chart: &Chart, x: &Mapping, y: &Mapping) -> std::fmt::Result {
    let x_ticks = ticks(x.lo, x.hi, 5, x.scale, chart.x.unit);
    let y_ticks = ticks(y.lo, y.hi, 5, y.scale, chart.y.unit);
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
    write_texts(out, chart, (x, &x_ticks), (y, &y_ticks))
}

/// What stands beside the ticks, and the titles.
fn write_texts(
    out: &mut String,
    chart: &Chart,
    (x, x_ticks): (&Mapping, &Ticks),
    (y, y_ticks): (&Mapping, &Ticks),
) -> std::fmt::Result {
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
        with_unit(&chart.x.title, x_ticks)
    )?;
    write!(
        out,
        "<text class=\"chart-title\" x=\"8\" y=\"17\" font-size=\"13.5\" font-weight=\"600\" fill=\"#1d2127\">{}</text>",
        with_unit(&chart.y.title, y_ticks)
    )
}

/// A line with its band and markers; `place` of `all` keeps markers of different lines apart.
fn write_line(
    out: &mut String,
    line: &Line,
    places: &[(f64, [f64; 3])],
    place: usize,
    all: usize,
) -> std::fmt::Result {
    let style = Style { index: line.style };
    write!(
        out,
        "<g class=\"line c{}\" data-series=\"{}\" color=\"{}\">",
        style.colour_number(),
        line.style,
        style.colour()
    )?;
    let path = |values: &mut dyn Iterator<Item = (f64, f64)>| {
        let points: Vec<String> = values.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        points.join(" ")
    };
    if places.iter().any(|(_, [_, lo, hi])| (lo - hi).abs() > 0.05) {
        let upper = path(&mut places.iter().map(|(x, [_, _, hi])| (*x, *hi)));
        let lower = path(&mut places.iter().rev().map(|(x, [_, lo, _])| (*x, *lo)));
        write!(
            out,
            "<polygon class=\"band\" fill=\"currentColor\" fill-opacity=\"0.15\" points=\"{upper} {lower}\"/>"
        )?;
    }
    if places.len() > 1 {
        write!(
            out,
            "<polyline fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{} points=\"{}\"/>",
            style.dash(),
            path(&mut places.iter().map(|(x, [y, ..])| (*x, *y)))
        )?;
    }
    write!(out, "<g fill=\"currentColor\">")?;
    let every = places.len().div_ceil(MARKERS).max(1);
    for (x, [y, ..]) in places
        .iter()
        .skip(every * place / all.max(1))
        .step_by(every)
    {
        out.push_str(&style.marker(*x, *y));
    }
    write!(out, "</g></g>")
}

/// The legend, in rows below the chart; gives the height that it takes.
fn write_legend(out: &mut String, lines: &[Line]) -> f64 {
    let (mut x, mut y) = (LEFT, HEIGHT + 12.0);
    out.push_str("<g class=\"chart-legend\" font-size=\"11\" fill=\"#1d2127\">");
    for line in lines {
        let style = Style { index: line.style };
        let label: String = match line.label.chars().count() {
            n if n > 60 => line.label.chars().take(59).chain(['…']).collect(),
            _ => line.label.clone(),
        };
        let width = 34.0 + 6.3 * label.chars().count() as f64 + 16.0;
        if x + width > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + 18.0);
        }
        let _ = write!(
            out,
            "<g data-series=\"{}\"><g fill=\"currentColor\" color=\"{}\">{}</g><text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            line.style,
            style.colour(),
            style.swatch(x, y),
            x + 33.0,
            y + 4.0,
            escape(&label)
        );
        x += width;
    }
    out.push_str("</g>");
    y + 12.0 - HEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, points: &[(f64, f64)]) -> Chart {
        let axis = |title: &str, scale| ChartAxis {
            title: title.into(),
            unit: Unit::Number,
            scale,
        };
        let place = |(x, y): &(f64, f64)| Place {
            x: *x,
            y: *y,
            lo: y - 0.1,
            hi: y + 0.1,
        };
        Chart {
            description: "a <b>".into(),
            x: axis("x & y", scale),
            y: axis("value", Scale::Linear),
            lines: (0..3)
                .map(|style| Line {
                    label: format!("<line {style}>"),
                    style,
                    points: points.iter().map(place).collect(),
                })
                .collect(),
        }
    }

    #[test]
    fn texts_are_escaped_and_numbers_finite() {
        let all: &[&[(f64, f64)]] = &[
            &[],
            &[(0.0, 1.0)],
            &[(0.0, 1.0), (10.0, 1.0)],
            &[(0.0, f64::NAN), (1.0, f64::INFINITY), (2.0, 3.0)],
            &[(1e-300, 1e300), (1e300, -1e300)],
        ];
        for (points, scale) in all
            .iter()
            .flat_map(|p| [(p, Scale::Linear), (p, Scale::Log)])
        {
            let file = draw(&chart(scale, points)).file();
            assert!(
                !file.contains("NaN") && !file.contains("inf"),
                "{points:?} {scale:?}: {file}"
            );
            assert!(file.contains("&lt;line 2&gt;") && file.contains("x &amp; y"));
            assert!(!file.contains("<line 2>"));
        }
    }

    #[test]
    fn a_logarithmic_axis_leaves_zero_out() {
        let drawn = draw(&chart(Scale::Log, &[(0.0, 1.0), (1.0, 2.0), (100.0, 3.0)]));
        assert!(
            drawn.geometry.contains("data-x=\"1 100\""),
            "{}",
            drawn.geometry
        );
    }

    #[test]
    fn lines_differ_without_colour() {
        let look = |index: usize| {
            let style = Style { index };
            (style.dash(), style.marker(0.0, 0.0), style.colour())
        };
        let seen: std::collections::BTreeSet<_> = (0..40).map(look).collect();
        assert_eq!(seen.len(), 40);
        let (a, b) = (look(0), look(1));
        assert!(a.0 != b.0 && a.1 != b.1 && a.2 != b.2);
    }
}
