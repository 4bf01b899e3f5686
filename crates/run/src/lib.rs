//! Trains experiments in memory or into run directories, resumes and reads runs, and uses their models: the library
//! behind the `selvedge` binary and the cloud of a deployment, for other programs too.
//!
//! ```
#![doc = include_str!("../../../examples/train.rs")]
//! ```
//!
//! `cargo run --release --example train` runs it. With [`Training::directory`] the same run leaves a directory from which
//! it can be resumed to the same bits, and others can use it:
//!
//! ```text
//! Named::find ──► Training ──► run directory ──► Run::read, series    its numbers, and those of its series
//!  experiment     + data                    └──► Trained::open        its model: predictions, thresholds
//! ```
//!
//! Each file of a run directory has one module that writes and reads it; [`files`] has their names. Programs that train for
//! long are a fifth faster with [`OnCacheLines`] as their allocator, which the binary uses too.

pub mod absences;
mod again;
mod allocator;
mod checkpoint;
pub mod cloud;
pub mod comparison;
pub mod deciding;
mod digests;
mod directory;
mod error;
pub mod extending;
pub mod files;
pub mod follow;
pub mod format;
pub mod ledger;
pub mod left_out;
pub mod lines;
pub mod manifest;
pub mod metrics;
mod named;
pub mod outputs;
pub mod presets;
pub mod runs;
mod seal;
pub mod seeds;
pub mod segments;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod trained;
mod training;
pub mod weights;

pub use allocator::OnCacheLines;
pub use error::{Error, Result};
pub use manifest::Manifest;
pub use named::Named;
pub use runs::{Run, Series, series};
pub use selvedge_core::aggregate::Aggregation;
pub use selvedge_core::dataset::{Dataset, Group, Holders, Outcome, Samples};
pub use selvedge_core::experiment::Experiment;
pub use selvedge_core::objective::Objective;
pub use selvedge_core::optimiser::{Optimiser, Step};
pub use selvedge_core::run::{Ending, Interval};
pub use selvedge_core::selection::{Draw, Selection};
pub use selvedge_core::state::Evaluation;
pub use selvedge_core::task::Task;
pub use selvedge_data::Loaded;
pub use selvedge_nn::Shape;
pub use selvedge_nn::simd::Level;
pub use trained::{Trained, WhichModel};
pub use training::{Finished, Training, Watcher, has_begun};
