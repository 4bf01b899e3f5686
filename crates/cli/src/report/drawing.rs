//! SVG elements, as a part of a page or as a file of their own.

use super::text::escape;

/// Every drawing is this wide: on a desk three stand side by side, and on a telephone one still can be read.
pub(super) const WIDTH: f64 = 440.0;

const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";

/// A chart as SVG elements.
pub(crate) struct Drawing {
    pub(super) description: String,
    pub(super) body: String,
    pub(super) height: f64,
    /// With the legend.
    pub(super) full_height: f64,
    /// What a script needs to find the value under a pointer.
    pub(super) geometry: String,
}

impl Drawing {
    /// A drawing of other elements, without a legend to be left out.
    pub(super) fn of(description: String, body: String, height: f64) -> Self {
        Drawing {
            description,
            body,
            height,
            full_height: height,
            geometry: String::new(),
        }
    }

    /// An SVG file of its own, on white.
    pub(crate) fn file(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {0}\" width=\"{WIDTH}\" height=\"{0}\" font-family=\"{FONT}\" role=\"img\"><title>{1}</title><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{2}</svg>\n",
            self.full_height,
            escape(&self.description),
            self.body
        )
    }

    /// An element of a page that has no script, with the legend.
    pub(crate) fn with_legend(&self) -> String {
        format!(
            "<svg class=\"chart whole\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"{FONT}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            self.full_height,
            escape(&self.description),
            self.body
        )
    }

    /// An element of a page, without the legend; `attributes` are added to it.
    pub(super) fn inline(&self, attributes: &str) -> String {
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" data-full-height=\"{}\" font-family=\"{FONT}\" role=\"img\" aria-label=\"{}\"{}{attributes}>{}</svg>",
            self.height,
            self.full_height,
            escape(&self.description),
            self.geometry,
            self.body
        )
    }
}
