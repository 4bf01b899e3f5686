//! Arguments of what writes the reference.

use clap::Args as Arguments;
use std::path::PathBuf;

#[derive(Arguments)]
pub(crate) struct ReferenceArgs {
    /// The folder to write
    #[arg(long, value_name = "DIR", default_value = "docs/reference")]
    pub(crate) out: PathBuf,
}
