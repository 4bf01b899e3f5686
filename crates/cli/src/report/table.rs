//! A table of a page, and the same as CSV.

use super::text::{csv_cell, escape};
use crate::comparison::table::Spread;
use std::fmt::Write;

/// A column: its title, and the names of the columns that it has as CSV.
pub(super) struct Column {
    pub(super) title: String,
    pub(super) csv: Vec<String>,
    pub(super) is_number: bool,
}

impl Column {
    pub(super) fn text(title: &str) -> Self {
        Column {
            title: title.into(),
            csv: vec![title.to_lowercase()],
            is_number: false,
        }
    }

    pub(super) fn number(title: &str, csv: Vec<String>) -> Self {
        Column {
            title: title.into(),
            csv,
            is_number: true,
        }
    }
}

/// A cell: what is shown, and what a program reads, with every digit.
#[derive(Clone, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) csv: Vec<String>,
    /// The best of its column.
    pub(super) is_best: bool,
    /// Drawn behind the text: a share of the column, 0 to 1.
    pub(super) share: Option<f64>,
    /// In smaller letters behind the text.
    pub(super) aside: String,
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Cell {
            csv: vec![text.clone()],
            text,
            ..Cell::default()
        }
    }

    /// A mean with its deviation; a dash where there is nothing.
    pub(super) fn spread(spread: Option<Spread>, show: impl Fn(f64) -> String) -> Self {
        let Some(Spread { mean, deviation }) = spread else {
            return Cell {
                text: "–".into(),
                csv: vec![String::new(), String::new()],
                ..Cell::default()
            };
        };
        let seen = spread.and_then(Spread::seen);
        let deviation = deviation.map_or(String::new(), |deviation| deviation.to_string());
        Cell {
            text: show(mean),
            csv: vec![mean.to_string(), deviation],
            aside: seen.map_or(String::new(), |deviation| format!("± {}", show(deviation))),
            ..Cell::default()
        }
    }

    pub(super) fn number(text: String, csv: impl ToString) -> Self {
        Cell {
            text,
            csv: vec![csv.to_string()],
            ..Cell::default()
        }
    }
}

pub(super) struct Table {
    /// Unique in the page.
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The last row adds the others up.
    pub(super) has_total: bool,
    /// A column whose changes part the rows.
    pub(super) parted_by: Option<usize>,
}

impl Table {
    pub(super) fn csv(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &String>| {
            let cells: Vec<String> = cells.map(|c| csv_cell(c)).collect();
            cells.join(",") + "\n"
        };
        let mut out = line(&mut self.columns.iter().flat_map(|c| &c.csv));
        for row in &self.rows {
            out += &line(&mut row.iter().flat_map(|c| &c.csv));
        }
        out
    }

    pub(super) fn html(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let alignment = |column: &Column| {
            if column.is_number {
                " class=\"number\""
            } else {
                ""
            }
        };
        write!(
            out,
            "<div class=\"table-tools needs-js\"><button type=\"button\" class=\"quiet\" data-copy=\"{0}\">Copy as CSV</button></div><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{1}\"><table id=\"{0}\"><caption class=\"hidden\">{1}</caption><thead><tr>",
            self.id,
            escape(&self.title)
        )?;
        for column in &self.columns {
            write!(
                out,
                "<th scope=\"col\"{}>{}</th>",
                alignment(column),
                escape(&column.title)
            )?;
        }
        write!(out, "</tr></thead><tbody>")?;
        for (i, row) in self.rows.iter().enumerate() {
            let is_total = self.has_total && i + 1 == self.rows.len();
            let parts_from_above = self
                .parted_by
                .is_some_and(|column| i > 0 && self.rows[i - 1][column].text != row[column].text);
            let class = match (is_total, parts_from_above) {
                (true, _) => " class=\"total\"",
                (_, true) => " class=\"parted\"",
                _ => "",
            };
            write!(out, "<tr{class}>")?;
            for (j, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                let (open, close) = match j {
                    0 => ("<th scope=\"row\"", "</th>"),
                    _ => ("<td", "</td>"),
                };
                write!(out, "{open}{}", alignment(column))?;
                if let Some(share) = cell.share {
                    write!(out, " style=\"--share:{:.2}%\"", 100.0 * share)?;
                }
                let text = escape(&cell.text);
                let text = if cell.is_best {
                    format!("<strong>{text}</strong>")
                } else {
                    text
                };
                let aside = match cell.aside.as_str() {
                    "" => String::new(),
                    aside => format!(" <small>{}</small>", escape(aside)),
                };
                write!(out, ">{text}{aside}{close}")?;
            }
            write!(out, "</tr>")?;
        }
        write!(out, "</tbody></table></div>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_escaped_and_its_csv_has_every_digit() {
        let table = Table {
            id: "t",
            title: "<t>".into(),
            columns: vec![
                Column::text("Series"),
                Column::number("Loss", vec!["mean".into(), "sd".into()]),
            ],
            rows: vec![vec![
                Cell::text("a, <b>"),
                Cell {
                    text: "0.12".into(),
                    csv: vec!["0.123456".into(), "0".into()],
                    ..Cell::default()
                },
            ]],
            has_total: false,
            parted_by: None,
        };
        assert_eq!(table.csv(), "series,mean,sd\n\"a, <b>\",0.123456,0\n");
        let html = table.html();
        assert!(
            html.contains("a, &lt;b&gt;") && !html.contains("<b>"),
            "{html}"
        );
    }
}
