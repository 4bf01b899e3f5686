//! Numbers as people read them, and paths as shells do.

use std::path::Path;

/// `12,345`
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 seed`, `12,345 seeds`
pub fn counted(n: u64, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", count(n)),
    }
}

/// A path as one word of a shell's command line.
pub fn shell(path: &Path) -> String {
    word(&path.to_string_lossy())
}

/// A text as one word of a shell's command line, quoted where it has to be.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./,:+@%…".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// `1.23 MB`; a kilobyte is 1,000 bytes, as in the paper.
pub fn bytes(n: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = n;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match (unit, value) {
        (0, _) => 0,
        (_, v) if v < 9.995 => 2,
        (_, v) if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// `0.125`, `12.5`, `1.25e-5`: a computed learning rate has more digits than anybody reads.
pub fn rate(x: f64) -> String {
    let digits = format!("{x:.2e}");
    match digits.parse::<f64>() {
        Ok(short) if (1e-4..1e6).contains(&short) => short.to_string(),
        _ => digits,
    }
}

/// `1 h 02 min`, `3 min 04 s`, `5.6 s`, `78 ms`
pub fn seconds(s: f64) -> String {
    let whole = s.round() as u64;
    if whole >= 3600 {
        format!("{} h {:02} min", whole / 3600, whole % 3600 / 60)
    } else if whole >= 60 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else if s >= 0.9995 {
        format!("{s:.1} s")
    } else {
        format!("{:.0} ms", s * 1000.0)
    }
}

/// Aligned rows: the first column to the left, all others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        let cells = rows.iter().filter_map(|row| row.get(c));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (c, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += &match c {
                0 => format!(" {cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// `0.123`, or a dash for a missing value; `1.23e7`, where the digits before the point would be too many to read.
pub fn score(x: Option<f64>) -> String {
    x.map_or_else(
        || "–".into(),
        |x| match x.abs() < 1e6 {
            true => format!("{x:.3}"),
            false => format!("{x:.2e}"),
        },
    )
}

/// All digits of a number, without the zeros of a very large or small one.
pub fn exact(x: f64) -> String {
    match x == 0.0 || (1e-6..1e9).contains(&x.abs()) {
        true => x.to_string(),
        false => format!("{x:e}"),
    }
}

/// The block character of a class in a [`bar`].
pub fn shade(class: usize) -> char {
    const SHADES: [char; 10] = ['█', '▓', '▒', '░', '▚', '▞', '▙', '▟', '▖', '▘'];
    SHADES[class % SHADES.len()]
}

/// A small stacked bar of shares: one block character per class.
pub fn bar(counts: &[u64], width: usize) -> String {
    let total: u64 = counts.iter().sum();
    let mut out = String::new();
    let (mut before, mut drawn) = (0, 0);
    for (class, n) in counts.iter().enumerate() {
        before += n;
        let end = (before as f64 / total.max(1) as f64 * width as f64).round() as usize;
        out.extend(std::iter::repeat_n(shade(class), end - drawn));
        drawn = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(bytes(1234.0), "1.23 kB");
        assert_eq!(bytes(12_345_678.0), "12.3 MB");
        assert_eq!(bytes(999_600.0), "1.00 MB");
        assert_eq!(bytes(123_456_789.0), "123 MB");
        assert_eq!(seconds(0.0782), "78 ms");
        assert_eq!(seconds(5.62), "5.6 s");
        assert_eq!(seconds(184.2), "3 min 04 s");
        assert_eq!(seconds(3725.0), "1 h 02 min");
        assert_eq!(score(None), "–");
        assert_eq!(score(Some(394_285_714_285_714_304.0)), "3.94e17");
        assert_eq!(exact(0.012_345_678_9), "0.0123456789");
        assert_eq!(exact(1e-300), "1e-300");
        assert_eq!(bar(&[3, 1], 8), "██████▓▓");
    }
}
