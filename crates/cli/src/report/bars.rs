//! Bars that are cut by shares, one under the other, as SVG.

use super::drawing::{Drawing, WIDTH};
use super::style::COLOURS;
use super::text::{cut, escape};
use selvedge_run::format::count;
use std::fmt::Write;

const NAMES: f64 = 104.0;
const TOTALS: f64 = 56.0;
const ROW: f64 = 20.0;
const BAR: f64 = 14.0;

/// Hatches over the colours, so that parts can be told apart without them.
const HATCHES: [&str; 4] = [
    "",
    "<path d=\"M0 6 6 0\"/>",
    "<path d=\"M3 0V6\"/>",
    "<path d=\"M0 0 6 6M0 6 6 0\"/>",
];

/// A bar and how much of each part it has.
pub(super) struct Bar<'a> {
    pub(super) name: &'a str,
    pub(super) parts: &'a [u64],
}

/// Draws bars of equal length. `parts` names what they are cut into.
pub(super) fn draw(description: &str, parts: &[String], bars: &[Bar<'_>]) -> Drawing {
    let mut body = String::new();
    // Writing to a string cannot fail.
    let _ = write_hatches(&mut body);
    let top = write_legend(&mut body, parts);
    for (i, bar) in bars.iter().enumerate() {
        let _ = write_bar(&mut body, parts, bar, top + ROW * i as f64);
    }
    Drawing::of(
        description.into(),
        body,
        top + ROW * bars.len() as f64 + 2.0,
    )
}

fn write_hatches(out: &mut String) -> std::fmt::Result {
    write!(out, "<defs>")?;
    for (i, lines) in HATCHES.iter().enumerate().skip(1) {
        write!(
            out,
            "<pattern id=\"hatch-{i}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><g stroke=\"#ffffff\" stroke-opacity=\"0.55\" stroke-width=\"1.2\" fill=\"none\">{lines}</g></pattern>"
        )?;
    }
    write!(out, "</defs>")
}

/// The rectangle of a part, in its colour and its hatch.
fn part(
    out: &mut String,
    class: usize,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    title: &str,
) {
    let colour = class % COLOURS.len();
    let place = format!("x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\"");
    let _ = write!(
        out,
        "<g class=\"c{colour}\" color=\"{}\"><title>{}</title><rect {place} fill=\"currentColor\"/>",
        COLOURS[colour],
        escape(title)
    );
    let hatch = class % HATCHES.len();
    if hatch > 0 {
        let _ = write!(out, "<rect {place} fill=\"url(#hatch-{hatch})\"/>");
    }
    out.push_str("</g>");
}

/// The names of the parts, in rows; gives where the bars may begin.
fn write_legend(out: &mut String, parts: &[String]) -> f64 {
    let (mut x, mut y) = (NAMES, 4.0);
    for (class, name) in parts.iter().enumerate() {
        let name = cut(name, 40);
        let width = 18.0 + 6.3 * name.chars().count() as f64 + 14.0;
        if x + width > WIDTH && x > NAMES {
            (x, y) = (NAMES, y + 17.0);
        }
        part(out, class, (x, y), (12.0, 12.0), &name);
        let _ = write!(
            out,
            "<text class=\"chart-label\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" fill=\"#1d2127\">{}</text>",
            x + 18.0,
            y + 10.0,
            escape(&name)
        );
        x += width;
    }
    y + 26.0
}

fn write_bar(out: &mut String, parts: &[String], bar: &Bar<'_>, top: f64) -> std::fmt::Result {
    let middle = top + BAR / 2.0 + 4.0;
    let total: u64 = bar.parts.iter().sum();
    write!(
        out,
        "<g class=\"chart-text\" fill=\"#5b626e\" font-size=\"11\"><text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text><text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text></g>",
        NAMES - 8.0,
        escape(&cut(bar.name, 16)),
        WIDTH - 4.0,
        count(total)
    )?;
    let room = WIDTH - NAMES - TOTALS;
    let mut before = 0;
    for (class, n) in bar.parts.iter().enumerate().filter(|(_, n)| **n > 0) {
        let place = |n: u64| NAMES + room * n as f64 / total as f64;
        let from = place(before);
        before += n;
        let name = parts.get(class).map_or("", String::as_str);
        let title = format!("{}, {name}: {} of {}", bar.name, count(*n), count(total));
        // A hair of the background between two parts, if there is room for it.
        let width = place(before) - from;
        part(
            out,
            class,
            (from, top),
            ((width - 1.0).max(width / 2.0), BAR),
            &title,
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_names_are_escaped() {
        let parts: Vec<String> = ["<no>", "yes"].map(Into::into).to_vec();
        let bars = [
            Bar {
                name: "north",
                parts: &[3, 1],
            },
            Bar {
                name: "nobody",
                parts: &[0, 0],
            },
        ];
        let file = draw("mix", &parts, &bars).file();
        assert!(
            file.contains("north, yes: 1 of 4") && file.contains("&lt;no&gt;"),
            "{file}"
        );
        assert!(!file.contains("NaN") && !file.contains("<no>"));
    }
}
