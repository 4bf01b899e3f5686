//! New patients, for a trained model: read like those of training, and scaled by the statistics of the training rows.
//!
//! Whatever is unlike training is an [`Oddity`]: a value beyond the range of training, an unknown category.

mod arrays;
mod oddity;

pub use oddity::{Odd, Oddity};

use crate::DataError;
use crate::files::npz::NpzWriter;
use crate::inputs::Inputs;
use crate::rows::{Part, Purpose, Rows, Side, UNLABELLED};
use crate::sets::{self, Source};
use crate::settings::wrong;
use arrays::arrays;
use oddity::oddities;
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::DataSettings;
use selvedge_nn::Shape;
use std::io::{self, Seek, Write};
use std::path::PathBuf;

/// Whether labels are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Each patient must have one: predictions are compared with them.
    Needed,
    /// They are unknown, or do not matter.
    Ignored,
}

/// Which rows are read from files that state what each row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are not for training or validation; all, if there are no others.
    Test,
    /// All of them.
    All,
}

/// Patients for a trained model.
#[derive(Debug)]
pub struct Patients {
    /// Their ids, in the order of the rows.
    pub ids: Vec<String>,
    /// Their numbers as they were read, NaN where nothing was measured. Labels are those of [`Patients::samples`].
    pub measured: [Vec<f32>; 2],
    /// Scaled, as the model takes them. Without labels all are of class 0, or of unknown numbers.
    pub samples: Samples,
    /// The group of each, and the names of the groups, where the file states them.
    pub groups: Option<(Vec<u32>, Vec<String>)>,
    /// Rows with the same number belong to one patient; empty: each row is a different patient.
    pub persons: Vec<u32>,
    /// What is unlike training.
    pub oddities: Vec<Oddity>,
    /// Whether all that is in the files is used: no row and no measurement was left out.
    pub complete: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Reads patients in the format of the set that `settings` name, or as arrays `hospital` and `device` of an `.npz`.
///
/// # Errors
/// If a file is missing or malformed, or lacks columns that the model was trained with.
pub fn read_patients(
    settings: &DataSettings,
    inputs: &Inputs,
    files: &[PathBuf],
    labels: Labels,
    which: Which,
) -> Result<Patients, DataError> {
    let purpose = Purpose::New {
        labelled: labels == Labels::Needed,
    };
    if let Some(missing) = files.iter().find(|file| !file.exists()) {
        return Err(DataError::file(missing, "there is no such file"));
    }
    let mut rows = read(settings, inputs, files, purpose)?;
    check(&rows, inputs)?;
    let chosen = choose(&mut rows, which);
    if chosen.is_empty() {
        return Err(DataError::file(rows.file, "no patients in it"));
    }
    Ok(gather(rows, &chosen, inputs))
}

fn read(
    settings: &DataSettings,
    inputs: &Inputs,
    files: &[PathBuf],
    purpose: Purpose,
) -> Result<Rows, DataError> {
    if let [file] = files
        && let Some(rows) = arrays(file, inputs, purpose)?
    {
        return Ok(rows);
    }
    match sets::find(&settings.set).map(|(set, twin)| (&set.source, twin)) {
        Some((Source::Files { read_new, .. }, None)) => read_new(settings, inputs, files, purpose),
        _ => Err(wrong(
            "set",
            format!("{:?}", settings.set),
            "this data set has no file format for new patients: expected an .npz with the arrays hospital and device",
        )),
    }
}

/// What was read must be what the model takes.
fn check(rows: &Rows, inputs: &Inputs) -> Result<(), DataError> {
    let problem = |problem: String| DataError::file(&rows.file, problem);
    let sides = [("hospital", &rows.hospital), ("device", &rows.device)];
    for ((name, side), (statistics, _)) in sides.into_iter().zip(inputs.sides()) {
        if side.shape.dims() != statistics.shape {
            return Err(problem(format!(
                "the {name}'s rows are of shape {:?}: expected {:?}, as in training",
                side.shape.dims(),
                statistics.shape
            )));
        }
        let differ = |(a, b): &(&String, &String)| a != b;
        let mut pairs = side.names.iter().zip(&statistics.names);
        if let Some((found, expected)) = pairs.find(differ) {
            return Err(problem(format!(
                "the {name} has {found:?}: expected {expected:?}, as in training"
            )));
        }
    }
    if let Some(known) = &rows.known {
        let statistics = &inputs.statistics;
        if known.kind != statistics.outcome.kind() {
            return Err(problem(format!(
                "its outcome is {}: expected {}, as in training",
                known.kind.name(),
                statistics.outcome.kind().name()
            )));
        }
        return Ok(());
    }
    let known = &inputs.statistics.classes;
    let classes = known.len() as u32;
    let is_named = rows
        .classes
        .iter()
        .any(|class| class.parse::<u32>().is_err());
    let labelled = rows.y.iter().any(|y| *y != UNLABELLED);
    if labelled && is_named && rows.classes != *known {
        return Err(problem(format!(
            "its classes are {}: expected {}, as in training",
            rows.classes.join(", "),
            known.join(", ")
        )));
    }
    let beyond = |y: &&u32| **y != UNLABELLED && **y >= classes;
    match rows.y.iter().find(beyond) {
        None => Ok(()),
        Some(y) => Err(problem(format!(
            "a label of class {y}: expected one of the model's {classes}, {}",
            inputs.statistics.classes.join(", ")
        ))),
    }
}

/// The rows that are read.
fn choose(rows: &mut Rows, which: Which) -> Vec<usize> {
    let is_trained_on = |part: Part| [Part::Training, Part::Validation].contains(&part);
    let all = 0..rows.parts.len();
    let (known, new): (Vec<usize>, Vec<usize>) =
        all.clone().partition(|row| is_trained_on(rows.parts[*row]));
    if known.is_empty() {
        return new;
    }
    if which == Which::Test && !new.is_empty() {
        rows.notes.push(format!(
            "{} of {} rows are for training or validation, and are left out",
            known.len(),
            all.len()
        ));
        return new;
    }
    rows.notes.push(format!(
        "{} of {} rows are for training or validation: the model may have learnt from them",
        known.len(),
        all.len()
    ));
    all.collect()
}

fn gather(rows: Rows, chosen: &[usize], inputs: &Inputs) -> Patients {
    let measured = [&rows.hospital, &rows.device].map(|side: &Side| {
        let mut values = Vec::with_capacity(chosen.len() * side.shape.len());
        for row in chosen {
            values.extend_from_slice(side.row(*row));
        }
        values
    });
    let [mut x1, mut x2] = measured.clone();
    inputs.statistics.hospital.apply(&mut x1);
    inputs.statistics.device.apply(&mut x2);
    let oddities = oddities(&rows, chosen, &measured, inputs);
    let label = |row: &usize| match rows.y[*row] {
        UNLABELLED => 0,
        y => y,
    };
    let y = match &rows.known {
        None => chosen.iter().map(label).collect(),
        Some(known) => {
            let rows: Vec<u32> = chosen.iter().map(|row| *row as u32).collect();
            known.targets.of(&rows)
        }
    };
    let of_chosen = |numbers: &[u32]| chosen.iter().map(|row| numbers[*row]).collect();
    Patients {
        ids: chosen.iter().map(|row| rows.ids[*row].clone()).collect(),
        measured,
        samples: Samples { x1, x2, y },
        groups: rows
            .given_groups
            .map(|given| (of_chosen(&given.of_row), given.names)),
        persons: match rows.units.is_empty() {
            true => Vec::new(),
            false => of_chosen(&rows.units),
        },
        oddities,
        complete: !rows.incomplete,
        notes: rows.notes,
    }
}

impl Patients {
    /// Writes their numbers as they were measured: the arrays `hospital` and `device` of an `.npz`, which exported
    /// models and [`read_patients`] take, and their ids.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write_npz(&self, inputs: &Inputs, out: impl Write + Seek) -> io::Result<()> {
        let mut npz = NpzWriter::new(out)?;
        for ((name, values), (statistics, _)) in ["hospital", "device"]
            .into_iter()
            .zip(&self.measured)
            .zip(inputs.sides())
        {
            let shape = Shape::try_from(statistics.shape.clone()).map_err(io::Error::other)?;
            npz.floats(name, shape, values)?;
        }
        npz.strings("id", &self.ids)?;
        npz.finish()
    }
}
