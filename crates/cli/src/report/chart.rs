//! A chart of lines with bands, as SVG.
//!
//! The drawing is whole in itself: every colour is an attribute, so that any program can show it, and a page can still
//! give other ones by its style. The legend lies below the chart proper; a page that has its own shows the drawing
//! without it.

use super::drawing::{Drawing, WIDTH};
pub(crate) use super::frame::ChartAxis;
use super::frame::{BOTTOM, Entry, Frame, HEIGHT, LEFT, Look, RIGHT, TOP, write_legend};
use super::mapping::{Mapping, range};
use super::style::Style;
use super::ticks::Scale;
use std::fmt::Write;

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
    let _ = Frame::new((&chart.x, &x), (&chart.y, &y)).write(&mut body);
    for (place, (line, points)) in lines.iter().enumerate() {
        let places: Vec<(f64, [f64; 3])> = points
            .iter()
            .map(|p| (x.at(p.x), [y.at(p.y), y.at(below(p)), y.at(p.hi)]))
            .collect();
        let _ = write_line(&mut body, line, &places, place, lines.len());
    }
    let entries = chart.lines.iter().map(|line| Entry {
        style: Style { index: line.style },
        look: Look::Line,
        label: &line.label,
    });
    let legend_height = write_legend(&mut body, entries);
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

/// A line with its band and markers; `place` of `all` keeps markers of different lines apart.
fn write_line(
    out: &mut String,
    line: &Line,
    places: &[(f64, [f64; 3])],
    place: usize,
    all: usize,
) -> std::fmt::Result {
    let style = Style { index: line.style };
    out.push_str(&style.open());
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

#[cfg(test)]
mod tests {
    use super::super::ticks::Unit;
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
