//! A chart of single measurements with error bars, as SVG: means over seeds at a few places, curves through them,
//! places that are marked. Whatever is not a mean over all seeds looks like it.

use super::drawing::{Drawing, WIDTH};
use super::frame::{BOTTOM, ChartAxis, Entry, Frame, HEIGHT, LEFT, Look, RIGHT, TOP, write_legend};
use super::mapping::{Mapping, range};
use super::style::Style;
use super::ticks::Scale;
use std::fmt::Write;

/// How much room is left beside the first and the last place, of all that there is.
const ASIDE: f64 = 0.03;

/// The height of a row's crosses, which stand for what nobody reached and lie above all values.
const CROSS: f64 = 10.0;

/// From this ratio on, values are shown on a logarithmic axis.
const WIDE: f64 = 8.0;

/// A chart to be drawn.
pub(crate) struct PointChart {
    /// What it shows, in a sentence, for those who cannot see it.
    pub(crate) description: String,
    pub(crate) x: ChartAxis,
    pub(crate) y: ChartAxis,
    /// Where the x axis has ticks; without any, at round values.
    pub(crate) x_ticks: Vec<f64>,
    pub(crate) rows: Vec<PointRow>,
    pub(crate) marks: Vec<Mark>,
}

/// Measurements that belong together.
pub(crate) struct PointRow {
    pub(crate) label: String,
    /// Its colour, dash and marker.
    pub(crate) style: usize,
    /// By rising x.
    pub(crate) points: Vec<Measured>,
    /// A curve, as points by rising x: a fitted one, or that which joins the means.
    pub(crate) curve: Vec<(f64, f64)>,
}

/// A mean over the seeds that got there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) x: f64,
    /// Mean and standard deviation, which one seed has not; nothing where no seed got there.
    pub(crate) y: Option<(f64, Option<f64>)>,
    /// How many seeds got there, of how many.
    pub(crate) reached: (usize, usize),
}

impl Measured {
    /// The mean over what each seed costs.
    pub(crate) fn of(x: f64, costs: &[Option<f64>]) -> Self {
        let there: Vec<f64> = costs.iter().flatten().copied().collect();
        let spread = (!there.is_empty()).then(|| selvedge_run::runs::mean_and_deviation(&there));
        Measured {
            x,
            y: spread,
            reached: (there.len(), costs.len()),
        }
    }

    /// Its mean, if it is one over all seeds.
    pub(crate) fn whole(&self) -> Option<f64> {
        let (mean, _) = self.y?;
        (self.reached.0 == self.reached.1).then_some(mean)
    }

    /// Where its bar ends; what a logarithmic axis has no place for is cut off.
    fn ends(&self, scale: Scale) -> Option<(f64, f64)> {
        let (mean, deviation) = self.y?;
        let deviation = deviation.unwrap_or_default();
        let low = mean - deviation;
        let low = match scale {
            Scale::Log if low <= 0.0 => mean,
            _ => low.max(0.0),
        };
        Some((low, mean + deviation))
    }
}

/// A place on the x axis that is pointed out by an upright stripe, which what lies on it can be seen through.
pub(crate) struct Mark {
    pub(crate) label: String,
    pub(crate) x: f64,
}

/// Whether values lie so far apart that a logarithmic axis shows them better.
pub(crate) fn scale_for(values: impl Iterator<Item = f64>) -> Scale {
    let (lo, hi) = values.fold((f64::INFINITY, 0.0), |(lo, hi), v| (v.min(lo), v.max(hi)));
    match lo > 0.0 && hi > WIDE * lo {
        true => Scale::Log,
        false => Scale::Linear,
    }
}

/// Draws a chart.
pub(crate) fn draw(chart: &PointChart) -> Drawing {
    let (x, y) = mappings(chart);
    let mut body = String::new();
    // Writing to a string cannot fail.
    let frame = Frame::new((&chart.x, &x), (&chart.y, &y)).with_ticks_at(&chart.x_ticks);
    let _ = frame.write(&mut body);
    for (i, mark) in chart.marks.iter().enumerate() {
        let _ = write_mark(&mut body, mark_style(i), x.at(mark.x));
    }
    for (i, row) in chart.rows.iter().enumerate() {
        let _ = write_row(&mut body, row, i, &x, &y);
    }
    let rows = chart.rows.iter().map(|row| Entry {
        style: Style { index: row.style },
        look: Look::Line,
        label: &row.label,
    });
    let marks = chart.marks.iter().enumerate().map(|(i, mark)| Entry {
        style: mark_style(i),
        look: Look::Upright,
        label: &mark.label,
    });
    let legend = write_legend(&mut body, rows.chain(marks));
    let full_height = HEIGHT + legend + 16.0;
    let _ = write_caption(&mut body, chart, full_height - 10.0);
    Drawing {
        description: chart.description.clone(),
        body,
        height: full_height,
        full_height,
        geometry: String::new(),
    }
}

/// Marks are grey, the first in one piece.
fn mark_style(index: usize) -> Style {
    const GREY: usize = 6;
    const COLOURS: usize = super::style::COLOURS.len();
    Style {
        index: GREY + COLOURS * index,
    }
}

fn mappings(chart: &PointChart) -> (Mapping, Mapping) {
    let points = || chart.rows.iter().flat_map(|row| &row.points);
    let across = points().map(|p| p.x).chain(chart.marks.iter().map(|m| m.x));
    let (lo, hi) = range(across, chart.x.scale, true);
    let across = match chart.x.scale {
        Scale::Linear => (lo - ASIDE * (hi - lo), hi + ASIDE * (hi - lo)),
        Scale::Log => {
            let factor = libm::pow(hi / lo, ASIDE);
            (lo / factor, hi * factor)
        }
    };
    let scale = chart.y.scale;
    let bars = points().filter_map(|p| p.ends(scale));
    let curves = chart
        .rows
        .iter()
        .flat_map(|row| &row.curve)
        .map(|(_, y)| *y);
    let values = bars.flat_map(|(lo, hi)| [lo, hi]).chain(curves);
    let upwards = match scale {
        // Lengths above zero can be compared.
        Scale::Linear => {
            let (_, hi) = range(values.chain([0.0]), scale, false);
            (0.0, hi)
        }
        Scale::Log => {
            let (lo, hi) = range(values, scale, false);
            (lo / 1.15, hi * 1.15)
        }
    };
    let top = match points().any(|p| p.y.is_none()) {
        true => TOP + CROSS * (chart.rows.len() as f64 + 0.5),
        false => TOP,
    };
    (
        Mapping::new(chart.x.scale, across, (LEFT, WIDTH - RIGHT)),
        Mapping::new(scale, upwards, (HEIGHT - BOTTOM, top)),
    )
}

fn write_mark(out: &mut String, style: Style, x: f64) -> std::fmt::Result {
    write!(
        out,
        "<g class=\"c{}\" color=\"{}\"><line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"currentColor\" stroke-width=\"8\" stroke-opacity=\"0.22\"{}/></g>",
        style.colour_number(),
        style.colour(),
        HEIGHT - BOTTOM,
        style.dash()
    )
}

/// A row's curve, bars and markers. `place` keeps the crosses of different rows apart.
fn write_row(
    out: &mut String,
    row: &PointRow,
    place: usize,
    x: &Mapping,
    y: &Mapping,
) -> std::fmt::Result {
    let style = Style { index: row.style };
    out.push_str(&style.open());
    if row.curve.len() > 1 {
        let points = row.curve.iter();
        let points: Vec<String> = points
            .map(|(a, b)| format!("{:.1},{:.1}", x.at(*a), y.at(*b)))
            .collect();
        write!(
            out,
            "<polyline fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\" stroke-linejoin=\"round\"{} points=\"{}\"/>",
            style.dash(),
            points.join(" ")
        )?;
    }
    for point in &row.points {
        let at = x.at(point.x);
        match (point.y, point.ends(y.scale)) {
            (Some((mean, _)), Some((lo, hi))) => {
                write_bar(out, at, (y.at(lo), y.at(hi)))?;
                // Rows that lie close have their texts on different sides.
                let aside = if place.is_multiple_of(2) { 11.0 } else { -4.0 };
                write_marker(out, style, (at, y.at(mean)), point, aside)?;
            }
            _ => write_cross(out, at, TOP + CROSS * (0.5 + place as f64))?,
        }
    }
    write!(out, "</g>")
}

fn write_bar(out: &mut String, x: f64, (lo, hi): (f64, f64)) -> std::fmt::Result {
    if (lo - hi).abs() < 1.0 {
        return Ok(());
    }
    let (left, right) = (x - 2.5, x + 2.5);
    write!(
        out,
        "<path d=\"M{x:.1} {lo:.1}V{hi:.1}M{left:.1} {lo:.1}H{right:.1}M{left:.1} {hi:.1}H{right:.1}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.65\" stroke-width=\"1\"/>"
    )
}

/// Filled if all seeds got there, else hollow with how many did, so far below.
fn write_marker(
    out: &mut String,
    style: Style,
    (x, y): (f64, f64),
    point: &Measured,
    aside: f64,
) -> std::fmt::Result {
    let marker = style.marker(x, y);
    if point.whole().is_some() {
        return write!(out, "<g fill=\"currentColor\">{marker}</g>");
    }
    let (reached, all) = point.reached;
    write!(
        out,
        "<g fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.2\">{marker}</g><text class=\"chart-text\" fill=\"#5b626e\" font-size=\"8.5\" x=\"{:.1}\" y=\"{:.1}\">{reached}/{all}</text>",
        x + 4.0,
        y + aside
    )
}

fn write_cross(out: &mut String, x: f64, y: f64) -> std::fmt::Result {
    let (left, right, top, bottom) = (x - 2.6, x + 2.6, y - 2.6, y + 2.6);
    write!(
        out,
        "<path d=\"M{left:.1} {top:.1}L{right:.1} {bottom:.1}M{left:.1} {bottom:.1}L{right:.1} {top:.1}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.4\"/>"
    )
}

/// What the shapes mean, as far as there are any.
fn write_caption(out: &mut String, chart: &PointChart, y: f64) -> std::fmt::Result {
    let points = || chart.rows.iter().flat_map(|row| &row.points);
    let mut texts = Vec::new();
    if points().any(|p| p.reached.0 > 1) {
        texts.push("bars: standard deviation");
    }
    if points().any(|p| p.y.is_some() && p.whole().is_none()) {
        texts.push("hollow: not all seeds");
    }
    if points().any(|p| p.y.is_none()) {
        texts.push("×: none");
    }
    write!(
        out,
        "<text class=\"chart-text\" fill=\"#5b626e\" font-size=\"10\" x=\"{LEFT}\" y=\"{y:.1}\">{}</text>",
        texts.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::ticks::Unit;
    use super::*;

    fn chart(costs: &[&[Option<f64>]], scale: Scale) -> PointChart {
        let points: Vec<Measured> = (1..)
            .zip(costs)
            .map(|(x, c)| Measured::of(f64::from(x), c))
            .collect();
        let curve = points.iter().filter_map(|p| Some((p.x, p.whole()?)));
        PointChart {
            description: "a <b>".into(),
            x: ChartAxis {
                title: "P = Q".into(),
                unit: Unit::Number,
                scale: Scale::Linear,
            },
            y: ChartAxis {
                title: "bytes & more".into(),
                unit: Unit::Bytes,
                scale,
            },
            x_ticks: vec![1.0, 2.0],
            rows: vec![PointRow {
                label: "<row>".into(),
                style: 0,
                curve: curve.collect(),
                points,
            }],
            marks: vec![Mark {
                label: "chosen".into(),
                x: 2.0,
            }],
        }
    }

    #[test]
    fn what_not_all_seeds_reach_looks_like_it() {
        let all = [Some(2e6), Some(3e6)];
        let file = |costs: &[&[Option<f64>]]| draw(&chart(costs, Scale::Linear)).file();
        let whole = file(&[&all, &all]);
        assert!(
            !whole.contains("hollow") && !whole.contains("1/2"),
            "{whole}"
        );
        assert!(whole.contains("standard deviation") && whole.contains("chosen"));
        let partly = file(&[&all, &[Some(1e6), None]]);
        assert!(
            partly.contains(">1/2<") && partly.contains("hollow"),
            "{partly}"
        );
        assert!(!partly.contains("×: none"));
        let never = file(&[&all, &[None, None]]);
        assert!(never.contains("×: none"), "{never}");
    }

    #[test]
    fn numbers_are_finite_and_texts_escaped() {
        let few: &[&[&[Option<f64>]]] = &[
            &[],
            &[&[None]],
            &[&[Some(0.0)]],
            &[&[Some(5.0)]],
            &[&[Some(1.0), Some(1e9)], &[None, Some(3.0)]],
        ];
        for (costs, scale) in few
            .iter()
            .flat_map(|c| [(c, Scale::Linear), (c, Scale::Log)])
        {
            let zero = costs.iter().any(|c| c.contains(&Some(0.0)));
            if zero && scale == Scale::Log {
                continue; // nobody chooses it then
            }
            let file = draw(&chart(costs, scale)).file();
            assert!(
                !file.contains("NaN") && !file.contains("inf"),
                "{costs:?} {file}"
            );
            assert!(file.contains("&lt;row&gt;") && file.contains("bytes &amp; more"));
        }
        assert_eq!(scale_for([1.0, 7.0].into_iter()), Scale::Linear);
        assert_eq!(scale_for([1.0, 9.0].into_iter()), Scale::Log);
        assert_eq!(scale_for([0.0, 9.0].into_iter()), Scale::Linear);
        assert_eq!(scale_for(std::iter::empty()), Scale::Linear);
    }
}
