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
use selvedge_run::files::make_folder;
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
    let is_page = |text: &str| text.starts_with("# ") && text.lines().nth(2) == Some(NOTE);
    let paths = pages.each_ref().map(|(name, _)| folder.join(name));
    let outputs = paths.each_ref().map(|path| Output {
        option: "--out",
        path,
        kind: Kind::Known("a page of the reference", &is_page),
    });
    outputs.iter().try_for_each(|output| output.check(&[]))?;
    make_folder(folder)?;
    for (output, (_, text)) in outputs.iter().zip(pages) {
        output.write(text)?;
    }
    Ok(Outcome::Done)
}
