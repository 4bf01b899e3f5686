//! Arguments of joint predictions: who answers them, and who asks for them.

use clap::Args as Arguments;
use std::path::PathBuf;

/// Of `selvedge node`.
#[derive(Arguments)]
pub(crate) struct AnswerArgs {
    /// Stay after the run is over, and answer `selvedge ask` until SIGTERM or Ctrl-C; for a hospital and its edge
    #[arg(long)]
    pub(crate) answer: bool,
    /// A hospital's CSV or Parquet file with patients who did not take part, with or without labels; can be repeated
    #[arg(long, value_name = "FILE", requires = "answer")]
    pub(crate) table: Vec<PathBuf>,
}

/// Which patients of a gateway's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OwnPart {
    /// The training patients
    Training,
    /// The patients held out for validation
    Validation,
    /// The patients held out for the test
    Test,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/ask.txt").trim_end())]
pub(crate) struct AskArgs {
    /// The gateway's configuration file, node.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// A CSV or Parquet file with vital signs, with the same columns as for enrolment; can be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "part")]
    pub(crate) input: Vec<PathBuf>,
    /// Only this patient, by id or pseudonym; can be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) patient: Vec<String>,
    /// Only this part of the patients who took part
    #[arg(long, value_enum)]
    pub(crate) part: Option<OwnPart>,
    /// Write the CSV to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Seconds to wait without an answer before giving up
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Print the model's raw probabilities, without calibration on the validation data
    #[arg(long)]
    pub(crate) uncalibrated: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let expected = "expected a number of seconds from 0.1 to 86400";
    super::number(text, 0.1..=86_400.0, expected)
}
