//! `selvedge tune`

use super::print_either;
use super::train::level;
use crate::args::TuneArgs;
use crate::comparison::targets::Target;
use crate::interrupt::catch_interrupts;
use crate::tune::{self, Goal, Tuned, output};
use crate::{Outcome, load};
use anyhow::{Result, bail};
use selvedge_run::format::shell;
use selvedge_run::outputs::{Kind, Output};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &TuneArgs) -> Result<Outcome> {
    let named = load::experiment(&args.experiment)?;
    let goal = goal(args)?;
    let file = args.apply.as_ref().map(|file| match file {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}-tuned.toml", named.name)),
    });
    if let Some(file) = &file {
        check_place(file)?;
    }
    tune::check(&named.experiment, &goal)?;
    catch_interrupts();
    let dataset = load::dataset(&named.experiment, &args.experiment.data)?;
    if let Goal::Target(target) = &goal {
        target.check(dataset.outcome.kind())?;
    }
    let level = level(args.simd.as_deref())?;
    let Some(tuned) = tune::tune(&named.experiment, &dataset, &goal, level)? else {
        crate::say("interrupted; nothing was written");
        return Ok(Outcome::Interrupted);
    };
    let next = match &file {
        Some(file) => {
            let (word, data) = (shell(file), args.experiment.data.as_option());
            let file = file.display();
            format!("\nFile      {file}\nTrain     selvedge train {word}{data}\n")
        }
        None => "\n--apply writes this as an experiment\n".into(),
    };
    // Printed first: should it not be possible to write the file, nothing is lost.
    let text = output::text(&named.name, &tuned) + &next;
    print_either(args.json, &output::json(&tuned)?, &text)?;
    if let Some(file) = &file {
        write(file, &named.name, &tuned)?;
    }
    Ok(Outcome::Done)
}

fn goal(args: &TuneArgs) -> Result<Goal> {
    Ok(match (&args.target, args.budget) {
        (Some(text), _) => Goal::Target(Target::parse(text)?),
        (None, Some(bytes)) if bytes > 0.0 && bytes.is_finite() => Goal::Budget(bytes),
        (None, Some(bytes)) => {
            bail!("--budget {bytes}: expected bytes per group, above 0, like 50e6")
        }
        (None, None) => Goal::Open,
    })
}

/// Refuses a file that is there or that cannot be, before anything is tried.
fn check_place(file: &Path) -> Result<()> {
    if file.exists() {
        bail!(
            "{} already exists: remove it, or choose another name with --apply=FILE",
            file.display()
        );
    }
    output(file).check(&[])?;
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|p| !p.is_dir()) {
        bail!("--apply: there is no folder {}", parent.display());
    }
    Ok(())
}

fn output(path: &Path) -> Output<'_> {
    Output {
        option: "--apply",
        path,
        kind: Kind::New("an experiment"),
    }
}

fn write(file: &Path, name: &str, tuned: &Tuned) -> Result<()> {
    let text = format!(
        "# {name}, tuned: {}\n\n{}",
        tuned.chosen().label,
        tuned.written().to_toml()
    );
    Ok(output(file).write(text)?)
}
