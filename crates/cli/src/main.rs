//! `selvedge`: hybrid federated learning for e-health.
//!
//! ```text
//! args ──► commands ──► selvedge-data (load) ──► selvedge-core (train) ──► run directory
//! ```
//!
//! Exit codes: 0 done, 2 something was wrong (the message says what and what would be right), 130 stopped by
//! Ctrl-C after saving.

mod allocator;
mod args;
mod assessment;
mod checkpoint;
mod commands;
mod comparison;
mod dashboard;
mod deciding;
mod deploy;
mod export;
mod files;
mod format;
mod load;
mod presets;
mod progress;
mod reference;
mod report;
mod reproduce;
mod run_directory;
mod runs;
mod sparkline;
mod summary;
mod trained;
mod training;
mod tune;
mod weights;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocator::OnCacheLines = allocator::OnCacheLines;

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
            say(&format!("{word} {}", told_once(&error)));
            ExitCode::from(2)
        }
    }
}

/// An error and its causes, except those that it has told already.
fn told_once(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// Says something on the error output, if anybody reads it.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
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
