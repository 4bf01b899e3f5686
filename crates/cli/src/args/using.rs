//! Arguments of the commands that use a trained model.

use super::DataDirectory;
use clap::Args as Arguments;
use selvedge_core::assess::Goal;
use selvedge_run::WhichModel;
use selvedge_run::deciding::Wishes;
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
#[command(after_help = "\
Examples:
  selvedge predict runs/my-42 --input new.csv
  selvedge predict runs/my-42 --input labs.csv --input vitals.csv --out predictions.csv
  selvedge predict runs/physionet2012-42 --input set-c --sensitivity 0.9 --out predictions.csv

Patients come in the format of the data that the run was trained on: a table with the same columns (the file with one row for each
patient first; a label is not needed), a folder or an archive of PhysioNet's or mimic3-benchmarks' stays, ESR's CSV, MedMNIST's
.npz; or, for any run, an .npz with the arrays hospital and device as they were measured, NaN where nothing was. The run directory
is enough: its training data is not needed.

Columns: id, prediction, a probability of each class, and notes on what is unlike training. Probabilities are calibrated on the
run's validation patients; the prediction is the likeliest class or, with --sensitivity or --specificity, the positive class where
its probability reaches a threshold. Exit code 2 if a column is missing, with --strict also if anything is unlike training.")]
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
#[command(after_help = "\
Examples:
  selvedge evaluate runs/synthetic-42
  selvedge evaluate runs/esr-42 --last --json
  selvedge evaluate runs/my-42 --data later.csv --sensitivity 0.9
  selvedge evaluate runs/physionet2012-42 --data set-b --html set-b.html

Without --data, on the run's own training, validation and test patients, whose files must be at hand; the result is also written
to the run's evaluation.json. With --data, on other patients with labels, in the formats of `selvedge predict`; the run directory is
enough. What is measured is what `selvedge predict` gives. Intervals are from patients drawn again and again from those who are
there, all rows of a patient together.")]
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
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share from 0 to 1, like 0.9".into()),
    }
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("expected a share between 0 and 1, like 0.95".into()),
    }
}
