//! The curves, to look at.

use super::{Curves, Part, text};
use crate::report::chart::{Chart, ChartAxis, Line, Place, draw};
use crate::report::plain_page;
use crate::report::text::escape;
use crate::report::ticks::{Scale, Unit};
use selvedge_core::assess::Point;

/// One chart: its title, what it is about, its axes and its lines.
struct Figure {
    title: &'static str,
    about: &'static str,
    axes: [&'static str; 2],
    points: fn(&Curves) -> Vec<Place>,
    /// A line to compare with.
    diagonal: Option<&'static str>,
}

const FIGURES: [Figure; 3] = [
    Figure {
        title: "ROC",
        about: "Sensitivity against 1 − specificity. Higher is better; guessing lies on the diagonal.",
        axes: ["false positive rate", "true positive rate"],
        points: |curves| places(&curves.roc),
        diagonal: Some("guessing"),
    },
    Figure {
        title: "Precision and recall",
        about: "Positive predictive value against sensitivity.",
        axes: ["recall", "precision"],
        points: |curves| places(&curves.precision_recall),
        diagonal: None,
    },
    Figure {
        title: "Calibration",
        about: "Samples grouped by predicted probability, and the share of each group that has the class. On the diagonal, predicted and observed agree.",
        axes: ["predicted probability", "observed share"],
        points: |curves| {
            let bins = curves.reliability.iter();
            bins.map(|bin| place(bin.said, bin.observed)).collect()
        },
        diagonal: Some("perfect calibration"),
    },
];

/// A page with the curves of the last part, and everything as text.
pub(crate) fn page(
    title: &str,
    about: &[String],
    parts: &[Part],
    classes: &[String],
    confidence: f64,
    by_validation: &[&str],
) -> String {
    let mut body = format!(
        "<header><p class=\"eyebrow\">Selvedge evaluation</p><h1>{}</h1>",
        escape(title)
    );
    for line in about {
        body += &format!("<p class=\"lead\">{}</p>", escape(line));
    }
    body += "</header>\n";
    if let Some(part) = parts.last() {
        body += "<div class=\"panel shown\">\n";
        for figure in &FIGURES {
            body += &format!(
                "<section><h2>{} on {}</h2><p class=\"about\">{}{}</p><figure>{}</figure></section>\n",
                figure.title,
                escape(&part.name),
                figure.about,
                positive(part),
                figure.svg(part)
            );
        }
        body += "</div>\n";
    }
    body += &format!(
        "<section><h2>Numbers</h2><pre>{}</pre></section>\n",
        escape(&text(parts, classes, confidence, by_validation))
    );
    plain_page(title, &body)
}

/// What the curves are about.
fn positive(part: &Part) -> String {
    let class = part.positive.as_ref();
    class.map_or(String::new(), |class| {
        format!(" The positive class is {}.", escape(&format!("{class:?}")))
    })
}

impl Figure {
    fn svg(&self, part: &Part) -> String {
        let mut lines: Vec<Line> = part
            .curves
            .iter()
            .enumerate()
            .map(|(style, curves)| Line {
                label: curves.class.clone(),
                style,
                points: (self.points)(curves),
            })
            .collect();
        if let Some(label) = self.diagonal {
            lines.push(Line {
                label: label.into(),
                style: lines.len(),
                points: vec![place(0.0, 0.0), place(1.0, 1.0)],
            });
        }
        let axis = |title: &str| ChartAxis {
            title: title.into(),
            scale: Scale::Linear,
            unit: Unit::Number,
        };
        draw(&Chart {
            description: format!("{}: {}", self.title, self.about),
            x: axis(self.axes[0]),
            y: axis(self.axes[1]),
            lines,
        })
        .with_legend()
    }
}

fn places(points: &[Point]) -> Vec<Place> {
    points.iter().map(|p| place(p.x, p.y)).collect()
}

fn place(x: f64, y: f64) -> Place {
    Place { x, y, lo: y, hi: y }
}
