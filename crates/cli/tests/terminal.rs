//! What `selvedge train` draws in a real pseudo-terminal, and what it leaves there.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::process::finish;
use common::{Place, says};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A run of about a second, in which somebody steers.
const RUN: &str = "train size-esr --threads 1 --set train.iterations=120 --set train.adaptive=gain --set train.evaluate_every=10";

/// The most lines of the block.
const LINES: usize = 8;

/// A terminal that understands what we draw with, and nothing else.
struct Screen {
    columns: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// A letter was written behind the last column.
    wrapped: bool,
    /// How often the cursor went up, and how far at most.
    drawn: usize,
    highest: usize,
    coloured: bool,
    /// Everything that ever stood in a line when the cursor left it.
    seen: String,
}

impl Screen {
    fn show(columns: usize, bytes: &[u8]) -> Self {
        let mut screen = Screen {
            columns,
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
            wrapped: false,
            drawn: 0,
            highest: 0,
            coloured: false,
            seen: String::new(),
        };
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\r' => screen.column = 0,
                '\n' => screen.down(),
                '\u{1b}' => {
                    assert_eq!(letters.next(), Some('['), "only sequences that are known");
                    let rest = sequence(&mut letters);
                    screen.obey(&rest);
                }
                letter => screen.put(letter),
            }
        }
        screen
    }

    fn put(&mut self, letter: char) {
        self.wrapped |= self.column >= self.columns;
        let line = &mut self.lines[self.row];
        if line.len() <= self.column {
            line.resize(self.column + 1, ' ');
        }
        line[self.column] = letter;
        self.column += 1;
    }

    fn down(&mut self) {
        self.seen.extend(self.lines[self.row].iter());
        self.seen.push('\n');
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Vec::new());
        }
    }

    fn obey(&mut self, sequence: &str) {
        let (number, command) = sequence.split_at(sequence.len() - 1);
        let number: usize = number.parse().unwrap_or(0);
        match command {
            "A" => {
                self.row = self.row.checked_sub(number).expect("above the first line");
                self.drawn += 1;
                self.highest = self.highest.max(number);
            }
            "K" => self.lines[self.row].truncate(self.column),
            "J" => {
                self.lines[self.row].truncate(self.column);
                self.lines.truncate(self.row + 1);
            }
            "m" => self.coloured = true,
            other => panic!("{other:?} is not known"),
        }
    }

    /// What stands there at last.
    fn text(&self) -> String {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| line.iter().collect())
            .collect();
        lines.join("\n")
    }
}

/// What follows `ESC [`, up to the letter that ends it.
fn sequence(letters: &mut std::str::Chars<'_>) -> String {
    let mut taken = String::new();
    for letter in letters {
        taken.push(letter);
        if letter.is_ascii_alphabetic() {
            break;
        }
    }
    taken
}

/// Runs `selvedge` in a terminal of that size; `more` is what a shell puts behind it.
fn in_terminal(place: &Place, size: (usize, usize), environment: &str, more: &str) -> Command {
    let (columns, rows) = size;
    let binary = env!("CARGO_BIN_EXE_selvedge");
    let shell = format!("stty cols {columns} rows {rows}; exec env {environment} {binary} {more}");
    let mut command = Command::new("script");
    command
        .args(["-qefc", &shell, "/dev/null"])
        .current_dir(place.path())
        .env_remove("SELVEDGE_DATA")
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null());
    command
}

#[test]
fn nothing_wraps_and_nothing_is_left_at_any_size() {
    let place = Place::new("terminal");
    let sizes = [(40, 24), (57, 5), (80, 24), (133, 3), (200, 50), (20, 2)];
    for (number, (columns, rows)) in sizes.into_iter().enumerate() {
        let out = format!("run-{number}");
        let more = format!("{RUN} --out {out} > {out}.txt");
        let mut command = in_terminal(&place, (columns, rows), "", &more);
        let ran = finish(&mut command).succeeded();
        let screen = Screen::show(columns, ran.stdout.as_bytes());
        assert!(!screen.wrapped, "{columns} × {rows}:\n{}", screen.seen);
        assert!(
            screen.drawn > 2,
            "{columns} × {rows}: drawn {}",
            screen.drawn
        );
        let most = LINES.min(rows - 1);
        assert_eq!(screen.highest, most, "{columns} × {rows}:\n{}", screen.seen);
        assert_eq!(screen.text(), "", "{columns} × {rows}");
        assert!(screen.coloured, "{columns} × {rows}");
        if columns >= 80 && rows > LINES {
            says(
                &screen.seen,
                &[
                    "t 0/120",
                    " left",
                    "iterations/s",
                    "loss     1.",
                    "AUC      0.",
                    " test ",
                    "F1 0.",
                    " per group  device-edge ",
                    "P 1  Q 1  η 0.2",
                    "why      since t ",
                    "theta2 ",
                    "180 of 9,200 devices take part",
                ],
            );
        }
        let summary = std::fs::read_to_string(place.join(format!("{out}.txt"))).unwrap();
        assert!(
            summary.contains("120 of 120 iterations") && summary.contains(&out),
            "{summary}"
        );
    }
}

#[test]
fn the_summary_is_the_same_with_and_without_a_terminal() {
    let place = Place::new("terminal-summary");
    let mut command = in_terminal(
        &place,
        (150, 40),
        "NO_COLOR=1",
        &format!("{RUN} --out drawn"),
    );
    let screen = Screen::show(150, finish(&mut command).succeeded().stdout.as_bytes());
    assert!(!screen.coloured && !screen.wrapped && screen.drawn > 2);
    let words: Vec<&str> = RUN.split(' ').chain(["--out", "plain"]).collect();
    let plain = place.succeeds(&words);
    let comparable = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("Time "));
        lines
            .map(|line| line.replace("plain", "drawn"))
            .collect::<Vec<_>>()
    };
    assert_eq!(comparable(&screen.text()), comparable(&plain.stdout));
    let last = plain.stderr.lines().last().unwrap();
    says(
        last,
        &[
            "t 120/120",
            "loss 1.",
            "AUC 0.",
            "per group (device-edge ",
            "180 of 9,200 devices",
            "  P ",
            "(since t ",
        ],
    );
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let place = Place::new("terminal-dumb");
    let mut command = in_terminal(&place, (80, 24), "TERM=dumb", &format!("{RUN} --out run"));
    let said = finish(&mut command).succeeded().stdout;
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(said.contains("t 120/120  loss "), "{said}");
}

#[test]
fn ctrl_c_takes_the_block_away_and_saves() {
    let place = Place::new("terminal-interrupted");
    let more = "train size-esr --threads 1 --set train.iterations=100000 --out run";
    let mut command = in_terminal(&place, (120, 30), "", more);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    std::thread::sleep(Duration::from_millis(2000));
    keyboard.write_all(b"\x03").unwrap();
    let ended = child.wait_with_output().unwrap();
    drop(keyboard);
    assert_eq!(ended.status.code(), Some(130));
    let screen = Screen::show(120, &ended.stdout);
    let text = screen.text();
    assert!(!screen.wrapped && screen.drawn > 2, "{text}");
    assert!(
        text.starts_with("Ctrl-C: saving …\nsize-esr · hsgd · "),
        "{text}"
    );
    assert!(
        text.contains("Next    selvedge train --resume run"),
        "{text}"
    );
    assert!(!text.contains('─') && !text.contains("^C"), "{text}");
}
