//! Files of other people: each module knows one format, checks every byte that it relies on, and never takes more memory
//! than the bytes that are really there can fill.

pub(crate) mod cell;
pub(crate) mod collection;
pub(crate) mod csv;
pub(crate) mod fields;
pub(crate) mod lines;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod parquet;
pub(crate) mod unzip;
pub(crate) mod zip;
