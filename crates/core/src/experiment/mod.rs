//! Experiments (work in progress).
mod data;
pub use data::{DataSettings, Features};
