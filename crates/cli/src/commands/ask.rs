//! `selvedge ask`: joint predictions, written or printed.

use super::{print, print_json};
use crate::Outcome;
use crate::args::AskArgs;
use crate::deploy::ask;
use crate::interrupt::{catch_interrupts, interrupted_flag};
use crate::written::is_predictions;
use anyhow::{Result, bail};
use selvedge_run::outputs::{Kind, Output};

/// Ids of unknown patients that are told one by one.
const TOLD: usize = 20;

pub(crate) fn run(args: &AskArgs) -> Result<Outcome> {
    let output = args.out.as_ref().map(|path| Output {
        option: "--out",
        path,
        kind: Kind::Known("predictions", &is_predictions),
    });
    if let Some(output) = &output {
        output.check(&ask::files(args))?;
    }
    catch_interrupts();
    let Some(said) = ask::run(args, interrupted_flag())? else {
        return Ok(Outcome::Interrupted);
    };
    for id in said.unknown.iter().take(TOLD) {
        crate::say(&format!("unknown to the hospital: {id}"));
    }
    if said.unknown.len() > TOLD {
        crate::say(&format!("and {} more", said.unknown.len() - TOLD));
    }
    if said.answered() == 0 {
        bail!(
            "the hospital knows none of these patients: expected those who took part, or patients of a --table that `selvedge node hospital --answer` was given"
        );
    }
    match (&said.calibration, args.uncalibrated) {
        (Some(_), _) | (None, true) => {}
        (None, false) if !said.calibrates() => {}
        (None, false) => crate::say(
            "note: probabilities are the model's own: the run had no validation samples to calibrate them on, or too few, or of one class only",
        ),
    }
    if let Some(output) = &output {
        output.write_with(|file| {
            use std::io::Write;
            use std::os::unix::fs::PermissionsExt;
            // It is about patients.
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
            file.write_all(said.csv().as_bytes())
        })?;
        crate::say(&format!(
            "{} predictions in {}",
            said.answered(),
            output.path.display()
        ));
    }
    match (args.json, &args.out) {
        (true, _) => print_json(&said.json())?,
        (false, None) => print(&said.csv())?,
        (false, Some(_)) => {}
    }
    Ok(Outcome::Done)
}
