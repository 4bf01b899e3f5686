//! Runs that are to be compared, trained side by side, and what came of them.

mod board;
pub(crate) mod output;
pub(crate) mod rates;
pub(crate) mod table;
pub(crate) mod targets;
mod work;

pub(crate) use work::{Options, run_all};
