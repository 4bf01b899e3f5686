//! One shard: the rows and columns of one party, checked number by number.

use super::gateway::Carried;
use super::index::wrong_file;
use super::{IndexGroup, PREFIXES};
use crate::DataError;
use crate::files::npy::{self, Kind};
use crate::files::npz::NpzWriter;
use crate::files::unzip::{Archive, Problem};
use selvedge_core::outcome::{Outcome, Targets};
use selvedge_nn::Shape;
use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

/// The array that says where each device's rows begin.
pub(super) const OFFSETS: &str = "offsets";

/// Letters of a pseudonym.
const LETTERS: usize = 32;

/// The outcome of rows, and the names of its classes.
pub(crate) type Asked<'a> = (&'a Outcome, &'a [String]);

/// One party's rows.
pub(crate) struct Shard {
    /// Training, validation, test.
    pub(super) parts: [ShardPart; 3],
    /// Where each device's rows begin, and where the last one's end.
    pub(super) offsets: Vec<u32>,
    /// Whose rows they are, if not of all devices.
    pub(super) carried: Option<Carried>,
}

#[derive(Default)]
pub(super) struct ShardPart {
    pub(super) patients: Vec<String>,
    pub(super) x: Vec<f32>,
    pub(super) y: Targets,
    /// The places of held-out rows.
    pub(super) rows: Vec<u32>,
}

impl Shard {
    /// Reads the shard of a whole group that the index describes so.
    pub(super) fn read(
        file: &Path,
        shape: Shape,
        asked: Asked<'_>,
        described: &IndexGroup,
    ) -> Result<Self, DataError> {
        let shard = Self::open(file, shape, asked)?;
        shard
            .check_whole(described)
            .map_err(|problem| wrong_file(file, problem))?;
        Ok(shard)
    }

    /// Reads any shard: what it has is not compared with the index.
    pub(super) fn open(file: &Path, shape: Shape, asked: Asked<'_>) -> Result<Self, DataError> {
        let opened = crate::files::open(file)?;
        Self::of(BufReader::new(opened), shape, asked).map_err(|problem| wrong_file(file, problem))
    }

    /// A shard from its bytes.
    pub(crate) fn of(
        bytes: impl Read + Seek,
        shape: Shape,
        asked: Asked<'_>,
    ) -> Result<Self, Problem> {
        let mut archive = Archive::open(bytes)?;
        let mut parts = [(); 3].map(|()| ShardPart::default());
        for (part, prefix) in parts.iter_mut().zip(PREFIXES) {
            *part = ShardPart::of(&mut archive, prefix, shape, asked)?;
        }
        let offsets = integers(&mut archive, OFFSETS, u64::from(u32::MAX))?;
        Ok(Shard {
            parts,
            offsets,
            carried: Carried::of(&mut archive)?,
        })
    }
}

/// What an edge knows of its group: where each device's rows begin.
pub(super) fn read_offsets(file: &Path, described: &IndexGroup) -> Result<Vec<u32>, DataError> {
    let opened = crate::files::open(file)?;
    offsets_of(BufReader::new(opened))
        .and_then(|offsets| check_offsets(&offsets, described.rows, described).map(|()| offsets))
        .map_err(|problem| wrong_file(file, problem))
}

/// The same from its bytes.
pub(crate) fn offsets_of(bytes: impl Read + Seek) -> Result<Vec<u32>, Problem> {
    integers(&mut Archive::open(bytes)?, OFFSETS, u64::from(u32::MAX))
}

/// The devices must own all rows, each at least one, and be as many as the index says.
pub(super) fn check_offsets(
    offsets: &[u32],
    rows: usize,
    described: &IndexGroup,
) -> Result<(), Problem> {
    if rows != described.rows || offsets.len() != described.devices + 1 {
        return Err(format!(
            "{rows} rows of {} devices: expected {} rows of {}",
            offsets.len().saturating_sub(1),
            described.rows,
            described.devices
        ));
    }
    let (first, last) = (offsets.first(), offsets.last());
    let rising = offsets.windows(2).all(|pair| pair[0] < pair[1]);
    match first == Some(&0) && last.is_some_and(|end| *end as usize == rows) && rising {
        true => Ok(()),
        false => Err(format!(
            "array {OFFSETS:?} goes from {} to {}: expected increasing numbers from 0 to {rows}",
            first.copied().unwrap_or_default(),
            last.copied().unwrap_or_default()
        )),
    }
}

impl ShardPart {
    fn of<R: Read + Seek>(
        archive: &mut Archive<R>,
        prefix: &str,
        shape: Shape,
        asked: Asked<'_>,
    ) -> Result<Self, Problem> {
        let name = format!("{prefix}patients");
        let (header, unpacking) = npy::open(archive, &name)?;
        if !matches!(header.kind, Kind::Text { .. }) || header.shape.len() != 1 {
            return Err(format!("array {name:?} has no pseudonyms: expected text"));
        }
        let patients = npy::texts(&header, unpacking, &name)?;
        let is_digit = |b: u8| b.is_ascii_hexdigit();
        let pseudonym = |text: &String| text.len() == LETTERS && text.bytes().all(is_digit);
        if let Some(row) = patients.iter().position(|text| !pseudonym(text)) {
            return Err(format!(
                "array {name:?}, row {row}: not a pseudonym: expected {LETTERS} hexadecimal digits"
            ));
        }
        let x = floats(archive, &format!("{prefix}x"), patients.len(), shape)?;
        let y = targets(archive, &format!("{prefix}y"), patients.len(), asked)?;
        let rows = match prefix {
            "" => Vec::new(),
            _ => integers(archive, &format!("{prefix}rows"), u64::from(u32::MAX))?,
        };
        if y.len() != patients.len() || (!prefix.is_empty() && rows.len() != patients.len()) {
            return Err(format!(
                "{} patients and {} labels: expected the same number of each",
                patients.len(),
                y.len()
            ));
        }
        Ok(ShardPart {
            patients,
            x,
            y,
            rows,
        })
    }

    /// The patients as numbers.
    pub(super) fn pseudonyms(&self) -> Vec<u128> {
        let pseudonym = |text: &String| crate::pseudonym::number(text).unwrap_or_default();
        self.patients.iter().map(pseudonym).collect()
    }

    /// Writes its arrays.
    pub(super) fn write<W: Write + Seek>(
        &self,
        npz: &mut NpzWriter<W>,
        prefix: &str,
        shape: Shape,
    ) -> io::Result<()> {
        let letters = |text: &String| {
            let mut letters = [b'0'; LETTERS];
            letters.copy_from_slice(text.as_bytes());
            letters
        };
        let patients: Vec<_> = self.patients.iter().map(letters).collect();
        npz.texts(&format!("{prefix}patients"), &patients)?;
        npz.floats(&format!("{prefix}x"), shape, &self.x)?;
        match &self.y {
            Targets::Classes(classes) => npz.integers(&format!("{prefix}y"), classes)?,
            Targets::Numbers { each, values } => {
                npz.floats(&format!("{prefix}y"), Shape::Flat(*each), values)?;
            }
        }
        match prefix {
            "" => Ok(()),
            _ => npz.integers(&format!("{prefix}rows"), &self.rows),
        }
    }

    /// The patients, their order and their labels must be the hospital's.
    pub(super) fn matches(&self, hospital: &ShardPart) -> Result<(), Problem> {
        let own: HashSet<&String> = self.patients.iter().collect();
        let unknown = hospital
            .patients
            .iter()
            .filter(|p| !own.contains(p))
            .count();
        if self.patients != hospital.patients || self.rows != hospital.rows {
            return Err(format!(
                "{} rows; the group's hospital has {}, {unknown} of them for patients unknown here: expected the same patients in the same order",
                self.patients.len(),
                hospital.patients.len()
            ));
        }
        match self.y == hospital.y {
            true => Ok(()),
            false => Err("labels differ from the hospital's: expected the same".into()),
        }
    }
}

fn floats<R: Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
    rows: usize,
    shape: Shape,
) -> Result<Vec<f32>, Problem> {
    let (header, unpacking) = npy::open(archive, name)?;
    let mut expected = vec![rows];
    expected.extend(shape.dims());
    if header.shape != expected || header.kind != (Kind::Float { bytes: 4 }) {
        return Err(format!(
            "array {name:?} has the shape {:?}: expected {expected:?} of four bytes each",
            header.shape
        ));
    }
    let mut values = Vec::new();
    npy::numbers(&header, unpacking, name, |index, value| {
        if value.is_infinite() {
            return Err(format!(
                "array {name:?}, number {index}: {value} is not finite"
            ));
        }
        values.push(value as f32);
        Ok(())
    })?;
    Ok(values)
}

/// What is known of rows: whole numbers of classes, or numbers.
fn targets<R: Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
    rows: usize,
    (outcome, names): Asked<'_>,
) -> Result<Targets, Problem> {
    let found = match outcome.targets(names) {
        Targets::Classes(_) => {
            integers(archive, name, names.len().saturating_sub(1) as u64)?.into()
        }
        Targets::Numbers { each, .. } => Targets::Numbers {
            each,
            values: floats(archive, name, rows, Shape::Flat(each))?,
        },
    };
    match outcome.problem_of(names, &found) {
        None => Ok(found),
        Some(problem) => Err(format!("array {name:?}: {problem}")),
    }
}

pub(super) fn integers<R: Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
    most: u64,
) -> Result<Vec<u32>, Problem> {
    let (header, unpacking) = npy::open(archive, name)?;
    if header.shape.len() != 1 {
        return Err(format!(
            "array {name:?} has the shape {:?}: expected one dimension",
            header.shape
        ));
    }
    let mut values = Vec::new();
    npy::numbers(&header, unpacking, name, |index, value| {
        if !(0.0..=most as f64).contains(&value) || value.fract() != 0.0 {
            return Err(format!(
                "array {name:?}, row {index}: {value} is not a whole number from 0 to {most}"
            ));
        }
        values.push(value as u32);
        Ok(())
    })?;
    Ok(values)
}
