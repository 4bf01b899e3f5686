//! `selvedge tune`

use super::train::level;
use super::{print, print_json};
use crate::args::TuneArgs;
use crate::comparison::targets::Target;
use crate::files::write_whole;
use crate::training::catch_interrupts;
use crate::tune::{self, Goal};
use crate::{Outcome, load};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &TuneArgs) -> Result<Outcome> {
    let named = load::experiment(&args.experiment)?;
    let goal = match (&args.target, args.budget) {
        (Some(text), _) => Goal::Target(Target::parse(text)?),
        (None, Some(bytes)) if bytes > 0.0 && bytes.is_finite() => Goal::Budget(bytes),
        (None, Some(bytes)) => bail!("--budget {bytes}: bytes of one group, above 0, like 50e6"),
        (None, None) => Goal::Open,
    };
    let file = args.apply.as_ref().map(|file| match file {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}-tuned.toml", named.name)),
    });
    if let Some(file) = file.as_ref().filter(|file| file.exists()) {
        bail!(
            "{} is there already: remove it, or give --apply another name",
            file.display()
        );
    }
    tune::check(&named.experiment, &goal)?;
    catch_interrupts()?;
    let dataset = load::dataset(&named.experiment, &args.experiment.data)?;
    let level = level(args.simd.as_deref())?;
    let Some(tuned) = tune::tune(&named.experiment, &dataset, &goal, level)? else {
        crate::say("interrupted; nothing was written");
        return Ok(Outcome::Interrupted);
    };
    if let Some(file) = &file {
        write(file, &named.name, &tuned)?;
    }
    match args.json {
        true => print_json(&tune::output::json(&tuned)?)?,
        false => {
            let next = match &file {
                Some(file) => format!(
                    "\nWritten   {}\nTrain     selvedge train {}{}\n",
                    file.display(),
                    file.display(),
                    args.experiment.data.as_option()
                ),
                None => "\n--apply writes this as an experiment\n".into(),
            };
            print(&format!(
                "{}{next}",
                tune::output::text(&named.name, &tuned)
            ))?;
        }
    }
    Ok(Outcome::Done)
}

fn write(file: &Path, name: &str, tuned: &tune::Tuned) -> Result<()> {
    let chosen = tuned.chosen();
    let text = format!(
        "# {name}, tuned: {}\n\n{}",
        chosen.label,
        chosen.experiment.to_toml()
    );
    write_whole(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))
}
