//! Training on generated data through the binary: what it leaves behind, what it prints, and what the commands around
//! it say of the same run.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "training/attacks.rs"]
mod attacks;
#[path = "training/bench.rs"]
mod bench;
#[path = "training/commands.rs"]
mod commands;
#[path = "training/endings.rs"]
mod endings;
#[path = "training/files.rs"]
mod files;
