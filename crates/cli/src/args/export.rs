//! Arguments of `selvedge export`.

use super::ChosenModel;
use crate::export::Format;
use clap::Args as Arguments;
use std::path::PathBuf;

#[derive(Arguments)]
#[command(after_help = "\
Examples:
  selvedge export runs/esr-42
  selvedge export runs/esr-42 --last --out esr-model
  selvedge export runs/esr-42 --format card            only the model card
  selvedge export runs/esr-42 --format onnx --json

Files:
  hospital.onnx       hospital → zeta1
  device.onnx         device → zeta2
  combined.onnx       zeta1, zeta2 → logits, probabilities, and calibrated where the run has a calibration
  model.onnx          hospital, device → the same
  model.safetensors   the weights in PyTorch's shapes, with layers and scales
  load.py             the model in PyTorch; it begins with examples, of ONNX Runtime too
  model-card.md       data, splits, metrics with intervals, bytes, limits of use

Inputs are numbers as they were measured, float32, NaN where nothing was measured: scaling is a part of every model.
`selvedge predict --arrays` writes such inputs. Run `selvedge evaluate` first, so that the card has intervals.")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenModel,
    /// The folder to write; by default `export` in the run directory. Only files of an earlier export are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// What to write
    #[arg(
        long,
        value_name = "NAME,NAME,…",
        value_delimiter = ',',
        default_value = "onnx,safetensors,card"
    )]
    pub(crate) format: Vec<Format>,
    /// Print what was written as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
