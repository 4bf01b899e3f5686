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
    /// The model that was best on the validation patients: what is used anyway where a run has any
    #[arg(long)]
    best: bool,
    /// The model of the last iteration instead
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
    /// Probabilities as the model says them, not corrected by what it said of the validation patients
    #[arg(long)]
    pub(crate) uncalibrated: bool,
    /// Find this share of those who have the positive class: a threshold is chosen on the validation patients
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "specificity")]
    pub(crate) sensitivity: Option<f64>,
    /// Leave this share of those alone who do not have it, likewise
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) specificity: Option<f64>,
    /// The class that is looked for; by default the second of two
    #[arg(long, value_name = "CLASS")]
    pub(crate) positive: Option<String>,
    /// Of files that say what each row is for: not only those for the test
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
    /// A file or folder with patients; may be given again
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) input: Vec<PathBuf>,
    /// The CSV file to write; by default it is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write what the model was given, as it was measured, as an .npz: the input of an exported model
    #[arg(long, value_name = "FILE")]
    pub(crate) arrays: Option<PathBuf>,
    /// Refuse patients of whom anything is unlike training: a new category, a value beyond all of training
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print everything as one JSON object
    #[arg(long, conflicts_with = "out")]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/evaluate.txt").trim_end())]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// A file or folder with patients and their labels; may be given again
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Vec<PathBuf>,
    /// How often patients are drawn for the intervals
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub(crate) resamples: u64,
    /// How much of what comes out an interval holds
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    pub(crate) confidence: f64,
    /// Write a page with the ROC, precision-recall and calibration curves
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) directory: DataDirectory,
    /// Print it as one JSON object, with the points of all curves
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
