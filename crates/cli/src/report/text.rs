//! Texts of others, made harmless for HTML, SVG, JSON inside HTML, and CSV.

/// Text for HTML and SVG, inside elements and inside quoted attributes. What XML cannot hold is replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(c),
            // Also the characters that turn the direction of what follows.
            c if c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text that is not longer than that.
pub(super) fn cut(text: &str, longest: usize) -> String {
    match text.chars().count() > longest {
        true => text.chars().take(longest - 1).chain(['…']).collect(),
        false => text.into(),
    }
}

/// JSON that may stand inside a script element: nothing in it can end the element or begin a comment.
pub(crate) fn json_in_html(value: &serde_json::Value) -> String {
    let text = value.to_string();
    text.replace('<', "\\u003c").replace('>', "\\u003e")
}

/// Whether a spreadsheet takes a text for a formula. One with apostrophes before it is none, but would look like one that
/// was given an apostrophe.
pub(crate) fn is_formula(text: &str) -> bool {
    let bare = text.trim_start_matches('\'');
    let is_number = bare.parse().is_ok_and(f64::is_finite);
    bare.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number
}

/// One cell of a CSV file, quoted where it must be. A formula gets an apostrophe before it; whoever takes one away from
/// cells that [are one](is_formula) behind it has the text as it was.
pub(crate) fn csv_cell(text: &str) -> String {
    match is_formula(text) {
        true => quoted(&format!("'{text}")),
        false => quoted(text),
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_its_place() {
        assert_eq!(
            escape("<script>\"a\" & 'b'\u{1}\u{202e}"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\u{fffd}\u{fffd}"
        );
        let value = serde_json::json!({ "label": "</script><!--" });
        let text = json_in_html(&value);
        assert!(!text.contains('<') && !text.contains('>'), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back, value);
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(csv_cell("plain"), "plain");
        assert_eq!(csv_cell("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(csv_cell("=1+1"), "'=1+1");
        assert_eq!(csv_cell("-0.5"), "-0.5");
        for text in [
            "=1", "'=1", "''-a", "+49 30", "+49", "-inf", "-a,b", "@x", "-5", "+5", "'a", "a=1",
        ] {
            let cell = csv_cell(text);
            let cell = cell.trim_matches('"');
            let back = match (cell.strip_prefix('\''), is_formula(cell)) {
                (Some(back), true) => back,
                _ => cell,
            };
            assert_eq!(back, text);
        }
    }
}
