//! Patients whom training has not seen, for a model that is trained: read like those of training, and scaled by what
//! training rows showed.
//!
//! What the model cannot be told about them as it should be is an [`Oddity`]: a value beyond all that training has seen, a
//! category that it does not know.

use crate::files::npy::{self, Kind};
use crate::files::npz::NpzWriter;
use crate::files::unzip::{Archive, Problem};
use crate::inputs::{Inputs, SideInputs};
use crate::rows::{Part, Purpose, Rows, Side, UNLABELLED};
use crate::settings::wrong;
use crate::statistics::{Scale, SideStatistics};
use crate::{DataError, esr, medmnist, mimic3, physionet2012, table};
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::DataSettings;
use selvedge_nn::Shape;
use std::collections::HashSet;
use std::io::{self, BufReader, Seek, Write};
use std::path::{Path, PathBuf};

/// Whether labels are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Each patient must have one: predictions are compared with them.
    Needed,
    /// Nobody knows them, or they do not count.
    Ignored,
}

/// Which rows are read, of files whose publisher says what each row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are not for training or validation; all where none is.
    Test,
    /// All of them.
    All,
}

/// Patients for a trained model.
#[derive(Debug)]
pub struct Patients {
    /// What they are called, in the order of the rows.
    pub ids: Vec<String>,
    /// Their numbers as they were read, NaN where nothing was measured. Labels are those of [`Patients::samples`].
    pub measured: [Vec<f32>; 2],
    /// Scaled, as the model takes them. Without labels all are of class 0.
    pub samples: Samples,
    /// The group of each, and the names of the groups, where the file says it.
    pub groups: Option<(Vec<u32>, Vec<String>)>,
    /// Rows with the same number are of one patient; empty: each is of another.
    pub persons: Vec<u32>,
    /// What is unlike training.
    pub oddities: Vec<Oddity>,
    /// What a user should know about the reading.
    pub notes: Vec<String>,
}

/// Something of a patient that is unlike training.
#[derive(Clone, Debug, PartialEq)]
pub struct Oddity {
    /// The patient's row.
    pub row: usize,
    /// The column.
    pub column: String,
    /// What is odd about it.
    pub odd: Odd,
}

/// What can be odd.
#[derive(Clone, Debug, PartialEq)]
pub enum Odd {
    /// A value that lies beyond all that training has seen.
    Beyond {
        /// The value; of several the first.
        value: f32,
        /// The least and the greatest of training.
        range: [f32; 2],
    },
    /// A value of something that training has never seen measured.
    Unseen(f32),
    /// A category that training has not seen; it counts as not measured.
    Category(String),
    /// Nothing, where training always had something; or nothing at all of a side.
    Unmeasured,
}

/// Reads patients in the format of the set that `settings` name, or as arrays `hospital` and `device` of an `.npz`.
///
/// # Errors
/// If a file is missing or not what it should be, or lacks what the model was trained with.
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
        return Err(DataError::File {
            file: missing.clone(),
            problem: "there is no such file".into(),
        });
    }
    let mut rows = read(settings, inputs, files, purpose)?;
    check(&rows, inputs)?;
    let chosen = choose(&mut rows, which);
    if chosen.is_empty() {
        return Err(DataError::File {
            file: rows.file,
            problem: "no patients in it".into(),
        });
    }
    Ok(gather(rows, &chosen, inputs))
}

fn read(
    settings: &DataSettings,
    inputs: &Inputs,
    files: &[PathBuf],
    purpose: Purpose,
) -> Result<Rows, DataError> {
    let classes = &inputs.statistics.classes;
    if let [file] = files
        && let Some(rows) = arrays(file, inputs, purpose)?
    {
        return Ok(rows);
    }
    let single = |set: &str| match files {
        [file] => Ok(file),
        _ => Err(DataError::File {
            file: files.get(1).cloned().unwrap_or_default(),
            problem: format!("a second file: expected one, since the run is of {set:?}"),
        }),
    };
    match settings.set.as_str() {
        "table" => {
            let columns = [&inputs.hospital.columns[..], &inputs.device.columns];
            table::read_new(settings, columns, classes, files, purpose)
        }
        "physionet2012" => physionet2012::read_new(settings, files, purpose),
        "mimic3" => mimic3::read_new(settings, files, purpose),
        "esr" => esr::read_new(settings, single("esr")?, purpose),
        "medmnist" => medmnist::read_new(settings, single("medmnist")?, purpose),
        other => Err(wrong(
            "set",
            format!("{other:?}"),
            "the run's own data has no files that new patients could come in: expected an .npz with the arrays hospital and device",
        )),
    }
}

/// What was read must be what the model takes.
fn check(rows: &Rows, inputs: &Inputs) -> Result<(), DataError> {
    let problem = |problem: String| DataError::File {
        file: rows.file.clone(),
        problem,
    };
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
                "the {name} has {found:?} where the model was trained with {expected:?}"
            )));
        }
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
            "a label of class {y}: expected one of the {classes} that the model knows, {}",
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
        "{} of {} rows are for training or validation: the model may know them",
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
    let label = |row: &usize| match rows.y[*row] {
        UNLABELLED => 0,
        y => y,
    };
    let mut oddities = Vec::new();
    for (row, place) in chosen.iter().enumerate() {
        let of_row = rows.new_categories.get(&rows.ids[*place]);
        for (column, category) in of_row.into_iter().flatten() {
            oddities.push(Oddity {
                row,
                column: column.clone(),
                odd: Odd::Category(category.clone()),
            });
        }
    }
    for (number, name) in ["hospital", "device"].into_iter().enumerate() {
        let (statistics, side) = inputs.sides()[number];
        beyond(
            &measured[number],
            (name, statistics),
            &side.ranges,
            &mut oddities,
        );
        unmeasured(&measured[number], (name, statistics), side, &mut oddities);
    }
    // A new category is told as what it is.
    let new: HashSet<(usize, String)> = oddities
        .iter()
        .filter(|oddity| matches!(oddity.odd, Odd::Category(_)))
        .map(|oddity| (oddity.row, oddity.column.clone()))
        .collect();
    oddities.retain(|oddity| {
        oddity.odd != Odd::Unmeasured || !new.contains(&(oddity.row, oddity.column.clone()))
    });
    oddities.sort_by_key(|oddity| oddity.row);
    let of_chosen = |numbers: &[u32]| chosen.iter().map(|row| numbers[*row]).collect();
    Patients {
        ids: chosen.iter().map(|row| rows.ids[*row].clone()).collect(),
        measured,
        samples: Samples {
            x1,
            x2,
            y: chosen.iter().map(label).collect(),
        },
        groups: rows
            .given_groups
            .map(|given| (of_chosen(&given.of_row), given.names)),
        persons: match rows.units.is_empty() {
            true => Vec::new(),
            false => of_chosen(&rows.units),
        },
        oddities,
        notes: rows.notes,
    }
}

/// Finds values beyond those of training: of each row and column the first.
fn beyond(
    values: &[f32],
    (side, statistics): (&str, &SideStatistics),
    ranges: &[Option<[f32; 2]>],
    oddities: &mut Vec<Oddity>,
) {
    let wide = statistics.shape.iter().product::<usize>().max(1);
    if ranges.is_empty() {
        return;
    }
    for (row, values) in values.chunks_exact(wide).enumerate() {
        for (column, range) in ranges.iter().enumerate() {
            // One of several categories, or whether something was measured, has no range.
            let is_scaled = statistics.scales.get(column) != Some(&Scale::IDENTITY);
            if !is_scaled && !statistics.names.is_empty() {
                continue;
            }
            let mut own = values[column..].iter().step_by(ranges.len());
            let inside =
                |value: &f32| range.is_some_and(|[low, high]| (low..=high).contains(value));
            let Some(value) = own.find(|value| !value.is_nan() && !inside(value)) else {
                continue;
            };
            let name = statistics.names.get(column);
            oddities.push(Oddity {
                row,
                column: name.map_or_else(|| format!("the {side}'s numbers"), String::clone),
                odd: match range {
                    Some(range) => Odd::Beyond {
                        value: *value,
                        range: *range,
                    },
                    None => Odd::Unseen(*value),
                },
            });
        }
    }
}

/// Finds what was not measured of a patient at any time, though training always had it.
fn unmeasured(
    values: &[f32],
    (side, statistics): (&str, &SideStatistics),
    inputs: &SideInputs,
    oddities: &mut Vec<Oddity>,
) {
    let width = statistics.names.len();
    let features = features(statistics, inputs);
    if features.is_empty() {
        return;
    }
    let wide = statistics.shape.iter().product::<usize>().max(1);
    for (row, values) in values.chunks_exact(wide).enumerate() {
        let is_there = |feature: &&Feature<'_>| {
            let mut steps = values.chunks_exact(width);
            steps.any(|step| match feature.mask {
                Some(mask) => step[mask] != 0.0,
                None => !step[feature.at].is_nan(),
            })
        };
        let mut odd = |column: String| {
            oddities.push(Oddity {
                row,
                column,
                odd: Odd::Unmeasured,
            });
        };
        if !features.iter().any(|feature| is_there(&feature)) {
            odd(format!("all of the {side}'s"));
            continue;
        }
        for feature in features.iter().filter(|feature| feature.is_always_there) {
            if !is_there(&feature) {
                odd(feature.name.to_owned());
            }
        }
    }
}

/// Something that is measured of patients.
struct Feature<'a> {
    name: &'a str,
    /// Its first number in a row or step, and the number that says whether it was measured.
    at: usize,
    mask: Option<usize>,
    /// Whether training never lacked it.
    is_always_there: bool,
}

/// The features of a side, as far as it has names.
fn features<'a>(statistics: &'a SideStatistics, inputs: &'a SideInputs) -> Vec<Feature<'a>> {
    let mut at = 0;
    let of_table = inputs.columns.iter().map(|column| {
        let first = at;
        at += column.categories.as_ref().map_or(1, Vec::len);
        (first, column.name.as_str())
    });
    let mut found: Vec<(usize, &str)> = of_table.collect();
    if found.is_empty() {
        let is_scaled = |at: &usize| statistics.scales.get(*at) != Some(&Scale::IDENTITY);
        let names = statistics.names.iter().map(String::as_str).enumerate();
        found.extend(names.filter(|(at, _)| is_scaled(at)));
    }
    let feature = |(at, name): (usize, &'a str)| {
        let mask = format!("{name} measured");
        Feature {
            name,
            at,
            mask: statistics.names.iter().position(|other| *other == mask),
            is_always_there: statistics.missing.get(at) == Some(&0.0),
        }
    };
    let inside = found
        .into_iter()
        .filter(|(at, _)| *at < statistics.names.len());
    inside.map(feature).collect()
}

/// Numbers as they were measured, in the arrays `hospital` and `device`; an `.npz` without them is another set's.
fn arrays(file: &Path, inputs: &Inputs, purpose: Purpose) -> Result<Option<Rows>, DataError> {
    if file.extension().is_none_or(|end| end != "npz") || !file.is_file() {
        return Ok(None);
    }
    let problem = |problem: Problem| DataError::File {
        file: file.to_owned(),
        problem,
    };
    let mut archive = Archive::open(BufReader::new(crate::files::open(file)?)).map_err(problem)?;
    if archive.find("hospital.npy").is_none() || archive.find("device.npy").is_none() {
        return Ok(None);
    }
    let [hospital, device] = [("hospital", 0), ("device", 1)]
        .map(|(name, side)| array(&mut archive, name, inputs.sides()[side].0).map_err(problem));
    let (hospital, device) = (hospital?, device?);
    let count = hospital.values.len() / hospital.shape.len().max(1);
    let mut y = vec![UNLABELLED; count];
    if purpose == (Purpose::New { labelled: true }) {
        y = labels(&mut archive, inputs.statistics.classes.len()).map_err(problem)?;
    }
    let ids: Vec<String> = match archive.find("id.npy") {
        None => (0..count).map(|row| row.to_string()).collect(),
        Some(_) => {
            let (header, unpacking) = npy::open(&mut archive, "id").map_err(problem)?;
            npy::texts(&header, unpacking, "id").map_err(problem)?
        }
    };
    let of_device = device.values.len() / device.shape.len().max(1);
    if [of_device, y.len(), ids.len()].iter().any(|n| *n != count) {
        return Err(problem(format!(
            "{count} rows of the hospital, {of_device} of the device, {} labels, {} ids: expected as many of each",
            y.len(),
            ids.len()
        )));
    }
    Ok(Some(Rows {
        set: inputs.statistics.set.clone(),
        file: file.to_owned(),
        hospital,
        device,
        classes: inputs.statistics.classes.clone(),
        y,
        ids,
        parts: vec![Part::Open; count],
        units: Vec::new(),
        devices_are_units: false,
        given_groups: None,
        columns: Default::default(),
        new_categories: Default::default(),
        paper: "iid",
        notes: Vec::new(),
    }))
}

fn array<R: io::Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
    statistics: &SideStatistics,
) -> Result<Side, Problem> {
    let (header, unpacking) = npy::open(archive, name)?;
    if header.shape.get(1..) != Some(&statistics.shape[..])
        || !matches!(header.kind, Kind::Float { .. })
    {
        return Err(format!(
            "array {name:?} has the shape {:?}: expected floating point numbers of the shape [patients, {}]",
            header.shape,
            statistics
                .shape
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    let mut values = Vec::new();
    let wide = statistics.shape.iter().product::<usize>().max(1);
    npy::numbers(&header, unpacking, name, |index, value| {
        values.push(value as f32);
        match (value as f32).is_infinite() {
            true => Err(format!(
                "array {name:?}, row {}: {value} is not a number of at most 3.4e38, or nan",
                index / wide
            )),
            false => Ok(()),
        }
    })?;
    Ok(Side {
        shape: Shape::try_from(statistics.shape.clone()).map_err(|error| error.to_string())?,
        names: statistics.names.clone(),
        values,
        order: Vec::new(),
        scaling: crate::statistics::Scaling::Given(statistics.scales.clone()),
        gaps: Vec::new(),
    })
}

fn labels<R: io::Read + Seek>(
    archive: &mut Archive<R>,
    classes: usize,
) -> Result<Vec<u32>, Problem> {
    let (header, unpacking) = npy::open(archive, "y")?;
    let mut y = Vec::new();
    npy::numbers(&header, unpacking, "y", |_, value| {
        match (0.0..classes as f64).contains(&value) && value.fract() == 0.0 {
            true => {
                y.push(value as u32);
                Ok(())
            }
            false => Err(format!(
                "array \"y\" has {value}: expected classes, 0 to {}",
                classes - 1
            )),
        }
    })?;
    Ok(y)
}

impl Patients {
    /// Writes their numbers as they were measured: the arrays `hospital` and `device` of an `.npz`, which exported models
    /// and [`read_patients`] take, and their ids.
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
