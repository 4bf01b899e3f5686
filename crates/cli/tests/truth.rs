//! What a user sees is true: models that learnt nothing, figures that are not defined and choices by test samples are
//! said or refused.

#![allow(unreachable_pub)] // of the shared modules
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "truth/choice.rs"]
mod choice;
#[path = "truth/outputs.rs"]
mod outputs;
#[path = "truth/positive.rs"]
mod positive;
#[path = "truth/tables.rs"]
mod tables;
