//! Which runs a path means.

use crate::comparison::Comparison;
use crate::error::{Result, bail};
use crate::files::{COMPARISON, MANIFEST, SEEDS, check_readable, is_run, of_seed};
use crate::seeds::Seeds;
use std::path::{Path, PathBuf};

/// A run that is to be, whether or not it has begun.
pub(super) struct Planned {
    pub(super) path: PathBuf,
    /// What the comparison it belongs to calls it.
    pub(super) variant: Option<String>,
}

impl Planned {
    fn has_begun(&self) -> bool {
        is_run(&self.path)
    }
}

/// The runs at these paths that have begun.
pub(super) fn runs(paths: &[PathBuf]) -> Result<Vec<Planned>> {
    let mut all = Vec::new();
    for path in paths {
        let planned = planned(path)?;
        let begun: Vec<Planned> = planned.into_iter().filter(Planned::has_begun).collect();
        if begun.is_empty() {
            bail!("{}: none of its runs has begun yet", path.display());
        }
        all.extend(begun);
    }
    Ok(all)
}

/// A sentence for each path of which some runs have not begun.
///
/// # Errors
/// If a path has no runs.
pub fn incomplete(paths: &[PathBuf]) -> Result<Vec<String>> {
    let mut sentences = Vec::new();
    for path in paths {
        let planned = planned(path)?;
        let begun = planned.iter().filter(|run| run.has_begun()).count();
        if begun == planned.len() {
            continue;
        }
        let mut sentence = format!(
            "{}: {begun} of {} runs have begun",
            path.display(),
            planned.len()
        );
        let mut absent: Vec<&str> = Vec::new();
        for variant in planned.iter().filter_map(|run| run.variant.as_deref()) {
            let of_it = |run: &&Planned| run.variant.as_deref() == Some(variant);
            if !absent.contains(&variant) && !planned.iter().filter(of_it).any(Planned::has_begun) {
                absent.push(variant);
            }
        }
        if !absent.is_empty() {
            sentence += &format!(", none of `{}`", absent.join("`, `"));
        }
        sentences.push(sentence);
    }
    Ok(sentences)
}

fn planned(path: &Path) -> Result<Vec<Planned>> {
    if is_run(path) {
        return Ok(vec![Planned {
            path: path.into(),
            variant: None,
        }]);
    }
    let of_seeds = |folder: &Path, seeds: &[u64], variant: Option<&str>| -> Vec<Planned> {
        let run = |seed: &u64| Planned {
            path: of_seed(folder, *seed),
            variant: variant.map(Into::into),
        };
        seeds.iter().map(run).collect()
    };
    if let Some(note) = Seeds::read(path)? {
        return Ok(of_seeds(path, &note.seeds, None));
    }
    if let Some(note) = Comparison::read(path)? {
        let variants = note.variants.iter();
        return Ok(variants
            .flat_map(|v| of_seeds(&path.join(&v.folder), &note.seeds, Some(&v.label)))
            .collect());
    }
    check_readable(&path.join(MANIFEST))?;
    if !path.exists() {
        bail!("{}: there is no such folder", path.display());
    }
    bail!(
        "{} is not a run directory: it has no {MANIFEST}, and no {SEEDS} or {COMPARISON} either",
        path.display()
    )
}
