//! What a user sees is true: models that learnt nothing, figures that are not defined and choices by test samples are
//! said or refused.

#![allow(unreachable_pub)] // of the shared modules
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "truth/any_table.rs"]
mod any_table;
#[path = "truth/categories.rs"]
mod categories;
#[path = "truth/choice.rs"]
mod choice;
#[path = "truth/defaults.rs"]
mod defaults;
#[path = "truth/deployed.rs"]
mod deployed;
#[path = "truth/digests.rs"]
mod digests;
#[path = "truth/divergence.rs"]
mod divergence;
#[path = "truth/doubts.rs"]
mod doubts;
#[path = "truth/figures.rs"]
mod figures;
#[path = "truth/files.rs"]
mod files;
#[path = "truth/held_out.rs"]
mod held_out;
#[path = "truth/joining.rs"]
mod joining;
#[path = "truth/lost.rs"]
mod lost;
#[path = "truth/messages.rs"]
mod messages;
#[path = "truth/naming.rs"]
mod naming;
#[path = "truth/outcomes.rs"]
mod outcomes;
#[path = "truth/outputs.rs"]
mod outputs;
#[path = "truth/parties.rs"]
mod parties;
#[path = "truth/positive.rs"]
mod positive;
#[path = "truth/ranking.rs"]
mod ranking;
#[path = "truth/reading.rs"]
mod reading;
#[path = "truth/side_by_side.rs"]
mod side_by_side;
#[path = "truth/tables.rs"]
mod tables;
#[path = "truth/undefined.rs"]
mod undefined;
