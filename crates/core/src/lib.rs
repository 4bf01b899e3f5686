//! The algorithms (work in progress).
pub mod dataset;
pub mod experiment;
