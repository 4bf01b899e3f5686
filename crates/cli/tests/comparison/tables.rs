//! What the tables of a comparison say, read back from text and CSV.

use std::collections::BTreeMap;

/// The columns of the text, by the names that JSON and CSV have for them.
pub(crate) const COLUMNS: [&str; 7] = [
    "reached",
    "iterations",
    "bytes",
    "seconds",
    "flops",
    "memory",
    "memory_accumulated",
];

/// The rows of `table.csv` by metric, target and variant; each value by its column.
pub(crate) fn csv(text: &str) -> BTreeMap<(String, String, String), BTreeMap<String, String>> {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let cells = cells(line);
        assert_eq!(cells.len(), heads.len(), "{line}");
        let key = (cells[0].clone(), cells[1].clone(), cells[2].clone());
        let named = heads.iter().map(|h| (*h).to_owned()).zip(cells);
        (key, named.collect())
    };
    lines.map(row).collect()
}

/// The cells of a line of CSV, of which any may be in quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cells.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// The cells of one row of the text: that of `variant` below the heading that begins with `heading`.
#[track_caller]
pub(crate) fn text_row(text: &str, heading: &str, variant: &str) -> Vec<String> {
    let below = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with(heading));
    let block = below.skip(1).take_while(|line| !line.trim().is_empty());
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split("  ").map(str::trim);
        cells
            .filter(|cell| !cell.is_empty())
            .map(String::from)
            .collect()
    };
    let mut rows = block.map(cells);
    let found = rows.find(|row| row.first().is_some_and(|cell| cell == variant));
    found.unwrap_or_else(|| panic!("no {variant} below {heading}:\n{text}"))
}

/// `3.11 MB ± 1.28 MB`, `1 min 52 s` or `524 k` as a mean and a deviation.
#[track_caller]
pub(crate) fn spread(text: &str) -> (f64, f64) {
    match text.split_once(" ± ") {
        Some((mean, deviation)) => (amount(mean), amount(deviation)),
        None => (amount(text), 0.0),
    }
}

#[track_caller]
fn amount(text: &str) -> f64 {
    let mut sum = 0.0;
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    while at < words.len() {
        let number: f64 = words[at].replace(',', "").parse().unwrap();
        let unit = words.get(at + 1).copied().unwrap_or_default();
        sum += number
            * match unit {
                "" | "B" | "s" => 1.0,
                "ms" => 1e-3,
                "min" => 60.0,
                "h" => 3600.0,
                "k" | "kB" => 1e3,
                "M" | "MB" => 1e6,
                "G" | "GB" => 1e9,
                other => panic!("unit {other} of {text}"),
            };
        at += 2;
    }
    sum
}

/// Whether a number that people read is that number: three digits of it.
#[track_caller]
pub(crate) fn close(shown: f64, exact: f64, what: &str) {
    let tolerance = (0.006 * exact.abs()).max(0.5e-3);
    // Whole numbers are rounded to whole ones, and longer times to seconds.
    let tolerance = if exact.abs() >= 10.0 {
        tolerance.max(0.5)
    } else {
        tolerance.max(0.051)
    };
    let tolerance = if exact.abs() < 1.0 { 0.5e-3 } else { tolerance };
    assert!(
        (shown - exact).abs() <= tolerance,
        "{what}: {shown} is shown for {exact}"
    );
}
