//! Arguments of the commands that use a trained model.

use super::DataDirectory;
use clap::Args as Arguments;
use selvedge_core::assess::Goal;
use selvedge_run::WhichModel;
use selvedge_run::deciding::Wishes;
use std::ops::Bound;
use std::path::PathBuf;

/// Which model of a run.
#[derive(Arguments)]
pub(crate) struct ChosenModel {
    /// A run directory
    pub(crate) run: PathBuf,
    /// Use the model that was best on the validation data: the default if the run held out any
    #[arg(long)]
    best: bool,
    /// Use the model of the last iteration
    #[arg(long, conflicts_with = "best")]
    last: bool,
}

impl ChosenModel {
    /// The model that is meant.
    pub(crate) fn which(&self) -> WhichModel {
        match (self.best, self.last) {
            (true, _) => WhichModel::Best,
            (_, true) => WhichModel::Last,
            _ => WhichModel::Usual,
        }
    }
}

/// Which model of a run, and how it decides.
#[derive(Arguments)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenModel,
    /// Use the model's raw probabilities, without calibration on the validation data
    #[arg(long)]
    pub(crate) uncalibrated: bool,
    /// Choose the threshold that reaches this sensitivity on the validation samples, like 0.9
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "specificity")]
    pub(crate) sensitivity: Option<f64>,
    /// Choose the threshold that reaches this specificity on the validation samples, like 0.9
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) specificity: Option<f64>,
    /// The positive class; by default the one that `data.table.positive` names, the obvious one of two, or the rarer
    #[arg(long, value_name = "CLASS")]
    pub(crate) positive: Option<String>,
    /// If files mark rows as training, validation or test: use every row, not only the test rows
    #[arg(long)]
    pub(crate) all: bool,
}

impl ModelArgs {
    /// How it decides.
    pub(crate) fn wishes(&self) -> Wishes {
        Wishes {
            uncalibrated: self.uncalibrated,
            positive: self.positive.clone(),
            goal: match (self.sensitivity, self.specificity) {
                (Some(share), _) => Some(Goal::Sensitivity(share)),
                (None, Some(share)) => Some(Goal::Specificity(share)),
                (None, None) => None,
            },
        }
    }
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/predict.txt").trim_end())]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// A file or folder with patients; can be repeated
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) input: Vec<PathBuf>,
    /// The CSV file to write; by default the predictions are printed
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write the model's inputs, unscaled and NaN where missing, to an .npz file, for an exported model
    #[arg(long, value_name = "FILE")]
    pub(crate) arrays: Option<PathBuf>,
    /// Stop without predictions if any patient has a new category, a value outside the training range, a value in a
    /// column that was never measured in training, or none in one that always was; or if any row or measurement
    /// of the files is left out
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the predictions as one JSON object
    #[arg(long, conflicts_with = "out")]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/evaluate.txt").trim_end())]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// A file or folder with patients and their labels; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Vec<PathBuf>,
    /// How often patients are resampled for the confidence intervals
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub(crate) resamples: u64,
    /// The confidence level of the intervals
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    pub(crate) confidence: f64,
    /// Write a page with the ROC, precision-recall and calibration curves
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) directory: DataDirectory,
    /// Print the result as one JSON object, with the points of all curves
    #[arg(long)]
    pub(crate) json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    super::number(text, 0.0..=1.0, "expected a share from 0 to 1, like 0.9")
}

fn confidence(text: &str) -> Result<f64, String> {
    let inside = (Bound::Excluded(0.0), Bound::Excluded(1.0));
    super::number(text, inside, "expected a share between 0 and 1, like 0.95")
}
