//! A block of lines at the bottom of a terminal, drawn again in place.
//!
//! The cursor always rests on the line below the block, and nothing of the terminal's state is changed: whoever ends
//! the process, at whatever moment, is left with a terminal as it was.

use std::io::{IsTerminal, Write};

/// Whether a block can be drawn: the error output is a terminal that knows how to move its cursor.
pub(crate) fn can_draw() -> bool {
    let knows = std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
    std::io::stderr().is_terminal() && knows
}

/// Whether colours are wanted there: <https://no-color.org>.
pub(crate) fn has_colours() -> bool {
    can_draw() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How a stretch of a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Faint,
    Bright,
}

/// A line, in stretches. Every letter is one column wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(Vec<(Ink, String)>);

impl Line {
    /// How many columns it takes.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Adds a stretch.
    pub(super) fn add(&mut self, ink: Ink, text: impl Into<String>) {
        self.0.push((ink, text.into()));
    }

    /// Adds a bar of so many columns, of which this share is done.
    pub(super) fn add_bar(&mut self, share: f64, columns: usize) {
        let done = ((share * columns as f64) as usize).min(columns);
        self.add(Ink::Bright, "━".repeat(done));
        self.add(Ink::Faint, "─".repeat(columns - done));
    }

    /// Cuts it to so many columns.
    pub(super) fn cut(&mut self, columns: usize) {
        if self.width() <= columns {
            return;
        }
        let mut left = columns.saturating_sub(1);
        for (_, text) in &mut self.0 {
            *text = text.chars().take(left).collect();
            left -= text.chars().count();
        }
        let end = if columns > 0 { "…" } else { "" };
        self.add(Ink::Plain, end);
    }

    /// As a terminal gets it.
    fn paint(&self, colours: bool) -> String {
        let stretch = |(ink, text): &(Ink, String)| match ink {
            Ink::Faint if colours => format!("\x1b[2m{text}\x1b[0m"),
            Ink::Bright if colours => format!("\x1b[36m{text}\x1b[0m"),
            _ => text.clone(),
        };
        self.0.iter().map(stretch).collect()
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        self.paint(false)
    }
}

/// A letter of a name that somebody chose: one column wide, and nothing that steers a terminal.
pub(super) fn narrow(c: char) -> char {
    let accents = '\u{300}'..='\u{36f}';
    match c {
        ' '..='~' | '\u{a1}'..='\u{52f}' if !accents.contains(&c) && c != '\u{ad}' => c,
        _ => '?',
    }
}

/// The block.
pub(super) struct Block {
    colours: bool,
    /// Columns of each line that stands there now.
    drawn: Vec<usize>,
}

impl Block {
    pub(super) fn new() -> Self {
        Block {
            colours: has_colours(),
            drawn: Vec::new(),
        }
    }

    /// Draws it anew. All of it is one write, and each line replaces what stood there: nothing flickers.
    pub(super) fn draw(&mut self, lines: &[Line], columns: usize) {
        let mut text = self.back(columns);
        for line in lines {
            text += &format!("{}\x1b[K\n", line.paint(self.colours));
        }
        // What was below, if it had more lines before.
        text += "\x1b[J";
        self.drawn = lines.iter().map(Line::width).collect();
        show(&text);
    }

    /// Takes it away.
    pub(super) fn clear(&mut self) {
        if !self.drawn.is_empty() {
            let (columns, _) = size();
            show(&format!("{}\x1b[J", self.back(columns)));
            self.drawn.clear();
        }
    }

    /// To where it begins: a terminal that has become narrower has folded its lines.
    fn back(&self, columns: usize) -> String {
        let rows = |width: &usize| width.div_ceil(columns.max(1)).max(1);
        match self.drawn.iter().map(rows).sum::<usize>() {
            0 => "\r".into(),
            n => format!("\r\x1b[{n}A"),
        }
    }
}

fn show(text: &str) {
    // A terminal that has gone away is no reason to stop.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Columns and rows of the terminal.
pub(super) fn size() -> (usize, usize) {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the request writes one `winsize`, which is ours.
    let asked = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) };
    match (asked, size.ws_col, size.ws_row) {
        (0, columns, rows) if columns > 0 && rows > 0 => (columns.into(), rows.into()),
        _ => (80, 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_its_columns() {
        let mut line = Line::default();
        line.add(Ink::Faint, "loss  ");
        line.add(Ink::Bright, "▇▅▃▁");
        for columns in 0..12 {
            let mut cut = line.clone();
            cut.cut(columns);
            assert_eq!(cut.width(), columns.min(10), "{cut:?}");
        }
        line.cut(8);
        assert_eq!(line.text(), "loss  ▇…");
        assert_eq!(line.paint(true), "\x1b[2mloss  \x1b[0m\x1b[36m▇\x1b[0m…");
    }
}
