//! `selvedge`: hybrid federated learning for e-health.
//!
//! ```text
//! args ──► commands ──► selvedge-data (load) ──► selvedge-core (train) ──► run directory
//! ```
//!
//! Exit codes: 0 done, 2 something was wrong (the message says what and what would be right), 130 stopped by Ctrl-C
//! after saving.

mod answers;
mod args;
mod assessment;
mod commands;
mod comparison;
mod dashboard;
mod deploy;
mod export;
mod files;
mod interrupt;
mod load;
mod memory;
mod progress;
mod reference;
mod report;
mod reproduce;
mod sparkline;
mod summary;
mod tune;
mod written;

use clap::Parser;
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: memory::OrEnd = memory::OrEnd;

fn main() -> ExitCode {
    let args = args::Args::parse();
    match commands::run(args) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let word = if progress::has_colours() {
                "\x1b[1;31merror:\x1b[0m"
            } else {
                "error:"
            };
            say(&format!("{word} {}", told_once(&*error)));
            ExitCode::from(2)
        }
    }
}

/// An error and its causes, except those that it has told already.
fn told_once(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        let told = error.to_string();
        if text.is_empty() {
            text = told;
        } else if !text.contains(&told) {
            text += &format!(": {told}");
        }
        cause = error.source();
    }
    text
}

/// Says something on the error output, if anybody reads it.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Says something that people should know.
fn note(text: &str) {
    say(&format!("note: {text}"));
}

/// How a command ended.
enum Outcome {
    Done,
    Interrupted,
}

/// A reader such as `head` that has seen enough is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
