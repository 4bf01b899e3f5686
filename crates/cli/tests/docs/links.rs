//! Links lead somewhere.

use crate::markdown::{Page, blocks, pages};
use std::collections::BTreeMap;

/// What links in a text point to. Code is no link.
fn targets(page: &Page) -> Vec<String> {
    let (_, lines) = blocks(&page.text);
    let text = lines.join("\n");
    // Every other piece between backticks is code.
    let prose: Vec<&str> = text.split('`').step_by(2).collect();
    let prose = prose.join("`");
    let ends = prose.match_indices("](").map(|(at, _)| &prose[at + 2..]);
    ends.filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.trim().to_owned())
        .collect()
}

/// How a heading is linked to, as the usual viewers have it.
fn anchors(text: &str) -> Vec<String> {
    let (_, lines) = blocks(text);
    let headings = lines.iter().filter(|line| line.starts_with('#'));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let anchor = kept.collect::<String>().replace(' ', "-");
            let times = seen.entry(anchor.clone()).or_default();
            *times += 1;
            match *times {
                1 => anchor,
                n => format!("{anchor}-{}", n - 1),
            }
        })
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let (mut problems, mut followed) = (Vec::new(), 0);
    for page in pages() {
        for target in targets(&page) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match file {
                "" => page.path.clone(),
                file => page.path.parent().unwrap().join(file),
            };
            if !path.exists() {
                problems.push(format!("{}: {target}: no such file", page.name));
            } else if !anchor.is_empty() {
                let text = std::fs::read_to_string(&path).unwrap();
                if !anchors(&text).iter().any(|known| known == anchor) {
                    problems.push(format!("{}: {target}: no such heading", page.name));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(followed > 60, "{followed} links");
}
