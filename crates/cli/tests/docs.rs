//! The book: generated pages are what the program says, links lead somewhere, commands and keys are as they are
//! written, and what a page shows is what one gets.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "docs/commands.rs"]
mod commands;
#[path = "docs/keys.rs"]
mod keys;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/markdown.rs"]
mod markdown;
#[path = "docs/pages.rs"]
mod pages;
#[path = "docs/reference.rs"]
mod reference;
