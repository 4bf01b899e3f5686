//! Arguments of `selvedge export`.

use super::ChosenModel;
use crate::export::Format;
use clap::Args as Arguments;
use std::path::PathBuf;

#[derive(Arguments)]
#[command(after_help = include_str!("help/export.txt").trim_end())]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenModel,
    /// The folder to write; by default `export` in the run directory. It never overwrites files that are not from an
    /// earlier export
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// The formats to write
    #[arg(
        long,
        value_name = "NAME,NAME,…",
        value_delimiter = ',',
        default_value = "onnx,safetensors,card"
    )]
    pub(crate) format: Vec<Format>,
    /// Print the list of files as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
