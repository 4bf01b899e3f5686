//! Colours, dashes and markers that tell lines apart, also for the colour-blind and in print without colour.

/// After Okabe and Ito, without the yellow that white paper swallows.
pub(crate) const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#b8579b", "#b87b00", "#3d9bd9", "#3a3f47",
];

const DASHES: [&str; 6] = ["", "7 3", "2 2.5", "9 3 2 3", "13 4", "5 2 1.5 2 1.5 2"];

/// How line `index` looks.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub(crate) index: usize,
}

impl Style {
    /// The number of its colour: the page has other shades of the same ones for dark screens.
    pub(crate) fn colour_number(self) -> usize {
        self.index % COLOURS.len()
    }

    pub(crate) fn colour(self) -> &'static str {
        COLOURS[self.colour_number()]
    }

    /// The same colour comes again with another dash. Begins what is drawn of a series.
    pub(super) fn open(self) -> String {
        format!(
            "<g class=\"line c{}\" data-series=\"{}\" color=\"{}\">",
            self.colour_number(),
            self.index,
            self.colour()
        )
    }

    pub(crate) fn dash(self) -> String {
        match DASHES[(self.index + self.index / COLOURS.len()) % DASHES.len()] {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        }
    }

    /// A marker at a place, filled with the colour of what it stands in.
    pub(crate) fn marker(self, x: f64, y: f64) -> String {
        let polygon = |corners: &[(f64, f64)]| {
            let corner = |(dx, dy): &(f64, f64)| format!("{:.1},{:.1}", x + dx, y + dy);
            let points: Vec<String> = corners.iter().map(corner).collect();
            format!("<polygon points=\"{}\"/>", points.join(" "))
        };
        match self.index % 6 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.7\"/>"),
            1 => polygon(&[(-2.5, -2.5), (2.5, -2.5), (2.5, 2.5), (-2.5, 2.5)]),
            2 => polygon(&[(0.0, -3.4), (3.2, 2.3), (-3.2, 2.3)]),
            3 => polygon(&[(0.0, -3.6), (3.6, 0.0), (0.0, 3.6), (-3.6, 0.0)]),
            4 => polygon(&[(0.0, 3.4), (3.2, -2.3), (-3.2, -2.3)]),
            _ => polygon(&[
                (-3.4, -1.1),
                (-1.1, -1.1),
                (-1.1, -3.4),
                (1.1, -3.4),
                (1.1, -1.1),
                (3.4, -1.1),
                (3.4, 1.1),
                (1.1, 1.1),
                (1.1, 3.4),
                (-1.1, 3.4),
                (-1.1, 1.1),
                (-3.4, 1.1),
            ]),
        }
    }

    /// A short upright stripe, as legends show a place that is marked.
    pub(crate) fn upright(self, x: f64, y: f64) -> String {
        format!(
            "<line x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\" stroke=\"currentColor\" stroke-width=\"8\" stroke-opacity=\"0.22\"{3}/>",
            x + 13.0,
            y - 7.0,
            y + 7.0,
            self.dash()
        )
    }

    /// A short stretch of the line with its marker, as legends show it.
    pub(crate) fn swatch(self, x: f64, y: f64) -> String {
        format!(
            "<line x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" stroke-width=\"1.8\"{}/>{}",
            x,
            x + 26.0,
            self.dash(),
            self.marker(x + 13.0, y)
        )
    }
}
