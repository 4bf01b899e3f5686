//! `selvedge data split`: one shard per party.

use crate::args::SplitArgs;
use crate::{Outcome, files, load};
use anyhow::{Context, Result};
use selvedge_data::PseudonymKey;
use selvedge_run::files::write_whole;
use selvedge_run::format::shell;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where a key is kept that was made here.
const KEY: &str = "pseudonym.key";

pub(in crate::commands) fn split(args: &SplitArgs) -> Result<Outcome> {
    let named = load::experiment(&args.experiment)?;
    let mut experiment = named.experiment;
    let key = match &args.key {
        Some(path) => files::read_key(path)?,
        None => new_key()?,
    };
    load::check_directory_of(&experiment, &args.experiment.data)?;
    let data_dir = args.experiment.data.data_dir.as_deref();
    let cut = selvedge_data::cut(&experiment.data, experiment.seed, data_dir, &key, &args.out)?;
    for note in &cut.notes {
        crate::note(note);
    }
    if args.key.is_none() {
        write_secret(&args.out.join(KEY), &key.to_text())?;
    }
    experiment.data.set = "shards".into();
    // Beside the experiment itself, so that the folder can be moved.
    experiment.data.path = ".".into();
    experiment.data.sizes = Vec::new();
    experiment.data.vertical = String::new();
    experiment.data.table = Default::default();
    let toml = args.out.join("experiment.toml");
    write_whole(&toml, experiment.to_toml().as_bytes())?;
    crate::say(&format!(
        "{} rows of {} groups cut into {} shards in {}\nstatistics {}",
        cut.rows,
        cut.groups,
        2 * cut.groups,
        args.out.display(),
        cut.statistics
    ));
    if args.key.is_none() {
        crate::say(&format!(
            "the pseudonym key is in {}: a secret that stays with you and goes to no party",
            args.out.join(KEY).display()
        ));
    }
    crate::say(&format!(
        "to train from them: selvedge train {}",
        shell(&toml)
    ));
    Ok(Outcome::Done)
}

fn new_key() -> Result<PseudonymKey> {
    let secret = selvedge_net::credentials::random();
    Ok(PseudonymKey::new(
        secret.context("the system has no random numbers")?,
    ))
}

/// Writes a file that only its owner can read.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    opened
        .and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}
