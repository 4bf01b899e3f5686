//! `esr`: Epileptic Seizure Recognition, one second of EEG per row, five labels.
//!
//! [`table`] reads and checks the file, [`split`] says who gets which rows, this module cuts the rows
//! in halves (X1 to X89 at the hospital, X90 to X178 on the device), standardises them and makes
//! devices of them.

mod split;
mod table;

use crate::DataError;
pub(crate) use crate::label_pairs::CLASSES;
use crate::label_pairs::PAIRS;
use crate::settings::{at_least_one, check_shares, wrong};
use crate::standardise::Scale;
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::experiment::{DataSettings, one_of};
use selvedge_nn::Shape;
use split::{Split, group_name};
use std::path::Path;
use table::{Table, WIDTH};

/// The first half of a row stays at the hospital, the second is on the device.
const HALF: usize = WIDTH / 2;

/// The names that `data.split` may have.
const SPLITS: [&str; 2] = ["paper", "recording"];

/// Reads, splits and standardises the set; also says what a user should know about the split.
pub(crate) fn load(
    settings: &DataSettings,
    seed: u64,
    data_dir: Option<&Path>,
) -> Result<(Dataset, Vec<String>), DataError> {
    check(settings)?;
    let table = Table::read(data_dir)?;
    let split = split::split(&table, settings, seed)?;
    let scale = scale_of_training(&table, &split);
    let samples = |rows: &[usize]| {
        let mut samples = Samples::default();
        for &row in rows {
            let row = &table.rows[row];
            let (x1, x2) = table.values(row).split_at(HALF);
            samples.x1.extend(x1.iter().map(|&x| scale.apply(x)));
            samples.x2.extend(x2.iter().map(|&x| scale.apply(x)));
            samples.y.push(row.label as u32);
        }
        samples
    };
    let group = |(group, rows): (usize, &Vec<usize>)| Group {
        name: group_name(group),
        samples: samples(rows),
        offsets: offsets(rows.len(), settings.samples_per_device),
    };
    let dataset = Dataset {
        name: "esr".into(),
        hospital: Shape::Flat(HALF),
        device: Shape::Flat(WIDTH - HALF),
        classes: (1..=CLASSES).map(|label| label.to_string()).collect(),
        groups: split.groups.iter().enumerate().map(group).collect(),
        validation: samples(&split.validation),
        test: samples(&split.test),
    };
    Ok((dataset, notes(&split)))
}

fn check(settings: &DataSettings) -> Result<(), DataError> {
    if settings.groups != PAIRS.len() {
        let expected = "the groups of \"esr\" are the ten pairs of its labels: expected 10";
        return Err(wrong("groups", settings.groups, expected));
    }
    if !SPLITS.contains(&settings.split.as_str()) {
        let expected = one_of(&settings.split, &SPLITS);
        return Err(wrong("split", format!("{:?}", settings.split), expected));
    }
    at_least_one("samples_per_device", settings.samples_per_device)?;
    check_shares(settings)
}

/// One mean and one deviation for all 178 columns of the training rows.
///
/// The columns are moments of one signal from one amplifier, cut at arbitrary times, so they all
/// estimate the same mean and deviation; a scale per column would add their sampling error as a fixed
/// ripple over time and bend every waveform by it. A recurrent layer feeds all columns to the same
/// weights, which asks for one unit in all of them. And it keeps what tells seizures apart: how large
/// the signal is.
fn scale_of_training(table: &Table, split: &Split) -> Scale {
    let rows = split.groups.iter().flatten();
    Scale::of(rows.flat_map(|&row| table.values(&table.rows[row]).iter().copied()))
}

/// Puts `rows` rows together, `each` to a device; the last one may get fewer.
fn offsets(rows: usize, each: usize) -> Vec<u32> {
    (0..rows)
        .step_by(each)
        .chain([rows])
        .map(|offset| offset as u32)
        .collect()
}

fn notes(split: &Split) -> Vec<String> {
    if split.left_out.is_empty() {
        return Vec::new();
    }
    let kept: usize = split.groups.iter().map(Vec::len).sum();
    vec![format!(
        "{} of {} training rows are left out, so that all groups are equally large",
        split.left_out.len(),
        kept + split.left_out.len()
    )]
}
