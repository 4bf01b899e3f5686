//! SHA-256 of a run's files: a file of another run, or one that has changed on its disk, is not used.
//!
//! A run writes those of its first files at its beginning and all others at its end, into its manifest. Runs of 0.2 have
//! none, and are used as they are.

use crate::error::{Context, Result, bail};
use crate::files::{ABSENCES, INITIAL, INPUTS, MANIFEST, OF_A_RUN};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Digests by the names of files.
pub(crate) type Digests = BTreeMap<String, String>;

/// What does not change once a run has begun.
const FIRST: [&str; 2] = [INITIAL, INPUTS];

/// Bytes that are read at once.
const PART: usize = 1 << 16;

/// The digests of what is there at the beginning of a run.
pub(crate) fn of_beginning(run: &Path) -> Result<Digests> {
    of(run, FIRST.into_iter())
}

/// The digests of what a run consists of at its end. The manifest holds them, and absences are added by others.
pub(crate) fn of_end(run: &Path) -> Result<Digests> {
    let names = OF_A_RUN.into_iter();
    of(
        run,
        names.filter(|name| ![MANIFEST, ABSENCES].contains(name)),
    )
}

/// Forgets what changes as the run goes on.
pub(crate) fn go_on(digests: &mut Digests) {
    digests.retain(|name, _| FIRST.contains(&name.as_str()));
}

fn of<'a>(run: &Path, names: impl Iterator<Item = &'a str>) -> Result<Digests> {
    let there = names.filter(|name| run.join(name).is_file());
    let digest = |name: &str| Ok((name.to_owned(), of_file(&run.join(name))?));
    there.map(digest).collect()
}

fn of_file(path: &Path) -> Result<String> {
    let digest = || -> io::Result<_> {
        let mut file = File::open(path)?;
        let (mut digest, mut part) = (Sha256::new(), vec![0; PART]);
        loop {
            match file.read(&mut part)? {
                0 => return Ok(digest.finalize()),
                n => digest.update(&part[..n]),
            }
        }
    };
    let bytes = digest().with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Checks files of a run before they are used. One that is not there is for whoever needs it to miss.
///
/// # Errors
/// If one is not the file that the run wrote, or cannot be read.
pub(crate) fn check(run: &Path, stated: &Digests, names: &[&str]) -> Result<()> {
    for name in names {
        let path = run.join(name);
        let Some(stated) = stated.get(*name).filter(|_| path.is_file()) else {
            continue;
        };
        let found = of_file(&path)?;
        if found != *stated {
            bail!(
                "{} is damaged or of another run: its SHA-256 is {}…, but this run's {MANIFEST} says {}…; restore the file, or train the run again",
                path.display(),
                found.get(..12).unwrap_or_default(),
                stated.get(..12).unwrap_or(stated)
            );
        }
    }
    Ok(())
}

/// Checks all that is stated, but for the inputs, which a run that is resumed writes again from its data.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_for_resuming(run: &Path, stated: &Digests) -> Result<()> {
    let names = stated.keys().map(String::as_str);
    let names: Vec<&str> = names.filter(|name| *name != INPUTS).collect();
    check(run, stated, &names)
}
