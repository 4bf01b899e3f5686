//! Splits a data set into shards.

use super::index::VERSION;
use super::shard::{OFFSETS, Shard, ShardPart};
use super::{DEVICES, EDGE, HOSPITAL, INDEX, Index, IndexGroup, STATISTICS, folder};
use crate::files::npz::NpzWriter;
use crate::pseudonym::PseudonymKey;
use crate::rows::Dealt;
use crate::unfinished::{Unfinished, aside};
use crate::{DataError, read_or_generate};
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::DataSettings;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A data set that was split into shards.
#[derive(Debug)]
pub struct Cut {
    /// Groups: each has three shards, the hospital's, the devices' and the edge's.
    pub groups: usize,
    /// Rows of all groups, validation and test.
    pub rows: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The fingerprint of the statistics.
    pub statistics: String,
}

/// A row of a shard: its group or held-out part, and its number there.
struct Chosen {
    rows: Vec<u32>,
    /// Behind the groups: validation, then test.
    part: usize,
}

/// Splits the data set that `settings` name into shards in the folder `out`, which must be new or empty.
///
/// # Errors
/// As [`load`](crate::load), and if `out` cannot be written to or is not empty.
pub fn cut(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
    key: &PseudonymKey,
    out: &Path,
) -> Result<Cut, DataError> {
    if settings.set == "shards" {
        let expected = "shards are split already: expected a different data set";
        return Err(crate::settings::wrong("set", "\"shards\"", expected));
    }
    check_empty(out)?;
    let dealt = read_or_generate(settings, seed, data_dir)?;
    fill(out, |partial| write(dealt, key, partial))
}

/// Refuses a folder that holds something.
pub(super) fn check_empty(out: &Path) -> Result<(), DataError> {
    match fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(DataError::file(
            out,
            "it is not empty: expected a new folder, or an empty one",
        )),
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(DataError::io(out, source)),
        _ => Ok(()),
    }
}

/// Fills a new or empty folder, which appears once it is whole.
pub(super) fn fill<T>(
    out: &Path,
    write: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<T, DataError> {
    let filled = || {
        let (new, done) = filled(out, write)?;
        new.put()?;
        Ok(done)
    };
    filled().map_err(|source| DataError::io(out, source))
}

/// A full folder beside its place.
fn filled<T>(
    out: &Path,
    write: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<(Unfinished, T)> {
    let new = Unfinished::folder(out, 0o700)?;
    let done = write(new.path())?;
    only_own(new.path())?;
    Ok((new, done))
}

/// It may be about patients: nobody but its owner reads it, and no file of it if it is copied to somewhere open.
fn only_own(path: &Path) -> io::Result<()> {
    let mode = match path.is_dir() {
        true => 0o700,
        false => 0o600,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            only_own(&entry?.path())?;
        }
    }
    Ok(())
}

/// The same for a folder that may be full of what was filled in before: its `files` go when the new ones are whole.
pub(super) fn replace<T>(
    out: &Path,
    files: &[PathBuf],
    write: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<T, DataError> {
    if !out.exists() {
        return fill(out, write);
    }
    let replaced = || {
        let (new, done) = filled(out, write)?;
        let (place, old) = (fs::canonicalize(out)?, aside(out)?);
        fs::rename(&place, &old)?;
        if let Err(error) = new.put() {
            fs::rename(&old, &place)?;
            return Err(error);
        }
        // Whatever else has come there stays.
        for file in files.iter().filter_map(|file| file.strip_prefix(out).ok()) {
            fs::remove_file(old.join(file))?;
            let _ = file.parent().map(|group| fs::remove_dir(old.join(group)));
        }
        let _ = fs::remove_dir(&old);
        Ok(done)
    };
    replaced().map_err(|source| DataError::io(out, source))
}

fn write(dealt: Dealt, key: &PseudonymKey, out: &Path) -> io::Result<Cut> {
    let groups = dealt.dataset.groups.len();
    for group in 0..groups {
        let folder = out.join(folder(group));
        fs::create_dir_all(&folder)?;
        let held_out = |part: usize| Chosen {
            rows: dealt.dataset.held_out_rows(part, group),
            part: groups + part,
        };
        let own = Chosen {
            rows: (0..dealt.dataset.groups[group].samples.len() as u32).collect(),
            part: group,
        };
        let chosen = [own, held_out(0), held_out(1)];
        let (wide1, wide2) = (dealt.dataset.hospital, dealt.dataset.device);
        let hospital = shard(&dealt, key, &chosen, |s| &s.x1, wide1.len());
        hospital.write(&folder.join(HOSPITAL), wide1)?;
        let devices = shard(&dealt, key, &chosen, |s| &s.x2, wide2.len());
        devices.write(&folder.join(DEVICES), wide2)?;
        let edge = BufWriter::new(File::create(folder.join(EDGE))?);
        let mut npz = NpzWriter::new(edge)?;
        npz.integers(OFFSETS, dealt.dataset.groups[group].offsets.listed())?;
        npz.finish()?;
    }
    let statistics = dealt.statistics.fingerprint();
    write_json(&out.join(STATISTICS), &dealt.statistics.to_json())?;
    let index = Index {
        version: VERSION,
        set: dealt.dataset.name.clone(),
        groups: dealt
            .dataset
            .groups
            .iter()
            .enumerate()
            .map(|(number, group)| IndexGroup {
                name: group.name.clone(),
                devices: group.devices(),
                rows: group.samples.len(),
                held_out: dealt.dataset.held_out_counts(number),
            })
            .collect(),
        labels: dealt.dataset.label_counts(),
        largest: dealt.dataset.most_samples_of_a_device(),
        validation: dealt.dataset.validation.len(),
        test: dealt.dataset.test.len(),
        statistics: statistics.clone(),
        pseudonyms: key.name(),
        dataset: String::new(),
    };
    let loaded = dealt.scale();
    let index = Index {
        dataset: loaded.dataset.fingerprint(),
        ..index
    };
    write_json(&out.join(INDEX), &index)?;
    Ok(Cut {
        groups,
        rows: loaded.dataset.training_samples() + index.validation + index.test,
        notes: loaded.notes,
        statistics,
    })
}

pub(super) fn write_json(path: &Path, value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// What one side of a group holds of the rows that were chosen.
fn shard(
    dealt: &Dealt,
    key: &PseudonymKey,
    chosen: &[Chosen; 3],
    side: impl Fn(&Samples) -> &[f32],
    width: usize,
) -> Shard {
    let dataset = &dealt.dataset;
    let groups = dataset.groups.len();
    let part = |Chosen { rows, part }: &Chosen| {
        let (samples, places) = match part.checked_sub(groups) {
            None => (&dataset.groups[*part].samples, Vec::new()),
            Some(0) => (&dataset.validation, rows.clone()),
            Some(_) => (&dataset.test, rows.clone()),
        };
        let each = || rows.iter().map(|row| *row as usize);
        ShardPart {
            patients: each()
                .map(|row| key.pseudonym(&dealt.ids.get(*part, row)))
                .collect(),
            x: each()
                .flat_map(|row| &side(samples)[row * width..][..width])
                .copied()
                .collect(),
            y: samples.y.of(rows),
            rows: places,
        }
    };
    Shard {
        parts: chosen.each_ref().map(part),
        offsets: dataset.groups[chosen[0].part].offsets.listed().to_vec(),
        carried: None,
    }
}
