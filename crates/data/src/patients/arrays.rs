//! Patients as arrays, for any run.

use crate::DataError;
use crate::asked::Known;
use crate::files::npy::{self, Kind};
use crate::files::unzip::{Archive, Problem};
use crate::inputs::Inputs;
use crate::rows::{Part, Purpose, Rows, Side, UNLABELLED};
use crate::statistics::{Scaling, SideStatistics};
use selvedge_core::outcome::Targets;
use selvedge_nn::Shape;
use std::collections::HashMap;
use std::io::{self, BufReader, Seek};
use std::path::Path;

/// Numbers as they were measured, in the arrays `hospital` and `device`; an `.npz` without them is another set's.
pub(super) fn arrays(
    file: &Path,
    inputs: &Inputs,
    purpose: Purpose,
) -> Result<Option<Rows>, DataError> {
    if file.extension().is_none_or(|end| end != "npz") || !file.is_file() {
        return Ok(None);
    }
    let problem = |problem: Problem| DataError::file(file, problem);
    let mut archive = Archive::open(BufReader::new(crate::files::open(file)?)).map_err(problem)?;
    if archive.find("hospital.npy").is_none() || archive.find("device.npy").is_none() {
        return Ok(None);
    }
    let [hospital, device] = [("hospital", 0), ("device", 1)]
        .map(|(name, side)| array(&mut archive, name, inputs.sides()[side].0).map_err(problem));
    let (hospital, device) = (hospital?, device?);
    let count = hospital.values.len() / hospital.shape.len().max(1);
    let (outcome, names) = (&inputs.statistics.outcome, &inputs.statistics.classes);
    let labelled = purpose == (Purpose::New { labelled: true });
    let (y, known) = match outcome.targets(names) {
        Targets::Classes(_) if labelled => {
            let y = labels(&mut archive, names.len()).map_err(problem)?;
            (y, None)
        }
        Targets::Classes(_) => (vec![UNLABELLED; count], None),
        Targets::Numbers { each, .. } => {
            let values = match labelled {
                true => known(&mut archive, each).map_err(problem)?,
                false => vec![f32::NAN; count * each],
            };
            let targets = Targets::Numbers { each, values };
            if labelled && let Some(wrong) = outcome.problem_of(names, &targets) {
                return Err(problem(format!("array \"y\": {wrong}")));
            }
            let (known, y) = Known::new(outcome.kind(), names, targets.numbers().to_vec());
            (y, Some(known))
        }
    };
    let ids: Vec<String> = match archive.find("id.npy") {
        None => (0..count).map(|row| row.to_string()).collect(),
        Some(_) => {
            let (header, unpacking) = npy::open(&mut archive, "id").map_err(problem)?;
            npy::texts(&header, unpacking, "id").map_err(problem)?
        }
    };
    let mut rows = HashMap::new();
    for (row, id) in ids.iter().enumerate() {
        if let Some(first) = rows.insert(id, row) {
            return Err(problem(format!(
                "array \"id\" has {id:?} in rows {first} and {row}: expected a different id for each patient"
            )));
        }
    }
    let of_device = device.values.len() / device.shape.len().max(1);
    if [of_device, y.len(), ids.len()].iter().any(|n| *n != count) {
        return Err(problem(format!(
            "{count} hospital rows, {of_device} device rows, {} labels, {} ids: expected the same number of each",
            y.len(),
            ids.len()
        )));
    }
    Ok(Some(Rows {
        classes: inputs.statistics.classes.clone(),
        y,
        known,
        ids,
        parts: vec![Part::Open; count],
        ..Rows::new(&inputs.statistics.set, file, [hospital, device], "iid")
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
    let shape = Shape::try_from(statistics.shape.clone()).map_err(|error| error.to_string())?;
    let scaling = Scaling::Given(statistics.scales.clone());
    Ok(Side {
        names: statistics.names.clone(),
        ..Side::new(shape, values, scaling)
    })
}

/// Numbers that are known of each patient.
fn known<R: io::Read + Seek>(archive: &mut Archive<R>, each: usize) -> Result<Vec<f32>, Problem> {
    let (header, unpacking) = npy::open(archive, "y")?;
    if header.shape.get(1).copied().unwrap_or(1) != each || header.shape.len() > 2 {
        return Err(format!(
            "array \"y\" has the shape {:?}: expected [patients, {each}]",
            header.shape
        ));
    }
    let mut values = Vec::new();
    npy::numbers(&header, unpacking, "y", |_, value| {
        values.push(value as f32);
        Ok(())
    })?;
    Ok(values)
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
