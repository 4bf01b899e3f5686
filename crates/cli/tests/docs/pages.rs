//! Pages whose commands are run as they stand, and whose output is what they print.
//!
//! ```text
//! ```sh               commands, which must succeed
//! ```console          `$ command` and what it prints; where that is "error: …", it must be refused so
//! ```toml my.toml     a file
//! ```
//!
//! A line "…" stands for any lines. With SELVEDGE_WRITE_DOCS set, what commands print is written into the pages, as far as
//! they show it.

use crate::common::Place;
use crate::common::process::{Ran, finish};
use crate::markdown::{Block, Page, blocks, root};
use std::path::Path;
use std::process::Command;

/// A command of a `console` block, and the lines that the page has below it.
struct Shown {
    command: String,
    output: Vec<String>,
    /// Where the output stands in the page.
    at: usize,
}

fn shown(block: &Block) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut goes_on = false;
    for (number, line) in block.lines.iter().enumerate() {
        match (goes_on, line.strip_prefix("$ ")) {
            (false, Some(command)) => found.push(Shown {
                command: command.into(),
                output: Vec::new(),
                at: 0,
            }),
            (true, _) => found.last_mut().unwrap().command += &format!("\n{line}"),
            (false, None) => found.last_mut().unwrap().output.push(line.clone()),
        }
        let last = found.last_mut().unwrap();
        goes_on = last.output.is_empty() && last.command.ends_with('\\');
        if last.output.is_empty() {
            last.at = block.at + number + 1;
        }
    }
    found
}

fn run(place: &Place, commands: &str) -> Ran {
    let binary = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command
        .args(["-e", "-c", commands])
        .current_dir(place.path())
        .env("PATH", path)
        .env_remove("SELVEDGE_DATA");
    finish(&mut command)
}

/// A line without what differs from run to run and from machine to machine.
fn comparable(line: &str) -> String {
    let line = line.trim_end();
    if line.starts_with("Time ") {
        return line.split("real ").next().unwrap().to_owned();
    }
    if line.starts_with("Report ") {
        return line.split(" (").next().unwrap().to_owned();
    }
    line.to_owned()
}

/// Whether the page's lines are these; "…" stands for any.
fn agrees(page: &[String], real: &[String]) -> bool {
    match page.split_first() {
        None => real.is_empty(),
        Some((line, rest)) if line == "…" => (0..=real.len()).any(|n| agrees(rest, &real[n..])),
        Some((line, rest)) => real.split_first().is_some_and(|(first, others)| {
            comparable(line) == comparable(first) && agrees(rest, others)
        }),
    }
}

/// What a command prints, as a page would have it.
#[track_caller]
fn printed(place: &Place, page: &str, shown: &Shown) -> Vec<String> {
    let fails = shown
        .output
        .first()
        .is_some_and(|line| line.starts_with("error: "));
    let ran = run(place, &shown.command);
    let code = if fails { 2 } else { 0 };
    if let Some(complaint) = ran.complaint(code) {
        panic!("{page}: {}\n{complaint}", shown.command);
    }
    let text = if fails { &ran.stderr } else { &ran.stdout };
    let lines = text
        .lines()
        .filter(|line| !fails || line.starts_with("error: "));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// What is printed, with a "…" for the same stretch that the page leaves out.
fn abridged(real: Vec<String>, page: &[String]) -> Vec<String> {
    let Some(first) = page.iter().position(|line| line == "…") else {
        return real;
    };
    let last = page.iter().rposition(|line| line == "…").unwrap();
    assert_eq!(
        first,
        last,
        "several stretches are left out: mend the page by hand, with\n{}",
        real.join("\n")
    );
    let behind = real.len().saturating_sub(page.len() - 1 - first);
    let kept = real[..first.min(behind)].iter().chain([&page[first]]);
    kept.chain(&real[behind..]).cloned().collect()
}

/// Follows a page to the letter.
#[track_caller]
fn follow(name: &str) {
    let place = Place::new("page");
    for example in ["docs/example_table.py", "docs/example_ward.py"] {
        place.write(example, std::fs::read(root().join(example)).unwrap());
    }
    let page = Page::read(name);
    let mut text: Vec<String> = page.text.lines().map(str::to_owned).collect();
    let (mut changes, mut commands) = (Vec::new(), 0);
    for block in blocks(&page.text).0 {
        match block.info.split_once(' ') {
            Some((_, file)) => {
                place.write(file, block.lines.join("\n") + "\n");
            }
            None if block.info == "sh" => {
                run(&place, &block.lines.join("\n")).succeeded();
                commands += 1;
            }
            None if block.info == "console" => {
                for shown in shown(&block) {
                    commands += 1;
                    let real = printed(&place, name, &shown);
                    if !shown.output.is_empty() && !agrees(&shown.output, &real) {
                        changes.push((shown, real));
                    }
                }
            }
            None => {}
        }
    }
    assert!(commands > 4, "{name} has commands");
    if std::env::var_os("SELVEDGE_WRITE_DOCS").is_some() {
        for (shown, real) in changes.into_iter().rev() {
            let real = abridged(real, &shown.output);
            text.splice(shown.at..shown.at + shown.output.len(), real);
        }
        std::fs::write(&page.path, text.join("\n") + "\n").unwrap();
        return;
    }
    if let Some((shown, real)) = changes.first() {
        panic!(
            "{name}, line {}: `{}` prints something else now:\n{}\n\nIf that is as it should be:\n\n    SELVEDGE_WRITE_DOCS=1 cargo test --release -p selvedge --test docs\n",
            shown.at,
            shown.command,
            real.join("\n")
        );
    }
}

#[test]
fn the_tour_is_as_it_is_told() {
    follow("docs/tour.md");
}

#[test]
fn a_table_of_ones_own_goes_as_it_is_told() {
    follow("docs/own-table.md");
    let page = Page::read("docs/own-table.md").text;
    let keys = Place::new("table-keys")
        .succeeds(&["experiments", "--keys"])
        .stdout;
    let names = keys
        .lines()
        .filter_map(|line| line.strip_prefix("data.table."));
    let names = names.map(|line| line.split(' ').next().unwrap());
    let (blocks, _) = blocks(&page);
    let used = |name: &&str| {
        let set = |line: &String| {
            line.starts_with(&format!("{name} = ")) || line.contains(&format!("data.table.{name}="))
        };
        !blocks.iter().any(|block| block.lines.iter().any(set))
    };
    let missing: Vec<&str> = names.filter(used).collect();
    assert!(
        missing.is_empty(),
        "docs/own-table.md does not use {missing:?}"
    );
}
