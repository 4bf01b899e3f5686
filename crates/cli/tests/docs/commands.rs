//! Every `selvedge …` that a page writes is a command that there is, with options that it has.

use crate::common::Place;
use crate::markdown::{Block, Page, blocks, pages};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Each command by its words, with its options.
type Known = BTreeMap<String, BTreeSet<String>>;

/// From the program's own reference.
fn known() -> Known {
    let place = Place::new("commands");
    place.succeeds(&["reference", "--out", "reference"]);
    let text = fs::read_to_string(place.join("reference/commands.md")).unwrap();
    let mut known = Known::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## selvedge ") {
            name.clone_into(&mut current);
            known.insert(current.clone(), ["--help".into()].into());
        } else if let Some(rest) = line.strip_prefix("- `--") {
            let option = rest.split(['`', ' ', '=']).next().unwrap();
            known
                .get_mut(&current)
                .unwrap()
                .insert(format!("--{option}"));
        }
    }
    // It is not in its own list.
    known.insert("reference".into(), ["--out".to_owned()].into());
    assert!(known.len() > 25, "{known:?}");
    known
}

/// The lines of a block that are typed, with their continuations.
fn typed(block: &Block) -> Vec<String> {
    let language = block.info.split(' ').next().unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in &block.lines {
        let begins = match language {
            "console" => line.strip_prefix("$ "),
            "sh" => Some(line.as_str()),
            // Examples of a command's help: what follows two spaces explains.
            "text" => Some(line.trim_start()).filter(|l| l.starts_with("selvedge ")),
            _ => None,
        };
        match (goes_on, begins) {
            (true, _) => found.last_mut().unwrap().push_str(line),
            (false, Some(line)) if language == "text" => {
                found.push(line.split("  ").next().unwrap().to_owned());
            }
            (false, Some(line)) => found.push(line.to_owned()),
            (false, None) => continue,
        }
        let last = found.last_mut().unwrap();
        goes_on = last.ends_with('\\');
        if goes_on {
            last.pop();
        }
    }
    found
}

/// The words behind each `selvedge` of a line of a shell.
fn calls(line: &str) -> Vec<Vec<String>> {
    let line = line.split(" #").next().unwrap_or_default();
    let line = line.replace("cargo run --release --", "selvedge");
    let pieces = line.split(['|', ';', '(', ')']).flat_map(|p| p.split("&&"));
    let words = |piece: &str| {
        piece
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let calls = pieces
        .map(words)
        .filter(|words| words.first().is_some_and(|w| w == "selvedge"));
    calls.map(|words| words[1..].to_vec()).collect()
}

/// What is wrong with a call.
fn problem(known: &Known, call: &[String]) -> Option<String> {
    let spoken: Vec<&str> = call
        .iter()
        .map(String::as_str)
        .take_while(|word| {
            word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
        })
        .collect();
    let named = (1..=spoken.len()).rev().map(|n| spoken[..n].join(" "));
    let Some(options) = named.clone().find_map(|name| known.get(&name)) else {
        let begun = |name: &String| known.keys().any(|k| k.starts_with(&format!("{name} ")));
        let fine = spoken.is_empty() || named.clone().any(|name| begun(&name));
        return (!fine).then(|| format!("there is no `selvedge {}`", call.join(" ")));
    };
    let given = call
        .iter()
        .filter(|word| word.starts_with("--") && word.len() > 2);
    let given = given.map(|word| {
        word.split('=')
            .next()
            .unwrap()
            .trim_end_matches([',', '.', ']', '`'])
    });
    let unknown = given.into_iter().find(|option| !options.contains(*option));
    unknown.map(|option| format!("`selvedge {}` has no {option}", call.join(" ")))
}

/// All calls of a page: in blocks, and between backticks.
fn calls_of(page: &Page) -> Vec<Vec<String>> {
    let (blocks, lines) = blocks(&page.text);
    let mut found: Vec<_> = blocks
        .iter()
        .flat_map(typed)
        .flat_map(|line| calls(&line))
        .collect();
    let text = lines.join(" ");
    let code = text.split('`').skip(1).step_by(2);
    found.extend(
        code.filter(|code| code.starts_with("selvedge "))
            .flat_map(calls),
    );
    found
}

#[test]
fn every_command_of_every_page_is_one() {
    let known = known();
    let (mut problems, mut seen) = (Vec::new(), 0);
    for page in pages() {
        for call in calls_of(&page) {
            seen += 1;
            let found = problem(&known, &call);
            problems.extend(found.map(|problem| format!("{}: {problem}", page.name)));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(seen > 150, "{seen} commands");
}

#[test]
fn a_wrong_command_is_noticed() {
    let known = known();
    let wrong = |line: &str| {
        calls(line)
            .iter()
            .any(|call| problem(&known, call).is_some())
    };
    assert!(wrong("cd x && selvedge trian esr"));
    assert!(wrong("selvedge data inspect --dir x"));
    assert!(wrong("selvedge evaluate runs/a --set x=1"));
    assert!(!wrong(
        "selvedge train esr --data-dir=data | tail # --nothing"
    ));
    assert!(!wrong("selvedge data"));
}
