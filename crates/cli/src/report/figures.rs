//! The charts of a report: every metric against every axis, and the groups' labels.

use super::bars::{self, Bar};
use super::chart::{Chart, ChartAxis, Line, Place, draw};
use super::drawing::Drawing;
use super::ticks::{Scale, Unit};
use selvedge_core::metrics::{METRICS, Metric};
use selvedge_core::outcome::Kind;
use selvedge_run::format::count;
use selvedge_run::manifest::DataInfo;
use selvedge_run::runs::{Axis, Point, Series};
use serde_json::{Value, json};

/// Points that the lines of a chart have together, about; a line has no fewer than [`FEWEST_POINTS`] of its own.
const ALL_POINTS: usize = 2_000;
const FEWEST_POINTS: usize = 60;
const MOST_POINTS: usize = 300;

/// Groups whose labels are drawn.
pub(super) const MOST_GROUPS: usize = 40;

/// A chart and what it is of.
pub(super) struct Figure {
    pub(super) metric: &'static Metric,
    pub(super) axis: Axis,
    pub(super) scale: Scale,
    pub(super) drawing: Drawing,
}

/// What the bands of a series are, by how many seeds there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Band {
    None,
    Range,
    Deviation,
}

impl Figure {
    /// The name of its file.
    pub(super) fn file(&self) -> String {
        let log = match self.scale {
            Scale::Linear => "",
            Scale::Log => "-log",
        };
        format!("{}-{}{log}.svg", self.metric.name, axis_name(self.axis))
    }
}

impl Band {
    pub(super) fn of(series: &Series) -> Self {
        match series.evaluated().count() {
            0 | 1 => Band::None,
            2 => Band::Range,
            _ => Band::Deviation,
        }
    }

    pub(super) fn around(self, point: &Point) -> (f64, f64) {
        match self {
            Band::None => (point.mean, point.mean),
            Band::Range => (point.min, point.max),
            Band::Deviation => {
                let deviation = point.deviation.unwrap_or_default();
                (point.mean - deviation, point.mean + deviation)
            }
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Band::None => "",
            Band::Range => "range",
            Band::Deviation => "deviation",
        }
    }
}

/// How an axis is called in attributes and file names.
pub(super) fn axis_name(axis: Axis) -> &'static str {
    match axis {
        Axis::Iterations => "iterations",
        Axis::Bytes => "bytes",
        Axis::Seconds => "seconds",
    }
}

/// What stands under a chart.
pub(super) fn axis_title(axis: Axis) -> (&'static str, Unit) {
    match axis {
        Axis::Iterations => ("iteration", Unit::Number),
        Axis::Bytes => ("bytes sent, mean per group", Unit::Bytes),
        Axis::Seconds => ("simulated time", Unit::Seconds),
    }
}

/// The metrics that any series has values of.
pub(super) fn measured(series: &[Series]) -> Vec<&'static Metric> {
    let has = |metric: &&Metric| {
        let curve = |s: &Series| s.curve(metric.name, Axis::Iterations);
        series.iter().any(|s| !curve(s).is_empty())
    };
    METRICS.iter().filter(has).collect()
}

/// The points of a line that are drawn, of as many as there are: evenly, with the first and the last.
fn thinned<T: Copy>(points: &[T], lines: usize) -> Vec<T> {
    let most = (ALL_POINTS / lines.max(1)).clamp(FEWEST_POINTS, MOST_POINTS);
    if points.len() <= most {
        return points.to_vec();
    }
    let at = |i: usize| points[i * (points.len() - 1) / (most - 1)];
    (0..most).map(at).collect()
}

/// Of how many evaluations how many are drawn, where that is not all.
pub(super) fn thinning(series: &[Series]) -> Option<(usize, usize)> {
    let longest = |s: &Series| s.curve("loss", Axis::Iterations).len();
    let all = series.iter().map(longest).max()?;
    let drawn = thinned(&vec![0; all], series.len()).len();
    (drawn < all).then_some((drawn, all))
}

/// Every metric against every axis, linear and logarithmic.
pub(super) fn figures(series: &[Series]) -> Vec<Figure> {
    let mut all = Vec::new();
    for axis in Axis::ALL {
        for scale in [Scale::Linear, Scale::Log] {
            for metric in measured(series) {
                all.push(Figure {
                    metric,
                    axis,
                    scale,
                    drawing: draw(&chart(series, metric, axis, scale)),
                });
            }
        }
    }
    all
}

/// One metric against one axis; nothing for a metric that there is not.
pub(super) fn figure(
    series: &[Series],
    metric: &str,
    axis: Axis,
    title: Option<&str>,
) -> Option<Drawing> {
    let metric = Metric::find(metric)?;
    let mut chart = chart(series, metric, axis, Scale::Linear);
    if let Some(title) = title {
        chart.x.title = title.into();
    }
    Some(draw(&chart))
}

fn chart(series: &[Series], metric: &Metric, axis: Axis, scale: Scale) -> Chart {
    let (title, unit) = axis_title(axis);
    let lines: Vec<Line> = series
        .iter()
        .enumerate()
        .map(|(style, s)| {
            let band = Band::of(s);
            let place = |p: Point| {
                let (lo, hi) = band.around(&p);
                Place {
                    x: p.x,
                    y: p.mean,
                    lo,
                    hi,
                }
            };
            let points = thinned(&s.curve(metric.name, axis), series.len());
            Line {
                label: s.label.clone(),
                style,
                points: points.into_iter().map(place).collect(),
            }
        })
        .collect();
    let ends = |line: &Line| {
        let end = line.points.last()?;
        Some(format!("{} ends at {:.4}", line.label, end.y))
    };
    let ends: Vec<String> = lines.iter().filter_map(ends).collect();
    Chart {
        description: format!("{} against {title}: {}", metric.title, ends.join(", ")),
        x: ChartAxis {
            title: title.into(),
            unit,
            scale,
        },
        y: ChartAxis {
            title: metric.title.into(),
            unit: Unit::Number,
            scale: Scale::Linear,
        },
        lines,
    }
}

/// The values behind the charts, for what is shown under a pointer: the same points that are drawn.
pub(super) fn values(series: &[Series]) -> Value {
    let metrics = measured(series);
    let of_series = |s: &Series| {
        let band = Band::of(s);
        let mut curves = serde_json::Map::new();
        for metric in &metrics {
            let along = |axis: Axis| thinned(&s.curve(metric.name, axis), series.len());
            let points = along(Axis::Iterations);
            let x = |axis: Axis| along(axis).iter().map(|p| short(p.x)).collect::<Vec<f64>>();
            let y = |p: &Point| {
                let (lo, hi) = band.around(p);
                [short(p.mean), short(lo), short(hi)]
            };
            let curve = json!({
                "iterations": points.iter().map(|p| p.t).collect::<Vec<u64>>(),
                "bytes": x(Axis::Bytes),
                "seconds": x(Axis::Seconds),
                "y": points.iter().map(y).collect::<Vec<_>>(),
                "seeds": points.iter().map(|p| p.seeds).collect::<Vec<_>>(),
            });
            curves.insert(metric.name.into(), curve);
        }
        json!({
            "label": s.label, "seeds": s.evaluated().count(), "band": band.name(), "curves": curves,
        })
    };
    Value::Array(series.iter().map(of_series).collect())
}

/// Seven digits are more than anybody reads off a chart.
fn short(x: f64) -> f64 {
    format!("{x:.6e}").parse().unwrap_or(x)
}

/// What the answers are called that runs count of each group; nothing where there are none to be told apart.
fn answers(data: &DataInfo) -> Option<Vec<String>> {
    let without_and_with = |names: &[String]| {
        let both = |name: &String| ["without", "with"].map(|with| format!("{with} {name}"));
        names.iter().flat_map(both).collect()
    };
    match data.outcome {
        Kind::Class => Some(data.classes.clone()),
        Kind::Labels | Kind::Survival => Some(without_and_with(&data.classes)),
        Kind::Quantity => None,
    }
}

/// The labels of the groups, as many as are drawn; nothing for runs that have not noted them.
pub(super) fn label_mix(series: &[Series]) -> Option<Drawing> {
    let data = &series.first()?.first().manifest.data;
    if data.labels.is_empty() {
        return None;
    }
    let answers = answers(data)?;
    let numbers: Vec<String> = (0..data.labels.len())
        .map(|m| format!("group {m}"))
        .collect();
    let name = |m: usize| data.groups.get(m).unwrap_or(&numbers[m]);
    let bars: Vec<Bar<'_>> = data
        .labels
        .iter()
        .take(MOST_GROUPS)
        .enumerate()
        .map(|(m, parts)| Bar {
            name: name(m),
            parts,
        })
        .collect();
    let description = format!(
        "Labels of {} groups, as shares of each group's {}",
        count(bars.len() as u64),
        match data.outcome {
            Kind::Labels => "known answers",
            _ => "samples",
        }
    );
    Some(bars::draw(&description, &answers, &bars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends_and_is_even() {
        let points: Vec<usize> = (0..10_000).collect();
        let few = thinned(&points, 1);
        assert_eq!(
            (few.len(), few[0], few[few.len() - 1]),
            (MOST_POINTS, 0, 9_999)
        );
        assert!(few.windows(2).all(|w| (33..=34).contains(&(w[1] - w[0]))));
        assert_eq!(thinned(&points, 1000).len(), FEWEST_POINTS);
        assert_eq!(thinned(&points[..50], 5), points[..50]);
    }
}
