//! Cuts a set into shards.

use super::{DEVICES, HOSPITAL, INDEX, Index, IndexGroup, PREFIXES, STATISTICS, VERSION, folder};
use crate::files::npz::NpzWriter;
use crate::pseudonym::PseudonymKey;
use crate::rows::Dealt;
use crate::{DataError, deal};
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::DataSettings;
use selvedge_nn::Shape;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What was cut.
#[derive(Debug)]
pub struct Cut {
    /// Groups: each has two shards.
    pub groups: usize,
    /// Rows of all groups, validation and test.
    pub rows: usize,
    /// What a user should be told.
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

/// Cuts the set that `settings` name into the folder `out`, which must be new or empty.
///
/// # Errors
/// As [`load`](crate::load), and if `out` cannot be written to or holds something.
pub fn cut(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
    key: &PseudonymKey,
    out: &Path,
) -> Result<Cut, DataError> {
    if settings.set == "shards" {
        let expected = "shards are cut already: expected another set";
        return Err(crate::settings::wrong("set", "\"shards\"", expected));
    }
    let failed = |source| DataError::Io {
        file: out.to_owned(),
        source,
    };
    match fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            return Err(DataError::File {
                file: out.to_owned(),
                problem: "there is something in it: expected a new folder, or an empty one".into(),
            });
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let dealt = deal(settings, seed, data_dir)?;
    // Written beside its place and moved there, so that a full disk or a crash leaves nothing that looks whole.
    let partial = beside(out);
    let written = fs::remove_dir_all(&partial)
        .or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
        .and_then(|()| write(dealt, key, &partial))
        .and_then(|cut| {
            let _ = fs::remove_dir(out);
            fs::rename(&partial, out)?;
            Ok(cut)
        });
    if written.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    written.map_err(failed)
}

fn beside(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    out.with_file_name(name)
}

fn write(dealt: Dealt, key: &PseudonymKey, out: &Path) -> io::Result<Cut> {
    let groups = dealt.dataset.groups.len();
    for group in 0..groups {
        let folder = out.join(folder(group));
        fs::create_dir_all(&folder)?;
        let held_out = |part: usize| Chosen {
            rows: (0..)
                .zip(&dealt.held_out[part])
                .filter(|(_, owner)| **owner as usize == group)
                .map(|(row, _)| row)
                .collect(),
            part: groups + part,
        };
        let own = Chosen {
            rows: (0..dealt.dataset.groups[group].samples.len() as u32).collect(),
            part: group,
        };
        let chosen = [own, held_out(0), held_out(1)];
        write_shard(
            &dealt,
            key,
            &folder.join(HOSPITAL),
            &chosen,
            |s| &s.x1,
            dealt.dataset.hospital,
            None,
        )?;
        let offsets = &dealt.dataset.groups[group].offsets;
        write_shard(
            &dealt,
            key,
            &folder.join(DEVICES),
            &chosen,
            |s| &s.x2,
            dealt.dataset.device,
            Some(offsets),
        )?;
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
            .map(|group| IndexGroup {
                name: group.name.clone(),
                devices: group.devices(),
                rows: group.samples.len(),
            })
            .collect(),
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

fn write_json(path: &Path, value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn write_shard(
    dealt: &Dealt,
    key: &PseudonymKey,
    path: &Path,
    chosen: &[Chosen; 3],
    side: impl Fn(&Samples) -> &[f32],
    shape: Shape,
    offsets: Option<&[u32]>,
) -> io::Result<()> {
    let dataset = &dealt.dataset;
    let mut npz = NpzWriter::new(BufWriter::new(File::create(path)?))?;
    for (chosen, prefix) in chosen.iter().zip(PREFIXES) {
        let groups = dataset.groups.len();
        let samples = match chosen.part.checked_sub(groups) {
            None => &dataset.groups[chosen.part].samples,
            Some(0) => &dataset.validation,
            Some(_) => &dataset.test,
        };
        let patients: Vec<[u8; 32]> = chosen
            .rows
            .iter()
            .map(|row| {
                let id = dealt.ids.get(chosen.part, *row as usize);
                let mut letters = [b'0'; 32];
                letters.copy_from_slice(key.pseudonym(&id).as_bytes());
                letters
            })
            .collect();
        npz.texts(&format!("{prefix}patients"), &patients)?;
        let width = shape.len();
        let values = chosen
            .rows
            .iter()
            .flat_map(|row| &side(samples)[*row as usize * width..][..width]);
        npz.floats(
            &format!("{prefix}x"),
            shape,
            &values.copied().collect::<Vec<f32>>(),
        )?;
        let labels: Vec<u32> = chosen
            .rows
            .iter()
            .map(|row| samples.y[*row as usize])
            .collect();
        npz.integers(&format!("{prefix}y"), &labels)?;
        if !prefix.is_empty() {
            npz.integers(&format!("{prefix}rows"), &chosen.rows)?;
        }
    }
    if let Some(offsets) = offsets {
        npz.integers("offsets", offsets)?;
    }
    npz.finish()
}
