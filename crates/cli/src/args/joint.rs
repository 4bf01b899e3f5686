//! Arguments of joint predictions: who answers them, and who asks for them.

use clap::Args as Arguments;
use std::path::PathBuf;

/// Of `selvedge node`.
#[derive(Arguments)]
pub(crate) struct AnswerArgs {
    /// Stay when the run is over, and answer `selvedge ask` until SIGTERM or Ctrl-C; for a hospital and its edge
    #[arg(long)]
    pub(crate) answer: bool,
    /// A hospital's CSV or Parquet file with patients who did not take part, labels or none; may be given again
    #[arg(long, value_name = "FILE", requires = "answer")]
    pub(crate) table: Vec<PathBuf>,
}

/// Which patients of a gateway's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OwnPart {
    /// Those it trained on
    Training,
    /// Those that were held out to choose settings by
    Validation,
    /// Those that were held out for the test
    Test,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/ask.txt").trim_end())]
pub(crate) struct AskArgs {
    /// The gateway's config
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// A CSV or Parquet file with vital signs, of the same columns as for enrolment; may be given again
    #[arg(long, value_name = "FILE", conflicts_with = "part")]
    pub(crate) input: Vec<PathBuf>,
    /// Only this patient, by id or pseudonym; may be given again
    #[arg(long, value_name = "ID")]
    pub(crate) patient: Vec<String>,
    /// Only this part of those who took part
    #[arg(long, value_enum)]
    pub(crate) part: Option<OwnPart>,
    /// Write CSV to this file instead of the output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// How long to wait, in seconds, when nothing is heard
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let expected = "expected a number of seconds from 0.1 to 86400";
    super::number(text, 0.1..=86_400.0, expected)
}
