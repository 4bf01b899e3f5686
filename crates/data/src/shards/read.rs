//! Puts shards together again, as a simulation does; a party of a deployment reads only its own.

use super::{DEVICES, HOSPITAL, INDEX, Index, PREFIXES, STATISTICS, VERSION, folder};
use crate::files::npy::{self, Kind};
use crate::files::unzip::{Archive, Problem};
use crate::rows::{Dealt, Ids};
use crate::settings::wrong;
use crate::{DataError, Loaded, Statistics};
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::experiment::DataSettings;
use selvedge_nn::Shape;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// The longest index or statistics that are still taken for them.
const LONGEST_JSON: u64 = 256 << 20;

/// Reads all shards of the folder `data.path`.
pub(crate) fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Loaded, DataError> {
    let folder_of_all = find(settings, data_dir)?;
    let index_file = folder_of_all.join(INDEX);
    let index: Index = read_json(&index_file)?;
    let problem = |file: &Path, problem: String| DataError::File {
        file: file.to_owned(),
        problem,
    };
    if index.version != VERSION {
        return Err(problem(
            &index_file,
            format!(
                "version {}: expected {VERSION}; cut the shards again",
                index.version
            ),
        ));
    }
    if settings.groups != index.groups.len() {
        let expected = format!("the shards are of {} groups", index.groups.len());
        return Err(wrong("groups", settings.groups, expected));
    }
    let statistics = read_statistics(&folder_of_all.join(STATISTICS))?;
    if statistics.fingerprint() != index.statistics {
        return Err(problem(
            &folder_of_all.join(STATISTICS),
            format!(
                "its fingerprint is {}: expected {}, as {INDEX} says",
                statistics.fingerprint(),
                index.statistics
            ),
        ));
    }
    let shape = |dims: &[usize]| {
        Shape::try_from(dims.to_vec())
            .map_err(|e| problem(&folder_of_all.join(STATISTICS), e.to_string()))
    };
    let shapes = [
        shape(&statistics.hospital.shape)?,
        shape(&statistics.device.shape)?,
    ];

    let mut groups = Vec::new();
    let mut held_out = [HeldOut::default(), HeldOut::default()];
    for (number, described) in index.groups.iter().enumerate() {
        let folder = folder_of_all.join(folder(number));
        let hospital = Shard::read(&folder.join(HOSPITAL), shapes[0], &statistics)?;
        let devices_file = folder.join(DEVICES);
        let devices = Shard::read(&devices_file, shapes[1], &statistics)?;
        for (part, of_hospital) in devices.parts.iter().zip(&hospital.parts) {
            part.matches(of_hospital)
                .map_err(|p| problem(&devices_file, p))?;
        }
        let [own, validation, test] = hospital.parts;
        let [own_of_devices, device_validation, device_test] = devices.parts;
        held_out[0].add(validation, device_validation);
        held_out[1].add(test, device_test);
        let offsets = devices.offsets;
        let whole = offsets.first() == Some(&0)
            && offsets.last() == Some(&(own.y.len() as u32))
            && offsets.windows(2).all(|pair| pair[0] < pair[1]);
        if !whole || own.y.len() != described.rows || offsets.len() != described.devices + 1 {
            return Err(problem(
                &devices_file,
                format!(
                    "{} rows of {} devices: expected {} rows of {}",
                    own.y.len(),
                    offsets.len().saturating_sub(1),
                    described.rows,
                    described.devices
                ),
            ));
        }
        groups.push(Group {
            name: described.name.clone(),
            samples: Samples {
                x1: own.x,
                x2: own_of_devices.x,
                y: own.y,
            },
            offsets,
        });
    }
    let [validation, test] = held_out;
    let in_order = |rows: HeldOut, count: usize| {
        rows.in_order(count, shapes)
            .map_err(|p| problem(&index_file, p))
    };
    let dataset = Dataset {
        name: index.set,
        hospital: shapes[0],
        device: shapes[1],
        classes: statistics.classes.clone(),
        groups,
        validation: in_order(validation, index.validation)?,
        test: in_order(test, index.test)?,
    };
    let dealt = Dealt {
        dataset,
        statistics,
        ids: Ids::Numbered,
        held_out: [Vec::new(), Vec::new()],
        notes: Vec::new(),
    };
    let loaded = dealt.scale();
    match loaded.dataset.fingerprint() == index.dataset {
        true => Ok(loaded),
        false => Err(problem(
            &index_file,
            format!(
                "the shards' fingerprint is {}: expected {}; a shard was changed or is of another cut",
                loaded.dataset.fingerprint(),
                index.dataset
            ),
        )),
    }
}

fn find(settings: &DataSettings, data_dir: Option<&Path>) -> Result<PathBuf, DataError> {
    let path = Path::new(&settings.path);
    let below = data_dir
        .map(|dir| dir.join(path))
        .filter(|path| path.join(INDEX).exists());
    let found = below.unwrap_or_else(|| path.to_owned());
    match !settings.path.is_empty() && found.join(INDEX).is_file() {
        true => Ok(found),
        false => Err(wrong(
            "path",
            format!("{:?}", settings.path),
            "expected a folder that `selvedge data split` has written, seen from the current one or from the data folder",
        )),
    }
}

fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, DataError> {
    let failed = |source| DataError::Io {
        file: file.to_owned(),
        source,
    };
    let mut text = String::new();
    let opened = crate::files::open(file)?;
    opened
        .take(LONGEST_JSON)
        .read_to_string(&mut text)
        .map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| DataError::Line {
        file: file.to_owned(),
        line: error.line(),
        problem: format!("{error}: expected what `selvedge data split` wrote"),
    })
}

fn read_statistics(file: &Path) -> Result<Statistics, DataError> {
    let value: serde_json::Value = read_json(file)?;
    Statistics::from_json(value).map_err(|problem| DataError::File {
        file: file.to_owned(),
        problem,
    })
}

/// One party's rows.
pub(crate) struct Shard {
    /// Training, validation, test.
    parts: [ShardPart; 3],
    /// Only devices have them.
    offsets: Vec<u32>,
}

#[derive(Default)]
struct ShardPart {
    patients: Vec<String>,
    x: Vec<f32>,
    y: Vec<u32>,
    /// The places of held-out rows.
    rows: Vec<u32>,
}

impl Shard {
    fn read(file: &Path, shape: Shape, statistics: &Statistics) -> Result<Self, DataError> {
        let opened = crate::files::open(file)?;
        Self::of(BufReader::new(opened), shape, statistics.classes.len()).map_err(|problem| {
            DataError::File {
                file: file.to_owned(),
                problem,
            }
        })
    }

    /// A shard from its bytes.
    pub(crate) fn of(
        bytes: impl Read + Seek,
        shape: Shape,
        classes: usize,
    ) -> Result<Self, Problem> {
        let mut archive = Archive::open(bytes)?;
        let mut parts = [(); 3].map(|()| ShardPart::default());
        for (part, prefix) in parts.iter_mut().zip(PREFIXES) {
            *part = ShardPart::of(&mut archive, prefix, shape, classes)?;
        }
        let offsets = match archive.find("offsets.npy") {
            Some(_) => integers(&mut archive, "offsets", u64::from(u32::MAX))?,
            None => Vec::new(),
        };
        Ok(Shard { parts, offsets })
    }
}

impl ShardPart {
    fn of<R: Read + Seek>(
        archive: &mut Archive<R>,
        prefix: &str,
        shape: Shape,
        classes: usize,
    ) -> Result<Self, Problem> {
        let name = format!("{prefix}patients");
        let (header, unpacking) = npy::open(archive, &name)?;
        if !matches!(header.kind, Kind::Text { .. }) || header.shape.len() != 1 {
            return Err(format!("array {name:?} has no pseudonyms: expected texts"));
        }
        let patients = npy::texts(&header, unpacking, &name)?;
        let name = format!("{prefix}x");
        let (header, unpacking) = npy::open(archive, &name)?;
        let mut expected = vec![patients.len()];
        expected.extend(shape.dims());
        if header.shape != expected || header.kind != (Kind::Float { bytes: 4 }) {
            return Err(format!(
                "array {name:?} has the shape {:?}: expected {expected:?} of four bytes each",
                header.shape
            ));
        }
        let mut x = Vec::new();
        npy::numbers(&header, unpacking, &name, |index, value| {
            if value.is_infinite() {
                return Err(format!(
                    "array {name:?}, number {index}: {value} is not finite"
                ));
            }
            x.push(value as f32);
            Ok(())
        })?;
        let y = integers(
            archive,
            &format!("{prefix}y"),
            classes.saturating_sub(1) as u64,
        )?;
        let rows = match prefix {
            "" => Vec::new(),
            _ => integers(archive, &format!("{prefix}rows"), u64::from(u32::MAX))?,
        };
        if y.len() != patients.len() || (!prefix.is_empty() && rows.len() != patients.len()) {
            return Err(format!(
                "{} patients and {} labels: expected as many",
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

    /// The patients, their order and their labels must be the hospital's.
    fn matches(&self, hospital: &ShardPart) -> Result<(), Problem> {
        let own: HashSet<&String> = self.patients.iter().collect();
        let unknown = hospital
            .patients
            .iter()
            .filter(|p| !own.contains(p))
            .count();
        if self.patients != hospital.patients || self.rows != hospital.rows {
            return Err(format!(
                "{} rows; the hospital of the group has {}, {unknown} of them of patients who are unknown here: expected the same patients in the same order",
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

fn integers<R: Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
    most: u64,
) -> Result<Vec<u32>, Problem> {
    let (header, unpacking) = npy::open(archive, name)?;
    if header.shape.len() != 1 {
        return Err(format!(
            "array {name:?} has the shape {:?}: expected one row",
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

/// Held-out rows of all groups, and their places.
#[derive(Default)]
struct HeldOut {
    places: Vec<u32>,
    samples: Samples,
}

impl HeldOut {
    fn add(&mut self, hospital: ShardPart, devices: ShardPart) {
        self.places.extend(hospital.rows);
        self.samples.x1.extend(hospital.x);
        self.samples.x2.extend(devices.x);
        self.samples.y.extend(hospital.y);
    }

    /// All of them in order: every place from 0 to `count` must be there once.
    fn in_order(self, count: usize, shapes: [Shape; 2]) -> Result<Samples, Problem> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_key(|at| self.places[*at]);
        let places = order.iter().map(|at| self.places[*at] as usize);
        if self.places.len() != count || !places.eq(0..count) {
            return Err(format!(
                "the shards have {} held-out rows: expected {count}, each once",
                self.places.len()
            ));
        }
        let [wide1, wide2] = shapes.map(Shape::len);
        let mut samples = Samples::default();
        for at in order {
            let (x1, x2) = (
                &self.samples.x1[at * wide1..],
                &self.samples.x2[at * wide2..],
            );
            samples.push(&x1[..wide1], &x2[..wide2], self.samples.y[at]);
        }
        Ok(samples)
    }
}
