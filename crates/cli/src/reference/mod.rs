//! The reference of every command and every key, as pages of the book.
//!
//! ```text
//! clap's commands ──► commands.md
//! KEYS, defaults  ──► keys.md
//! ```
//!
//! A test compares the pages in `docs/reference` with what is written here, so that they cannot differ from the
//! program.

mod commands;
mod keys;

use crate::Outcome;
use crate::args::{Args, ReferenceArgs};
use anyhow::Result;
use clap::CommandFactory;
use selvedge_run::files::{make_folder, write_whole};
use selvedge_run::outputs::{Kind, Output};

/// What stands above a page that nobody should edit.
const NOTE: &str =
    "Written by `selvedge reference` from the program itself: change the program, not this page.";

/// `selvedge reference`
pub(crate) fn run(args: &ReferenceArgs) -> Result<Outcome> {
    let folder = &args.out;
    let pages = [
        ("commands.md", commands::page(Args::command())),
        ("keys.md", keys::page()?),
    ];
    for (name, _) in &pages {
        let output = Output {
            option: "--out",
            path: &folder.join(name),
            kind: Kind::Reference,
        };
        output.check(&[])?;
    }
    make_folder(folder)?;
    for (name, text) in pages {
        write_whole(&folder.join(name), text.as_bytes())?;
    }
    Ok(Outcome::Done)
}
