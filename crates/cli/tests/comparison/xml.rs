//! Just enough of XML to see whether a file is well-formed.

/// What is wrong with a document, if anything is.
pub(crate) fn complaint(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut roots = 0;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some(tag) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            let (letters, after) = rest.split_at(end);
            if open.is_empty() && !letters.trim().is_empty() {
                return Some(format!("text outside: {letters:?}"));
            }
            if let Some(problem) = escapes(letters) {
                return Some(problem);
            }
            rest = after;
            continue;
        };
        let Some(end) = tag_end(tag) else {
            return Some(format!("a tag without an end: {:.60}", tag));
        };
        let (inner, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if inner.starts_with('?') || inner.starts_with('!') {
            continue;
        }
        if let Some(name) = inner.strip_prefix('/') {
            if open.pop() != Some(name.trim()) {
                return Some(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let is_empty = inner.ends_with('/');
        let inner = inner.trim_end_matches('/');
        let name = inner.split_whitespace().next().unwrap_or_default();
        if name.is_empty() {
            return Some("a tag without a name".into());
        }
        if let Some(problem) = attributes(&inner[name.len()..]) {
            return Some(format!("<{name}>: {problem}"));
        }
        roots += usize::from(open.is_empty());
        if !is_empty {
            open.push(name);
        }
    }
    match (open.last(), roots) {
        (Some(name), _) => Some(format!("<{name}> is not closed")),
        (None, 1) => None,
        (None, n) => Some(format!("{n} roots")),
    }
}

/// Where a tag ends: at the first `>` outside quotes.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (i, c) in tag.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(i),
            (None, '"' | '\'') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            _ => {}
        }
    }
    None
}

fn attributes(mut text: &str) -> Option<String> {
    let mut names = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return None;
        }
        let Some((name, after)) = text.split_once('=') else {
            return Some(format!("an attribute without a value: {text}"));
        };
        if names.contains(&name) {
            return Some(format!("{name} is there twice"));
        }
        names.push(name);
        let quote = after.chars().next().filter(|c| ['"', '\''].contains(c));
        let Some((value, after)) = quote.and_then(|q| after[1..].split_once(q)) else {
            return Some(format!("{name} is not quoted"));
        };
        if value.contains('<') {
            return Some(format!("{name} has a < in it"));
        }
        if let Some(problem) = escapes(value) {
            return Some(problem);
        }
        text = after;
    }
}

/// Every `&` begins one of the five escapes of XML, or that of a number.
fn escapes(text: &str) -> Option<String> {
    let known = ["amp", "lt", "gt", "quot", "apos"];
    text.split('&').skip(1).find_map(|after| {
        let name = after
            .split(';')
            .next()
            .filter(|name| name.len() < after.len());
        let right = name.is_some_and(|n| known.contains(&n) || n.starts_with('#'));
        (!right).then(|| format!("a bare &: {after:.20}"))
    })
}

#[test]
fn what_is_not_well_formed_is_seen() {
    assert_eq!(complaint("<a b='1' c=\">\"><b/>x &lt; &#39;</a>\n"), None);
    for wrong in [
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "text",
        "<a b=1/>",
        "<a b='1' b='2'/>",
        "<a>&nbsp;</a>",
        "<a>x & y</a>",
        "<a b='<'/>",
        "<a b",
        "",
    ] {
        assert!(complaint(wrong).is_some(), "{wrong}");
    }
}
