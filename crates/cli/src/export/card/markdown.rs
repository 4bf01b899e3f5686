//! Just enough of Markdown: names as they are, and tables.

/// A text that comes from a file, so that it is shown as it is and changes nothing around it.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if c.is_control() => out.push(' '),
            '\\' | '|' | '<' | '>' | '`' | '*' | '[' | ']' | '#' | '&' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A table, numbers to the right.
pub(super) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let is_number =
        |cell: &String| cell.starts_with(|c: char| "-–".contains(c) || c.is_ascii_digit());
    let rule = |at: usize| match rows.iter().filter_map(|row| row.get(at)).all(is_number) {
        true => "---:".to_owned(),
        false => "---".to_owned(),
    };
    let rule: Vec<String> = (0..head.len()).map(rule).collect();
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let lines = rows.iter().map(|row| line(row));
    [line(&head), line(&rule)]
        .into_iter()
        .chain(lines)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_cell() {
        assert_eq!(cell("a|b\n<b>`c`"), "a\\|b \\<b\\>\\`c\\`");
        assert_eq!(cell("lab_sodium = 1"), "lab_sodium = 1");
        let rows = vec![vec![cell("x|y"), "2".to_owned()]];
        assert_eq!(
            table(&["name", "n"], rows),
            "| name | n |\n| --- | ---: |\n| x\\|y | 2 |\n"
        );
    }
}
